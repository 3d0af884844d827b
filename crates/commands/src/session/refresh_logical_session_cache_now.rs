//! `refreshLogicalSessionCacheNow`: writes the sessions in use down, as happens now and then by itself.

use super::upkeep;
use crate::{Access, CommandRow, Invocation, run_boxed};

pub(super) const ROW: CommandRow = CommandRow {
    name: "refreshLogicalSessionCacheNow",
    help: "force the logical session cache to refresh. Test command only.",
    run: |invocation, _| run_boxed(run(invocation)),
    privileges: Access::Nothing,
    ..CommandRow::DEFAULT
};

async fn run(invocation: &Invocation) -> pando_base::Result<()> {
    upkeep::refresh_sessions(invocation.data()?, &invocation.node.operations).await
}
