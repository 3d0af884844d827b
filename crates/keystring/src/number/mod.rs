//! Numbers of all four types as bytes that sort by value.
//!
//! The type byte gives the range and the sign. What follows, for positive numbers (a negative one has the mirrored type
//! byte and its other bytes inverted):
//!
//! * **zero, NaN**: nothing.
//! * **integer part of 1 to 63 bits**: `2 × integer`, big-endian, in as few bytes as it needs; their number is in the type
//!   byte. If there is a fraction, the last bit is one, and (in version 1) the fraction continues up to eight bytes.
//! * **small**, below 1: the double's bits, shifted so that markers and decimals below the doubles fit in.
//! * **large**, from 2^63: the double's bits without the top one, or a whole decimal above the doubles, or all ones for
//!   infinity.
//!
//! **Decimals.** A decimal that is a double looks like one. Any other is written as the double next to it towards zero,
//! with a [`Marker`] in the double's spare low bits, and where 15 digits do not suffice, with a *continuation*: how many
//! units of the 34th digit are missing. Doubles and 15-digit decimals so compare without looking further. Below the normal
//! doubles the double is scaled by 2^256 to keep its precision; below the smallest double and above the largest the decimal
//! itself is written, with 34 digits.
//!
//! Version 0 knows no decimals and writes fractions and doubles in fewer shapes. This module knows nothing of directions:
//! descending components are inverted as a whole by the caller.

mod conversion;
mod decimal;
mod encode;
mod parse;
mod restore;

pub(crate) use decimal::{Magnitude, biased_decimal_exponent, decimal_zero_index};
pub(crate) use encode::{EncodedNumber, encode_decimal, encode_double, encode_integer};
pub(crate) use parse::{is_number, parse};
pub(crate) use restore::{RestoredNumber, restore};

/// The first double that is no int64.
const LARGE_START: f64 = 9_223_372_036_854_775_808.0;
/// From here on not every integer is a double.
const INTEGERS_SPARSE_START: f64 = 9_007_199_254_740_992.0;
/// Below this a small double has room for one marker bit only.
const TINY_END: f64 = power_of_two(-255);
/// By how many binary places tiny doubles are scaled, so that none is subnormal.
const TINY_SCALE: i32 = 256;

/// How a number relates to the double that is written for it. In the order in which numbers with the same double sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Marker {
    /// It is the double.
    Double = 0,
    /// A decimal below the double's successor of 15 digits; a continuation follows.
    BelowFifteenDigits = 1,
    /// The decimal of 15 digits that comes next after the double.
    FifteenDigits = 2,
    /// A decimal above that; a continuation follows.
    AboveFifteenDigits = 3,
}

impl Marker {
    fn from_bits(bits: u64) -> Marker {
        match bits & 3 {
            0 => Marker::Double,
            1 => Marker::BelowFifteenDigits,
            2 => Marker::FifteenDigits,
            _ => Marker::AboveFifteenDigits,
        }
    }

    fn has_continuation(self) -> bool {
        matches!(self, Marker::BelowFifteenDigits | Marker::AboveFifteenDigits)
    }
}

/// 2 to a power within the normal doubles.
const fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}
