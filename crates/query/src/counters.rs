//! What all queries of a node have looked at, for serverStatus.

use crate::stage::{DeleteBatchCounters, Examined};
use pando_base::{MetricTree, Result, ShardedCounter};
use std::sync::Arc;

/// The counters of `metrics.queryExecutor`, of queries that have to sort, and of change streams.
#[derive(Default)]
pub struct QueryCounters {
    scanned_keys: Arc<ShardedCounter>,
    scanned_documents: Arc<ShardedCounter>,
    collection_scans: Arc<ShardedCounter>,
    collection_scans_not_tailable: Arc<ShardedCounter>,
    sorts: Arc<ShardedCounter>,
    in_memory_only: Arc<ShardedCounter>,
    plans_found: Arc<ShardedCounter>,
    plans_not_found: Arc<ShardedCounter>,
    /// Of an engine that is not here.
    never: Arc<ShardedCounter>,
    events_split: Arc<ShardedCounter>,
    events_too_large: Arc<ShardedCounter>,
    /// Of deletes in batches.
    pub(crate) delete_batches: Arc<DeleteBatchCounters>,
}

impl QueryCounters {
    /// Adds what serverStatus shows.
    pub fn add_metrics(&self, tree: &mut MetricTree) -> Result<()> {
        for (name, counter) in [
            ("queryExecutor.scanned", &self.scanned_keys),
            ("queryExecutor.scannedObjects", &self.scanned_documents),
            ("queryExecutor.collectionScans.total", &self.collection_scans),
            ("queryExecutor.collectionScans.nonTailable", &self.collection_scans_not_tailable),
            ("operation.scanAndOrder", &self.sorts),
            ("query.allowDiskUseFalse", &self.in_memory_only),
            ("query.planCache.classic.hits", &self.plans_found),
            ("query.planCache.classic.misses", &self.plans_not_found),
            ("query.planCache.sbe.hits", &self.never),
            ("query.planCache.sbe.misses", &self.never),
            ("changeStreams.largeEventsSplit", &self.events_split),
            ("changeStreams.largeEventsFailed", &self.events_too_large),
        ] {
            tree.add(&format!("metrics.{name}"), Arc::clone(counter) as Arc<dyn pando_base::Metric>)?;
        }
        self.delete_batches.add_metrics(tree)
    }

    /// Counts what was looked at.
    pub(crate) fn examined(&self, examined: Examined) {
        self.scanned_keys.add(examined.keys);
        self.scanned_documents.add(examined.documents);
    }

    /// Counts a query whose results no index has in order.
    pub(crate) fn sort(&self) {
        self.sorts.add(1);
    }

    /// Counts a look for the plan of a query in the cache, where one is worth remembering.
    pub(crate) fn plan_looked_up(&self, is_cacheable: bool, is_found: bool) {
        let counter = if is_found { &self.plans_found } else { &self.plans_not_found };
        counter.add(u64::from(is_cacheable));
    }

    /// Counts a request that forbids files on disk.
    pub fn disk_use(&self, allowed: Option<bool>) {
        self.in_memory_only.add(u64::from(allowed == Some(false)));
    }

    /// Counts an event of a change stream that became several documents.
    pub(crate) fn event_split(&self) {
        self.events_split.add(1);
    }

    /// Counts an event of a change stream that was too large for a document.
    pub(crate) fn event_too_large(&self) {
        self.events_too_large.add(1);
    }

    /// Counts a scan of a collection that begins.
    pub(crate) fn collection_scan(&self, is_tailable: bool) {
        self.collection_scans.add(1);
        self.collection_scans_not_tailable.add(u64::from(!is_tailable));
    }
}
