//! One version of a key.

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
        match version.in_base {
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

/// A value or a deletion, and when it was written.
pub struct Version {
    origin: Origin,
    value: Option<Bytes>,
    in_base: bool,
}

enum Origin {
    /// The fate is its transaction's; `own` is a commit timestamp of the version's own.
    Pending { state: Arc<TransactionState>, own: Timestamp },
    /// Known to be committed; the transaction's state is no longer needed.
    Settled { stamp: Stamp, commit_sequence: u64 },
}

impl Version {
    /// A write of a running transaction.
    pub fn pending(state: Arc<TransactionState>, own: Timestamp, value: Option<Bytes>) -> Version {
        Version { origin: Origin::Pending { state, own }, value, in_base: false }
    }

    /// A write that recovery found in the log.
    pub fn committed(stamp: Stamp, value: Option<Bytes>) -> Version {
        Version { origin: Origin::Settled { stamp, commit_sequence: stamp.sequence }, value, in_base: false }
    }

    /// Lets the processor fetch the transaction's state, and the value if the base does not have it.
    pub fn fetch(&self) {
        if let Origin::Pending { state, .. } = &self.origin {
            prefetch_at(Arc::as_ptr(state));
        }
        if let Some(value) = self.value.as_ref().filter(|_| !self.in_base) {
            prefetch_at(value.as_ptr());
        }
    }

    /// The fate.
    pub fn outcome(&self) -> Outcome {
        match &self.origin {
            Origin::Pending { state, own } => state.outcome(*own),
            Origin::Settled { stamp, commit_sequence } => {
                Outcome::Committed { stamp: *stamp, commit_sequence: *commit_sequence }
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
        if let Outcome::Committed { stamp, commit_sequence } = self.outcome() {
            self.origin = Origin::Settled { stamp, commit_sequence };
            return true;
        }
        false
    }

    /// The stamp of a settled version.
    pub fn settled_stamp(&self) -> Option<&Stamp> {
        match &self.origin {
            Origin::Settled { stamp, .. } => Some(stamp),
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
            Origin::Settled { .. } => Timestamp::NONE,
        }
    }

    /// The value, none for a deletion.
    pub fn value(&self) -> Option<&Bytes> {
        self.value.as_ref()
    }

    /// Puts another value in its place: the same transaction wrote the key again.
    pub fn replace_value(&mut self, value: Option<Bytes>) {
        self.value = value;
    }

    /// True if the base has it.
    pub fn in_base(&self) -> bool {
        self.in_base
    }

    /// The base has it now.
    pub fn set_in_base(&mut self) {
        self.in_base = true;
    }

    /// What it costs.
    pub fn size_bytes(&self) -> usize {
        VERSION_OVERHEAD_BYTES + self.value.as_ref().map_or(0, Bytes::len)
    }
}
