//! One version of a key.
//!
//! There is one for each document since the last checkpoint, so it is kept small: flags lie beside the tag of the origin, and a
//! stamp whose parts follow from each other, as nearly all do, is two numbers.

use crate::visibility::{Outcome, ReadView, TransactionState};
use bytes::Bytes;
use pando_base::Timestamp;
use pando_engine_runs::{Stamp, prefetch_at};
use std::sync::Arc;

/// What a version's memory costs beside its value.
pub const VERSION_OVERHEAD_BYTES: usize = 96;

/// Bytes that left the overlay, by whether the base has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Freed {
    /// The base has them.
    pub clean: usize,
    /// The base does not.
    pub dirty: usize,
}

impl Freed {
    /// Counts a version.
    pub fn count(&mut self, version: &Version) {
        match version.in_base() {
            true => self.clean += version.size_bytes(),
            false => self.dirty += version.size_bytes(),
        }
    }
}

impl std::ops::AddAssign for Freed {
    fn add_assign(&mut self, other: Freed) {
        self.clean += other.clean;
        self.dirty += other.dirty;
    }
}

/// A value as a writer hands it over.
#[derive(Clone, Debug)]
pub struct NewValue {
    /// The value.
    pub bytes: Bytes,
    /// It is a part of something larger, such as a message, which stays as long as it does.
    pub is_part: bool,
}

impl NewValue {
    /// One with memory of its own.
    pub fn copied(value: &[u8]) -> NewValue {
        NewValue { bytes: Bytes::copy_from_slice(value), is_part: false }
    }
}

/// A value or a deletion, and when it was written.
pub struct Version {
    value: Option<Bytes>,
    origin: Origin,
}

/// `is_part` is that of the value.
enum Origin {
    /// The fate is its transaction's; `own` is a commit timestamp of the version's own.
    Pending { is_part: bool, state: Arc<TransactionState>, own: Timestamp },
    /// Known to be committed; the transaction's state is no longer needed. Durable when it was committed, and in its place in the
    /// log's order.
    Settled { is_part: bool, in_base: bool, sequence: u64, commit: Timestamp },
    /// The same where one of them differs: the transaction was prepared.
    SettledLater { is_part: bool, in_base: bool, settled: Box<Settled> },
}

struct Settled {
    stamp: Stamp,
    commit_sequence: u64,
}

impl Origin {
    fn settled(stamp: Stamp, commit_sequence: u64, is_part: bool) -> Origin {
        let Stamp { sequence, commit, durable } = stamp;
        match commit == durable && sequence == commit_sequence {
            true => Origin::Settled { is_part, in_base: false, sequence, commit },
            false => {
                let settled = Box::new(Settled { stamp, commit_sequence });
                Origin::SettledLater { is_part, in_base: false, settled }
            }
        }
    }
}

impl Version {
    /// A write of a running transaction.
    pub fn pending(state: Arc<TransactionState>, own: Timestamp, value: Option<NewValue>) -> Version {
        let is_part = value.as_ref().is_some_and(|value| value.is_part);
        Version { origin: Origin::Pending { is_part, state, own }, value: value.map(|value| value.bytes) }
    }

    /// A write that recovery found in the log.
    pub fn committed(stamp: Stamp, value: Option<Bytes>) -> Version {
        Version { origin: Origin::settled(stamp, stamp.sequence, false), value }
    }

    /// Lets the processor fetch the transaction's state, and the value if the base does not have it.
    pub fn fetch(&self) {
        if let Origin::Pending { state, .. } = &self.origin {
            prefetch_at(Arc::as_ptr(state));
        }
        if let Some(value) = self.value.as_ref().filter(|_| !self.in_base()) {
            prefetch_at(value.as_ptr());
        }
    }

    /// The fate.
    pub fn outcome(&self) -> Outcome {
        match &self.origin {
            Origin::Pending { state, own, .. } => state.outcome(*own),
            Origin::Settled { sequence, commit, .. } => {
                Outcome::Committed { stamp: Stamp::new(*sequence, *commit), commit_sequence: *sequence }
            }
            Origin::SettledLater { settled, .. } => {
                Outcome::Committed { stamp: settled.stamp, commit_sequence: settled.commit_sequence }
            }
        }
    }

    /// The stamp, if committed.
    pub fn stamp(&self) -> Option<Stamp> {
        match self.outcome() {
            Outcome::Committed { stamp, .. } => Some(stamp),
            _ => None,
        }
    }

    /// Lets go of the transaction's state once the fate is known; true if it is settled now.
    pub fn settle(&mut self) -> bool {
        if let Origin::Pending { is_part, .. } = self.origin
            && let Outcome::Committed { stamp, commit_sequence } = self.outcome()
        {
            self.origin = Origin::settled(stamp, commit_sequence, is_part);
        }
        self.settled_stamp().is_some()
    }

    /// The stamp of a settled version.
    pub fn settled_stamp(&self) -> Option<Stamp> {
        match &self.origin {
            Origin::Settled { sequence, commit, .. } => Some(Stamp::new(*sequence, *commit)),
            Origin::SettledLater { settled, .. } => Some(settled.stamp),
            Origin::Pending { .. } => None,
        }
    }

    /// True if the view's own transaction wrote it.
    pub fn is_own(&self, view: &ReadView) -> bool {
        matches!(&self.origin, Origin::Pending { state, .. } if view.owns(state))
    }

    /// True if this state's transaction wrote it.
    pub fn is_of(&self, state: &Arc<TransactionState>) -> bool {
        matches!(&self.origin, Origin::Pending { state: mine, .. } if Arc::ptr_eq(mine, state))
    }

    /// The version's own commit timestamp, if it is pending and has one.
    pub fn own_timestamp(&self) -> Timestamp {
        match &self.origin {
            Origin::Pending { own, .. } => *own,
            Origin::Settled { .. } | Origin::SettledLater { .. } => Timestamp::NONE,
        }
    }

    /// The value, none for a deletion.
    pub fn value(&self) -> Option<&Bytes> {
        self.value.as_ref()
    }

    /// Puts another value in its place: the same transaction wrote the key again.
    pub fn replace_value(&mut self, value: Option<NewValue>) {
        *self.is_part_mut() = value.as_ref().is_some_and(|value| value.is_part);
        self.value = value.map(|value| value.bytes);
    }

    /// True if the value is a part of something larger, which stays as long as it does.
    pub fn is_part(&self) -> bool {
        let (Origin::Pending { is_part, .. } | Origin::Settled { is_part, .. } | Origin::SettledLater { is_part, .. }) =
            &self.origin;
        *is_part
    }

    fn is_part_mut(&mut self) -> &mut bool {
        let (Origin::Pending { is_part, .. } | Origin::Settled { is_part, .. } | Origin::SettledLater { is_part, .. }) =
            &mut self.origin;
        is_part
    }

    /// Gives a value that is a part of something larger memory of its own, so that the rest of that can go.
    pub fn detach(&mut self) {
        let is_part = std::mem::take(self.is_part_mut());
        if let Some(value) = self.value.as_mut().filter(|_| is_part) {
            *value = Bytes::copy_from_slice(value);
        }
    }

    /// True if the base has it.
    pub fn in_base(&self) -> bool {
        match &self.origin {
            Origin::Settled { in_base, .. } | Origin::SettledLater { in_base, .. } => *in_base,
            Origin::Pending { .. } => false,
        }
    }

    /// The base has it now. It is settled: the base has nothing whose fate is open.
    pub fn set_in_base(&mut self) {
        match &mut self.origin {
            Origin::Settled { in_base, .. } | Origin::SettledLater { in_base, .. } => *in_base = true,
            Origin::Pending { .. } => debug_assert!(false, "a version in the base is settled"),
        }
    }

    /// What it costs.
    pub fn size_bytes(&self) -> usize {
        VERSION_OVERHEAD_BYTES + self.value.as_ref().map_or(0, Bytes::len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_small() {
        assert_eq!(size_of::<Version>(), 56);
    }

    #[test]
    fn a_prepared_version_keeps_all_of_its_stamp() {
        let state = Arc::new(TransactionState::new());
        let mut version = Version::pending(Arc::clone(&state), Timestamp::NONE, None);
        state.prepare(5, Timestamp(50));
        assert!(!version.settle());
        state.commit(9, Timestamp(60), Timestamp(70));
        let before = version.outcome();
        assert!(version.settle());
        assert_eq!(version.outcome(), before);
        let stamp = Stamp { sequence: 5, commit: Timestamp(60), durable: Timestamp(70) };
        assert_eq!(version.settled_stamp(), Some(stamp));
        version.set_in_base();
        assert!(version.in_base());
    }

    #[test]
    fn a_part_gets_memory_of_its_own() {
        let message = Bytes::from(vec![7; 100]);
        let value = NewValue { bytes: message.slice(10..20), is_part: true };
        let mut version = Version::pending(Arc::default(), Timestamp::NONE, Some(value));
        assert!(!message.is_unique());
        version.detach();
        assert!(message.is_unique());
        assert_eq!(version.value().unwrap().as_ref(), [7; 10]);
        let own = version.value().unwrap().as_ptr();
        version.detach();
        assert_eq!(version.value().unwrap().as_ptr(), own);
    }
}
