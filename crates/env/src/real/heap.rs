//! The allocator of the program that people run, and what it holds.
//!
//! It gives pages back to the system some seconds after they were freed, but only while somebody allocates or frees: a
//! process that is at rest has to ask ([`give_back`]). Other programs of this workspace have the system's allocator; for
//! them both functions do nothing of use.

use libmimalloc_sys::{mi_collect, mi_process_info};
use std::ptr::null_mut;

/// The allocator, to be named as the global one by a program.
pub use mimalloc::MiMalloc as Allocator;

/// How much memory the allocator has from the system, what it keeps for later included.
pub(super) fn committed_bytes() -> u64 {
    let mut committed = 0_usize;
    // SAFETY: each place for an answer is either ours or null, which means that it is not asked for.
    unsafe {
        mi_process_info(
            null_mut(),
            null_mut(),
            null_mut(),
            null_mut(),
            null_mut(),
            &raw mut committed,
            null_mut(),
            null_mut(),
        );
    }
    committed as u64
}

/// Gives back to the system what has been free for a while.
pub(super) fn give_back() {
    // SAFETY: it may be called at any time by any thread; it takes the allocator's own locks.
    unsafe { mi_collect(false) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_can_be_asked_for_and_given_back_without_being_the_allocator() {
        give_back();
        assert!(committed_bytes() < 1 << 30);
    }
}
