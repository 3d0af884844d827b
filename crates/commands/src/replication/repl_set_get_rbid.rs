//! `replSetGetRBID`: changes whenever the node has undone something, so that others notice.

use super::{SET_COMMAND, blocking, require_set};
use crate::{Access, Action, CommandRow, Invocation, run_boxed};
use pando_base::Result;
use pando_doc::DocBuilder;
use pando_env::Place;

pub(super) const ROW: CommandRow = CommandRow {
    name: "replSetGetRBID",
    help: "internal",
    run: |invocation, reply| run_boxed(std::future::ready(run(invocation, reply))),
    privileges: Access::Cluster(&[Action::Internal]),
    place: Place::Control,
    ..SET_COMMAND
};

fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    require_set(data)?;
    reply.append("rbid", blocking(invocation, || data.replication_parts.rollback_id())?);
    Ok(())
}
