//! Arithmetic: results have the widest kind of their operands; null or missing makes null.

use super::convert::coerce_to_long;
use super::{Environment, Operand};
use pando_base::{Error, Result};
use pando_doc::{Decimal128, DecimalParts as Parts, Number, OwnedValue, Rounding, Value, short_double};

pub(super) fn add<'a>(operands: &[Operand<'a>], _: &Environment<'_>) -> Result<Operand<'a>> {
    let mut sum = Number::Int32(0);
    let mut date = None;
    for operand in operands {
        match operand.view() {
            Some(Value::DateTime(milliseconds)) => {
                if date.replace(shift_date(milliseconds, sum, "$add")?).is_some() {
                    return Err(Error::location(16612, "only one date allowed in an $add expression"));
                }
            }
            Some(value) if value.is_number() => {
                let number = value.as_number().unwrap_or(sum);
                // From the date on each number is rounded by itself.
                match &mut date {
                    Some(date) => *date = shift_date(*date, number, "$add")?,
                    None => sum = sum.plus(number),
                }
            }
            Some(value) if !value.is_nullish() => {
                let reason = format!("$add only supports numeric or date types, not {}", value.value_type());
                return Err(Error::type_mismatch(reason));
            }
            _ => return Ok(Operand::NULL),
        }
    }
    Ok(date.map_or_else(|| Operand::from(sum), |date| Operand::Owned(OwnedValue::DateTime(date))))
}

/// A date moved by milliseconds; fractions of one are rounded.
fn shift_date(date: i64, by: Number, operator: &str) -> Result<i64> {
    let overflow = || Error::new(pando_base::ErrorCode::Overflow, format!("date overflow in {operator}"));
    let by = match by {
        Number::Double(number) => Number::Double(number.round()),
        other => other,
    };
    let by = match by {
        Number::Decimal(decimal) => decimal.round_to_whole(Rounding::HalfEven).to_i64_exact(),
        other => other.to_i64_exact(),
    };
    by.and_then(|by| date.checked_add(by)).ok_or_else(overflow)
}

pub(super) fn subtract<'a>(operands: &[Operand<'a>], _: &Environment<'_>) -> Result<Operand<'a>> {
    let [left, right] = operands else { return Ok(Operand::NULL) };
    if left.is_nullish() || right.is_nullish() {
        return Ok(Operand::NULL);
    }
    match (left.or_null(), right.or_null()) {
        (Value::DateTime(left), Value::DateTime(right)) => Ok(Operand::from(left.wrapping_sub(right))),
        (Value::DateTime(date), by) if by.is_number() => {
            let by = by.as_number().unwrap_or(Number::Int32(0));
            let moved = shift_date(date, Number::Int32(0).minus(by), "$subtract")?;
            Ok(Operand::Owned(OwnedValue::DateTime(moved)))
        }
        (left, right) => match (left.as_number(), right.as_number()) {
            (Some(left), Some(right)) => Ok(Operand::from(left.minus(right))),
            _ => {
                let reason = format!("can't $subtract {} from {}", right.value_type(), left.value_type());
                Err(Error::type_mismatch(reason))
            }
        },
    }
}

pub(super) fn multiply<'a>(operands: &[Operand<'a>], _: &Environment<'_>) -> Result<Operand<'a>> {
    let mut product = Number::Int32(1);
    for operand in operands {
        match operand.as_number() {
            Some(number) => product = product.times(number),
            None if operand.is_nullish() => return Ok(Operand::NULL),
            None => {
                let reason = format!("$multiply only supports numeric types, not {}", operand.type_name());
                return Err(Error::type_mismatch(reason));
            }
        }
    }
    Ok(Operand::from(product))
}

pub(super) fn divide<'a>(operands: &[Operand<'a>], _: &Environment<'_>) -> Result<Operand<'a>> {
    let [left, right] = operands else { return Ok(Operand::NULL) };
    match (left.as_number(), right.as_number()) {
        (Some(left), Some(right)) => {
            left.divided_by(right).map(Operand::from).ok_or_else(|| Error::bad_value("can't $divide by zero"))
        }
        _ if left.is_nullish() || right.is_nullish() => Ok(Operand::NULL),
        _ => {
            let (left, right) = (left.type_name(), right.type_name());
            Err(Error::type_mismatch(format!("$divide only supports numeric types, not {left} and {right}")))
        }
    }
}

pub(super) fn modulo<'a>(operands: &[Operand<'a>], _: &Environment<'_>) -> Result<Operand<'a>> {
    let [left, right] = operands else { return Ok(Operand::NULL) };
    match (left.as_number(), right.as_number()) {
        (Some(left), Some(right)) => {
            left.modulo(right).map(Operand::from).ok_or_else(|| Error::location(16610, "can't $mod by zero"))
        }
        _ if left.is_nullish() || right.is_nullish() => Ok(Operand::NULL),
        _ => {
            let (left, right) = (left.type_name(), right.type_name());
            Err(Error::location(16611, format!("$mod only supports numeric types, not {left} and {right}")))
        }
    }
}

/// A function of one number; null of null.
pub(super) fn unary<'a>(
    operands: &[Operand<'_>],
    name: &str,
    reckon: impl FnOnce(Number) -> Result<Number>,
) -> Result<Operand<'a>> {
    let Some(operand) = operands.first() else { return Ok(Operand::NULL) };
    match operand.as_number() {
        Some(number) => reckon(number).map(Operand::from),
        None if operand.is_nullish() => Ok(Operand::NULL),
        None => {
            let reason = format!("{name} only supports numeric types, not {}", operand.type_name());
            Err(Error::location(28765, reason))
        }
    }
}

pub(super) fn abs<'a>(operands: &[Operand<'a>], _: &Environment<'_>) -> Result<Operand<'a>> {
    unary(operands, "$abs", |number| {
        Ok(match number {
            Number::Int32(number) => Number::narrowest(i64::from(number).abs()),
            Number::Int64(number) => Number::Int64(
                number.checked_abs().ok_or_else(|| Error::location(28680, "can't take $abs of long long min"))?,
            ),
            Number::Double(number) => Number::Double(number.abs()),
            Number::Decimal(number) => Number::Decimal(number.abs()),
        })
    })
}

pub(super) fn ceil<'a>(operands: &[Operand<'a>], _: &Environment<'_>) -> Result<Operand<'a>> {
    unary(operands, "$ceil", |number| Ok(whole(number, f64::ceil, Rounding::Ceiling)))
}

pub(super) fn floor<'a>(operands: &[Operand<'a>], _: &Environment<'_>) -> Result<Operand<'a>> {
    unary(operands, "$floor", |number| Ok(whole(number, f64::floor, Rounding::Floor)))
}

fn whole(number: Number, double: fn(f64) -> f64, decimal: Rounding) -> Number {
    match number {
        Number::Double(number) => Number::Double(double(number)),
        // What has no place for a digit before the point, be it infinite or merely large, is no number then.
        Number::Decimal(number) => Number::Decimal(number.quantize(Decimal128::ONE, decimal)),
        whole => whole,
    }
}

pub(super) fn round<'a>(operands: &[Operand<'a>], _: &Environment<'_>) -> Result<Operand<'a>> {
    to_place(operands, "$round", Rounding::HalfEven)
}

pub(super) fn trunc<'a>(operands: &[Operand<'a>], _: &Environment<'_>) -> Result<Operand<'a>> {
    to_place(operands, "$trunc", Rounding::TowardZero)
}

fn to_place<'a>(operands: &[Operand<'_>], name: &str, rounding: Rounding) -> Result<Operand<'a>> {
    let (Some(operand), place) = (operands.first(), operands.get(1)) else { return Ok(Operand::NULL) };
    if operand.is_nullish() || place.is_some_and(Operand::is_nullish) {
        return Ok(Operand::NULL);
    }
    let Some(number) = operand.as_number() else {
        let reason = format!("{name} only supports numeric types, not {}", operand.type_name());
        return Err(Error::location(51081, reason));
    };
    let place = match place {
        None => 0,
        Some(place) => {
            let whole = coerce_to_long(place)?;
            if place.as_number().and_then(Number::to_i64_exact).is_none() {
                let reason = format!("precision argument to  {name} must be a integral value");
                return Err(Error::location(51082, reason));
            }
            if !(-20..=100).contains(&whole) {
                let reason = format!("cannot apply {name} with precision value {whole} value must be in [-20, 100]");
                return Err(Error::location(51083, reason));
            }
            whole as i32
        }
    };
    round_number(number, place, rounding).map(Operand::from)
}

/// The decimal rounded to a place behind the point. Where 34 digits do not reach to that place, it has all that it can have.
fn rounded_decimal(decimal: Decimal128, place: i32, rounding: Rounding) -> Decimal128 {
    if decimal.is_infinite() {
        return decimal;
    }
    let full = decimal.with_all_digits();
    match full.parts() {
        Parts::Finite { exponent, coefficient: 1.., .. } if exponent > -place => full,
        _ => decimal.quantize(Decimal128::nearest(false, 1, -place).value, rounding),
    }
}

fn round_number(number: Number, place: i32, rounding: Rounding) -> Result<Number> {
    Ok(match number {
        Number::Decimal(decimal) => Number::Decimal(rounded_decimal(decimal, place, rounding)),
        Number::Double(double) if !double.is_finite() => Number::Double(double),
        Number::Double(double) if place == 0 && rounding == Rounding::TowardZero => Number::Double(double.trunc()),
        Number::Double(double) if place == 0 => Number::Double(double.round_ties_even()),
        Number::Double(double) => {
            let wide = Decimal128::from_double_34_digits(double);
            Number::Double(rounded_decimal(wide, place, rounding).to_double())
        }
        whole if place >= 0 => whole,
        whole => {
            let rounded = rounded_decimal(Decimal128::from(whole.truncated_i64()), place, rounding);
            let exact = rounded.to_i64_exact().ok_or_else(|| {
                Error::location(51080, "invalid conversion from Decimal128 result in $round resulting from arguments")
            })?;
            match whole {
                Number::Int32(_) => Number::narrowest(exact),
                _ => Number::Int64(exact),
            }
        }
    })
}

pub(super) fn exp<'a>(operands: &[Operand<'a>], _: &Environment<'_>) -> Result<Operand<'a>> {
    unary(operands, "$exp", |number| {
        Ok(match number {
            Number::Decimal(number) => Number::Decimal(number.exponential()),
            number => Number::Double(number.to_double().exp()),
        })
    })
}

pub(super) fn sqrt<'a>(operands: &[Operand<'a>], _: &Environment<'_>) -> Result<Operand<'a>> {
    unary(operands, "$sqrt", |number| {
        let negative = || Error::location(28714, "$sqrt's argument must be greater than or equal to 0");
        match number {
            Number::Decimal(number) if number.is_sign_negative() && !number.is_zero() => Err(negative()),
            Number::Decimal(number) => Ok(Number::Decimal(number.square_root())),
            number if number.to_double() < 0.0 => Err(negative()),
            number => Ok(Number::Double(number.to_double().sqrt())),
        }
    })
}

pub(super) fn ln<'a>(operands: &[Operand<'a>], _: &Environment<'_>) -> Result<Operand<'a>> {
    unary(operands, "$ln", |number| {
        check_positive(number, 28766, "$ln")?;
        Ok(match number {
            // Of what is not a number the result is a double.
            Number::Decimal(number) if !number.is_nan() => Number::Decimal(number.natural_logarithm()),
            number => Number::Double(number.to_double().ln()),
        })
    })
}

pub(super) fn log10<'a>(operands: &[Operand<'a>], _: &Environment<'_>) -> Result<Operand<'a>> {
    unary(operands, "$log10", |number| {
        check_positive(number, 28761, "$log10")?;
        Ok(match number {
            Number::Decimal(number) if !number.is_nan() => Number::Decimal(number.decimal_logarithm()),
            number => Number::Double(number.to_double().log10()),
        })
    })
}

fn check_positive(number: Number, code: i32, name: &str) -> Result<()> {
    let is_positive = match number {
        // A double would take the least decimals for zero.
        Number::Decimal(decimal) => !decimal.is_zero() && !decimal.is_sign_negative(),
        number => number.to_double() > 0.0,
    };
    if number.is_nan() || is_positive {
        return Ok(());
    }
    let shown = short_double(number.to_double());
    Err(Error::location(code, format!("{name}'s argument must be a positive number, but is {shown}")))
}

pub(super) fn log<'a>(operands: &[Operand<'a>], _: &Environment<'_>) -> Result<Operand<'a>> {
    let [argument, base] = operands else { return Ok(Operand::NULL) };
    if argument.is_nullish() || base.is_nullish() {
        return Ok(Operand::NULL);
    }
    let numeric = |operand: &Operand<'_>, code, what: &str| {
        let refused = || Error::location(code, format!("$log's {what} must be numeric, not {}", operand.type_name()));
        operand.as_number().ok_or_else(refused)
    };
    let (argument, base) = (numeric(argument, 28756, "argument")?, numeric(base, 28757, "base")?);
    check_positive(argument, 28758, "$log")?;
    let (base_double, base_decimal) = (base.to_double(), base.to_decimal());
    let is_usable = match base {
        Number::Decimal(_) => !base_decimal.is_zero() && !base_decimal.is_sign_negative(),
        _ => base_double > 0.0,
    };
    let is_one = base_decimal.reduced_parts() == Decimal128::ONE.reduced_parts();
    if !base.is_nan() && (!is_usable || is_one) {
        let shown = short_double(base_double);
        let reason = format!("$log's base must be a positive number not equal to 1, but is {shown}");
        return Err(Error::location(28759, reason));
    }
    Ok(Operand::from(match (argument, base) {
        (Number::Decimal(_), _) | (_, Number::Decimal(_)) if !argument.is_nan() && !base.is_nan() => {
            Number::Decimal(argument.to_decimal().natural_logarithm() / base_decimal.natural_logarithm())
        }
        _ => Number::Double(argument.to_double().ln() / base_double.ln()),
    }))
}

pub(super) fn pow<'a>(operands: &[Operand<'a>], _: &Environment<'_>) -> Result<Operand<'a>> {
    let [base, exponent] = operands else { return Ok(Operand::NULL) };
    if base.is_nullish() || exponent.is_nullish() {
        return Ok(Operand::NULL);
    }
    let numeric = |operand: &Operand<'_>, code, what: &str| {
        let refused = || Error::location(code, format!("$pow's {what} must be numeric, not {}", operand.type_name()));
        operand.as_number().ok_or_else(refused)
    };
    let (base, exponent) = (numeric(base, 28762, "base")?, numeric(exponent, 28763, "exponent")?);
    let is_pole = match (base, exponent) {
        // The sign of a decimal counts, be it that of zero.
        (Number::Decimal(_), _) | (_, Number::Decimal(_)) => {
            base.to_decimal().is_zero() && exponent.to_decimal().is_sign_negative()
        }
        _ => base.to_double() == 0.0 && exponent.to_double() < 0.0,
    };
    if is_pole {
        return Err(Error::location(28764, "$pow cannot take a base of 0 and a negative exponent"));
    }
    Ok(Operand::from(match (base, exponent) {
        (Number::Decimal(_), _) | (_, Number::Decimal(_)) => {
            Number::Decimal(base.to_decimal().power(exponent.to_decimal()))
        }
        (Number::Double(_), _) | (_, Number::Double(_)) => Number::Double(base.to_double().powf(exponent.to_double())),
        (base, exponent) => whole_power(base, exponent),
    }))
}

/// Whole numbers stay whole as long as the result fits.
fn whole_power(base: Number, exponent: Number) -> Number {
    let (base_whole, power) = (base.truncated_i64(), exponent.truncated_i64());
    let double = || Number::Double(base.to_double().powf(exponent.to_double()));
    let result = match (base_whole, power) {
        (1, _) => Some(1),
        (-1, power) => Some(if power % 2 == 0 { 1 } else { -1 }),
        (_, ..0) => None,
        (base, power) => u32::try_from(power).ok().and_then(|power| base.checked_pow(power)),
    };
    match (result, base, exponent) {
        (None, ..) => double(),
        (Some(result), Number::Int32(_), Number::Int32(_)) => Number::narrowest(result),
        (Some(result), ..) => Number::Int64(result),
    }
}
