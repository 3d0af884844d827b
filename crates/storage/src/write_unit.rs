//! The scope of a group of writes that commit or roll back together.
//!
//! A [`WriteUnitOfWork`] borrows the operation's recovery unit and passes it on by dereference: calls that write take it
//! like the recovery unit itself. A unit begun inside another joins it: its commit only says that this part is well. A unit
//! that goes out of scope without commit rolls back everything: the outermost at once, a nested one by marking the
//! outer unit as failed, after which no write and no commit of it succeeds.
//!
//! A multi-document transaction lives longer than one request. [`WriteUnitOfWork::release`] leaves the unit open in its
//! recovery unit; [`WriteUnitOfWork::resume`] takes it up again. A recovery unit dropped in between rolls back.

use crate::{Committed, RecoveryUnit, Result, StorageError};
use pando_base::Timestamp;
use std::ops::{Deref, DerefMut};

/// A unit of work in progress. Rolls back when dropped without [`WriteUnitOfWork::commit`].
#[must_use = "a unit of work that is dropped rolls back"]
pub struct WriteUnitOfWork<'a> {
    recovery_unit: &'a mut RecoveryUnit,
    outermost: bool,
    /// Committed or released: nothing is left to do on drop.
    finished: bool,
}

impl<'a> WriteUnitOfWork<'a> {
    /// Begins a unit, or joins the one in progress.
    pub fn begin(recovery_unit: &'a mut RecoveryUnit) -> WriteUnitOfWork<'a> {
        let outermost = !recovery_unit.in_unit_of_work();
        if outermost {
            recovery_unit.begin_unit_of_work(false);
        }
        WriteUnitOfWork { recovery_unit, outermost, finished: false }
    }

    /// Begins a unit whose writes the upper layers are to replicate as one oplog entry. Inside another unit that one must
    /// group its entries too.
    pub fn begin_grouped(recovery_unit: &'a mut RecoveryUnit) -> Result<WriteUnitOfWork<'a>> {
        if recovery_unit.in_unit_of_work() && !recovery_unit.groups_oplog_entries() {
            return Err(StorageError::IllegalOperation("the outer unit of work does not group oplog entries".into()));
        }
        let outermost = !recovery_unit.in_unit_of_work();
        if outermost {
            recovery_unit.begin_unit_of_work(true);
        }
        Ok(WriteUnitOfWork { recovery_unit, outermost, finished: false })
    }

    /// Goes on with a unit that was released.
    pub fn resume(recovery_unit: &'a mut RecoveryUnit) -> Result<WriteUnitOfWork<'a>> {
        match &mut recovery_unit.unit {
            Some(unit) if unit.released => unit.released = false,
            _ => return Err(StorageError::IllegalOperation("there is no unit of work to resume".into())),
        }
        Ok(WriteUnitOfWork { recovery_unit, outermost: true, finished: false })
    }

    /// Leaves the unit open in its recovery unit. Only the outermost can be released.
    pub fn release(mut self) -> Result<()> {
        if !self.outermost {
            return Err(StorageError::IllegalOperation("a nested unit of work cannot be released".into()));
        }
        if let Some(unit) = &mut self.recovery_unit.unit {
            unit.released = true;
        }
        self.finished = true;
        Ok(())
    }

    /// Makes the unit prepared. Only the outermost can be.
    pub fn prepare(&mut self, timestamp: Timestamp) -> Result<()> {
        if !self.outermost {
            return Err(StorageError::IllegalOperation("a nested unit of work cannot be prepared".into()));
        }
        self.recovery_unit.prepare_unit_of_work(timestamp)
    }

    /// Commits the outermost unit and tells what it left behind; a nested one leaves that to the outer unit. On an error
    /// everything is rolled back.
    pub fn commit(mut self) -> Result<Option<Committed>> {
        if self.outermost {
            self.finished = true;
            return self.recovery_unit.commit_unit_of_work().map(Some);
        }
        // A unit that failed inside this one leaves it unfinished: the drop passes the failure on.
        if self.recovery_unit.unit.as_ref().is_none_or(|unit| unit.failed) {
            return Err(StorageError::IllegalOperation("a nested unit of work was rolled back".into()));
        }
        self.finished = true;
        Ok(None)
    }
}

impl Drop for WriteUnitOfWork<'_> {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        if self.outermost {
            self.recovery_unit.abort_unit_of_work();
        } else if let Some(unit) = &mut self.recovery_unit.unit {
            unit.failed = true;
        }
    }
}

impl Deref for WriteUnitOfWork<'_> {
    type Target = RecoveryUnit;

    fn deref(&self) -> &RecoveryUnit {
        self.recovery_unit
    }
}

impl DerefMut for WriteUnitOfWork<'_> {
    fn deref_mut(&mut self) -> &mut RecoveryUnit {
        self.recovery_unit
    }
}
