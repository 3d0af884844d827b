//! Copying a live store, and taking in files of another.

use crate::{LogPosition, Result, Table};
use pando_base::Timestamp;
use std::path::{Path, PathBuf};

/// How a backup is made.
#[derive(Clone, Debug, Default)]
pub struct BackupOptions {
    /// The name of this backup, to be the base of a later incremental one.
    pub name: Option<String>,
    /// The earlier backup that this one adds to: files that it listed are marked unchanged.
    pub since: Option<String>,
    /// The names of all earlier backups are forgotten first: the next one copies everything.
    pub forgets_names: bool,
}

/// One file to copy: the first `length` bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its name below the copy's directory.
    pub name: String,
    /// How much of it belongs to the backup.
    pub length: u64,
    /// The backup given as `since` had the same bytes already.
    pub unchanged: bool,
}

/// A pinned set of files that together are the store at one checkpoint, with its log. Dropping it lets go.
pub trait Backup: Send {
    /// What to copy.
    fn files(&self) -> &[BackupFile];
    /// The checkpoint's stable timestamp.
    fn checkpoint_timestamp(&self) -> Timestamp;
    /// The newest oplog entry in it.
    fn oplog_end(&self) -> Timestamp;
    /// Where its log ends.
    fn log_end(&self) -> LogPosition;
    /// Flushes the log so that everything up to `timestamp` is in the backup, and returns the files to copy for that.
    fn extend(&mut self, timestamp: Timestamp) -> Result<Vec<BackupFile>>;
}

/// A table that came with imported files.
#[derive(Clone)]
pub struct ImportedTable {
    /// Its ident in the source store.
    pub ident: String,
    /// The table here.
    pub table: Table,
}

/// While it is held, the engine's own work leaves the files as they are: no checkpoint, no merge. Commits, which append to the
/// log, are the caller's to keep away.
pub trait Freeze: Send {}

/// Engines that can be copied.
pub trait BackupSource {
    /// Waits for work in progress and holds back what would follow, so that the files can be copied by other means.
    fn freeze(&self) -> Result<Box<dyn Freeze>>;
    /// Takes a checkpoint if there is none and pins its files.
    fn begin_backup(&self, options: &BackupOptions) -> Result<Box<dyn Backup>>;
    /// Takes in tables of a copied store, under new table ids; `rename` gives each ident its name here, or none to
    /// leave it out.
    fn import(&self, directory: &Path, rename: &dyn Fn(&str) -> Option<String>) -> Result<Vec<ImportedTable>>;
}
