//! Giving out places in the oplog.
//!
//! A place is reserved before the write that fills it commits. Until then it is a hole, which holds back what others may
//! rely on: all_durable, forward readers of the oplog, the stable timestamp.
//!
//! Invariant: times are given out and entered as holes in one step, so that nothing commits with a later time before the
//! hole is known. The snapshot is opened first: everything it sees is older than the place.

use crate::clock::ClusterClock;
use pando_base::{Result, Timestamp};
use pando_operation::Operation;
use pando_oplog::OpTime;
use pando_storage::Engine;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// Places in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReservedSlots {
    first: Timestamp,
    count: u32,
    term: i64,
}

impl ReservedSlots {
    /// The places, in order.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = OpTime> + ExactSizeIterator {
        (0..self.count).map(move |place| OpTime::new(Timestamp(self.first.0 + u64::from(place)), self.term))
    }

    /// One of them.
    pub fn get(self, place: usize) -> Option<OpTime> {
        let place = u32::try_from(place).ok().filter(|place| *place < self.count)?;
        Some(OpTime::new(Timestamp(self.first.0 + u64::from(place)), self.term))
    }

    /// The first.
    pub fn first(self) -> OpTime {
        OpTime::new(self.first, self.term)
    }

    /// The last.
    pub fn last(self) -> OpTime {
        OpTime::new(Timestamp(self.first.0 + u64::from(self.count.saturating_sub(1))), self.term)
    }
}

/// Gives out places in the oplog of this node.
pub struct OplogSlots {
    clock: Arc<ClusterClock>,
    engine: Arc<dyn Engine>,
    term: AtomicI64,
    reserving: Mutex<()>,
}

impl OplogSlots {
    /// Places in this engine's oplog.
    pub fn new(clock: Arc<ClusterClock>, engine: Arc<dyn Engine>) -> OplogSlots {
        OplogSlots { clock, engine, term: AtomicI64::new(0), reserving: Mutex::new(()) }
    }

    /// The clock.
    pub fn clock(&self) -> &Arc<ClusterClock> {
        &self.clock
    }

    /// Entries are of this term from now on.
    pub fn set_term(&self, term: i64) {
        self.term.store(term, Ordering::Release);
    }

    /// Reserves so many places for the operation's unit of work. They are holes until it ends.
    pub fn reserve(&self, operation: &mut Operation, count: u32) -> Result<ReservedSlots> {
        debug_assert!(count > 0, "nothing to reserve");
        operation.recovery_unit.preallocate_snapshot()?;
        let reserving = self.reserving.lock();
        let first = self.clock.tick(count.max(1));
        // The first hole holds back everything after it.
        let slot = self.engine.reserve_slot(first)?;
        drop(reserving);
        operation.recovery_unit.hold_slot(slot)?;
        if operation.context.wants_details() {
            let (context, start_ns) = (operation.context.clone(), operation.context.now_ns());
            operation.recovery_unit.on_commit(move |_| {
                let micros = context.now_ns().saturating_sub(start_ns) / 1000;
                context.statistics().oplog_slot_micros.add(micros.max(1));
            })?;
        }
        Ok(ReservedSlots { first, count: count.max(1), term: self.term.load(Ordering::Acquire) })
    }
}
