//! `getCmdLineOpts`: how the node was started.

use crate::{Access, Action, CommandRow, Invocation, run_boxed};
use pando_base::Result;
use pando_doc::DocBuilder;

pub(super) const ROW: CommandRow = CommandRow {
    name: "getCmdLineOpts",
    help: "get argv",
    run: |invocation, reply| run_boxed(std::future::ready(run(invocation, reply))),
    is_admin_only: true,
    privileges: Access::Cluster(&[Action::GetCmdLineOpts]),
    ..CommandRow::DEFAULT
};

fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let options = &invocation.node.options;
    reply.array("argv", |words| options.arguments.iter().for_each(|word| words.push(word)));
    reply.append("parsed", &options.parsed);
    Ok(())
}
