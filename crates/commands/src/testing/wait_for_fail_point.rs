//! `waitForFailPoint`: ends when a fail point was entered often enough.

use crate::arguments::SafeLong;
use crate::{Access, CommandRow, Invocation, run_boxed};
use pando_base::Result;

pub(super) const ROW: CommandRow = CommandRow {
    name: "waitForFailPoint",
    help: "wait for a fail point to be entered a certain number of times",
    run: |invocation, _| run_boxed(run(invocation)),
    is_admin_only: true,
    is_allowed_before_authentication: true,
    is_stopped_when_abandoned: true,
    is_for_tests: true,
    privileges: Access::Nothing,
    ..CommandRow::DEFAULT
};

crate::arguments! {
    /// What waitForFailPoint takes.
    struct Arguments<'a> of "waitForFailPoint" {
        /// How often, counted from the start of the process.
        times_entered: SafeLong = "timesEntered",
    }
}

async fn run(invocation: &Invocation) -> Result<()> {
    let arguments = Arguments::parse(&invocation.request)?;
    let point = invocation.node.fail_points.find(invocation.target_text()?)?;
    let times = u64::try_from(arguments.times_entered.0).unwrap_or(0);
    invocation.context.interruptible(point.entered(times)).await
}
