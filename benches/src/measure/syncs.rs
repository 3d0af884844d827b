//! Counts the calls that wait for the disk, whichever library makes them.
//!
//! The functions below carry libc's names. The linker prefers a program's own symbols, so every `fsync`, `fdatasync` and
//! `msync` of this process comes through here: from Rust's library, from LMDB's C code and from WiredTiger's shared library. A
//! system that went around libc would not be counted; none of ours does.

use libc::{c_int, c_void, size_t};
use std::sync::atomic::{AtomicU64, Ordering};

static SYNCS: AtomicU64 = AtomicU64::new(0);

/// How many there were.
pub fn sync_count() -> u64 {
    SYNCS.load(Ordering::Relaxed)
}

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fsync(file: c_int) -> c_int {
    SYNCS.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the system call takes no pointers.
    unsafe { libc::syscall(libc::SYS_fsync, file) as c_int }
}

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fdatasync(file: c_int) -> c_int {
    SYNCS.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the system call takes no pointers.
    unsafe { libc::syscall(libc::SYS_fdatasync, file) as c_int }
}

/// # Safety
/// As libc's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn msync(address: *mut c_void, length: size_t, flags: c_int) -> c_int {
    SYNCS.fetch_add(1, Ordering::Relaxed);
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
