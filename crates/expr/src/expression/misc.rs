//! `$type`, `$isNumber`, `$rand`-like odds and ends, `$toHashedIndexKey` and sizes.

use super::{Environment, Operand};
use pando_base::{Error, Result};
use pando_doc::{HASH_SEED, Value, doc, hash_element, hash_null};

pub(super) fn type_of<'a>(operands: &[Operand<'a>], _: &Environment<'_>) -> Result<Operand<'a>> {
    Ok(Operand::from(operands.first().map_or("missing", Operand::type_name)))
}

pub(super) fn is_number<'a>(operands: &[Operand<'a>], _: &Environment<'_>) -> Result<Operand<'a>> {
    Ok(Operand::from(operands.first().is_some_and(|operand| operand.as_number().is_some())))
}

/// The key that the value has in a hashed index; what is missing has that of null.
pub(super) fn to_hashed_index_key<'a>(operands: &[Operand<'a>], _: &Environment<'_>) -> Result<Operand<'a>> {
    let value = operands.first().and_then(Operand::view).filter(|value| !matches!(value, Value::Undefined));
    let holder = value.map(|value| doc! { "": value });
    let element = holder.as_ref().and_then(|holder| holder.view().raw_elements().next());
    Ok(Operand::from(element.map_or_else(|| hash_null(HASH_SEED), |element| hash_element(element, HASH_SEED))))
}

pub(super) fn bson_size<'a>(operands: &[Operand<'a>], _: &Environment<'_>) -> Result<Operand<'a>> {
    match operands.first().map_or(Value::Null, Operand::or_null) {
        Value::Document(doc) => Ok(Operand::from(doc.size_bytes() as i32)),
        value if value.is_nullish() => Ok(Operand::NULL),
        value => {
            let reason = format!("$bsonSize requires a document input, found: {}", value.value_type());
            Err(Error::location(31393, reason))
        }
    }
}

pub(super) fn binary_size<'a>(operands: &[Operand<'a>], _: &Environment<'_>) -> Result<Operand<'a>> {
    match operands.first().map_or(Value::Null, Operand::or_null) {
        Value::String(text) => Ok(Operand::from(text.len() as i32)),
        Value::Binary { bytes, .. } => Ok(Operand::from(bytes.len() as i32)),
        value if value.is_nullish() => Ok(Operand::NULL),
        value => {
            let reason = format!("$binarySize requires a string or BinData argument, found: {}", value.value_type());
            Err(Error::location(51276, reason))
        }
    }
}
