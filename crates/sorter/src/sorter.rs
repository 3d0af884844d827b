//! The sorter: memory first, then ranges.
//!
//! With a limit only that many entries are kept. With a helper, a full memory is sorted and written by another thread while the sorter
//! takes more; each of the two has half of the memory.

use crate::collected::{Collected, MEMORY_BYTES_MAX, Outgoing};
use crate::least::Least;
use crate::range::RangeDescription;
use crate::{Merged, Result, SorterError, SpillDirectory, SpillStatistics, Spilled, SpilledRanges};
use pando_env::Env;
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
    /// How much memory the readers of what it has written may take; as much as the entries, if nothing is said.
    pub readers_memory_bytes_max: Option<u64>,
    /// Where threads come from that write beside it; none if it is to do all by itself. With a limit it does.
    pub helper: Option<Env>,
}

/// What is needed to go on with a sorter later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Persisted {
    /// The name of its file in the directory; none if nothing was added.
    pub file_name: Option<String>,
    /// Its ranges.
    pub ranges: Vec<RangeDescription>,
}

/// What is in memory.
enum Incoming<V> {
    Every(Collected<V>),
    Least(Least<V>),
}

/// Takes entries in any order.
pub struct Sorter<V: Spilled> {
    options: SorterOptions,
    incoming: Incoming<V>,
    /// Of what is in memory; what another thread is writing has as much.
    memory_bytes_max: u64,
    ranges: Option<SpilledRanges<V>>,
    entries: u64,
    data_bytes: u64,
}

impl<V: Spilled> Sorter<V> {
    /// A sorter that has nothing yet.
    pub fn new(mut options: SorterOptions) -> Sorter<V> {
        let ranges = options
            .directory
            .as_ref()
            .map(|directory| SpilledRanges::new(Arc::clone(directory), options.purpose, options.free_bytes_min));
        options.helper = options.helper.filter(|env| options.limit.is_none() && env.tasks().parallelism() > 1);
        let share = if options.helper.is_some() && ranges.is_some() { 2 } else { 1 };
        Sorter {
            incoming: match options.limit {
                Some(limit) => Incoming::Least(Least::new(limit)),
                None => Incoming::Every(Collected::new()),
            },
            memory_bytes_max: (options.memory_bytes_max / share).min(MEMORY_BYTES_MAX),
            options,
            ranges,
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
    pub fn add(&mut self, key: &[u8], value: V) -> Result<()> {
        self.entries += 1;
        self.data_bytes += Collected::data_bytes(key, &value);
        match &mut self.incoming {
            Incoming::Every(collected) => collected.push(key, value),
            Incoming::Least(least) => least.push(key, value),
        }
        if self.memory_bytes() > self.memory_bytes_max { self.spill() } else { Ok(()) }
    }

    /// How much of it is in memory.
    pub fn memory_bytes(&self) -> u64 {
        match &self.incoming {
            Incoming::Every(collected) => collected.memory_bytes(),
            Incoming::Least(least) => least.memory_bytes(),
        }
    }

    fn memory_exceeded(&self) -> SorterError {
        SorterError::MemoryExceeded { memory_bytes_max: self.options.memory_bytes_max }
    }

    /// Writes what is in memory.
    fn spill(&mut self) -> Result<()> {
        let Some(ranges) = &mut self.ranges else { return Err(self.memory_exceeded()) };
        match &mut self.incoming {
            Incoming::Every(collected) => {
                let full = std::mem::replace(collected, Collected::new());
                *collected = match &self.options.helper {
                    Some(env) => ranges.write_meanwhile(full, env)?,
                    None => ranges.write_collected(full)?,
                };
                Ok(())
            }
            Incoming::Least(least) => ranges.write(least.take_sorted().iter()),
        }
    }

    /// Everything in order.
    pub fn finish(&mut self) -> Result<Sorted<V>> {
        let has_spilled = self.ranges.as_ref().is_some_and(|ranges| !ranges.is_empty());
        if has_spilled && self.memory_bytes() > 0 {
            self.spill()?;
        }
        let Some(ranges) = self.ranges.as_mut().filter(|_| has_spilled) else {
            let sorted = match &mut self.incoming {
                Incoming::Every(collected) => {
                    let mut collected = std::mem::replace(collected, Collected::new());
                    collected.sort()?;
                    collected
                }
                Incoming::Least(least) => least.take_sorted(),
            };
            return Ok(Sorted(Source::Memory(sorted.into_outgoing())));
        };
        // Both halves are free once everything is written.
        self.incoming = Incoming::Every(Collected::new());
        let readers_bytes = self.options.readers_memory_bytes_max.unwrap_or(self.options.memory_bytes_max);
        Ok(Sorted(Source::Disk(ranges.merge(readers_bytes, self.options.limit)?)))
    }

    /// Writes everything and keeps it on disk, durably, so that `resume` can go on with it, in another process too.
    pub fn persist(mut self) -> Result<Persisted> {
        if self.memory_bytes() > 0 {
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
pub struct Sorted<V: Spilled>(Source<V>);

enum Source<V: Spilled> {
    /// They fit into memory.
    Memory(Outgoing<V>),
    /// They are read from ranges.
    Disk(Merged<V>),
}

impl<V: Spilled> Sorted<V> {
    /// True if they are in memory alone: the sorter has nothing left to be kept.
    pub fn is_in_memory(&self) -> bool {
        matches!(self.0, Source::Memory(_))
    }

    /// The next entry.
    pub fn next_entry(&mut self) -> Result<Option<(&[u8], V)>> {
        match &mut self.0 {
            Source::Memory(outgoing) => Ok(outgoing.next_entry()),
            Source::Disk(merged) => merged.next_entry(),
        }
    }
}
