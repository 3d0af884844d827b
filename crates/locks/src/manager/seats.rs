//! The lockers that are in use, so that reports can look at them from outside.
//!
//! A locker sits on a seat of its partition from its making to its end. A seat is kept when it becomes free, for the next
//! locker: there are as many as there were lockers at the same time. An empty seat has no owner, and nothing else in its
//! state either.

use crate::locker::{ClientState, LockerInfo, Seat};
use crate::manager::{LockManager, LockerId};
use crate::sync::Mutex;
use std::sync::Arc;

/// The seats of a partition.
#[derive(Default)]
pub(crate) struct Seats(Mutex<Rows>);

#[derive(Default)]
struct Rows {
    all: Vec<Arc<Seat>>,
    free: Vec<Arc<Seat>>,
}

impl Seats {
    /// A seat for a locker.
    pub(crate) fn take(&self) -> Arc<Seat> {
        let mut rows = self.0.lock();
        if let Some(seat) = rows.free.pop() {
            return seat;
        }
        let seat = Arc::new(Seat::default());
        rows.all.push(Arc::clone(&seat));
        seat
    }

    /// The seat is free again.
    pub(crate) fn give_back(&self, seat: &Arc<Seat>) {
        self.0.lock().free.push(Arc::clone(seat));
    }

    fn all(&self) -> Vec<Arc<Seat>> {
        self.0.lock().all.clone()
    }
}

/// A locker in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockerReport {
    /// Which.
    pub locker: LockerId,
    /// The number of the operation that it belongs to.
    pub operation: u32,
    /// What it does.
    pub state: ClientState,
    /// Its locks and counters.
    pub info: LockerInfo,
}

impl LockManager {
    /// All lockers in use. Each is looked at by itself: what it shows may be over when the next is looked at.
    pub fn lockers(&self) -> Vec<LockerReport> {
        self.seats().iter().filter_map(|seat| seat.report()).collect()
    }

    pub(crate) fn seats(&self) -> Vec<Arc<Seat>> {
        self.partitions.iter().flat_map(|partition| partition.seats.all()).collect()
    }
}
