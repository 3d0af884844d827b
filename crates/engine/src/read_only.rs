//! Opening a store to look at it: nothing on disk changes.
//!
//! The base's manifest is read and left as it is, the log is scanned and no segment is begun, leftovers of a crash stay.
//! What the log has beyond the checkpoint is applied in memory, however much that is. The mode is the one that the store
//! was written in. Afterwards the engine counts as stopped, and whatever would write is refused as illegal.

use crate::failure::of_runs;
use crate::options::{EngineOptions, Mode};
use pando_engine_runs::{Opened, Runs, RunsError, RunsOptions};
use pando_env::{DirectoryLock, Env, LOCK_FILE_NAME};
use pando_storage::{Result, StorageError};
use std::io;
use std::path::Path;

/// Why writes are refused.
pub const REASON: &str = "the store is open for reading only";

/// In the place of a lock that need not be taken.
struct Unlocked;

impl DirectoryLock for Unlocked {}

/// The directory could not be locked.
pub(crate) fn in_use(directory: &Path, error: &io::Error) -> StorageError {
    StorageError::DirectoryInUse(format!("{} is in use or cannot be locked: {error}", directory.display()))
}

/// Keeps writers out, as far as there can be any: a directory that nobody ever opened has no lock file, and none is made;
/// where nothing can be written, nobody writes.
pub fn lock(env: &Env, directory: &Path) -> Result<Box<dyn DirectoryLock>> {
    let in_use = |error: io::Error| in_use(directory, &error);
    if !env.disk().exists(&directory.join(LOCK_FILE_NAME)).map_err(in_use)? {
        return Ok(Box::new(Unlocked));
    }
    match env.disk().lock_directory(directory) {
        Err(error) if matches!(error.kind(), io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied) => {
            Ok(Box::new(Unlocked))
        }
        locked => locked.map_err(in_use),
    }
}

/// The base as it is.
pub fn open_base(env: &Env, directory: &Path, options: RunsOptions) -> Result<(Runs, Opened)> {
    let there = env.disk().exists(directory).map_err(|error| StorageError::Io(error.to_string()))?;
    if !there {
        return Err(StorageError::BadDirectory(format!("there is no store in {}", directory.display())));
    }
    Runs::open_read_only(env, directory, options).map_err(|error| match error {
        RunsError::Invalid(text) => StorageError::BadDirectory(text),
        other => of_runs(other),
    })
}

/// The options with the store's own mode, and without threads: there is nothing for them to do.
pub fn options(options: EngineOptions, mode: Mode) -> EngineOptions {
    EngineOptions { mode, background: false, ballast_bytes: 0, ..options }
}
