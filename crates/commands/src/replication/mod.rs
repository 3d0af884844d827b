//! Commands about the node's set, one file each; and the set as other commands and dispatch see it (`view`).
//!
//! They are not parsed strictly, as in MongoDB: fields that nobody knows pass. What reads or writes files runs where blocking
//! is allowed.

mod append_oplog_note;
mod apply_ops;
mod interruption;
mod repl_set_abort_primary_catch_up;
mod repl_set_freeze;
mod repl_set_get_config;
mod repl_set_get_rbid;
mod repl_set_get_status;
mod repl_set_heartbeat;
mod repl_set_initiate;
mod repl_set_maintenance;
mod repl_set_reconfig;
mod repl_set_request_votes;
mod repl_set_resize_oplog;
mod repl_set_step_down;
mod repl_set_step_up;
mod repl_set_sync_from;
mod repl_set_test;
mod view;

pub(crate) use apply_ops::{ApplyOpsArguments, UuidUse, read_operation, uuid_use};
pub use interruption::{await_ends, interrupt_writers};
pub use view::{
    NotInitiated, OneMember, ReplicationView, StandAlone, TopologyVersion, append_cluster_time, check_as_secondary,
};

use crate::{CommandRow, Data, Invocation};
use pando_base::{Error, Result};

/// The commands of this area.
pub static ROWS: &[CommandRow] = &[
    append_oplog_note::ROW,
    apply_ops::ROW,
    repl_set_abort_primary_catch_up::ROW,
    repl_set_freeze::ROW,
    repl_set_get_config::ROW,
    repl_set_get_rbid::ROW,
    repl_set_get_status::ROW,
    repl_set_heartbeat::ROW,
    repl_set_initiate::ROW,
    repl_set_maintenance::ROW,
    repl_set_reconfig::ROW,
    repl_set_request_votes::ROW,
    repl_set_resize_oplog::ROW,
    repl_set_step_down::ROW,
    repl_set_step_up::ROW,
    repl_set_sync_from::ROW,
    repl_set_test::ROW,
];

/// What the commands of this area have in common.
const SET_COMMAND: CommandRow = CommandRow { is_admin_only: true, ..CommandRow::DEFAULT };

/// Fails unless the node is a member of a set that was initiated.
fn require_set(data: &Data) -> Result<()> {
    data.replication.with_topology(|topology| topology.require_config().map(|_| ()))
}

/// Does something that reads or writes files.
fn blocking<T>(invocation: &Invocation, step: impl Fn() -> Result<T>) -> Result<T> {
    let mut outcome = None;
    invocation.node.env.tasks().blocking(&mut || outcome = Some(step()));
    outcome.unwrap_or_else(|| Err(Error::internal("a blocking step was not run")))
}
