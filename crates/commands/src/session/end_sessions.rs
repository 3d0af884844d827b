//! `endSessions`: the client will not use these sessions any more. The place where they are ended; until there are
//! sessions, the ids are only checked.

use crate::{CommandRow, Invocation, run_boxed};
use pando_base::{ErrorCode, Result, Uuid, ensure};
use pando_doc::Value;

pub(super) const ROW: CommandRow = CommandRow {
    name: "endSessions",
    help: "end a set of logical sessions",
    run: |invocation, _| run_boxed(std::future::ready(run(invocation))),
    is_allowed_before_authentication: true,
    is_in_api_version_1: true,
    ..CommandRow::DEFAULT
};

crate::arguments! {
    /// What endSessions takes beside the list: nothing.
    struct Arguments<'a> of "endSessions" {}
}

crate::arguments! {
    /// A session of the list.
    struct Session<'a> of "endSessions" {
        /// Its id.
        id: Uuid = "id",
        /// The hash of its user.
        user: Option<Value<'a>> = "uid",
    }
}

fn run(invocation: &Invocation) -> Result<()> {
    Arguments::parse(&invocation.request)?;
    let Value::Array(sessions) = invocation.target() else {
        let found = invocation.target().value_type();
        ensure!(
            false,
            ErrorCode::TypeMismatch,
            "BSON field 'endSessions.endSessions' is the wrong type '{found}', expected type 'array'"
        );
        return Ok(());
    };
    let place = crate::arguments::Place::of_command("endSessions");
    for session in sessions.values() {
        let Some(document) = session.as_document() else {
            return Err(place.wrong_type(session.value_type(), &[pando_doc::ValueType::Document]));
        };
        Session::parse_fields(document, &place, false)?;
        if let Some(data) = &invocation.node.data {
            data.cursors.kill_session(&document.to_doc());
        }
    }
    Ok(())
}
