//! Trying again when the engine has rolled an operation back for contention or for want of memory.
//!
//! What to do about an error is decided by [`Retry`], which neither waits nor runs anything, so that all who try again
//! share it: loops around a body, and queries that yield.
//!
//! * `WriteConflict`: again and again, after a pause that doubles up to a bound.
//! * `TemporarilyUnavailable`: a limited number of times, after a pause that grows by the same step each time; then the
//!   error goes to the client. A task of the server's own has no client to tell: for it this is a conflict.
//! * `TransactionTooLargeForCache`: no second attempt, since that would fail too. A secondary must get through what its
//!   primary got through, so there it becomes a `WriteConflict`, which is tried again sooner.
//! * Inside a multi-document transaction nothing is tried again here: the client retries the whole transaction. Want of
//!   memory is then told as a `WriteConflict`.
//! * `PrepareConflict`: again as soon as some prepared transaction has ended.

use crate::StorageError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Conflicts that are tried again without a pause.
const IMMEDIATE_ATTEMPTS: u32 = 4;
/// The longest pause after a conflict is this power of two, in milliseconds.
const PAUSE_POWER_MAX: u32 = 7;

/// Who tries, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Server parameter `temporarilyUnavailableMaxRetries`.
    pub temporarily_unavailable_retries_max: u32,
    /// Server parameter `temporarilyUnavailableBackoffBaseMs`.
    pub temporarily_unavailable_backoff_base_ms: u64,
    /// The operation belongs to a multi-document transaction.
    pub multi_document: bool,
    /// The operation applies what a primary has done.
    pub secondary: bool,
    /// The operation is the server's own.
    pub internal: bool,
}

impl Default for RetryPolicy {
    fn default() -> RetryPolicy {
        RetryPolicy {
            temporarily_unavailable_retries_max: 10,
            temporarily_unavailable_backoff_base_ms: 1000,
            multi_document: false,
            secondary: false,
            internal: false,
        }
    }
}

/// What happened, process wide. Names follow serverStatus.
#[derive(Debug, Default)]
pub struct RetryCounters {
    /// Conflicts met, converted ones included.
    pub write_conflicts: AtomicU64,
    /// Rollbacks for want of memory.
    pub temporarily_unavailable_errors: AtomicU64,
    /// Those that went to the client after all retries.
    pub temporarily_unavailable_errors_escaped: AtomicU64,
    /// Those that were taken for a conflict, by multi-document transactions and by tasks without a client.
    pub temporarily_unavailable_errors_converted: AtomicU64,
    /// Transactions that were too large for the cache.
    pub transaction_too_large_errors: AtomicU64,
    /// Those that a secondary took for a conflict.
    pub transaction_too_large_errors_converted: AtomicU64,
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// What to do after an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RetryDecision {
    /// Let go of the snapshot, wait that long, try again.
    Again(Duration),
    /// Let go of the snapshot, wait until a prepared transaction has ended, try again.
    AfterPrepared,
    /// Give up with this error, which need not be the one that was met.
    Fail(StorageError),
}

/// The attempts of one operation.
#[derive(Clone, Debug)]
pub struct Retry {
    policy: RetryPolicy,
    conflicts: u32,
    unavailable: u32,
}

impl Retry {
    /// No attempt yet.
    pub fn new(policy: RetryPolicy) -> Retry {
        Retry { policy, conflicts: 0, unavailable: 0 }
    }

    /// Conflicts met so far.
    pub fn conflicts(&self) -> u32 {
        self.conflicts
    }

    /// Decides about an error of the last attempt.
    pub fn decide(&mut self, error: StorageError, counters: &RetryCounters) -> RetryDecision {
        match error {
            StorageError::WriteConflict => self.conflict(counters),
            StorageError::TemporarilyUnavailable(_) => {
                count(&counters.temporarily_unavailable_errors);
                self.unavailable(error, counters)
            }
            StorageError::TransactionTooLargeForCache(_) => {
                count(&counters.transaction_too_large_errors);
                if !self.policy.secondary {
                    return RetryDecision::Fail(error);
                }
                count(&counters.transaction_too_large_errors_converted);
                self.conflict(counters)
            }
            StorageError::PrepareConflict if !self.policy.multi_document => RetryDecision::AfterPrepared,
            other => RetryDecision::Fail(other),
        }
    }

    fn conflict(&mut self, counters: &RetryCounters) -> RetryDecision {
        count(&counters.write_conflicts);
        self.conflicts = self.conflicts.saturating_add(1);
        if self.policy.multi_document {
            return RetryDecision::Fail(StorageError::WriteConflict);
        }
        RetryDecision::Again(conflict_pause(self.conflicts))
    }

    fn unavailable(&mut self, error: StorageError, counters: &RetryCounters) -> RetryDecision {
        if self.policy.multi_document || self.policy.internal || self.policy.secondary {
            count(&counters.temporarily_unavailable_errors_converted);
            return self.conflict(counters);
        }
        self.unavailable = self.unavailable.saturating_add(1);
        if self.unavailable > self.policy.temporarily_unavailable_retries_max {
            count(&counters.temporarily_unavailable_errors_escaped);
            return RetryDecision::Fail(error);
        }
        let base_ms = self.policy.temporarily_unavailable_backoff_base_ms;
        RetryDecision::Again(Duration::from_millis(base_ms.saturating_mul(u64::from(self.unavailable))))
    }
}

/// The pause after so many conflicts.
fn conflict_pause(conflicts: u32) -> Duration {
    match conflicts.checked_sub(IMMEDIATE_ATTEMPTS) {
        None | Some(0) => Duration::ZERO,
        Some(paused) => Duration::from_millis(1 << (paused - 1).min(PAUSE_POWER_MAX)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(milliseconds: u64) -> RetryDecision {
        RetryDecision::Again(Duration::from_millis(milliseconds))
    }

    fn read(counter: &AtomicU64) -> u64 {
        counter.load(Ordering::Relaxed)
    }

    fn unavailable() -> StorageError {
        StorageError::TemporarilyUnavailable("no room".into())
    }

    fn too_large() -> StorageError {
        StorageError::TransactionTooLargeForCache("too much".into())
    }

    #[test]
    fn x5_conflicts_back_off_exponentially_up_to_a_bound() {
        let (mut retry, counters) = (Retry::new(RetryPolicy::default()), RetryCounters::default());
        let pauses: Vec<_> = (0..16).map(|_| retry.decide(StorageError::WriteConflict, &counters)).collect();
        let expected = [0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 128, 128, 128, 128].map(ms);
        assert_eq!(pauses, expected);
        assert_eq!(read(&counters.write_conflicts), 16);
        retry.conflicts = u32::MAX;
        assert_eq!(retry.decide(StorageError::WriteConflict, &counters), ms(128));
    }

    #[test]
    fn x5_temporarily_unavailable_backs_off_linearly_and_escapes_after_ten() {
        let (mut retry, counters) = (Retry::new(RetryPolicy::default()), RetryCounters::default());
        for attempt in 1..=10 {
            assert_eq!(retry.decide(unavailable(), &counters), ms(1000 * attempt));
        }
        assert_eq!(retry.decide(unavailable(), &counters), RetryDecision::Fail(unavailable()));
        assert_eq!(read(&counters.temporarily_unavailable_errors), 11);
        assert_eq!(read(&counters.temporarily_unavailable_errors_escaped), 1);
        assert_eq!(read(&counters.write_conflicts), 0);
    }

    #[test]
    fn x5_multi_document_transactions_return_write_conflict() {
        let policy = RetryPolicy { multi_document: true, ..RetryPolicy::default() };
        let (mut retry, counters) = (Retry::new(policy), RetryCounters::default());
        let conflict = RetryDecision::Fail(StorageError::WriteConflict);
        assert_eq!(retry.decide(unavailable(), &counters), conflict);
        assert_eq!(retry.decide(StorageError::WriteConflict, &counters), conflict);
        assert_eq!(retry.decide(too_large(), &counters), RetryDecision::Fail(too_large()));
        assert_eq!(read(&counters.temporarily_unavailable_errors_converted), 1);
        assert_eq!(read(&counters.write_conflicts), 2);
    }

    #[test]
    fn x5_tasks_without_a_client_wait_for_room_as_long_as_it_takes() {
        let counters = RetryCounters::default();
        let mut retry = Retry::new(RetryPolicy { internal: true, ..RetryPolicy::default() });
        let pauses: Vec<_> = (0..40).map(|_| retry.decide(unavailable(), &counters)).collect();
        assert_eq!((&pauses[0], &pauses[39]), (&ms(0), &ms(128)));
        assert_eq!(read(&counters.temporarily_unavailable_errors_converted), 40);
        assert_eq!(read(&counters.temporarily_unavailable_errors_escaped), 0);
    }

    #[test]
    fn x5_too_large_is_final_except_on_secondaries() {
        let counters = RetryCounters::default();
        let mut primary = Retry::new(RetryPolicy::default());
        assert_eq!(primary.decide(too_large(), &counters), RetryDecision::Fail(too_large()));
        let mut secondary = Retry::new(RetryPolicy { secondary: true, ..RetryPolicy::default() });
        assert_eq!(secondary.decide(too_large(), &counters), ms(0));
        assert_eq!(read(&counters.transaction_too_large_errors), 2);
        assert_eq!(read(&counters.transaction_too_large_errors_converted), 1);
    }

    #[test]
    fn x5_other_errors_are_final_and_prepared_data_is_waited_for() {
        let (mut retry, counters) = (Retry::new(RetryPolicy::default()), RetryCounters::default());
        assert_eq!(retry.decide(StorageError::PrepareConflict, &counters), RetryDecision::AfterPrepared);
        assert_eq!(
            retry.decide(StorageError::DuplicateKey, &counters),
            RetryDecision::Fail(StorageError::DuplicateKey)
        );
    }
}
