//! One budget for everything in memory, and what happens when it runs short.
//!
//! The overlay's dirty bytes (not in the base yet) are what writers make and checkpoints take away. As shares of the budget:
//! from [`CHECKPOINT_SHARE`] on a checkpoint is asked for, from [`SLOW_SHARE`] on writers pause a little at each write, from
//! [`REFUSE_SHARE`] on they are refused. The block cache gets what the overlay and the log's tail leave, but no less than a
//! fifth.
//!
//! Transactions that must not wait (oplog application, recovery, the end of prepared ones) are never slowed or refused.

use crate::overlay::Freed;
use pando_storage::{Result, StorageError, Urgency};
use std::sync::atomic::{AtomicU64, Ordering};

/// Dirty share of the budget from which a checkpoint is asked for.
pub const CHECKPOINT_SHARE: f64 = 0.20;
/// Dirty share from which writers are slowed.
pub const SLOW_SHARE: f64 = 0.35;
/// Dirty share from which writers are refused.
pub const REFUSE_SHARE: f64 = 0.50;
/// A checkpoint to make room is worth while if it can take this share.
pub const WORTH_TAKING_SHARE: f64 = 0.01;
/// A running transaction tells what it has written in steps of this.
pub const RUNNING_STEP_BYTES: u64 = 64 << 10;
/// Share that overlay rows which the base has as well may use.
pub const ROW_CACHE_SHARE: f64 = 0.05;

/// What a writer is to do before it writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Go on.
    Go,
    /// Go on, but a checkpoint should start.
    AskForCheckpoint,
    /// Pause first, and a checkpoint should start.
    SlowDown,
    /// There is no room.
    Refuse,
}

/// The counters.
pub struct Memory {
    budget: AtomicU64,
    overlay: AtomicU64,
    dirty: AtomicU64,
    /// Of the dirty bytes, those of running transactions, which no checkpoint can take. Small transactions do not tell.
    running: AtomicU64,
    /// In thousandths.
    too_large_threshold: AtomicU64,
}

impl Memory {
    /// A budget in bytes, and the share of it that one transaction may be when memory is short.
    pub fn new(budget_bytes: u64, too_large_threshold: f64) -> Memory {
        Memory {
            budget: AtomicU64::new(budget_bytes),
            overlay: AtomicU64::new(0),
            dirty: AtomicU64::new(0),
            running: AtomicU64::new(0),
            too_large_threshold: AtomicU64::new(thousandths(too_large_threshold)),
        }
    }

    /// All that may be used.
    pub fn budget_bytes(&self) -> u64 {
        self.budget.load(Ordering::Relaxed)
    }

    /// Changes the budget.
    pub fn set_budget_bytes(&self, bytes: u64) {
        self.budget.store(bytes, Ordering::Relaxed);
    }

    /// Changes the share that one transaction may be.
    pub fn set_too_large_threshold(&self, share: f64) {
        self.too_large_threshold.store(thousandths(share), Ordering::Relaxed);
    }

    /// Bytes in the overlay.
    pub fn overlay_bytes(&self) -> u64 {
        self.overlay.load(Ordering::Relaxed)
    }

    /// Bytes in the overlay that the base does not have.
    pub fn dirty_bytes(&self) -> u64 {
        self.dirty.load(Ordering::Relaxed)
    }

    /// So many dirty bytes ask for a checkpoint.
    pub fn checkpoint_bytes(&self) -> u64 {
        (self.budget_bytes() as f64 * CHECKPOINT_SHARE) as u64
    }

    /// New dirty bytes.
    pub fn add(&self, bytes: usize) {
        self.overlay.fetch_add(bytes as u64, Ordering::Relaxed);
        self.dirty.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// The base has them now.
    pub fn clean(&self, bytes: usize) {
        subtract(&self.dirty, bytes);
    }

    /// A running transaction has now told of so many bytes, and before of so many.
    pub fn tell_running(&self, now: u64, before: u64) {
        if now > before {
            self.running.fetch_add(now - before, Ordering::Relaxed);
        } else if now < before {
            self.running.fetch_sub(before - now, Ordering::Relaxed);
        }
    }

    /// True if a checkpoint that takes all that is committed would make room.
    pub fn is_worth_taking(&self) -> bool {
        let takeable = self.dirty_bytes().saturating_sub(self.running.load(Ordering::Relaxed));
        takeable as f64 >= self.budget_bytes() as f64 * WORTH_TAKING_SHARE
    }

    /// New bytes that are no data: keys and their places.
    pub fn add_overhead(&self, bytes: usize) {
        self.overlay.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Bytes left the overlay.
    pub fn free(&self, freed: Freed) {
        if freed.clean + freed.dirty > 0 {
            subtract(&self.overlay, freed.clean + freed.dirty);
            subtract(&self.dirty, freed.dirty);
        }
    }

    /// What the block cache may have.
    pub fn cache_bytes(&self) -> u64 {
        let budget = self.budget_bytes();
        budget.saturating_sub(self.overlay_bytes()).max(budget / 5)
    }

    /// Clean bytes beyond what rows may use.
    pub fn row_cache_excess_bytes(&self) -> u64 {
        let clean = self.overlay_bytes().saturating_sub(self.dirty_bytes());
        clean.saturating_sub((self.budget_bytes() as f64 * ROW_CACHE_SHARE) as u64)
    }

    /// What a writer is to do.
    pub fn advice(&self) -> Advice {
        let dirty = self.dirty_bytes() as f64;
        let budget = self.budget_bytes() as f64;
        match dirty / budget.max(1.0) {
            share if share < CHECKPOINT_SHARE => Advice::Go,
            share if share < SLOW_SHARE => Advice::AskForCheckpoint,
            share if share < REFUSE_SHARE => Advice::SlowDown,
            _ => Advice::Refuse,
        }
    }

    /// The error for a writer that is refused: the transaction itself may be what fills the cache.
    pub fn refusal(&self, transaction_bytes: u64) -> StorageError {
        let threshold = self.too_large_threshold.load(Ordering::Relaxed);
        let dirty = self.dirty_bytes();
        let text = format!("{transaction_bytes} of {dirty} dirty bytes, budget {}", self.budget_bytes());
        if threshold < 1000 && transaction_bytes.saturating_mul(1000) > dirty.saturating_mul(threshold) {
            return StorageError::TransactionTooLargeForCache(text);
        }
        StorageError::TemporarilyUnavailable(text)
    }

    /// Refuses a writer for whom there is no room, unless it must go on.
    pub fn check(&self, urgency: Urgency, transaction_bytes: u64) -> Result<()> {
        match urgency == Urgency::Normal && self.advice() == Advice::Refuse {
            true => Err(self.refusal(transaction_bytes)),
            false => Ok(()),
        }
    }
}

fn thousandths(share: f64) -> u64 {
    (share.clamp(0.0, 1.0) * 1000.0) as u64
}

/// Counts are kept by many threads; a moment's imbalance must not wrap around.
fn subtract(counter: &AtomicU64, bytes: usize) {
    let _ = counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| Some(now.saturating_sub(bytes as u64)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x5_the_larger_part_of_the_dirty_bytes_is_too_large() {
        let memory = Memory::new(1000, 0.75);
        memory.add(600);
        assert_eq!(memory.advice(), Advice::Refuse);
        assert!(memory.check(Urgency::Exempt, 600).is_ok());
        assert!(matches!(memory.check(Urgency::Normal, 500), Err(StorageError::TransactionTooLargeForCache(_))));
        assert!(matches!(memory.check(Urgency::Normal, 400), Err(StorageError::TemporarilyUnavailable(_))));
        memory.set_too_large_threshold(1.0);
        assert!(matches!(memory.check(Urgency::Normal, 600), Err(StorageError::TemporarilyUnavailable(_))));
    }

    #[test]
    fn what_runs_cannot_be_taken() {
        let memory = Memory::new(1000, 0.75);
        memory.add(600);
        assert!(memory.is_worth_taking());
        memory.tell_running(595, 0);
        assert!(!memory.is_worth_taking());
        memory.tell_running(0, 595);
        assert!(memory.is_worth_taking());
    }

    #[test]
    fn clean_rows_give_way_to_dirty_ones() {
        let memory = Memory::new(1000, 0.75);
        memory.add(600);
        memory.clean(600);
        assert_eq!((memory.advice(), memory.row_cache_excess_bytes()), (Advice::Go, 550));
        memory.free(Freed { clean: 400, dirty: 0 });
        assert_eq!((memory.overlay_bytes(), memory.cache_bytes()), (200, 800));
    }
}
