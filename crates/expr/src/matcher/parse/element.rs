//! `$type`, `$size` and the tests of bits: operators on the form of a value.

use crate::matcher::{BitTest, Bits, TypeSet};
use pando_base::{Error, Result};
use pando_doc::{Element, FieldPath, Number, Value};

pub(super) fn types(path: &FieldPath, value: Value<'_>) -> Result<TypeSet> {
    let types = TypeSet::parse(value)?;
    if types.is_empty() {
        return Err(Error::failed_to_parse(format!("{path} must match at least one type")));
    }
    Ok(types)
}

pub(super) fn size(element: Element<'_>) -> Result<i32> {
    element
        .parse_non_negative_i32()
        .map_err(|error| Error::bad_value(format!("Failed to parse $size. {}", error.reason())))
}

pub(super) fn bits(test: BitTest, element: Element<'_>) -> Result<Bits> {
    let positions = match element.value {
        Value::Array(array) => array.as_doc().elements().map(position).collect::<Result<Vec<u32>>>()?,
        Value::Binary { bytes, .. } => set_bits(bytes),
        value if value.is_number() => set_bits(&element.parse_non_negative_i64()?.to_le_bytes()),
        _ => {
            let reason = format!("{} takes an Array, a number, or a BinData but received: {element:#}", element.name);
            return Err(Error::bad_value(reason));
        }
    };
    Ok(Bits::new(test, positions))
}

fn set_bits(bytes: &[u8]) -> Vec<u32> {
    let is_set = |position: &u32| bytes.get(*position as usize / 8).is_some_and(|byte| byte >> (position % 8) & 1 == 1);
    (0..bytes.len() as u32 * 8).filter(is_set).collect()
}

fn position(element: Element<'_>) -> Result<u32> {
    let refused = |what: &str| Err(Error::bad_value(format!("{what}: {element:#}")));
    let Some(number) = element.value.as_number() else {
        return refused("bit positions must be an integer but got");
    };
    match number {
        Number::Double(double) if double.is_nan() => return refused("bit positions cannot take a NaN"),
        Number::Double(double) if double.abs() > f64::from(i32::MAX) => {
            return refused("bit positions cannot be represented as a 32-bit signed integer");
        }
        _ => {}
    }
    match number.to_i64_exact().map(i32::try_from) {
        None => refused("bit positions must be an integer but got"),
        Some(Err(_)) => refused("bit positions cannot be represented as a 32-bit signed integer"),
        Some(Ok(position)) => u32::try_from(position).or_else(|_| refused("bit positions must be >= 0 but got")),
    }
}
