//! `killAllSessionsByPattern`: ends what the sessions that match have in progress; without patterns, those of everybody.

use super::ids::list;
use super::killing::{Pattern, kill};
use crate::arguments::Place;
use crate::{Access, Action, CommandRow, Invocation, run_boxed};
use pando_base::{Error, ErrorCode, Result};
use pando_doc::{ArrayRef, DocRef, Value, ValueType};
use pando_session::LogicalSessionId;

pub(super) const ROW: CommandRow = CommandRow {
    name: "killAllSessionsByPattern",
    help: "kill logical sessions by pattern",
    run: |invocation, _| run_boxed(run(invocation)),
    privileges: Access::Cluster(&[Action::KillAnySession]),
    ..CommandRow::DEFAULT
};

crate::arguments! {
    /// A pattern of the list.
    struct SessionPattern<'a> of "killAllSessionsByPattern" {
        /// One session.
        session: Option<DocRef<'a>> = "lsid",
        /// All of a user, by its digest.
        user: Option<Value<'a>> = "uid",
        /// On whose behalf; looked at once there are users.
        users: Option<ArrayRef<'a>> = "users",
        /// With whose rights.
        roles: Option<ArrayRef<'a>> = "roles",
    }
}

async fn run(invocation: &Invocation) -> Result<()> {
    let place = Place::of_command("KillAllSessionsByPatternCmd");
    let mut patterns = Vec::new();
    for value in list(invocation)? {
        let pattern =
            value.as_document().ok_or_else(|| place.wrong_type(value.value_type(), &[ValueType::Document]))?;
        patterns.push(pattern_of(SessionPattern::parse_fields(pattern, &place, false)?)?);
    }
    if patterns.is_empty() {
        patterns.push(Pattern::Everything);
    }
    kill(invocation, &patterns).await
}

fn pattern_of(pattern: SessionPattern<'_>) -> Result<Pattern> {
    match (pattern.session, pattern.user) {
        (Some(session), _) => {
            let session = LogicalSessionId::parse(session)?;
            if session.is_child() {
                let reason = format!("Cannot specify a child session id {session}");
                return Err(Error::new(ErrorCode::InvalidOptions, reason));
            }
            Ok(Pattern::Session(session))
        }
        (None, Some(Value::Binary { bytes, .. })) => {
            let user = bytes
                .try_into()
                .map_err(|_| Error::new(ErrorCode::UnsupportedFormat, "Unsupported SHA256Block size"))?;
            Ok(Pattern::User(user))
        }
        (None, Some(other)) => {
            let found = other.value_type().name();
            Err(Error::type_mismatch(format!(
                "BSON field 'KillAllSessionsByPatternCmd.killAllSessionsByPattern.uid' is the wrong type '{found}', expected \
                 type 'binData'"
            )))
        }
        (None, None) => Ok(Pattern::Everything),
    }
}
