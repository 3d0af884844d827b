//! From a parsed number and its type bits back to the very number that was written.

use super::conversion::{Rounding, double_to_digits};
use super::decimal::{EXPONENT_BIAS, EXPONENT_COUNT, Magnitude};
use super::encode::scaled_down;
use super::parse::{ParsedNumber, Shape};
use super::{LARGE_START, Marker, TINY_END};
use crate::type_bits::{NumberType, TypeBitsReader, ZeroType};
use crate::{Error, Result, Version};
use pando_doc::{Decimal128, DecimalParts};

/// A number of one of the four types.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum RestoredNumber {
    Int32(i32),
    Int64(i64),
    Double(f64),
    Decimal(Decimal128),
}

/// Consumes the number's type bits.
pub(crate) fn restore(
    number: ParsedNumber,
    type_bits: &mut TypeBitsReader<'_>,
    version: Version,
) -> Result<RestoredNumber> {
    if number.shape == Shape::Zero {
        return restore_zero(type_bits.zero(version)?);
    }
    match type_bits.number()? {
        NumberType::Int32 => match restore_integer(number)?.try_into() {
            Ok(small) => Ok(RestoredNumber::Int32(small)),
            Err(_) => Err(Error::BadTypeBits),
        },
        NumberType::Int64 => restore_integer(number).map(RestoredNumber::Int64),
        NumberType::Double => restore_double(number).map(RestoredNumber::Double),
        NumberType::Decimal if version == Version::V0 => Err(Error::BadTypeBits),
        NumberType::Decimal => restore_decimal(number, type_bits).map(RestoredNumber::Decimal),
    }
}

fn restore_zero(zero: ZeroType) -> Result<RestoredNumber> {
    Ok(match zero {
        ZeroType::Int32 => RestoredNumber::Int32(0),
        ZeroType::Int64 => RestoredNumber::Int64(0),
        ZeroType::Double => RestoredNumber::Double(0.0),
        ZeroType::NegativeDouble => RestoredNumber::Double(-0.0),
        ZeroType::Decimal(which) => {
            let negative = which >= EXPONENT_COUNT;
            let exponent = (which % EXPONENT_COUNT) as i32 - EXPONENT_BIAS;
            let zero = Magnitude { coefficient: 0, exponent }.signed(negative);
            RestoredNumber::Decimal(zero.ok_or(Error::BadTypeBits)?)
        }
    })
}

fn restore_integer(number: ParsedNumber) -> Result<i64> {
    match number.shape {
        Shape::Integer(magnitude) if magnitude <= i64::MAX as u64 => {
            let magnitude = magnitude as i64;
            Ok(if number.negative { -magnitude } else { magnitude })
        }
        // -2^63 has no positive counterpart and is written like the double.
        Shape::Binary { double: LARGE_START, marker: Marker::Double, .. } if number.negative => Ok(i64::MIN),
        Shape::NotANumber => Err(Error::NotAnInteger(50819)),
        Shape::Infinity => Err(Error::NotAnInteger(50826)),
        Shape::Binary { double, .. } if double >= LARGE_START => Err(Error::NotAnInteger(50826)),
        Shape::Binary { double, .. } if double >= 1.0 => Err(Error::NotAnInteger(50810)),
        Shape::Binary { double, .. } if double >= TINY_END => Err(Error::NotAnInteger(50825)),
        Shape::Binary { .. } | Shape::Scaled { .. } => Err(Error::NotAnInteger(50823)),
        Shape::IntegerAndMore { .. } => Err(Error::NotAnInteger(50810)),
        Shape::Whole { high, .. } if high >> 62 != 0 => Err(Error::NotAnInteger(50818)),
        _ => Err(Error::BadTypeBits),
    }
}

fn restore_double(number: ParsedNumber) -> Result<f64> {
    let magnitude = match number.shape {
        Shape::NotANumber => f64::NAN,
        Shape::Infinity => f64::INFINITY,
        Shape::Integer(integer) => integer as f64,
        Shape::Binary { double, marker: Marker::Double, .. } => double,
        _ => return Err(Error::BadTypeBits),
    };
    Ok(if number.negative { -magnitude } else { magnitude })
}

fn restore_decimal(number: ParsedNumber, type_bits: &mut TypeBitsReader<'_>) -> Result<Decimal128> {
    let negative = number.negative;
    let magnitude = match number.shape {
        Shape::NotANumber => return Ok(Decimal128::NAN),
        Shape::Infinity if negative => return Ok(Decimal128::NEGATIVE_INFINITY),
        Shape::Infinity => return Ok(Decimal128::INFINITY),
        shape => restore_magnitude(shape)?,
    };
    let exponent_bits = type_bits.decimal_exponent()?;
    let meant = magnitude.with_exponent_bits(exponent_bits);
    meant.and_then(|meant| meant.signed(negative)).ok_or(Error::BadTypeBits)
}

fn restore_magnitude(shape: Shape) -> Result<Magnitude> {
    match shape {
        Shape::Integer(integer) => Ok(Magnitude { coefficient: u128::from(integer), exponent: 0 }),
        Shape::IntegerAndMore { integer, continuation } => {
            let written = Magnitude { coefficient: u128::from(integer), exponent: 0 }.widest();
            continued(written, continuation)
        }
        Shape::Binary { double, marker, continuation } => match marker {
            // A decimal that is a double has at most 34 digits, so this is exact.
            Marker::Double => Ok(double_to_digits(double, 34, Rounding::Up)),
            Marker::FifteenDigits => Ok(double_to_digits(double, 15, Rounding::Up)),
            _ => continued(double_to_digits(double, 34, Rounding::Up), continuation),
        },
        Shape::Scaled { scaled, continuation } if scaled > 0.0 => continued(scaled_down(scaled), continuation),
        Shape::Whole { high, low } => match Decimal128::from_halves(high, low).parts() {
            DecimalParts::Finite { negative: false, coefficient: coefficient @ 1.., exponent } => {
                Ok(Magnitude { coefficient, exponent })
            }
            _ => Err(Error::BadNumber),
        },
        _ => Err(Error::BadNumber),
    }
}

/// The written number of 34 digits and so many units of its last digit more. That may need 35 digits, of which the last is
/// zero then.
fn continued(written: Magnitude, continuation: u64) -> Result<Magnitude> {
    let coefficient = written.coefficient + u128::from(continuation);
    if coefficient < super::decimal::COEFFICIENT_END {
        return Ok(Magnitude { coefficient, ..written });
    }
    match coefficient.is_multiple_of(10) {
        true => Ok(Magnitude { coefficient: coefficient / 10, exponent: written.exponent + 1 }),
        false => Err(Error::BadNumber),
    }
}
