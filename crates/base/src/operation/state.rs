//! Whether an operation was told to stop, in one word, so that asking is one load.
//!
//! The low half is the code of the first kill, zero for none; above it the depth of scopes that ignore kills; the top bit
//! says that the server shuts down.

use crate::ErrorCode;
use std::sync::atomic::{AtomicU64, Ordering};

const CODE_MASK: u64 = 0xffff_ffff;
const ONE_IGNORE: u64 = 1 << 32;
const IGNORE_MASK: u64 = 0x7fff_ffff << 32;
const SHUTDOWN: u64 = 1 << 63;

/// The word.
#[derive(Debug, Default)]
pub(super) struct State(AtomicU64);

impl State {
    /// True if there is nothing to think about: not killed, not ignoring, not shutting down.
    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }

    /// The code to stop with, if it is to stop now.
    pub(super) fn interruption(&self) -> Option<ErrorCode> {
        let word = self.0.load(Ordering::Acquire);
        if word & SHUTDOWN != 0 {
            return Some(ErrorCode::InterruptedAtShutdown);
        }
        code(word).filter(|_| word & IGNORE_MASK == 0)
    }

    /// The code of the first kill, also if it is being ignored.
    pub(super) fn killed_with(&self) -> Option<ErrorCode> {
        code(self.0.load(Ordering::Acquire))
    }

    /// Stores the code unless there is one; false tells that there was.
    pub(super) fn kill(&self, code: ErrorCode) -> bool {
        debug_assert!(code != ErrorCode::OK, "success stops nobody");
        let with_code = |word: u64| (word & CODE_MASK == 0).then_some(word | u64::from(code.number() as u32));
        self.0.fetch_update(Ordering::AcqRel, Ordering::Acquire, with_code).is_ok()
    }

    /// Says that the server shuts down, which no scope ignores.
    pub(super) fn shut_down(&self) {
        self.0.fetch_or(SHUTDOWN, Ordering::AcqRel);
    }

    /// True inside a scope that ignores kills.
    pub(super) fn is_ignoring(&self) -> bool {
        self.0.load(Ordering::Relaxed) & IGNORE_MASK != 0
    }

    pub(super) fn enter_ignore(&self) {
        self.0.fetch_add(ONE_IGNORE, Ordering::AcqRel);
    }

    pub(super) fn leave_ignore(&self) {
        let before = self.0.fetch_sub(ONE_IGNORE, Ordering::AcqRel);
        debug_assert!(before & IGNORE_MASK != 0, "left more scopes than were entered");
    }
}

fn code(word: u64) -> Option<ErrorCode> {
    let number = (word & CODE_MASK) as u32 as i32;
    (number != 0).then_some(ErrorCode::location(number))
}
