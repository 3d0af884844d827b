//! The directory that holds the files of all sorters of a node.
//!
//! Names are `extsort-<purpose>.<number>`. The directory is made when the first file is; [`SpillDirectory::remove_leftovers`] is for the start
//! of a node, when no file can belong to anybody but to sorters that were told to keep theirs.

use crate::file::SpillFile;
use crate::{Result, SorterError};
use pando_env::{Disk, OpenMode};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const NAME_PREFIX: &str = "extsort-";

/// Makes and finds the files of sorters.
pub struct SpillDirectory {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    next_number: AtomicU64,
}

impl SpillDirectory {
    /// The directory of this path, which need not exist.
    pub fn new(disk: Arc<dyn Disk>, path: impl Into<PathBuf>) -> SpillDirectory {
        SpillDirectory { disk, path: path.into(), next_number: AtomicU64::new(0) }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the files of sorters that ended without doing so, and whatever else is in the directory, but not those that are to be
    /// kept; says how many.
    pub fn remove_leftovers(&self, kept: &[&str]) -> io::Result<usize> {
        if !self.disk.exists(&self.path)? {
            return Ok(0);
        }
        let mut removed = 0;
        for path in self.disk.list(&self.path)? {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if kept.contains(&name) {
                continue;
            }
            match self.disk.remove(&path) {
                Ok(()) => removed += 1,
                // What is not ours may be anything, a directory too.
                Err(_) if !name.starts_with(NAME_PREFIX) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(removed)
    }

    /// Refuses if fewer bytes than this are free.
    pub(crate) fn require_space(&self, required_bytes: u64) -> Result<()> {
        if required_bytes == 0 {
            return Ok(());
        }
        let failed = |source| SorterError::Open { path: self.path.clone(), source };
        self.disk.create_directory(&self.path).map_err(failed)?;
        let available_bytes = self.disk.free_bytes(&self.path).map_err(failed)?;
        if available_bytes < required_bytes {
            return Err(SorterError::OutOfDiskSpace { available_bytes, required_bytes });
        }
        Ok(())
    }

    /// A new file.
    pub(crate) fn create(&self, purpose: &str) -> Result<SpillFile> {
        let failed = |path: &Path, source| SorterError::Open { path: path.to_owned(), source };
        self.disk.create_directory(&self.path).map_err(|source| failed(&self.path, source))?;
        loop {
            let number = self.next_number.fetch_add(1, Ordering::Relaxed);
            let path = self.path.join(format!("{NAME_PREFIX}{purpose}.{number}"));
            match self.disk.open(&path, OpenMode::CreateNew) {
                Ok(file) => return Ok(SpillFile::new(Arc::clone(&self.disk), file, path)),
                // One that was kept at the last end.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(failed(&path, error)),
            }
        }
    }

    /// A file that was kept.
    pub(crate) fn reopen(&self, name: &str) -> Result<SpillFile> {
        let path = self.path.join(name);
        match self.disk.open(&path, OpenMode::ReadWrite) {
            Ok(file) => Ok(SpillFile::new(Arc::clone(&self.disk), file, path)),
            Err(source) => Err(SorterError::Open { path, source }),
        }
    }

    /// Makes the names of kept files durable.
    pub(crate) fn sync(&self) -> Result<()> {
        self.disk.sync_directory(&self.path).map_err(|source| SorterError::Write { path: self.path.clone(), source })
    }
}
