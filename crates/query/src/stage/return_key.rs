//! The keys that results were found by, in place of the documents.

use super::{Member, Stage, StageNode, Step, one_child};
use pando_base::Result;
use pando_doc::Doc;
use pando_operation::Operation;

/// Returns keys.
pub struct ReturnKeyStage {
    child: StageNode,
}

impl ReturnKeyStage {
    /// The keys of what the child finds.
    pub fn new(child: StageNode) -> ReturnKeyStage {
        ReturnKeyStage { child }
    }
}

impl Stage for ReturnKeyStage {
    fn work(&mut self, operation: &mut Operation) -> Result<Step> {
        let member = match self.child.work(operation)? {
            Step::Advanced(member) => member,
            other => return Ok(other),
        };
        // Without an index there is no key, which is told as an empty document.
        let document = member.key.as_ref().map_or_else(|| Ok(Doc::new()), super::IndexKey::to_doc)?;
        Ok(Step::Advanced(Member { document: Some(document), key: None, ..member }))
    }

    fn name(&self) -> &'static str {
        "RETURN_KEY"
    }

    one_child!();
}
