//! Nothing at all: a collection that is not there, a filter that nothing matches.

use super::{Stage, Step};
use pando_base::Result;
use pando_operation::Operation;

/// Has no results.
pub struct EofStage;

impl Stage for EofStage {
    fn work(&mut self, _operation: &mut Operation) -> Result<Step> {
        Ok(Step::Finished)
    }

    fn name(&self) -> &'static str {
        "EOF"
    }
}
