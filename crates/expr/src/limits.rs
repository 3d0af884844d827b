//! How large what expressions make may get.
//!
//! A string has MongoDB's limit. Documents and arrays may be larger between two stages than the 16
//! MB that a document has when it leaves a pipeline; but here they are encoded as soon as they are
//! made, so that doubling one forty times would really take all those bytes. A value of more than
//! any stage may hold is refused where it is made.

use pando_base::{Error, ErrorCode, Result};
use pando_doc::{OwnedValue, USER_SIZE_BYTES_MAX, Value};

/// The most bytes of a document or an array that is not yet a result.
pub const VALUE_BYTES_MAX: usize = 128 * 1024 * 1024;

/// What a server allows its expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpressionLimits {
    /// How many bytes a `$range` may take, as MongoDB reckons them.
    pub range_bytes_max: i64,
    /// How many bytes the values of a `$push` may take.
    pub push_bytes_max: usize,
    /// How many bytes the values of an `$addToSet` may take.
    pub set_bytes_max: usize,
}

impl Default for ExpressionLimits {
    fn default() -> ExpressionLimits {
        let bytes_max = 100 * 1024 * 1024;
        ExpressionLimits {
            range_bytes_max: bytes_max,
            push_bytes_max: bytes_max as usize,
            set_bytes_max: bytes_max as usize,
        }
    }
}

/// Refuses a string of so many bytes, if it is too long.
pub(crate) fn check_string(size_bytes: usize) -> Result<()> {
    if size_bytes < USER_SIZE_BYTES_MAX {
        return Ok(());
    }
    let limit_mb = USER_SIZE_BYTES_MAX / 1024 / 1024;
    Err(Error::location(16493, format!("Tried to create string longer than {limit_mb}MB")))
}

/// About how much memory a value takes.
pub(crate) fn value_bytes(value: Value<'_>) -> usize {
    size_of::<OwnedValue>()
        + match value {
            Value::String(text) | Value::Code(text) | Value::Symbol(text) => text.len(),
            Value::Binary { bytes, .. } => bytes.len(),
            value => value.as_nested().map_or(0, |doc| doc.size_bytes()),
        }
}

/// Refuses a document or an array of so many bytes, if it is too large.
pub fn check_value(size_bytes: usize) -> Result<()> {
    if size_bytes <= VALUE_BYTES_MAX {
        return Ok(());
    }
    let reason = format!(
        "a value of at least {size_bytes} bytes is too large for an expression. Limit: {VALUE_BYTES_MAX} bytes"
    );
    Err(Error::new(ErrorCode::BSONObjectTooLarge, reason))
}
