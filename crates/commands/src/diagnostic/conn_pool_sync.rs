//! `connPoolSync`: closes idle connections that this node keeps to others. A set of one has none, so that all are closed.

use crate::{Access, Action, CommandRow, Invocation, run_boxed};
use pando_base::Result;

pub(super) const ROW: CommandRow = CommandRow {
    name: "connPoolSync",
    help: "internal",
    run: |invocation, _| run_boxed(std::future::ready(run(invocation))),
    privileges: Access::Cluster(&[Action::ConnPoolSync]),
    ..CommandRow::DEFAULT
};

fn run(_: &Invocation) -> Result<()> {
    Ok(())
}
