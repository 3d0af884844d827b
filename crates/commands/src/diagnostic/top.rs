//! `top`: how each collection is used.

use crate::{Access, Action, CommandRow, Invocation, run_boxed};
use pando_base::Result;
use pando_doc::DocBuilder;

pub(super) const ROW: CommandRow = CommandRow {
    name: "top",
    help: "usage by collection, in micros ",
    run: |invocation, reply| run_boxed(std::future::ready(run(invocation, reply))),
    is_admin_only: true,
    privileges: Access::Cluster(&[Action::Top]),
    ..CommandRow::DEFAULT
};

fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let top = &invocation.data()?.top;
    reply.document("totals", |totals| {
        totals.append("note", "all times in microseconds");
        top.append_to(totals);
    });
    Ok(())
}
