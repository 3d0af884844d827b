//! Trying an operation's body again when storage has rolled it back.
//!
//! What to do about an error is decided by storage's `Retry`; here is the waiting around it, which gives way to kills and
//! deadlines. Between attempts the snapshot is let go of. A body that runs inside a unit of work is run once: only the
//! outermost loop can let go.

use crate::Operation;
use pando_base::{Error, ErrorCode, Namespace, Result};
use pando_storage::{Retry, RetryDecision, StorageError};
use std::ops::ControlFlow;
use std::time::Duration;

/// Runs `body` until it succeeds or fails for good. `what` and the namespace are named if it does not.
pub async fn write_conflict_retry<T>(
    operation: &mut Operation,
    what: &str,
    namespace: &Namespace,
    mut body: impl FnMut(&mut Operation) -> Result<T>,
) -> Result<T> {
    let mut attempts = Attempts::new(operation);
    loop {
        match attempts.attempt(operation, what, namespace, &mut body)? {
            ControlFlow::Break(value) => return Ok(value),
            ControlFlow::Continue(Pause::For(pause)) if pause.is_zero() => {}
            ControlFlow::Continue(Pause::For(pause)) => {
                let sleep = operation.env.clock().sleep(pause);
                operation.context.interruptible(sleep).await?;
            }
            ControlFlow::Continue(Pause::UntilPreparedEnds(epoch)) => {
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
            ControlFlow::Break(value) => return Ok(value),
            ControlFlow::Continue(Pause::For(pause)) if pause.is_zero() => {}
            ControlFlow::Continue(Pause::For(pause)) => operation.env.clock().pause(pause),
            ControlFlow::Continue(Pause::UntilPreparedEnds(epoch)) => {
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

/// What to wait for before the next attempt.
enum Pause {
    For(Duration),
    /// Until a transaction that was prepared when this epoch was read has ended.
    UntilPreparedEnds(u64),
}

/// The attempts of one body.
struct Attempts {
    retry: Retry,
    /// Inside a unit of work that is not a transaction's there is one attempt.
    single: bool,
}

impl Attempts {
    fn new(operation: &Operation) -> Attempts {
        let single = operation.recovery_unit.in_unit_of_work() && !operation.retry_policy.multi_document;
        Attempts { retry: Retry::new(operation.retry_policy), single }
    }

    /// Runs the body once.
    fn attempt<T>(
        &mut self,
        operation: &mut Operation,
        what: &str,
        namespace: &Namespace,
        body: &mut impl FnMut(&mut Operation) -> Result<T>,
    ) -> Result<ControlFlow<T, Pause>> {
        operation.context.check()?;
        let epoch = operation.recovery_unit.engine().prepare_epoch();
        let error = match body(operation) {
            Ok(value) => return Ok(ControlFlow::Break(value)),
            Err(error) => error,
        };
        let Some(cause) = storage_error(&error).filter(|_| !self.single) else { return Err(error) };
        let decision = self.retry.decide(cause.clone(), &operation.retry_counters);
        match decision {
            RetryDecision::Fail(told) if told == cause => Err(error),
            RetryDecision::Fail(told) => Err(Error::from(told).context(format!("{what} on {namespace}"))),
            RetryDecision::Again(pause) => {
                operation.context.statistics().write_conflicts.add(1);
                operation.recovery_unit.abandon_snapshot()?;
                Ok(ControlFlow::Continue(Pause::For(pause)))
            }
            RetryDecision::AfterPrepared => {
                operation.context.statistics().prepare_conflicts.add(1);
                operation.recovery_unit.abandon_snapshot()?;
                Ok(ControlFlow::Continue(Pause::UntilPreparedEnds(epoch)))
            }
        }
    }
}
