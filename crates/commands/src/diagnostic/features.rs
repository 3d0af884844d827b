//! `features`: a relic that shells of some age ask for.

use crate::{Access, CommandRow, Invocation, run_boxed};
use pando_base::Result;
use pando_doc::DocBuilder;

pub(super) const ROW: CommandRow = CommandRow {
    name: "features",
    help: "return build level feature settings",
    run: |invocation, reply| run_boxed(std::future::ready(run(invocation, reply))),
    privileges: Access::Nothing,
    ..CommandRow::DEFAULT
};

fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    reply.append("oidMachine", i64::from(invocation.node.machine.facts().process_id));
    Ok(())
}
