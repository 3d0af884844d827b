//! Replication: this node's part in a replica set.
//!
//! * Pure: [`config`] (the set's configuration and its rules), [`topology`] (the state machine: initiation, election,
//!   stepping down; what hello and replSetGetStatus say), [`write_concern`], [`read_concern`].
//! * Time: [`ClusterClock`], [`OplogSlots`] (places in the oplog), `stable` (the engine's timestamps).
//! * Writing: [`OplogWriter`], the observer through which every replicated write leaves its entry.
//! * Applying: [`apply`], used by [`recovery`] now and by secondaries later.
//! * The shells: [`ReplicationNode`] (who may read and write, waiting for concerns) and [`startup`] (starting, initiating,
//!   reconfiguring).
//!
//! Today a set has one member: a majority has a write once it is on this node's disk. Nothing else relies on that:
//! members come as further inputs of the same state machine.
//!
//! This crate must not know sharding, commands or sockets.

pub mod apply;
mod clock;
pub mod config;
pub mod flow_control;
mod gate;
mod local_store;
mod member_state;
mod node;
mod oplog_writer;
mod prepared;
mod prepared_entries;
mod progress;
pub mod read_concern;
pub mod recovery;
mod rollback;
mod slots;
mod stable;
pub mod startup;
#[cfg(test)]
mod tests;
pub mod topology;
mod unfinished_builds;
pub mod write_concern;

pub use clock::{ClusterClock, MAX_DRIFT_SECONDS};
pub use gate::{NoGate, ReplGate};
pub use local_store::LocalStore;
pub use member_state::MemberState;
pub use node::{ReplicationNode, StepDown, WriteConcernOutcome};
pub use oplog_writer::{
    CommittedChain, OplogWriter, SKIP_PREPARE_MAJORITY, TRANSACTION_OPERATIONS_IN_ENTRY_MAX, TransactionOf,
    TransactionSize,
};
pub use progress::{Dated, Points, Progress};
pub use slots::{OplogSlots, ReservedSlots};
pub use stable::HISTORY_WINDOW_SECONDS;
pub use startup::ReplicationParts;

use pando_base::{AnyFailPoint, AnyParameter};

/// The fail points of replication.
pub static FAIL_POINTS: &[&dyn AnyFailPoint] = &[
    &stable::HOLD_STABLE,
    &oplog_writer::AFTER_RESERVING_PREPARE,
    &oplog_writer::ON_TRANSACTIONAL_WRITE,
    &SKIP_PREPARE_MAJORITY,
];

/// The parameters of replication.
pub static PARAMETERS: &[&dyn AnyParameter] =
    &[&MAX_DRIFT_SECONDS, &HISTORY_WINDOW_SECONDS, &TRANSACTION_OPERATIONS_IN_ENTRY_MAX];
