//! Logical sessions: who they are, who has one checked out, and what was written in them.
//!
//! - [`LogicalSessionId`], [`SessionRequest`]: what requests say, and the rules for it.
//! - [`SessionCache`]: the sessions that clients use, until they are written down in `config.system.sessions`.
//! - [`SessionCatalog`]: an operation with a `txnNumber` checks its session out, so that operations of one session come one
//!   after the other, in the order of their arrival.
//! - [`Participant`]: the statements of a session's newest retryable write. [`History`] reads them from the oplog;
//!   [`SessionRecord`] is the document in `config.transactions` that says where the history ends.
//! - [`TransactionState`], [`OpenTransaction`]: a session's multi-document transaction.
//! - [`retried_update`] and its like: the answers to statements that were carried out before. [`label_error`]: which errors
//!   a driver may answer by sending the request again.
//!
//! This crate knows neither sockets nor replication: where `config.transactions` is kept is behind [`SessionTable`], and
//! the oplog is read through the engine.

mod account;
mod cache;
mod catalog;
pub mod extract;
pub mod fields;
mod history;
mod id;
mod labels;
mod parameters;
mod participant;
mod pre_image;
mod record;
mod request;
mod retried;
mod stored;
mod table;
#[cfg(test)]
mod tests;
mod transaction;

pub use account::{TransactionAccount, TransactionTimes};
pub use cache::{CachedSession, SessionCache, SessionCacheStatistics, TakenSessions};
pub use catalog::{
    ActiveSession, BLOCKED_BEHIND_PREPARED, CheckedOutSession, Family, KillToken, SessionCatalog, SessionInfo,
    writing_session,
};
pub use history::{History, INCOMPLETE_HISTORY_STATEMENT, Statements};
pub use id::{LogicalSessionId, NO_USER, UserDigest, user_digest};
pub use labels::{RETRYABLE_WRITE_ERROR, label_error, label_write_concern_error};
pub use parameters::{
    DISABLE_LOGICAL_SESSION_CACHE_REFRESH, LOCAL_LOGICAL_SESSION_TIMEOUT_MINUTES, LOGICAL_SESSION_REFRESH_MILLIS,
    MAX_SESSIONS, MAX_TRANSACTION_LOCK_REQUEST_TIMEOUT_MILLIS, PARAMETERS, TRANSACTION_LIFETIME_LIMIT_SECONDS,
    TRANSACTION_RECORD_MINIMUM_LIFETIME_MINUTES,
};
pub use participant::{NO_TXN_NUMBER, Participant, Purpose};
pub use pre_image::PreImage;
pub use record::{DurableState, SessionRecord};
pub use request::{RequestRules, SessionRequest, StatementNumbers};
pub use retried::{
    FindAndModifyResult, FindAndModifyShape, RetriedValue, StatementResult, retried_delete, retried_find_and_modify,
    retried_insert, retried_update,
};
pub use stored::StoredSessions;
pub use table::{Image, ImageKind, RecordPlace, SessionTable};
pub use transaction::{CommittedTransaction, Open, OpenTransaction, TransactionCounters, TransactionState};

/// The fail points of sessions.
pub static FAIL_POINTS: &[&dyn pando_base::AnyFailPoint] =
    &[&BLOCKED_BEHIND_PREPARED, &catalog::BLOCKED_BEHIND_INTERNAL];
