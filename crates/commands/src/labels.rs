//! The labels that tell a driver what it may do about an error.

use crate::{CommandRow, GenericArguments, Invocation};
use pando_base::{Category, Error, ErrorCode};
use pando_doc::DocRef;

/// The same write may be sent again with the same number.
const RETRYABLE_WRITE: &str = "RetryableWriteError";

/// The whole transaction may be tried again.
const TRANSIENT_TRANSACTION: &str = "TransientTransactionError";

/// The change stream may be opened again behind the last event.
const RESUMABLE_STREAM: &str = "ResumableChangeStreamError";

/// It may not.
const NON_RESUMABLE_STREAM: &str = "NonResumableChangeStreamError";

/// Could another try have more luck?
fn is_resumable(code: ErrorCode) -> bool {
    let kinds = [Category::RetriableError, Category::NetworkError, Category::NeedRetargettingError];
    let codes = [ErrorCode::RetryChangeStream, ErrorCode::FailedToSatisfyReadPreference, ErrorCode::QueryPlanKilled];
    kinds.into_iter().any(|kind| code.is(kind)) || codes.contains(&code)
}

/// True for a command that opens a change stream or goes on with one.
fn is_stream(invocation: &Invocation) -> bool {
    let begins = |command: DocRef<'_>| {
        let first = command.get("pipeline").and_then(|pipeline| pipeline.as_array()).and_then(|array| array.get(0));
        let stage = first.and_then(|stage| stage.as_document()).and_then(|stage| stage.first());
        stage.is_some_and(|stage| stage.name == "$changeStream")
    };
    match invocation.row.name {
        "aggregate" => begins(invocation.body()),
        "getMore" => {
            let made_by = invocation.context.description().originating_command;
            made_by.is_some_and(|command| begins(DocRef::trusted(&command)))
        }
        _ => false,
    }
}

/// The labels of a reply whose write was done but not acknowledged as asked.
pub fn write_concern_labels(code: ErrorCode, row: &CommandRow, generic: &GenericArguments) -> Vec<&'static str> {
    is_retryable_write_error(code, row, generic).then_some(RETRYABLE_WRITE).into_iter().collect()
}

/// The labels of an error: its own, and those that follow from its code and from how the command was sent.
pub fn error_labels(error: &Error, invocation: &Invocation) -> Vec<&'static str> {
    let (row, generic) = (invocation.row, &invocation.generic);
    let mut labels = error.labels().to_vec();
    if error.is(Category::NonResumableChangeStreamError) {
        labels.push(NON_RESUMABLE_STREAM);
    } else if is_resumable(error.code()) && is_stream(invocation) {
        labels.push(RESUMABLE_STREAM);
    }
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
