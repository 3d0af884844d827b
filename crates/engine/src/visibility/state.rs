//! The fate of one transaction, shared by all its versions.

use super::sync::{AtomicU64, Ordering};
use pando_base::Timestamp;
use pando_engine_runs::Stamp;

const RUNNING: u64 = 0;
const PREPARED: u64 = 1;
const COMMITTED: u64 = 2;
const ABORTED: u64 = 3;

/// Running, then perhaps prepared, then committed or aborted. The fields of a phase are stored before the phase.
pub struct TransactionState {
    phase: AtomicU64,
    /// What snapshots compare: the commit's sequence, or the prepare's for a transaction that was prepared.
    sequence: AtomicU64,
    /// The commit's own place in the log's order, which checkpoints compare.
    commit_sequence: AtomicU64,
    commit: AtomicU64,
    durable: AtomicU64,
    prepare: AtomicU64,
}

/// What a reader makes of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Not known, and invisible to others.
    Running,
    /// Not known, and in the way of readers that would see it.
    Prepared {
        /// When it was prepared, in sequence.
        sequence: u64,
        /// When it was prepared, in time.
        timestamp: Timestamp,
    },
    /// Committed.
    Committed {
        /// What readers compare.
        stamp: Stamp,
        /// What checkpoints compare.
        commit_sequence: u64,
    },
    /// As if it had never been.
    Aborted,
}

impl Default for TransactionState {
    fn default() -> Self {
        TransactionState::new()
    }
}

impl TransactionState {
    /// A running transaction.
    pub fn new() -> TransactionState {
        TransactionState {
            phase: AtomicU64::new(RUNNING),
            sequence: AtomicU64::new(0),
            commit_sequence: AtomicU64::new(0),
            commit: AtomicU64::new(0),
            durable: AtomicU64::new(0),
            prepare: AtomicU64::new(0),
        }
    }

    /// Running to prepared.
    pub fn prepare(&self, sequence: u64, timestamp: Timestamp) {
        debug_assert_eq!(self.phase.load(Ordering::Relaxed), RUNNING);
        self.sequence.store(sequence, Ordering::Relaxed);
        self.prepare.store(timestamp.0, Ordering::Relaxed);
        self.phase.store(PREPARED, Ordering::Release);
    }

    /// To committed. `commit` and `durable` are those of writes without a timestamp of their own.
    pub fn commit(&self, commit_sequence: u64, commit: Timestamp, durable: Timestamp) {
        let phase = self.phase.load(Ordering::Relaxed);
        debug_assert!(phase == RUNNING || phase == PREPARED);
        if phase == RUNNING {
            self.sequence.store(commit_sequence, Ordering::Relaxed);
        }
        self.commit_sequence.store(commit_sequence, Ordering::Relaxed);
        self.commit.store(commit.0, Ordering::Relaxed);
        self.durable.store(durable.0, Ordering::Relaxed);
        self.phase.store(COMMITTED, Ordering::Release);
    }

    /// To aborted.
    pub fn abort(&self) {
        debug_assert_ne!(self.phase.load(Ordering::Relaxed), COMMITTED);
        self.phase.store(ABORTED, Ordering::Release);
    }

    /// The fate as it is now; `own` is the version's own commit timestamp, if it has one.
    pub fn outcome(&self, own: Timestamp) -> Outcome {
        match self.phase.load(Ordering::Acquire) {
            RUNNING => Outcome::Running,
            PREPARED => Outcome::Prepared {
                sequence: self.sequence.load(Ordering::Relaxed),
                timestamp: Timestamp(self.prepare.load(Ordering::Relaxed)),
            },
            COMMITTED => Outcome::Committed {
                stamp: self.stamp(own),
                commit_sequence: self.commit_sequence.load(Ordering::Relaxed),
            },
            _ => Outcome::Aborted,
        }
    }

    fn stamp(&self, own: Timestamp) -> Stamp {
        let sequence = self.sequence.load(Ordering::Relaxed);
        if own.is_some() {
            return Stamp::new(sequence, own);
        }
        Stamp {
            sequence,
            commit: Timestamp(self.commit.load(Ordering::Relaxed)),
            durable: Timestamp(self.durable.load(Ordering::Relaxed)),
        }
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    #[test]
    fn a_prepared_transaction_keeps_its_prepare_sequence() {
        let state = TransactionState::new();
        assert_eq!(state.outcome(Timestamp::NONE), Outcome::Running);
        state.prepare(5, Timestamp(50));
        assert_eq!(state.outcome(Timestamp::NONE), Outcome::Prepared { sequence: 5, timestamp: Timestamp(50) });
        state.commit(9, Timestamp(60), Timestamp(70));
        let stamp = Stamp { sequence: 5, commit: Timestamp(60), durable: Timestamp(70) };
        assert_eq!(state.outcome(Timestamp::NONE), Outcome::Committed { stamp, commit_sequence: 9 });
    }

    #[test]
    fn a_version_may_have_its_own_timestamp() {
        let state = TransactionState::new();
        state.commit(3, Timestamp(10), Timestamp(10));
        let stamp = Stamp::new(3, Timestamp(12));
        assert_eq!(state.outcome(Timestamp(12)), Outcome::Committed { stamp, commit_sequence: 3 });
    }
}
