//! What fsyncLock holds: the global lock, shared, in an operation of its own that outlives the command, and the engine's promise
//! to leave its files alone. Everything committed is on disk by then.

use crate::Data;
use pando_base::{Error, ErrorCode, OperationContext, Result};
use pando_locks::{Deadline, GlobalLockOptions, Mode, Wait};
use pando_operation::Operation;
use pando_storage::{CheckpointKind, Freeze};
use std::time::Duration;

/// Keeps writers out, and the files as they are, until it is dropped.
pub struct FsyncLock {
    frozen: Option<Box<dyn Freeze>>,
    operation: Operation,
}

impl Drop for FsyncLock {
    fn drop(&mut self) {
        // Whoever writes next may be waited for by a checkpoint, so the engine goes first.
        self.frozen = None;
        self.operation.locker.unlock_everything();
    }
}

impl FsyncLock {
    /// Waits for writers in progress, flushes, and keeps new ones out. The wait is the command's: it ends when the command is
    /// killed or after `longest`.
    pub(crate) async fn acquire(
        data: &Data,
        context: &OperationContext,
        longest: Option<Duration>,
        allows_failure: bool,
    ) -> Result<FsyncLock> {
        let mut held = FsyncLock { frozen: None, operation: data.services.internal_operation("fsyncLockWorker") };
        let deadline = longest.map(|longest| Deadline::after(data.services.env.clock(), longest));
        let wait = Wait::of(context).with_deadline(deadline);
        let locked = held.operation.locker.hold_global(Mode::S, GlobalLockOptions::default(), &wait).await;
        locked.map_err(|error| match error.code() {
            ErrorCode::LockTimeout => Error::new(ErrorCode::LockTimeout, "Fsync lock timed out"),
            _ => error,
        })?;
        match flush(data) {
            Err(error) if !allows_failure => return Err(error),
            _ => {}
        }
        let engine = &data.services.engine;
        data.services.env.tasks().blocking(&mut || held.frozen = engine.freeze().ok());
        if held.frozen.is_none() && !allows_failure {
            return Err(Error::new(ErrorCode::CommandFailed, "the storage engine does not keep still"));
        }
        Ok(held)
    }
}

/// Everything that was committed is on disk afterwards.
pub(crate) fn flush(data: &Data) -> Result<()> {
    let engine = &data.services.engine;
    let mut outcome = Ok(());
    data.services.env.tasks().blocking(&mut || {
        let flushed = engine.flush_log().and_then(|_| engine.checkpoint(CheckpointKind::Automatic));
        outcome = flushed.map(|_| ()).map_err(Error::from);
    });
    outcome
}
