//! `replSetSyncFrom`: whom the member should follow.

use super::{SET_COMMAND, require_set};
use crate::{Access, Action, CommandRow, Invocation, run_boxed};
use pando_base::Result;
use pando_doc::DocBuilder;
use pando_repl::config::HostAndPort;

pub(super) const ROW: CommandRow = CommandRow {
    name: "replSetSyncFrom",
    help: "{ replSetSyncFrom : \"host:port\" }\nChange who this member is syncing from.",
    run: |invocation, reply| run_boxed(std::future::ready(run(invocation, reply))),
    privileges: Access::Cluster(&[Action::ReplSetStateChange]),
    ..SET_COMMAND
};

fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    require_set(data)?;
    let target = invocation.target();
    let host = HostAndPort::parse(target.as_str().unwrap_or_default())?;
    reply.append("syncFromRequested", host.to_string());
    data.replication.change_topology(|topology| topology.sync_from(&host))
}
