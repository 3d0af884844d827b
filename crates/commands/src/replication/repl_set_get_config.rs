//! `replSetGetConfig`: the configuration of the set.

use super::{SET_COMMAND, require_set};
use crate::{Access, Action, CommandRow, Invocation, run_boxed};
use pando_base::{ErrorCode, Result, ensure};
use pando_doc::DocBuilder;
use pando_env::Place;
use pando_session::extract;

/// For tests: shows members that do not count yet as such.
const INCLUDE_NEWLY_ADDED: &str = "$_internalIncludeNewlyAdded";

pub(super) const ROW: CommandRow = CommandRow {
    name: "replSetGetConfig",
    help: "Returns the current replica set configuration{ replSetGetConfig : 1 }",
    run: |invocation, reply| run_boxed(std::future::ready(run(invocation, reply))),
    privileges: Access::Cluster(&[Action::ReplSetGetConfig]),
    place: Place::Control,
    ..SET_COMMAND
};

fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    require_set(data)?;
    let body = invocation.body();
    let wants_commitment = extract::safe_boolean(body, "commitmentStatus")?.unwrap_or(false);
    ensure!(
        !body.contains(INCLUDE_NEWLY_ADDED) || invocation.node.options.test_commands_enabled,
        ErrorCode::InvalidOptions,
        "The '{INCLUDE_NEWLY_ADDED}' option is only supported when testing commands are enabled"
    );
    extract::safe_boolean(body, INCLUDE_NEWLY_ADDED)?;
    reply.append("config", data.replication.config_document()?);
    if wants_commitment {
        ensure!(
            data.replication.is_writable_primary(),
            ErrorCode::NotWritablePrimary,
            "commitmentStatus is only supported on primary."
        );
        // A configuration counts once it is on disk, and that is before it is installed.
        reply.append("commitmentStatus", true);
    }
    Ok(())
}
