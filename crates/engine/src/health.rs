//! How the engine's own work fares: what fails is told, counted, and in the end refused to build upon.
//!
//! A checkpoint that fails loses nothing: the log has everything. But each failure leaves more of it to be read again and more in
//! memory, until neither disk nor memory have room. So after [`REFUSE_AFTER`] failures in a row what adds data is refused, with the
//! reason; deletions go on, for they may be what makes room. Checkpoints are tried again all the while, and the first that is
//! taken admits writes again.
//!
//! Lock order: the lock here is a leaf, and nobody is told under it.

use crate::core::Core;
use pando_storage::{EngineEvent, Result, StorageError, Work};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// After so many failed checkpoints in a row writes are refused.
pub const REFUSE_AFTER: u64 = 5;

/// So many damaged places are told of; a store with more is not worth more lines.
const DAMAGED_PLACES_MAX: usize = 1000;

const WORKS: [Work; 5] = [Work::Flush, Work::LogSpace, Work::Checkpoint, Work::Merge, Work::Measure];

/// Failures of one work.
#[derive(Default)]
struct Failures {
    in_a_row: AtomicU64,
    ever: AtomicU64,
}

/// What is known of the engine's own work.
#[derive(Default)]
pub struct Health {
    failures: [Failures; WORKS.len()],
    refuses: AtomicBool,
    refusal: Mutex<Option<StorageError>>,
    damaged: Mutex<BTreeSet<(String, u64)>>,
}

impl Health {
    fn of(&self, work: Work) -> &Failures {
        let place = WORKS.iter().position(|known| *known == work).unwrap_or_default();
        &self.failures[place]
    }

    /// How often it failed in a row.
    pub fn failures_in_a_row(&self, work: Work) -> u64 {
        self.of(work).in_a_row.load(Ordering::Relaxed)
    }

    /// How often it failed since the start.
    pub fn failures_ever(&self, work: Work) -> u64 {
        self.of(work).ever.load(Ordering::Relaxed)
    }

    /// True while what adds data is refused.
    pub fn refuses_writes(&self) -> bool {
        self.refuses.load(Ordering::Acquire)
    }

    /// How many damaged places were met.
    pub fn damaged_places(&self) -> usize {
        self.damaged.lock().len()
    }

    /// The error for a write that adds data.
    fn refusal(&self) -> StorageError {
        let failures = self.failures_in_a_row(Work::Checkpoint);
        let refused = |reason: &dyn std::fmt::Display| {
            format!(
                "writes are refused until a checkpoint can be taken; {failures} failed in a row, the last one: {reason}"
            )
        };
        match &*self.refusal.lock() {
            Some(StorageError::Io(reason)) => StorageError::Io(refused(reason)),
            Some(error) => StorageError::OutOfDiskSpace(refused(error)),
            None => StorageError::OutOfDiskSpace(refused(&"unknown")),
        }
    }
}

impl Core {
    /// Tells whoever listens.
    pub fn tell(&self, event: &EngineEvent) {
        self.options.listener.tell(event);
    }

    /// Notes how a piece of the engine's own work ended.
    pub fn worked<T>(&self, work: Work, outcome: &Result<T>) {
        match outcome {
            Ok(_) => self.succeeded(work),
            // That was told when it happened, and nothing is tried again.
            Err(StorageError::Stopped(_)) => {}
            Err(error) => self.failed(work, error),
        }
    }

    fn succeeded(&self, work: Work) {
        let failures = self.health.of(work).in_a_row.swap(0, Ordering::Relaxed);
        if failures > 0 {
            self.tell(&EngineEvent::WorkRecovered { work, failures });
        }
        if work == Work::Checkpoint && self.health.refuses.swap(false, Ordering::AcqRel) {
            self.health.refusal.lock().take();
            self.tell(&EngineEvent::WritesAdmitted);
        }
    }

    fn failed(&self, work: Work, error: &StorageError) {
        let counted = self.health.of(work);
        counted.ever.fetch_add(1, Ordering::Relaxed);
        let failures = counted.in_a_row.fetch_add(1, Ordering::Relaxed) + 1;
        self.tell(&EngineEvent::WorkFailed { work, failures, error: error.clone() });
        if work == Work::Checkpoint && failures >= REFUSE_AFTER {
            *self.health.refusal.lock() = Some(error.clone());
            if !self.health.refuses.swap(true, Ordering::AcqRel) {
                self.tell(&EngineEvent::WritesRefused { failures, error: error.clone() });
            }
        }
    }

    /// Refuses what adds data while checkpoints fail. Without threads nobody else tries one, so it is done here.
    pub fn check_checkpoints(&self) -> Result<()> {
        if !self.health.refuses_writes() {
            return Ok(());
        }
        if !self.options.background
            && self.take_checkpoint(Default::default(), false).is_ok_and(|outcome| outcome.taken)
        {
            return Ok(());
        }
        Err(self.health.refusal())
    }

    /// Tells of a damaged place, once.
    pub(crate) fn met_damage(&self, file: &str, offset: u64, detail: &str) {
        let is_new = {
            let mut damaged = self.health.damaged.lock();
            damaged.len() < DAMAGED_PLACES_MAX && damaged.insert((file.to_owned(), offset))
        };
        if is_new {
            self.tell(&EngineEvent::Corruption { file: file.to_owned(), offset, detail: detail.to_owned() });
        }
    }
}
