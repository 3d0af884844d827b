//! Opening a store: the manifest is read, the directory is listed, and that is all.
//!
//! No run file is opened and no slot is filled, so the time depends on the number of tables and files and not on their
//! size. A file that the
//! manifest names and the directory lacks is corruption, named at once; a file that the manifest does not name is left
//! over from a crash and removed.

use super::files::Files;
use super::{Catalog, Runs, RunsOptions, Shared};
use crate::ballast::{self, Ballast};
use crate::manifest::change::Change;
use crate::manifest::record::{CheckpointMark, TableRecord};
use crate::manifest::state::State;
use crate::manifest::{Found, Manifest, current, file};
use crate::merge::Merges;
use crate::{BlockCache, FileDescriptor, FileId, Result, RunFile, RunsError, file_number};
use pando_base::Timestamp;
use pando_env::Env;
use parking_lot::{Mutex, RwLock};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// What was found in the directory.
#[derive(Clone, Debug)]
pub struct Opened {
    /// All tables.
    pub tables: Vec<TableRecord>,
    /// The checkpoint that the runs hold, if there was one.
    pub mark: Option<CheckpointMark>,
    /// True if the directory had no store before.
    pub created: bool,
    /// True if an edit that was never acknowledged was cut off.
    pub cut_torn_edit: bool,
    /// Files left over from a crash that were removed.
    pub removed: Vec<PathBuf>,
}

impl Runs {
    /// Opens the store in a directory, which the caller has locked; makes a new one if there is none.
    pub fn open(env: &Env, directory: &Path, options: RunsOptions) -> Result<(Runs, Opened)> {
        let disk = env.disk();
        disk.create_directory(directory).map_err(|error| RunsError::io(directory, "create", error))?;
        let identity = env.random().next_u64();
        let open_manifest = || Manifest::open(disk, directory, identity, options.manifest_rotate_bytes);
        let (manifest, found) = match open_manifest() {
            Err(RunsError::OutOfSpace { .. }) if ballast::give_up(&**disk, directory)? => open_manifest(),
            opened => opened,
        }?;
        let listed = disk.list(directory).map_err(|error| RunsError::io(directory, "list", error))?;
        let state = manifest.state();
        refuse_missing(directory, state, &listed)?;
        let removed = remove_leftovers(env, &manifest, &listed)?;
        let ballast = Ballast::open(disk.clone(), directory, options.ballast_bytes)?;
        let opened = Opened::new(state, found, removed);
        let shared = Shared::new(env, directory, options, manifest, ballast, &listed);
        shared.consider_all_tables();
        Ok((Runs { shared: Arc::new(shared) }, opened))
    }

    /// Opens the store in a directory without changing anything there: leftovers stay, and every write is refused.
    pub fn open_read_only(env: &Env, directory: &Path, options: RunsOptions) -> Result<(Runs, Opened)> {
        let disk = env.disk();
        let (manifest, found) = Manifest::open_read_only(disk, directory)?;
        let listed = disk.list(directory).map_err(|error| RunsError::io(directory, "list", error))?;
        refuse_missing(directory, manifest.state(), &listed)?;
        let opened = Opened::new(manifest.state(), found, Vec::new());
        let ballast = Ballast::untouched(disk.clone(), directory);
        let shared = Shared::new(env, directory, options, manifest, ballast, &listed);
        *shared.stopped.lock() = Some("it was opened for reading only".to_owned());
        Ok((Runs { shared: Arc::new(shared) }, opened))
    }

    /// Shows the runs of a store that was opened for reading as if this fence had been installed.
    pub fn read_behind_fence(&self, fence: Timestamp) -> Result<()> {
        let shared = &self.shared;
        let manifest = shared.manifest.lock();
        let cut = manifest.state().tables_cut_by(fence);
        let mut state = manifest.state().clone();
        state.apply(Change::Fence(fence)).map_err(RunsError::Invalid)?;
        for table in &cut {
            let slot = shared.slot_in(manifest.state(), *table);
            if let Some(table) = state.tables.get(table) {
                slot.replace(&table.runs, shared.files.lock().live(), &shared.cache);
            }
        }
        Ok(())
    }
}

impl Opened {
    fn new(state: &State, found: Found, removed: Vec<PathBuf>) -> Opened {
        Opened {
            tables: state.tables.values().map(|table| table.record.clone()).collect(),
            mark: state.mark.clone(),
            created: found.created,
            cut_torn_edit: found.torn,
            removed,
        }
    }
}

impl Shared {
    fn new(
        env: &Env,
        directory: &Path,
        options: RunsOptions,
        manifest: Manifest,
        ballast: Ballast,
        listed: &[PathBuf],
    ) -> Shared {
        let state = manifest.state();
        Shared {
            env: env.clone(),
            directory: directory.to_owned(),
            cache: BlockCache::new(usize::try_from(options.cache_bytes).unwrap_or(usize::MAX)),
            next_file: Arc::new(AtomicU64::new(next_file(state, listed))),
            merges: Merges::default(),
            ballast,
            options,
            files: Mutex::new(open_files(env, directory, state)),
            manifest: Mutex::new(manifest),
            catalog: RwLock::new(Catalog::default()),
            stopped: Mutex::new(None),
            counters: Default::default(),
        }
    }

    fn consider_all_tables(&self) {
        let manifest = self.manifest.lock();
        let tables = manifest.state().tables.keys().copied().collect();
        self.merges.consider(&self.options.policy, manifest.state(), &tables, &BTreeSet::new());
    }
}

fn refuse_missing(directory: &Path, state: &State, listed: &[PathBuf]) -> Result<()> {
    let present: BTreeSet<FileId> = listed.iter().filter_map(|path| file_number(path)).collect();
    match state.files.keys().find(|id| !present.contains(id)) {
        Some(id) => Err(RunsError::corruption(
            &directory.join(crate::file_name(*id)),
            0,
            "the manifest names this file; it is missing",
        )),
        None => Ok(()),
    }
}

/// Removes what a crash left behind, and only files of kinds that this store writes itself.
fn remove_leftovers(env: &Env, manifest: &Manifest, listed: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut removed = Vec::new();
    for path in listed {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let run_is_unknown = file_number(path).is_some_and(|id| !manifest.state().files.contains_key(&id));
        let manifest_is_old = file::number_of(name).is_some() && path != manifest.path();
        if run_is_unknown || manifest_is_old || name == current::NEW_NAME {
            env.disk().remove(path).map_err(|error| RunsError::io(path, "remove", error))?;
            removed.push(path.clone());
        }
    }
    debug_assert!(removed.iter().all(|path| !path.ends_with(ballast::NAME) && !path.ends_with(current::NAME)));
    Ok(removed)
}

/// Numbers of files that were never installed are not used again either: a block of theirs must not pass for a new one.
fn next_file(state: &State, listed: &[PathBuf]) -> FileId {
    let highest = listed.iter().filter_map(|path| file_number(path)).max().unwrap_or(0);
    state.next_file.max(highest.saturating_add(1)).max(1)
}

fn open_files(env: &Env, directory: &Path, state: &State) -> Files {
    let mut files = Files::default();
    for (id, file) in &state.files {
        let descriptor = FileDescriptor { id: *id, length_bytes: file.length_bytes };
        files.add(RunFile::new(env, directory, descriptor));
    }
    files
}
