//! The newest sequence that snapshots may see.

use super::sync::{AtomicU64, Ordering};

/// Advances over stored outcomes only, in order: `publish` is called under the log's lock, after the outcome's store.
pub struct Watermark(AtomicU64);

impl Watermark {
    /// Starts at the last sequence of an earlier life.
    pub fn new(sequence: u64) -> Watermark {
        Watermark(AtomicU64::new(sequence))
    }

    /// Lets new snapshots see everything up to `sequence`.
    pub fn publish(&self, sequence: u64) {
        debug_assert!(self.0.load(Ordering::Relaxed) <= sequence, "the watermark never goes back");
        self.0.store(sequence, Ordering::Release);
    }

    /// What a snapshot taken now sees.
    pub fn published(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}
