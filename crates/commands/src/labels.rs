//! The labels that tell a driver what it may do about an error.

use crate::{CommandRow, GenericArguments};
use pando_base::{Category, Error, ErrorCode};

/// The same write may be sent again with the same number.
const RETRYABLE_WRITE: &str = "RetryableWriteError";

/// The whole transaction may be tried again.
const TRANSIENT_TRANSACTION: &str = "TransientTransactionError";

/// The labels of a reply whose write was done but not acknowledged as asked.
pub fn write_concern_labels(code: ErrorCode, row: &CommandRow, generic: &GenericArguments) -> Vec<&'static str> {
    is_retryable_write_error(code, row, generic).then_some(RETRYABLE_WRITE).into_iter().collect()
}

/// The labels of an error: its own, and those that follow from its code and from how the command was sent.
pub fn error_labels(error: &Error, row: &CommandRow, generic: &GenericArguments) -> Vec<&'static str> {
    let mut labels = error.labels().to_vec();
    if is_retryable_write_error(error.code(), row, generic) && !labels.contains(&RETRYABLE_WRITE) {
        labels.push(RETRYABLE_WRITE);
    }
    let ends_transaction = matches!(row.name, "commitTransaction" | "abortTransaction");
    if generic.is_in_transaction()
        && is_transient_in_transaction(error.code(), ends_transaction)
        && !labels.contains(&TRANSIENT_TRANSACTION)
    {
        labels.push(TRANSIENT_TRANSACTION);
    }
    labels
}

/// Has a transaction that fails with this left nothing behind, so that it may be tried again as a whole?
pub(crate) fn is_transient_in_transaction(code: ErrorCode, ends_transaction: bool) -> bool {
    let is_conflict =
        matches!(code, ErrorCode::WriteConflict | ErrorCode::LockTimeout | ErrorCode::PreparedTransactionInProgress);
    is_conflict
        || code.is(Category::SnapshotError)
        || code == ErrorCode::NoSuchTransaction
        || (!ends_transaction && code.is(Category::RetriableError))
}

/// Writes with a number outside transactions; ends of transactions in any case.
fn is_retryable_write_error(code: ErrorCode, row: &CommandRow, generic: &GenericArguments) -> bool {
    let ends_transaction = matches!(row.name, "commitTransaction" | "abortTransaction");
    let is_numbered_write = row.is_retryable_write && generic.transaction_number.is_some();
    let is_retryable = ends_transaction || (is_numbered_write && generic.autocommit.is_none());
    is_retryable && code.is(Category::RetriableError)
}
