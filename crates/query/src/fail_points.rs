//! Places where tests have plans fail, by MongoDB's names.

use pando_base::{AnyFailPoint, Error, FailPoint, Result};

/// Every plan fails as soon as it is asked for documents.
static ALWAYS_FAILS: FailPoint = FailPoint::new("planExecutorAlwaysFails");

/// All of them.
pub const FAIL_POINTS: &[&dyn AnyFailPoint] = &[&ALWAYS_FAILS];

/// Fails if a test wants every plan to.
pub fn check_plan() -> Result<()> {
    match ALWAYS_FAILS.should_fail() {
        true => Err(Error::location(4382101, "PlanExecutor hit planExecutorAlwaysFails fail point")),
        false => Ok(()),
    }
}

/// Does a test want plans to fail? Then there are no short ways past them.
pub(crate) fn are_on() -> bool {
    ALWAYS_FAILS.is_on()
}
