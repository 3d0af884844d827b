//! `reapLogicalSessionCacheNow`: removes what sessions that are gone have left, as happens now and then by itself.

use super::upkeep;
use crate::{Access, CommandRow, Invocation, run_boxed};

pub(super) const ROW: CommandRow = CommandRow {
    name: "reapLogicalSessionCacheNow",
    help: "force the logical session cache to reap. Test command only.",
    run: |invocation, _| run_boxed(run(invocation)),
    privileges: Access::Nothing,
    ..CommandRow::DEFAULT
};

async fn run(invocation: &Invocation) -> pando_base::Result<()> {
    upkeep::reap_sessions(invocation.data()?).await
}
