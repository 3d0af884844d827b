//! The manifest: the durable list of what makes up the store.
//!
//! `CURRENT` names one `MANIFEST-n` ([`current`]); that file ([`file`]) holds checksummed records ([`frame`]), each a list
//! of changes ([`change`]) that take effect together, and their sum is the [`State`]. An edit is one appended and synced
//! record. When the edits outweigh a snapshot, the state is written to a new file and `CURRENT` is moved to it.
//!
//! Invariants: the state in memory is the sum of the synced records, never more; a file is named by a record only after
//! the file and its name are durable (the caller's duty), and is removed only after the record that forgets it is synced.
//! After a failed sync nothing is appended any more: the caller stops the store, and the next open finds the record whole
//! or finds a torn tail. A file whose end is uncertain is never continued; the manifest is rewritten first.
//!
//! Nothing in here locks; the store holds its one manifest under a mutex.

pub(crate) mod change;
pub(crate) mod current;
pub(crate) mod file;
pub(crate) mod frame;
pub(crate) mod record;
pub(crate) mod state;
#[cfg(test)]
mod tests;

use crate::{FileId, Result, RunsError};
use change::Change;
use file::ManifestFile;
use pando_env::Disk;
use state::State;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The manifest of an open store.
pub(crate) struct Manifest {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
    identity: u64,
    state: State,
    file: ManifestFile,
    snapshot_bytes: u64,
    rotate_bytes_min: u64,
}

/// How a manifest was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// There was none; a new store was made.
    pub created: bool,
    /// An unacknowledged record was cut off.
    pub torn: bool,
}

impl Manifest {
    /// Opens the manifest of a directory, or makes one in a directory without any trace of a store.
    pub fn open(
        disk: &Arc<dyn Disk>,
        directory: &Path,
        new_identity: u64,
        rotate_bytes_min: u64,
    ) -> Result<(Manifest, Found)> {
        match current::read(&**disk, directory)? {
            Some(number) => Manifest::open_existing(disk, directory, number, rotate_bytes_min),
            None => {
                refuse_lost_pointer(&**disk, directory)?;
                Manifest::create(disk, directory, new_identity, State::default(), rotate_bytes_min)
            }
        }
    }

    /// Reads the manifest of a directory and changes nothing. The caller must not append to it.
    pub fn open_read_only(disk: &Arc<dyn Disk>, directory: &Path) -> Result<(Manifest, Found)> {
        let Some(number) = current::read(&**disk, directory)? else {
            refuse_lost_pointer(&**disk, directory)?;
            return Err(RunsError::Invalid(format!("there is no store in {}", directory.display())));
        };
        let path = directory.join(file::name(number));
        let bytes = disk.read_all(&path).map_err(|error| missing_or_io(&path, error))?;
        let contents = file::read(&path, number, &bytes)?;
        let manifest = Manifest {
            disk: disk.clone(),
            directory: directory.to_owned(),
            identity: contents.identity,
            state: replay(&path, &contents.records)?,
            file: ManifestFile::open_read_only(&**disk, &path, number, &contents)?,
            snapshot_bytes: contents.snapshot_bytes,
            rotate_bytes_min: u64::MAX,
        };
        Ok((manifest, Found { created: false, torn: contents.torn }))
    }

    /// Makes a manifest that holds this state, as the one in force.
    pub fn create(
        disk: &Arc<dyn Disk>,
        directory: &Path,
        identity: u64,
        state: State,
        rotate_bytes_min: u64,
    ) -> Result<(Manifest, Found)> {
        let number = newest_number(&**disk, directory)? + 1;
        let file = ManifestFile::create(&**disk, directory, number, identity, &state.snapshot())?;
        sync_directory(&**disk, directory)?;
        current::replace(&**disk, directory, number)?;
        let manifest = Manifest {
            disk: disk.clone(),
            directory: directory.to_owned(),
            identity,
            state,
            snapshot_bytes: file.length(),
            file,
            rotate_bytes_min,
        };
        Ok((manifest, Found { created: true, torn: false }))
    }

    fn open_existing(
        disk: &Arc<dyn Disk>,
        directory: &Path,
        number: u64,
        rotate_bytes_min: u64,
    ) -> Result<(Manifest, Found)> {
        let path = directory.join(file::name(number));
        let bytes = disk.read_all(&path).map_err(|error| missing_or_io(&path, error))?;
        let contents = file::read(&path, number, &bytes)?;
        let state = replay(&path, &contents.records)?;
        let found = Found { created: false, torn: contents.torn };
        let identity = contents.identity;
        if contents.is_uncertain() {
            let (manifest, _) = Manifest::create(disk, directory, identity, state, rotate_bytes_min)?;
            manifest.remove_file(&path)?;
            return Ok((manifest, found));
        }
        let file = ManifestFile::open(&**disk, &path, number, &contents)?;
        let directory = directory.to_owned();
        let snapshot_bytes = contents.snapshot_bytes;
        let manifest =
            Manifest { disk: disk.clone(), directory, identity, state, file, snapshot_bytes, rotate_bytes_min };
        Ok((manifest, found))
    }

    /// What the records add up to.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The store's identity: the same in all its backups, different in every other store.
    pub fn identity(&self) -> u64 {
        self.identity
    }

    /// The number of the file in force.
    pub fn number(&self) -> u64 {
        self.file.number()
    }

    /// The path of the file in force.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Bytes of the file in force.
    pub fn length_bytes(&self) -> u64 {
        self.file.length()
    }

    /// Makes the changes durable, all or none of them, then part of the state. Returns the files that nobody needs any
    /// more. The caller has checked that the changes make sense.
    pub fn append(&mut self, changes: &[Change]) -> Result<Vec<FileId>> {
        let mut payload = Vec::new();
        changes.iter().for_each(|change| change.encode(&mut payload));
        if payload.len() > frame::PAYLOAD_BYTES_MAX {
            return Err(RunsError::Invalid("an edit is too large for the manifest".into()));
        }
        self.file.append(&payload)?;
        for change in changes {
            if let Err(objection) = self.state.apply(change.clone()) {
                debug_assert!(false, "an unchecked change was appended: {objection}");
                return Err(RunsError::Stopped(format!(
                    "the manifest holds a change that makes no sense: {objection}"
                )));
            }
        }
        Ok(self.state.take_obsolete())
    }

    /// True if the edits outweigh a snapshot.
    pub fn wants_rotation(&self) -> bool {
        self.file.length() > self.snapshot_bytes.saturating_mul(2).saturating_add(self.rotate_bytes_min)
    }

    /// Writes the state to a new file and moves `CURRENT` to it. An error other than a failed sync leaves the old file in
    /// force.
    pub fn rotate(&mut self) -> Result<()> {
        let number = self.file.number() + 1;
        let path = self.directory.join(file::name(number));
        match self.write_next(number) {
            Ok(file) => {
                let old = std::mem::replace(&mut self.file, file);
                self.snapshot_bytes = self.file.length();
                self.remove_file(old.path())
            }
            Err(error) if error.is_failed_sync() => Err(error),
            Err(error) => {
                self.remove_file(&path)?;
                Err(error)
            }
        }
    }

    fn write_next(&self, number: u64) -> Result<ManifestFile> {
        self.remove_file(&self.directory.join(file::name(number)))?;
        let snapshot = self.state.snapshot();
        let file = ManifestFile::create(&*self.disk, &self.directory, number, self.identity, &snapshot)?;
        sync_directory(&*self.disk, &self.directory)?;
        current::replace(&*self.disk, &self.directory, number)?;
        Ok(file)
    }

    /// Makes the known-synced length durable; called when the store is closed.
    pub fn seal(&mut self) -> Result<()> {
        self.file.seal()
    }

    /// The files, by name, that a copy of the store in its present state needs besides the run files.
    pub fn copy(&self) -> Vec<(String, Vec<u8>)> {
        images(self.file.number(), self.identity, &self.state)
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        match self.disk.remove(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(RunsError::io(path, "remove", error)),
            _ => Ok(()),
        }
    }
}

/// The manifest files, by name, of a store in this state.
pub(crate) fn images(number: u64, identity: u64, state: &State) -> Vec<(String, Vec<u8>)> {
    let manifest = file::image(number, identity, &state.snapshot());
    vec![(file::name(number), manifest), (current::NAME.to_owned(), current::image(number))]
}

/// The state after these records.
pub(crate) fn replay(path: &Path, records: &[(u64, Vec<u8>)]) -> Result<State> {
    let mut state = State::default();
    for (offset, payload) in records {
        let changes = Change::decode_all(payload)
            .ok_or_else(|| RunsError::corruption(path, *offset, "a record cannot be understood"))?;
        for change in changes {
            state.apply(change).map_err(|objection| RunsError::corruption(path, *offset, objection))?;
        }
    }
    state.take_obsolete();
    Ok(state)
}

/// An error of a sync, whatever its kind: it must not be taken for a full disk, after which one may go on.
pub(crate) fn sync_failed(path: &Path, source: io::Error) -> RunsError {
    RunsError::Io { path: path.to_owned(), operation: "sync", source: Arc::new(source) }
}

/// Makes the directory's names durable.
pub(crate) fn sync_directory(disk: &dyn Disk, directory: &Path) -> Result<()> {
    disk.sync_directory(directory).map_err(|error| sync_failed(directory, error))
}

/// Without `CURRENT` there may be an empty manifest of a creation that was cut short, but nothing that was worth keeping:
/// a store that lost its pointer must not be taken for an empty directory.
fn refuse_lost_pointer(disk: &dyn Disk, directory: &Path) -> Result<()> {
    for path in disk.list(directory).map_err(|error| RunsError::io(directory, "list", error))? {
        let number = path.file_name().and_then(|name| name.to_str()).and_then(file::number_of);
        let is_empty = number.is_some_and(|number| is_empty_manifest(disk, &path, number));
        if crate::file_number(&path).is_some() || (number.is_some() && !is_empty) {
            return Err(RunsError::corruption(
                &directory.join(current::NAME),
                0,
                "the pointer to the manifest is missing",
            ));
        }
    }
    Ok(())
}

/// True for a manifest that states nothing, or that was never finished.
fn is_empty_manifest(disk: &dyn Disk, path: &Path, number: u64) -> bool {
    let Ok(bytes) = disk.read_all(path) else { return false };
    let records = file::read_what_is_sound(number, &bytes);
    replay(path, &records).is_ok_and(|state| state.tables.is_empty() && state.mark.is_none())
}

/// The highest number of a manifest in the directory; leftovers of a crash count.
fn newest_number(disk: &dyn Disk, directory: &Path) -> Result<u64> {
    let paths = disk.list(directory).map_err(|error| RunsError::io(directory, "list", error))?;
    let numbers = paths.iter().filter_map(|path| file::number_of(path.file_name()?.to_str()?));
    Ok(numbers.max().unwrap_or(0))
}

fn missing_or_io(path: &Path, error: io::Error) -> RunsError {
    match error.kind() {
        io::ErrorKind::NotFound => RunsError::corruption(path, 0, "the manifest that CURRENT names is missing"),
        _ => RunsError::io(path, "read", error),
    }
}
