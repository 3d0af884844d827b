//! What all queries of a node have looked at, for serverStatus.

use crate::stage::Examined;
use pando_base::{MetricTree, Result, ShardedCounter};
use std::sync::Arc;

/// The counters of `metrics.queryExecutor`, and of queries that have to sort.
#[derive(Default)]
pub struct QueryCounters {
    scanned_keys: Arc<ShardedCounter>,
    scanned_documents: Arc<ShardedCounter>,
    collection_scans: Arc<ShardedCounter>,
    collection_scans_not_tailable: Arc<ShardedCounter>,
    sorts: Arc<ShardedCounter>,
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
        ] {
            tree.add(&format!("metrics.{name}"), Arc::clone(counter) as Arc<dyn pando_base::Metric>)?;
        }
        Ok(())
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

    /// Counts a scan of a collection that begins.
    pub(crate) fn collection_scan(&self, is_tailable: bool) {
        self.collection_scans.add(1);
        self.collection_scans_not_tailable.add(u64::from(!is_tailable));
    }
}
