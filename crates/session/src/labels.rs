//! Labels that tell drivers what to do about an error of a retryable write.

use crate::request::SessionRequest;
use pando_base::{Category, Error, ErrorCode};

/// The driver may send the very same request again.
pub const RETRYABLE_WRITE_ERROR: &str = "RetryableWriteError";

/// Labels an error of a command.
#[must_use]
pub fn label_error(error: Error, request: &SessionRequest, command_name: &str) -> Error {
    match may_be_retried(request, command_name) && is_retryable(error.code()) {
        true => error.with_label(RETRYABLE_WRITE_ERROR),
        false => error,
    }
}

/// The label of a reply whose write was done but not acknowledged as asked.
pub fn label_write_concern_error(
    code: ErrorCode,
    request: &SessionRequest,
    command_name: &str,
) -> Option<&'static str> {
    (may_be_retried(request, command_name) && is_retryable(code)).then_some(RETRYABLE_WRITE_ERROR)
}

/// Retryable writes, and the ends of transactions.
fn may_be_retried(request: &SessionRequest, command_name: &str) -> bool {
    let ends_transaction = matches!(command_name, "commitTransaction" | "abortTransaction");
    request.retryable_write().is_some() || (ends_transaction && request.transaction().is_some())
}

fn is_retryable(code: ErrorCode) -> bool {
    code.is(Category::RetriableError)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{LogicalSessionId, NO_USER};
    use pando_base::Uuid;

    #[test]
    fn s17_errors_that_a_driver_may_retry_are_labelled() {
        let session = Some(LogicalSessionId::new(Uuid::from_random([1; 16]), NO_USER));
        let write = SessionRequest { session, txn_number: Some(1), ..SessionRequest::default() };
        let statement = SessionRequest { autocommit: Some(false), ..write };
        let plain = SessionRequest { txn_number: None, ..write };
        let cases = [
            (&write, "insert", ErrorCode::NotWritablePrimary, true),
            (&write, "insert", ErrorCode::InterruptedAtShutdown, true),
            (&write, "insert", ErrorCode::DuplicateKey, false),
            (&plain, "insert", ErrorCode::NotWritablePrimary, false),
            (&statement, "insert", ErrorCode::NotWritablePrimary, false),
            (&statement, "commitTransaction", ErrorCode::NotWritablePrimary, true),
        ];
        for (request, command, code, labelled) in cases {
            let error = label_error(Error::new(code, "x"), request, command);
            assert_eq!(error.has_label(RETRYABLE_WRITE_ERROR), labelled, "{command} {code}");
            assert_eq!(label_write_concern_error(code, request, command).is_some(), labelled);
        }
    }
}
