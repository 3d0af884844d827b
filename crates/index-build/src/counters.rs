//! What serverStatus tells of builds: how many there were, and how far they came.

use pando_base::Counter;
use pando_sorter::SpillStatistics;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counted since the start.
#[derive(Debug, Default)]
pub struct BuildCounters {
    /// Builds that have begun.
    pub total: Counter,
    /// Those that ended because there was no space left.
    pub out_of_disk_space: Counter,
    /// Those that ended because documents could not be read.
    pub data_corruption: Counter,
    /// Scans of collections.
    pub scans: Counter,
    /// First drains, beside writers.
    pub first_drains: Counter,
    /// Second drains, beside writers.
    pub second_drains: Counter,
    /// Waits for a quorum.
    pub quorum_waits: Counter,
    /// Last drains, without writers.
    pub last_drains: Counter,
    /// Looks at duplicates, without writers.
    pub constraint_checks: Counter,
    /// Commits.
    pub commits: Counter,
    last_committed_ms: AtomicU64,
    /// What their sorters did.
    pub sorting: SortingCounters,
}

/// What the sorters of builds did.
#[derive(Debug, Default)]
pub struct SortingCounters {
    /// Indexes whose keys were sorted.
    pub indexes: Counter,
    /// Of these, those that an earlier life of the server had begun.
    pub resumed: Counter,
    /// How often memory was written to disk.
    pub spills: Counter,
    /// Bytes that were written, compressed.
    pub spilled_storage_bytes: Counter,
    /// The same before that.
    pub spilled_memory_bytes: Counter,
    /// Keys.
    pub entries: Counter,
    /// Their bytes.
    pub data_bytes: Counter,
    memory_bytes: AtomicU64,
}

impl SortingCounters {
    /// What sorters have in memory now.
    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, done: &SpillStatistics) {
        self.spills.add(done.spills);
        self.spilled_storage_bytes.add(done.spilled_storage_bytes);
        self.spilled_memory_bytes.add(done.spilled_memory_bytes);
        self.entries.add(done.entries);
        self.data_bytes.add(done.data_bytes);
    }
}

/// What the sorters of one build have in memory, counted as long as this is there.
pub(crate) struct MemoryMeter<'a> {
    counters: &'a SortingCounters,
    bytes: u64,
}

impl<'a> MemoryMeter<'a> {
    pub(crate) fn new(counters: &'a SortingCounters) -> MemoryMeter<'a> {
        MemoryMeter { counters, bytes: 0 }
    }

    pub(crate) fn set(&mut self, bytes: u64) {
        let memory = &self.counters.memory_bytes;
        memory.fetch_add(bytes, Ordering::Relaxed);
        memory.fetch_sub(self.bytes, Ordering::Relaxed);
        self.bytes = bytes;
    }
}

impl Drop for MemoryMeter<'_> {
    fn drop(&mut self) {
        self.set(0);
    }
}

impl BuildCounters {
    /// How long the build took that was committed last; 0 if there was none.
    pub fn last_committed_ms(&self) -> u64 {
        self.last_committed_ms.load(Ordering::Relaxed)
    }

    pub(crate) fn committed(&self, duration_ms: u64) {
        self.commits.increment();
        // None took no time at all.
        self.last_committed_ms.store(duration_ms.max(1), Ordering::Relaxed);
    }
}
