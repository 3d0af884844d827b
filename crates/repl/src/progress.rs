//! How far this node has come: applied, on disk, and with a majority; and waiting for it.
//!
//! Invariant: committed ≤ durable ≤ applied, by timestamp, where a majority means journals. None goes back.
//!
//! Each lock is held for a few instructions and no other is taken under it.

use crate::flow_control::Samples;
use pando_base::Timestamp;
use pando_oplog::OpTime;
use parking_lot::Mutex;
use tokio::sync::watch;

/// An entry's time and its date on the wall, in milliseconds since 1970.
pub type Dated = (OpTime, i64);

/// All of them at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Points {
    /// The newest entry that was committed here.
    pub applied: Dated,
    /// The newest entry on disk, with everything before it.
    pub durable: Dated,
    /// The newest entry that a majority has.
    pub committed: Dated,
}

/// Before every entry.
const NOTHING: Dated = (OpTime::NULL, 0);

/// Keeps the points.
pub struct Progress {
    points: Mutex<Points>,
    /// How many entries there were when.
    samples: Mutex<Samples>,
    committed: watch::Sender<Timestamp>,
}

impl Progress {
    /// Of a node that has nothing yet.
    pub fn new() -> Progress {
        let points = Points { applied: NOTHING, durable: NOTHING, committed: NOTHING };
        let samples = Mutex::new(Samples::new());
        Progress { points: Mutex::new(points), samples, committed: watch::Sender::new(Timestamp::NONE) }
    }

    /// All of them.
    pub fn points(&self) -> Points {
        *self.points.lock()
    }

    /// Looks at the samples, or changes them.
    pub(crate) fn with_samples<T>(&self, look: impl FnOnce(&mut Samples) -> T) -> T {
        look(&mut self.samples.lock())
    }

    /// Entries of this node's own were committed here, the newest of them at this time.
    pub fn written(&self, op_time: OpTime, date_ms: i64, entry_count: u64) {
        self.samples.lock().add(op_time.timestamp, entry_count);
        self.applied(op_time, date_ms);
    }

    /// An entry was committed here. Commits may be told out of order.
    pub fn applied(&self, op_time: OpTime, date_ms: i64) {
        let mut points = self.points.lock();
        if op_time > points.applied.0 {
            points.applied = (op_time, date_ms);
        }
    }

    /// Everything up to this time is on disk. Gives the new point if it has moved.
    pub fn durable(&self, timestamp: Timestamp) -> Option<OpTime> {
        let mut points = self.points.lock();
        let reached = reach(points.applied, timestamp);
        if reached.0.timestamp <= points.durable.0.timestamp {
            return None;
        }
        points.durable = reached;
        Some(reached.0)
    }

    /// A majority has everything up to this entry. Gives true if that is new.
    pub fn committed(&self, op_time: OpTime) -> bool {
        let mut points = self.points.lock();
        if op_time <= points.committed.0 {
            return false;
        }
        let (durable, applied) = (points.durable, points.applied);
        let date = [durable, applied].into_iter().find(|known| known.0 == op_time).map(|known| known.1);
        points.committed = (op_time, date.unwrap_or_else(|| date_of(op_time.timestamp)));
        drop(points);
        self.committed.send_if_modified(|seen| {
            let is_newer = op_time.timestamp > *seen;
            *seen = (*seen).max(op_time.timestamp);
            is_newer
        });
        true
    }

    /// Ends when a majority has the entry of this time.
    pub async fn wait_committed(&self, timestamp: Timestamp) {
        let mut committed = self.committed.subscribe();
        // The sender lives as long as this.
        let _ = committed.wait_for(|seen| *seen >= timestamp).await;
    }
}

impl Default for Progress {
    fn default() -> Progress {
        Progress::new()
    }
}

/// The newest entry at or before a time, as far as that is known: the newest of all, or one of the same term.
fn reach(applied: Dated, timestamp: Timestamp) -> Dated {
    match timestamp >= applied.0.timestamp {
        true => applied,
        false => (OpTime::new(timestamp, applied.0.term), date_of(timestamp)),
    }
}

/// To the second, which is all that a timestamp has.
fn date_of(timestamp: Timestamp) -> i64 {
    i64::from(timestamp.seconds()) * 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(increment: u32) -> OpTime {
        OpTime::new(Timestamp::new(10, increment), 1)
    }

    #[test]
    fn r2_points_only_move_forward() {
        let progress = Progress::new();
        progress.applied(at(3), 33);
        progress.applied(at(2), 22);
        assert_eq!(progress.points().applied, (at(3), 33));
        assert_eq!(progress.durable(at(2).timestamp), Some(at(2)));
        assert_eq!(progress.durable(at(1).timestamp), None);
        assert_eq!(progress.durable(at(9).timestamp), Some(at(3)), "not beyond what is applied");
        assert_eq!(progress.points().durable, (at(3), 33));
        assert!(progress.committed(at(3)) && !progress.committed(at(2)));
        assert_eq!(progress.points().committed, (at(3), 33));
    }
}
