//! Pins: what a backup holds on to.
//!
//! Run files never change, so a backup is a list of files that must not be removed while they are copied, together with
//! a manifest of its own that names exactly these. Numbers of files are never used twice, so an incremental backup copies
//! the files that an earlier list of the same store does not have. Putting the files into a directory restores the store;
//! run files of the earlier backup that the new manifest does not name are removed by the first open.

use crate::manifest::record::CheckpointMark;
use crate::store::Runs;
use crate::{FileId, RunFile, file_name};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

/// A file to be copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedFile {
    /// Its number.
    pub id: FileId,
    /// Its name in the store's directory.
    pub name: String,
    /// Where it lies.
    pub path: PathBuf,
    /// Its length.
    pub length_bytes: u64,
}

/// What a backup consists of, for the next incremental one.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct BackupList {
    /// The store.
    pub identity: u64,
    /// Its run files.
    pub files: BTreeSet<FileId>,
}

/// Keeps the files of one moment until dropped.
pub struct Pins {
    list: BackupList,
    held: BTreeMap<FileId, Arc<RunFile>>,
    manifest: Vec<(String, Vec<u8>)>,
    mark: Option<CheckpointMark>,
}

impl Runs {
    /// Pins the store as it is.
    pub fn pin(&self) -> Pins {
        let mut pins = Pins { list: BackupList::default(), held: BTreeMap::new(), manifest: Vec::new(), mark: None };
        pins.extend(self);
        pins
    }
}

impl Pins {
    /// Moves on to the store as it is now. Files of before stay pinned, since they may be in the middle of being copied.
    pub fn extend(&mut self, runs: &Runs) {
        let manifest = runs.shared.manifest.lock();
        let files = runs.shared.files.lock();
        self.list = BackupList { identity: manifest.identity(), files: files.live().keys().copied().collect() };
        self.held.extend(files.live().iter().map(|(id, file)| (*id, file.clone())));
        self.manifest = manifest.copy();
        self.mark = manifest.state().mark.clone();
    }

    /// The run files to copy.
    pub fn files(&self) -> Vec<PinnedFile> {
        self.files_since(&BackupList::default())
    }

    /// The run files to copy for someone who has the files of an earlier backup.
    pub fn files_since(&self, earlier: &BackupList) -> Vec<PinnedFile> {
        let has = |id: &FileId| earlier.identity == self.list.identity && earlier.files.contains(id);
        let wanted = self.held.iter().filter(|(id, _)| self.list.files.contains(id) && !has(id));
        let pinned = |(id, file): (&FileId, &Arc<RunFile>)| PinnedFile {
            id: *id,
            name: file_name(*id),
            path: file.path().to_owned(),
            length_bytes: file.length_bytes(),
        };
        wanted.map(pinned).collect()
    }

    /// The small files, by name and content, that belong to the copy; they differ from those in the store's directory.
    pub fn manifest_files(&self) -> &[(String, Vec<u8>)] {
        &self.manifest
    }

    /// What to keep for the next incremental backup.
    pub fn list(&self) -> &BackupList {
        &self.list
    }

    /// The checkpoint that the pinned runs hold.
    pub fn mark(&self) -> Option<&CheckpointMark> {
        self.mark.as_ref()
    }
}
