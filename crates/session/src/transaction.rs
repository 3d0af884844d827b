//! Multi-document transactions of a session: how far the newest has come, and what it keeps between its statements.
//!
//! The state says what statements, commits and aborts mean: one in progress goes on; one that has committed may be committed
//! again, as a driver does that never got the answer; one that was aborted is gone. What is in progress lives in memory alone:
//! after a crash there is nothing of it, and a record that speaks of a part of it means that it was aborted.
//!
//! Between statements the transaction lies in its session as an [`OpenTransaction`]. Dropping that rolls it back: a newer number,
//! a kill, the end of its time all come to this.

use pando_operation::Stash;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How far a session's newest transaction has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum TransactionState {
    /// The newest number is a retryable write's.
    #[default]
    None,
    /// Statements may follow.
    InProgress,
    /// It is done.
    Committed,
    /// It is undone.
    Aborted,
}

/// A transaction between its statements.
pub struct OpenTransaction {
    stash: Stash,
    _open: Open,
}

impl OpenTransaction {
    /// One that begins.
    pub fn begin(stash: Stash, counters: &Arc<TransactionCounters>) -> OpenTransaction {
        counters.started.fetch_add(1, Ordering::Relaxed);
        counters.open.fetch_add(1, Ordering::Relaxed);
        OpenTransaction { stash, _open: Open(Arc::clone(counters)) }
    }

    /// What an operation takes up, and what is left of the transaction meanwhile.
    pub fn take_up(self) -> (Stash, Open) {
        (self.stash, self._open)
    }

    /// The other way round.
    pub fn put_down(stash: Stash, open: Open) -> OpenTransaction {
        OpenTransaction { stash, _open: open }
    }
}

/// Counts a transaction as open for as long as it lives.
pub struct Open(Arc<TransactionCounters>);

impl Open {
    /// It has committed.
    pub fn committed(&self) {
        self.0.committed.fetch_add(1, Ordering::Relaxed);
    }

    /// It was aborted.
    pub fn aborted(&self) {
        self.0.aborted.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What has become of the transactions of this node. Names follow serverStatus.
#[derive(Debug, Default)]
pub struct TransactionCounters {
    /// `totalStarted`.
    pub started: AtomicU64,
    /// `totalCommitted`.
    pub committed: AtomicU64,
    /// `totalAborted`.
    pub aborted: AtomicU64,
    /// `currentOpen`.
    pub open: AtomicU64,
    /// `currentActive`: those with a statement that runs.
    pub active: AtomicU64,
}
