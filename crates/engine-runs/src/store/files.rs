//! The run files of a store: which the manifest names, and which only wait for their last reader.
//!
//! A file that the manifest has forgotten is *obsolete*: it is removed from disk as soon as nobody holds its handle any
//! more (a reader's runs, a merge's inputs, a backup's pin), by whoever calls `reclaim`. Handles open their file lazily, so
//! the name must stay as long as there is a handle. What is not removed before a crash is removed at the next open.

use crate::{FileId, RunFile};
use std::collections::BTreeMap;
use std::sync::Arc;

/// All handles of a store.
#[derive(Default)]
pub(crate) struct Files {
    live: BTreeMap<FileId, Arc<RunFile>>,
    obsolete: Vec<Arc<RunFile>>,
}

impl Files {
    /// The files that the manifest names.
    pub fn live(&self) -> &BTreeMap<FileId, Arc<RunFile>> {
        &self.live
    }

    /// Takes a file in.
    pub fn add(&mut self, file: Arc<RunFile>) {
        self.live.insert(file.id(), file);
    }

    /// The manifest has forgotten these.
    pub fn forget(&mut self, ids: &[FileId]) {
        self.obsolete.extend(ids.iter().filter_map(|id| self.live.remove(id)));
    }

    /// Takes out the obsolete files that nobody holds. They can be removed: without a holder there can be no new one.
    pub fn take_unheld(&mut self) -> Vec<Arc<RunFile>> {
        let (unheld, held) =
            std::mem::take(&mut self.obsolete).into_iter().partition(|file| Arc::strong_count(file) == 1);
        self.obsolete = held;
        unheld
    }

    /// Puts back a file that could not be removed.
    pub fn put_back(&mut self, file: Arc<RunFile>) {
        self.obsolete.push(file);
    }

    /// Obsolete files that are still on disk: how many, how many bytes.
    pub fn obsolete(&self) -> (usize, u64) {
        (self.obsolete.len(), self.obsolete.iter().map(|file| file.length_bytes()).sum())
    }
}
