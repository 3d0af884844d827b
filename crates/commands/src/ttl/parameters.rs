//! What can be set of the TTL monitor.

use pando_base::{AnyParameter, Parameter};

pub(super) static ENABLED: Parameter<bool> =
    Parameter::new("ttlMonitorEnabled", true, "Documents that have expired are deleted.");

pub(super) static SLEEP_SECONDS: Parameter<i32> =
    Parameter::new("ttlMonitorSleepSecs", 60, "How long the TTL monitor sleeps between two passes, in seconds.")
        .at_least(1);

pub(super) static BATCH_DELETES: Parameter<bool> = Parameter::new(
    "ttlMonitorBatchDeletes",
    true,
    "The TTL monitor visits indexes in turn and deletes a part of what has expired at each visit, so that none waits for another.",
);

pub(super) static SUB_PASS_TARGET_SECONDS: Parameter<i32> = Parameter::new(
    "ttlMonitorSubPassTargetSecs",
    60,
    "How long a sub-pass of the TTL monitor goes on visiting indexes, in seconds; 0 to visit each once.",
)
.at_least(0);

pub(super) static TARGET_TIME_MS: Parameter<i32> = Parameter::new(
    "ttlIndexDeleteTargetTimeMS",
    1000,
    "How long the TTL monitor deletes by one index at a time, in milliseconds; 0 for as long as there is something.",
)
.at_least(0);

pub(super) static TARGET_DOCUMENTS: Parameter<i32> = Parameter::new(
    "ttlIndexDeleteTargetDocs",
    50_000,
    "How many documents the TTL monitor deletes by one index at a time; 0 for all that have expired.",
)
.at_least(0);

pub(super) static LOW_PRIORITY_SUB_PASSES: Parameter<i32> = Parameter::new(
    "ttlCollLowPrioritySubpassLimit",
    10,
    "After so many sub-passes in a row that did not delete everything expired in a collection, its deletes get the usual priority.",
)
.at_least(1);

/// The parameters of this area.
pub static PARAMETERS: &[&dyn AnyParameter] = &[
    &ENABLED,
    &SLEEP_SECONDS,
    &BATCH_DELETES,
    &SUB_PASS_TARGET_SECONDS,
    &TARGET_TIME_MS,
    &TARGET_DOCUMENTS,
    &LOW_PRIORITY_SUB_PASSES,
];
