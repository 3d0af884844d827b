//! Memory that the machine has provided and that nobody uses yet, given out as a server grows.
//!
//! The host of a virtual machine may take back what its guest does not use. The first touch of such a page then costs twenty times what it costs
//! elsewhere, and while pages are handed back the processors stand still: on the machine that these figures come from that takes half a second, two
//! seconds after a gigabyte was freed. No server is the better or worse for either, but whichever is measured at that moment pays.
//!
//! So before a phase the memory that a server may come to need is touched, and held. During the phase as much of it is freed as has gone from what was free:
//! whoever grows finds pages that were freed a moment ago, and the host is told of fewer: 20 to 300 MB at a time in most phases, up to 600 in one of insertMany, where it was 700 to
//! 1,000 before. What a server frees itself is told as ever. What is left is kept for the next phase.

use super::process::{free_bytes, machine_bytes};
use crate::Error;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// No page is smaller.
const PAGE_BYTES: usize = 4096;
/// Memory is held, and freed, in pieces of this size: each a mapping of its own, whatever allocates it.
const PIECE_BYTES: usize = 64 << 20;
/// So much more is free than was before: after a piece has gone, the rest is what a server may take until the next look.
const ADVANCE_BYTES: u64 = 96 << 20;
/// How often somebody looks. Whoever grows by a gigabyte in a second takes a tenth of the advance meanwhile.
pub const LOOK_EVERY: Duration = Duration::from_millis(10);

static HELD: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

/// What is kept free during a phase.
pub struct Reserve {
    free_bytes_wanted: u64,
}

impl Reserve {
    /// Holds so much memory, at most a quarter of the machine's, and gives the advance.
    pub fn fill(bytes: u64) -> Result<Reserve, Error> {
        let bytes = bytes.min(machine_bytes()? / 4);
        while held_bytes() < bytes {
            let piece = touched(PIECE_BYTES);
            held().push(piece);
        }
        let reserve = Reserve { free_bytes_wanted: free_bytes()? + ADVANCE_BYTES };
        reserve.look()?;
        Ok(reserve)
    }

    /// Frees as much as has gone since.
    pub fn look(&self) -> Result<(), Error> {
        let missing_bytes = self.free_bytes_wanted.saturating_sub(free_bytes()?);
        let mut held = held();
        let kept = held.len().saturating_sub(missing_bytes as usize / PIECE_BYTES);
        held.truncate(kept);
        Ok(())
    }
}

/// Has the machine provide so much memory, at most a quarter of what it has, and gives it back: for a load that follows at once.
pub fn touch_memory(bytes: u64) -> Result<(), Error> {
    drop(touched(bytes.min(machine_bytes()? / 4) as usize));
    Ok(())
}

fn held() -> MutexGuard<'static, Vec<Vec<u8>>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

fn held_bytes() -> u64 {
    (held().len() * PIECE_BYTES) as u64
}

fn touched(bytes: usize) -> Vec<u8> {
    let mut memory = vec![0u8; bytes];
    let (start, length) = (memory.as_mut_ptr(), memory.len());
    let (start, length) = (start.wrapping_add(start.align_offset(PAGE_BYTES)), length.saturating_sub(PAGE_BYTES));
    // SAFETY: the advice changes how the pages of the vector are backed, never what they contain. Where it is not taken, this takes longer.
    _ = unsafe { libc::madvise(start.cast(), length, libc::MADV_HUGEPAGE) };
    memory.chunks_mut(PAGE_BYTES).for_each(|page| page[0] = 1);
    std::hint::black_box(&memory);
    memory
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_held_and_freed_by_what_is_missing() {
        let before = held_bytes();
        let mut reserve = Reserve::fill(before + 4 * PIECE_BYTES as u64).unwrap();
        assert!(held_bytes() <= before + 4 * PIECE_BYTES as u64);
        reserve.free_bytes_wanted = 0;
        let kept = held_bytes();
        reserve.look().unwrap();
        assert_eq!(held_bytes(), kept, "nothing is missing");
        reserve.free_bytes_wanted = u64::MAX;
        reserve.look().unwrap();
        assert_eq!(held_bytes(), 0);
    }
}
