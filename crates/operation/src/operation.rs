//! One operation.
//!
//! Its parts are public fields on purpose: a call that needs the locker and the recovery unit at once borrows both. They
//! belong together for the operation's life; nobody swaps one, but for a transaction that stashes its recovery unit and
//! locker between requests.

use crate::{Extensions, UnitOfWork};
use pando_base::{OperationContext, Result};
use pando_env::{BoxedFuture, Env};
use pando_locks::{Deadline, Interruption, Locker, Wait};
use pando_storage::{LogPosition, NoReplication, RecoveryUnit, RetryCounters, RetryPolicy};
use std::sync::Arc;
use std::time::Duration;

/// What one operation carries.
pub struct Operation {
    /// Who asked for it, how long it may take, whether it was told to stop.
    pub context: OperationContext,
    /// Its snapshot and its unit of work.
    pub recovery_unit: RecoveryUnit,
    /// Its locks.
    pub locker: Locker,
    /// Time, chance, tasks.
    pub env: Env,
    /// How it is tried again. `multi_document` also tells that it belongs to a multi-document transaction, `secondary`
    /// that it applies what a primary has done. `internal` tells that it has no client.
    pub retry_policy: RetryPolicy,
    /// Where its conflicts are counted.
    pub retry_counters: Arc<RetryCounters>,
    /// What upper layers keep with it.
    pub extensions: Extensions,
    /// How long it waits for a lock, if not as long as it may take at all: a transaction that waits keeps others from its own.
    pub lock_wait_max: Option<Duration>,
    /// Where its last commit lies in the log: what a client who wants its writes on disk waits for.
    pub last_commit: Option<LogPosition>,
}

impl Operation {
    /// Begins a unit of work, or joins the one in progress.
    pub fn unit_of_work(&mut self) -> UnitOfWork<'_> {
        UnitOfWork::begin(self)
    }

    /// Runs the body in a unit of work and commits it; an error rolls back.
    pub fn in_unit_of_work<T>(&mut self, body: impl FnOnce(&mut Operation) -> Result<T>) -> Result<T> {
        let mut unit = self.unit_of_work();
        let value = body(&mut unit)?;
        unit.commit()?;
        Ok(value)
    }

    /// What may end a wait of this operation: a kill or its deadline.
    pub fn interruption(&self) -> ContextInterruption<'_> {
        ContextInterruption(&self.context)
    }

    /// True inside a multi-document transaction.
    pub fn in_multi_document_transaction(&self) -> bool {
        self.retry_policy.multi_document
    }

    /// An operation beside this one with a recovery unit and a locker of its own, for a write that must commit whatever
    /// becomes of this one. It holds no locks: those of this operation must cover what it does.
    pub fn beside(&self) -> Operation {
        // It reads the newest data, for which nothing is asked of replication.
        let engine = Arc::clone(self.recovery_unit.engine());
        let recovery_unit = RecoveryUnit::new(engine, Arc::new(NoReplication));
        Operation {
            context: self.context.clone(),
            recovery_unit,
            locker: self.locker.manager().locker_of(self.context.id()),
            env: self.env.clone(),
            retry_policy: RetryPolicy { multi_document: false, ..self.retry_policy },
            retry_counters: Arc::clone(&self.retry_counters),
            extensions: Extensions::default(),
            lock_wait_max: None,
            last_commit: None,
        }
    }
}

/// An operation's context as what ends a wait for a lock.
pub struct ContextInterruption<'a>(&'a OperationContext);

impl ContextInterruption<'_> {
    /// The wait of this operation: until it is killed or its deadline passes.
    pub fn wait(&self) -> Wait<'_> {
        Wait::interruptible(self).with_deadline(self.0.deadline_ns().map(Deadline::at_ns))
    }
}

impl Interruption for ContextInterruption<'_> {
    fn check(&self) -> Result<()> {
        self.0.check()
    }

    fn interrupted(&self) -> BoxedFuture<'_, pando_base::Error> {
        Box::pin(self.0.killed())
    }
}
