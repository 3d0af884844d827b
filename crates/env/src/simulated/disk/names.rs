//! The names of files: which exist, which would survive, and the changes in between.
//!
//! As with content there is what readers see (`current`), what survives for sure (`durable`) and, in order, what was changed
//! since (`pending`). `sync_directory` makes every change durable that touches the directory. A power loss keeps either the
//! first so many pending changes, or any of them each for itself; but a change is never kept without the earlier ones about
//! the same names or the same file, so a rename is always atomic and a file never has two names. A file's own sync does not
//! make its name durable. Directories are made durably and are never removed.

use crate::simulated::random::Sequence;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A file, whatever its name is.
pub(super) type FileId = u64;

#[derive(Clone)]
enum Change {
    Create { path: PathBuf, file: FileId },
    Remove { path: PathBuf, file: FileId },
    Rename { from: PathBuf, to: PathBuf, file: FileId },
}

impl Change {
    fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        let (first, second) = match self {
            Change::Create { path, .. } | Change::Remove { path, .. } => (path, None),
            Change::Rename { from, to, .. } => (from, Some(to)),
        };
        std::iter::once(first).chain(second)
    }

    fn file(&self) -> FileId {
        match self {
            Change::Create { file, .. } | Change::Remove { file, .. } | Change::Rename { file, .. } => *file,
        }
    }

    fn apply(&self, names: &mut BTreeMap<PathBuf, FileId>) {
        match self {
            Change::Create { path, file } => _ = names.insert(path.clone(), *file),
            Change::Remove { path, .. } => _ = names.remove(path),
            Change::Rename { from, to, file } => {
                names.remove(from);
                names.insert(to.clone(), *file);
            }
        }
    }
}

#[derive(Clone)]
pub(super) struct Names {
    current: BTreeMap<PathBuf, FileId>,
    durable: BTreeMap<PathBuf, FileId>,
    pending: Vec<Change>,
    directories: BTreeSet<PathBuf>,
}

impl Names {
    pub(super) fn new() -> Names {
        let directories = [PathBuf::from("/"), PathBuf::new()].into();
        Names { current: BTreeMap::new(), durable: BTreeMap::new(), pending: Vec::new(), directories }
    }

    pub(super) fn find(&self, path: &Path) -> Option<FileId> {
        self.current.get(path).copied()
    }

    pub(super) fn find_durable(&self, path: &Path) -> Option<FileId> {
        self.durable.get(path).copied()
    }

    pub(super) fn is_directory(&self, path: &Path) -> bool {
        self.directories.contains(path)
    }

    pub(super) fn create_directory(&mut self, directory: &Path) {
        self.directories.extend(directory.ancestors().map(Path::to_owned));
    }

    /// All files by name, in order.
    pub(super) fn files(&self) -> impl Iterator<Item = (&PathBuf, FileId)> {
        self.current.iter().map(|(path, file)| (path, *file))
    }

    /// The files right in a directory, in order. What lies in directories below it comes after it in the order of paths, but
    /// mixed with its own files.
    pub(super) fn list(&self, directory: &Path) -> Vec<PathBuf> {
        let below = self.current.range(directory.to_owned()..).take_while(|(path, _)| path.starts_with(directory));
        below.filter(|(path, _)| path.parent() == Some(directory)).map(|(path, _)| path.clone()).collect()
    }

    pub(super) fn create(&mut self, path: &Path, file: FileId) {
        self.change(Change::Create { path: path.to_owned(), file });
    }

    pub(super) fn remove(&mut self, path: &Path, file: FileId) {
        self.change(Change::Remove { path: path.to_owned(), file });
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path, file: FileId) {
        self.change(Change::Rename { from: from.to_owned(), to: to.to_owned(), file });
    }

    /// A name that is durable from the start.
    pub(super) fn plant(&mut self, path: &Path, file: FileId) {
        self.current.insert(path.to_owned(), file);
        self.durable.insert(path.to_owned(), file);
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.current);
        self.pending.push(change);
    }

    pub(super) fn sync_directory(&mut self, directory: &Path) {
        if self.pending.is_empty() {
            return;
        }
        let touched: Vec<bool> =
            self.pending.iter().map(|change| change.paths().any(|path| path.parent() == Some(directory))).collect();
        let mut kept = self.with_what_they_need(touched).into_iter();
        let durable = &mut self.durable;
        self.pending.retain(|change| {
            let is_kept = kept.next().unwrap_or(false);
            if is_kept {
                change.apply(durable);
            }
            !is_kept
        });
    }

    /// Power loss, with the probability that a change which was not synced survives.
    pub(super) fn crash(&mut self, kept: f64, random: &mut Sequence) {
        let count = self.pending.len();
        let in_order = random.chance(0.5);
        let first_lost = if random.chance(kept) { count } else { random.below(count as u64 + 1) as usize };
        let survives = match (kept == 0.0, in_order) {
            (true, _) => vec![false; count],
            (_, true) => (0..count).map(|position| position < first_lost).collect(),
            (_, false) => (0..count).map(|_| random.chance(kept)).collect(),
        };
        let survives = self.with_what_they_need(survives);
        for (change, _) in self.pending.drain(..).zip(survives).filter(|(_, survives)| *survives) {
            change.apply(&mut self.durable);
        }
        self.current = self.durable.clone();
    }

    /// Files that some name, now or after a power loss, may lead to.
    pub(super) fn reachable(&self) -> BTreeSet<FileId> {
        let named = self.current.values().chain(self.durable.values()).copied();
        named.chain(self.pending.iter().map(Change::file)).collect()
    }

    /// Adds to the chosen pending changes all earlier ones about the same names or the same file.
    fn with_what_they_need(&self, mut chosen: Vec<bool>) -> Vec<bool> {
        let (mut paths, mut files) = (BTreeSet::new(), BTreeSet::new());
        for (change, chosen) in self.pending.iter().zip(&mut chosen).rev() {
            *chosen = *chosen || files.contains(&change.file()) || change.paths().any(|path| paths.contains(path));
            if *chosen {
                paths.extend(change.paths());
                files.insert(change.file());
            }
        }
        chosen
    }
}
