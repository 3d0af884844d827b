//! `appendOplogNote`: an entry that changes nothing.

use super::SET_COMMAND;
use crate::locking::lock_for_note;
use crate::{Access, Action, CommandRow, Invocation, SecondaryOk, run_boxed};
use pando_base::{ErrorCode, Namespace, Result, ensure};
use pando_operation::write_conflict_retry;
use pando_session::extract;

pub(super) const ROW: CommandRow = CommandRow {
    name: "appendOplogNote",
    help: "Adds a no-op entry to the oplog",
    run: |invocation, _| run_boxed(run(invocation)),
    secondary_ok: SecondaryOk::Never,
    takes_write_concern: true,
    privileges: Access::Cluster(&[Action::AppendOplogNote]),
    ..SET_COMMAND
};

async fn run(invocation: &Invocation) -> Result<()> {
    let data = invocation.data()?;
    let replication = &data.replication;
    let is_replicated = replication.with_topology(|topology| topology.mode().is_replicated());
    ensure!(is_replicated, ErrorCode::NoReplicationEnabled, "Must have replication set up to run \"appendOplogNote\"");
    let body = invocation.body();
    let note = extract::document(body, "data")?.ok_or_else(|| extract::missing("data"))?;
    if let Some(time) = extract::timestamp(body, "maxClusterTime")? {
        let applied = replication.points().applied.0.timestamp;
        ensure!(
            time > applied,
            ErrorCode::StaleClusterTime,
            "Requested maxClusterTime {time} is less or equal to the last primary OpTime: {applied}"
        );
    }
    let mut operation = invocation.operation()?;
    lock_for_note(&mut operation).await?;
    ensure!(replication.is_writable_primary(), ErrorCode::NotWritablePrimary, "Not a primary");
    write_conflict_retry(&mut operation, "appendOpLogNote", Namespace::oplog(), |operation| {
        operation.in_unit_of_work(|operation| data.oplog_writer().append_noop(operation, note).map(|_| ()))
    })
    .await
}
