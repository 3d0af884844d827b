//! What one transaction sees: its snapshot, its read timestamp and its own writes.

use super::{Outcome, SnapshotTicket, TransactionState};
use pando_engine_runs::{ReadPoint, Stamp};
use pando_storage::PrepareBehaviour;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Shared by a transaction and its cursors; while it lives, the snapshot is open.
pub struct ReadView {
    point: ReadPoint,
    prepare: PrepareBehaviour,
    own: OnceLock<Arc<TransactionState>>,
    /// Grows with each own write, so that cursors know to look again.
    own_writes: AtomicU64,
    _ticket: SnapshotTicket,
}

/// What a version is to a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    /// It is what is read.
    Visible,
    /// Look further back.
    Hidden,
    /// Its fate must be known first.
    PrepareConflict,
}

impl ReadView {
    /// A view over a snapshot.
    pub fn new(point: ReadPoint, prepare: PrepareBehaviour, ticket: SnapshotTicket) -> ReadView {
        debug_assert_eq!(point.sequence, ticket.sequence());
        ReadView { point, prepare, own: OnceLock::new(), own_writes: AtomicU64::new(0), _ticket: ticket }
    }

    /// What it reads of the base.
    pub fn point(&self) -> &ReadPoint {
        &self.point
    }

    /// How it treats prepared data.
    pub fn prepare_behaviour(&self) -> PrepareBehaviour {
        self.prepare
    }

    /// The state that its own writes point at, made at the first write.
    pub fn own_state(&self) -> &Arc<TransactionState> {
        self.own.get_or_init(|| Arc::new(TransactionState::new()))
    }

    /// The state, if there was a write.
    pub fn own_state_if_any(&self) -> Option<&Arc<TransactionState>> {
        self.own.get()
    }

    /// True if the version with this state is its own.
    pub fn owns(&self, state: &Arc<TransactionState>) -> bool {
        self.own.get().is_some_and(|own| Arc::ptr_eq(own, state))
    }

    /// Tells its cursors that there is a new own write.
    pub fn count_own_write(&self) {
        self.own_writes.fetch_add(1, Ordering::Release);
    }

    /// How many own writes there were.
    pub fn own_writes(&self) -> u64 {
        self.own_writes.load(Ordering::Acquire)
    }

    /// What another transaction's outcome is to this view.
    pub fn judge(&self, outcome: &Outcome) -> Visibility {
        match outcome {
            Outcome::Running | Outcome::Aborted => Visibility::Hidden,
            Outcome::Committed { stamp, .. } if self.point.sees(stamp) => Visibility::Visible,
            Outcome::Committed { .. } => Visibility::Hidden,
            Outcome::Prepared { .. } if self.prepare != PrepareBehaviour::Enforce => Visibility::Hidden,
            Outcome::Prepared { sequence, timestamp } => {
                // Would it be seen if it were committed at its prepare timestamp?
                match self.point.sees(&Stamp::new(*sequence, *timestamp)) {
                    true => Visibility::PrepareConflict,
                    false => Visibility::Hidden,
                }
            }
        }
    }

    /// True if a prepared write is in the way of a write by this view, whatever it does about reads.
    pub fn waits_for_prepared(&self, outcome: &Outcome) -> bool {
        match outcome {
            Outcome::Prepared { sequence, timestamp } => self.point.sees(&Stamp::new(*sequence, *timestamp)),
            _ => false,
        }
    }
}
