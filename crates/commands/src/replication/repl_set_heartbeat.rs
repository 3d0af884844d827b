//! `replSetHeartbeat`: another member asks how this one is.

use super::SET_COMMAND;
use crate::{Access, Action, CommandRow, Invocation, run_boxed};
use pando_base::{ErrorCode, Result, ensure};
use pando_doc::DocBuilder;
use pando_env::Place;
use pando_repl::topology::{HeartbeatContext, HeartbeatRequest};

pub(super) const ROW: CommandRow = CommandRow {
    name: "replSetHeartbeat",
    help: "internal",
    run: |invocation, reply| run_boxed(std::future::ready(run(invocation, reply))),
    privileges: Access::Cluster(&[Action::Internal]),
    place: Place::Control,
    ..SET_COMMAND
};

fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let replication = &invocation.data()?.replication;
    let is_replicated = replication.with_topology(|topology| topology.mode().is_replicated());
    ensure!(is_replicated, ErrorCode::NoReplicationEnabled, "not running using replication");
    let request = HeartbeatRequest::parse(invocation.body())?;
    let context = HeartbeatContext { points: replication.points(), now_ms: replication.now_ms() };
    replication.with_topology(|topology| topology.answer_heartbeat(&request, &context, reply))
}
