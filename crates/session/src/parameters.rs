//! The parameters of sessions.

use pando_base::{AnyParameter, Parameter, Settable};

/// After so long without use a session is forgotten. Told to clients as `logicalSessionTimeoutMinutes`.
pub static LOCAL_LOGICAL_SESSION_TIMEOUT_MINUTES: Parameter<i64> = Parameter::new(
    "localLogicalSessionTimeoutMinutes",
    30,
    "How many minutes a logical session lasts after its last use.",
)
.at_least(1)
.settable(Settable::AtStartup);

/// How often sessions in memory and in their collection are brought in line.
pub static LOGICAL_SESSION_REFRESH_MILLIS: Parameter<i64> = Parameter::new(
    "logicalSessionRefreshMillis",
    300_000,
    "How often, in milliseconds, logical sessions are written down and expired ones are removed.",
)
.at_least(1)
.settable(Settable::AtStartup);

/// All of them.
pub static PARAMETERS: &[&dyn AnyParameter] =
    &[&LOCAL_LOGICAL_SESSION_TIMEOUT_MINUTES, &LOGICAL_SESSION_REFRESH_MILLIS];
