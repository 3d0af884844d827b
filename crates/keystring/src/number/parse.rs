//! Reading a number's bytes without its type bits: enough to know where it ends, and all that is needed to restore it.

use super::{INTEGERS_SPARSE_START, Marker, TINY_SCALE, power_of_two};
use crate::canonical::{NUMBER_INTEGER, NUMBER_LARGE, NUMBER_NAN, NUMBER_SMALL, NUMBER_ZERO, mirrored};
use crate::reader::Reader;
use crate::{Error, Result, Version};

/// A number's sign and what its bytes say about its magnitude.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ParsedNumber {
    pub(crate) negative: bool,
    pub(crate) shape: Shape,
}

/// A magnitude as it was written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Shape {
    NotANumber,
    Zero,
    Infinity,
    /// Below 2^63.
    Integer(u64),
    /// An integer from 2^53 and a fraction in units of the 34th digit.
    IntegerAndMore {
        integer: u64,
        continuation: u64,
    },
    Binary {
        double: f64,
        marker: Marker,
        /// Zero if the marker needs none.
        continuation: u64,
    },
    /// A decimal among the subnormal doubles.
    Scaled {
        scaled: f64,
        continuation: u64,
    },
    /// A decimal below or above the doubles.
    Whole {
        high: u64,
        low: u64,
    },
}

/// True if a component that starts with this byte is a number.
pub(crate) fn is_number(component_type: u8) -> bool {
    (NUMBER_NAN..=NUMBER_LARGE).contains(&component_type)
}

/// Reads what follows the type byte.
pub(crate) fn parse(component_type: u8, reader: &mut Reader<'_>, version: Version) -> Result<ParsedNumber> {
    debug_assert!(is_number(component_type));
    let special = |shape| Ok(ParsedNumber { negative: false, shape });
    if component_type == NUMBER_NAN {
        return special(Shape::NotANumber);
    }
    if component_type == NUMBER_ZERO {
        return special(Shape::Zero);
    }
    let negative = component_type < NUMBER_ZERO;
    let number_type = if negative { mirrored(component_type) } else { component_type };
    let shape = match negative {
        true => reader.inverted(|reader| parse_magnitude(number_type, reader, version))?,
        false => parse_magnitude(number_type, reader, version)?,
    };
    Ok(ParsedNumber { negative, shape })
}

fn parse_magnitude(number_type: u8, reader: &mut Reader<'_>, version: Version) -> Result<Shape> {
    match (number_type, version) {
        (NUMBER_SMALL | NUMBER_LARGE, Version::V0) => {
            // Here the sign was left in.
            let double = f64::from_bits(reader.u64()? & !(1 << 63));
            if double == f64::INFINITY {
                Ok(Shape::Infinity)
            } else {
                parse_after_double(double, Marker::Double, reader)
            }
        }
        (NUMBER_SMALL, Version::V1) => parse_small(reader),
        (NUMBER_LARGE, Version::V1) => parse_large(reader),
        _ => parse_integer(usize::from(number_type - NUMBER_INTEGER), reader, version),
    }
}

fn parse_small(reader: &mut Reader<'_>) -> Result<Shape> {
    let encoded = reader.u64()?;
    match encoded >> 62 {
        0 => Ok(Shape::Whole { high: encoded, low: reader.u64()? }),
        3 => {
            let double = f64::from_bits(encoded >> 2);
            parse_after_double(double, Marker::from_bits(encoded), reader)
        }
        _ => {
            let scaled = f64::from_bits((encoded - (1 << 62)) >> 1);
            let double = scaled * power_of_two(-TINY_SCALE);
            if encoded & 1 == 0 {
                parse_after_double(double, Marker::Double, reader)
            } else if scaled < f64::MIN_POSITIVE * power_of_two(TINY_SCALE) {
                // Compared scaled, because the subnormal double may have been rounded up.
                Ok(Shape::Scaled { scaled, continuation: reader.u64()? })
            } else {
                parse_after_double(double, Marker::AboveFifteenDigits, reader)
            }
        }
    }
}

fn parse_large(reader: &mut Reader<'_>) -> Result<Shape> {
    let encoded = reader.u64()?;
    if encoded == u64::MAX {
        return Ok(Shape::Infinity);
    }
    if encoded >> 63 == 1 {
        return Ok(Shape::Whole { high: encoded & !(1 << 63), low: reader.u64()? });
    }
    let double = f64::from_bits(encoded >> 1 | 1 << 62);
    let marker = if encoded & 1 == 0 { Marker::Double } else { Marker::AboveFifteenDigits };
    parse_after_double(double, marker, reader)
}

fn parse_integer(length: usize, reader: &mut Reader<'_>, version: Version) -> Result<Shape> {
    let doubled = reader.big_endian(length)?;
    let integer = doubled >> 1;
    if integer == 0 {
        return Err(Error::BadNumber);
    }
    if doubled & 1 == 0 {
        return Ok(Shape::Integer(integer));
    }
    if version == Version::V0 {
        return parse_fraction_in_version_0(integer, reader);
    }
    let fraction_bytes = 8 - length;
    let fraction = reader.big_endian(fraction_bytes)?;
    if integer as f64 >= INTEGERS_SPARSE_START {
        return Ok(Shape::IntegerAndMore { integer, continuation: reader.u64()? });
    }
    // Below 2^53 an integer part leaves at least one byte, so the shift stays below 64.
    let shift = 8 * fraction_bytes as u32;
    let significand = integer << shift | fraction & !3;
    let double = significand as f64 * power_of_two(-(shift as i32));
    parse_after_double(double, Marker::from_bits(fraction), reader)
}

fn parse_fraction_in_version_0(integer: u64, reader: &mut Reader<'_>) -> Result<Shape> {
    let exponent = 63 - integer.leading_zeros();
    let Some(fraction_bits) = 52_u32.checked_sub(exponent).filter(|bits| *bits > 0) else {
        return Err(Error::BadNumber);
    };
    let fraction = reader.big_endian(fraction_bits.div_ceil(8) as usize)?;
    let significand = integer << fraction_bits | fraction & ((1 << fraction_bits) - 1);
    parse_after_double(significand as f64 * power_of_two(-(fraction_bits as i32)), Marker::Double, reader)
}

fn parse_after_double(double: f64, marker: Marker, reader: &mut Reader<'_>) -> Result<Shape> {
    if !double.is_finite() || double <= 0.0 {
        return Err(Error::BadNumber);
    }
    let continuation = if marker.has_continuation() { reader.u64()? } else { 0 };
    Ok(Shape::Binary { double, marker, continuation })
}
