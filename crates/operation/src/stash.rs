//! What a multi-document transaction keeps between its statements: an operation's recovery unit with its open unit of work, its
//! locks, and what upper layers remember.
//!
//! A statement is an operation of its own, with a context of its own; it takes the stash up when it begins
//! ([`Operation::unstash`]) and leaves it when it ends ([`Operation::stash`]). The ticket is given back meanwhile: a client that
//! thinks does not keep others out. A stash that is dropped rolls the transaction back and gives its locks back.

use crate::{Extensions, Operation};
use pando_base::Result;
use pando_locks::{Locker, Wait};
use pando_storage::{NoReplication, RecoveryUnit, WriteUnitOfWork};
use std::sync::Arc;

/// A transaction without an operation.
pub struct Stash {
    /// None once an operation has taken it up.
    parts: Option<Parts>,
}

struct Parts {
    recovery_unit: RecoveryUnit,
    locker: Locker,
    extensions: Extensions,
}

impl Operation {
    /// Takes the transaction out of the operation, which is left without data, locks or memory and can only be dropped.
    pub fn stash(&mut self) -> Stash {
        let engine = Arc::clone(self.recovery_unit.engine());
        let recovery_unit =
            std::mem::replace(&mut self.recovery_unit, RecoveryUnit::new(engine, Arc::new(NoReplication)));
        let nothing = self.locker.manager().locker();
        let locker = std::mem::replace(&mut self.locker, nothing);
        if locker.is_locked() {
            locker.release_ticket();
        }
        let extensions = std::mem::take(&mut self.extensions);
        self.retry_policy.multi_document = false;
        self.lock_wait_max = None;
        Stash { parts: Some(Parts { recovery_unit, locker, extensions }) }
    }

    /// Goes on with a transaction. The operation must be a new one.
    pub fn unstash(&mut self, mut stash: Stash) {
        debug_assert!(!self.locker.is_locked(), "an operation takes a transaction up before anything else");
        if let Some(Parts { recovery_unit, locker, extensions }) = stash.parts.take() {
            self.recovery_unit = recovery_unit;
            // What a statement takes is accounted to it.
            self.recovery_unit.set_meter(self.context.meter().cloned());
            self.locker = locker;
            self.extensions = extensions;
            self.retry_policy.multi_document = true;
        }
    }
}

impl Stash {
    /// Takes a ticket again for the locks that are held.
    pub async fn reacquire_ticket(&mut self, wait: &Wait<'_>) -> Result<()> {
        let Some(Parts { locker, .. }) = &mut self.parts else { return Ok(()) };
        match locker.is_locked() {
            true => locker.reacquire_ticket(wait).await,
            false => Ok(()),
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
