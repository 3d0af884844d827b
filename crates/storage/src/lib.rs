//! The storage engine interface, and what every engine shares above it.
//!
//! Two levels:
//!
//! * [`engine`]: what an engine implements. Ordered byte-string tables by ident, transactions with snapshots and
//!   timestamps, the log as oplog, checkpoints, backup, verification. Nothing here names a concrete engine.
//! * what the server uses, written once over that interface: [`RecoveryUnit`] (lazy begin, read sources, changes that run
//!   on commit or rollback), [`WriteUnitOfWork`], [`RecordStore`], [`SortedData`] and what is done about conflicts
//!   ([`Retry`]).
//!
//! `conformance` (behind the feature of that name) is the suite that any engine can run.
//!
//! This crate must not know collections, BSON or replication. What replication knows (last applied, majority committed)
//! reaches a [`RecoveryUnit`] through the [`ReadTimestamps`] trait.

#[cfg(feature = "conformance")]
pub mod conformance;
mod copy_list;
pub mod engine;
mod error;
mod record_id_codec;
mod record_store;
mod recovery_unit;
mod retry;
mod sorted_data;
mod write_unit;

pub use copy_list::{CopiedFile, CopyList, settle_copy};
pub use engine::*;
pub use error::{Result, StorageError};
pub use pando_base::RecordIdKind;
pub use record_store::{
    Direction, FAIL_POINTS, NewRecord, OplogRecordCursor, OplogRecordStore, Record, RecordCursor, RecordLoader,
    RecordStore,
};
pub use recovery_unit::{Change, NoReplication, PreCommitHook, ReadSource, ReadTimestamps, RecoveryUnit, SnapshotId};
pub use retry::{Retry, RetryCounters, RetryDecision, RetryPolicy};
pub use sorted_data::{IndexCursor, IndexEntry, IndexFormat, Insertion, SortedData, SortedDataLoader};
pub use write_unit::WriteUnitOfWork;
