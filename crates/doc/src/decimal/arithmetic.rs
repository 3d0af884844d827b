//! Decimal arithmetic, rounded to 34 digits: libdecnumber's, in its own encoding.
//!
//! libdecnumber and the library that MongoDB uses both implement IEEE 754-2008, so that results are the same digit by
//! digit; the transcendental functions may differ in the last one.

use super::{Decimal128, EXPONENT_MAX, EXPONENT_MIN, Parts};
use dec::{Context, Decimal};
use std::ops::{Add, Div, Mul, Neg, Rem, Sub};

/// What to do with digits that do not fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub enum Rounding {
    #[default]
    HalfEven,
    HalfUp,
    TowardZero,
    Floor,
    Ceiling,
}

impl From<Rounding> for dec::Rounding {
    fn from(rounding: Rounding) -> dec::Rounding {
        match rounding {
            Rounding::HalfEven => dec::Rounding::HalfEven,
            Rounding::HalfUp => dec::Rounding::HalfUp,
            Rounding::TowardZero => dec::Rounding::Down,
            Rounding::Floor => dec::Rounding::Floor,
            Rounding::Ceiling => dec::Rounding::Ceiling,
        }
    }
}

type Dense = dec::Decimal128;
/// Enough for 36 digits; results are rounded to 34.
type Wide = Decimal<12>;

impl Add for Decimal128 {
    type Output = Decimal128;

    fn add(self, other: Decimal128) -> Decimal128 {
        binary(self, other, |context, left, right| context.add(left, right))
    }
}

impl Sub for Decimal128 {
    type Output = Decimal128;

    fn sub(self, other: Decimal128) -> Decimal128 {
        binary(self, other, |context, left, right| context.sub(left, right))
    }
}

impl Mul for Decimal128 {
    type Output = Decimal128;

    fn mul(self, other: Decimal128) -> Decimal128 {
        binary(self, other, |context, left, right| context.mul(left, right))
    }
}

/// By zero it is infinite or NaN.
impl Div for Decimal128 {
    type Output = Decimal128;

    fn div(self, other: Decimal128) -> Decimal128 {
        binary(self, other, |context, left, right| context.div(left, right))
    }
}

/// What is left of a division truncated to a whole quotient; it has the sign of the dividend. libdecnumber refuses
/// quotients of more than 34 digits, so that it is reckoned here.
impl Rem for Decimal128 {
    type Output = Decimal128;

    fn rem(self, divisor: Decimal128) -> Decimal128 {
        match (self.parts(), divisor.parts()) {
            (Parts::Nan { .. }, _) => self.quiet(),
            (_, Parts::Nan { .. }) => divisor.quiet(),
            (Parts::Infinity { .. }, _) => Decimal128::NAN,
            (_, Parts::Finite { coefficient: 0, .. }) => Decimal128::NAN,
            (Parts::Finite { .. }, Parts::Infinity { .. }) => self,
            (
                Parts::Finite { negative, coefficient, exponent },
                Parts::Finite { coefficient: by, exponent: place, .. },
            ) => remainder(negative, (coefficient, exponent), (by, place)),
        }
    }
}

impl Neg for Decimal128 {
    type Output = Decimal128;

    fn neg(self) -> Decimal128 {
        self.negate()
    }
}

impl Decimal128 {
    /// The number rounded to the exponent of the other; NaN if it then has more than 34 digits.
    #[must_use]
    pub fn quantize(self, reference: Decimal128, rounding: Rounding) -> Decimal128 {
        if self.is_nan() {
            return self.quiet();
        }
        let mut context = Context::<Dense>::default();
        context.set_rounding(rounding.into());
        from_dense(context.quantize(to_dense(self), to_dense(reference)))
    }

    /// The number rounded to a whole one; infinities and NaN stay.
    #[must_use]
    pub fn round_to_whole(self, rounding: Rounding) -> Decimal128 {
        match self.parts() {
            Parts::Finite { exponent: ..0, .. } => self.quantize(Decimal128::ONE, rounding),
            _ => self,
        }
    }

    /// The number with as many digits as fit: zeros are added behind the last one.
    #[must_use]
    pub fn with_all_digits(self) -> Decimal128 {
        self + Decimal128::finite(false, 0, EXPONENT_MIN)
    }

    /// A NaN without what else its bits may say; it keeps its sign.
    fn quiet(self) -> Decimal128 {
        if self.is_sign_negative() { Decimal128::NAN.negate() } else { Decimal128::NAN }
    }

    /// The square root.
    #[must_use]
    pub fn square_root(self) -> Decimal128 {
        unary(self, |context, number| context.sqrt(number))
    }

    /// e to the power of the number.
    #[must_use]
    pub fn exponential(self) -> Decimal128 {
        whole_if_exact(unary(self, |context, number| context.exp(number)))
    }

    /// The natural logarithm.
    #[must_use]
    pub fn natural_logarithm(self) -> Decimal128 {
        whole_if_exact(unary(self, |context, number| context.ln(number)))
    }

    /// The logarithm to base ten.
    #[must_use]
    pub fn decimal_logarithm(self) -> Decimal128 {
        whole_if_exact(unary(self, |context, number| context.log10(number)))
    }

    /// The number to the power of the other, with all digits. What has no value of its own is what `pow` of C says it is.
    #[must_use]
    pub fn power(self, exponent: Decimal128) -> Decimal128 {
        let is_one = |number: Decimal128| number.reduced_parts() == Decimal128::ONE.parts();
        if exponent.is_zero() || is_one(self) || (is_one(self.negate()) && exponent.is_infinite()) {
            return Decimal128::ONE.with_all_digits();
        }
        if self.is_nan() || exponent.is_nan() {
            return if self.is_nan() { self.quiet() } else { exponent.quiet() };
        }
        // An infinite exponent is even: the sign of the base is lost.
        let base = if exponent.is_infinite() { self.abs() } else { self };
        let exponent = Wide::from(to_dense(exponent));
        unary(base, |context, number| context.pow(number, &exponent)).with_all_digits()
    }
}

/// A result that is a whole number, without zeros behind its point; zero with the least exponent.
fn whole_if_exact(number: Decimal128) -> Decimal128 {
    let Parts::Finite { negative, mut coefficient, mut exponent } = number.parts() else { return number };
    if coefficient == 0 {
        return if exponent < 0 { Decimal128::finite(negative, 0, EXPONENT_MIN) } else { number };
    }
    while exponent < 0 && coefficient % 10 == 0 {
        coefficient /= 10;
        exponent += 1;
    }
    if exponent == 0 { Decimal128::finite(negative, coefficient, 0) } else { number }
}

/// The remainder of two finite decimals, at the lower of the two exponents.
fn remainder(negative: bool, (dividend, exponent): (u128, i32), (divisor, place): (u128, i32)) -> Decimal128 {
    if exponent >= place {
        // dividend × 10^(exponent - place) modulo divisor, one digit at a time: divisor × 10 fits.
        let mut rest = dividend % divisor;
        for _ in place..exponent {
            rest = rest * 10 % divisor;
        }
        return Decimal128::finite(negative, rest, place);
    }
    let shift = place.abs_diff(exponent);
    match 10_u128.checked_pow(shift).and_then(|unit| divisor.checked_mul(unit)) {
        Some(divisor) => Decimal128::finite(negative, dividend % divisor, exponent),
        // The divisor is larger than any coefficient: the dividend is what is left.
        None => Decimal128::finite(negative, dividend, exponent),
    }
}

fn binary(
    left: Decimal128,
    right: Decimal128,
    operation: impl FnOnce(&mut Context<Dense>, Dense, Dense) -> Dense,
) -> Decimal128 {
    // The first that is not a number is the result, sign included.
    if let Some(nan) = [left, right].into_iter().find(|number| number.is_nan()) {
        return nan.quiet();
    }
    from_dense(operation(&mut Context::default(), to_dense(left), to_dense(right)))
}

fn unary(number: Decimal128, operation: impl FnOnce(&mut Context<Wide>, &mut Wide)) -> Decimal128 {
    if number.is_nan() {
        return number.quiet();
    }
    let mut context = Context::<Wide>::default();
    let bounds = context
        .set_precision(34)
        .is_ok()
        .then_some(())
        .and_then(|()| context.set_max_exponent(EXPONENT_MAX as isize + 33).ok())
        .and_then(|()| context.set_min_exponent(EXPONENT_MIN as isize + 33).ok());
    debug_assert!(bounds.is_some(), "the bounds of decimal128 are within libdecnumber's");
    let mut number = Wide::from(to_dense(number));
    operation(&mut context, &mut number);
    from_dense(number.to_decimal128())
}

fn to_dense(number: Decimal128) -> Dense {
    let mut context = Context::<Dense>::default();
    let (negative, dense) = match number.parts() {
        Parts::Nan { .. } => (false, Dense::NAN),
        Parts::Infinity { negative } => (negative, context.div(Dense::ONE, Dense::ZERO)),
        Parts::Finite { negative, coefficient, exponent } => {
            let mut dense = context.from_u128(coefficient);
            context.set_exponent(&mut dense, exponent);
            (negative, dense)
        }
    };
    let mut bytes = dense.to_le_bytes();
    bytes[15] |= u8::from(negative) << 7;
    Dense::from_le_bytes(bytes)
}

fn from_dense(dense: Dense) -> Decimal128 {
    let negative = dense.is_signed();
    let parts = if dense.is_nan() {
        Parts::Nan { negative: false }
    } else if dense.is_infinite() {
        Parts::Infinity { negative }
    } else {
        Parts::Finite { negative, coefficient: dense.coefficient().unsigned_abs(), exponent: dense.exponent() }
    };
    let number = Decimal128::from_parts(parts);
    debug_assert!(number.is_some(), "both encodings have the same bounds");
    number.unwrap_or(Decimal128::NAN)
}
