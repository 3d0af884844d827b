//! Lists of sessions in commands.

use crate::Invocation;
use crate::arguments::Place;
use pando_base::{Error, ErrorCode, Result, Uuid, ensure};
use pando_doc::{Value, ValueType};
use pando_session::{LogicalSessionId, UserDigest};

crate::arguments! {
    /// A session of a list.
    struct Session<'a> of "session" {
        /// Its id.
        id: Uuid = "id",
        /// The hash of its user.
        user: Option<Value<'a>> = "uid",
    }
}

/// The values of the command's own field, which has to be an array.
pub(super) fn list<'a>(invocation: &'a Invocation) -> Result<impl Iterator<Item = Value<'a>>> {
    let Value::Array(values) = invocation.target() else {
        let (name, found) = (invocation.row.name, invocation.target().value_type());
        ensure!(
            !invocation.target().is_nullish(),
            ErrorCode::location(10065),
            "invalid parameter: expected an object ({name})"
        );
        return Err(Error::type_mismatch(format!(
            "BSON field '{name}.{name}' is the wrong type '{found}', expected type 'array'"
        )));
    };
    // What is null is passed over, as in every list.
    Ok(values.values().filter(|value| !value.is_nullish()))
}

/// The sessions that the command's own field lists.
pub(super) fn sessions(invocation: &Invocation) -> Result<Vec<LogicalSessionId>> {
    sessions_of(invocation, invocation.acts_for_others())
}

/// The same, for those who may speak of others' sessions.
pub(super) fn sessions_of(invocation: &Invocation, speaks_of_others: bool) -> Result<Vec<LogicalSessionId>> {
    let place = Place::of_command(invocation.row.name);
    list(invocation)?.map(|value| session(invocation, speaks_of_others, value, &place)).collect()
}

fn session(
    invocation: &Invocation,
    speaks_of_others: bool,
    value: Value<'_>,
    place: &Place<'_>,
) -> Result<LogicalSessionId> {
    let document = value.as_document().ok_or_else(|| place.wrong_type(value.value_type(), &[ValueType::Document]))?;
    let given = Session::parse_fields(document, place, false)?;
    let own = invocation.user_digest();
    let user: UserDigest = match given.user {
        None => own,
        Some(Value::Binary { bytes, .. }) if bytes == own => own,
        // One who acts for others may speak of their sessions.
        Some(Value::Binary { bytes, .. }) if speaks_of_others => {
            bytes.try_into().map_err(|_| Error::new(ErrorCode::UnsupportedFormat, "Unsupported SHA256Block size"))?
        }
        Some(_) => {
            let reason = "Unauthorized to set user digest in LogicalSessionId";
            return Err(Error::new(ErrorCode::Unauthorized, reason));
        }
    };
    Ok(LogicalSessionId::new(given.id, user))
}
