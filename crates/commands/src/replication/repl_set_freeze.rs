//! `replSetFreeze`: the member does not stand for election for a while.

use super::{SET_COMMAND, blocking, require_set};
use crate::{Access, Action, CommandRow, Invocation, run_boxed};
use pando_base::Result;
use pando_doc::{DocBuilder, Number};

pub(super) const ROW: CommandRow = CommandRow {
    name: "replSetFreeze",
    help: "{ replSetFreeze : <seconds> }\nThis node will not attempt to become primary until the time period specified \
           expires.\nYou can call again with {replSetFreeze:0} to unfreeze sooner.",
    run: |invocation, reply| run_boxed(std::future::ready(run(invocation, reply))),
    privileges: Access::Cluster(&[Action::ReplSetStateChange]),
    ..SET_COMMAND
};

fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    require_set(data)?;
    let seconds = invocation.target().as_number().map_or(0, Number::truncated_i64);
    let now_ms = data.replication.now_ms();
    let told = data.replication.change_topology(|topology| topology.freeze(seconds, now_ms))?;
    if let Some((name, text)) = told {
        reply.append(name, text);
    }
    match seconds {
        // The only member need not wait for anybody.
        0 => blocking(invocation, || data.replication_parts.tick()),
        _ => Ok(()),
    }
}
