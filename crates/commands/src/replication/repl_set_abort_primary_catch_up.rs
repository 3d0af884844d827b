//! `replSetAbortPrimaryCatchUp`: a new primary does not wait for writes of the one before it. The only member never does.

use super::{SET_COMMAND, require_set};
use crate::{Access, Action, CommandRow, Invocation, run_boxed};
use pando_base::{ErrorCode, Result, bail};

pub(super) const ROW: CommandRow = CommandRow {
    name: "replSetAbortPrimaryCatchUp",
    help: "{ CmdReplSetAbortPrimaryCatchUp : 1 }\nAbort primary catch-up mode; immediately finish the transition to \
           primary without fetching any further unreplicated writes from any other online nodes",
    run: |invocation, _| run_boxed(std::future::ready(run(invocation))),
    privileges: Access::Cluster(&[Action::ReplSetStateChange]),
    ..SET_COMMAND
};

fn run(invocation: &Invocation) -> Result<()> {
    require_set(invocation.data()?)?;
    bail!(ErrorCode::IllegalOperation, "The node is not in catch-up mode.");
}
