//! The asynchronous shell around an executor: it lets others run when a batch yields.

use super::{BatchOutcome, BatchSource, Collections, DocumentSink, YieldCause, fail_points};
use pando_base::operation::{during, slice};
use pando_base::{Error, Result};
use pando_collection::rest_while_yielded;
use pando_operation::Operation;
pub use pando_operation::yield_now;

/// Fills a batch, yielding as often as needed; true if there is nothing more, for now at least.
pub async fn drive(
    executor: &mut dyn BatchSource,
    operation: &mut Operation,
    collections: &dyn Collections,
    sink: &mut (dyn DocumentSink + Send),
) -> Result<bool> {
    if !sink.is_full() {
        crate::fail_points::check_plan()?;
    }
    loop {
        if fail_points::stands_still(executor) {
            fail_points::stand_still(&operation.context).await?;
        }
        let epoch = operation.recovery_unit.engine().prepare_epoch();
        match next_batch(executor, operation, sink)? {
            outcome @ (BatchOutcome::Full | BatchOutcome::Exhausted) => {
                if operation.context.wants_details() {
                    executor.tell(&operation.context);
                }
                return Ok(outcome == BatchOutcome::Exhausted);
            }
            BatchOutcome::Yield(cause) => {
                executor.save();
                give_way(operation, cause, epoch).await?;
                executor.restore(operation, collections)?;
            }
        }
    }
}

/// The next batch. JavaScript in it ends when the operation has to, and keeps no worker of the runtime from others.
fn next_batch(
    executor: &mut dyn BatchSource,
    operation: &mut Operation,
    sink: &mut (dyn DocumentSink + Send),
) -> Result<BatchOutcome> {
    let context = operation.context.clone();
    if !executor.runs_scripts() {
        return during(&context, || executor.next_batch(operation, sink));
    }
    let env = operation.env.clone();
    let mut outcome = None;
    env.tasks().blocking(&mut || outcome = Some(during(&context, || executor.next_batch(operation, sink))));
    outcome.unwrap_or_else(|| Err(Error::internal("the batch was not asked for")))
}

/// Runs a plan to its end for what it does.
pub async fn drive_to_end(
    executor: &mut dyn BatchSource,
    operation: &mut Operation,
    collections: &dyn Collections,
) -> Result<u64> {
    let mut sink = super::batch::CountingSink::default();
    while !drive(executor, operation, collections, &mut sink).await? {}
    Ok(sink.0)
}

/// Gives up snapshot, locks and ticket, lets others run, and takes the locks again.
pub(crate) async fn give_way(operation: &mut Operation, cause: YieldCause, epoch: u64) -> Result<()> {
    operation.context.check()?;
    if operation.recovery_unit.in_unit_of_work() {
        return await_prepared(operation, epoch).await;
    }
    operation.context.statistics().yields.add(1);
    operation.recovery_unit.abandon_snapshot()?;
    let saved = operation.locker.save_and_unlock();
    rest_while_yielded(operation).await?;
    match cause {
        YieldCause::Time => {
            slice::note_yield();
            yield_now().await;
        }
        YieldCause::PrepareConflict => await_prepared(operation, epoch).await?,
        YieldCause::Conflict(pause) if !pause.is_zero() => {
            let sleep = operation.env.clock().sleep(pause);
            operation.context.interruptible(sleep).await?;
        }
        YieldCause::Conflict(_) => yield_now().await,
    }
    if let Some(saved) = saved {
        let interruption = operation.interruption();
        operation.locker.restore(&saved, &interruption.wait()).await?;
    }
    Ok(())
}

/// Waits until a transaction that was prepared has ended.
async fn await_prepared(operation: &mut Operation, epoch: u64) -> Result<()> {
    let wait = operation.recovery_unit.engine().prepare_wait(epoch);
    Ok(operation.context.interruptible(wait).await??)
}
