//! Numbers of different kinds in their exact mathematical order.
//!
//! Nothing is rounded. A decimal and a double are compared by rounding the decimal to the nearest double first: unless
//! that gives the very same double, rounding cannot have changed the order. If it does, both are written as whole
//! numbers over a common denominator and compared in full.

use crate::decimal::{Decimal128, Parts};
use crate::{Value, ValueType};
use std::cmp::Ordering;

/// The order of two numbers. What is not a number counts as NaN, which is the least.
pub fn compare_numbers(left: Value<'_>, right: Value<'_>) -> Ordering {
    debug_assert!(left.is_number() && right.is_number(), "only numbers are compared here");
    match (left, right) {
        (Value::Int32(left), Value::Int32(right)) => left.cmp(&right),
        (Value::Double(left), Value::Double(right)) => compare_doubles(left, right),
        (Value::Decimal(left), Value::Decimal(right)) => compare_decimals(left, right),
        (Value::Double(left), Value::Decimal(right)) => compare_decimal_to_double(right, left).reverse(),
        (Value::Decimal(left), Value::Double(right)) => compare_decimal_to_double(left, right),
        _ => compare_with_whole(left, right),
    }
}

/// At least one side is an int32 or an int64.
fn compare_with_whole(left: Value<'_>, right: Value<'_>) -> Ordering {
    match (whole(left), whole(right)) {
        (Some(left), Some(right)) => left.cmp(&right),
        (Some(left), None) => compare_whole(left, right),
        (None, Some(right)) => compare_whole(right, left).reverse(),
        (None, None) => Ordering::Equal,
    }
}

fn whole(value: Value<'_>) -> Option<i64> {
    match value {
        Value::Int32(number) => Some(number.into()),
        Value::Int64(number) => Some(number),
        _ => None,
    }
}

fn compare_whole(left: i64, right: Value<'_>) -> Ordering {
    match right {
        Value::Double(right) => compare_long_to_double(left, right),
        Value::Decimal(right) => compare_decimals(Decimal128::from(left), right),
        other => {
            debug_assert!(other.value_type() != ValueType::Int32, "whole numbers were compared before");
            Ordering::Greater
        }
    }
}

/// NaN is the least and equals itself; zeros are equal.
pub(crate) fn compare_doubles(left: f64, right: f64) -> Ordering {
    left.partial_cmp(&right).unwrap_or_else(|| right.is_nan().cmp(&left.is_nan()))
}

fn compare_long_to_double(left: i64, right: f64) -> Ordering {
    // Two to the 63rd: the first double that no int64 reaches.
    const BOUND: f64 = 9_223_372_036_854_775_808.0;
    if right.is_nan() || right < -BOUND {
        return Ordering::Greater;
    }
    if right >= BOUND {
        return Ordering::Less;
    }
    let truncated = right.trunc();
    left.cmp(&(truncated as i64)).then_with(|| compare_doubles(truncated, right))
}

/// NaN is the least and equals itself; zeros are equal.
pub(crate) fn compare_decimals(left: Decimal128, right: Decimal128) -> Ordering {
    rank(left).cmp(&rank(right)).then_with(|| match (left.parts(), right.parts()) {
        (
            Parts::Finite { negative, coefficient, exponent },
            Parts::Finite { coefficient: right_coefficient, exponent: right_exponent, .. },
        ) => {
            let order = compare_magnitudes((coefficient, exponent), (right_coefficient, right_exponent));
            if negative { order.reverse() } else { order }
        }
        _ => Ordering::Equal,
    })
}

/// NaN, minus infinity, negative, zero, positive, plus infinity.
fn rank(number: Decimal128) -> u8 {
    match number.parts() {
        Parts::Nan { .. } => 0,
        Parts::Infinity { negative: true } => 1,
        Parts::Finite { coefficient: 0, .. } => 3,
        Parts::Finite { negative: true, .. } => 2,
        Parts::Finite { negative: false, .. } => 4,
        Parts::Infinity { negative: false } => 5,
    }
}

/// The order of two numbers that have the same rank and so may both be zero, but not one of them.
fn compare_magnitudes(left: (u128, i32), right: (u128, i32)) -> Ordering {
    if left.0 == 0 || right.0 == 0 {
        return left.0.cmp(&right.0);
    }
    let magnitude = |(coefficient, exponent): (u128, i32)| coefficient.ilog10() as i32 + exponent;
    magnitude(left).cmp(&magnitude(right)).then_with(|| {
        // With leading digits at the same place the exponents differ by 33 at most, and the scaled coefficient has as
        // many digits as the other.
        let shift = 10_u128.pow(left.1.abs_diff(right.1).min(33));
        if left.1 >= right.1 { (left.0 * shift).cmp(&right.0) } else { left.0.cmp(&(right.0 * shift)) }
    })
}

fn compare_decimal_to_double(left: Decimal128, right: f64) -> Ordering {
    compare_doubles(left.to_double(), right).then_with(|| match left.parts() {
        Parts::Finite { negative, coefficient, exponent } if right.is_finite() => {
            let order = compare_exactly(coefficient, exponent, right.abs());
            if negative { order.reverse() } else { order }
        }
        // Too large for a double, yet finite.
        Parts::Finite { negative, .. } => {
            if negative {
                Ordering::Greater
            } else {
                Ordering::Less
            }
        }
        _ => Ordering::Equal,
    })
}

/// `coefficient × 10^exponent` against a double that is its nearest one.
fn compare_exactly(coefficient: u128, exponent: i32, double: f64) -> Ordering {
    if coefficient == 0 || double == 0.0 {
        return coefficient.cmp(&u128::from(double != 0.0));
    }
    let (mantissa, binary_exponent) = double_parts(double);
    let (mut left, mut right) = (Whole::from(coefficient), Whole::from(u128::from(mantissa)));
    // Fives go to the side where their power is positive; so do twos, once both sides' are set off.
    if exponent >= 0 {
        left.times_power_of_five(exponent)
    } else {
        right.times_power_of_five(-exponent)
    }
    let twos = exponent - binary_exponent;
    if twos >= 0 {
        left.times_power_of_two(twos)
    } else {
        right.times_power_of_two(-twos)
    }
    left.compare(&right)
}

/// The double as `mantissa × 2^exponent`; it is positive and finite.
fn double_parts(double: f64) -> (u64, i32) {
    let bits = double.to_bits();
    let (exponent, fraction) = ((bits >> 52 & 0x7FF) as i32, bits & ((1 << 52) - 1));
    if exponent == 0 { (fraction, -1074) } else { (fraction | 1 << 52, exponent - 1075) }
}

/// A whole number of any size, its digits to base 2^64, the least first.
struct Whole {
    digits: Vec<u64>,
}

impl From<u128> for Whole {
    fn from(number: u128) -> Whole {
        Whole { digits: vec![number as u64, (number >> 64) as u64] }
    }
}

impl Whole {
    fn times(&mut self, factor: u64) {
        let mut carry = 0_u128;
        for digit in &mut self.digits {
            let product = u128::from(*digit) * u128::from(factor) + carry;
            *digit = product as u64;
            carry = product >> 64;
        }
        if carry != 0 {
            self.digits.push(carry as u64);
        }
    }

    fn times_power_of_five(&mut self, mut power: i32) {
        // Five to the 27th is the last one that fits a digit.
        while power > 0 {
            let step = power.min(27);
            self.times(5_u64.pow(step as u32));
            power -= step;
        }
    }

    fn times_power_of_two(&mut self, power: i32) {
        let (digits, bits) = (power as usize / 64, power as u32 % 64);
        self.times(1 << bits);
        self.digits.splice(0..0, std::iter::repeat_n(0, digits));
    }

    fn compare(&self, other: &Whole) -> Ordering {
        let trimmed = |whole: &Whole| whole.digits.iter().rposition(|&digit| digit != 0).map_or(0, |place| place + 1);
        let (left, right) = (trimmed(self), trimmed(other));
        left.cmp(&right).then_with(|| self.digits[..left].iter().rev().cmp(other.digits[..right].iter().rev()))
    }
}
