//! What all of several stages find: an intersection of indexes.
//!
//! By hash the first stage's finds are kept, and each further stage leaves of them what it finds too; the last one's come out as it
//! finds them. In order all stages give their records in the order of their ids, and go on together: nothing is kept but
//! the head of each.

use super::{Member, Stage, StageNode, Step};
use pando_base::{RecordId, Result, operation};
use pando_doc::DocBuilder;
use pando_operation::Operation;
use std::collections::{HashMap, HashSet};

/// By hash.
pub struct AndHashStage {
    children: Vec<StageNode>,
    current: usize,
    /// What all stages before the current one have found.
    common: HashSet<RecordId>,
    /// What the current one has found of it.
    found: HashSet<RecordId>,
}

impl AndHashStage {
    /// What all of these find.
    pub fn new(children: Vec<StageNode>) -> AndHashStage {
        AndHashStage { children, current: 0, common: HashSet::new(), found: HashSet::new() }
    }

    fn take(&mut self, member: Member) -> Step {
        let Some(id) = member.record_id.clone() else { return Step::NeedTime };
        if self.current == 0 {
            self.common.insert(id);
        } else if self.current + 1 == self.children.len() {
            // Each record once.
            if self.common.remove(&id) {
                return Step::Advanced(member);
            }
        } else if self.common.contains(&id) {
            self.found.insert(id);
        }
        Step::NeedTime
    }
}

impl Stage for AndHashStage {
    fn work(&mut self, operation: &mut Operation) -> Result<Step> {
        let Some(child) = self.children.get_mut(self.current) else { return Ok(Step::Finished) };
        match child.work(operation)? {
            Step::Advanced(member) => Ok(self.take(member)),
            Step::NeedTime => Ok(Step::NeedTime),
            Step::Finished => {
                if self.current > 0 {
                    self.common = std::mem::take(&mut self.found);
                }
                self.current += 1;
                let is_over = self.common.is_empty() || self.current >= self.children.len();
                if is_over {
                    self.current = self.children.len();
                }
                Ok(if is_over { Step::Finished } else { Step::NeedTime })
            }
        }
    }

    fn name(&self) -> &'static str {
        "AND_HASH"
    }

    fn children(&self) -> &[StageNode] {
        &self.children
    }

    fn children_mut(&mut self) -> &mut [StageNode] {
        &mut self.children
    }

    fn describe_run(&self, out: &mut DocBuilder) {
        out.append("memUsage", i64::try_from(self.common.len() * size_of::<RecordId>()).unwrap_or(i64::MAX));
    }
}

/// In the order of record ids.
pub struct AndSortedStage {
    children: Vec<StageNode>,
    /// What each has found last, if it is not behind the others.
    heads: Vec<Option<Member>>,
    failed: HashMap<usize, u64>,
    is_finished: bool,
}

impl AndSortedStage {
    /// What all of these find, each in the order of record ids.
    pub fn new(children: Vec<StageNode>) -> AndSortedStage {
        let heads = children.iter().map(|_| None).collect();
        AndSortedStage { children, heads, failed: HashMap::new(), is_finished: false }
    }

    /// The result, if all stand on one record; otherwise those that are behind have to go on.
    fn meet(&mut self) -> Step {
        let id_of = |head: &Option<Member>| head.as_ref().and_then(|member| member.record_id.clone());
        let furthest = self.heads.iter().filter_map(id_of).max();
        let mut all_meet = true;
        for (place, head) in self.heads.iter_mut().enumerate() {
            if id_of(head) != furthest {
                all_meet = false;
                *head = None;
                *self.failed.entry(place).or_default() += 1;
            }
        }
        if !all_meet {
            return Step::NeedTime;
        }
        let mut met = self.heads.iter_mut().map(Option::take);
        let result = met.next().flatten();
        met.for_each(drop);
        result.map_or(Step::NeedTime, Step::Advanced)
    }
}

impl Stage for AndSortedStage {
    fn work(&mut self, operation: &mut Operation) -> Result<Step> {
        operation::tick(1)?;
        if self.is_finished {
            return Ok(Step::Finished);
        }
        let Some(behind) = self.heads.iter().position(Option::is_none) else { return Ok(self.meet()) };
        let Some(child) = self.children.get_mut(behind) else { return Ok(Step::Finished) };
        match child.work(operation)? {
            Step::Advanced(member) => {
                if let Some(head) = self.heads.get_mut(behind) {
                    *head = Some(member);
                }
                Ok(Step::NeedTime)
            }
            Step::NeedTime => Ok(Step::NeedTime),
            Step::Finished => {
                self.is_finished = true;
                Ok(Step::Finished)
            }
        }
    }

    fn name(&self) -> &'static str {
        "AND_SORTED"
    }

    fn children(&self) -> &[StageNode] {
        &self.children
    }

    fn children_mut(&mut self) -> &mut [StageNode] {
        &mut self.children
    }

    fn describe_run(&self, out: &mut DocBuilder) {
        for place in 0..self.children.len() {
            let failed = self.failed.get(&place).copied().unwrap_or(0);
            out.append(&*format!("failedAnd_{place}"), i64::try_from(failed).unwrap_or(i64::MAX));
        }
    }
}
