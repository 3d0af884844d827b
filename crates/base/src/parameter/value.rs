//! A parameter's value without its type, as commands and command lines give it.

use crate::{Error, ErrorCode, Result};

/// A value to set, or one to show.
#[derive(Clone, Debug, PartialEq)]
pub enum ParameterValue {
    /// A boolean.
    Bool(bool),
    /// A 32-bit integer.
    Int(i32),
    /// A 64-bit integer.
    Long(i64),
    /// A double.
    Double(f64),
    /// A string.
    String(String),
    /// A BSON document's bytes.
    Document(Vec<u8>),
}

impl ParameterValue {
    /// A boolean of anything: numbers by not being zero, the rest by being there.
    pub(super) fn to_bool(&self) -> bool {
        match self {
            ParameterValue::Bool(value) => *value,
            ParameterValue::Int(value) => *value != 0,
            ParameterValue::Long(value) => *value != 0,
            ParameterValue::Double(value) => *value != 0.0,
            ParameterValue::String(_) | ParameterValue::Document(_) => true,
        }
    }

    /// An integer of a number or a boolean; doubles lose their fraction.
    pub(super) fn to_long(&self) -> Result<i64> {
        match self {
            ParameterValue::Bool(value) => Ok(i64::from(*value)),
            ParameterValue::Int(value) => Ok(i64::from(*value)),
            ParameterValue::Long(value) => Ok(*value),
            ParameterValue::Double(value) => long_of_double(*value),
            ParameterValue::String(_) | ParameterValue::Document(_) => {
                Err(Error::bad_value("Unable to coerce value to integral type"))
            }
        }
    }

    /// A double of a number.
    pub(super) fn to_double(&self) -> Result<f64> {
        match self {
            ParameterValue::Int(value) => Ok(f64::from(*value)),
            ParameterValue::Long(value) => Ok(*value as f64),
            ParameterValue::Double(value) => Ok(*value),
            _ => Err(wrong_type()),
        }
    }
}

/// The complaint for which there is no better one.
pub(super) fn wrong_type() -> Error {
    Error::bad_value("Unable to coerce value to correct type")
}

/// The complaint about an integer that does not fit.
pub(super) fn out_of_bounds() -> Error {
    Error::bad_value("Out of bounds coercing to integral value")
}

fn long_of_double(value: f64) -> Result<i64> {
    if !value.is_finite() {
        return Err(Error::bad_value("Unable to coerce NaN/Inf to integral type"));
    }
    // The upper limit is not a double; the next one above it is out.
    if value >= i64::MAX as f64 || value < i64::MIN as f64 {
        return Err(out_of_bounds());
    }
    Ok(value as i64)
}

/// An integer from text: decimal, or hexadecimal after "0x", with a sign if need be.
pub(super) fn parse_long(text: &str) -> Result<i64> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (radix, digits) = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(rest) => (16, rest),
        None => (10, digits),
    };
    if digits.is_empty() {
        return Err(Error::failed_to_parse("Did not consume any digits"));
    }
    if !digits.chars().all(|digit| digit.is_digit(radix)) {
        return Err(Error::failed_to_parse("Did not consume whole string."));
    }
    let overflow = || Error::new(ErrorCode::Overflow, "Overflow");
    let number = i128::from_str_radix(digits, radix).map_err(|_| overflow())?;
    i64::try_from(if is_negative { -number } else { number }).map_err(|_| overflow())
}

/// A double from text.
pub(super) fn parse_double(text: &str) -> Result<f64> {
    text.parse().map_err(|_| Error::failed_to_parse("Did not consume any digits"))
}

/// A boolean from text.
pub(super) fn parse_bool(text: &str) -> Result<bool> {
    match text {
        "1" | "true" => Ok(true),
        "0" | "false" => Ok(false),
        _ => Err(Error::bad_value("Value is not a valid boolean")),
    }
}
