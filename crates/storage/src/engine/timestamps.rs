//! The timestamps that rule what is kept, what is checkpointed and what is rolled back.

use crate::Result;
use pando_base::Timestamp;
use std::sync::Arc;

/// All of them at one moment. Invariants: `oldest <= stable <= all_durable`, where each is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Timestamps {
    /// History is kept back to here; reads below it are refused.
    pub oldest: Timestamp,
    /// The newest point a checkpoint may stand at. Only moves forward.
    pub stable: Timestamp,
    /// Every transaction with a timestamp at or before this has committed, apart from prepared ones.
    pub all_durable: Timestamp,
    /// Where history begins. None: checkpoints take everything committed.
    pub initial_data: Timestamp,
    /// The stable timestamp of the checkpoint that the engine was opened at.
    pub recovery: Timestamp,
    /// The stable timestamp of the last checkpoint.
    pub checkpoint: Timestamp,
}

/// Reads and sets the timestamps.
pub trait TimestampControl {
    /// All of them.
    fn timestamps(&self) -> Timestamps;
    /// Moves oldest forward, at most to stable. Going back is ignored unless forced (after a rollback).
    fn set_oldest(&self, timestamp: Timestamp, force: bool) -> Result<()>;
    /// Moves stable forward, at most to all_durable. Going back is ignored.
    fn set_stable(&self, timestamp: Timestamp) -> Result<()>;
    /// Says where history begins; `NONE` asks for full checkpoints.
    fn set_initial_data(&self, timestamp: Timestamp);
    /// No version in the base is younger. A new oplog begins after it: what the base has would count as not stable otherwise, and
    /// be gone after the next start.
    fn newest_stored(&self) -> Timestamp {
        Timestamp::NONE
    }
    /// Reserves a place in the oplog: all_durable stays below it until the slot is dropped or its transaction ends.
    fn reserve_slot(&self, timestamp: Timestamp) -> Result<Slot>;
}

/// Gives slots back. Implemented by engines.
pub trait SlotKeeper: Send + Sync {
    /// The slot at this timestamp is filled or abandoned.
    fn release(&self, timestamp: Timestamp);
}

/// A reserved place in the oplog; a hole until it is dropped.
pub struct Slot {
    timestamp: Timestamp,
    keeper: Arc<dyn SlotKeeper>,
}

impl Slot {
    /// For engines.
    pub fn new(timestamp: Timestamp, keeper: Arc<dyn SlotKeeper>) -> Slot {
        Slot { timestamp, keeper }
    }

    /// The place.
    pub fn timestamp(&self) -> Timestamp {
        self.timestamp
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.keeper.release(self.timestamp);
    }
}
