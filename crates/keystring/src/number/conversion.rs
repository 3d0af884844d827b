//! Exact steps between binary doubles and decimals.
//!
//! A key stores a decimal as the double next to it towards zero plus what is missing, so three questions must be answered
//! without error: which double that is, which decimal of 15 or 34 digits follows or precedes a double, and what a product
//! of two decimals is when cut to 34 digits. All work on magnitudes; signs are the caller's. Numbers of everyday size are
//! computed in 128 bits, the rest in big integers of at most some 1300 bits.

use super::decimal::{COEFFICIENT_END, Magnitude, digit_count};
use num_bigint::BigUint;
use num_traits::{ToPrimitive, Zero};

/// Where to go from between two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounding {
    Up,
    Down,
}

/// A positive number cut to a double.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Truncated {
    /// The largest double that is not above; zero below the smallest one, the largest finite one above it.
    pub(crate) double: f64,
    /// True if nothing was cut off.
    pub(crate) is_exact: bool,
}

/// `quotient / 2^shift`, or slightly more unless exact. The quotient has at least 54 bits unless exact.
struct Scaled {
    quotient: u128,
    shift: i32,
    is_exact: bool,
}

/// The double next to a decimal, towards zero.
pub(crate) fn truncate_to_double(decimal: Magnitude) -> Truncated {
    let leading_exponent = digit_count(decimal.coefficient) as i32 + decimal.exponent;
    if leading_exponent > 310 {
        return Truncated { double: f64::MAX, is_exact: false };
    }
    if leading_exponent < -330 {
        return Truncated { double: 0.0, is_exact: false };
    }
    cut(scale_in_128_bits(decimal).unwrap_or_else(|| scale_in_big_integers(decimal)))
}

fn scale_in_128_bits(decimal: Magnitude) -> Option<Scaled> {
    let power = 10_u128.checked_pow(decimal.exponent.unsigned_abs())?;
    if decimal.exponent >= 0 {
        let quotient = decimal.coefficient.checked_mul(power)?;
        return Some(Scaled { quotient, shift: 0, is_exact: true });
    }
    // 10^21 has 70 bits, which leaves the quotient 57.
    if decimal.exponent < -21 {
        return None;
    }
    let shift = decimal.coefficient.leading_zeros();
    let dividend = decimal.coefficient << shift;
    let (quotient, rest) = (dividend / power, dividend % power);
    Some(Scaled { quotient, shift: shift as i32, is_exact: rest == 0 })
}

fn scale_in_big_integers(decimal: Magnitude) -> Scaled {
    let power = BigUint::from(10_u8).pow(decimal.exponent.unsigned_abs());
    let coefficient = BigUint::from(decimal.coefficient);
    let (dividend, divisor) =
        if decimal.exponent >= 0 { (coefficient * power, BigUint::from(1_u8)) } else { (coefficient, power) };
    let shift = 64 - (dividend.bits() as i32 - divisor.bits() as i32);
    let (dividend, divisor) =
        if shift >= 0 { (dividend << shift as u32, divisor) } else { (dividend, divisor << shift.unsigned_abs()) };
    let quotient = &dividend / &divisor;
    let is_exact = &quotient * &divisor == dividend;
    debug_assert!((64..=65).contains(&quotient.bits()));
    Scaled { quotient: quotient.to_u128().unwrap_or(u128::MAX), shift, is_exact }
}

/// Cuts to the 53 bits of a double, fewer below the normal range.
fn cut(number: Scaled) -> Truncated {
    let Scaled { quotient, shift, is_exact } = number;
    debug_assert!(quotient != 0);
    let bit_count = 128 - quotient.leading_zeros() as i32;
    let top_exponent = bit_count - 1 - shift;
    if top_exponent > f64::MAX_EXP - 1 {
        return Truncated { double: f64::MAX, is_exact: false };
    }
    // The last bit kept stands for 2^(dropped - shift), which is at least 2^-1074.
    let dropped = (bit_count - 53).max(shift - 1074);
    if dropped >= bit_count {
        return Truncated { double: 0.0, is_exact: false };
    }
    let (significand, rest) = if dropped >= 0 {
        (quotient >> dropped, quotient & ((1 << dropped) - 1))
    } else {
        (quotient << dropped.unsigned_abs(), 0)
    };
    let is_exact = is_exact && rest == 0;
    let double = compose(significand as u64, dropped - shift);
    Truncated { double, is_exact }
}

/// `significand × 2^exponent`, which a double holds exactly.
fn compose(significand: u64, exponent: i32) -> f64 {
    debug_assert!(significand < 1 << 53 && exponent >= -1074);
    if significand < 1 << 52 {
        debug_assert!(exponent == -1074, "only subnormals have a short significand");
        return f64::from_bits(significand);
    }
    let biased = (exponent + 1075) as u64;
    f64::from_bits(biased << 52 | significand & ((1 << 52) - 1))
}

/// A positive finite double as `significand × 2^exponent`.
fn decompose(double: f64) -> (u64, i32) {
    let bits = double.to_bits();
    let (biased, fraction) = ((bits >> 52 & 0x7ff) as i32, bits & ((1 << 52) - 1));
    if biased == 0 { (fraction, -1074) } else { (fraction | 1 << 52, biased - 1075) }
}

/// The decimal of exactly so many digits that is next to a positive finite double or equals it.
pub(crate) fn double_to_digits(double: f64, digits: u32, rounding: Rounding) -> Magnitude {
    debug_assert!(double > 0.0 && double.is_finite() && digits <= 34);
    let (significand, exponent) = decompose(double);
    let top_exponent = 63 - significand.leading_zeros() as i32 + exponent;
    // The logarithm from below: at most one too small.
    let leading = (i64::from(top_exponent) * 30_103).div_euclid(100_000) as i32;
    let mut decimal_exponent = leading - digits as i32 + 1;
    let end = 10_u128.pow(digits);
    loop {
        let (floor, is_exact) = divide_by_power_of_ten(significand, exponent, decimal_exponent);
        if floor >= end {
            decimal_exponent += 1;
            continue;
        }
        if floor < end / 10 {
            decimal_exponent -= 1;
            continue;
        }
        let coefficient = if rounding == Rounding::Up && !is_exact { floor + 1 } else { floor };
        return if coefficient == end {
            Magnitude { coefficient: end / 10, exponent: decimal_exponent + 1 }
        } else {
            Magnitude { coefficient, exponent: decimal_exponent }
        };
    }
}

/// `significand × 2^exponent / 10^decimal_exponent`, rounded down, and whether that is exact.
fn divide_by_power_of_ten(significand: u64, exponent: i32, decimal_exponent: i32) -> (u128, bool) {
    if let Some(result) = divide_in_128_bits(significand, exponent, decimal_exponent) {
        return result;
    }
    let power = BigUint::from(10_u8).pow(decimal_exponent.unsigned_abs());
    let (mut dividend, mut divisor) = (BigUint::from(significand), BigUint::from(1_u8));
    *if decimal_exponent >= 0 { &mut divisor } else { &mut dividend } *= power;
    *if exponent >= 0 { &mut dividend } else { &mut divisor } <<= exponent.unsigned_abs();
    let quotient = &dividend / &divisor;
    let is_exact = (dividend - &quotient * divisor).is_zero();
    (quotient.to_u128().unwrap_or(u128::MAX), is_exact)
}

fn divide_in_128_bits(significand: u64, exponent: i32, decimal_exponent: i32) -> Option<(u128, bool)> {
    if decimal_exponent > 0 || exponent <= -128 {
        return None;
    }
    let power = 10_u128.checked_pow(decimal_exponent.unsigned_abs())?;
    let product = u128::from(significand).checked_mul(power)?;
    if exponent >= 0 {
        let is_safe = product.leading_zeros() > exponent.unsigned_abs();
        return is_safe.then(|| (product << exponent, true));
    }
    let shift = exponent.unsigned_abs();
    Some((product >> shift, product & ((1 << shift) - 1) == 0))
}

/// The product, cut to 34 digits.
pub(crate) fn multiply_truncated(left: Magnitude, right: Magnitude) -> Magnitude {
    let product = BigUint::from(left.coefficient) * right.coefficient;
    let exponent = left.exponent + right.exponent;
    let mut cut_digits = 0;
    let mut divisor = BigUint::from(1_u8);
    while &product / &divisor >= BigUint::from(COEFFICIENT_END) {
        cut_digits += 1;
        divisor *= 10_u8;
    }
    let coefficient = (product / divisor).to_u128().unwrap_or(u128::MAX);
    Magnitude { coefficient, exponent: exponent + cut_digits }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(coefficient: u128, exponent: i32) -> Magnitude {
        Magnitude { coefficient, exponent }
    }

    fn exact(double: f64) -> Truncated {
        Truncated { double, is_exact: true }
    }

    fn below(double: f64) -> Truncated {
        Truncated { double, is_exact: false }
    }

    #[test]
    fn doubles_next_to_decimals() {
        assert_eq!(truncate_to_double(decimal(15, -1)), exact(1.5));
        assert_eq!(truncate_to_double(decimal(1, -1)), below(0.1_f64.next_down()));
        assert_eq!(truncate_to_double(decimal(3, -1)), below(0.3));
        assert_eq!(truncate_to_double(decimal((1 << 53) + 1, 0)), below(9_007_199_254_740_992.0));
        assert_eq!(truncate_to_double(decimal(1, 22)), exact(1e22));
        assert_eq!(truncate_to_double(decimal(1, 23)), below(1e23));
        assert_eq!(truncate_to_double(decimal(1, 308)), below(1e308_f64.next_down()));
        assert_eq!(truncate_to_double(decimal(2, 308)), below(f64::MAX));
        assert_eq!(truncate_to_double(decimal(1, 6000)), below(f64::MAX));
        assert_eq!(truncate_to_double(decimal(4, -324)), below(0.0));
        assert_eq!(truncate_to_double(decimal(5, -324)), below(f64::from_bits(1)));
        assert_eq!(truncate_to_double(decimal(5, -6000)), below(0.0));
        assert_eq!(truncate_to_double(decimal(1, -310)), below(1e-310));
    }

    /// The standard library prints and parses exactly; that is the reference for both directions.
    #[test]
    fn conversions_agree_with_printed_digits() {
        let mut bits = 1_u64;
        for _ in 0..3000 {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // Half of the doubles of everyday size, half of any size.
            let everyday = 1020 << 52 | bits >> 12;
            let double = f64::from_bits(if bits & 1 == 0 { bits >> 1 } else { everyday });
            if !double.is_finite() || double == 0.0 {
                continue;
            }
            for digits in [15_u32, 34] {
                let down = double_to_digits(double, digits, Rounding::Down);
                assert_eq!(down, printed_down(double, digits as usize), "{double:e}");
                let up = double_to_digits(double, digits, Rounding::Up);
                check_between(double, down, up);
            }
        }
    }

    fn check_between(double: f64, down: Magnitude, up: Magnitude) {
        let (from_down, from_up) = (truncate_to_double(down), truncate_to_double(up));
        if down == up {
            assert_eq!(from_down, exact(double));
            return;
        }
        assert!(from_down.double < double, "{down:?} {double:e}");
        assert!(from_up.double >= double && !(from_up.double == double && from_up.is_exact), "{up:?} {double:e}");
        let next = decimal(down.coefficient + 1, down.exponent);
        assert!(next == up || (next.coefficient / 10, next.exponent + 1) == (up.coefficient, up.exponent));
    }

    /// The first digits of the exact decimal expansion, which has fewer than 800.
    fn printed_down(double: f64, digits: usize) -> Magnitude {
        let text = format!("{double:.800e}");
        let (significand, exponent) = text.split_once('e').unwrap();
        let all: String = significand.chars().filter(char::is_ascii_digit).collect();
        let exponent: i32 = exponent.parse().unwrap();
        decimal(all[..digits].parse().unwrap(), exponent - digits as i32 + 1)
    }

    #[test]
    fn products_are_cut() {
        let nines = COEFFICIENT_END - 1;
        assert_eq!(multiply_truncated(decimal(nines, 0), decimal(nines, 5)), decimal(nines - 1, 39));
        assert_eq!(multiply_truncated(decimal(12, 1), decimal(3, -9)), decimal(36, -8));
    }
}
