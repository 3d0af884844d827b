//! The oracle: a storage engine so plain that it can be believed, and the histories that compare other engines with it.
//!
//! [`ModelEngine`] keeps every version of every key in ordered maps under one mutex and answers each question by looking at
//! all of them. It never forgets history, never merges, never caches. [`ModelDisk`] stands for the disk: a list of log
//! records of which a prefix is flushed, and the last checkpoint as a full copy. It outlives engines, so that a clean
//! restart and a power loss can be told apart.
//!
//! [`histories`] makes seeded random histories and plays them on any engine beside the oracle.
//!
//! How it is laid out: `data` is what tables hold and who sees it; `state` is an open engine's whole state, `writing`, `ending`
//! and `timestamps` are the rules on it, `record` and `disk` what lasts; the other modules dress that in the interface's
//! traits. Lock order: the
//! engine's mutex, then the disk's.
//!
//! This crate must not know any other engine.

mod bulk;
mod cursor;
mod data;
mod disk;
mod durability;
mod ending;
mod engine;
pub mod histories;
mod oplog;
mod record;
mod registry;
mod state;
mod timestamps;
mod transaction;
mod waiting;
mod writing;

#[cfg(test)]
mod tests;

pub use disk::{ModelDisk, RecordSummary};
pub use engine::{Mode, ModelEngine};
