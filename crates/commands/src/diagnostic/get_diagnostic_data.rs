//! `getDiagnosticData`: the last sample of what the node says of itself.

use crate::{Access, Action, CommandRow, Invocation, run_boxed};
use pando_base::Result;
use pando_doc::DocBuilder;
use pando_env::Place;

pub(super) const ROW: CommandRow = CommandRow {
    name: "getDiagnosticData",
    help: "get latest diagnostic data collection snapshot",
    run: |invocation, reply| run_boxed(std::future::ready(run(invocation, reply))),
    is_admin_only: true,
    privileges: Access::Cluster(&[Action::ServerStatus, Action::ReplSetGetStatus]),
    place: Place::Lanes,
    ..CommandRow::DEFAULT
};

fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    reply.append("data", invocation.node.diagnostic_sample());
    Ok(())
}
