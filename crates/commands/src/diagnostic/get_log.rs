//! `getLog`: the last lines of the log.

use crate::{Access, Action, CommandRow, Invocation, run_boxed};
use pando_base::{ErrorCode, Result, bail};
use pando_doc::DocBuilder;

pub(super) const ROW: CommandRow = CommandRow {
    name: "getLog",
    help: "{ getLog : '*' }  OR { getLog : 'global' }",
    run: |invocation, reply| run_boxed(std::future::ready(run(invocation, reply))),
    is_admin_only: true,
    privileges: Access::Cluster(&[Action::GetLog]),
    ..CommandRow::DEFAULT
};

crate::arguments! {
    /// What getLog takes beside the log's name: nothing.
    struct Arguments<'a> of "getLog" {}
}

fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    Arguments::parse(&invocation.request)?;
    let log = &invocation.node.log;
    // What is null is not given.
    let name = if invocation.target().is_nullish() { "" } else { invocation.target_text()? };
    let (total, lines) = match name {
        "*" => {
            reply.array("names", |names| ["global", "startupWarnings"].iter().for_each(|name| names.push(*name)));
            return Ok(());
        }
        "global" => (log.lines_written() as i64, log.recent_lines()),
        "startupWarnings" => {
            let warnings = log.startup_warnings();
            (warnings.len() as i64, warnings)
        }
        other => bail!(ErrorCode::OperationFailed, "No log named '{other}'"),
    };
    match i32::try_from(total) {
        Ok(total) => reply.append("totalLinesWritten", total),
        Err(_) => reply.append("totalLinesWritten", total),
    }
    reply.array("log", |array| lines.iter().for_each(|line| array.push(&**line)));
    Ok(())
}
