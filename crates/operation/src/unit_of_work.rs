//! A unit of work of a whole operation: the recovery unit's together with the locker's.
//!
//! The storage layer's unit borrows the recovery unit alone; then observers, which want the whole operation, could not be
//! called inside. This one borrows the operation and leaves the storage unit open in it meanwhile (`release`), taking it up
//! again to end it. Units nest as storage's do: an inner one that is dropped without commit dooms the outer.
//!
//! The locks taken inside are given back after the end, either way: a DDL is published before anybody else gets its locks.

use crate::Operation;
use pando_base::{Result, Timestamp};
use pando_storage::{Committed, WriteUnitOfWork};
use std::ops::{Deref, DerefMut};

/// A unit of work in progress. Rolls back when dropped without [`UnitOfWork::commit`].
#[must_use = "a unit of work that is dropped rolls back"]
pub struct UnitOfWork<'a> {
    operation: &'a mut Operation,
    outermost: bool,
    finished: bool,
}

impl<'a> UnitOfWork<'a> {
    /// Begins a unit, or joins the one in progress.
    pub fn begin(operation: &'a mut Operation) -> UnitOfWork<'a> {
        let outermost = !operation.recovery_unit.in_unit_of_work();
        if outermost {
            let released = WriteUnitOfWork::begin(&mut operation.recovery_unit).release();
            debug_assert!(released.is_ok(), "an outermost unit can be released");
        }
        operation.locker.begin_unit_of_work();
        UnitOfWork { operation, outermost, finished: false }
    }

    /// Leaves the outermost unit open in the operation, for a multi-document transaction: [`UnitOfWork::resume`] ends it.
    pub fn release(mut self) {
        debug_assert!(self.outermost, "only the outermost unit can be left open");
        self.finished = true;
    }

    /// Takes up a unit that was released.
    pub fn resume(operation: &'a mut Operation) -> UnitOfWork<'a> {
        debug_assert!(operation.recovery_unit.in_unit_of_work(), "there is a unit to resume");
        UnitOfWork { operation, outermost: true, finished: false }
    }

    /// Makes the outermost unit prepared and leaves it open: afterwards it only commits or rolls back. On an error everything is
    /// rolled back.
    pub fn prepare(mut self, timestamp: Timestamp) -> Result<()> {
        debug_assert!(self.outermost, "only the outermost unit can be prepared");
        let mut unit = WriteUnitOfWork::resume(&mut self.operation.recovery_unit)?;
        unit.prepare(timestamp)?;
        unit.release()?;
        self.finished = true;
        Ok(())
    }

    /// Commits the outermost unit and tells what it left behind; a nested one leaves that to the outer unit. On an error
    /// everything is rolled back.
    pub fn commit(mut self) -> Result<Option<Committed>> {
        if self.outermost {
            self.finished = true;
            let committed =
                WriteUnitOfWork::resume(&mut self.operation.recovery_unit).and_then(WriteUnitOfWork::commit);
            self.operation.locker.end_unit_of_work();
            let committed = committed?;
            if let Some(committed) = &committed {
                let before = self.operation.last_commit.unwrap_or_default();
                self.operation.last_commit = Some(before.joined(committed.position));
            }
            return Ok(committed);
        }
        // A unit that failed inside this one makes this fail, and the drop passes the failure on.
        WriteUnitOfWork::begin(&mut self.operation.recovery_unit).commit()?;
        self.finished = true;
        self.operation.locker.end_unit_of_work();
        Ok(None)
    }
}

impl Drop for UnitOfWork<'_> {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        let unit = &mut self.operation.recovery_unit;
        // Storage's unit rolls back, or marks the outer one as failed, when it is dropped.
        if self.outermost {
            drop(WriteUnitOfWork::resume(unit));
        } else if unit.in_unit_of_work() {
            drop(WriteUnitOfWork::begin(unit));
        }
        self.operation.locker.end_unit_of_work();
    }
}

impl Deref for UnitOfWork<'_> {
    type Target = Operation;

    fn deref(&self) -> &Operation {
        self.operation
    }
}

impl DerefMut for UnitOfWork<'_> {
    fn deref_mut(&mut self) -> &mut Operation {
        self.operation
    }
}
