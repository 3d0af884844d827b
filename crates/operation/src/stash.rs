//! What a multi-document transaction keeps between its statements: an operation's recovery unit with its open unit of work, its
//! locks, and what upper layers remember.
//!
//! A statement is an operation of its own, with a context of its own; it is made from the stash when it begins
//! ([`Services::resumed`]) and leaves it when it ends ([`Operation::stash`]). The ticket is given back meanwhile: a client that
//! thinks does not keep others out. A stash that is dropped rolls the transaction back and gives its locks back.

use crate::{Operation, Services};
use pando_base::{OperationContext, Result};
use pando_locks::Wait;
use pando_storage::{RetryPolicy, WriteUnitOfWork};

/// A transaction without an operation of its own.
pub struct Stash {
    /// Nobody's. None once somebody has taken it up. In a box: it changes hands a dozen times for each statement.
    operation: Option<Box<Operation>>,
}

impl Operation {
    /// Ends the operation and keeps its transaction.
    pub fn stash(mut self: Box<Self>) -> Stash {
        if self.locker.is_locked() {
            self.locker.release_ticket();
        }
        self.context = OperationContext::nobody();
        self.recovery_unit.set_meter(None);
        Stash { operation: Some(self) }
    }
}

impl Services {
    /// The operation of a context, which goes on with a transaction.
    pub fn resumed(&self, context: OperationContext, mut stash: Stash) -> Box<Operation> {
        let Some(mut operation) = stash.operation.take() else { return Box::new(self.operation_of(context)) };
        operation.recovery_unit.set_meter(context.meter().cloned());
        operation.retry_policy = RetryPolicy { multi_document: true, ..self.retry_policy(&context) };
        operation.context = context;
        (operation.lock_wait_max, operation.last_commit) = (None, None);
        operation
    }
}

impl Stash {
    /// Takes a ticket again for the locks that are held, if there is one; false if it has to be waited for.
    pub fn retake_ticket(&mut self, wait: &Wait<'_>) -> Result<bool> {
        match &mut self.operation {
            Some(operation) if operation.locker.is_locked() => operation.locker.retake_ticket(wait),
            _ => Ok(true),
        }
    }

    /// Takes a ticket again for the locks that are held.
    pub async fn reacquire_ticket(&mut self, wait: &Wait<'_>) -> Result<()> {
        match &mut self.operation {
            Some(operation) if operation.locker.is_locked() => operation.locker.reacquire_ticket(wait).await,
            _ => Ok(()),
        }
    }
}

impl Drop for Stash {
    fn drop(&mut self) {
        let Some(operation) = &mut self.operation else { return };
        // Rolled back first: nobody gets the locks before the writes are gone.
        drop(WriteUnitOfWork::resume(&mut operation.recovery_unit));
        operation.locker.end_unit_of_work();
        operation.locker.unlock_everything();
    }
}
