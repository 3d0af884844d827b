//! `replSetTest`: waits for a state of the member, for tests.

use super::{SET_COMMAND, require_set};
use crate::{Access, Action, CommandRow, Invocation, run_boxed};
use pando_base::{Error, ErrorCode, Result, bail, ensure};
use pando_doc::DocBuilder;
use pando_repl::MemberState;
use pando_session::extract;
use std::time::Duration;

pub(super) const ROW: CommandRow = CommandRow {
    name: "replSetTest",
    help: "Just for tests.\n",
    run: |invocation, reply| run_boxed(run(invocation, reply)),
    is_for_tests: true,
    privileges: Access::Cluster(&[Action::Internal]),
    ..SET_COMMAND
};

async fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    let body = invocation.body();
    if let Some(number) = extract::number(body, "waitForMemberState")? {
        let timeout_ms = extract::number(body, "timeoutMillis")?.ok_or_else(|| extract::missing("timeoutMillis"))?;
        return wait(invocation, number, timeout_ms).await;
    }
    if body.contains("getLastStableRecoveryTimestamp") {
        let checkpoint = data.services.engine.timestamps().checkpoint;
        reply.append_some("lastStableRecoveryTimestamp", Some(checkpoint).filter(|checkpoint| checkpoint.is_some()));
        return Ok(());
    }
    if body.contains("restartHeartbeats") {
        // There are none to begin anew.
        return Ok(());
    }
    require_set(data)
}

async fn wait(invocation: &Invocation, number: i64, timeout_ms: i64) -> Result<()> {
    let replication = &invocation.data()?.replication;
    let wanted = i32::try_from(number).ok().and_then(MemberState::from_number);
    let Some(wanted) = wanted else { bail!(ErrorCode::BadValue, "MemberState cannot have value {number}") };
    ensure!(timeout_ms >= 0, ErrorCode::BadValue, "Timeout duration cannot be negative");
    let reached = async {
        loop {
            let (state, counter) = replication.with_topology(|topology| (topology.state(), topology.counter()));
            if state == wanted {
                return;
            }
            replication.topology_changed(counter).await;
        }
    };
    let timeout = invocation.node.env.clock().sleep(Duration::from_millis(timeout_ms.unsigned_abs()));
    let either = async {
        tokio::select! {
            biased;
            () = reached => true,
            () = timeout => false,
        }
    };
    if invocation.context.interruptible(either).await? {
        return Ok(());
    }
    let state = replication.with_topology(|topology| topology.state());
    let reason = format!("Timed out waiting for state to become {}. Current state is {}", wanted.name(), state.name());
    Err(Error::new(ErrorCode::ExceededTimeLimit, reason))
}
