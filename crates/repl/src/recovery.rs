//! Start-up recovery: from the engine's recovery timestamp every entry of the oplog is applied again, so that the data is
//! as of the oplog's end.
//!
//! The engine has brought back replicated tables as of its last checkpoint, and the oplog as far as it is whole. An entry
//! was acknowledged only once it was on disk; so nothing acknowledged is missing afterwards. A crash on the way changes
//! nothing: the next start begins at the same checkpoint.
//!
//! Where the last checkpoint has no time (history had not begun, or the node was stand-alone in between) the data has
//! everything that the oplog tells of, and there is nothing to apply.

use crate::apply::{Applier, ApplyMode};
use crate::local_store::LocalStore;
use crate::node::ReplicationNode;
use pando_base::{Component, Error, ErrorCode, Log, Namespace, Result, Severity, Timestamp, log};
use pando_catalog::UnfinishedBuild;
use pando_doc::{Doc, doc};
use pando_operation::{Operation, Services};
use pando_oplog::{OpTime, OplogEntry};
use pando_session::fields::{Fields, timestamp};
use pando_storage::{Engine, Oplog, Urgency};

/// What recovery did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoveryOutcome {
    /// The checkpoint it began at.
    pub from: Timestamp,
    /// The newest entry.
    pub to: Timestamp,
    /// Entries applied.
    pub applied: u64,
    /// Transactions that are still prepared, by the entry that prepared them: to be rebuilt.
    pub prepared: Vec<OpTime>,
    /// Index builds that had not ended: to be taken up or discarded.
    pub unfinished_builds: Vec<UnfinishedBuild>,
}

/// Brings the data up to the oplog's end. Before anybody reads or writes.
pub fn recover(
    services: &Services,
    node: &ReplicationNode,
    applier: &Applier,
    local: &LocalStore,
) -> Result<RecoveryOutcome> {
    let engine = &services.engine;
    let oplog = engine.oplog().ok_or_else(|| Error::internal("recovery needs an oplog"))?;
    let mut operation = recovering(services)?;
    truncate(engine.as_ref(), oplog, &mut operation, local, &services.log)?;
    let from = engine.timestamps().recovery;
    let mut outcome = RecoveryOutcome { from, ..RecoveryOutcome::default() };
    if from.is_some() {
        let message = "Starting recovery oplog application at the stable timestamp";
        let (severity, component, stable) = (Severity::Info, Component::Replication, from.to_string());
        log!(services.log, severity, component, 21544, message, "stableTimestamp" = stable);
        apply_all(oplog, &mut operation, applier, &mut outcome)?;
    }
    outcome.unfinished_builds = applier.unfinished_builds();
    node.clock().advance(engine.timestamps().all_durable.max(min_valid(&mut operation, local)?));
    if let Some(last) = last_entry(oplog)? {
        let entry = OplogEntry::parse(last.view())?;
        outcome.to = entry.op_time.timestamp;
        node.clock().advance(entry.op_time.timestamp);
        node.change_topology(|topology| topology.learn_term(entry.op_time.term));
        node.progress().applied(entry.op_time, entry.wall_ms);
        // Everything that a restart finds is on disk.
        node.progress().durable(entry.op_time.timestamp);
    }
    Ok(outcome)
}

/// Applies every entry after a time that the data was taken back to, while the node runs. Nobody reads or writes meanwhile.
pub(crate) fn apply_after(services: &Services, applier: &Applier, from: Timestamp) -> Result<RecoveryOutcome> {
    let oplog = services.engine.oplog().ok_or_else(|| Error::internal("recovery needs an oplog"))?;
    // The data may stand between two entries.
    let from = oplog.backward()?.seek(from)?.map_or(from, |entry| entry.timestamp);
    let mut outcome = RecoveryOutcome { from, to: oplog.last().unwrap_or(from), ..RecoveryOutcome::default() };
    apply_all(oplog, &mut recovering(services)?, applier, &mut outcome)?;
    outcome.unfinished_builds = applier.unfinished_builds();
    Ok(outcome)
}

fn recovering(services: &Services) -> Result<Operation> {
    let mut operation = services.internal_operation("Recovery");
    operation.recovery_unit.set_urgency(Urgency::Exempt)?;
    operation.retry_policy.secondary = true;
    Ok(operation)
}

/// Cuts the oplog where replication says that it may have holes.
fn truncate(
    engine: &dyn Engine,
    oplog: &dyn Oplog,
    operation: &mut Operation,
    local: &LocalStore,
    log: &Log,
) -> Result<()> {
    let namespace = Namespace::oplog_truncate_after_point();
    let Some(document) = local.first(operation, namespace)? else { return Ok(()) };
    let point =
        Fields::of("oplogTruncateAfterPoint", document.view()).optional("oplogTruncateAfterPoint", timestamp)?;
    let Some(point) = point.filter(|point| point.is_some()) else { return Ok(()) };
    let recovery = engine.timestamps().recovery;
    if point <= recovery {
        let reason = format!("the oplog is to be cut at {point}, but the data is as of {recovery}");
        return Err(Error::new(ErrorCode::UnrecoverableRollbackError, reason));
    }
    oplog.truncate_after(point, true)?;
    let message = "Removed oplog entries that may follow a hole";
    let (severity, component) = (Severity::Info, Component::Replication);
    log!(log, severity, component, 21553, message, "truncateAfterPoint" = point.to_string());
    set_truncate_after_point(operation, local, Timestamp::NONE)
}

/// Says from where on the oplog may have holes; none for nowhere. Journaled, so that it counts after a crash.
pub fn set_truncate_after_point(operation: &mut Operation, local: &LocalStore, point: Timestamp) -> Result<()> {
    let document = doc! { "_id": "oplogTruncateAfterPoint", "oplogTruncateAfterPoint": point };
    local.replace(operation, Namespace::oplog_truncate_after_point(), document.view())
}

/// Times that are given out later are after this one. The oplog says so by itself, unless the node was stand-alone meanwhile
/// and its oplog is gone: times of the data must not lie in the future then, or checkpoints would leave it out.
pub(crate) fn set_min_valid(operation: &mut Operation, local: &LocalStore, timestamp: Timestamp) -> Result<()> {
    local.ensure(operation, &[Namespace::min_valid()])?;
    let document = doc! { "_id": "minValid", "ts": timestamp };
    local.replace(operation, Namespace::min_valid(), document.view())
}

fn min_valid(operation: &mut Operation, local: &LocalStore) -> Result<Timestamp> {
    let Some(document) = local.first(operation, Namespace::min_valid())? else { return Ok(Timestamp::NONE) };
    Ok(Fields::of("minValid", document.view()).optional("ts", timestamp)?.unwrap_or_default())
}

fn apply_all(
    oplog: &dyn Oplog,
    operation: &mut Operation,
    applier: &Applier,
    outcome: &mut RecoveryOutcome,
) -> Result<()> {
    let mut cursor = oplog.forward()?;
    let mut next = cursor.seek(outcome.from)?;
    if let Some(first) = next.as_ref().filter(|first| first.timestamp > outcome.from) {
        let reason = format!(
            "Oplog entry at {} is missing; actual entry found is {}. The data cannot be brought up to the oplog's end",
            outcome.from, first.timestamp
        );
        return Err(Error::new(ErrorCode::UnrecoverableRollbackError, reason));
    }
    while let Some(found) = next {
        // The checkpoint has the entry it stands at.
        if found.timestamp > outcome.from {
            let document = Doc::parse(found.entry)?;
            let entry = OplogEntry::parse(document.view())?;
            let applied = applier.apply(operation, &entry, ApplyMode::Recovery).map_err(|error| {
                error.context(format!("applying the oplog entry at {}: {document}", entry.op_time.timestamp))
            })?;
            outcome.applied += 1;
            applied.note_prepared(&mut outcome.prepared);
        }
        next = cursor.next()?;
    }
    Ok(())
}

/// The newest entry.
pub(crate) fn last_entry(oplog: &dyn Oplog) -> Result<Option<Doc>> {
    let Some(last) = oplog.last() else { return Ok(None) };
    oplog.backward()?.seek(last)?.map(|found| Doc::parse(found.entry)).transpose()
}
