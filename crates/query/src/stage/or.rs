//! What any of several stages finds, each record once.

use super::{Stage, StageNode, Step};
use pando_base::{RecordId, Result};
use pando_doc::DocBuilder;
use pando_operation::Operation;
use std::collections::HashSet;

/// One stage after the other.
pub struct OrStage {
    children: Vec<StageNode>,
    current: usize,
    found: HashSet<RecordId>,
    keeps_duplicates: bool,
    tested: u64,
    dropped: u64,
}

impl OrStage {
    /// What any of these finds.
    pub fn new(children: Vec<StageNode>) -> OrStage {
        OrStage { children, current: 0, found: HashSet::new(), keeps_duplicates: false, tested: 0, dropped: 0 }
    }

    /// The same, but a record comes as often as it is found.
    pub fn keeping_duplicates(mut self) -> OrStage {
        self.keeps_duplicates = true;
        self
    }
}

impl Stage for OrStage {
    fn work(&mut self, operation: &mut Operation) -> Result<Step> {
        let Some(child) = self.children.get_mut(self.current) else { return Ok(Step::Finished) };
        match child.work(operation)? {
            Step::Advanced(member) => {
                if self.keeps_duplicates {
                    return Ok(Step::Advanced(member));
                }
                self.tested += 1;
                if let Some(id) = &member.record_id
                    && !self.found.insert(id.clone())
                {
                    self.dropped += 1;
                    return Ok(Step::NeedTime);
                }
                Ok(Step::Advanced(member))
            }
            Step::NeedTime => Ok(Step::NeedTime),
            Step::Finished => {
                self.current += 1;
                Ok(if self.current < self.children.len() { Step::NeedTime } else { Step::Finished })
            }
        }
    }

    fn name(&self) -> &'static str {
        "OR"
    }

    fn children(&self) -> &[StageNode] {
        &self.children
    }

    fn children_mut(&mut self) -> &mut [StageNode] {
        &mut self.children
    }

    fn describe_run(&self, out: &mut DocBuilder) {
        out.append("dupsTested", i32::try_from(self.tested).unwrap_or(i32::MAX));
        out.append("dupsDropped", i32::try_from(self.dropped).unwrap_or(i32::MAX));
    }
}
