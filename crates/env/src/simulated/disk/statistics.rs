//! What was done to each file, so that tests can count bytes.

use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::path::{Path, PathBuf};

/// Successful calls since the start or the last reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Calls that read.
    pub reads: u64,
    /// Bytes that they gave.
    pub bytes_read: u64,
    /// Calls that wrote.
    pub writes: u64,
    /// Bytes that they wrote.
    pub bytes_written: u64,
    /// Syncs of the file, or of the directory if the path is one.
    pub syncs: u64,
}

impl AddAssign for Statistics {
    fn add_assign(&mut self, other: Statistics) {
        self.reads += other.reads;
        self.bytes_read += other.bytes_read;
        self.writes += other.writes;
        self.bytes_written += other.bytes_written;
        self.syncs += other.syncs;
    }
}

/// Statistics by the path under which the file was opened.
#[derive(Clone, Default)]
pub(super) struct StatisticsByPath {
    paths: BTreeMap<PathBuf, Statistics>,
}

impl StatisticsByPath {
    pub(super) fn add(&mut self, path: &Path, done: Statistics) {
        match self.paths.get_mut(path) {
            Some(sum) => *sum += done,
            None => _ = self.paths.insert(path.to_owned(), done),
        }
    }

    pub(super) fn sum(&self, is_wanted: impl Fn(&Path) -> bool) -> Statistics {
        let mut sum = Statistics::default();
        self.paths.iter().filter(|(path, _)| is_wanted(path)).for_each(|(_, done)| sum += *done);
        sum
    }

    pub(super) fn clear(&mut self) {
        self.paths.clear();
    }
}
