//! `whatsmyuri`: the address by which the node knows the client.

use crate::{Access, CommandRow, Invocation, run_boxed};
use pando_base::Result;
use pando_doc::DocBuilder;
use pando_env::Place;

pub(super) const ROW: CommandRow = CommandRow {
    name: "whatsmyuri",
    help: "{whatsmyuri:1}",
    run: |invocation, reply| run_boxed(std::future::ready(run(invocation, reply))),
    is_allowed_before_authentication: true,
    privileges: Access::Nothing,
    place: Place::Control,
    ..CommandRow::DEFAULT
};

fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    reply.append("you", invocation.connection.client.remote());
    Ok(())
}
