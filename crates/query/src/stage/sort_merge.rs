//! Stages that are each in order, merged into one order; each record once.

use super::{Member, SortKeyGenerator, Stage, StageNode, Step};
use crate::request::SortPattern;
use pando_base::{RecordId, Result};
use pando_doc::DocBuilder;
use pando_operation::Operation;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

/// Merges.
pub struct SortMergeStage {
    children: Vec<StageNode>,
    pattern: SortPattern,
    generator: SortKeyGenerator,
    /// Children that have to be asked before anything can come out.
    to_ask: Vec<usize>,
    /// The next result of each child, by key and child.
    heads: BTreeMap<(Box<[u8]>, usize), Member>,
    found: HashSet<RecordId>,
    tested: u64,
    dropped: u64,
}

impl SortMergeStage {
    /// What these find, in their common order.
    pub fn new(children: Vec<StageNode>, pattern: SortPattern, generator: SortKeyGenerator) -> SortMergeStage {
        let to_ask = (0..children.len()).rev().collect();
        SortMergeStage {
            children,
            pattern,
            generator,
            to_ask,
            heads: BTreeMap::new(),
            found: HashSet::new(),
            tested: 0,
            dropped: 0,
        }
    }

    fn ask(&mut self, operation: &mut Operation, child: usize) -> Result<Step> {
        let Some(node) = self.children.get_mut(child) else { return Ok(Step::NeedTime) };
        match node.work(operation)? {
            Step::Advanced(member) => {
                self.tested += 1;
                if let Some(id) = &member.record_id
                    && !self.found.insert(id.clone())
                {
                    self.dropped += 1;
                    return Ok(Step::NeedTime);
                }
                let key = self.generator.of_member(&member)?;
                self.heads.insert((key, child), member);
                self.to_ask.pop();
            }
            Step::NeedTime => {}
            Step::Finished => {
                self.to_ask.pop();
            }
        }
        Ok(Step::NeedTime)
    }
}

impl Stage for SortMergeStage {
    fn work(&mut self, operation: &mut Operation) -> Result<Step> {
        if let Some(&child) = self.to_ask.last() {
            return self.ask(operation, child);
        }
        let Some(((_, child), member)) = self.heads.pop_first() else { return Ok(Step::Finished) };
        self.to_ask.push(child);
        self.to_ask.sort_unstable_by_key(|child| Reverse(*child));
        Ok(Step::Advanced(member))
    }

    fn name(&self) -> &'static str {
        "SORT_MERGE"
    }

    fn children(&self) -> &[StageNode] {
        &self.children
    }

    fn children_mut(&mut self) -> &mut [StageNode] {
        &mut self.children
    }

    fn describe(&self, out: &mut DocBuilder) {
        out.append("sortPattern", self.pattern.to_doc());
    }

    fn describe_run(&self, out: &mut DocBuilder) {
        out.append("dupsTested", i32::try_from(self.tested).unwrap_or(i32::MAX));
        out.append("dupsDropped", i32::try_from(self.dropped).unwrap_or(i32::MAX));
    }
}
