//! The named backups: which files each of them had, so that a later one can be incremental, also after a restart.
//!
//! One small file in the data directory, replaced as a whole. Losing it costs no data, only that the next backup must be a
//! full one; so damage to it does not keep the engine from opening. `verify` tells of it.

use pando_engine_runs::BackupList;
use pando_env::{Disk, OpenMode};
use pando_storage::{Result, StorageError};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

const NAME: &str = "backups";
const NEW_NAME: &str = "backups.new";
const MAGIC: [u8; 8] = *b"PANDOBKP";

/// What each named backup had.
pub type NamedBackups = BTreeMap<String, BackupList>;

/// Reads the list of a data directory.
pub fn load(disk: &dyn Disk, directory: &Path) -> Result<NamedBackups> {
    let path = directory.join(NAME);
    let bytes = match disk.read_all(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(NamedBackups::new()),
        Err(error) => return Err(failed(&path, error)),
    };
    decode(&bytes).ok_or_else(|| StorageError::Corruption {
        file: path.display().to_string(),
        offset: 0,
        detail: "the list of named backups fails its checksum".into(),
    })
}

/// Reads the list; a damaged one counts as empty.
pub fn load_or_forget(disk: &dyn Disk, directory: &Path) -> Result<NamedBackups> {
    match load(disk, directory) {
        Err(StorageError::Corruption { .. }) => Ok(NamedBackups::new()),
        loaded => loaded,
    }
}

/// Replaces the list, durably.
pub fn store(disk: &dyn Disk, directory: &Path, backups: &NamedBackups) -> Result<()> {
    let (new, path) = (directory.join(NEW_NAME), directory.join(NAME));
    match disk.remove(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(&new, error)),
        _ => {}
    }
    let file = disk.open(&new, OpenMode::CreateNew).map_err(|error| failed(&new, error))?;
    file.write_at(&encode(backups), 0).and_then(|()| file.sync()).map_err(|error| failed(&new, error))?;
    let replaced = disk.rename(&new, &path).and_then(|()| disk.sync_directory(directory));
    replaced.map_err(|error| failed(&path, error))
}

fn failed(path: &Path, error: io::Error) -> StorageError {
    StorageError::Io(format!("{}: {error}", path.display()))
}

fn encode(backups: &NamedBackups) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    let number = |number: u64| number.to_le_bytes();
    out.extend(number(backups.len() as u64));
    for (name, list) in backups {
        out.extend(number(name.len() as u64));
        out.extend(name.as_bytes());
        out.extend(number(list.identity));
        out.extend(number(list.files.len() as u64));
        list.files.iter().for_each(|file| out.extend(number(*file)));
    }
    let checksum = xxh3_64(&out);
    out.extend(checksum.to_le_bytes());
    out
}

fn decode(bytes: &[u8]) -> Option<NamedBackups> {
    let (body, checksum) = bytes.split_last_chunk::<8>()?;
    if xxh3_64(body) != u64::from_le_bytes(*checksum) {
        return None;
    }
    let mut rest = body.strip_prefix(&MAGIC)?;
    let mut backups = NamedBackups::new();
    for _ in 0..number(&mut rest)? {
        let length = usize::try_from(number(&mut rest)?).ok()?;
        let (name, after) = rest.split_at_checked(length)?;
        rest = after;
        let identity = number(&mut rest)?;
        let mut files = BTreeSet::new();
        for _ in 0..number(&mut rest)? {
            files.insert(number(&mut rest)?);
        }
        backups.insert(String::from_utf8(name.to_vec()).ok()?, BackupList { identity, files });
    }
    rest.is_empty().then_some(backups)
}

fn number(rest: &mut &[u8]) -> Option<u64> {
    let (number, after) = rest.split_first_chunk::<8>()?;
    *rest = after;
    Some(u64::from_le_bytes(*number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_env::simulated::Simulation;

    fn backups() -> NamedBackups {
        let list = |identity, files: &[u64]| BackupList { identity, files: files.iter().copied().collect() };
        NamedBackups::from([("monday".into(), list(7, &[1, 2, 9])), (String::new(), list(0, &[]))])
    }

    #[test]
    fn x19_the_list_is_replaced_as_a_whole() {
        let env = Simulation::new(3).env();
        let directory = Path::new("/data");
        env.disk().create_directory(directory).unwrap();
        let disk = &**env.disk();
        assert_eq!(load(disk, directory).unwrap(), NamedBackups::new());
        for round in [NamedBackups::new(), backups(), backups()] {
            store(disk, directory, &round).unwrap();
            assert_eq!(load(disk, directory).unwrap(), round);
        }
    }

    #[test]
    fn x26_a_flipped_bit_of_the_list_is_noticed() {
        let bytes = encode(&backups());
        assert_eq!(decode(&bytes), Some(backups()));
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            assert_eq!(decode(&damaged), None, "byte {at}");
            assert_eq!(decode(&bytes[..at]), None, "cut at {at}");
        }
    }
}
