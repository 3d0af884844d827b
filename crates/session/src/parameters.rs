//! The parameters of sessions.

use pando_base::{AnyParameter, Parameter, Settable};

/// After so long without use a session is forgotten. Told to clients as `logicalSessionTimeoutMinutes`.
pub static LOCAL_LOGICAL_SESSION_TIMEOUT_MINUTES: Parameter<i32> = Parameter::new(
    "localLogicalSessionTimeoutMinutes",
    30,
    "How many minutes a logical session lasts after its last use.",
)
.at_least(1)
.settable(Settable::AtStartup);

/// How often sessions in memory and in their collection are brought in line.
pub static LOGICAL_SESSION_REFRESH_MILLIS: Parameter<i32> = Parameter::new(
    "logicalSessionRefreshMillis",
    300_000,
    "How often, in milliseconds, logical sessions are written down and expired ones are removed.",
)
.at_least(1)
.settable(Settable::AtStartup);

/// Sessions are not written down by themselves; for tests.
pub static DISABLE_LOGICAL_SESSION_CACHE_REFRESH: Parameter<bool> = Parameter::new(
    "disableLogicalSessionCacheRefresh",
    false,
    "Logical sessions are written down and reaped only on request.",
)
.settable(Settable::AtStartup);

/// As many sessions may be in use between two refreshes.
pub static MAX_SESSIONS: Parameter<i32> =
    Parameter::new("maxSessions", 1_000_000, "How many logical sessions may be in use at once.")
        .at_least(1)
        .settable(Settable::AtStartup);

/// Records of what a session has written stay so long at least.
pub static TRANSACTION_RECORD_MINIMUM_LIFETIME_MINUTES: Parameter<i32> = Parameter::new(
    "TransactionRecordMinimumLifetimeMinutes",
    30,
    "How many minutes the record of a session's last write is kept at least.",
)
.at_least(0)
.settable(Settable::AtStartup);

/// A transaction that is older is aborted.
pub static TRANSACTION_LIFETIME_LIMIT_SECONDS: Parameter<i64> =
    Parameter::new("transactionLifetimeLimitSeconds", 60, "How many seconds a multi-document transaction may last.")
        .at_least(1);

/// A statement of a transaction waits so long for a lock; a negative number means for as long as it takes.
pub static MAX_TRANSACTION_LOCK_REQUEST_TIMEOUT_MILLIS: Parameter<i32> = Parameter::new(
    "maxTransactionLockRequestTimeoutMillis",
    5,
    "How many milliseconds an operation of a multi-document transaction waits for a lock; negative means no limit.",
);

/// All of them.
pub static PARAMETERS: &[&dyn AnyParameter] = &[
    &DISABLE_LOGICAL_SESSION_CACHE_REFRESH,
    &LOCAL_LOGICAL_SESSION_TIMEOUT_MINUTES,
    &LOGICAL_SESSION_REFRESH_MILLIS,
    &MAX_SESSIONS,
    &MAX_TRANSACTION_LOCK_REQUEST_TIMEOUT_MILLIS,
    &TRANSACTION_LIFETIME_LIMIT_SECONDS,
    &TRANSACTION_RECORD_MINIMUM_LIFETIME_MINUTES,
];
