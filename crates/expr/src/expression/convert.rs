//! `$convert` and its short forms: from every type to the eight that can be asked for, and the texts of values.

use super::Operand;
use super::convert_number as number;
use bstr::{BStr, BString};
use pando_base::{Error, ErrorCode, Result};
use pando_doc::{ObjectId, OwnedValue, Value, ValueType, iso_8601};

/// The error that `onError` catches.
pub(super) fn is_conversion_failure(error: &Error) -> bool {
    error.code() == ErrorCode::ConversionFailure
}

pub(super) fn failure(reason: impl Into<String>) -> Error {
    Error::new(ErrorCode::ConversionFailure, reason)
}

/// The value as the type; neither is null.
pub(super) fn convert<'a>(value: &Operand<'a>, to: &Operand<'_>) -> Result<Operand<'a>> {
    let from = value.or_null();
    // The name of what is no type is known, but nothing becomes it.
    if matches!(to.or_null(), Value::String(name) if name == "missing") {
        let reason =
            format!("Unsupported conversion from {} to missing in $convert with no onError value", from.value_type());
        return Err(failure(reason));
    }
    let to = target(to)?;
    if from.value_type() == to {
        return Ok(value.clone());
    }
    let converted = match to {
        ValueType::Double => number::to_double(from),
        ValueType::Int32 => number::to_int(from),
        ValueType::Int64 => number::to_long(from),
        ValueType::Decimal => number::to_decimal(from),
        ValueType::Bool => Ok(OwnedValue::Bool(from.is_true())),
        ValueType::String => to_string(from),
        ValueType::ObjectId => to_object_id(from),
        ValueType::DateTime => number::to_date(from),
        _ => Err(unsupported(from, to)),
    };
    converted.map(Operand::Owned)
}

fn target(to: &Operand<'_>) -> Result<ValueType> {
    let unknown = |shown: String| Error::bad_value(format!("Unknown type name: {shown}"));
    match to.or_null() {
        Value::String(name) => {
            let known = std::str::from_utf8(name).ok().and_then(ValueType::from_name);
            known.ok_or_else(|| unknown(name.to_string()))
        }
        value => {
            let Some(number) = value.as_number() else {
                let reason =
                    format!("$convert's 'to' argument must be a string or number, but is {}", value.value_type());
                return Err(Error::failed_to_parse(reason));
            };
            let Some(whole) = number.to_i64_exact().and_then(|whole| i32::try_from(whole).ok()) else {
                let reason = "In $convert, numeric 'to' argument is not an integer";
                return Err(Error::failed_to_parse(reason));
            };
            ValueType::from_number(whole).ok_or_else(|| {
                Error::failed_to_parse(format!(
                    "In $convert, numeric value for 'to' does not correspond to a BSON type: {whole}"
                ))
            })
        }
    }
}

pub(super) fn unsupported(from: Value<'_>, to: ValueType) -> Error {
    failure(format!("Unsupported conversion from {} to {to} in $convert with no onError value", from.value_type()))
}

fn to_string(from: Value<'_>) -> Result<OwnedValue> {
    match text_of(from) {
        Some(text) => Ok(OwnedValue::String(Vec::from(text).into())),
        None => Err(unsupported(from, ValueType::String)),
    }
}

/// Numbers, dates, object ids, booleans and strings as texts.
fn text_of(value: Value<'_>) -> Option<BString> {
    Some(match value {
        Value::String(text) | Value::Symbol(text) | Value::Code(text) => text.to_owned(),
        Value::Bool(truth) => BString::from(truth.to_string()),
        Value::Int32(number) => BString::from(number.to_string()),
        Value::Int64(number) => BString::from(number.to_string()),
        Value::Decimal(number) => BString::from(number.to_string()),
        Value::Double(number) => BString::from(double_text(number)),
        Value::ObjectId(id) => BString::from(id.to_string()),
        Value::DateTime(milliseconds) => BString::from(iso_8601(milliseconds)),
        _ => return None,
    })
}

/// The shortest text that leads back to the double.
fn double_text(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number < 0.0 { "-Infinity" } else { "Infinity" }.to_owned();
    }
    let exponent = if number == 0.0 { 0.0 } else { number.abs().log10().floor() };
    if !(-5.0..16.0).contains(&exponent) {
        let text = format!("{number:e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let exponent: i32 = exponent.parse().unwrap_or(0);
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs());
    }
    number.to_string()
}

fn to_object_id(from: Value<'_>) -> Result<OwnedValue> {
    let Value::String(text) = from else { return Err(unsupported(from, ValueType::ObjectId)) };
    let parsed = std::str::from_utf8(text).ok().and_then(|text| text.parse::<ObjectId>().ok());
    parsed.map(OwnedValue::ObjectId).ok_or_else(|| {
        let length = text.len();
        let reason = format!(
            "Failed to parse objectId '{text}' in $convert with no onError value: Invalid string length for parsing to OID, expected 24 but found {length}"
        );
        failure(reason)
    })
}

/// The text of a value where operators take numbers and dates for strings; nothing of null.
pub(crate) fn coerce_to_string(operand: &Operand<'_>) -> Result<BString> {
    match operand.or_null() {
        Value::Timestamp(timestamp) => {
            Ok(BString::from(format!("Timestamp({}, {})", timestamp.seconds(), timestamp.increment())))
        }
        value if value.is_nullish() => Ok(BString::default()),
        value @ (Value::Bool(_) | Value::ObjectId(_)) => Err(no_string(value)),
        value => text_of(value).ok_or_else(|| no_string(value)),
    }
}

fn no_string(value: Value<'_>) -> Error {
    Error::location(16007, format!("can't convert from BSON type {} to String", value.value_type()))
}

/// A date of a date, a timestamp or an object id, for operators on dates.
pub(super) fn coerce_to_date(value: Value<'_>) -> Result<i64> {
    match value {
        Value::DateTime(milliseconds) => Ok(milliseconds),
        Value::Timestamp(timestamp) => Ok(i64::from(timestamp.seconds()) * 1000),
        Value::ObjectId(id) => Ok(i64::from(id.seconds()) * 1000),
        value => Err(Error::location(16006, format!("can't convert from BSON type {} to Date", value.value_type()))),
    }
}

/// The number, for those who take texts for numbers.
pub(super) fn parse_text(text: &BStr) -> Option<&str> {
    std::str::from_utf8(text).ok()
}
