//! Deleted ranges that the base does not have yet.
//!
//! A range acts on every version of its keys that is older in sequence, in the overlay and in the base. A version written
//! by the same transaction wins over the range: a truncation turns the transaction's own earlier writes into deletions.
//!
//! A writer looks here while it holds its leaf's lock; a truncation first enters its range here and then looks at the
//! leaves. So of two that meet, at least one sees the other.

use super::version::Version;
use crate::visibility::{Outcome, ReadView, TransactionState, Visibility};
use bytes::Bytes;
use parking_lot::RwLock;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A range and the deletion of it.
pub struct RangeVersion {
    /// The first key.
    pub start: Bytes,
    /// The first key after it; none means to the last key.
    pub end: Option<Bytes>,
    /// When; has no value.
    pub version: Version,
}

/// What a view finds about a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeRead {
    /// No range that it can see.
    Nothing,
    /// A prepared transaction deleted it, perhaps.
    PrepareConflict,
    /// Versions of a smaller sequence are deleted.
    DeletedBefore(u64),
}

/// Why a write must not be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteObstacle {
    /// Roll back.
    Conflict,
    /// Wait.
    Prepared,
}

/// What another transaction's outcome is to a write by this view: rule 4 of the interface, for keys and ranges alike.
pub fn write_obstacle(outcome: &Outcome, view: &ReadView) -> Option<WriteObstacle> {
    match outcome {
        Outcome::Aborted => None,
        Outcome::Running => Some(WriteObstacle::Conflict),
        Outcome::Committed { stamp, .. } if view.point().sees(stamp) => None,
        Outcome::Committed { .. } => Some(WriteObstacle::Conflict),
        Outcome::Prepared { .. } if view.waits_for_prepared(outcome) => Some(WriteObstacle::Prepared),
        Outcome::Prepared { .. } => Some(WriteObstacle::Conflict),
    }
}

impl RangeVersion {
    /// True if the key lies in it.
    pub fn covers(&self, key: &[u8]) -> bool {
        self.start.as_ref() <= key && self.end.as_ref().is_none_or(|end| key < end.as_ref())
    }

    /// What it is to a view. A prepared one counts even for a view that ignores it: its fate must be looked at when it
    /// matters.
    pub fn read(&self, view: &ReadView) -> RangeRead {
        if self.version.is_own(view) {
            return RangeRead::DeletedBefore(u64::MAX);
        }
        let outcome = self.version.outcome();
        if view.waits_for_prepared(&outcome) {
            return RangeRead::PrepareConflict;
        }
        match (view.judge(&outcome), outcome) {
            (Visibility::Visible, Outcome::Committed { stamp, .. }) => RangeRead::DeletedBefore(stamp.sequence),
            _ => RangeRead::Nothing,
        }
    }

    fn overlaps(&self, start: &[u8], end: Option<&[u8]>) -> bool {
        self.end.as_ref().is_none_or(|mine| start < mine.as_ref()) && end.is_none_or(|end| self.start.as_ref() < end)
    }
}

/// A table's deleted ranges, in the order of writing.
#[derive(Default)]
pub struct Ranges {
    list: RwLock<Vec<RangeVersion>>,
    count: AtomicUsize,
}

impl Ranges {
    /// True if there are none, which is nearly always.
    pub fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// Adds one.
    pub fn push(&self, range: RangeVersion) {
        let mut list = self.list.write();
        list.push(range);
        self.count.store(list.len(), Ordering::Release);
    }

    /// What a view finds about a key.
    pub fn read(&self, key: &[u8], view: &ReadView) -> RangeRead {
        let list = self.list.read();
        for range in list.iter().rev().filter(|range| range.covers(key)) {
            if range.version.is_own(view) {
                return RangeRead::DeletedBefore(u64::MAX);
            }
            let outcome = range.version.outcome();
            match (view.judge(&outcome), outcome) {
                (Visibility::PrepareConflict, _) => return RangeRead::PrepareConflict,
                (Visibility::Visible, Outcome::Committed { stamp, .. }) => {
                    return RangeRead::DeletedBefore(stamp.sequence);
                }
                _ => {}
            }
        }
        RangeRead::Nothing
    }

    /// What stands against a write to a range; a key `k` is the range from `k` to just after it.
    pub fn obstacle(&self, start: &[u8], end: Option<&[u8]>, view: &ReadView) -> Option<WriteObstacle> {
        let list = self.list.read();
        list.iter()
            .filter(|range| range.overlaps(start, end) && !range.version.is_own(view))
            .find_map(|range| write_obstacle(&range.version.outcome(), view))
    }

    /// The newest range over a key that is not aborted: whether it is the view's own, and its fate.
    pub fn newest_at(&self, key: &[u8], view: &ReadView) -> Option<(bool, Outcome)> {
        let list = self.list.read();
        let covering = list.iter().rev().filter(|range| range.covers(key));
        let newest = covering.map(|range| &range.version).find(|version| version.outcome() != Outcome::Aborted)?;
        Some((newest.is_own(view), newest.outcome()))
    }

    /// True if a committed range over the key is newer than the sequence.
    pub fn deleted_after(&self, key: &[u8], sequence: u64) -> bool {
        let list = self.list.read();
        let mut stamps = list.iter().filter(|range| range.covers(key)).filter_map(|range| range.version.stamp());
        stamps.any(|stamp| stamp.sequence > sequence)
    }

    /// Lets `look` see them all, oldest first.
    pub fn with<R>(&self, look: impl FnOnce(&[RangeVersion]) -> R) -> R {
        look(&self.list.read())
    }

    /// Keeps those for which `stays` holds.
    pub fn retain(&self, stays: impl FnMut(&RangeVersion) -> bool) {
        let mut list = self.list.write();
        list.retain(stays);
        self.count.store(list.len(), Ordering::Release);
    }

    /// Removes what a rolled-back transaction wrote.
    pub fn remove_of(&self, state: &Arc<TransactionState>) {
        self.retain(|range| !range.version.is_of(state));
    }

    /// Removes the last one of a running transaction, whose truncation met an obstacle.
    pub fn remove_last_of(&self, state: &Arc<TransactionState>) {
        let mut list = self.list.write();
        if let Some(place) = list.iter().rposition(|range| range.version.is_of(state)) {
            list.remove(place);
        }
        self.count.store(list.len(), Ordering::Release);
    }

    /// The smallest sequence of a committed one: newer stamps in the base must keep their sequence, to be told from it.
    pub fn sequence_min(&self) -> Option<u64> {
        if self.is_empty() {
            return None;
        }
        self.with(|list| list.iter().map(|range| range.version.stamp().map_or(0, |stamp| stamp.sequence)).min())
    }
}
