//! Between decimals and the other kinds of number.

use super::text::{Rounded, fit};
use super::{Decimal128, Parts};

impl From<i32> for Decimal128 {
    fn from(number: i32) -> Decimal128 {
        Decimal128::from(i64::from(number))
    }
}

impl From<i64> for Decimal128 {
    fn from(number: i64) -> Decimal128 {
        Decimal128::finite(number < 0, u128::from(number.unsigned_abs()), 0)
    }
}

impl From<u64> for Decimal128 {
    fn from(number: u64) -> Decimal128 {
        Decimal128::finite(false, u128::from(number), 0)
    }
}

/// Fifteen digits: as many as every double keeps. This is how MongoDB makes decimals of doubles.
impl From<f64> for Decimal128 {
    fn from(number: f64) -> Decimal128 {
        rounded_double(number, 14)
    }
}

/// The double with one digit before the point and `places` after it.
fn rounded_double(number: f64, places: usize) -> Decimal128 {
    if number.is_nan() {
        return Decimal128::NAN;
    }
    if number.is_infinite() {
        return if number < 0.0 { Decimal128::NEGATIVE_INFINITY } else { Decimal128::INFINITY };
    }
    if number == 0.0 {
        return Decimal128::finite(number.is_sign_negative(), 0, 0);
    }
    let text = format!("{number:.places$e}");
    let parsed = Decimal128::parse(&text);
    debug_assert!(parsed.is_ok(), "a finite double prints as a decimal");
    parsed.map_or(Decimal128::NAN, |rounded| rounded.value)
}

impl Decimal128 {
    /// The double rounded to 34 digits, without trailing zeros after the point.
    pub fn from_double_34_digits(number: f64) -> Decimal128 {
        let wide = rounded_double(number, 33);
        match wide.parts() {
            Parts::Finite { negative, mut coefficient, mut exponent } if coefficient != 0 => {
                while exponent < 0 && coefficient % 10 == 0 {
                    coefficient /= 10;
                    exponent += 1;
                }
                Decimal128::finite(negative, coefficient, exponent)
            }
            _ => wide,
        }
    }

    /// The nearest double, ties to even; infinite beyond the doubles' range.
    pub fn to_double(self) -> f64 {
        match self.parts() {
            Parts::Nan { .. } => f64::NAN,
            Parts::Infinity { negative } => {
                if negative {
                    f64::NEG_INFINITY
                } else {
                    f64::INFINITY
                }
            }
            Parts::Finite { negative, coefficient: 0, .. } => {
                if negative {
                    -0.0
                } else {
                    0.0
                }
            }
            Parts::Finite { negative, coefficient, exponent } => {
                let magnitude = nearest_double(coefficient, exponent);
                if negative { -magnitude } else { magnitude }
            }
        }
    }

    /// The number if it is whole and fits.
    pub fn to_i64_exact(self) -> Option<i64> {
        let Parts::Finite { negative, coefficient, exponent } = self.parts() else { return None };
        let magnitude = match exponent {
            _ if coefficient == 0 => 0,
            0.. => coefficient.checked_mul(10_u128.checked_pow(exponent as u32)?)?,
            _ => {
                let unit = 10_u128.checked_pow(exponent.unsigned_abs())?;
                if coefficient % unit != 0 {
                    return None;
                }
                coefficient / unit
            }
        };
        let magnitude = i128::try_from(magnitude).ok()?;
        i64::try_from(if negative { -magnitude } else { magnitude }).ok()
    }

    /// The decimal nearest to `±coefficient × 10^exponent`.
    pub fn nearest(negative: bool, coefficient: u128, exponent: i32) -> Rounded {
        fit(negative, coefficient, false, i64::from(exponent))
    }

    /// The number with trailing zeros taken away, and how it is hashed: equal numbers give equal parts.
    pub fn reduced_parts(self) -> Parts {
        match self.parts() {
            Parts::Nan { .. } => Parts::Nan { negative: false },
            Parts::Finite { coefficient: 0, .. } => Parts::Finite { negative: false, coefficient: 0, exponent: 0 },
            Parts::Finite { negative, mut coefficient, mut exponent } => {
                while coefficient % 10 == 0 {
                    coefficient /= 10;
                    exponent += 1;
                }
                Parts::Finite { negative, coefficient, exponent }
            }
            infinity => infinity,
        }
    }
}

/// The standard library's reader of doubles rounds correctly, so that it does the work.
fn nearest_double(coefficient: u128, exponent: i32) -> f64 {
    format!("{coefficient}e{exponent}").parse().unwrap_or(f64::NAN)
}
