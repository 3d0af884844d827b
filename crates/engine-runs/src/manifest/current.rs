//! `CURRENT`: the one small file that names the manifest in force.
//!
//! It is replaced by writing `CURRENT.new`, syncing it, renaming it over the old one and syncing the directory; so it is
//! always whole. A store exists if and only if `CURRENT` does: creating one writes it last.

use super::frame::seed;
use crate::RunsError;
use pando_env::{Disk, OpenMode};
use std::io;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The file's name.
pub(crate) const NAME: &str = "CURRENT";
/// The name it is prepared under.
pub(crate) const NEW_NAME: &str = "CURRENT.new";
const MAGIC: [u8; 8] = *b"PANDOCUR";

/// The bytes that name manifest `number`.
pub(crate) fn image(number: u64) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&number.to_le_bytes());
    let checksum = xxh3_64_with_seed(&bytes, seed(0, 0));
    bytes.extend_from_slice(&checksum.to_le_bytes());
    bytes
}

/// The number of the manifest in force; `None` if the directory has no store.
pub(crate) fn read(disk: &dyn Disk, directory: &Path) -> Result<Option<u64>, RunsError> {
    let path = directory.join(NAME);
    let bytes = match disk.read_all(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(RunsError::io(&path, "read", error)),
    };
    let number = bytes.get(8..16).and_then(|field| field.first_chunk()).map(|field| u64::from_le_bytes(*field));
    match number {
        Some(number) if bytes == image(number) => Ok(Some(number)),
        _ => Err(RunsError::corruption(&path, 0, "the pointer to the manifest fails its checksum")),
    }
}

/// Makes manifest `number`, which must be durable, the one in force. An error of a sync stops the store: then either may be.
pub(crate) fn replace(disk: &dyn Disk, directory: &Path, number: u64) -> Result<(), RunsError> {
    let new = directory.join(NEW_NAME);
    let path = directory.join(NAME);
    prepare(disk, &new, number)?;
    // A rename that failed may have happened all the same: nobody knows which manifest counts, as after a failed sync.
    disk.rename(&new, &path).map_err(|error| super::sync_failed(&path, error))?;
    disk.sync_directory(directory).map_err(|error| super::sync_failed(directory, error))
}

fn prepare(disk: &dyn Disk, new: &Path, number: u64) -> Result<(), RunsError> {
    match disk.remove(new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(RunsError::io(new, "remove", error)),
        _ => {}
    }
    let file = disk.open(new, OpenMode::CreateNew).map_err(|error| RunsError::io(new, "create", error))?;
    file.write_at(&image(number), 0).map_err(|error| RunsError::io(new, "write", error))?;
    file.sync().map_err(|error| super::sync_failed(new, error))
}
