//! Names of variables: which may be bound by users, and what the ones of the system are.

use pando_base::{Error, ErrorCode, Result};

/// Checks a name that a user binds: a lower-case letter or a character beyond ASCII, then letters, digits, underscores.
/// `CURRENT` may be bound too.
pub fn check_user_variable(name: &[u8]) -> Result<()> {
    check_variable(name, |first| first.is_ascii_lowercase() || !first.is_ascii(), "user ")
        .or_else(|error| if name == b"CURRENT" { Ok(()) } else { Err(error) })
}

/// Checks a name that is looked at: upper-case ones are the system's.
pub(super) fn check_readable_variable(name: &[u8]) -> Result<()> {
    check_variable(name, |first| first.is_ascii_alphabetic() || !first.is_ascii(), "")
}

fn check_variable(name: &[u8], is_first: impl Fn(u8) -> bool, whose: &str) -> Result<()> {
    let shown = String::from_utf8_lossy(name);
    let Some(&first) = name.first() else {
        return Err(Error::new(ErrorCode::FailedToParse, "empty variable names are not allowed"));
    };
    if !is_first(first) {
        let reason = format!("'{shown}' starts with an invalid character for a {whose}variable name");
        return Err(Error::new(ErrorCode::FailedToParse, reason));
    }
    let is_inner = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii();
    match name.iter().find(|byte| !is_inner(byte)) {
        None => Ok(()),
        Some(&wrong) => {
            let wrong = char::from(wrong);
            let reason = format!("'{shown}' contains an invalid character for a variable name: '{wrong}'");
            Err(Error::new(ErrorCode::FailedToParse, reason))
        }
    }
}
