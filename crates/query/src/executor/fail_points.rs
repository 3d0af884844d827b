//! Places where tests hold plans or have them fail, by MongoDB's names.

use super::BatchSource;
use pando_base::{AnyFailPoint, FailPoint, OperationContext, Result};

/// Scans of a collection stand still.
static COLLECTION_SCAN: FailPoint = FailPoint::new("hangCollScanDoWork");
/// A scan of an index cannot go on after it has let others run.
pub(crate) static INDEX_SCAN_RESTORE: FailPoint = FailPoint::new("throwDuringIndexScanRestore");

/// All of them.
pub static FAIL_POINTS: &[&dyn AnyFailPoint] = &[&COLLECTION_SCAN, &INDEX_SCAN_RESTORE];

/// Before a plan goes on: true if it is to stand still.
pub(super) fn stands_still(executor: &dyn BatchSource) -> bool {
    COLLECTION_SCAN.is_on() && executor.plan_summary().contains("COLLSCAN")
}

/// Until it may go on.
pub(super) async fn stand_still(context: &OperationContext) -> Result<()> {
    COLLECTION_SCAN.rest(context).await
}
