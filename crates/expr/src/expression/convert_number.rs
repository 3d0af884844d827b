//! Conversions to numbers and dates.

use super::convert::{failure, parse_text, unsupported};
use super::date::{Zone, parse_date};
use bstr::BStr;
use pando_base::{Error, Result};
use pando_doc::{Decimal128, Number, OwnedValue, Rounding, Value, ValueType};

fn unparsable(text: &BStr, why: &str) -> Error {
    failure(format!("Failed to parse number '{text}' in $convert with no onError value: {why}"))
}

fn overflow(value: Value<'_>) -> Error {
    failure(format!("Conversion would overflow target type in $convert with no onError value: {value}"))
}

fn not_a_number(value: Value<'_>) -> Error {
    match value {
        Value::Double(number) if number.is_nan() => {
            failure("Attempt to convert NaN value to integer type in $convert with no onError value")
        }
        Value::Double(_) => {
            failure("Attempt to convert infinity value to integer type in $convert with no onError value")
        }
        _ => failure("Attempt to convert NaN or infinity value to integer type in $convert with no onError value"),
    }
}

pub(super) fn to_double(value: Value<'_>) -> Result<OwnedValue> {
    match value {
        Value::Bool(truth) => Ok(OwnedValue::Double(f64::from(u8::from(truth)))),
        Value::DateTime(milliseconds) => Ok(OwnedValue::Double(milliseconds as f64)),
        Value::String(text) => parse_double(text).map(OwnedValue::Double),
        Value::Decimal(decimal) => {
            let double = decimal.to_double();
            let is_lost = decimal.is_finite() && double.is_infinite();
            if is_lost { Err(overflow(value)) } else { Ok(OwnedValue::Double(double)) }
        }
        value => match value.as_number() {
            Some(number) => Ok(OwnedValue::Double(number.to_double())),
            None => Err(unsupported(value, ValueType::Double)),
        },
    }
}

/// Strictly a number: no spaces, no sign of plus twice, nothing behind it.
fn parse_double(text: &BStr) -> Result<f64> {
    let Some(plain) = parse_text(text).filter(|plain| !plain.is_empty()) else {
        return Err(unparsable(text, "No digits"));
    };
    if plain.starts_with(char::is_whitespace) {
        return Err(unparsable(text, "Leading whitespace"));
    }
    let is_hexadecimal = plain.trim_start_matches(['+', '-']).to_ascii_lowercase().starts_with("0x");
    if is_hexadecimal {
        return Err(unparsable(text, "Did not consume whole string."));
    }
    let parsed: f64 = plain.parse().map_err(|_| unparsable(text, "Did not consume whole string."))?;
    let is_spelled = plain.bytes().any(|byte| byte.is_ascii_digit());
    if parsed.is_infinite() && is_spelled {
        return Err(unparsable(text, "Out of range"));
    }
    Ok(parsed)
}

fn parse_whole(text: &BStr) -> Result<i64> {
    let Some(plain) = parse_text(text).filter(|plain| !plain.is_empty()) else {
        return Err(unparsable(text, "No digits"));
    };
    let digits = plain.strip_prefix(['+', '-']).unwrap_or(plain);
    if digits.is_empty() {
        return Err(unparsable(text, "No digits"));
    }
    if plain.starts_with(char::is_whitespace) {
        return Err(unparsable(text, "Leading whitespace"));
    }
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(unparsable(text, "Did not consume whole string."));
    }
    plain.parse().map_err(|_| unparsable(text, "Overflow"))
}

/// The number without its fraction, if it fits.
fn truncated(value: Value<'_>, number: Number) -> Result<i64> {
    let whole = match number {
        Number::Double(double) if !double.is_finite() => return Err(not_a_number(value)),
        Number::Decimal(decimal) if !decimal.is_finite() => return Err(not_a_number(value)),
        Number::Double(double) => Number::Double(double.trunc()),
        Number::Decimal(decimal) => Number::Decimal(decimal.round_to_whole(Rounding::TowardZero)),
        whole => whole,
    };
    whole.to_i64_exact().ok_or_else(|| overflow(value))
}

pub(super) fn to_int(value: Value<'_>) -> Result<OwnedValue> {
    let whole = match value {
        Value::Bool(truth) => i64::from(truth),
        Value::String(text) => {
            let whole = parse_whole(text)?;
            return i32::try_from(whole).map(OwnedValue::Int32).map_err(|_| unparsable(text, "Overflow"));
        }
        value => match value.as_number() {
            Some(number) => truncated(value, number)?,
            None => return Err(unsupported(value, ValueType::Int32)),
        },
    };
    i32::try_from(whole).map(OwnedValue::Int32).map_err(|_| overflow(value))
}

pub(super) fn to_long(value: Value<'_>) -> Result<OwnedValue> {
    Ok(OwnedValue::Int64(match value {
        Value::Bool(truth) => i64::from(truth),
        Value::DateTime(milliseconds) => milliseconds,
        Value::String(text) => parse_whole(text)?,
        value => match value.as_number() {
            Some(number) => truncated(value, number)?,
            None => return Err(unsupported(value, ValueType::Int64)),
        },
    }))
}

pub(super) fn to_decimal(value: Value<'_>) -> Result<OwnedValue> {
    Ok(OwnedValue::Decimal(match value {
        Value::Bool(truth) => Decimal128::from(i32::from(truth)),
        Value::DateTime(milliseconds) => Decimal128::from(milliseconds),
        Value::String(text) => {
            let parsed = parse_text(text).and_then(|plain| Decimal128::parse(plain).ok());
            let parsed = parsed.ok_or_else(|| unparsable(text, "Failed to parse string to decimal"))?;
            if parsed.overflow {
                return Err(unparsable(text, "Conversion from string to decimal would overflow"));
            }
            if parsed.underflow {
                return Err(unparsable(text, "Conversion from string to decimal would underflow"));
            }
            parsed.value
        }
        value => match value.as_number() {
            Some(number) => number.to_decimal(),
            None => return Err(unsupported(value, ValueType::Decimal)),
        },
    }))
}

pub(super) fn to_date(value: Value<'_>) -> Result<OwnedValue> {
    Ok(OwnedValue::DateTime(match value {
        Value::Int64(milliseconds) => milliseconds,
        Value::Double(_) | Value::Decimal(_) => {
            let number = value.as_number().unwrap_or(Number::Int32(0));
            truncated(value, number)?
        }
        Value::ObjectId(id) => id.milliseconds(),
        Value::Timestamp(timestamp) => i64::from(timestamp.seconds()) * 1000,
        Value::String(text) => parse_date(text, &Zone::Utc)
            .map_err(|error| failure(format!("{} in $convert with no onError value", error.reason())))?,
        value => return Err(unsupported(value, ValueType::DateTime)),
    }))
}
