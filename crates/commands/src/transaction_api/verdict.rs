//! What the reply to a statement or to a commit means for the transaction.

use pando_base::{Category, Error, ErrorCode};
use pando_doc::{DocRef, Value};

const TRANSIENT: &str = "TransientTransactionError";

/// How a transaction goes on.
#[derive(Clone, Debug)]
pub(super) enum Verdict {
    /// It has committed.
    Done,
    /// Nothing of it has happened, and it may go well the next time.
    BeginAgain(Error),
    /// It failed for good.
    Fail(Error),
}

/// What a commit's reply says.
#[derive(Clone, Debug)]
pub(super) enum CommitVerdict {
    /// It is over.
    Over(Verdict),
    /// Nobody knows whether it happened: to be sent again.
    SendAgain(Error),
}

/// The error of a reply that has one: of the command, or of the first write that failed.
pub(super) fn error_of(reply: DocRef<'_>) -> Option<Error> {
    if !reply.get("ok").is_some_and(|ok| ok.is_true()) {
        return Some(error_in(reply));
    }
    match reply.get("writeErrors") {
        Some(Value::Array(errors)) => errors.values().find_map(|error| error.as_document()).map(error_in),
        _ => None,
    }
}

/// True if the reply says that nothing of the transaction has happened and that it may be tried again.
pub(super) fn is_transient(reply: DocRef<'_>) -> bool {
    let labels = reply.get("errorLabels").and_then(|labels| labels.as_array());
    labels.is_some_and(|labels| labels.values().any(|label| label.as_str() == Some(TRANSIENT)))
}

/// What the reply to a commit means.
pub(super) fn of_commit(reply: DocRef<'_>) -> CommitVerdict {
    let concern = reply.get("writeConcernError").and_then(|error| error.as_document()).map(error_in);
    let Some(error) = error_of(reply).or(concern) else { return CommitVerdict::Over(Verdict::Done) };
    if is_transient(reply) {
        return CommitVerdict::Over(Verdict::BeginAgain(error));
    }
    match error.code().is(Category::RetriableError) {
        true => CommitVerdict::SendAgain(error),
        false => CommitVerdict::Over(Verdict::Fail(error)),
    }
}

fn error_in(document: DocRef<'_>) -> Error {
    let code = document.get("code").and_then(|code| code.as_number()).and_then(|code| code.to_i64_exact());
    let code = code.and_then(|code| i32::try_from(code).ok()).map_or(ErrorCode::UnknownError, ErrorCode::location);
    let reason = document.get("errmsg").and_then(|reason| reason.as_str().map(str::to_owned));
    Error::new(code, reason.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::{Doc, doc};

    fn commit(reply: &Doc) -> String {
        match of_commit(reply.view()) {
            CommitVerdict::Over(Verdict::Done) => "done".to_owned(),
            CommitVerdict::Over(Verdict::BeginAgain(error)) => format!("begin again {}", error.code().number()),
            CommitVerdict::Over(Verdict::Fail(error)) => format!("fail {}", error.code().number()),
            CommitVerdict::SendAgain(error) => format!("send again {}", error.code().number()),
        }
    }

    #[test]
    fn s19_a_commit_is_done_again_where_its_outcome_is_not_known() {
        assert_eq!(commit(&doc! { "ok": 1.0 }), "done");
        let retriable = ErrorCode::ReadConcernMajorityNotAvailableYet.number();
        assert_eq!(commit(&doc! { "ok": 0.0, "code": retriable, "errmsg": "x" }), format!("send again {retriable}"));
        let concern = doc! { "ok": 1.0, "writeConcernError": { "code": retriable, "errmsg": "x" } };
        assert_eq!(commit(&concern), format!("send again {retriable}"));
        let gone = ErrorCode::NoSuchTransaction.number();
        let transient = doc! { "ok": 0.0, "code": gone, "errorLabels": ["TransientTransactionError"] };
        assert_eq!(commit(&transient), format!("begin again {gone}"));
        // It may have committed before, and its history is gone.
        assert_eq!(commit(&doc! { "ok": 0.0, "code": gone, "errorLabels": [] }), format!("fail {gone}"));
        assert_eq!(commit(&doc! { "ok": 1.0, "writeConcernError": { "code": 1, "errmsg": "x" } }), "fail 1");
    }

    #[test]
    fn s19_errors_of_single_writes_are_errors_of_the_statement() {
        assert!(error_of(doc! { "ok": 1.0, "n": 1 }.view()).is_none());
        let refused = doc! { "ok": 1.0, "writeErrors": [{ "index": 0, "code": 11000, "errmsg": "twice" }] };
        let error = error_of(refused.view()).unwrap();
        assert_eq!((error.code(), error.reason()), (ErrorCode::DuplicateKey, "twice"));
        assert!(!is_transient(refused.view()));
    }
}
