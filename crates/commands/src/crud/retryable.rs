//! Retryable writes: a write with a session and a number is carried out once, however often it is sent.
//!
//! The session is checked out for the command, so that two attempts do not run at once. Each statement has an id; one that
//! was carried out before is answered from its oplog entry, whoever has carried it out: the session itself, or a transaction that the
//! server has run for the same write.

use crate::{Data, Invocation};
use pando_base::{Error, ErrorCode, Result};
use pando_doc::Doc;
use pando_operation::Operation;
use pando_oplog::{OpTime, OplogEntry, StatementIds};
use pando_session::{ActiveSession, CheckedOutSession, Family, LogicalSessionId, StatementNumbers};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The session of a retryable write, checked out.
pub(super) struct RetryableWrite {
    session: Arc<ActiveSession>,
    /// Others who may have carried out statements of the same write.
    relatives: Vec<Arc<ActiveSession>>,
    /// None if a transaction has it.
    _checked_out: Option<CheckedOutSession>,
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
            return RetryableWrite::in_transaction(invocation, data, statement_count);
        }
        let session = LogicalSessionId::from_client(session.document.view(), invocation.user_digest())?;
        let numbers = StatementNumbers::parse(invocation.body(), statement_count)?;
        // Large: what all writes carry stays small.
        Box::pin(RetryableWrite::check_out(invocation, data, operation, (session, number), numbers)).await.map(Some)
    }

    async fn check_out(
        invocation: &Invocation,
        data: &Data,
        operation: &mut Operation,
        (session, number): (LogicalSessionId, i64),
        numbers: StatementNumbers,
    ) -> Result<RetryableWrite> {
        let (context, now_ms) = (&invocation.context, invocation.begun_ms());
        loop {
            let session = data.sessions.check_out_for(context, session, now_ms, number, None).await?;
            session.begin_or_continue(operation, &*data.session_table, &data.history, number)?;
            let active = Arc::clone(session.active());
            let (table, history) = (&*data.session_table, &data.history);
            let family = data.sessions.family(operation, table, history, active.session, number)?;
            operation.recovery_unit.abandon_snapshot()?;
            let busy = match family {
                Family::Settled(relatives) => {
                    let is_retry = AtomicBool::new(false);
                    let checked_out = Some(session);
                    let session = active;
                    return Ok(RetryableWrite { session, relatives, _checked_out: checked_out, numbers, is_retry });
                }
                Family::Busy(busy) => busy,
            };
            session.give_way(context, &busy).await?;
        }
    }

    /// The same for a transaction that carries out a retryable write of another session; none for other transactions.
    fn in_transaction(invocation: &Invocation, data: &Data, statement_count: usize) -> Result<Option<RetryableWrite>> {
        let Some(statement) = invocation.transaction() else { return Ok(None) };
        let Some(number) = statement.retryable_write() else { return Ok(None) };
        let numbers = StatementNumbers::parse(invocation.body(), statement_count)?;
        let session = Arc::clone(statement.active_session());
        // Beside the transaction, whose snapshot may be older than what others have carried out.
        let mut beside = data.services.operation_of(invocation.context.clone());
        let (table, history) = (&*data.session_table, &data.history);
        let Family::Settled(relatives) = data.sessions.family(&mut beside, table, history, session.session, number)?
        else {
            // It has begun before this one: nobody begins beside it.
            let reason = "another transaction is in the middle of the same retryable write";
            return Err(Error::new(ErrorCode::RetryableTransactionInProgress, reason));
        };
        let is_retry = AtomicBool::new(false);
        Ok(Some(RetryableWrite { session, relatives, _checked_out: None, numbers, is_retry }))
    }

    /// The id of the statement at this place.
    pub(super) fn statement_id(&self, place: usize) -> i32 {
        self.numbers.of(place)
    }

    /// The entry of a statement that was carried out before.
    pub(super) fn executed(&self, data: &Data, statement: i32) -> Result<Option<Doc>> {
        let found = self.executor(statement)?;
        if found.is_some() {
            let counters = data.sessions.transactions();
            counters.retried_statements.fetch_add(1, Ordering::Relaxed);
            if !self.is_retry.swap(true, Ordering::Relaxed) {
                counters.retried_commands.fetch_add(1, Ordering::Relaxed);
            }
        }
        found.map(|(_, op_time)| data.history.statement_entry(op_time, statement)).transpose()
    }

    /// Who has carried a statement out, and the entry that says so.
    fn executor(&self, statement: i32) -> Result<Option<(LogicalSessionId, OpTime)>> {
        for active in std::iter::once(&self.session).chain(&self.relatives) {
            if let Some(op_time) = active.participant().check_statement_executed(statement)? {
                return Ok(Some((active.session, op_time)));
            }
        }
        Ok(None)
    }

    /// The session that has carried a statement out; the one that would if nobody has.
    pub(super) fn session_of(&self, statement: i32) -> Result<LogicalSessionId> {
        Ok(self.executor(statement)?.map_or(self.session.session, |(session, _)| session))
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
