//! What a writer hands to the store: files that are complete, checked and durable, but that no manifest names yet.

use crate::{FileDescriptor, FileId, RunDescriptor, TableId};
use pando_env::Disk;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The name of a run file in the store's directory.
pub fn file_name(id: FileId) -> String {
    format!("{id:016x}.run")
}

/// The number in a run file's name, if it is one.
pub fn file_number(path: &Path) -> Option<FileId> {
    let name = path.file_name()?.to_str()?.strip_suffix(".run")?;
    (name.len() == 16).then(|| FileId::from_str_radix(name, 16).ok()).flatten()
}

/// Finished files and the runs in them. Dropping it removes the files, unless [`NewRuns::keep`] was called; the store
/// calls it once the manifest names them.
pub struct NewRuns {
    files: Vec<FileDescriptor>,
    tables: Vec<(TableId, RunDescriptor)>,
    guard: FileGuard,
}

impl NewRuns {
    pub(crate) fn new(files: Vec<FileDescriptor>, tables: Vec<(TableId, RunDescriptor)>, guard: FileGuard) -> NewRuns {
        NewRuns { files, tables, guard }
    }

    /// The files, ascending by id.
    pub fn files(&self) -> &[FileDescriptor] {
        &self.files
    }

    /// One run for each table that had anything written, in the order of `begin_table`.
    pub fn tables(&self) -> &[(TableId, RunDescriptor)] {
        &self.tables
    }

    /// True if nothing was written.
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// The files now belong to the store.
    pub fn keep(mut self) -> (Vec<FileDescriptor>, Vec<(TableId, RunDescriptor)>) {
        self.guard.paths.clear();
        (std::mem::take(&mut self.files), std::mem::take(&mut self.tables))
    }
}

/// Removes files when dropped. Failing to is harmless: the next open removes what the manifest does not name.
pub(crate) struct FileGuard {
    disk: Arc<dyn Disk>,
    paths: Vec<PathBuf>,
}

impl FileGuard {
    pub(crate) fn new(disk: Arc<dyn Disk>) -> FileGuard {
        FileGuard { disk, paths: Vec::new() }
    }

    pub(crate) fn protect(&mut self, path: PathBuf) {
        self.paths.push(path);
    }
}

impl Drop for FileGuard {
    fn drop(&mut self) {
        for path in &self.paths {
            let _ = self.disk.remove(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        assert_eq!(file_number(Path::new("/x").join(file_name(0xabc)).as_path()), Some(0xabc));
        assert_eq!(file_number(Path::new("manifest")), None);
        assert_eq!(file_number(Path::new("12.run")), None);
    }
}
