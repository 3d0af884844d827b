//! `testRecoverToStable`: takes the data back to the stable timestamp, reads the catalog again, applies the oplog from there on,
//! and goes on with index builds. Afterwards everything is as it was before: what a rollback does, without its loss.

use crate::locking::wait_of;
use crate::{Access, CommandRow, Data, Invocation, run_boxed};
use pando_base::{Error, ErrorCode, Result, Timestamp, ensure};
use pando_doc::{DocBuilder, Value};
use pando_locks::{GlobalLockOptions, Mode};
use pando_operation::{Operation, yield_now};
use pando_repl::ReplGate;
use pando_repl::recovery::RecoveryOutcome;
use std::time::Duration;

/// How long it waits for readers that hold no lock.
const BUSY_WAIT: Duration = Duration::from_millis(10);

pub(super) const ROW: CommandRow = CommandRow {
    name: "testRecoverToStable",
    help: "internal testing command. Recovers to the stable timestamp and resumes index builds",
    run: |invocation, reply| run_boxed(run(invocation, reply)),
    is_admin_only: true,
    is_for_tests: true,
    privileges: Access::Nothing,
    ..CommandRow::DEFAULT
};

crate::arguments! {
    /// What testRecoverToStable takes.
    struct Arguments<'a> of "testRecoverToStable" {
        _comment: Option<Value<'a>> = "$comment",
    }
}

async fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    Arguments::parse(&invocation.request)?;
    let data = invocation.data()?;
    let is_replicated = data.replication.is_replicated();
    ensure!(is_replicated, ErrorCode::NoReplicationEnabled, "This node was not started with replication enabled.");
    ensure!(data.replication.is_writable_primary(), ErrorCode::NotWritablePrimary, "not primary");
    let mut operation = invocation.operation()?;
    if let Err(error) = keep_everybody_out(data, &mut operation).await {
        data.index_builds.go_on(data.index_builds.take_left()).await?;
        return Err(error);
    }
    let put_down = data.index_builds.put_down_all();
    let stable = roll_back(data, &mut operation).await;
    // Nothing was taken back, nothing has to be stable.
    let builders = data.index_builds.reopen(put_down, *stable.as_ref().unwrap_or(&Timestamp::MAX));
    let applied = stable.and_then(|stable| blocking(data, || data.replication_parts.apply_after(stable)));
    operation.locker.unlock_everything();
    data.index_builds.go_on(builders?).await?;
    let RecoveryOutcome { from, applied, .. } = applied?;
    reply.append("stableTimestamp", from);
    reply.append("numOpsApplied", i64::try_from(applied).unwrap_or(i64::MAX));
    Ok(())
}

/// Stops index builds, and locks everything. A build may begin before the lock is there.
async fn keep_everybody_out(data: &Data, operation: &mut Operation) -> Result<()> {
    loop {
        data.index_builds.interrupt_all().await;
        operation.locker.hold_global(Mode::X, GlobalLockOptions::default(), &wait_of(operation)).await?;
        if data.index_builds.active().iter().all(|build| !build.is_two_phase) {
            return Ok(());
        }
        operation.locker.unlock_everything();
    }
}

/// Takes the data back; waits for readers that hold no locks.
async fn roll_back(data: &Data, operation: &mut Operation) -> Result<Timestamp> {
    loop {
        if let Some(stable) = blocking(data, || data.replication_parts.roll_back_to_stable())? {
            return Ok(stable);
        }
        operation.context.interruptible(operation.env.clock().sleep(BUSY_WAIT)).await?;
        yield_now().await;
    }
}

fn blocking<T>(data: &Data, step: impl Fn() -> Result<T>) -> Result<T> {
    let mut outcome = None;
    data.services.env.tasks().blocking(&mut || outcome = Some(step()));
    outcome.unwrap_or_else(|| Err(Error::internal("a blocking step was not run")))
}
