//! Sorting in memory.
//!
//! Everything goes in before anything comes out. With a limit only so many are kept: a heap whose top is the worst of them.
//! Equal keys come out in the order in which they came in. More memory than allowed is an error.

use super::{Member, SortKeyGenerator, Stage, StageNode, Step, one_child};
use crate::request::SortPattern;
use pando_base::{Error, ErrorCode, Result};
use pando_doc::DocBuilder;
use pando_operation::Operation;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// One result with its key.
struct Sortable {
    key: Box<[u8]>,
    number: u64,
    member: Member,
}

impl Sortable {
    fn order(&self, other: &Sortable) -> Ordering {
        self.key.cmp(&other.key).then(self.number.cmp(&other.number))
    }

    fn size_bytes(&self) -> usize {
        self.key.len() + self.member.size_bytes()
    }
}

impl PartialEq for Sortable {
    fn eq(&self, other: &Sortable) -> bool {
        self.order(other).is_eq()
    }
}

impl Eq for Sortable {}

impl PartialOrd for Sortable {
    fn partial_cmp(&self, other: &Sortable) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Sortable {
    fn cmp(&self, other: &Sortable) -> Ordering {
        self.order(other)
    }
}

/// Sorts.
pub struct SortStage {
    child: StageNode,
    pattern: SortPattern,
    generator: SortKeyGenerator,
    limit: Option<u64>,
    memory_bytes_max: u64,
    memory_bytes: u64,
    /// What came in; a heap only with a limit.
    incoming: Vec<Sortable>,
    heap: BinaryHeap<Sortable>,
    /// What goes out, last first.
    outgoing: Option<Vec<Sortable>>,
    count: u64,
    data_bytes_sorted: u64,
}

impl SortStage {
    /// What the child finds, in order.
    pub fn new(
        child: StageNode,
        pattern: SortPattern,
        generator: SortKeyGenerator,
        limit: Option<u64>,
        memory_bytes_max: u64,
    ) -> SortStage {
        SortStage {
            child,
            pattern,
            generator,
            limit,
            memory_bytes_max,
            memory_bytes: 0,
            incoming: Vec::new(),
            heap: BinaryHeap::new(),
            outgoing: None,
            count: 0,
            data_bytes_sorted: 0,
        }
    }

    fn take_in(&mut self, member: Member) -> Result<()> {
        let sortable = Sortable { key: self.generator.of_member(&member)?, number: self.count, member };
        self.count += 1;
        let size_bytes = sortable.size_bytes() as u64;
        self.data_bytes_sorted += size_bytes;
        let Some(limit) = self.limit else {
            self.memory_bytes += size_bytes;
            self.incoming.push(sortable);
            return self.check_memory();
        };
        let is_full = self.heap.len() as u64 >= limit;
        if is_full && self.heap.peek().is_none_or(|worst| sortable >= *worst) {
            return Ok(());
        }
        if is_full && let Some(worst) = self.heap.pop() {
            self.memory_bytes -= worst.size_bytes() as u64;
        }
        self.memory_bytes += size_bytes;
        self.heap.push(sortable);
        self.check_memory()
    }

    fn check_memory(&self) -> Result<()> {
        if self.memory_bytes <= self.memory_bytes_max {
            return Ok(());
        }
        let reason = format!(
            "Sort exceeded memory limit of {} bytes, but did not opt in to external sorting.",
            self.memory_bytes_max
        );
        Err(Error::new(ErrorCode::QueryExceededMemoryLimitNoDiskUseAllowed, reason))
    }

    fn turn_around(&mut self) {
        let mut sorted = match self.limit {
            Some(_) => std::mem::take(&mut self.heap).into_sorted_vec(),
            None => {
                let mut all = std::mem::take(&mut self.incoming);
                all.sort_unstable();
                all
            }
        };
        sorted.reverse();
        self.outgoing = Some(sorted);
    }
}

impl Stage for SortStage {
    fn work(&mut self, operation: &mut Operation) -> Result<Step> {
        if let Some(outgoing) = &mut self.outgoing {
            return Ok(outgoing.pop().map_or(Step::Finished, |sortable| Step::Advanced(sortable.member)));
        }
        match self.child.work(operation)? {
            Step::Advanced(member) => self.take_in(member)?,
            Step::NeedTime => {}
            Step::Finished => self.turn_around(),
        }
        Ok(Step::NeedTime)
    }

    fn name(&self) -> &'static str {
        "SORT"
    }

    one_child!();

    fn describe(&self, out: &mut DocBuilder) {
        out.append("sortPattern", self.pattern.to_doc());
        out.append("memLimit", i64::try_from(self.memory_bytes_max).unwrap_or(i64::MAX) as i32);
        if let Some(limit) = self.limit {
            out.append("limitAmount", i64::try_from(limit).unwrap_or(i64::MAX));
        }
        out.append("type", "simple");
    }

    fn describe_run(&self, out: &mut DocBuilder) {
        out.append("totalDataSizeSorted", i64::try_from(self.data_bytes_sorted).unwrap_or(i64::MAX));
        out.append("usedDisk", false);
        out.append("spills", 0_i64);
    }
}
