//! Numbers within bounds, with the error that MongoDB's parsers give.

use pando_base::{Error, Result};
use std::ops::RangeInclusive;

/// The number, if it is within the bounds.
pub(super) fn in_range(document: &str, field: &str, number: i64, range: RangeInclusive<i64>) -> Result<i64> {
    let wrong = |relation: &str, bound: i64| {
        let reason =
            format!("BSON field '{document}.{field}' value must be {relation} {bound}, actual value '{number}'");
        Err(Error::location(51024, reason))
    };
    match number {
        number if number < *range.start() => wrong(">=", *range.start()),
        number if number > *range.end() => wrong("<=", *range.end()),
        number => Ok(number),
    }
}
