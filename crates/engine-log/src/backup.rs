//! Copying the log while it is written.
//!
//! A backup pins the segments that are there and names their files with the lengths up to which they are durable. Files
//! only grow or end with their seal, so copying that many bytes of each gives a log that recovers to at least this point.

use crate::log::Inner;
use crate::{Log, LogPosition, Result};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// The oldest segment that each backup needs.
#[derive(Default)]
pub(crate) struct BackupPins {
    next: u64,
    pins: BTreeMap<u64, u32>,
}

impl BackupPins {
    pub(crate) fn oldest_segment(&self) -> Option<u32> {
        self.pins.values().min().copied()
    }
}

/// A file to copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupFile {
    /// The file.
    pub path: PathBuf,
    /// How much of it to copy, from its start.
    pub bytes: u64,
}

/// Pins the log's files until dropped.
pub struct LogBackup {
    inner: Arc<Inner>,
    number: u64,
    files: Vec<BackupFile>,
    position: LogPosition,
}

impl LogBackup {
    /// What to copy.
    pub fn files(&self) -> &[BackupFile] {
        &self.files
    }

    /// How far the copy reaches.
    pub fn position(&self) -> LogPosition {
        self.position
    }

    /// Moves the backup's end to now; gives the files that are new or longer than before, with their new lengths.
    pub fn extend(&mut self) -> Result<Vec<BackupFile>> {
        let position = Log { inner: Arc::clone(&self.inner) }.flush()?;
        let files = self.inner.durable_files(position, self.files.first().map(|file| file.path.clone()));
        let more = files.iter().filter(|file| !self.files.contains(file)).cloned().collect();
        self.files = files;
        self.position = position;
        Ok(more)
    }
}

impl Drop for LogBackup {
    fn drop(&mut self) {
        self.inner.backups.lock().pins.remove(&self.number);
    }
}

impl Log {
    /// Pins the files of the log as of now.
    pub fn backup(&self) -> Result<LogBackup> {
        let inner = Arc::clone(&self.inner);
        let number = {
            // Not while segments are being dropped, or their files would be named and then go.
            let _no_drops = inner.truncating.lock();
            let oldest = inner.index.read().segments.first().map_or(0, |entry| entry.segment.id);
            let mut backups = inner.backups.lock();
            backups.next += 1;
            let number = backups.next;
            backups.pins.insert(number, oldest);
            number
        };
        let mut backup = LogBackup { inner, number, files: Vec::new(), position: LogPosition::START };
        backup.extend()?;
        Ok(backup)
    }
}

impl Inner {
    /// The files from the first one on, up to a durable position.
    fn durable_files(&self, position: LogPosition, first: Option<PathBuf>) -> Vec<BackupFile> {
        let index = self.index.read();
        let segments = index.segments.iter().filter(|entry| {
            let after_first = first.as_ref().is_none_or(|first| entry.segment.path >= *first);
            after_first && entry.segment.id <= position.segment
        });
        let length = |entry: &crate::index::SegmentRows| {
            let written = entry.segment.id == position.segment;
            let records = u64::from(if written { position.offset } else { entry.end_offset });
            // The index and seal spare the copy's first start the reading; a tail that a crash tore is of no use.
            entry.sealed_bytes.filter(|_| !written).unwrap_or(records)
        };
        segments.map(|entry| BackupFile { path: entry.segment.path.clone(), bytes: length(entry) }).collect()
    }
}
