//! Multi-document transactions of a session: how far the newest has come, and what it keeps between its statements.
//!
//! The state says what statements, commits and aborts mean: one in progress goes on; one that has committed may be committed
//! again, as a driver does that never got the answer; one that was aborted is gone. What is in progress lives in memory alone:
//! after a crash there is nothing of it, and a record that speaks of a part of it means that it was aborted.
//!
//! Between statements the transaction lies in its session as an [`OpenTransaction`]. Dropping that rolls it back: a newer number,
//! a kill, the end of its time all come to this. One that is prepared is not dropped by any of them: it waits for its decision,
//! also over a restart, after which it is made anew from the oplog.

use pando_base::LatencyHistogram;
use pando_doc::Doc;
use pando_operation::Stash;
use pando_oplog::OpTime;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// How far a session's newest transaction has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum TransactionState {
    /// The newest number is a retryable write's.
    #[default]
    None,
    /// Statements may follow.
    InProgress,
    /// It only waits to be committed or aborted; the time is that of the entry that says so.
    Prepared(OpTime),
    /// It is done.
    Committed,
    /// It is undone.
    Aborted,
}

impl TransactionState {
    /// Has it begun and not ended?
    pub fn is_open(self) -> bool {
        matches!(self, TransactionState::InProgress | TransactionState::Prepared(_))
    }
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
        let open = Open { counters: Arc::clone(counters), is_prepared: AtomicBool::new(false) };
        OpenTransaction { stash, _open: open }
    }

    /// One that was prepared before the node was started.
    pub fn rebuilt(stash: Stash, counters: &Arc<TransactionCounters>) -> OpenTransaction {
        counters.open.fetch_add(1, Ordering::Relaxed);
        counters.started.fetch_add(1, Ordering::Relaxed);
        let open = Open { counters: Arc::clone(counters), is_prepared: AtomicBool::new(false) };
        open.prepared();
        OpenTransaction { stash, _open: open }
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
pub struct Open {
    counters: Arc<TransactionCounters>,
    is_prepared: AtomicBool,
}

impl Open {
    /// It is prepared.
    pub fn prepared(&self) {
        if !self.is_prepared.swap(true, Ordering::Relaxed) {
            self.counters.prepared.fetch_add(1, Ordering::Relaxed);
            self.counters.currently_prepared.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// It has committed.
    pub fn committed(&self) {
        self.counters.committed.fetch_add(1, Ordering::Relaxed);
        if self.is_prepared.load(Ordering::Relaxed) {
            self.counters.prepared_then_committed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// It was aborted.
    pub fn aborted(&self) {
        self.counters.aborted.fetch_add(1, Ordering::Relaxed);
        if self.is_prepared.load(Ordering::Relaxed) {
            self.counters.prepared_then_aborted.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.counters.open.fetch_sub(1, Ordering::Relaxed);
        if self.is_prepared.load(Ordering::Relaxed) {
            self.counters.currently_prepared.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// What a transaction that has committed was.
#[derive(Clone, Debug, Default)]
pub struct CommittedTransaction {
    /// How many writes it had.
    pub operation_count: u64,
    /// How large they are in the oplog.
    pub operation_bytes: u64,
    /// How it was to be acknowledged, as the client said it; empty if it did not.
    pub write_concern: Doc,
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
    /// `totalPrepared`.
    pub prepared: AtomicU64,
    /// `totalPreparedThenCommitted`.
    pub prepared_then_committed: AtomicU64,
    /// `totalPreparedThenAborted`.
    pub prepared_then_aborted: AtomicU64,
    /// `currentPrepared`.
    pub currently_prepared: AtomicU64,
    /// `retriedCommandsCount`: retryable writes that were sent again after all or a part of them was done.
    pub retried_commands: AtomicU64,
    /// `retriedStatementsCount`.
    pub retried_statements: AtomicU64,
    /// `transactionsCollectionWriteCount`.
    pub records_written: AtomicU64,
    /// `lastCommittedTransaction`.
    pub last_committed: Mutex<Option<CommittedTransaction>>,
    /// How long those took that have ended.
    pub latencies: LatencyHistogram,
    /// `currentOpen`.
    pub open: AtomicU64,
    /// `currentActive`: those with a statement that runs.
    pub active: AtomicU64,
}
