//! `logMessage`: a line of the log, as a test wants it.

use crate::{Access, CommandRow, Invocation, run_boxed};
use pando_base::{Component, Error, LogValue, Result, Severity, log};
use pando_doc::{DocRef, JsonFormat, Value, doc_to_json};

pub(super) const ROW: CommandRow = CommandRow {
    name: "logMessage",
    help: "writes a line to the log: { logMessage: \"text\", severity: -3 to 5, extra: {} }",
    run: |invocation, _| run_boxed(std::future::ready(run(invocation))),
    is_admin_only: true,
    is_for_tests: true,
    privileges: Access::Nothing,
    ..CommandRow::DEFAULT
};

fn run(invocation: &Invocation) -> Result<()> {
    let Some(text) = invocation.target().as_str() else {
        return Err(Error::type_mismatch("'logMessage' has to be a string"));
    };
    let severity = match invocation.body().get("severity").filter(|severity| severity.is_number()) {
        None => Severity::Info,
        Some(severity) => match severity.to_i64_or_zero() {
            ..=-3 => Severity::Error,
            -2 => Severity::Error,
            -1 => Severity::Warning,
            0 => Severity::Info,
            level => Severity::Debug(u8::try_from(level.min(5)).unwrap_or(5)),
        },
    };
    let extra = match invocation.body().get("extra") {
        Some(Value::Document(extra)) => extra,
        _ => DocRef::EMPTY,
    };
    let extra = LogValue::Json(doc_to_json(extra, JsonFormat::Relaxed));
    log!(invocation.node.log, severity, Component::Control, 5060500, "logMessage", "msg" = text, "extra" = extra);
    Ok(())
}
