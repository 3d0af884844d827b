//! The first results.

use super::{Stage, StageNode, Step, one_child};
use pando_base::Result;
use pando_doc::DocBuilder;
use pando_operation::Operation;

/// Lets so many results through.
pub struct LimitStage {
    child: StageNode,
    limit: u64,
    left: u64,
}

impl LimitStage {
    /// The first of what the child finds.
    pub fn new(child: StageNode, limit: u64) -> LimitStage {
        LimitStage { child, limit, left: limit }
    }
}

impl Stage for LimitStage {
    fn work(&mut self, operation: &mut Operation) -> Result<Step> {
        if self.left == 0 {
            return Ok(Step::Finished);
        }
        let step = self.child.work(operation)?;
        if matches!(step, Step::Advanced(_)) {
            self.left -= 1;
        }
        Ok(step)
    }

    fn name(&self) -> &'static str {
        "LIMIT"
    }

    one_child!();

    fn describe(&self, out: &mut DocBuilder) {
        out.append("limitAmount", i64::try_from(self.limit).unwrap_or(i64::MAX));
    }
}
