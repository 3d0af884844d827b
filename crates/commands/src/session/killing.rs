//! Ending what sessions have in progress: their cursors, their operations, and what they hold checked out.

use crate::{Data, Invocation};
use pando_base::{Component, ErrorCode, OperationContext, Result, Severity, log};
use pando_doc::{DocRef, Value};
use pando_session::{LogicalSessionId, NO_USER, UserDigest};

/// Which sessions are meant.
pub(super) enum Pattern {
    /// All.
    Everything,
    /// One.
    Session(LogicalSessionId),
    /// Those of a user.
    User(UserDigest),
}

impl Pattern {
    fn picks(&self, session: LogicalSessionId) -> bool {
        match self {
            Pattern::Everything => true,
            Pattern::Session(one) => session.parent() == one.parent(),
            Pattern::User(user) => session.user == *user,
        }
    }
}

/// The session that a request named, as operations and cursors remember it.
pub(crate) fn session_of(document: DocRef<'_>) -> Option<LogicalSessionId> {
    let uuid = |name: &str| match document.get(name)? {
        Value::Binary { subtype: 4, bytes } => Some(pando_base::Uuid::from_bytes(bytes.try_into().ok()?)),
        _ => None,
    };
    let id = uuid("id")?;
    let user = match document.get("uid") {
        Some(Value::Binary { bytes, .. }) => bytes.try_into().ok()?,
        _ => NO_USER,
    };
    let txn_number = document.get("txnNumber").and_then(|number| number.as_number()?.to_i64_exact());
    Some(LogicalSessionId { txn_number, txn_uuid: uuid("txnUUID"), ..LogicalSessionId::new(id, user) })
}

/// Closes the cursors of the sessions that are picked; which.
pub(super) fn close_cursors(data: &Data, picks: impl Fn(LogicalSessionId) -> bool) -> Vec<i64> {
    data.cursors.kill_each(|options| {
        options.session.as_ref().and_then(|session| session_of(session.view())).is_some_and(&picks)
    })
}

/// Closes the cursors of one transaction.
pub(crate) fn close_cursors_of_transaction(data: &Data, session: LogicalSessionId, number: i64) {
    data.cursors.kill_where(|options| {
        options.transaction_number == Some(number)
            && options.session.as_ref().and_then(|known| session_of(known.view())) == Some(session)
    });
}

/// Ends what the sessions have in progress, but for this command itself.
pub(super) async fn kill(invocation: &Invocation, patterns: &[Pattern]) -> Result<()> {
    let data = invocation.data()?;
    let picks = |session: LogicalSessionId| patterns.iter().any(|pattern| pattern.picks(session));
    let own = invocation.context.id();
    let is_picked = |operation: &OperationContext| {
        let session = operation.description().session.and_then(|bytes| session_of(DocRef::trusted(&bytes)));
        operation.id() != own && session.is_some_and(picks)
    };
    invocation.node.operations.kill_where(ErrorCode::Interrupted, is_picked);
    let log = invocation.node.log.with_context(invocation.connection.client.description());
    for id in close_cursors(data, picks) {
        let message = "Killing cursor as part of killing session(s)";
        log!(log, Severity::Info, Component::Query, 20528, message, "cursorId" = id);
    }
    for checked_out in data.sessions.list().into_iter().filter(|info| picks(info.session)) {
        // Whoever has the session gives it back before the next one gets it.
        if let Some(token) = data.sessions.kill(checked_out.session, ErrorCode::Interrupted) {
            token.check_out(&invocation.context).await?;
        }
    }
    Ok(())
}
