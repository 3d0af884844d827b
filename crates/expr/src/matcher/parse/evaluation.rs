//! `$mod` and `$regex`.

use crate::Regex;
use crate::matcher::Modulo;
use bstr::BStr;
use pando_base::{Error, Result};
use pando_doc::{DocRef, Number, Rounding, Value};

pub(super) fn regex(pattern: &BStr, options: &BStr) -> Result<Regex> {
    Regex::new(pattern, options, "$regex")
}

/// `$regex` with its `$options`, in either order.
pub(super) fn regex_of(operators: DocRef<'_>) -> Result<Regex> {
    let (mut pattern, mut options) = (BStr::new(""), BStr::new(""));
    for element in operators.elements() {
        match (&**element.name, element.value) {
            (b"$regex", Value::String(text)) => pattern = text,
            (b"$regex", Value::Regex { pattern: text, options: flags }) => {
                pattern = text;
                if !flags.is_empty() {
                    if !options.is_empty() {
                        return Err(Error::location(51074, "options set in both $regex and $options"));
                    }
                    options = flags;
                }
            }
            (b"$regex", _) => return Err(Error::bad_value("$regex has to be a string")),
            (b"$options", Value::String(flags)) => {
                if !options.is_empty() {
                    return Err(Error::location(51075, "options set in both $regex and $options"));
                }
                options = flags;
            }
            (b"$options", _) => return Err(Error::bad_value("$options has to be a string")),
            _ => {}
        }
    }
    regex(pattern, options)
}

pub(super) fn modulo(value: Value<'_>) -> Result<Modulo> {
    let refused = |what: &str| Err(Error::bad_value(format!("malformed mod, {what}")));
    let Value::Array(array) = value else { return refused("needs to be an array") };
    let mut values = array.values();
    let (divisor, remainder) = match (values.next(), values.next(), values.next()) {
        (Some(divisor), Some(remainder), None) => (divisor, remainder),
        (_, None, _) => return refused("not enough elements"),
        _ => return refused("too many elements"),
    };
    let Some(divisor) = divisor.as_number() else { return refused("divisor not a number") };
    let Some(remainder) = remainder.as_number() else { return refused("remainder not a number") };
    let divisor = whole(divisor).map_err(|error| error.context("malformed mod, divisor value is invalid"))?;
    let remainder = whole(remainder).map_err(|error| error.context("malformed mod, remainder value is invalid"))?;
    if divisor == 0 {
        return Err(Error::bad_value("divisor cannot be 0"));
    }
    Ok(Modulo { divisor, remainder })
}

/// The number without its fraction.
fn whole(number: Number) -> Result<i64> {
    if number.is_nan() || matches!(number, Number::Double(double) if double.is_infinite()) {
        return Err(Error::bad_value("Unable to coerce NaN/Inf to integral type"));
    }
    let whole = match number {
        Number::Double(double) => Number::Double(double.trunc()),
        Number::Decimal(decimal) if decimal.is_infinite() => {
            return Err(Error::bad_value("Unable to coerce NaN/Inf to integral type"));
        }
        Number::Decimal(decimal) => Number::Decimal(decimal.round_to_whole(Rounding::TowardZero)),
        other => other,
    };
    whole.to_i64_exact().ok_or_else(|| Error::bad_value("Out of bounds coercing to integral value"))
}
