//! `replSetStepUp`: the member stands for election at once.

use super::{SET_COMMAND, blocking, require_set};
use crate::{Access, Action, CommandRow, Invocation, run_boxed};
use pando_base::{ErrorCode, Result, ensure};

pub(super) const ROW: CommandRow = CommandRow {
    name: "replSetStepUp",
    help: "internal",
    run: |invocation, _| run_boxed(std::future::ready(run(invocation))),
    privileges: Access::Cluster(&[Action::ReplSetStateChange]),
    ..SET_COMMAND
};

fn run(invocation: &Invocation) -> Result<()> {
    let data = invocation.data()?;
    require_set(data)?;
    blocking(invocation, || data.replication_parts.step_up())?;
    ensure!(data.replication.is_writable_primary(), ErrorCode::CommandFailed, "Election failed.");
    Ok(())
}
