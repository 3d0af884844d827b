//! A disk that counts what only it can see: blocks whose write waits for the disk without a sync of its own.

use super::syncs::{count_sync, sync_count_of_thread};
use pando_env::{Block, DirectoryLock, Disk, File, OpenMode};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Another disk whose durable writes count as syncs.
pub struct CountedDisk(pub Arc<dyn Disk>);

impl Disk for CountedDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(CountedFile(self.0.open(path, mode)?)))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.0.remove(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.rename(from, to)
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        self.0.list(directory)
    }

    fn create_directory(&self, directory: &Path) -> io::Result<()> {
        self.0.create_directory(directory)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.0.exists(path)
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        self.0.sync_directory(directory)
    }

    fn free_bytes(&self, directory: &Path) -> io::Result<u64> {
        self.0.free_bytes(directory)
    }

    fn total_bytes(&self, directory: &Path) -> io::Result<u64> {
        self.0.total_bytes(directory)
    }

    fn permissions(&self, path: &Path) -> io::Result<u32> {
        self.0.permissions(path)
    }

    fn lock_directory(&self, directory: &Path) -> io::Result<Box<dyn DirectoryLock>> {
        self.0.lock_directory(directory)
    }

    fn read_all(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.0.read_all(path)
    }
}

struct CountedFile(Arc<dyn File>);

impl File for CountedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buffer, offset)
    }

    fn read_cached_at(&self, buffer: &mut [u8], offset: u64) -> usize {
        self.0.read_cached_at(buffer, offset)
    }

    fn write_at(&self, buffer: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_at(buffer, offset)
    }

    fn write_blocks(&self, blocks: &[Block], offset: u64, durably: bool) -> io::Result<()> {
        let before = sync_count_of_thread();
        let written = self.0.write_blocks(blocks, offset, durably);
        // Where the write cannot wait for the disk, a sync follows it, which was counted as such.
        if durably && sync_count_of_thread() == before {
            count_sync();
        }
        written
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync()
    }

    fn length(&self) -> io::Result<u64> {
        self.0.length()
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.0.set_length(length)
    }

    fn allocate(&self, offset: u64, length: u64) -> io::Result<()> {
        self.0.allocate(offset, length)
    }

    fn prefetch(&self, offset: u64, length: u64) {
        self.0.prefetch(offset, length);
    }

    fn write_back(&self, offset: u64, length: u64) {
        self.0.write_back(offset, length);
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.read_exact_at(buffer, offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::sync_count;

    #[test]
    fn a_durable_write_counts_once_and_another_does_not() {
        let directory = std::env::temp_dir().join(format!("pando-benches-counted-{}", std::process::id()));
        let disk = CountedDisk(Arc::clone(pando_env::Env::real().disk()));
        disk.create_directory(&directory).unwrap();
        let file = disk.open(&directory.join("blocks"), OpenMode::CreateNew).unwrap();
        let counted = |durably| {
            let before = sync_count_of_thread();
            file.write_blocks(&[Block::ZEROS], 0, durably).unwrap();
            sync_count_of_thread() - before
        };
        assert_eq!((counted(true), counted(false)), (1, 0));
        assert!(sync_count() >= 1);
        std::fs::remove_dir_all(directory).unwrap();
    }
}
