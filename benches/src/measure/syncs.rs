//! Counts the calls that wait for the disk, whichever library makes them.
//!
//! The functions below carry libc's names. The linker prefers a program's own symbols, so every `fsync`, `fdatasync` and
//! `msync` of this process comes through here: from Rust's library, from LMDB's C code and from WiredTiger's shared library. A
//! system that went around libc would not be counted. Our engine's log does: its blocks are written past the system's cache, and the write itself
//! waits for the disk (`RWF_DSYNC`). [`CountedDisk`](super::CountedDisk) counts these.

use libc::{c_int, c_void, size_t};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

static SYNCS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static OF_THREAD: Cell<u64> = const { Cell::new(0) };
}

/// Counts one more call that waits for the disk.
pub fn count_sync() {
    SYNCS.fetch_add(1, Ordering::Relaxed);
    OF_THREAD.set(OF_THREAD.get() + 1);
}

/// How many of them this thread has made.
pub fn sync_count_of_thread() -> u64 {
    OF_THREAD.get()
}

/// How many there were.
pub fn sync_count() -> u64 {
    SYNCS.load(Ordering::Relaxed)
}

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fsync(file: c_int) -> c_int {
    count_sync();
    // SAFETY: the system call takes no pointers.
    unsafe { libc::syscall(libc::SYS_fsync, file) as c_int }
}

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdatasync(file: c_int) -> c_int {
    count_sync();
    // SAFETY: the system call takes no pointers.
    unsafe { libc::syscall(libc::SYS_fdatasync, file) as c_int }
}

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn msync(address: *mut c_void, length: size_t, flags: c_int) -> c_int {
    count_sync();
    // SAFETY: the caller's promise about the range is passed on.
    unsafe { libc::syscall(libc::SYS_msync, address, length, flags) as c_int }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_calls_are_seen() {
        let path = std::env::temp_dir().join(format!("pando-benches-syncs-{}", std::process::id()));
        let file = std::fs::File::create(&path).unwrap();
        let before = sync_count();
        file.sync_data().unwrap();
        file.sync_all().unwrap();
        assert!(sync_count() >= before + 2);
        std::fs::remove_file(path).unwrap();
    }
}
