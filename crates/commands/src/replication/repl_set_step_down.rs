//! `replSetStepDown`: the primary becomes a secondary.
//!
//! Writers that have begun are told to stop, and the lock of state transitions keeps others out until the state has changed.
//! Whoever comes then is refused.

use super::interruption::interrupt_writers;
use super::{SET_COMMAND, require_set};
use crate::{Access, Action, CommandRow, Invocation, run_boxed};
use pando_base::{Component, Result, Severity, log};
use pando_locks::{LockRequest, Mode, ResourceId, Wait};
use pando_operation::yield_now;
use pando_repl::topology::StepDownRequest;
use std::time::Duration;

pub(super) const ROW: CommandRow = CommandRow {
    name: "replSetStepDown",
    help: "{ replSetStepDown : <seconds> }\nStep down as primary.  Will not try to reelect self for the specified time \
           period (1 minute if no numeric secs value specified, or secs is 0).",
    run: |invocation, _| run_boxed(run(invocation)),
    privileges: Access::Cluster(&[Action::ReplSetStateChange]),
    ..SET_COMMAND
};

/// How often writers are told to stop while the lock is waited for.
const INTERRUPT_INTERVAL: Duration = Duration::from_millis(50);

async fn run(invocation: &Invocation) -> Result<()> {
    let data = invocation.data()?;
    require_set(data)?;
    let request = StepDownRequest::parse(invocation.body())?;
    let log = &invocation.node.log;
    log!(
        log,
        Severity::Info,
        Component::Replication,
        21579,
        "Attempting to step down in response to replSetStepDown command"
    );
    let step_down = data.replication.await_step_down(&invocation.context, request).await?;
    let operation = invocation.operation()?;
    interrupt_writers(&invocation.node, data, Some(invocation.context.id()));
    let transition = LockRequest::new(ResourceId::REPLICATION_STATE_TRANSITION, Mode::X);
    let wait = Wait::of(&operation.context);
    let mut locked = std::pin::pin!(operation.locker.lock(transition, &wait));
    loop {
        // Somebody may have begun since.
        tokio::select! {
            biased;
            outcome = &mut locked => break outcome?,
            () = data.services.env.clock().sleep(INTERRUPT_INTERVAL) => {}
        }
        interrupt_writers(&invocation.node, data, Some(invocation.context.id()));
        // Simulated time does not wait for tasks.
        yield_now().await;
    }
    data.replication.step_down(step_down)?;
    log!(log, Severity::Info, Component::Replication, 21580, "replSetStepDown command completed");
    Ok(())
}
