//! The machine's file system.

use super::cached_read;
use super::past_cache::{self, PastCache};
use crate::{Block, DirectoryLock, Disk, File, OpenMode};
use std::fs::{self, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Files of this machine.
pub struct RealDisk;

impl Disk for RealDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut options = fs::OpenOptions::new();
        options.read(true);
        match mode {
            OpenMode::Read => {}
            OpenMode::ReadWrite => _ = options.write(true),
            OpenMode::CreateNew => _ = options.write(true).create_new(true),
        }
        let file = options.open(path)?;
        // A directory can be opened for reading but not read; better to hear of it here.
        if mode == OpenMode::Read && file.metadata()?.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        Ok(Arc::new(RealFile { file, past_cache: PastCache::of(mode) }))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        let mut paths = Vec::new();
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            if !entry.file_type()?.is_dir() {
                paths.push(entry.path());
            }
        }
        paths.sort_unstable();
        Ok(paths)
    }

    fn create_directory(&self, directory: &Path) -> io::Result<()> {
        let is_missing = |ancestor: &&Path| *ancestor != Path::new("") && !ancestor.exists();
        let missing: Vec<&Path> = directory.ancestors().take_while(is_missing).collect();
        fs::create_dir_all(directory)?;
        for created in missing {
            self.sync_directory(parent_of(created))?;
        }
        Ok(())
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        path.try_exists()
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        fs::File::open(directory)?.sync_all()
    }

    fn free_bytes(&self, directory: &Path) -> io::Result<u64> {
        let volume = rustix::fs::statvfs(directory)?;
        Ok(volume.f_bavail.saturating_mul(volume.f_frsize))
    }

    fn total_bytes(&self, directory: &Path) -> io::Result<u64> {
        let volume = rustix::fs::statvfs(directory)?;
        Ok(volume.f_blocks.saturating_mul(volume.f_frsize))
    }

    fn permissions(&self, path: &Path) -> io::Result<u32> {
        Ok(fs::metadata(path)?.permissions().mode() & 0o7777)
    }

    fn lock_directory(&self, directory: &Path) -> io::Result<Box<dyn DirectoryLock>> {
        let path = directory.join(crate::disk::LOCK_FILE_NAME);
        let file = fs::OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Box::new(RealDirectoryLock { _file: file })),
            Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

/// The directory that holds a name; `.` for a bare relative name.
fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        Some(_) => Path::new("."),
        None => path,
    }
}

/// The kernel drops the lock with the descriptor, also when the process is killed. The lock file itself stays: removing it
/// would let two processes lock two different files of the same name.
struct RealDirectoryLock {
    _file: fs::File,
}

impl DirectoryLock for RealDirectoryLock {}

struct RealFile {
    file: fs::File,
    past_cache: PastCache,
}

impl File for RealFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        loop {
            match self.file.read_at(buffer, offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result,
            }
        }
    }

    fn read_cached_at(&self, buffer: &mut [u8], offset: u64) -> usize {
        cached_read::read(&self.file, buffer, offset)
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(buffer, offset)
    }

    fn write_blocks(&self, blocks: &[Block], offset: u64, durably: bool) -> io::Result<()> {
        let bytes = past_cache::bytes_of(blocks);
        let written = self.past_cache.write(&self.file, bytes, offset, durably)?;
        if written == bytes.len() && written > 0 {
            return Ok(());
        }
        let rest = bytes.get(written..).unwrap_or_default();
        self.write_at(rest, offset.saturating_add(written as u64))?;
        if durably { self.sync() } else { Ok(()) }
    }

    fn sync(&self) -> io::Result<()> {
        // fdatasync: skips the time stamps but not the length, which is needed to read the data back.
        self.file.sync_data()
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.file.set_len(length)
    }

    fn allocate(&self, offset: u64, length: u64) -> io::Result<()> {
        if length == 0 {
            return Ok(());
        }
        let flags = rustix::fs::FallocateFlags::empty();
        match rustix::io::retry_on_intr(|| rustix::fs::fallocate(&self.file, flags, offset, length)) {
            Err(rustix::io::Errno::OPNOTSUPP) => self.allocate_by_writing(offset, length),
            result => Ok(result?),
        }
    }

    fn prefetch(&self, offset: u64, length: u64) {
        // To the kernel a length of zero means "to the end of the file".
        #[cfg(target_os = "linux")]
        if let Some(length) = std::num::NonZeroU64::new(length) {
            // A hint that was refused costs nothing but the wait it would have saved.
            _ = rustix::fs::fadvise(&self.file, offset, Some(length), rustix::fs::Advice::WillNeed);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = (offset, length);
    }

    fn write_back(&self, offset: u64, length: u64) {
        #[cfg(all(target_os = "linux", target_env = "gnu"))]
        if let (Ok(offset), Ok(length)) = (i64::try_from(offset), i64::try_from(length)) {
            use std::os::fd::AsRawFd;
            // SAFETY: the call takes numbers only, and the descriptor is open as long as the file is.
            _ = unsafe { libc::sync_file_range(self.file.as_raw_fd(), offset, length, libc::SYNC_FILE_RANGE_WRITE) };
        }
        #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
        let _ = (offset, length);
    }
}

impl RealFile {
    /// For file systems that cannot reserve: zeros up to the new end. Holes below the old end stay holes, since filling them
    /// would race with writers.
    fn allocate_by_writing(&self, offset: u64, length: u64) -> io::Result<()> {
        static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];
        let end = offset.checked_add(length).ok_or(io::ErrorKind::FileTooLarge)?;
        let mut position = self.length()?;
        while position < end {
            let step = (end - position).min(ZEROS.len() as u64);
            self.file.write_all_at(&ZEROS[..step as usize], position)?;
            position += step;
        }
        Ok(())
    }
}
