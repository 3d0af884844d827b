//! Writing past the system's cache, straight from our memory to the disk (`O_DIRECT`).
//!
//! A file that is written for durability alone gains nothing from the cache: what is copied there is brought to the disk at once, by way of
//! pages that have to be found, marked, written and unmarked. A small write with its sync costs half the processor time without it
//! and takes two thirds of the time. The file system keeps both ways of writing a file in step.
//!
//! Where a system or a file system does not have it, nothing is written here, and the caller goes the other way.

use crate::{Block, OpenMode};
use std::fs;
use std::io;

/// The blocks' bytes, one after the other.
pub(super) fn bytes_of(blocks: &[Block]) -> &[u8] {
    // SAFETY: a block is its bytes and nothing else: its size is a multiple of its alignment.
    unsafe { std::slice::from_raw_parts(blocks.as_ptr().cast(), size_of_val(blocks)) }
}

/// Another handle of a file, which is opened when it is first needed.
#[derive(Default)]
pub(super) struct PastCache {
    #[cfg(target_os = "linux")]
    handle: std::sync::OnceLock<Option<fs::File>>,
    /// Something could not be written this way. The rest is in the cache then, and only a sync of the whole file makes it durable.
    #[cfg(target_os = "linux")]
    is_given_up: std::sync::atomic::AtomicBool,
}

impl PastCache {
    /// For a file that was opened this way: one that may not be written is not written here either.
    pub(super) fn of(mode: OpenMode) -> PastCache {
        let past_cache = PastCache::default();
        #[cfg(target_os = "linux")]
        if mode == OpenMode::Read {
            past_cache.handle.get_or_init(|| None);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = mode;
        past_cache
    }
}

#[cfg(not(target_os = "linux"))]
impl PastCache {
    pub(super) fn write(&self, _file: &fs::File, _bytes: &[u8], _offset: u64, _durably: bool) -> io::Result<usize> {
        Ok(0)
    }
}

#[cfg(target_os = "linux")]
impl PastCache {
    /// Writes as much as can be written this way; how much that was. Place and length are multiples of a block.
    pub(super) fn write(&self, file: &fs::File, bytes: &[u8], offset: u64, durably: bool) -> io::Result<usize> {
        use rustix::io::{Errno, ReadWriteFlags, pwritev2};
        use std::sync::atomic::Ordering;
        let Some(handle) = self.handle.get_or_init(|| open(file)) else { return Ok(0) };
        if self.is_given_up.load(Ordering::Acquire) {
            return Ok(0);
        }
        let flags = if durably { ReadWriteFlags::DSYNC } else { ReadWriteFlags::empty() };
        let mut written = 0;
        while written < bytes.len() {
            let rest = io::IoSlice::new(bytes.get(written..).unwrap_or_default());
            match pwritev2(handle, &[rest], offset.saturating_add(written as u64), flags) {
                Ok(0) => break,
                Ok(more) => written += more,
                Err(Errno::INTR) => {}
                // The file system has larger blocks, or the system does not know the call or the flag: nothing was written.
                Err(Errno::INVAL | Errno::OPNOTSUPP | Errno::NOSYS) => break,
                Err(error) => return Err(error.into()),
            }
        }
        if written < bytes.len() {
            self.is_given_up.store(true, Ordering::Release);
        }
        Ok(written)
    }
}

/// By way of the handle that is there, since the name may be another file's by now.
#[cfg(target_os = "linux")]
fn open(file: &fs::File) -> Option<fs::File> {
    use rustix::fs::OFlags;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::OpenOptionsExt;
    let flags = i32::try_from(OFlags::DIRECT.bits()).ok()?;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    fs::OpenOptions::new().write(true).custom_flags(flags).open(path).ok()
}
