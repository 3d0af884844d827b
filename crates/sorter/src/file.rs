//! One file of a sorter: removed when nobody uses it any more, unless it is to be kept.

use crate::{Result, SorterError};
use pando_env::{Disk, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub(crate) struct SpillFile {
    disk: Arc<dyn Disk>,
    file: Arc<dyn File>,
    path: PathBuf,
    is_kept: AtomicBool,
}

impl SpillFile {
    pub(crate) fn new(disk: Arc<dyn Disk>, file: Arc<dyn File>, path: PathBuf) -> SpillFile {
        SpillFile { disk, file, path, is_kept: AtomicBool::new(false) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Its name in the directory.
    pub(crate) fn name(&self) -> String {
        self.path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    pub(crate) fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        self.file.write_at(bytes, offset).map_err(|source| self.write_failed(source))
    }

    pub(crate) fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> Result<()> {
        let failed = |source| SorterError::Read { path: self.path.clone(), offset, source };
        self.file.read_exact_at(buffer, offset).map_err(failed)
    }

    pub(crate) fn length(&self) -> Result<u64> {
        self.file.length().map_err(|source| SorterError::Read { path: self.path.clone(), offset: 0, source })
    }

    /// Keeps the file when it is no longer used, and makes it durable.
    pub(crate) fn keep(&self) -> Result<()> {
        self.file.sync().map_err(|source| self.write_failed(source))?;
        self.is_kept.store(true, Ordering::Relaxed);
        Ok(())
    }

    pub(crate) fn damaged(&self, offset: u64) -> SorterError {
        SorterError::Damaged { path: self.path.clone(), offset }
    }

    fn write_failed(&self, source: std::io::Error) -> SorterError {
        SorterError::Write { path: self.path.clone(), source }
    }
}

impl Drop for SpillFile {
    fn drop(&mut self) {
        if !self.is_kept.load(Ordering::Relaxed) {
            // What cannot be removed now is removed at the next start.
            _ = self.disk.remove(&self.path);
        }
    }
}
