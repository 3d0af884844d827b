//! Decimals as text: the notation of the General Decimal Arithmetic, as MongoDB prints and reads it.

use super::{COEFFICIENT_MAX, Decimal128, EXPONENT_MAX, EXPONENT_MIN, Parts};
use std::fmt;
use std::str::FromStr;

/// The text is not a decimal number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotADecimal;

impl fmt::Display for NotADecimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a decimal number")
    }
}

impl std::error::Error for NotADecimal {}

/// A decimal that may have been rounded to fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rounded {
    /// The nearest decimal; infinity if there is none.
    pub value: Decimal128,
    /// True if digits were lost.
    pub inexact: bool,
    /// True if the number was too large and became infinite.
    pub overflow: bool,
    /// True if the number was too near to zero to keep all its digits.
    pub underflow: bool,
}

impl fmt::Display for Decimal128 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (negative, coefficient, exponent) = match self.parts() {
            Parts::Nan { .. } => return f.write_str("NaN"),
            Parts::Infinity { negative } => return f.write_str(if negative { "-Infinity" } else { "Infinity" }),
            Parts::Finite { negative, coefficient, exponent } => (negative, coefficient, exponent),
        };
        if negative {
            f.write_str("-")?;
        }
        let digits = coefficient.to_string();
        let adjusted = exponent + digits.len() as i32 - 1;
        if exponent > 0 || adjusted < -6 {
            return scientific(f, &digits, adjusted);
        }
        plain(f, &digits, exponent.unsigned_abs() as usize)
    }
}

fn scientific(f: &mut fmt::Formatter<'_>, digits: &str, adjusted: i32) -> fmt::Result {
    let (first, rest) = digits.split_at(1);
    let point = if rest.is_empty() { "" } else { "." };
    let sign = if adjusted > 0 { "+" } else { "" };
    write!(f, "{first}{point}{rest}E{sign}{adjusted}")
}

fn plain(f: &mut fmt::Formatter<'_>, digits: &str, places: usize) -> fmt::Result {
    if places == 0 {
        return f.write_str(digits);
    }
    match digits.len().checked_sub(places) {
        None | Some(0) => write!(f, "0.{digits:0>places$}"),
        Some(whole) => {
            let (whole, fraction) = digits.split_at(whole);
            write!(f, "{whole}.{fraction}")
        }
    }
}

impl fmt::Debug for Decimal128 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NumberDecimal(\"{self}\")")
    }
}

impl FromStr for Decimal128 {
    type Err = NotADecimal;

    fn from_str(text: &str) -> Result<Decimal128, NotADecimal> {
        Decimal128::parse(text).map(|rounded| rounded.value)
    }
}

impl Decimal128 {
    /// Reads a number; more than 34 digits are rounded half-even.
    pub fn parse(text: &str) -> Result<Rounded, NotADecimal> {
        let (negative, unsigned) = match text.as_bytes() {
            [b'-', ..] => (true, &text[1..]),
            [b'+', ..] => (false, &text[1..]),
            _ => (false, text),
        };
        let special = |value| Ok(Rounded { value, inexact: false, overflow: false, underflow: false });
        if unsigned.eq_ignore_ascii_case("inf") || unsigned.eq_ignore_ascii_case("infinity") {
            return special(if negative { Decimal128::NEGATIVE_INFINITY } else { Decimal128::INFINITY });
        }
        if unsigned.eq_ignore_ascii_case("nan") {
            return special(Decimal128::NAN);
        }
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, read_exponent(exponent)?),
            None => (unsigned, 0),
        };
        let digits = Digits::read(mantissa)?;
        Ok(fit(negative, digits.coefficient, digits.sticky, exponent.saturating_add(digits.exponent)))
    }
}

/// The exponent, saturated: beyond a billion the result is the same.
fn read_exponent(text: &str) -> Result<i64, NotADecimal> {
    let (negative, digits) = match text.as_bytes() {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(NotADecimal);
    }
    let magnitude =
        digits.iter().fold(0_i64, |number, digit| (number * 10 + i64::from(digit - b'0')).min(1_000_000_000));
    Ok(if negative { -magnitude } else { magnitude })
}

/// The leading digits of a mantissa, and whether any other digit was not zero.
struct Digits {
    coefficient: u128,
    sticky: bool,
    exponent: i64,
}

impl Digits {
    /// As many digits as surely fit into the coefficient.
    const LIMIT: u128 = 10_u128.pow(37);

    fn read(mantissa: &str) -> Result<Digits, NotADecimal> {
        let mut digits = Digits { coefficient: 0, sticky: false, exponent: 0 };
        let (mut any, mut after_point) = (false, false);
        for byte in mantissa.bytes() {
            match byte {
                b'.' if !after_point => after_point = true,
                b'0'..=b'9' => {
                    any = true;
                    digits.push(byte - b'0', after_point);
                }
                _ => return Err(NotADecimal),
            }
        }
        if any { Ok(digits) } else { Err(NotADecimal) }
    }

    fn push(&mut self, digit: u8, after_point: bool) {
        if self.coefficient < Digits::LIMIT {
            self.coefficient = self.coefficient * 10 + u128::from(digit);
            self.exponent -= i64::from(after_point);
        } else {
            self.sticky |= digit != 0;
            self.exponent += i64::from(!after_point);
        }
    }
}

/// The nearest decimal to `±(coefficient + something less than one if sticky) × 10^exponent`, halves to even.
pub(super) fn fit(negative: bool, coefficient: u128, sticky: bool, exponent: i64) -> Rounded {
    let surplus = i64::from(digit_count(coefficient)) - 34;
    let dropped = surplus.max(i64::from(EXPONENT_MIN).saturating_sub(exponent)).max(0);
    let (mut kept, mut exponent, inexact) = drop_digits(coefficient, sticky, dropped, exponent);
    if kept > COEFFICIENT_MAX {
        kept /= 10;
        exponent += 1;
    }
    let underflow = inexact && exponent == i64::from(EXPONENT_MIN) && kept < 10_u128.pow(33);
    if kept == 0 {
        exponent = exponent.min(i64::from(EXPONENT_MAX));
    }
    while exponent > i64::from(EXPONENT_MAX) && kept <= COEFFICIENT_MAX / 10 {
        kept *= 10;
        exponent -= 1;
    }
    if exponent > i64::from(EXPONENT_MAX) {
        let value = if negative { Decimal128::NEGATIVE_INFINITY } else { Decimal128::INFINITY };
        return Rounded { value, inexact: true, overflow: true, underflow: false };
    }
    let value = Decimal128::finite(negative, kept, exponent as i32);
    Rounded { value, inexact, overflow: false, underflow }
}

/// Rounds away that many digits; returns what is left, its exponent and whether something was lost.
fn drop_digits(coefficient: u128, sticky: bool, dropped: i64, exponent: i64) -> (u128, i64, bool) {
    if dropped == 0 {
        return (coefficient, exponent, sticky);
    }
    let exponent = exponent.saturating_add(dropped);
    if dropped > 38 {
        return (0, exponent, sticky || coefficient != 0);
    }
    let unit = 10_u128.pow(dropped as u32);
    let (quotient, remainder) = (coefficient / unit, coefficient % unit);
    let half = unit / 2;
    let up = remainder > half || (remainder == half && (sticky || quotient % 2 == 1));
    (quotient + u128::from(up), exponent, sticky || remainder != 0)
}

/// How many digits a number has; zero has one.
pub(super) fn digit_count(number: u128) -> u32 {
    number.checked_ilog10().unwrap_or(0) + 1
}
