//! The traits on top of the disk's state: handles that belong to one incarnation.

use super::names::FileId;
use super::state::{Caller, DiskState};
use crate::{Block, DirectoryLock, Disk, File, OpenMode};
use parking_lot::Mutex;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The disk as one incarnation of the program sees it.
pub(super) struct IncarnationDisk {
    pub(super) state: Arc<Mutex<DiskState>>,
    pub(super) incarnation: u64,
}

impl IncarnationDisk {
    fn caller<'a>(&self, path: &'a Path) -> Caller<'a> {
        Caller { incarnation: self.incarnation, path }
    }
}

impl Disk for IncarnationDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let file = self.state.lock().open(&self.caller(path), mode)?;
        let writable = mode != OpenMode::Read;
        let (state, incarnation, path) = (self.state.clone(), self.incarnation, path.to_owned());
        Ok(Arc::new(SimulatedFile { state, incarnation, file, path, writable }))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.state.lock().remove(&self.caller(path))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.state.lock().rename(&self.caller(from), to)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        self.state.lock().list(&self.caller(directory))
    }

    fn create_directory(&self, directory: &Path) -> io::Result<()> {
        self.state.lock().create_directory(&self.caller(directory))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.state.lock().exists(&self.caller(path))
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        self.state.lock().sync_directory(&self.caller(directory))
    }

    fn free_bytes(&self, directory: &Path) -> io::Result<u64> {
        self.state.lock().free_bytes(&self.caller(directory))
    }

    fn total_bytes(&self, directory: &Path) -> io::Result<u64> {
        self.state.lock().total_bytes(&self.caller(directory))
    }

    /// Nobody else is there.
    fn permissions(&self, path: &Path) -> io::Result<u32> {
        match self.exists(path)? {
            true => Ok(0o600),
            false => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn lock_directory(&self, directory: &Path) -> io::Result<Box<dyn DirectoryLock>> {
        self.state.lock().lock_directory(&self.caller(directory))?;
        let (state, incarnation, directory) = (self.state.clone(), self.incarnation, directory.to_owned());
        Ok(Box::new(SimulatedLock { state, incarnation, directory }))
    }
}

struct SimulatedLock {
    state: Arc<Mutex<DiskState>>,
    incarnation: u64,
    directory: PathBuf,
}

impl DirectoryLock for SimulatedLock {}

impl Drop for SimulatedLock {
    fn drop(&mut self) {
        let caller = Caller { incarnation: self.incarnation, path: &self.directory };
        self.state.lock().unlock_directory(&caller);
    }
}

struct SimulatedFile {
    state: Arc<Mutex<DiskState>>,
    incarnation: u64,
    file: FileId,
    /// The name under which it was opened; faults and statistics go by it.
    path: PathBuf,
    writable: bool,
}

impl SimulatedFile {
    fn caller(&self) -> Caller<'_> {
        Caller { incarnation: self.incarnation, path: &self.path }
    }

    fn check_writable(&self) -> io::Result<()> {
        if self.writable { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) }
    }
}

impl File for SimulatedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.state.lock().read(&self.caller(), self.file, buffer, offset)
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> io::Result<()> {
        self.check_writable()?;
        self.state.lock().write(&self.caller(), self.file, buffer, offset)
    }

    fn write_blocks(&self, blocks: &[Block], offset: u64, durably: bool) -> io::Result<()> {
        self.check_writable()?;
        let bytes: Vec<u8> = blocks.iter().flat_map(|block| block.0).collect();
        self.state.lock().write_blocks(&self.caller(), self.file, &bytes, offset)?;
        if durably { self.sync() } else { Ok(()) }
    }

    fn sync(&self) -> io::Result<()> {
        self.state.lock().sync(&self.caller(), self.file)
    }

    fn length(&self) -> io::Result<u64> {
        self.state.lock().length(&self.caller(), self.file)
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.check_writable()?;
        self.state.lock().set_length(&self.caller(), self.file, length)
    }

    fn allocate(&self, offset: u64, length: u64) -> io::Result<()> {
        self.check_writable()?;
        self.state.lock().allocate(&self.caller(), self.file, offset, length)
    }
}

impl Drop for SimulatedFile {
    fn drop(&mut self) {
        self.state.lock().close(self.incarnation, self.file);
    }
}
