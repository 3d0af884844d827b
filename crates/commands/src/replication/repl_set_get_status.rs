//! `replSetGetStatus`: the set as this node sees it.

use super::{SET_COMMAND, require_set};
use crate::{Access, Action, CommandRow, Invocation, run_boxed};
use pando_base::Result;
use pando_doc::DocBuilder;
use pando_env::Place;
use pando_session::extract;

pub(super) const ROW: CommandRow = CommandRow {
    name: "replSetGetStatus",
    help: "Report status of a replica set from the POV of this server\n{ replSetGetStatus : 1 }",
    run: |invocation, reply| run_boxed(std::future::ready(run(invocation, reply))),
    privileges: Access::Cluster(&[Action::ReplSetGetStatus]),
    place: Place::Control,
    ..SET_COMMAND
};

fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    require_set(data)?;
    // There is no initial sync to tell of; the field is only checked.
    extract::safe_boolean(invocation.body(), "initialSync")?;
    data.replication.append_status(reply)
}
