//! Retryable writes: a write with a session and a number is carried out once, however often it is sent.
//!
//! The session is checked out for the command, so that two attempts do not run at once. Each statement has an id; one that
//! was carried out before is answered from its oplog entry.

use crate::{Data, Invocation};
use pando_base::Result;
use pando_doc::Doc;
use pando_operation::Operation;
use pando_oplog::{OplogEntry, StatementIds};
use pando_session::{CheckedOutSession, LogicalSessionId, StatementNumbers};
use std::sync::atomic::{AtomicBool, Ordering};

/// The session of a retryable write, checked out.
pub(super) struct RetryableWrite {
    session: CheckedOutSession,
    numbers: StatementNumbers,
    /// A statement of it was carried out before.
    is_retry: AtomicBool,
}

impl RetryableWrite {
    /// Checks the session out and begins the write, or goes on with it; none for a write that is not retryable.
    pub(super) async fn begin(
        invocation: &Invocation,
        data: &Data,
        operation: &mut Operation,
        statement_count: usize,
    ) -> Result<Option<RetryableWrite>> {
        let generic = &invocation.generic;
        let (Some(session), Some(number)) = (&generic.session, generic.transaction_number) else { return Ok(None) };
        if generic.is_in_transaction() {
            return Ok(None);
        }
        let session = LogicalSessionId::from_client(session.document.view(), invocation.user_digest())?;
        let numbers = StatementNumbers::parse(invocation.body(), statement_count)?;
        let (context, now_ms) = (&invocation.context, invocation.node.now_ms());
        let session = data.sessions.check_out_for(context, session, now_ms, number, None).await?;
        session.begin_or_continue(operation, &*data.session_table, &data.history, number)?;
        operation.recovery_unit.abandon_snapshot()?;
        Ok(Some(RetryableWrite { session, numbers, is_retry: AtomicBool::new(false) }))
    }

    /// The id of the statement at this place.
    pub(super) fn statement_id(&self, place: usize) -> i32 {
        self.numbers.of(place)
    }

    /// The entry of a statement that was carried out before.
    pub(super) fn executed(&self, data: &Data, statement: i32) -> Result<Option<Doc>> {
        let found = self.session.active().participant().check_statement_executed(statement)?;
        if found.is_some() {
            let counters = data.sessions.transactions();
            counters.retried_statements.fetch_add(1, Ordering::Relaxed);
            if !self.is_retry.swap(true, Ordering::Relaxed) {
                counters.retried_commands.fetch_add(1, Ordering::Relaxed);
            }
        }
        found.map(|op_time| data.history.entry(op_time)).transpose()
    }

    /// The session's id.
    pub(super) fn session_id(&self) -> &LogicalSessionId {
        &self.session.active().session
    }
}

/// The statement at a place: its ids for the write path, and its entry if it was carried out before.
pub(super) fn statement(
    data: &Data,
    retryable: Option<&RetryableWrite>,
    place: usize,
) -> Result<(StatementIds, Option<Doc>)> {
    let Some(retryable) = retryable else { return Ok((StatementIds::None, None)) };
    let id = retryable.statement_id(place);
    Ok((StatementIds::One(id), retryable.executed(data, id)?))
}

/// Reads the entry of a statement that was carried out before.
pub(super) fn with_entry<T>(entry: &Doc, read: impl FnOnce(&OplogEntry<'_>) -> Result<T>) -> Result<T> {
    read(&OplogEntry::parse(entry.view())?)
}
