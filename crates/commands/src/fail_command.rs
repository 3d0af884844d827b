//! The fail point that makes commands fail (`failCommand`): with an error, by closing the connection, after a while, or
//! with a write concern error.
//!
//! It is asked twice: before a command runs ([`FailCommand::before`]), and after it for the write concern's part. Each
//! asking that does something counts once for its mode.

use crate::{CommandRow, ConnectionState};
use pando_base::{Error, ErrorCode, FailPoint, Namespace, Result};
use pando_doc::{Array, Doc, DocRef, Value};

/// The fail point.
pub static FAIL_COMMAND: FailPoint<FailCommand> = FailPoint::with_data("failCommand", FailCommand::parse);

/// What its data says.
#[derive(Debug, Default)]
pub struct FailCommand {
    commands: Vec<Vec<u8>>,
    is_for_all: bool,
    application: Option<String>,
    thread_name: Option<String>,
    namespace: Option<String>,
    is_for_internal: bool,
    /// The error to fail with.
    pub error_code: Option<i64>,
    /// Close the connection instead of answering.
    pub closes_connection: bool,
    /// Wait first.
    blocks_connection: bool,
    block_time_ms: Option<i64>,
    /// Fields of the error.
    pub extra_information: Option<Doc>,
    /// In place of the labels that the error would have.
    pub labels: Option<Array>,
    /// To be put into the reply of a command that ran.
    pub write_concern_error: Option<Doc>,
}

impl FailCommand {
    fn parse(bytes: &[u8]) -> Result<FailCommand> {
        let data = if bytes.is_empty() { DocRef::EMPTY } else { DocRef::parse(bytes)? };
        let text = |name| data.get(name).map(|value| value.as_str().unwrap_or_default().to_owned());
        let flag = |name| data.get(name).and_then(|value| value.as_bool()) == Some(true);
        let whole = |name| data.get(name).and_then(|value| value.to_i64_exact());
        let document = |name| data.get(name).and_then(|value| value.as_document()).map(DocRef::to_doc);
        let commands = data.get("failCommands").and_then(|value| value.as_array());
        let names = commands.into_iter().flat_map(|array| array.values().filter_map(|value| value.as_bytes()));
        Ok(FailCommand {
            commands: names.map(|name| name.to_vec()).collect(),
            is_for_all: data.contains("failAllCommands"),
            application: text("appName"),
            thread_name: text("threadName"),
            namespace: text("namespace"),
            is_for_internal: flag("failInternalCommands"),
            error_code: whole("errorCode"),
            closes_connection: flag("closeConnection"),
            blocks_connection: flag("blockConnection"),
            block_time_ms: whole("blockTimeMS"),
            extra_information: document("errorExtraInfo"),
            labels: data.get("errorLabels").and_then(|value| value.as_array()).map(|array| array.to_array()),
            write_concern_error: document("writeConcernError"),
        })
    }

    /// Is the command one that it is for?
    pub fn is_for(
        &self,
        row: &CommandRow,
        connection: &ConnectionState,
        application: &str,
        namespace: &Namespace,
    ) -> bool {
        let is_named = self.is_for_all || self.commands.iter().any(|name| row.is_called(name));
        let is_other = |wanted: &Option<String>, found: &str| wanted.as_ref().is_some_and(|wanted| wanted != found);
        // Else nobody could ever turn it off.
        row.name != "configureFailPoint"
            && is_named
            && (self.is_for_internal || !connection.is_internal())
            && !is_other(&self.thread_name, connection.client.description())
            && !is_other(&self.application, application)
            && !is_other(&self.namespace, namespace.as_str())
    }

    /// Does it do something before the command runs?
    pub fn acts_before(&self) -> bool {
        self.closes_connection || self.blocks_connection || self.error_code.is_some()
    }

    /// How long to wait first.
    pub fn block_time_ms(&self) -> Result<Option<u64>> {
        if !self.blocks_connection {
            return Ok(None);
        }
        let missing = "must specify 'blockTimeMS' when 'blockConnection' is true";
        let wrong = |reason: &str| Error::new(ErrorCode::InvalidOptions, reason);
        let time = self.block_time_ms.ok_or_else(|| wrong(missing))?;
        u64::try_from(time).map(Some).map_err(|_| wrong("'blockTimeMS' must be non-negative"))
    }

    /// The error to fail with.
    pub fn error(&self) -> Option<Error> {
        let number = i32::try_from(self.error_code?).unwrap_or(ErrorCode::InternalError.number());
        // Zero is success, which is no error.
        let code = ErrorCode::location(number);
        if code == ErrorCode::OK {
            return None;
        }
        let error = Error::new(code, "Failing command via 'failCommand' failpoint");
        Some(match &self.extra_information {
            Some(extra) => error.with_details(extra.bytes().to_vec()),
            None => error,
        })
    }

    /// The code inside the write concern error.
    pub fn write_concern_code(&self) -> Option<ErrorCode> {
        match self.write_concern_error.as_ref()?.get("code") {
            Some(Value::Int32(number)) => Some(ErrorCode::location(number)),
            _ => None,
        }
    }
}
