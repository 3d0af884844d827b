//! The list that goes with a copy of a store, and putting such a copy in order.
//!
//! Whoever copies the files of a backup keeps their places below the data directory and copies them whole. Two things are then
//! not as the store wants them: some files stand under names of their own, since a file of the right name is in use by the store
//! that lives on; and files that grow have more in them than belongs to the backup, perhaps half a record. The list says for each
//! file where it lies, what it is to be called and how long it is. It is a file of the copy itself; its name begins with the time,
//! so that after an incremental copy, or one that was extended, the last one counts.
//!
//! [`settle_copy`] is run before a store is opened. The last file of the list is the one that makes a directory a store: while
//! that has not got its name, the directory is a copy to be put in order; it gets its name last, so that a crash on the way leaves
//! a copy. In the directory of the store that was copied it has its name from the start, and nothing is done there.

use crate::engine::BackupFile;
use crate::{Result, StorageError};
use pando_env::{Disk, OpenMode};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};

/// Lists lie here, below the data directory.
const DIRECTORY: &str = "backup";
/// How their names end.
const NAME_END: &str = "-copy-list";
/// The first line.
const HEAD: &str = "pando copy list 1";
/// The last line.
const END: &str = "end";

/// A file of a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiedFile {
    /// Where it lies below the directory.
    pub place: String,
    /// Where it belongs.
    pub name: String,
    /// How much of it counts.
    pub length: u64,
}

/// What a copy consists of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopyList {
    /// The files; the last one that has another place than its name makes the directory a store.
    pub files: Vec<CopiedFile>,
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> StorageError + '_ {
    move |error| StorageError::Io(format!("{}: {error}", path.display()))
}

impl CopyList {
    /// Notes files of a backup of the store in this directory; one that is there already is replaced.
    pub fn note(&mut self, directory: &Path, files: &[BackupFile]) -> Result<()> {
        for file in files {
            let place = file.path.strip_prefix(directory).ok().and_then(Path::to_str);
            let outside = || StorageError::IllegalOperation(format!("{} is elsewhere", file.path.display()));
            let copied = CopiedFile {
                place: place.ok_or_else(outside)?.to_owned(),
                name: file.name.clone(),
                length: file.length,
            };
            self.files.retain(|known| known.name != copied.name);
            self.files.push(copied);
        }
        // What is named as it lies comes first, so that the rest keeps its order at the end.
        self.files.sort_by_key(|file| file.place != file.name);
        Ok(())
    }

    /// Writes the list into the data directory; where.
    pub fn write(&self, disk: &dyn Disk, directory: &Path, wall_ms: u64, number: u64) -> Result<PathBuf> {
        let below = directory.join(DIRECTORY);
        disk.create_directory(&below).map_err(io_error(&below))?;
        let path = below.join(format!("{wall_ms:016x}-{number:08x}{NAME_END}"));
        let file = disk.open(&path, OpenMode::CreateNew).map_err(io_error(&path))?;
        let written = file.write_at(self.encode().as_bytes(), 0).and_then(|()| file.sync());
        written.map_err(io_error(&path))?;
        Ok(path)
    }

    /// How long it is as a file.
    pub fn written_length(&self) -> u64 {
        self.encode().len() as u64
    }

    fn encode(&self) -> String {
        let mut text = format!("{HEAD}\n");
        for file in &self.files {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{}\t{}\t{}", file.length, file.place, file.name);
        }
        text.push_str(END);
        text
    }

    fn decode(text: &str) -> Option<CopyList> {
        let mut lines = text.strip_prefix(HEAD)?.strip_prefix('\n')?.strip_suffix(END)?.lines();
        let file = |line: &str| {
            let (length, names) = line.split_once('\t')?;
            let (place, name) = names.split_once('\t')?;
            let is_below =
                |name: &str| !name.starts_with('/') && name.split('/').all(|part| !matches!(part, "" | ".."));
            let is_sound = is_below(place) && is_below(name);
            let length = length.parse().ok()?;
            is_sound.then(|| CopiedFile { place: place.to_owned(), name: name.to_owned(), length })
        };
        Some(CopyList { files: lines.by_ref().map(file).collect::<Option<_>>()? })
    }

    /// The file that makes the directory a store.
    fn last_renamed(&self) -> Option<&CopiedFile> {
        self.files.iter().rev().find(|file| file.place != file.name)
    }
}

/// Puts a copy in order, if the directory is one; true if something was to be done.
pub fn settle_copy(disk: &dyn Disk, directory: &Path) -> Result<bool> {
    let Some(path) = newest_list(disk, directory)? else { return Ok(false) };
    let bytes = disk.read_all(&path).map_err(io_error(&path))?;
    let list = std::str::from_utf8(&bytes).ok().and_then(CopyList::decode).ok_or_else(|| StorageError::Corruption {
        file: path.display().to_string(),
        offset: 0,
        detail: "it is no list of a copy".to_owned(),
    })?;
    let Some(last) = list.last_renamed() else { return Ok(false) };
    let marker = directory.join(&last.name);
    if disk.exists(&marker).map_err(io_error(&marker))? {
        return Ok(false);
    }
    for file in &list.files {
        settle_file(disk, directory, file)?;
    }
    let directories: BTreeSet<PathBuf> =
        list.files.iter().filter_map(|file| directory.join(&file.name).parent().map(Path::to_owned)).collect();
    for below in &directories {
        disk.create_directory(below).map_err(io_error(below))?;
    }
    remove_others(disk, directory, &list)?;
    let sync = |directories: &BTreeSet<PathBuf>| {
        directories.iter().try_for_each(|below| disk.sync_directory(below).map_err(io_error(below)))
    };
    sync(&directories)?;
    let place = directory.join(&last.place);
    disk.rename(&place, &marker).map_err(io_error(&place))?;
    sync(&directories)?;
    Ok(true)
}

fn newest_list(disk: &dyn Disk, directory: &Path) -> Result<Option<PathBuf>> {
    let below = directory.join(DIRECTORY);
    if !disk.exists(&below).map_err(io_error(&below))? {
        return Ok(None);
    }
    let files = disk.list(&below).map_err(io_error(&below))?;
    let is_list = |path: &PathBuf| path.to_str().is_some_and(|name| name.ends_with(NAME_END));
    Ok(files.into_iter().filter(is_list).max())
}

/// Cuts a file to its length.
fn settle_file(disk: &dyn Disk, directory: &Path, file: &CopiedFile) -> Result<()> {
    let (mut place, name) = (directory.join(&file.place), directory.join(&file.name));
    let is_there = disk.exists(&place).map_err(io_error(&place))?;
    if !is_there {
        // An earlier attempt may have named it.
        place = name.clone();
    }
    let incomplete = |what: &str| {
        let text = format!("the copy in {} is not whole: {} {what}", directory.display(), place.display());
        StorageError::BadDirectory(text)
    };
    if !disk.exists(&place).map_err(io_error(&place))? {
        return Err(incomplete("is missing"));
    }
    let opened = disk.open(&place, OpenMode::ReadWrite).map_err(io_error(&place))?;
    let length = opened.length().map_err(io_error(&place))?;
    if length < file.length {
        return Err(incomplete("is too short"));
    }
    if length > file.length {
        opened.set_length(file.length).and_then(|()| opened.sync()).map_err(io_error(&place))?;
    }
    Ok(())
}

/// Gives files their names, all but the last, and removes what an earlier copy has left beside them.
fn remove_others(disk: &dyn Disk, directory: &Path, list: &CopyList) -> Result<()> {
    let last = list.last_renamed();
    for file in list.files.iter().filter(|file| file.place != file.name && Some(*file) != last) {
        let (place, name) = (directory.join(&file.place), directory.join(&file.name));
        if disk.exists(&place).map_err(io_error(&place))? {
            disk.rename(&place, &name).map_err(io_error(&place))?;
        }
    }
    let names: BTreeSet<PathBuf> = list.files.iter().map(|file| directory.join(&file.name)).collect();
    let parents: BTreeSet<&Path> = names.iter().filter_map(|name| name.parent()).collect();
    for parent in parents.into_iter().filter(|parent| *parent != directory) {
        for path in disk.list(parent).map_err(io_error(parent))? {
            if !names.contains(&path) {
                disk.remove(&path).map_err(io_error(&path))?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_env::Env;
    use pando_env::simulated::Simulation;

    const COPY: &str = "/copy";

    fn put(env: &Env, name: &str, bytes: &[u8]) {
        let path = Path::new(COPY).join(name);
        env.disk().create_directory(path.parent().unwrap()).unwrap();
        if env.disk().exists(&path).unwrap() {
            env.disk().remove(&path).unwrap();
        }
        env.disk().open(&path, OpenMode::CreateNew).unwrap().write_at(bytes, 0).unwrap();
    }

    fn read(env: &Env, name: &str) -> Option<Vec<u8>> {
        env.disk().read_all(&Path::new(COPY).join(name)).ok()
    }

    fn file(place: &str, name: &str, length: u64) -> BackupFile {
        let path = Path::new("/store").join(place);
        BackupFile { path, name: name.to_owned(), length, unchanged: false }
    }

    /// The list of a store elsewhere, copied.
    fn copy_list(env: &Env, files: &[BackupFile], number: u64) -> CopyList {
        let mut list = CopyList::default();
        list.note(Path::new("/store"), files).unwrap();
        list.write(&**env.disk(), Path::new(COPY), 5, number).unwrap();
        list
    }

    fn files() -> Vec<BackupFile> {
        let renamed = [file("backup/1-manifest", "base/manifest", 3), file("backup/1-current", "base/current", 2)];
        renamed.into_iter().chain([file("log/1", "log/1", 4)]).collect()
    }

    fn copied(env: &Env) {
        put(env, "backup/1-manifest", b"man");
        put(env, "backup/1-current", b"cu");
        put(env, "log/1", b"1234 and half a record");
    }

    #[test]
    fn x19_a_copy_is_put_in_order_once() {
        let env = Simulation::new(1).env();
        copied(&env);
        put(&env, "log/0", b"of an earlier copy");
        copy_list(&env, &[file("log/gone", "log/gone", 1)], 1);
        copy_list(&env, &files(), 2);
        assert_eq!(settle_copy(&**env.disk(), Path::new(COPY)), Ok(true));
        assert_eq!(read(&env, "base/current").as_deref(), Some(&b"cu"[..]));
        assert_eq!(read(&env, "base/manifest").as_deref(), Some(&b"man"[..]));
        assert_eq!(read(&env, "log/1").as_deref(), Some(&b"1234"[..]));
        assert_eq!(read(&env, "log/0"), None);
        put(&env, "log/1", b"grown since");
        assert_eq!(settle_copy(&**env.disk(), Path::new(COPY)), Ok(false));
        assert_eq!(read(&env, "log/1").as_deref(), Some(&b"grown since"[..]));
    }

    #[test]
    fn x19_a_copy_that_is_not_whole_is_refused() {
        for (missing, how) in [("log/1", "is missing"), ("backup/1-current", "is missing")] {
            let env = Simulation::new(2).env();
            copied(&env);
            copy_list(&env, &files(), 1);
            env.disk().remove(&Path::new(COPY).join(missing)).unwrap();
            let refused = settle_copy(&**env.disk(), Path::new(COPY)).unwrap_err().to_string();
            assert!(refused.contains(how) && refused.contains("not whole"), "{refused}");
            copied(&env);
            assert_eq!(settle_copy(&**env.disk(), Path::new(COPY)), Ok(true), "{missing}");
        }
        let env = Simulation::new(3).env();
        copied(&env);
        put(&env, "log/1", b"123");
        copy_list(&env, &files(), 1);
        assert!(settle_copy(&**env.disk(), Path::new(COPY)).unwrap_err().to_string().contains("is too short"));
    }

    #[test]
    fn x26_a_list_is_read_as_it_was_written_or_not_at_all() {
        let env = Simulation::new(4).env();
        let list = copy_list(&env, &files(), 1);
        let text = list.encode();
        assert_eq!(CopyList::decode(&text), Some(list));
        for length in 0..text.len() {
            assert_eq!(CopyList::decode(&text[..length]), None, "cut at {length}");
        }
        for bad in ["1\t../a\tb", "1\ta\t/b", "1\ta\tb/../c", "x\ta\tb", "1\ta"] {
            assert_eq!(CopyList::decode(&format!("{HEAD}\n{bad}\n{END}")), None, "{bad}");
        }
        assert_eq!(settle_copy(&**env.disk(), Path::new("/empty")), Ok(false));
    }
}
