//! How many records an index has keys of inside the bounds, without a look at any document.

use super::index_scan::describe_index;
use super::{Examined, IndexScanStage, Stage, Step};
use pando_base::Result;
use pando_catalog::Collection;
use pando_doc::DocBuilder;
use pando_operation::Operation;
use std::sync::Arc;

/// Walks over keys to count them.
pub struct CountScanStage {
    scan: IndexScanStage,
}

impl CountScanStage {
    /// Counts what the scan finds.
    pub fn new(scan: IndexScanStage) -> CountScanStage {
        CountScanStage { scan }
    }
}

impl Stage for CountScanStage {
    fn work(&mut self, operation: &mut Operation) -> Result<Step> {
        self.scan.work(operation)
    }

    fn name(&self) -> &'static str {
        "COUNT_SCAN"
    }

    fn save(&mut self) {
        self.scan.save();
    }

    fn restore(&mut self, operation: &mut Operation, collection: &Arc<Collection>) -> Result<()> {
        self.scan.restore(operation, collection)
    }

    fn describe(&self, out: &mut DocBuilder) {
        let plan = self.scan.plan();
        describe_index(plan, out);
        out.document("indexBounds", |bounds| {
            let ends = plan.bounds.ends(|field| plan.info.ordering.is_descending(field));
            for (name, end) in [("start", ends.first), ("end", ends.last)] {
                bounds.append(format!("{name}Key"), end.key);
                bounds.append(format!("{name}KeyInclusive"), end.is_inclusive);
            }
        });
    }

    fn describe_run(&self, out: &mut DocBuilder) {
        self.scan.describe_run(out);
    }

    fn examined(&self) -> Examined {
        self.scan.examined()
    }
}
