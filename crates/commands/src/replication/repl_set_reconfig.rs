//! `replSetReconfig`: another configuration takes the place of the present one.

use super::{SET_COMMAND, blocking, require_set};
use crate::{Access, Action, CommandRow, Invocation, run_boxed};
use pando_base::{Component, Error, ErrorCode, Result, Severity, log};

pub(super) const ROW: CommandRow = CommandRow {
    name: "replSetReconfig",
    help: "Adjust configuration of a replica set\n{ replSetReconfig : config_object }",
    run: |invocation, _| run_boxed(std::future::ready(run(invocation))),
    privileges: Access::Cluster(&[Action::ReplSetConfigure]),
    ..SET_COMMAND
};

fn run(invocation: &Invocation) -> Result<()> {
    let data = invocation.data()?;
    require_set(data)?;
    let Some(config) = invocation.target().as_document() else {
        return Err(Error::new(ErrorCode::UnknownError, "no configuration specified"));
    };
    let is_forced = invocation.body().get("force").is_some_and(|force| force.is_true());
    let log = &invocation.node.log;
    log!(
        log,
        Severity::Info,
        Component::Replication,
        21352,
        "replSetReconfig admin command received from client",
        "force" = is_forced
    );
    blocking(invocation, || data.replication_parts.reconfig(config, is_forced))
}
