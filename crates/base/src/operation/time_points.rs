//! The fail points that bend the time limits of operations: no limit is ever reached, or each is at once.
//!
//! They act on operations that have a limit, and on nothing else. Where both are on, the first of them wins.

use crate::{AnyFailPoint, FailPoint};

/// Time limits are never reached.
pub(super) static NEVER_TIMES_OUT: FailPoint = FailPoint::new("maxTimeNeverTimeOut");

/// Time limits are reached at the first look.
pub(super) static ALWAYS_TIMES_OUT: FailPoint = FailPoint::new("maxTimeAlwaysTimeOut");

/// The fail points of operations.
pub static FAIL_POINTS: &[&dyn AnyFailPoint] = &[&NEVER_TIMES_OUT, &ALWAYS_TIMES_OUT];
