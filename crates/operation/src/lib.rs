//! What one operation carries through the server, and what all operations of a node share.
//!
//! - [`Operation`]: the context (who asks, how long, stopped or not), the recovery unit, the locker, the environment.
//! - [`UnitOfWork`]: a group of writes of an operation that commit or roll back together, with its locks.
//! - [`Stash`]: a multi-document transaction between its statements.
//! - [`Services`]: the handles of the whole node from which operations are made. Layers above have their own structs beside
//!   it.
//! - [`Conflicts`] and [`write_conflict_retry`]: what is done when storage has rolled work back for contention or for want of
//!   memory.
//!
//! This crate knows neither collections nor BSON nor replication; it only puts together what lies below.

mod extensions;
mod operation;
mod parameters;
mod retry;
mod services;
mod stash;
#[cfg(test)]
mod tests;
mod unit_of_work;
mod yielding;

pub use extensions::Extensions;
pub use operation::{ContextInterruption, Operation};
pub use parameters::{
    PARAMETERS, TEMPORARILY_UNAVAILABLE_BACKOFF_BASE_MS, TEMPORARILY_UNAVAILABLE_MAX_RETRIES,
    TRANSACTION_TOO_LARGE_FOR_CACHE_THRESHOLD, tell_engine,
};
pub use retry::{
    Conflicts, Pause, end_of_transaction, storage_error, write_conflict_retry, write_conflict_retry_blocking,
};
pub use services::Services;
pub use stash::Stash;
pub use unit_of_work::UnitOfWork;
pub use yielding::yield_now;
