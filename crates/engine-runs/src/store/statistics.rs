//! Numbers about a store, for `serverStatus`, the dump tool and tests.

use crate::manifest::state::{FileState, RunState, State, TableState};
use crate::{CacheStatistics, Part, PartDescriptor, Run, RunFile, TableSlot};
use std::sync::atomic::{AtomicU64, Ordering};

/// What a store holds and has done since it was opened.
#[derive(Clone, Debug)]
pub struct RunsStatistics {
    /// Tables in the manifest.
    pub tables: u64,
    /// Runs of all tables.
    pub runs: u64,
    /// The most runs that any table has.
    pub runs_per_table_max: u64,
    /// Files that the manifest names.
    pub files: u64,
    /// Their bytes.
    pub file_bytes: u64,
    /// How many of these belong to a run; the rest is left over from dropped tables in shared files.
    pub live_bytes: u64,
    /// Files that only wait for their last reader.
    pub obsolete_files: u64,
    /// Their bytes.
    pub obsolete_bytes: u64,
    /// Length of the manifest.
    pub manifest_bytes: u64,
    /// Edits made durable.
    pub installs: u64,
    /// Manifests rewritten.
    pub rotations: u64,
    /// Files removed.
    pub files_removed: u64,
    /// Bytes that merges still have to write.
    pub merge_debt_bytes: u64,
    /// Merges installed.
    pub merges: u64,
    /// Merges given up because their table was dropped, or for an error.
    pub merges_abandoned: u64,
    /// Bytes of runs that merges read, before compression.
    pub merge_read_bytes: u64,
    /// Bytes of files that merges wrote.
    pub merge_written_bytes: u64,
    /// Bytes of runs that merges took over without rewriting them.
    pub merge_taken_over_bytes: u64,
    /// What is kept in memory to know all this: of tables, their runs and the files.
    pub memory_bytes: u64,
    /// How often the ballast had to be given up.
    pub ballast_releases: u64,
    /// True if the reserve is there.
    pub ballast_held: bool,
    /// The block cache.
    pub cache: CacheStatistics,
}

/// Counters that only grow.
#[derive(Default)]
pub(crate) struct Counters {
    pub installs: AtomicU64,
    pub rotations: AtomicU64,
    pub files_removed: AtomicU64,
    pub merges: AtomicU64,
    pub merges_abandoned: AtomicU64,
    pub merge_read_bytes: AtomicU64,
    pub merge_written_bytes: AtomicU64,
    pub merge_taken_over_bytes: AtomicU64,
    pub ballast_releases: AtomicU64,
}

/// About what an entry of a map takes beside itself.
const ENTRY_BYTES: usize = 32;

/// What a store keeps in memory of its tables: the manifest's state, and the slots, runs and files
/// made from it.
pub(crate) fn memory_bytes(state: &State) -> usize {
    let part = |part: &PartDescriptor| size_of::<PartDescriptor>() + Part::OWN_BYTES + 2 * part.bounds.size_bytes();
    let run = |run: &RunState| size_of::<RunState>() + Run::OWN_BYTES + run.run.parts.iter().map(part).sum::<usize>();
    let table = |table: &TableState| {
        let record = table.record.ident.len() + table.record.configuration.len();
        let own = ENTRY_BYTES + size_of::<TableState>() + record + TableSlot::OWN_BYTES;
        own + table.runs.iter().map(run).sum::<usize>()
    };
    let file = ENTRY_BYTES + size_of::<FileState>() + RunFile::OWN_BYTES;
    state.tables.values().map(table).sum::<usize>() + state.files.len() * file
}

/// Adds to a counter.
pub(crate) fn count(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Ordering::Relaxed);
}

/// Reads a counter.
pub(crate) fn counted(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}
