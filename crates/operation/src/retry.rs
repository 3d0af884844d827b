//! Trying an operation's work again when storage has rolled it back.
//!
//! What to do about an error is decided by storage's `Retry`. [`Conflicts`] asks it and counts, for everybody who meets one: the
//! loops here, which run a body until it is through, and queries, which yield. Waiting gives way to kills and deadlines. Between
//! attempts the snapshot is let go of. A body that runs inside a unit of work is run once: only the outermost loop can let go.

use crate::Operation;
use pando_base::{Error, ErrorCode, Namespace, Result};
use pando_storage::{Retry, RetryDecision, StorageError};
use std::time::Duration;

/// What comes before the next attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// So much time.
    For(Duration),
    /// A transaction that was prepared has to end.
    UntilPreparedEnds,
}

/// The conflicts that a piece of work has met since it last got on.
#[derive(Clone, Debug, Default)]
pub struct Conflicts {
    retry: Option<Retry>,
}

impl Conflicts {
    /// The work got on: what it meets from now on is met for the first time.
    #[inline]
    pub fn got_on(&mut self) {
        if self.retry.is_some() {
            self.retry = None;
        }
    }

    /// Decides about the error of the last attempt, and counts it: what to wait for, or the error that ends the work. That is
    /// another one where a client is to be told of a conflict.
    pub fn met(&mut self, operation: &Operation, error: Error) -> Result<Pause> {
        let Some(cause) = storage_error(&error) else { return Err(error) };
        let statistics = operation.context.statistics();
        match &cause {
            StorageError::WriteConflict => statistics.write_conflicts.increment(),
            StorageError::PrepareConflict => statistics.prepare_conflicts.increment(),
            StorageError::TemporarilyUnavailable(_) => statistics.temporarily_unavailable.increment(),
            StorageError::TransactionTooLargeForCache(_) => statistics.transaction_too_large.increment(),
            _ => {}
        }
        let retry = self.retry.get_or_insert_with(|| Retry::new(operation.retry_policy));
        match retry.decide(cause.clone(), &operation.retry_counters) {
            RetryDecision::Fail(told) if told == cause => Err(error),
            RetryDecision::Fail(told) => Err(Error::from(told).context(error.reason().to_owned())),
            RetryDecision::Again(pause) => Ok(Pause::For(pause)),
            RetryDecision::AfterPrepared => Ok(Pause::UntilPreparedEnds),
        }
    }
}

/// What the client is told of an error that ends its transaction: it starts again after a conflict, so want of memory is one.
pub fn end_of_transaction(operation: &Operation, error: Error) -> Error {
    debug_assert!(operation.in_multi_document_transaction(), "others try again");
    Conflicts::default().met(operation, error).err().unwrap_or_else(|| StorageError::WriteConflict.into())
}

/// Runs `body` until it succeeds or fails for good. `what` and the namespace are named if it fails with another error than the
/// body's.
pub async fn write_conflict_retry<T>(
    operation: &mut Operation,
    what: &str,
    namespace: &Namespace,
    mut body: impl FnMut(&mut Operation) -> Result<T>,
) -> Result<T> {
    let mut attempts = Attempts::new(operation);
    loop {
        match attempts.attempt(operation, what, namespace, &mut body)? {
            Outcome::Done(value) => return Ok(value),
            Outcome::Again(Pause::For(pause), _) if pause.is_zero() => {}
            Outcome::Again(Pause::For(pause), _) => {
                let sleep = operation.env.clock().sleep(pause);
                operation.context.interruptible(sleep).await?;
            }
            Outcome::Again(Pause::UntilPreparedEnds, epoch) => {
                let wait = operation.recovery_unit.engine().prepare_wait(epoch);
                operation.context.interruptible(wait).await??;
            }
        }
    }
}

/// The same for callers that may block their thread: start-up, oplog application, side units.
pub fn write_conflict_retry_blocking<T>(
    operation: &mut Operation,
    what: &str,
    namespace: &Namespace,
    mut body: impl FnMut(&mut Operation) -> Result<T>,
) -> Result<T> {
    let mut attempts = Attempts::new(operation);
    loop {
        match attempts.attempt(operation, what, namespace, &mut body)? {
            Outcome::Done(value) => return Ok(value),
            Outcome::Again(Pause::For(pause), _) if pause.is_zero() => {}
            Outcome::Again(Pause::For(pause), _) => operation.env.clock().pause(pause),
            Outcome::Again(Pause::UntilPreparedEnds, epoch) => {
                operation.recovery_unit.engine().prepare_wait(epoch).block()?;
            }
        }
    }
}

/// The storage error that an error of the server stands for, where retries care.
pub fn storage_error(error: &Error) -> Option<StorageError> {
    // Both conflicts have one code, since clients know only one: the source tells them apart. Fail points give none.
    let source = std::error::Error::source(error).and_then(|source| source.downcast_ref());
    let reason = || error.reason().to_owned();
    match error.code() {
        ErrorCode::WriteConflict if source == Some(&StorageError::PrepareConflict) => {
            Some(StorageError::PrepareConflict)
        }
        ErrorCode::WriteConflict => Some(StorageError::WriteConflict),
        ErrorCode::TemporarilyUnavailable => Some(StorageError::TemporarilyUnavailable(reason())),
        ErrorCode::TransactionTooLargeForCache => Some(StorageError::TransactionTooLargeForCache(reason())),
        _ => None,
    }
}

/// What came of an attempt.
enum Outcome<T> {
    Done(T),
    /// Another one after the pause. The epoch of prepared transactions is that before the attempt.
    Again(Pause, u64),
}

/// The attempts of one body.
struct Attempts {
    conflicts: Conflicts,
    /// Inside a unit of work that is not a transaction's there is one attempt.
    single: bool,
}

impl Attempts {
    fn new(operation: &Operation) -> Attempts {
        let single = operation.recovery_unit.in_unit_of_work() && !operation.retry_policy.multi_document;
        Attempts { conflicts: Conflicts::default(), single }
    }

    /// Runs the body once.
    fn attempt<T>(
        &mut self,
        operation: &mut Operation,
        what: &str,
        namespace: &Namespace,
        body: &mut impl FnMut(&mut Operation) -> Result<T>,
    ) -> Result<Outcome<T>> {
        operation.context.check()?;
        let epoch = operation.recovery_unit.engine().prepare_epoch();
        let error = match body(operation) {
            Ok(value) => return Ok(Outcome::Done(value)),
            Err(error) => error,
        };
        if self.single || storage_error(&error).is_none() {
            return Err(error);
        }
        let code = error.code();
        let pause = self.conflicts.met(operation, error).map_err(|told| match told.code() == code {
            true => told,
            false => told.context(format!("{what} on {namespace}")),
        })?;
        operation.recovery_unit.abandon_snapshot()?;
        Ok(Outcome::Again(pause, epoch))
    }
}
