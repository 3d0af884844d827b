//! `$tsSecond` and `$tsIncrement`: the halves of a timestamp.

use super::{Environment, Operand};
use pando_base::{Error, Result, Timestamp};
use pando_doc::Value;

pub(super) fn second<'a>(operands: &[Operand<'a>], _: &Environment<'_>) -> Result<Operand<'a>> {
    half(operands, "$tsSecond", 5687301, |timestamp| timestamp.seconds())
}

pub(super) fn increment<'a>(operands: &[Operand<'a>], _: &Environment<'_>) -> Result<Operand<'a>> {
    half(operands, "$tsIncrement", 5687302, |timestamp| timestamp.increment())
}

fn half<'a>(operands: &[Operand<'_>], name: &str, code: i32, take: fn(Timestamp) -> u32) -> Result<Operand<'a>> {
    match operands.first().map_or(Value::Null, Operand::or_null) {
        Value::Timestamp(timestamp) => Ok(Operand::from(i64::from(take(timestamp)))),
        value if value.is_nullish() => Ok(Operand::NULL),
        value => {
            let reason = format!("Argument to {name} must be a timestamp, but is {}", value.value_type());
            Err(Error::location(code, reason))
        }
    }
}
