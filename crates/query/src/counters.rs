//! What all queries of a node have looked at, for serverStatus.

use crate::stage::Examined;
use pando_base::{MetricTree, Result, ShardedCounter};
use std::sync::Arc;

/// The counters of `metrics.queryExecutor`.
#[derive(Default)]
pub struct QueryCounters {
    scanned_keys: Arc<ShardedCounter>,
    scanned_documents: Arc<ShardedCounter>,
    collection_scans: Arc<ShardedCounter>,
    collection_scans_not_tailable: Arc<ShardedCounter>,
}

impl QueryCounters {
    /// Adds what serverStatus shows.
    pub fn add_metrics(&self, tree: &mut MetricTree) -> Result<()> {
        for (name, counter) in [
            ("scanned", &self.scanned_keys),
            ("scannedObjects", &self.scanned_documents),
            ("collectionScans.total", &self.collection_scans),
            ("collectionScans.nonTailable", &self.collection_scans_not_tailable),
        ] {
            tree.add(&format!("metrics.queryExecutor.{name}"), Arc::clone(counter) as Arc<dyn pando_base::Metric>)?;
        }
        Ok(())
    }

    /// Counts what was looked at.
    pub(crate) fn examined(&self, examined: Examined) {
        self.scanned_keys.add(examined.keys);
        self.scanned_documents.add(examined.documents);
    }

    /// Counts a scan of a collection that begins.
    pub(crate) fn collection_scan(&self, is_tailable: bool) {
        self.collection_scans.add(1);
        self.collection_scans_not_tailable.add(u64::from(!is_tailable));
    }
}
