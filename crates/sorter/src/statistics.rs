//! What a sorter did, for `explain` and serverStatus.

/// Numbers of one sorter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpillStatistics {
    /// How often memory was written to disk, passes of merges left out.
    pub spills: u64,
    /// How many bytes were written, compressed, passes of merges included.
    pub spilled_storage_bytes: u64,
    /// How many entries were written, passes of merges left out.
    pub spilled_entries: u64,
    /// How many bytes the entries that were written took in memory.
    pub spilled_memory_bytes: u64,
    /// How many entries were added.
    pub entries: u64,
    /// How many bytes these take in memory.
    pub data_bytes: u64,
}
