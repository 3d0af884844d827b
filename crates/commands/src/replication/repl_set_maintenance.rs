//! `replSetMaintenance`: a secondary hides its data, or shows it again.

use super::{SET_COMMAND, require_set};
use crate::{Access, Action, CommandRow, Invocation, run_boxed};
use pando_base::Result;
use pando_locks::{LockRequest, Mode, ResourceId, Wait};

pub(super) const ROW: CommandRow = CommandRow {
    name: "replSetMaintenance",
    help: "{ replSetMaintenance : bool }\nEnable or disable maintenance mode.",
    run: |invocation, _| run_boxed(run(invocation)),
    privileges: Access::Cluster(&[Action::ReplSetStateChange]),
    ..SET_COMMAND
};

async fn run(invocation: &Invocation) -> Result<()> {
    let data = invocation.data()?;
    require_set(data)?;
    let operation = invocation.operation()?;
    let transition = LockRequest::new(ResourceId::REPLICATION_STATE_TRANSITION, Mode::X);
    operation.locker.lock(transition, &Wait::of(&operation.context)).await?;
    let is_on = invocation.target().is_true();
    data.replication.change_topology(|topology| topology.maintenance(is_on))
}
