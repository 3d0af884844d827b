//! `$bitAnd`, `$bitOr`, `$bitXor`, `$bitNot`: on int32 and int64.

use super::{Environment, Operand};
use pando_base::{Error, Result};
use pando_doc::Number;

fn fold<'a>(operands: &[Operand<'_>], name: &str, start: i32, reckon: fn(i64, i64) -> i64) -> Result<Operand<'a>> {
    let mut result = Number::Int32(start);
    let mut has_null = false;
    for operand in operands {
        if operand.is_nullish() {
            has_null = true;
            continue;
        }
        result = match (result, operand.as_number()) {
            (Number::Int32(left), Some(Number::Int32(right))) => {
                Number::Int32(reckon(left.into(), right.into()) as i32)
            }
            (left, Some(right @ (Number::Int32(_) | Number::Int64(_)))) => {
                Number::Int64(reckon(left.truncated_i64(), right.truncated_i64()))
            }
            _ => return Err(Error::type_mismatch(format!("{name} only supports int and long operands."))),
        };
    }
    Ok(if has_null { Operand::NULL } else { Operand::from(result) })
}

pub(super) fn and<'a>(operands: &[Operand<'a>], _: &Environment<'_>) -> Result<Operand<'a>> {
    fold(operands, "$bitAnd", -1, |left, right| left & right)
}

pub(super) fn or<'a>(operands: &[Operand<'a>], _: &Environment<'_>) -> Result<Operand<'a>> {
    fold(operands, "$bitOr", 0, |left, right| left | right)
}

pub(super) fn xor<'a>(operands: &[Operand<'a>], _: &Environment<'_>) -> Result<Operand<'a>> {
    fold(operands, "$bitXor", 0, |left, right| left ^ right)
}

pub(super) fn not<'a>(operands: &[Operand<'a>], _: &Environment<'_>) -> Result<Operand<'a>> {
    let Some(operand) = operands.first() else { return Ok(Operand::NULL) };
    match operand.as_number() {
        Some(Number::Int32(number)) => Ok(Operand::from(!number)),
        Some(Number::Int64(number)) => Ok(Operand::from(!number)),
        None if operand.is_nullish() => Ok(Operand::NULL),
        _ => {
            let reason = format!("$bitNot only supports int and long, not: {}.", operand.type_name());
            Err(Error::type_mismatch(reason))
        }
    }
}
