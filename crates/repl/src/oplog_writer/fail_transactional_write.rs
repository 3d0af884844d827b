//! The fail point at the end of every write that belongs to a session: its entries and the session's record are written, the
//! unit of work has not committed.
//!
//! A test uses it to see a client send the same write again: after one that committed, but whose reply never came
//! (the connection ends), or after one that did not.

use pando_base::{Error, ErrorCode, FailPoint, Result};
use pando_doc::{DocRef, Value};
use pando_operation::Operation;
use pando_session::LogicalSessionId;

/// The fail point.
pub(crate) static ON_TRANSACTIONAL_WRITE: FailPoint<Failing> =
    FailPoint::with_data("onPrimaryTransactionalWrite", Failing::parse);

/// What its data says.
pub(crate) struct Failing {
    ends_connection: bool,
    error_before_commit: Option<ErrorCode>,
}

impl Failing {
    fn parse(bytes: &[u8]) -> Result<Failing> {
        let data = if bytes.is_empty() { DocRef::EMPTY } else { DocRef::parse(bytes)? };
        let ends_connection = match data.get("closeConnection") {
            None => true,
            Some(Value::Bool(ends)) => ends,
            Some(_) => return Err(Error::type_mismatch("closeConnection must be a boolean")),
        };
        let code = data.get("failBeforeCommitExceptionCode").and_then(|value| value.to_i64_exact());
        let code = code.and_then(|code| i32::try_from(code).ok()).map(ErrorCode::location);
        Ok(Failing { ends_connection, error_before_commit: code.filter(|code| *code != ErrorCode::OK) })
    }
}

/// Does what the fail point says.
pub(super) fn fail_if_wanted(operation: &Operation, session: LogicalSessionId, txn_number: i64) -> Result<()> {
    let Some(failing) = ON_TRANSACTIONAL_WRITE.hit() else { return Ok(()) };
    if failing.ends_connection {
        operation.context.client().end();
    }
    match failing.error_before_commit {
        None => Ok(()),
        Some(code) => {
            let reason =
                format!("Failing write for {session}:{txn_number} due to failpoint. The write must not be reflected.");
            Err(Error::new(code, reason))
        }
    }
}
