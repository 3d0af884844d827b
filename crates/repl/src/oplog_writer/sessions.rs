//! Statements of retryable writes: their entries' session fields, the session's record, the image.

use super::OplogWriter;
use super::fail_transactional_write::fail_if_wanted;
use pando_base::{Error, ErrorCode, Namespace, Result};
use pando_doc::DocRef;
use pando_operation::Operation;
use pando_oplog::{OpTime, OplogEntry, RetryImage, SessionInfo};
use pando_session::{ActiveSession, Image, LogicalSessionId, SessionRecord, writing_session};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The statements that a unit of work carries out.
pub(super) struct Statements {
    session: Option<Arc<ActiveSession>>,
    txn_number: i64,
    /// The end of the chain, with what this unit has added.
    last: OpTime,
    written: Vec<(i32, OpTime)>,
}

/// The statement ids of an entry, to be entered once it is written.
pub(super) struct Statement(Vec<i32>);

impl Statements {
    pub(super) fn of(operation: &Operation) -> Statements {
        let session = writing_session(operation).cloned();
        let (txn_number, last) = match &session {
            Some(session) => {
                let participant = session.participant();
                (participant.txn_number(), participant.chain_end())
            }
            None => (pando_session::NO_TXN_NUMBER, OpTime::NULL),
        };
        Statements { session, txn_number, last, written: Vec::new() }
    }

    /// Gives an entry its session, if it carries out statements. The entry borrows the session's id from here.
    pub(super) fn link<'a>(&'a self, entry: &mut OplogEntry<'a>) -> Result<Option<Statement>> {
        let ids = entry.operation.statement_ids.as_slice();
        if ids.is_empty() {
            return Ok(None);
        }
        let Some(session) = &self.session else {
            let reason = "a write with statement ids needs a session that is checked out";
            return Err(Error::new(ErrorCode::IllegalOperation, reason));
        };
        let statement = Statement(ids.to_vec());
        entry.session = SessionInfo {
            session_id: Some(session.document.view()),
            txn_number: Some(self.txn_number),
            txn_retry_counter: None,
        };
        entry.previous_op_time = Some(self.last);
        Ok(Some(statement))
    }

    /// The entry is written: it is the end of the chain.
    pub(super) fn written(&mut self, statement: Option<Statement>, slot: OpTime) {
        let Some(Statement(ids)) = statement else { return };
        self.written.extend(ids.into_iter().map(|id| (id, slot)));
        self.last = slot;
    }
}

impl OplogWriter {
    /// Writes the session's record, and has the session learn of its statements when the unit commits.
    pub(super) fn record_statements(
        &self,
        operation: &mut Operation,
        statements: Statements,
        wall_ms: i64,
    ) -> Result<()> {
        let Statements { session: Some(session), txn_number, last, written } = statements else { return Ok(()) };
        if written.is_empty() {
            return Ok(());
        }
        let record = SessionRecord {
            session: session.session,
            txn_number,
            last_write: last,
            last_write_ms: wall_ms,
            state: None,
        };
        self.store_record(operation, &record, &session)?;
        let id = session.session;
        // A unit of work may write several entries one after the other: each continues the chain of those before.
        session.participant().set_uncommitted_write(Some(last));
        let undone = Arc::clone(&session);
        operation.recovery_unit.on_rollback(move || undone.participant().set_uncommitted_write(None))?;
        operation.recovery_unit.on_commit(move |_| session.participant().statements_committed(txn_number, &written))?;
        fail_if_wanted(operation, id, txn_number)
    }

    /// Writes a session's record, and counts it.
    pub(super) fn store_record(
        &self,
        operation: &mut Operation,
        record: &SessionRecord,
        of: &ActiveSession,
    ) -> Result<()> {
        self.sessions.transactions().records_written.fetch_add(1, Ordering::Relaxed);
        self.table.store_at(operation, record, &of.record_place)
    }

    /// Keeps the document that a retry of findAndModify returns.
    pub(super) fn keep_image(
        &self,
        operation: &mut Operation,
        statements: &Statements,
        slot: OpTime,
        kind: RetryImage,
        image: DocRef<'_>,
    ) -> Result<()> {
        let Some(session) = &statements.session else { return Ok(()) };
        let image = Image {
            session: session.session,
            txn_number: statements.txn_number,
            timestamp: slot.timestamp,
            kind,
            image: image.to_doc(),
            is_invalidated: false,
        };
        self.table.store_image(operation, &image)
    }

    /// Somebody writes to `config.transactions` by hand: what sessions know of it does not hold once that commits. The record of a
    /// prepared transaction is all that is known of it after a restart, and stays as it is.
    pub(super) fn observe_session_table(
        &self,
        operation: &mut Operation,
        namespace: &Namespace,
        key: Option<DocRef<'_>>,
    ) -> Result<()> {
        if !namespace.is_session_transactions() {
            return Ok(());
        }
        let id = key.and_then(|key| key.get("_id")?.as_document());
        // What is no session's record is nobody's.
        let session = id.and_then(|id| LogicalSessionId::parse(id).ok());
        if let Some(active) = session.and_then(|session| self.sessions.find(session))
            && active.is_prepared()
        {
            let reason =
                format!("Cannot modify the entry for session {} because it is in the prepared state", active.session);
            return Err(Error::new(ErrorCode::PreparedTransactionInProgress, reason));
        }
        self.invalidate_sessions(operation)
    }

    pub(super) fn invalidate_sessions(&self, operation: &mut Operation) -> Result<()> {
        let sessions = self.sessions.clone();
        Ok(operation.recovery_unit.on_commit(move |_| sessions.invalidate_all(ErrorCode::Interrupted))?)
    }
}
