//! `connPoolStats`: the connections that this node keeps to others. A set of one has none.

use crate::{Access, Action, CommandRow, Invocation, run_boxed};
use pando_base::Result;
use pando_doc::DocBuilder;

pub(super) const ROW: CommandRow = CommandRow {
    name: "connPoolStats",
    help: "stats about connections between servers in a replica set or sharded cluster.",
    run: |invocation, reply| run_boxed(std::future::ready(run(invocation, reply))),
    privileges: Access::Cluster(&[Action::ConnPoolStats]),
    ..CommandRow::DEFAULT
};

fn run(_: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    reply.append("numClientConnections", 0);
    reply.append("numAScopedConnections", 0);
    for name in ["totalInUse", "totalAvailable", "totalLeased", "totalCreated", "totalRefreshing", "totalRefreshed"] {
        reply.append(name, 0_i64);
    }
    reply.append("totalWasNeverUsed", 0_i64);
    reply.document("acquisitionWaitTimes", |_| {});
    for name in ["pools", "hosts", "replicaSets"] {
        reply.document(name, |_| {});
    }
    Ok(())
}
