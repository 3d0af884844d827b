//! The second phase of drops: tables whose catalog entry is gone are dropped when nobody can want them any more.
//!
//! A drop with a timestamp waits until that is older than the last checkpoint (recovery and rollback go back to it) and
//! older than oldest (reads go back to it). A drop without one waits, where there is an oplog, for two checkpoints to be
//! seen: the catalog's table has no redo there, so only a checkpoint makes the entry's removal durable, and of the first one
//! that is seen it is not known whether it began before the drop. Stand-alone, the removal lies before the drop in the
//! log. Every drop waits until no version of the collection is held.
//!
//! What was to be dropped when the server ended is found again at start: tables that the catalog does not have.

use crate::ident::IdentTables;
use pando_base::{Result, Timestamp};
use pando_storage::Engine;
use parking_lot::Mutex;
use std::sync::Arc;

/// Checkpoints to be seen after a drop without timestamp.
const CHECKPOINTS_AFTER_UNTIMED_DROP: u32 = 2;

/// A table that is to go.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PendingDrop {
    ident: String,
    /// None if it is not known.
    dropped_at: Timestamp,
    wait: WaitFor,
}

/// What must happen before it goes, besides nobody holding it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WaitFor {
    Nothing,
    Timestamp(Timestamp),
    /// So many more checkpoints.
    Checkpoints(u32),
}

/// Drops tables in their time.
pub struct Reaper {
    engine: Arc<dyn Engine>,
    pending: Mutex<Pending>,
}

#[derive(Default)]
struct Pending {
    drops: Vec<PendingDrop>,
    /// The last checkpoint that was seen.
    checkpoint: Timestamp,
}

impl Pending {
    /// Counts a checkpoint, if it is another than the last that was seen.
    fn see(&mut self, checkpoint: Timestamp) {
        if checkpoint == self.checkpoint {
            return;
        }
        self.checkpoint = checkpoint;
        for drop in &mut self.drops {
            if let WaitFor::Checkpoints(left) = &mut drop.wait {
                *left = left.saturating_sub(1);
            }
        }
    }
}

impl Reaper {
    pub(crate) fn new(engine: Arc<dyn Engine>) -> Reaper {
        let checkpoint = engine.timestamps().checkpoint;
        Reaper { engine, pending: Mutex::new(Pending { drops: Vec::new(), checkpoint }) }
    }

    /// A table whose catalog entry went at this time.
    pub(crate) fn add(&self, ident: String, dropped_at: Option<Timestamp>) {
        let wait = match dropped_at {
            Some(timestamp) if timestamp.is_some() => WaitFor::Timestamp(timestamp),
            _ if self.engine.oplog().is_some() => WaitFor::Checkpoints(CHECKPOINTS_AFTER_UNTIMED_DROP),
            _ => WaitFor::Nothing,
        };
        let mut pending = self.pending.lock();
        // A checkpoint that ended before counts for those that were waiting then.
        pending.see(self.engine.timestamps().checkpoint);
        pending.drops.push(PendingDrop { ident, dropped_at: dropped_at.unwrap_or(Timestamp::NONE), wait });
    }

    /// A table that never was in the catalog, or whose entry cannot come back.
    pub(crate) fn add_now(&self, ident: String) {
        let drop = PendingDrop { ident, dropped_at: Timestamp::NONE, wait: WaitFor::Nothing };
        self.pending.lock().drops.push(drop);
    }

    /// Tables that wait to be dropped.
    pub fn pending(&self) -> Vec<String> {
        self.pending.lock().drops.iter().map(|drop| drop.ident.clone()).collect()
    }

    /// Drops what can be dropped now and says how many, and of each when its entry went, if that has a time. Called whenever
    /// oldest or the checkpoint has moved.
    pub(crate) fn reap(&self, tables: &IdentTables, tell: &mut dyn FnMut(&str, Timestamp)) -> Result<usize> {
        let due = self.take_due();
        let mut dropped = 0;
        for (place, drop) in due.iter().enumerate() {
            match tables.drop_unused(&drop.ident) {
                Ok(true) => {
                    dropped += 1;
                    tell(&drop.ident, drop.dropped_at);
                }
                Ok(false) => self.pending.lock().drops.push(drop.clone()),
                Err(error) => {
                    self.pending.lock().drops.extend_from_slice(due.get(place..).unwrap_or_default());
                    return Err(error);
                }
            }
        }
        Ok(dropped)
    }

    fn take_due(&self) -> Vec<PendingDrop> {
        let timestamps = self.engine.timestamps();
        let mut pending = self.pending.lock();
        pending.see(timestamps.checkpoint);
        let safe = timestamps.checkpoint.min(timestamps.oldest);
        let is_due = |drop: &mut PendingDrop| match drop.wait {
            WaitFor::Nothing | WaitFor::Checkpoints(0) => true,
            WaitFor::Checkpoints(_) => false,
            WaitFor::Timestamp(timestamp) => timestamp < safe,
        };
        pending.drops.extract_if(.., is_due).collect()
    }

    /// Forgets everything: the catalog is read again, and what is not in it is found anew.
    pub(crate) fn clear(&self) {
        self.pending.lock().drops.clear();
    }
}
