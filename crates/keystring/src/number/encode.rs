//! Writing numbers; the format is described one level up.

use super::conversion::{Rounding, Truncated, double_to_digits, multiply_truncated, truncate_to_double};
use super::decimal::Magnitude;
use super::{INTEGERS_SPARSE_START, LARGE_START, Marker, TINY_END, TINY_SCALE, power_of_two};
use crate::Version;
use crate::canonical::{NUMBER_INTEGER, NUMBER_LARGE, NUMBER_NAN, NUMBER_SMALL, NUMBER_ZERO, mirrored};

/// The longest number: type byte, eight bytes, continuation.
const LENGTH_MAX: usize = 17;

/// A number as it lies in an ascending component.
pub(crate) struct EncodedNumber {
    bytes: [u8; LENGTH_MAX],
    length: usize,
}

impl EncodedNumber {
    fn new(number_type: u8) -> EncodedNumber {
        let mut bytes = [0; LENGTH_MAX];
        bytes[0] = number_type;
        EncodedNumber { bytes, length: 1 }
    }

    fn with(number_type: u8, eight_bytes: u64) -> EncodedNumber {
        EncodedNumber::new(number_type).then(eight_bytes)
    }

    fn then(mut self, eight_bytes: u64) -> EncodedNumber {
        self.bytes[self.length..self.length + 8].copy_from_slice(&eight_bytes.to_be_bytes());
        self.length += 8;
        self
    }

    fn signed(mut self, negative: bool) -> EncodedNumber {
        if negative {
            let (number_type, rest) = self.bytes.split_at_mut(1);
            number_type[0] = mirrored(number_type[0]);
            rest.iter_mut().for_each(|byte| *byte = !*byte);
        }
        self
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// An int32 or int64.
#[inline]
pub(crate) fn encode_integer(number: i64, version: Version) -> EncodedNumber {
    match number {
        0 => EncodedNumber::new(NUMBER_ZERO),
        i64::MIN => encode_double(-LARGE_START, version),
        _ => doubled_integer(number.unsigned_abs() << 1).signed(number < 0),
    }
}

/// Twice an integer part, plus one if there is a fraction.
#[inline]
fn doubled_integer(doubled: u64) -> EncodedNumber {
    debug_assert!(doubled > 1);
    let unused = doubled.leading_zeros() / 8;
    let mut encoded = EncodedNumber::with(NUMBER_INTEGER + 8 - unused as u8, doubled << (8 * unused));
    encoded.length -= unused as usize;
    encoded
}

/// A double.
pub(crate) fn encode_double(number: f64, version: Version) -> EncodedNumber {
    if number.is_nan() {
        return EncodedNumber::new(NUMBER_NAN);
    }
    let encoded = match version {
        Version::V0 => binary_in_version_0(number),
        Version::V1 => binary(number.abs(), Marker::Double),
    };
    encoded.signed(number < 0.0)
}

/// A double's magnitude, or the start of the decimal after it.
fn binary(magnitude: f64, marker: Marker) -> EncodedNumber {
    debug_assert!(magnitude >= 0.0);
    if magnitude == 0.0 {
        EncodedNumber::new(NUMBER_ZERO)
    } else if magnitude < 1.0 {
        small(magnitude, marker)
    } else if magnitude >= LARGE_START {
        large(magnitude, marker)
    } else {
        let integer = magnitude as u64;
        let is_integer = integer as f64 == magnitude && marker == Marker::Double;
        if is_integer { doubled_integer(integer << 1) } else { with_fraction(magnitude, integer, marker) }
    }
}

/// Eight bytes: twice the integer part plus one in as few of them as it needs, the fraction, the marker.
fn with_fraction(magnitude: f64, integer: u64, marker: Marker) -> EncodedNumber {
    let fraction_bytes = (integer << 1).leading_zeros() / 8;
    let shift = 8 * fraction_bytes;
    let shifted = (magnitude * power_of_two(shift as i32)) as u64;
    // Adding the integer part plus one once more doubles it and sets the bit for the fraction.
    let encoded = shifted + ((integer + 1) << shift);
    debug_assert!(encoded & 3 == 0, "a double leaves two bits free");
    EncodedNumber::with(NUMBER_INTEGER + 8 - fraction_bytes as u8, encoded | marker as u64)
}

fn small(magnitude: f64, marker: Marker) -> EncodedNumber {
    let encoded = if magnitude >= TINY_END {
        // The first two bits become 11.
        magnitude.to_bits() << 2 | marker as u64
    } else {
        tiny(magnitude * power_of_two(TINY_SCALE), marker != Marker::Double)
    };
    EncodedNumber::with(NUMBER_SMALL, encoded)
}

/// The first two bits become 01 or 10; 00 is for decimals below the doubles.
fn tiny(scaled: f64, has_continuation: bool) -> u64 {
    (scaled.to_bits() << 1 | u64::from(has_continuation)) + (1 << 62)
}

fn large(magnitude: f64, marker: Marker) -> EncodedNumber {
    // The exponent's top bit is one in all of them; its place tells decimals above the doubles.
    let encoded = match magnitude.is_finite() {
        true => magnitude.to_bits() << 1 & !(1 << 63) | u64::from(marker != Marker::Double),
        false => u64::MAX,
    };
    EncodedNumber::with(NUMBER_LARGE, encoded)
}

/// Version 0 keeps the sign bit of small and large doubles and writes no more bytes of a fraction than it has.
fn binary_in_version_0(number: f64) -> EncodedNumber {
    let magnitude = number.abs();
    if magnitude == 0.0 {
        return EncodedNumber::new(NUMBER_ZERO);
    }
    if !(1.0..LARGE_START).contains(&magnitude) {
        let number_type = if magnitude < 1.0 { NUMBER_SMALL } else { NUMBER_LARGE };
        return EncodedNumber::with(number_type, number.to_bits());
    }
    let integer = magnitude as u64;
    if integer as f64 == magnitude {
        return doubled_integer(integer << 1);
    }
    let fraction_bits = 53 - (64 - integer.leading_zeros());
    let fraction_bytes = fraction_bits.div_ceil(8);
    let fraction = number.to_bits() & ((1 << fraction_bits) - 1);
    let start = doubled_integer(integer << 1 | 1);
    let whole_length = start.length + fraction_bytes as usize;
    let mut encoded = start.then(fraction << (64 - 8 * fraction_bytes));
    encoded.length = whole_length;
    encoded
}

/// A finite decimal other than zero, in version 1.
pub(crate) fn encode_decimal(negative: bool, magnitude: Magnitude) -> EncodedNumber {
    decimal(magnitude).signed(negative)
}

fn decimal(magnitude: Magnitude) -> EncodedNumber {
    let Truncated { double, is_exact } = truncate_to_double(magnitude);
    if is_exact {
        binary(double, Marker::Double)
    } else if double < f64::MIN_POSITIVE {
        below_normal_doubles(magnitude, double)
    } else if double == f64::MAX {
        whole(NUMBER_LARGE, magnitude, 1 << 63)
    } else if (INTEGERS_SPARSE_START..LARGE_START).contains(&double) {
        between_sparse_integers(magnitude)
    } else {
        after_double(magnitude, double)
    }
}

/// The decimal itself, with 34 digits so that exponent and coefficient sort.
fn whole(number_type: u8, magnitude: Magnitude, flag: u64) -> EncodedNumber {
    let bits = magnitude.widest().signed(false).unwrap_or(pando_doc::Decimal128::MAX);
    EncodedNumber::with(number_type, bits.high() | flag).then(bits.low())
}

/// Among the subnormal doubles or below all of them.
fn below_normal_doubles(magnitude: Magnitude, double: f64) -> EncodedNumber {
    if double == 0.0 {
        return whole(NUMBER_SMALL, magnitude, 0);
    }
    // Scaling up rounds down in every step, but not below the double, which scales without error.
    let factor = double_to_digits(power_of_two(TINY_SCALE), 34, Rounding::Down);
    let scaled_decimal = multiply_truncated(magnitude, factor);
    let scaled = truncate_to_double(scaled_decimal).double.max(double * power_of_two(TINY_SCALE));
    let start = EncodedNumber::with(NUMBER_SMALL, tiny(scaled, true));
    start.then(missing(magnitude, scaled_down(scaled)))
}

/// The decimal from which continuations below the normal doubles count.
pub(super) fn scaled_down(scaled: f64) -> Magnitude {
    let factor = double_to_digits(power_of_two(-TINY_SCALE), 34, Rounding::Down);
    multiply_truncated(double_to_digits(scaled, 34, Rounding::Down), factor).widest()
}

/// From 2^53 to 2^63 the integer part is written in full, so that int64 compare.
fn between_sparse_integers(magnitude: Magnitude) -> EncodedNumber {
    let (integer, has_fraction) = integer_part(magnitude);
    let start = doubled_integer(integer << 1 | u64::from(has_fraction));
    if !has_fraction {
        return start;
    }
    // Eight bytes in any case; the last one then holds nothing but the marker.
    let mut start = start;
    if start.length == 8 {
        start.bytes[8] = Marker::AboveFifteenDigits as u8;
        start.length = 9;
    }
    let written = Magnitude { coefficient: u128::from(integer), exponent: 0 }.widest();
    start.then(missing(magnitude, written))
}

/// The integer below a number that has one of 63 bits, and whether there is a fraction.
fn integer_part(magnitude: Magnitude) -> (u64, bool) {
    let Magnitude { coefficient, exponent } = magnitude;
    let Some(power) = 10_u128.checked_pow(exponent.unsigned_abs()) else { return (0, true) };
    if exponent >= 0 {
        return (coefficient.saturating_mul(power) as u64, false);
    }
    ((coefficient / power) as u64, !coefficient.is_multiple_of(power))
}

fn after_double(magnitude: Magnitude, double: f64) -> EncodedNumber {
    let has_one_marker_bit = !(TINY_END..LARGE_START).contains(&double);
    let marker = if has_one_marker_bit { Marker::AboveFifteenDigits } else { marker_after(magnitude, double) };
    let start = binary(double, marker);
    if !marker.has_continuation() {
        return start;
    }
    start.then(missing(magnitude, double_to_digits(double, 34, Rounding::Up)))
}

fn marker_after(magnitude: Magnitude, double: f64) -> Marker {
    // The 15 digits after the double are no further away than one unit, so any 15-digit decimal that rounds to the
    // double is that one.
    if magnitude.coefficient < 10_u128.pow(15) {
        return Marker::FifteenDigits;
    }
    let fifteen_digits = double_to_digits(double, 15, Rounding::Up).widest();
    let magnitude = magnitude.widest();
    let key = |number: Magnitude| (number.exponent, number.coefficient);
    match key(magnitude).cmp(&key(fifteen_digits)) {
        std::cmp::Ordering::Less => Marker::BelowFifteenDigits,
        std::cmp::Ordering::Equal => Marker::FifteenDigits,
        std::cmp::Ordering::Greater => Marker::AboveFifteenDigits,
    }
}

/// How much more the number is than the written one of 34 digits, in units of the latter's last digit.
fn missing(magnitude: Magnitude, written: Magnitude) -> u64 {
    debug_assert!(magnitude.exponent >= written.exponent);
    let widened = magnitude.coefficient * 10_u128.pow((magnitude.exponent - written.exponent).unsigned_abs());
    debug_assert!(widened >= written.coefficient && widened - written.coefficient <= u128::from(u64::MAX));
    widened.saturating_sub(written.coefficient) as u64
}
