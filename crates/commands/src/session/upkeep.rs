//! The work that goes on behind sessions: those in use are written down, and what old ones have left is removed.
//!
//! *Refresh*: `config.system.sessions` learns when each session was last used. Sessions that their clients ended go from it,
//! those that nobody used for long expire by its index; the cursors of both are closed. A refresh that fails gives back what it took.
//!
//! *Reaping*: the record of what a session has written goes, once it is old and the session is not in that collection.

use super::collection;
use super::killing::{close_cursors, session_of};
use crate::Data;
use crate::stored::{delete, find};
use pando_base::{Namespace, OperationRegistry, Result};
use pando_doc::{DocRef, Value, doc};
use pando_operation::Operation;
use pando_repl::ReplGate;
use pando_session::{CachedSession, LogicalSessionId, TRANSACTION_RECORD_MINIMUM_LIFETIME_MINUTES, TakenSessions};
use std::collections::HashSet;

fn now_ms(data: &Data) -> i64 {
    i64::try_from(data.services.env.clock().wall_ms()).unwrap_or(i64::MAX)
}

/// Writes the sessions in use down.
pub async fn refresh_sessions(data: &Data, operations: &OperationRegistry) -> Result<()> {
    let start_ms = now_ms(data);
    data.session_cache.note(|statistics| {
        statistics.refresh_count += 1;
        statistics.refresh_date_ms = start_ms;
    });
    let mut operation = data.services.internal_operation("LogicalSessionCacheRefresh");
    data.replication.check_can_write(Namespace::sessions())?;
    collection::ensure(data, &mut operation).await?;
    let mut taken = data.session_cache.take();
    let outcome = write_down(data, &mut operation, operations, &mut taken).await;
    let duration_ms = now_ms(data).saturating_sub(start_ms);
    data.session_cache.note(|statistics| statistics.refresh_duration_ms = duration_ms);
    if outcome.is_err() {
        data.session_cache.give_back(taken);
    }
    outcome
}

async fn write_down(
    data: &Data,
    operation: &mut Operation,
    operations: &OperationRegistry,
    taken: &mut TakenSessions,
) -> Result<()> {
    let now_ms = now_ms(data);
    for session in running(operations).filter(|session| !taken.ending.contains(session)) {
        taken.active.entry(session).or_insert(CachedSession { session, last_use_ms: now_ms });
    }
    for session in taken.active.values() {
        collection::refresh(data, operation, session).await?;
    }
    for session in &taken.ending {
        collection::remove(data, operation, *session).await?;
    }
    let gone = with_cursors_but_gone(data, operation).await?;
    let closed = close_cursors(data, |session| taken.ending.contains(&session) || gone.contains(&session)).len();
    let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    data.session_cache.note(|statistics| {
        statistics.refreshed = count(taken.active.len());
        statistics.ended = count(taken.ending.len());
        statistics.cursors_closed = count(closed);
    });
    Ok(())
}

/// The sessions of operations in progress.
fn running(operations: &OperationRegistry) -> impl Iterator<Item = LogicalSessionId> {
    let described = operations.list().into_iter().filter_map(|context| context.description().session);
    described.filter_map(|bytes| session_of(DocRef::trusted(&bytes)))
}

/// Sessions that have cursors but are not written down any more.
async fn with_cursors_but_gone(data: &Data, operation: &mut Operation) -> Result<HashSet<LogicalSessionId>> {
    let mut gone = HashSet::new();
    for session in data.cursors.sessions().iter().filter_map(|session| session_of(session.view())) {
        let is_used = data.session_cache.contains(session);
        if !is_used && !gone.contains(&session) && !collection::contains(data, operation, session).await? {
            gone.insert(session);
        }
    }
    Ok(gone)
}

/// Removes what sessions that are gone have left. Without the collection of sessions nobody knows which those are.
pub async fn reap_sessions(data: &Data) -> Result<()> {
    let start_ms = now_ms(data);
    data.session_cache.note(|statistics| {
        statistics.reap_count += 1;
        statistics.reap_date_ms = start_ms;
    });
    if !collection::exists(data) {
        return Ok(());
    }
    let mut operation = data.services.internal_operation("LogicalSessionCacheReap");
    let minutes = i64::from(data.services.parameters.get(&TRANSACTION_RECORD_MINIMUM_LIFETIME_MINUTES));
    let before_ms = start_ms.saturating_sub(minutes.saturating_mul(60_000));
    let outcome = reap_before(data, &mut operation, before_ms).await;
    let duration_ms = now_ms(data).saturating_sub(start_ms);
    data.session_cache.note(|statistics| statistics.reap_duration_ms = duration_ms);
    let reaped = outcome?;
    data.session_cache.note(|statistics| statistics.reaped = reaped);
    Ok(())
}

async fn reap_before(data: &Data, operation: &mut Operation, before_ms: i64) -> Result<i64> {
    let idle: Vec<LogicalSessionId> =
        data.sessions.list().iter().filter(|info| info.last_checkout_ms < before_ms).map(|info| info.session).collect();
    let gone = without_record(data, operation, idle).await?;
    data.sessions.reap(before_ms, |session| gone.contains(&session));
    if data.replication.check_can_write(Namespace::session_transactions()).is_err() {
        return Ok(0);
    }
    // What is prepared is known by its record alone once the node has been started anew.
    let old = doc! {
        "lastWriteDate": { "$lt": (Value::DateTime(before_ms)) },
        "state": { "$ne": "prepared" },
    };
    let records = find(data, operation, Namespace::session_transactions(), old).await?;
    let ids = records.iter().filter_map(|record| record.get("_id").and_then(|id| id.as_document()));
    let sessions: Vec<LogicalSessionId> = ids.map(LogicalSessionId::parse).collect::<Result<_>>()?;
    let mut reaped = 0;
    let known = without_record(data, operation, sessions.iter().map(|session| session.parent()).collect()).await?;
    for session in sessions.into_iter().filter(|session| known.contains(&session.parent())) {
        let id = session.to_doc();
        for namespace in [Namespace::config_images(), Namespace::session_transactions()] {
            delete(data, operation, namespace, doc! { "_id": &id }).await?;
        }
        reaped += 1;
    }
    Ok(reaped)
}

/// Those of the sessions that are not written down.
async fn without_record(
    data: &Data,
    operation: &mut Operation,
    sessions: Vec<LogicalSessionId>,
) -> Result<HashSet<LogicalSessionId>> {
    let mut gone = HashSet::new();
    for session in sessions {
        if !data.session_cache.contains(session) && !collection::contains(data, operation, session).await? {
            gone.insert(session);
        }
    }
    Ok(gone)
}
