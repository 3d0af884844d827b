//! One contract for both disks: whatever the engine may rely on holds on the real one and on the simulated one.
#![allow(clippy::disallowed_methods, clippy::unwrap_used)]

use pando_env::simulated::Simulation;
use pando_env::{BLOCK_BYTES, Block, Disk, Env, LOCK_FILE_NAME, OpenMode};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A directory of the real disk that goes away with the test.
struct Scratch {
    directory: PathBuf,
}

impl Scratch {
    fn new(name: &str) -> Scratch {
        let number = Env::real().random().next_u64();
        Scratch { directory: std::env::temp_dir().join(format!("pando-env-{name}-{number:016x}")) }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// Runs a part of the contract on both disks, in a directory that is there and empty.
fn on_both(name: &str, check: impl Fn(&dyn Disk, &Path)) {
    let scratch = Scratch::new(name);
    for (env, directory) in
        [(Env::real(), scratch.directory.clone()), (Simulation::new(1).env(), PathBuf::from("/data/db"))]
    {
        env.disk().create_directory(&directory).unwrap();
        check(&**env.disk(), &directory);
    }
}

fn kind_of<T>(result: std::io::Result<T>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind())
}

#[test]
fn files_are_opened_by_mode() {
    on_both("modes", |disk, directory| {
        let path = directory.join("a");
        assert_eq!(kind_of(disk.open(&path, OpenMode::Read)), Some(ErrorKind::NotFound));
        assert_eq!(kind_of(disk.open(&path, OpenMode::ReadWrite)), Some(ErrorKind::NotFound));
        let made = disk.open(&path, OpenMode::CreateNew).unwrap();
        made.write_at(b"hello", 0).unwrap();
        assert_eq!(kind_of(disk.open(&path, OpenMode::CreateNew)), Some(ErrorKind::AlreadyExists));
        let read_only = disk.open(&path, OpenMode::Read).unwrap();
        assert!(read_only.write_at(b"x", 0).is_err() && read_only.set_length(0).is_err());
        assert!(read_only.write_blocks(&[Block::ZEROS], 0, true).is_err());
        assert!(read_only.sync().is_ok());
        let both = disk.open(&path, OpenMode::ReadWrite).unwrap();
        both.write_at(b"J", 0).unwrap();
        assert_eq!(disk.read_all(&path).unwrap(), b"Jello");
        let nowhere = directory.join("missing").join("a");
        assert_eq!(kind_of(disk.open(&nowhere, OpenMode::CreateNew)), Some(ErrorKind::NotFound));
        assert_eq!(kind_of(disk.open(directory, OpenMode::Read)), Some(ErrorKind::IsADirectory));
        assert_eq!(kind_of(disk.open(directory, OpenMode::ReadWrite)), Some(ErrorKind::IsADirectory));
    });
}

#[test]
fn reads_and_writes_are_positioned() {
    on_both("positions", |disk, directory| {
        let file = disk.open(&directory.join("a"), OpenMode::CreateNew).unwrap();
        assert_eq!(file.read_at(&mut [0; 4], 0).unwrap(), 0);
        file.write_at(&[7; 100], 9_000).unwrap();
        assert_eq!(file.length().unwrap(), 9_100);
        let mut bytes = vec![1; 200];
        assert_eq!(file.read_at(&mut bytes, 8_950).unwrap(), 150);
        assert!(bytes[..50] == [0; 50] && bytes[50..150] == [7; 100] && bytes[150..] == [1; 50]);
        assert_eq!(file.read_at(&mut bytes, 9_100).unwrap(), 0);
        assert_eq!(kind_of(file.read_exact_at(&mut bytes, 9_000)), Some(ErrorKind::UnexpectedEof));
        file.write_at(&[], 20_000).unwrap();
        assert_eq!(file.length().unwrap(), 9_100);
        file.prefetch(0, 0);
        file.prefetch(100, 1 << 20);
        file.sync().unwrap();
    });
}

#[test]
fn lengths_are_cut_and_extended_with_zeros() {
    on_both("lengths", |disk, directory| {
        let path = directory.join("a");
        let file = disk.open(&path, OpenMode::CreateNew).unwrap();
        file.write_at(&[7; 5_000], 0).unwrap();
        file.set_length(100).unwrap();
        file.set_length(6_000).unwrap();
        let bytes = disk.read_all(&path).unwrap();
        assert!(bytes.len() == 6_000 && bytes[..100] == [7; 100] && bytes[100..].iter().all(|byte| *byte == 0));
    });
}

#[test]
fn allocation_keeps_what_is_there_and_extends() {
    on_both("allocation", |disk, directory| {
        let path = directory.join("a");
        let file = disk.open(&path, OpenMode::CreateNew).unwrap();
        file.write_at(&[7; 100], 0).unwrap();
        file.allocate(0, 50).unwrap();
        assert_eq!(file.length().unwrap(), 100);
        file.allocate(50, 10_000).unwrap();
        file.allocate(0, 0).unwrap();
        let bytes = disk.read_all(&path).unwrap();
        assert!(bytes.len() == 10_050 && bytes[..100] == [7; 100] && bytes[100..].iter().all(|byte| *byte == 0));
    });
}

#[test]
fn names_change_at_once_and_open_files_stay() {
    on_both("names", |disk, directory| {
        let (first, second) = (directory.join("first"), directory.join("second"));
        let file = disk.open(&first, OpenMode::CreateNew).unwrap();
        file.write_at(b"first", 0).unwrap();
        let replaced = disk.open(&second, OpenMode::CreateNew).unwrap();
        replaced.write_at(b"second", 0).unwrap();
        disk.rename(&first, &second).unwrap();
        assert!(!disk.exists(&first).unwrap() && disk.exists(&second).unwrap());
        assert_eq!(disk.read_all(&second).unwrap(), b"first");
        let mut bytes = [0; 6];
        replaced.read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!(&bytes, b"second");
        assert_eq!(kind_of(disk.rename(&first, &second)), Some(ErrorKind::NotFound));
        disk.rename(&second, &second).unwrap();
        disk.remove(&second).unwrap();
        assert_eq!(kind_of(disk.remove(&second)), Some(ErrorKind::NotFound));
        file.write_at(b"still", 0).unwrap();
        file.read_exact_at(&mut bytes[..5], 0).unwrap();
        file.sync().unwrap();
        assert_eq!(&bytes[..5], b"still");
        disk.sync_directory(directory).unwrap();
    });
}

#[test]
fn directories_are_listed_sorted_without_subdirectories() {
    on_both("listing", |disk, directory| {
        assert_eq!(disk.list(directory).unwrap(), Vec::<PathBuf>::new());
        disk.create_directory(&directory.join("below").join("deeper")).unwrap();
        disk.create_directory(&directory.join("below")).unwrap();
        for name in ["b", "a", "c", "below/x", "below.1", "10", "9"] {
            disk.open(&directory.join(name), OpenMode::CreateNew).unwrap();
        }
        let expected: Vec<PathBuf> = ["10", "9", "a", "b", "below.1", "c"].map(|name| directory.join(name)).into();
        assert_eq!(disk.list(directory).unwrap(), expected);
        assert_eq!(disk.list(&directory.join("below")).unwrap(), [directory.join("below").join("x")]);
        assert_eq!(kind_of(disk.list(&directory.join("missing"))), Some(ErrorKind::NotFound));
        assert_eq!(kind_of(disk.sync_directory(&directory.join("missing"))), Some(ErrorKind::NotFound));
        assert!(disk.exists(&directory.join("below")).unwrap() && !disk.exists(&directory.join("missing")).unwrap());
        assert!(disk.free_bytes(directory).unwrap() > 0);
    });
}

#[test]
fn a_directory_has_one_lock() {
    on_both("lock", |disk, directory| {
        let lock = disk.lock_directory(directory).unwrap();
        assert_eq!(kind_of(disk.lock_directory(directory)), Some(ErrorKind::WouldBlock));
        assert_eq!(disk.list(directory).unwrap(), [directory.join(LOCK_FILE_NAME)]);
        drop(lock);
        let again = disk.lock_directory(directory).unwrap();
        drop(again);
        assert_eq!(kind_of(disk.lock_directory(&directory.join("missing"))), Some(ErrorKind::NotFound));
    });
}

#[test]
fn directories_are_not_made_inside_files() {
    on_both("nested", |disk, directory| {
        let path = directory.join("file");
        disk.open(&path, OpenMode::CreateNew).unwrap();
        assert!(disk.create_directory(&path).is_err());
        assert_eq!(kind_of(disk.create_directory(&path.join("below"))), Some(ErrorKind::NotADirectory));
        disk.create_directory(directory).unwrap();
    });
}

#[test]
fn relative_directories_can_be_made() {
    // The one that is sure to be there: a test must not leave anything where it happens to be run.
    Env::real().disk().create_directory(Path::new(".")).unwrap();
}

#[test]
fn blocks_and_bytes_are_written_to_one_file() {
    on_both("blocks", |disk, directory| {
        let file = disk.open(&directory.join("a"), OpenMode::CreateNew).unwrap();
        let block = |byte: u8| Block([byte; BLOCK_BYTES]);
        file.write_at(&[1; 3 * BLOCK_BYTES], 0).unwrap();
        file.write_blocks(&[block(2), block(3)], BLOCK_BYTES as u64, true).unwrap();
        file.write_at(&[4; 10], 2 * BLOCK_BYTES as u64 - 5).unwrap();
        file.write_blocks(&[block(5)], 3 * BLOCK_BYTES as u64, false).unwrap();
        file.write_blocks(&[], 0, true).unwrap();
        let mut read = vec![0; 4 * BLOCK_BYTES];
        file.read_exact_at(&mut read, 0).unwrap();
        let mut expected = [[1; BLOCK_BYTES], [2; BLOCK_BYTES], [3; BLOCK_BYTES], [5; BLOCK_BYTES]].concat();
        expected[2 * BLOCK_BYTES - 5..2 * BLOCK_BYTES + 5].fill(4);
        assert!(read == expected);
        assert_eq!(file.length().unwrap(), 4 * BLOCK_BYTES as u64);
    });
}
