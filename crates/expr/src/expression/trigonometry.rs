//! Trigonometry. Decimals are reckoned through doubles: the digits beyond a double's are not MongoDB's.

use super::arithmetic::unary;
use super::{Environment, Operand};
use pando_base::{Error, Result};
use pando_doc::{Decimal128, Number, Value};
use std::ops::RangeInclusive;

const EVERYTHING: RangeInclusive<f64> = f64::NEG_INFINITY..=f64::INFINITY;

/// A function on numbers within bounds.
fn bounded<'a>(
    operands: &[Operand<'_>],
    name: &str,
    bounds: RangeInclusive<f64>,
    reckon: fn(f64) -> f64,
) -> Result<Operand<'a>> {
    unary(operands, name, |number| {
        let double = number.to_double();
        if !double.is_nan() && !bounds.contains(&double) {
            let (least, most) = (bounds.start(), bounds.end());
            let reason = format!("cannot apply {name} to {}, value must be in [{least},{most}]", Value::from(number));
            return Err(Error::location(50989, reason));
        }
        Ok(like(number, reckon(double)))
    })
}

/// A decimal if the operand was one, else a double.
fn like(operand: Number, result: f64) -> Number {
    match operand {
        Number::Decimal(_) => Number::Decimal(Decimal128::from_double_34_digits(result)),
        _ => Number::Double(result),
    }
}

macro_rules! functions {
    ($($function:ident, $name:literal, $bounds:expr, $reckon:expr;)*) => {
        $(pub(super) fn $function<'a>(operands: &[Operand<'a>], _: &Environment<'_>) -> Result<Operand<'a>> {
            bounded(operands, $name, $bounds, $reckon)
        })*
    };
}

const FINITE: RangeInclusive<f64> = f64::MIN..=f64::MAX;

functions! {
    sin, "$sin", FINITE, f64::sin;
    cos, "$cos", FINITE, f64::cos;
    tan, "$tan", FINITE, f64::tan;
    asin, "$asin", -1.0..=1.0, f64::asin;
    acos, "$acos", -1.0..=1.0, f64::acos;
    atan, "$atan", EVERYTHING, f64::atan;
    sinh, "$sinh", EVERYTHING, f64::sinh;
    cosh, "$cosh", EVERYTHING, f64::cosh;
    tanh, "$tanh", EVERYTHING, f64::tanh;
    asinh, "$asinh", EVERYTHING, f64::asinh;
    acosh, "$acosh", 1.0..=f64::INFINITY, f64::acosh;
    atanh, "$atanh", -1.0..=1.0, f64::atanh;
    degrees_to_radians, "$degreesToRadians", EVERYTHING, |number| number * (std::f64::consts::PI / 180.0);
    radians_to_degrees, "$radiansToDegrees", EVERYTHING, |number| number * (180.0 / std::f64::consts::PI);
}

pub(super) fn atan2<'a>(operands: &[Operand<'a>], _: &Environment<'_>) -> Result<Operand<'a>> {
    let [y, x] = operands else { return Ok(Operand::NULL) };
    match (y.as_number(), x.as_number()) {
        (Some(y), Some(x)) => {
            let wider = if matches!(x, Number::Decimal(_)) { x } else { y };
            Ok(Operand::from(like(wider, y.to_double().atan2(x.to_double()))))
        }
        _ if y.is_nullish() || x.is_nullish() => Ok(Operand::NULL),
        (None, _) => Err(not_numeric(y, 51044)),
        _ => Err(not_numeric(x, 51045)),
    }
}

fn not_numeric(operand: &Operand<'_>, code: i32) -> Error {
    Error::location(code, format!("$atan2 only supports numeric types, not {}", operand.type_name()))
}
