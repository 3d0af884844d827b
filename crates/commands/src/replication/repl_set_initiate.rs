//! `replSetInitiate`: the set begins with this configuration, or with one of this node alone.

use super::{SET_COMMAND, blocking};
use crate::{Access, Action, CommandRow, Invocation, run_boxed};
use pando_base::{Component, ErrorCode, Result, Severity, ensure, log};
use pando_doc::{Doc, DocBuilder, DocRef, Value};

pub(super) const ROW: CommandRow = CommandRow {
    name: "replSetInitiate",
    help: "Initiate/christen a replica set.",
    run: |invocation, reply| run_boxed(std::future::ready(run(invocation, reply))),
    privileges: Access::Cluster(&[Action::ReplSetConfigure]),
    ..SET_COMMAND
};

fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    let log = &invocation.node.log;
    log!(log, Severity::Info, Component::Replication, 21356, "replSetInitiate admin command received from client");
    let is_replicated = data.replication.with_topology(|topology| topology.mode().is_replicated());
    ensure!(is_replicated, ErrorCode::NoReplicationEnabled, "This node was not started with replication enabled.");
    let given = match invocation.target() {
        Value::Document(config) => config,
        _ => DocRef::EMPTY,
    };
    let parts = &data.replication_parts;
    if given.is_empty() {
        reply.append("info2", "no configuration specified. Using a default configuration for the set");
        reply.append("me", parts.own_host.to_string());
    }
    let config = with_version(given);
    blocking(invocation, || parts.initiate(config.view()))
}

/// A configuration that does not say which it is is the first.
fn with_version(config: DocRef<'_>) -> Doc {
    if config.is_empty() || config.contains("version") {
        return config.to_doc();
    }
    let mut numbered = DocBuilder::new();
    numbered.append_all(config);
    numbered.append("version", 1);
    numbered.finish()
}
