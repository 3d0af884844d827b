//! `clearLog`: forgets the last lines of the log.

use crate::{Access, CommandRow, Invocation, run_boxed};
use pando_base::{ErrorCode, Result, ensure};

pub(super) const ROW: CommandRow = CommandRow {
    name: "clearLog",
    help: "{ clearLog : 'global' }",
    run: |invocation, _| run_boxed(std::future::ready(run(invocation))),
    is_admin_only: true,
    is_for_tests: true,
    privileges: Access::Nothing,
    ..CommandRow::DEFAULT
};

fn run(invocation: &Invocation) -> Result<()> {
    let name = invocation.target_text()?;
    ensure!(name == "global", ErrorCode::InvalidOptions, "Only the 'global' log can be cleared");
    invocation.node.log.clear_recent_lines();
    Ok(())
}
