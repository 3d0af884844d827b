//! One cursor.

use crate::executor::BatchSource;
use pando_base::{ClientUser, CursorFacts, Error, Namespace, Result, Uuid};
use pando_doc::Doc;
use std::sync::Arc;

/// What is known of a cursor beside its query.
#[derive(Clone, Debug)]
pub struct CursorOptions {
    /// What a getMore has to name.
    pub namespace: Namespace,
    /// The collection that is read, if there is one.
    pub collection: Option<Uuid>,
    /// The session that it belongs to: the whole `lsid`, as bytes.
    pub session: Option<Doc>,
    /// The transaction that it belongs to.
    pub transaction_number: Option<i64>,
    /// The user that made it.
    pub user: Option<Arc<ClientUser>>,
    /// It does not time out by itself.
    pub no_timeout: bool,
    /// It stays open at the end.
    pub tailable: bool,
    /// It waits for new documents.
    pub await_data: bool,
    /// It is a change stream.
    pub is_change_stream: bool,
    /// The command that made it.
    pub originating_command: Doc,
    /// How reads are to be done, e.g. `{level: "majority"}`.
    pub read_concern: Doc,
}

impl CursorOptions {
    /// A plain cursor on a namespace.
    pub fn new(namespace: Namespace) -> CursorOptions {
        CursorOptions {
            namespace,
            collection: None,
            session: None,
            transaction_number: None,
            user: None,
            no_timeout: false,
            tailable: false,
            await_data: false,
            is_change_stream: false,
            originating_command: Doc::new(),
            read_concern: Doc::new(),
        }
    }
}

/// A query that a client takes batch by batch.
pub struct ClientCursor {
    pub(super) id: i64,
    /// What is known of it.
    pub options: CursorOptions,
    /// The query; saved while the cursor is idle.
    pub source: Box<dyn BatchSource>,
    /// When it was made.
    pub created_ms: u64,
    /// When it was last used.
    pub last_used_ms: u64,
    /// How many documents it has given.
    pub returned: u64,
    /// How many batches.
    pub batches: u64,
    /// How much of the time that its first request allowed is left; none for no limit.
    pub time_left_ns: Option<u64>,
}

impl ClientCursor {
    /// What getMore names it by.
    pub fn id(&self) -> i64 {
        self.id
    }

    /// What currentOp tells of it.
    pub fn facts(&self) -> CursorFacts {
        CursorFacts {
            id: self.id,
            created_ms: self.created_ms,
            last_used_ms: self.last_used_ms,
            returned: self.returned,
            batches: self.batches,
            no_timeout: self.options.no_timeout,
            tailable: self.options.tailable,
            await_data: self.options.await_data,
        }
    }
}

/// Checks that an operation may go on with a cursor: same namespace, session and transaction.
pub(super) fn check_use(
    id: i64,
    options: &CursorOptions,
    namespace: &Namespace,
    session: Option<&Doc>,
    transaction_number: Option<i64>,
) -> Result<()> {
    if options.namespace != *namespace {
        let reason = format!(
            "Requested getMore on namespace '{namespace}', but cursor belongs to a different namespace {}",
            options.namespace
        );
        return Err(Error::new(pando_base::ErrorCode::Unauthorized, reason));
    }
    check_session(id, options.session.as_ref(), session)?;
    check_transaction(id, options.transaction_number, transaction_number)
}

fn check_session(id: i64, of_cursor: Option<&Doc>, of_operation: Option<&Doc>) -> Result<()> {
    let session_id = |session: &Doc| session.get("id").map_or_else(|| session.to_string(), |id| id.to_string());
    match (of_cursor, of_operation) {
        (None, None) => Ok(()),
        (None, Some(session)) => Err(Error::location(
            50736,
            format!(
                "Cannot run getMore on cursor {id}, which was not created in a session, in session {}",
                session_id(session)
            ),
        )),
        (Some(session), None) => Err(Error::location(
            50737,
            format!(
                "Cannot run getMore on cursor {id}, which was created in session {}, without an lsid",
                session_id(session)
            ),
        )),
        (Some(created), Some(session)) if session_id(created) == session_id(session) => Ok(()),
        (Some(created), Some(session)) => Err(Error::location(
            50738,
            format!(
                "Cannot run getMore on cursor {id}, which was created in session {}, in session {}",
                session_id(created),
                session_id(session)
            ),
        )),
    }
}

fn check_transaction(id: i64, of_cursor: Option<i64>, of_operation: Option<i64>) -> Result<()> {
    match (of_cursor, of_operation) {
        (None, None) => Ok(()),
        (None, Some(number)) => Err(Error::location(
            50739,
            format!(
                "Cannot run getMore on cursor {id}, which was not created in a transaction, in transaction {number}"
            ),
        )),
        (Some(created), None) => Err(Error::location(
            50740,
            format!(
                "Cannot run getMore on cursor {id}, which was created in transaction {created}, without a txnNumber"
            ),
        )),
        (Some(created), Some(number)) if created == number => Ok(()),
        (Some(created), Some(number)) => Err(Error::location(
            50741,
            format!(
                "Cannot run getMore on cursor {id}, which was created in transaction {created}, in transaction {number}"
            ),
        )),
    }
}
