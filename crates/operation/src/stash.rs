//! What a multi-document transaction keeps between its statements: an operation's recovery unit with its open unit of work, its
//! locks, and what upper layers remember.
//!
//! A statement is an operation of its own, with a context of its own; it is made from the stash when it begins
//! ([`Services::resumed`]) and leaves it when it ends ([`Operation::stash`]). The ticket is given back meanwhile: a client that
//! thinks does not keep others out. A stash that is dropped rolls the transaction back and gives its locks back.

use crate::{Extensions, Operation, Services};
use pando_base::{OperationContext, Result};
use pando_locks::{Locker, Wait};
use pando_storage::{RecoveryUnit, WriteUnitOfWork};

/// A transaction without an operation.
pub struct Stash {
    /// None once an operation has taken it up. In a box, since it changes hands a dozen times for each statement.
    parts: Option<Box<Parts>>,
}

struct Parts {
    recovery_unit: RecoveryUnit,
    locker: Locker,
    extensions: Extensions,
}

impl Operation {
    /// Ends the operation and keeps its transaction.
    pub fn stash(self) -> Stash {
        let Operation { recovery_unit, locker, extensions, .. } = self;
        if locker.is_locked() {
            locker.release_ticket();
        }
        Stash { parts: Some(Box::new(Parts { recovery_unit, locker, extensions })) }
    }
}

impl Services {
    /// The operation of a context, which goes on with a transaction.
    pub fn resumed(&self, context: OperationContext, mut stash: Stash) -> Operation {
        let Some(parts) = stash.parts.take() else { return self.operation_of(context) };
        let Parts { recovery_unit, locker, extensions } = *parts;
        let mut operation = self.operation_with(context, recovery_unit, locker);
        operation.extensions = extensions;
        operation.retry_policy.multi_document = true;
        operation
    }
}

impl Stash {
    /// Takes a ticket again for the locks that are held.
    pub async fn reacquire_ticket(&mut self, wait: &Wait<'_>) -> Result<()> {
        match &mut self.parts {
            Some(parts) if parts.locker.is_locked() => parts.locker.reacquire_ticket(wait).await,
            _ => Ok(()),
        }
    }
}

impl Drop for Stash {
    fn drop(&mut self) {
        let Some(parts) = &mut self.parts else { return };
        // Rolled back first: nobody gets the locks before the writes are gone.
        drop(WriteUnitOfWork::resume(&mut parts.recovery_unit));
        parts.locker.end_unit_of_work();
        parts.locker.unlock_everything();
    }
}
