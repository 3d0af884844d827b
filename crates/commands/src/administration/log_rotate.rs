//! `logRotate`: begins a new log file.

use crate::{Access, Action, CommandRow, Invocation, run_boxed};
use pando_base::Result;
use pando_doc::Value;

pub(super) const ROW: CommandRow = CommandRow {
    name: "logRotate",
    help: "rotate the process's logs",
    run: |invocation, _| run_boxed(std::future::ready(run(invocation))),
    is_admin_only: true,
    privileges: Access::Cluster(&[Action::LogRotate]),
    ..CommandRow::DEFAULT
};

crate::arguments! {
    /// What logRotate takes beside the kind of log.
    struct Arguments<'a> of "logRotate" {
        /// Why, for the log.
        reason: Option<&'a str> = "comment",
    }
}

fn run(invocation: &Invocation) -> Result<()> {
    Arguments::parse(&invocation.request)?;
    let kind = match invocation.target() {
        Value::String(_) => Some(invocation.target_text()?),
        _ => None,
    };
    invocation.node.control.rotate_logs(kind)
}
