//! All results but the first.

use super::{Stage, StageNode, Step, one_child};
use pando_base::Result;
use pando_doc::DocBuilder;
use pando_operation::Operation;

/// Leaves out so many results.
pub struct SkipStage {
    child: StageNode,
    count: u64,
    left: u64,
}

impl SkipStage {
    /// What the child finds, but for the first.
    pub fn new(child: StageNode, count: u64) -> SkipStage {
        SkipStage { child, count, left: count }
    }
}

impl Stage for SkipStage {
    fn work(&mut self, operation: &mut Operation) -> Result<Step> {
        let step = self.child.work(operation)?;
        if self.left > 0 && matches!(step, Step::Advanced(_)) {
            self.left -= 1;
            return Ok(Step::NeedTime);
        }
        Ok(step)
    }

    fn name(&self) -> &'static str {
        "SKIP"
    }

    one_child!();

    fn describe(&self, out: &mut DocBuilder) {
        out.append("skipAmount", i64::try_from(self.count).unwrap_or(i64::MAX));
    }
}
