//! The sorter: memory first, then ranges.
//!
//! With a limit only that many entries are kept: a heap whose top is the worst of them. Once a whole range of that length was
//! written, what is not less than its last key is not wanted any more.

use crate::range::RangeDescription;
use crate::{Merged, Result, SorterError, SpillDirectory, SpillStatistics, Spilled, SpilledRanges};
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// What a sorter may do.
#[derive(Clone)]
pub struct SorterOptions {
    /// How much memory its entries may take.
    pub memory_bytes_max: u64,
    /// Only so many of the least are wanted.
    pub limit: Option<u64>,
    /// Where it may write; none if it may not.
    pub directory: Option<Arc<SpillDirectory>>,
    /// What for, in the names of its files.
    pub purpose: &'static str,
    /// Before it writes, there has to be so much space.
    pub free_bytes_min: u64,
}

/// What is needed to go on with a sorter later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Persisted {
    /// The name of its file in the directory; none if nothing was added.
    pub file_name: Option<String>,
    /// Its ranges.
    pub ranges: Vec<RangeDescription>,
}

struct Entry<V> {
    key: Box<[u8]>,
    number: u64,
    value: V,
}

impl<V: Spilled> Entry<V> {
    fn memory_bytes(&self) -> u64 {
        (self.key.len() + self.value.memory_bytes()) as u64
    }
}

impl<V> Ord for Entry<V> {
    fn cmp(&self, other: &Entry<V>) -> Ordering {
        self.key.cmp(&other.key).then(self.number.cmp(&other.number))
    }
}

impl<V> PartialOrd for Entry<V> {
    fn partial_cmp(&self, other: &Entry<V>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<V> PartialEq for Entry<V> {
    fn eq(&self, other: &Entry<V>) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<V> Eq for Entry<V> {}

/// Takes entries in any order.
pub struct Sorter<V> {
    options: SorterOptions,
    /// What is in memory: a heap only with a limit.
    incoming: Vec<Entry<V>>,
    heap: BinaryHeap<Entry<V>>,
    memory_bytes: u64,
    ranges: Option<SpilledRanges<V>>,
    /// With a limit: only keys below this can still be wanted.
    cutoff: Option<Box<[u8]>>,
    entries: u64,
    data_bytes: u64,
}

impl<V: Spilled> Sorter<V> {
    /// A sorter that has nothing yet.
    pub fn new(options: SorterOptions) -> Sorter<V> {
        let ranges = options
            .directory
            .as_ref()
            .map(|directory| SpilledRanges::new(Arc::clone(directory), options.purpose, options.free_bytes_min));
        Sorter {
            options,
            incoming: Vec::new(),
            heap: BinaryHeap::new(),
            memory_bytes: 0,
            ranges,
            cutoff: None,
            entries: 0,
            data_bytes: 0,
        }
    }

    /// Goes on with what a sorter has left. Fails if it may not write, or if the file is not there.
    pub fn resume(options: SorterOptions, persisted: &Persisted) -> Result<Sorter<V>> {
        let mut sorter = Sorter::new(options);
        if let Some(name) = &persisted.file_name {
            let ranges = sorter.ranges.take().ok_or_else(|| sorter.memory_exceeded())?;
            sorter.ranges = Some(ranges.reopen(name, &persisted.ranges)?);
        }
        Ok(sorter)
    }

    /// Adds an entry.
    pub fn add(&mut self, key: Box<[u8]>, value: V) -> Result<()> {
        let entry = Entry { key, number: self.entries, value };
        let memory_bytes = entry.memory_bytes();
        self.entries += 1;
        self.data_bytes += memory_bytes;
        match self.options.limit {
            None => self.incoming.push(entry),
            Some(limit) => {
                if !self.is_wanted(&entry, limit) {
                    return Ok(());
                }
                if self.heap.len() as u64 >= limit
                    && let Some(worst) = self.heap.pop()
                {
                    self.memory_bytes -= worst.memory_bytes();
                }
                self.heap.push(entry);
            }
        }
        self.memory_bytes += memory_bytes;
        if self.memory_bytes > self.options.memory_bytes_max { self.spill() } else { Ok(()) }
    }

    fn is_wanted(&self, entry: &Entry<V>, limit: u64) -> bool {
        let is_full = self.heap.len() as u64 >= limit;
        let is_cut_off = self.cutoff.as_ref().is_some_and(|cutoff| entry.key >= *cutoff);
        let is_worse = is_full && self.heap.peek().is_none_or(|worst| entry >= worst);
        !(is_cut_off || is_worse)
    }

    fn memory_exceeded(&self) -> SorterError {
        SorterError::MemoryExceeded { memory_bytes_max: self.options.memory_bytes_max }
    }

    /// What is in memory, in order.
    fn take_sorted(&mut self) -> Vec<Entry<V>> {
        self.memory_bytes = 0;
        if self.options.limit.is_some() {
            return std::mem::take(&mut self.heap).into_sorted_vec();
        }
        let mut sorted = std::mem::take(&mut self.incoming);
        sorted.sort_unstable();
        sorted
    }

    /// Writes what is in memory.
    fn spill(&mut self) -> Result<()> {
        if self.ranges.is_none() {
            return Err(self.memory_exceeded());
        }
        let sorted = self.take_sorted();
        if let (Some(limit), Some(last)) = (self.options.limit, sorted.last())
            && sorted.len() as u64 >= limit
            && self.cutoff.as_ref().is_none_or(|cutoff| last.key < *cutoff)
        {
            self.cutoff = Some(last.key.clone());
        }
        match &mut self.ranges {
            Some(ranges) => ranges.write(sorted.into_iter().map(|entry| (entry.key, entry.value))),
            None => Ok(()),
        }
    }

    /// Everything in order.
    pub fn finish(&mut self) -> Result<Sorted<V>> {
        let memory_bytes_max = self.options.memory_bytes_max;
        let limit = self.options.limit;
        if self.ranges.as_ref().is_none_or(SpilledRanges::is_empty) {
            return Ok(Sorted(Source::Memory(self.take_sorted().into_iter())));
        }
        if self.memory_bytes > 0 {
            self.spill()?;
        }
        match &mut self.ranges {
            Some(ranges) => Ok(Sorted(Source::Disk(ranges.merge(memory_bytes_max, limit)?))),
            None => Ok(Sorted(Source::Disk(Merged::empty()))),
        }
    }

    /// Writes everything and keeps it on disk, durably, so that `resume` can go on with it, in another process too.
    pub fn persist(mut self) -> Result<Persisted> {
        if !(self.incoming.is_empty() && self.heap.is_empty()) {
            self.spill()?;
        }
        let kept = match self.ranges {
            Some(ranges) => ranges.persist()?,
            None => None,
        };
        let (file_name, ranges) = kept.map_or((None, Vec::new()), |(name, ranges)| (Some(name), ranges));
        Ok(Persisted { file_name, ranges })
    }

    /// What it did so far.
    pub fn statistics(&self) -> SpillStatistics {
        let spilled = self.ranges.as_ref().map(SpilledRanges::statistics).unwrap_or_default();
        SpillStatistics { entries: self.entries, data_bytes: self.data_bytes, ..spilled }
    }
}

/// Gives entries in order.
pub struct Sorted<V>(Source<V>);

enum Source<V> {
    /// They fit into memory.
    Memory(std::vec::IntoIter<Entry<V>>),
    /// They are read from ranges.
    Disk(Merged<V>),
}

impl<V: Spilled> Sorted<V> {
    /// True if they are in memory alone: the sorter has nothing left to be kept.
    pub fn is_in_memory(&self) -> bool {
        matches!(self.0, Source::Memory(_))
    }

    /// The next entry.
    pub fn next_entry(&mut self) -> Result<Option<(Box<[u8]>, V)>> {
        match &mut self.0 {
            Source::Memory(entries) => Ok(entries.next().map(|entry| (entry.key, entry.value))),
            Source::Disk(merged) => merged.next_entry(),
        }
    }
}
