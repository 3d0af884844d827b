//! Files, as a trait.
//!
//! The contract is that of a POSIX file system without its conveniences: bytes written are readable at once but durable
//! only after `sync`; a created, renamed or removed name is durable only after `sync_directory`. Every call may fail.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file whose lock is a data directory's lock. It is made by `lock_directory`, listed like any other, and never removed.
pub const LOCK_FILE_NAME: &str = "pando.lock";

/// What is written past the system's cache is written in pieces of this size, at places that are multiples of it.
pub const BLOCK_BYTES: usize = 4096;

/// A piece of a file, where in memory a disk can fetch it.
#[derive(Clone)]
#[repr(C, align(4096))]
pub struct Block(pub [u8; BLOCK_BYTES]);

impl Block {
    /// Nothing but zeros.
    pub const ZEROS: Block = Block([0; BLOCK_BYTES]);
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// An existing file, for reading.
    Read,
    /// An existing file, for reading and writing.
    ReadWrite,
    /// A file that must not exist yet, for reading and writing.
    CreateNew,
}

/// A file system.
pub trait Disk: Send + Sync {
    /// Opens or creates a file.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>>;
    /// Removes a file. Open handles stay readable.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Renames a file over whatever has the new name, atomically.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Full paths of the files (not directories) in a directory, sorted.
    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>>;
    /// Creates a directory and its parents, durably; fine if it is there.
    fn create_directory(&self, directory: &Path) -> io::Result<()>;
    /// True if a file or directory has this name.
    fn exists(&self, path: &Path) -> io::Result<bool>;
    /// Makes the names in a directory durable.
    fn sync_directory(&self, directory: &Path) -> io::Result<()>;
    /// Bytes that can still be written where this directory lies.
    fn free_bytes(&self, directory: &Path) -> io::Result<u64>;
    /// Bytes, free or not, of the file system where this directory lies.
    fn total_bytes(&self, directory: &Path) -> io::Result<u64>;
    /// Who may do what with a file, as the bits of its mode (`0o600`: its owner may read and write it).
    fn permissions(&self, path: &Path) -> io::Result<u32>;
    /// Takes the exclusive lock of a data directory; fails at once (`WouldBlock`) if another process or handle has it.
    fn lock_directory(&self, directory: &Path) -> io::Result<Box<dyn DirectoryLock>>;

    /// Reads a whole small file.
    fn read_all(&self, path: &Path) -> io::Result<Vec<u8>> {
        let file = self.open(path, OpenMode::Read)?;
        let mut bytes = vec![0; usize::try_from(file.length()?).map_err(|_| io::ErrorKind::FileTooLarge)?];
        file.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    }
}

/// An open file. All calls are positioned; there is no cursor.
pub trait File: Send + Sync {
    /// Reads up to the buffer's length; zero at the end of the file.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Reads from a place on as far as that takes no wait for the disk; how much that was, possibly nothing. Failures are told by `read_at`.
    fn read_cached_at(&self, _buffer: &mut [u8], _offset: u64) -> usize {
        0
    }
    /// Writes the whole buffer, extending the file if needed.
    fn write_at(&self, buffer: &[u8], offset: u64) -> io::Result<()>;
    /// Writes blocks at a multiple of their size, past the system's cache where that can be, and makes them durable, with the blocks that were
    /// written before, if that is asked for. (What was written otherwise needs `sync`.) Afterwards everybody reads what was written.
    fn write_blocks(&self, blocks: &[Block], offset: u64, durably: bool) -> io::Result<()>;
    /// Makes content and length durable. After an error, nothing is known of what was written since the last success.
    fn sync(&self) -> io::Result<()>;
    /// The length in bytes.
    fn length(&self) -> io::Result<u64>;
    /// Cuts or extends (with zeros) the file.
    fn set_length(&self, length: u64) -> io::Result<()>;
    /// Reserves space for the range so that later writes into it cannot fail for want of space; extends the length. Reads
    /// of reserved, unwritten bytes give zeros.
    fn allocate(&self, offset: u64, length: u64) -> io::Result<()>;
    /// Asks for the range to be read ahead. Only a hint.
    fn prefetch(&self, _offset: u64, _length: u64) {}
    /// Asks for what was written there to be brought to the disk, so that a later `sync` finds less to do. Only a hint: it
    /// promises nothing, and a failure is told by that `sync`.
    fn write_back(&self, _offset: u64, _length: u64) {}

    /// Fills the buffer or fails with `UnexpectedEof`.
    fn read_exact_at(&self, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !buffer.is_empty() {
            match self.read_at(buffer, offset)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => {
                    buffer = &mut buffer[read..];
                    offset += read as u64;
                }
            }
        }
        Ok(())
    }
}

/// Holds a data directory's lock until dropped.
pub trait DirectoryLock: Send + Sync {}
