//! What readers can still ask for: decides which superseded versions a checkpoint or merge keeps and which stamps it settles.

use crate::Stamp;
use pando_base::Timestamp;

/// The oldest things that a present or future reader, or a rollback, may need. Taken once per checkpoint or merge step; a
/// point that is older than the truth only keeps more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetentionPoint {
    /// No new timestamped reader may stand below; `NONE` keeps all history.
    pub oldest: Timestamp,
    /// Rollback to stable removes what is durable only after this.
    pub stable: Timestamp,
    /// The oldest read timestamp in use, `MAX` if none.
    pub read_timestamp_min: Timestamp,
    /// The open snapshots, ascending.
    pub snapshots: Vec<u64>,
    /// Every snapshot opened from now on is at least this.
    pub horizon: u64,
}

impl RetentionPoint {
    /// Keeps everything and settles nothing.
    pub const KEEP_ALL: RetentionPoint = RetentionPoint {
        oldest: Timestamp::NONE,
        stable: Timestamp::NONE,
        read_timestamp_min: Timestamp::MAX,
        snapshots: Vec::new(),
        horizon: 0,
    };

    /// The lowest timestamp at which anyone may read.
    pub fn read_floor(&self) -> Timestamp {
        self.oldest.min(self.read_timestamp_min)
    }

    /// True if `older`, superseded by `newer`, may still be read or come back by a rollback.
    pub fn needs(&self, older: &Stamp, newer: &Stamp) -> bool {
        if newer.commit.is_some() && (newer.durable > self.stable || newer.commit > self.read_floor()) {
            return true;
        }
        self.snapshot_between(older.sequence, newer.sequence)
    }

    /// The stamp to store: what no reader can tell apart from "always there" becomes zero.
    pub fn settle(&self, stamp: &Stamp) -> Stamp {
        if !self.sequence_is_settled(stamp.sequence) {
            return *stamp;
        }
        if stamp.durable <= self.stable && stamp.commit <= self.read_floor() {
            return Stamp::SETTLED;
        }
        Stamp { sequence: 0, ..*stamp }
    }

    /// True if every snapshot, open or to come, sees this sequence.
    pub fn sequence_is_settled(&self, sequence: u64) -> bool {
        sequence <= self.horizon && self.snapshots.first().is_none_or(|oldest| sequence <= *oldest)
    }

    /// True if some snapshot s, open or to come, has `low <= s < high`.
    fn snapshot_between(&self, low: u64, high: u64) -> bool {
        if high <= low {
            return false;
        }
        if high > self.horizon {
            return true;
        }
        let first = self.snapshots.partition_point(|snapshot| *snapshot < low);
        self.snapshots.get(first).is_some_and(|snapshot| *snapshot < high)
    }
}

/// Where merges get the current point from.
pub trait RetentionSource: Send + Sync {
    /// The point now.
    fn retention(&self) -> RetentionPoint;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point() -> RetentionPoint {
        RetentionPoint {
            oldest: Timestamp(50),
            stable: Timestamp(80),
            read_timestamp_min: Timestamp::MAX,
            snapshots: vec![10, 30],
            horizon: 40,
        }
    }

    fn stamp(sequence: u64, timestamp: u64) -> Stamp {
        Stamp::new(sequence, Timestamp(timestamp))
    }

    #[test]
    fn history_above_oldest_is_kept() {
        assert!(point().needs(&stamp(1, 20), &stamp(2, 51)));
        assert!(!point().needs(&stamp(1, 20), &stamp(2, 50)));
        assert!(!RetentionPoint { oldest: Timestamp(70), ..point() }.needs(&stamp(1, 20), &stamp(2, 51)));
        assert!(RetentionPoint { read_timestamp_min: Timestamp(30), ..point() }.needs(&stamp(1, 20), &stamp(2, 50)));
        assert!(RetentionPoint { oldest: Timestamp::NONE, ..point() }.needs(&stamp(1, 1), &stamp(2, 2)));
    }

    #[test]
    fn what_a_rollback_brings_back_is_kept() {
        let late = Stamp { sequence: 2, commit: Timestamp(40), durable: Timestamp(81) };
        assert!(point().needs(&stamp(1, 20), &late));
    }

    #[test]
    fn snapshots_keep_what_they_see() {
        assert!(point().needs(&stamp(5, 0), &stamp(11, 0)));
        assert!(!point().needs(&stamp(11, 0), &stamp(12, 0)));
        assert!(!point().needs(&stamp(31, 0), &stamp(39, 0)), "between the last snapshot and the horizon");
        assert!(point().needs(&stamp(35, 0), &stamp(41, 0)), "a snapshot at the horizon may be opened");
        assert!(!point().needs(&stamp(50, 0), &stamp(50, 0)), "one commit never stands between itself");
    }

    #[test]
    fn settling_needs_all_of_it() {
        assert_eq!(point().settle(&stamp(10, 50)), Stamp::SETTLED);
        assert_eq!(point().settle(&stamp(11, 50)), stamp(11, 50));
        assert_eq!(point().settle(&stamp(10, 51)), stamp(0, 51));
        let late = Stamp { sequence: 3, commit: Timestamp(40), durable: Timestamp(81) };
        assert_eq!(point().settle(&late), Stamp { sequence: 0, ..late });
        assert_eq!(RetentionPoint::KEEP_ALL.settle(&stamp(1, 1)), stamp(1, 1));
    }
}
