//! Fail points that leave pipelines and filters as they were written, by MongoDB's names: a test runs both forms and compares.

use pando_base::{AnyFailPoint, FailPoint};

/// Stages stay in their order, and expressions are not folded.
pub static DISABLE_PIPELINE_OPTIMIZATION: FailPoint = FailPoint::new("disablePipelineOptimization");
/// Filters keep their form.
pub static DISABLE_MATCH_OPTIMIZATION: FailPoint = FailPoint::new("disableMatchExpressionOptimization");

/// All of them.
pub const FAIL_POINTS: &[&dyn AnyFailPoint] = &[&DISABLE_PIPELINE_OPTIMIZATION, &DISABLE_MATCH_OPTIMIZATION];
