//! What JavaScript of clients may take, and which functions it finds.

use pando_base::{AnyParameter, Parameter, ParameterSet};
use pando_doc::Doc;
use pando_script::ScriptLimits;

/// How much memory any JavaScript may take.
pub static HEAP_MB_MAX: Parameter<i32> =
    Parameter::new("jsHeapLimitMB", 1100, "How many megabytes the JavaScript of one request may take.").at_least(1);

/// How much memory JavaScript in queries may take.
pub static QUERY_HEAP_MB_MAX: Parameter<i32> = Parameter::new(
    "internalQueryJavaScriptHeapSizeLimitMB",
    100,
    "How many megabytes the JavaScript of one request may take, if jsHeapLimitMB is not less.",
)
.at_least(1);

/// How long a call may take.
pub static CALL_MS_MAX: Parameter<i32> = Parameter::new(
    "internalQueryJavaScriptFnTimeoutMillis",
    60 * 1000,
    "How many milliseconds one call of a JavaScript function may take.",
)
.above(0);

/// All of them.
pub static SCRIPT_PARAMETERS: &[&dyn AnyParameter] = &[&HEAP_MB_MAX, &QUERY_HEAP_MB_MAX, &CALL_MS_MAX];

/// The functions that a database has in `system.js`, by name: kept with an operation whose request may call them.
pub struct StoredFunctions(pub Doc);

/// What the parameters allow.
pub(crate) fn script_limits(parameters: &ParameterSet) -> ScriptLimits {
    let heap_mb_max = parameters.get(&HEAP_MB_MAX).min(parameters.get(&QUERY_HEAP_MB_MAX));
    ScriptLimits {
        heap_bytes_max: usize::try_from(heap_mb_max).unwrap_or(1) << 20,
        call_ms_max: u64::try_from(parameters.get(&CALL_MS_MAX)).unwrap_or(1),
    }
}
