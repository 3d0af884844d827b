//! The store: all runs of all tables under one manifest.
//!
//! [`Runs`] is what the engine holds. Readers go through a [`TableSlot`] and meet no lock of the store. Everything that
//! changes the store is an [`Edit`] ([`install`]): one synced record of the manifest, then visible in the slots. Merges
//! ([`crate::merge`]) work beside all this on files that never change, and end in an edit of their own.
//!
//! Order of durability: run files, their sync, the directory's sync (all done by the writer), the manifest's record, its
//! sync; only then are files removed that the record forgot. A crash at any point leaves the state before or after the
//! edit, plus files that no record names, which the next open removes.
//!
//! Fail-stop: after a failed sync nobody knows what is on disk. The store is *stopped*: reads go on, every write is
//! refused with the first failure's message, and the next open sorts it out from the manifest alone.
//!
//! Lock order: merge job → manifest → catalog → files. None is held over the work of a merge, and readers take the
//! catalog's read lock only to find a slot, and the manifest's lock only the first time.
//!
//! The store does not lock its directory; whoever opens it has locked the data directory around it. It knows nothing of
//! keys' meaning, of transactions, or of what a table is for.

pub(crate) mod files;
pub(crate) mod install;
mod open;
mod options;
mod reclaim;
pub(crate) mod slot;
pub(crate) mod statistics;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

pub use install::Edit;
pub use open::Opened;
pub use options::RunsOptions;
pub use reclaim::Reclaimed;
pub use slot::TableSlot;
pub use statistics::RunsStatistics;

use crate::ballast::Ballast;
use crate::manifest::Manifest;
use crate::manifest::state::State;
use crate::merge::Merges;
use crate::{BlockCache, FileId, Result, RunWriter, RunsError, TableId, WriterOptions};
use files::Files;
use pando_env::Env;
use parking_lot::{Mutex, RwLock};
use statistics::{Counters, counted};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// The base of an engine. Cloning gives another handle to the same store.
#[derive(Clone)]
pub struct Runs {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub env: Env,
    pub directory: PathBuf,
    pub options: RunsOptions,
    pub cache: Arc<BlockCache>,
    /// The number of the next run file.
    pub next_file: Arc<AtomicU64>,
    pub manifest: Mutex<Manifest>,
    pub catalog: RwLock<Catalog>,
    pub files: Mutex<Files>,
    pub merges: Merges,
    pub ballast: Ballast,
    pub stopped: Mutex<Option<String>>,
    pub counters: Counters,
}

/// The slots, and the tables that were dropped since the store was opened.
#[derive(Default)]
pub(crate) struct Catalog {
    pub slots: BTreeMap<TableId, Arc<TableSlot>>,
    pub dropped: BTreeSet<TableId>,
}

impl Runs {
    /// The slot of a table. For a table that the manifest does not know yet, it is empty until the edit that creates it.
    pub fn slot(&self, table: TableId) -> Arc<TableSlot> {
        if let Some(slot) = self.shared.catalog.read().slots.get(&table) {
            return slot.clone();
        }
        self.shared.slot_in(self.shared.manifest.lock().state(), table)
    }

    /// A writer of new runs, to be installed by an edit.
    pub fn writer(&self, options: WriterOptions) -> Result<RunWriter> {
        self.shared.refuse_if_stopped()?;
        let shared = &self.shared;
        Ok(RunWriter::new(&shared.env, &shared.directory, shared.next_file.clone(), options))
    }

    /// Where the store lies.
    pub fn directory(&self) -> &Path {
        &self.shared.directory
    }

    /// The same number in this store and its backups, another in any other store.
    pub fn identity(&self) -> u64 {
        self.shared.manifest.lock().identity()
    }

    /// Why the store has stopped writing, if it has.
    pub fn stopped(&self) -> Option<String> {
        self.shared.stopped.lock().clone()
    }

    /// Changes the block cache's capacity.
    pub fn set_cache_bytes(&self, bytes: u64) {
        self.shared.cache.set_capacity_bytes(usize::try_from(bytes).unwrap_or(usize::MAX));
    }

    /// What the block cache holds.
    pub fn cache_bytes_used(&self) -> u64 {
        self.shared.cache.used_bytes() as u64
    }

    /// True while the block cache has room that nobody has to make: what is opened stays open.
    pub fn cache_is_roomy(&self) -> bool {
        self.shared.cache.is_roomy()
    }

    /// Gives up the reserve for a caller that cannot go on without the space. True if there was any.
    pub fn release_ballast(&self) -> Result<bool> {
        self.shared.release_ballast()
    }

    /// To be told of an error of a writer: a failed sync stops the store. Returns the error to pass on.
    pub fn note_failure(&self, error: RunsError) -> RunsError {
        self.shared.stop_on_failed_sync(error)
    }

    /// Ends the store in good order: gives up a merge in progress and lets the manifest state that all of it is synced.
    /// Not calling it loses nothing.
    pub fn close(&self) -> Result<()> {
        self.abandon_merge();
        self.reclaim()?;
        if self.stopped().is_some() {
            return Ok(());
        }
        let sealed = self.shared.manifest.lock().seal();
        sealed.map_err(|error| self.shared.stop_on_failed_sync(error))
    }

    /// Numbers about the store.
    pub fn statistics(&self) -> RunsStatistics {
        let shared = &self.shared;
        let merge_debt_bytes = self.debt_bytes();
        let manifest = shared.manifest.lock();
        let state = manifest.state();
        let runs = state.tables.values().map(|table| table.runs.len() as u64);
        let (obsolete_files, obsolete_bytes) = shared.files.lock().obsolete();
        let counters = &shared.counters;
        RunsStatistics {
            tables: state.tables.len() as u64,
            runs: runs.clone().sum(),
            runs_per_table_max: runs.max().unwrap_or(0),
            files: state.files.len() as u64,
            file_bytes: state.files.values().map(|file| file.length_bytes).sum(),
            live_bytes: state.files.values().map(|file| file.live_bytes).sum(),
            obsolete_files: obsolete_files as u64,
            obsolete_bytes,
            manifest_bytes: manifest.length_bytes(),
            installs: counted(&counters.installs),
            rotations: counted(&counters.rotations),
            files_removed: counted(&counters.files_removed),
            merge_debt_bytes,
            merges: counted(&counters.merges),
            merges_abandoned: counted(&counters.merges_abandoned),
            merge_read_bytes: counted(&counters.merge_read_bytes),
            merge_written_bytes: counted(&counters.merge_written_bytes),
            merge_taken_over_bytes: counted(&counters.merge_taken_over_bytes),
            memory_bytes: statistics::memory_bytes(state) as u64,
            ballast_releases: counted(&counters.ballast_releases),
            ballast_held: shared.ballast.is_held(),
            cache: shared.cache.statistics(),
        }
    }
}

impl Shared {
    /// The slot of a table, filled on first use: a store has many tables that nobody asks for. The caller holds the
    /// manifest's lock, so that no edit passes the slot by.
    pub fn slot_in(&self, state: &State, table: TableId) -> Arc<TableSlot> {
        let mut catalog = self.catalog.write();
        let fill = || {
            let slot = TableSlot::new(table);
            if let Some(table) = state.tables.get(&table) {
                slot.replace(&table.runs, self.files.lock().live(), &self.cache);
            }
            Arc::new(slot)
        };
        catalog.slots.entry(table).or_insert_with(fill).clone()
    }

    pub fn refuse_if_stopped(&self) -> Result<()> {
        match &*self.stopped.lock() {
            Some(reason) => Err(RunsError::Stopped(reason.clone())),
            None => Ok(()),
        }
    }

    /// Passes an error on; a failed sync stops the store first.
    pub fn stop_on_failed_sync(&self, error: RunsError) -> RunsError {
        if !error.is_failed_sync() && !matches!(error, RunsError::Stopped(_)) {
            return error;
        }
        let reason = match &error {
            RunsError::Stopped(reason) => reason.clone(),
            failed => format!("{failed}; what is on disk is unknown until the next start"),
        };
        let mut stopped = self.stopped.lock();
        RunsError::Stopped(stopped.get_or_insert(reason).clone())
    }

    /// The path of a run file.
    pub fn path_of(&self, file: FileId) -> PathBuf {
        self.directory.join(crate::file_name(file))
    }
}
