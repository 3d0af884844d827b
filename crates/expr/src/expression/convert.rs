//! `$convert` and its short forms: from every type to the eight that can be asked for, and the texts of values.

use super::Operand;
use super::convert_number as number;
use super::date::{MONTHS, iso_text};
use bstr::{BStr, BString};
use pando_base::{Error, ErrorCode, Result};
use pando_doc::{DateParts, Number, ObjectId, OwnedValue, Rounding, Value, ValueType, short_double};

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
    let is_missing = match to.or_null() {
        Value::String(name) => name == "missing",
        number => number.is_number() && number.to_i64_exact() == Some(0),
    };
    if is_missing {
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
    match text_of(from)? {
        Some(text) => Ok(OwnedValue::String(Vec::from(text).into())),
        None => Err(unsupported(from, ValueType::String)),
    }
}

/// Numbers, dates, object ids, booleans and strings as texts.
fn text_of(value: Value<'_>) -> Result<Option<BString>> {
    Ok(Some(match value {
        Value::String(text) => text.to_owned(),
        Value::Bool(truth) => BString::from(truth.to_string()),
        Value::Int32(number) => BString::from(number.to_string()),
        Value::Int64(number) => BString::from(number.to_string()),
        Value::Decimal(number) => BString::from(number.to_string()),
        Value::Double(number) => BString::from(double_text(number)),
        Value::ObjectId(id) => BString::from(id.to_string()),
        Value::DateTime(milliseconds) => iso_text(milliseconds)?,
        _ => return Ok(None),
    }))
}

/// The shortest text that leads back to the double.
fn double_text(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number < 0.0 { "-Infinity" } else { "Infinity" }.to_owned();
    }
    let text = format!("{number:e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !(-4..16).contains(&exponent) {
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
            let moment = DateParts::from_milliseconds(i64::from(timestamp.seconds()) * 1000);
            let month = moment.month.checked_sub(1).and_then(|month| MONTHS.get(month as usize)).unwrap_or(&"");
            let month = month.get(..3).unwrap_or(month);
            let DateParts { day, hour, minute, second, .. } = moment;
            let increment = timestamp.increment();
            Ok(BString::from(format!("{month} {day:2} {hour:02}:{minute:02}:{second:02}:{increment}")))
        }
        value if value.is_nullish() => Ok(BString::default()),
        Value::Symbol(text) | Value::Code(text) => Ok(text.to_owned()),
        value @ (Value::Bool(_) | Value::ObjectId(_)) => Err(no_string(value)),
        // Not with as many digits as lead back to the double, as `$toString` has it.
        Value::Double(number) => Ok(BString::from(short_double(number))),
        value @ Value::DateTime(_) => text_of(value)
            .map_err(|error| error.context("failed while coercing date to string"))?
            .ok_or_else(|| no_string(value)),
        value => text_of(value)?.ok_or_else(|| no_string(value)),
    }
}

fn no_string(value: Value<'_>) -> Error {
    Error::location(16007, format!("can't convert from BSON type {} to String", value.value_type()))
}

/// A number without its fraction. A decimal that has no place in an int64 is the least one.
pub(super) fn coerce_to_long(operand: &Operand<'_>) -> Result<i64> {
    match operand.as_number() {
        None => {
            let reason = format!("can't convert from BSON type {} to long", operand.type_name());
            Err(Error::location(16004, reason))
        }
        Some(Number::Decimal(number)) => {
            Ok(number.round_to_whole(Rounding::HalfEven).to_i64_exact().unwrap_or(i64::MIN))
        }
        // The upper bound itself is one too many, and is taken for the greatest.
        Some(Number::Double(number)) if !(i64::MIN as f64..=i64::MAX as f64).contains(&number) => {
            let reason = format!("Can't coerce out of range value {} to long", short_double(number));
            Err(Error::location(31109, reason))
        }
        Some(number) => Ok(number.truncated_i64()),
    }
}

/// A date of a date, a timestamp or an object id, for operators on dates.
pub(super) fn coerce_to_date(value: Value<'_>) -> Result<i64> {
    match value {
        Value::DateTime(milliseconds) => Ok(milliseconds),
        Value::Timestamp(timestamp) => Ok(i64::from(timestamp.seconds()) * 1000),
        Value::ObjectId(id) => Ok(id.milliseconds()),
        value => Err(Error::location(16006, format!("can't convert from BSON type {} to Date", value.value_type()))),
    }
}

/// The number, for those who take texts for numbers.
pub(super) fn parse_text(text: &BStr) -> Option<&str> {
    std::str::from_utf8(text).ok()
}
