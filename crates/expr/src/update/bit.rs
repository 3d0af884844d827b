//! `$bit`: and, or, xor on whole numbers.

use super::operation::{Change, Surroundings};
use pando_base::{Error, Result};
use pando_doc::{Element, Number, OwnedValue, Value};

/// One of the three, with its operand.
#[derive(Clone, Copy, Debug)]
pub(super) struct BitOperation {
    reckon: fn(i64, i64) -> i64,
    operand: Number,
}

pub(super) fn parse(element: Element<'_>) -> Result<Vec<BitOperation>> {
    let Value::Document(doc) = element.value else {
        let reason = format!(
            "The $bit modifier is not compatible with a {}. You must pass in an embedded document: {{$bit: {{field: {{and/or/xor: #}}}}",
            element.value.value_type()
        );
        return Err(Error::bad_value(reason));
    };
    let mut operations = Vec::new();
    for field in doc.elements() {
        let reckon: fn(i64, i64) -> i64 = match &**field.name {
            b"and" => |left, right| left & right,
            b"or" => |left, right| left | right,
            b"xor" => |left, right| left ^ right,
            _ => {
                let reason = format!(
                    "The $bit modifier only supports 'and', 'or', and 'xor', not '{}' which is an unknown operator: {{{element}}}",
                    field.name
                );
                return Err(Error::bad_value(reason));
            }
        };
        let operand = match field.value.as_number() {
            Some(number @ (Number::Int32(_) | Number::Int64(_))) => number,
            _ => {
                let reason = format!(
                    "The $bit modifier field must be an Integer(32/64 bit); a '{}' is not supported here: {{{field}}}",
                    field.value.value_type()
                );
                return Err(Error::bad_value(reason));
            }
        };
        operations.push(BitOperation { reckon, operand });
    }
    if operations.is_empty() {
        let reason = "You must pass in at least one bitwise operation. The format is: {$bit: {field: {and/or/xor: #}}";
        return Err(Error::bad_value(reason));
    }
    Ok(operations)
}

pub(super) fn apply(
    operations: &[BitOperation],
    value: Option<Value<'_>>,
    around: &Surroundings<'_>,
) -> Result<Change> {
    let mut result = match value.map(|value| (value, value.as_number())) {
        None => Number::Int32(0),
        Some((_, Some(number @ (Number::Int32(_) | Number::Int64(_))))) => number,
        Some((value, _)) => {
            let reason = format!(
                "Cannot apply $bit to a value of non-integral type.{} has the field {} of non-integer type {}",
                around.document(),
                around.field(),
                value.value_type()
            );
            return Err(Error::bad_value(reason));
        }
    };
    for operation in operations {
        let whole = (operation.reckon)(result.truncated_i64(), operation.operand.truncated_i64());
        result = match (result, operation.operand) {
            (Number::Int32(_), Number::Int32(_)) => Number::Int32(whole as i32),
            _ => Number::Int64(whole),
        };
    }
    Ok(Change::Set(OwnedValue::from(result)))
}
