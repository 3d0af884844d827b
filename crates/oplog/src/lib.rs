//! The oplog's entries and what produces them: types, their form in MongoDB 7.0's oplog, the differences between
//! documents that updates carry, and the observers through which every write is told.
//!
//! It knows documents and nothing else: not where entries are stored, not who replicates them, not how they are applied
//! to collections.
//!
//! Invariants:
//! - What is written reads back equal; fields stand in the order in which MongoDB writes them.
//! - Entries are idempotent: an update says what fields became, never how they changed.
//! - Reading an entry that is not one is an error, never a panic; entries come from peers and from disk.

pub mod build;
mod command;
#[cfg(test)]
mod damage;
pub mod diff;
mod entry;
mod fields;
pub mod observer;
mod op_time;
mod operation;
#[cfg(test)]
mod tests;
mod update;

pub use command::{ApplyOps, IndexBuild, OplogCommand};
pub use entry::{OPLOG_VERSION, OplogEntry, SessionInfo};
pub use observer::{ObserverRegistry, OpObserver};
pub use op_time::OpTime;
pub use operation::{OpKind, Operation, RetryImage, StatementIds};
pub use update::{UpdateChange, delta_object, update_object, update_object_of_fields, update_object_of_touched};
