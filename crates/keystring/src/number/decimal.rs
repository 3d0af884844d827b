//! A decimal's magnitude, and which of its equal representations was meant.
//!
//! `1`, `1.0` and `1.00` are equal but not the same. A value has at most 34 representations, with adjacent exponents, so the
//! six low bits of the stored exponent tell them apart; those are kept in the type bits.

use pando_doc::{Decimal128, DecimalParts};

/// One more than the largest coefficient.
pub(crate) const COEFFICIENT_END: u128 = 10_u128.pow(34);
/// What is added to an exponent where it is stored.
pub(crate) const EXPONENT_BIAS: i32 = 6176;
/// How many stored exponents there are.
pub(crate) const EXPONENT_COUNT: u32 = 12_288;

/// A positive number: `coefficient × 10^exponent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Magnitude {
    pub(crate) coefficient: u128,
    pub(crate) exponent: i32,
}

impl Magnitude {
    /// The same number with 34 digits, or as many as the smallest exponent leaves.
    pub(crate) fn widest(self) -> Magnitude {
        debug_assert!(self.coefficient != 0 && self.coefficient < COEFFICIENT_END);
        let wanted = 34 - digit_count(self.coefficient);
        let possible = u32::try_from(self.exponent + EXPONENT_BIAS).unwrap_or(0);
        let step = wanted.min(possible);
        Magnitude { coefficient: self.coefficient * 10_u128.pow(step), exponent: self.exponent - step as i32 }
    }

    /// The decimal; none if a part is out of range.
    pub(crate) fn signed(self, negative: bool) -> Option<Decimal128> {
        let Magnitude { coefficient, exponent } = self;
        Decimal128::from_parts(DecimalParts::Finite { negative, coefficient, exponent })
    }

    /// The decimal that equals this and whose stored exponent ends with the six given bits; none if there is none.
    pub(crate) fn with_exponent_bits(self, low_bits: u32) -> Option<Magnitude> {
        let biased = u32::try_from(self.exponent + EXPONENT_BIAS).ok()?;
        let down = biased.wrapping_sub(low_bits) & 63;
        let widened = 10_u128.checked_pow(down).and_then(|factor| self.coefficient.checked_mul(factor));
        if let Some(coefficient) = widened.filter(|coefficient| *coefficient < COEFFICIENT_END) {
            return Some(Magnitude { coefficient, exponent: self.exponent - down as i32 });
        }
        let up = 64 - down;
        let divisor = 10_u128.checked_pow(up)?;
        let is_exact = self.coefficient.is_multiple_of(divisor);
        is_exact.then(|| Magnitude { coefficient: self.coefficient / divisor, exponent: self.exponent + up as i32 })
    }
}

/// How many decimal digits a number has; one for zero.
pub(crate) fn digit_count(number: u128) -> u32 {
    number.checked_ilog10().unwrap_or(0) + 1
}

/// The place of a zero among all decimal zeros: by exponent, the negative ones behind.
pub(crate) fn decimal_zero_index(negative: bool, exponent: i32) -> u32 {
    biased_decimal_exponent(exponent) + if negative { EXPONENT_COUNT } else { 0 }
}

/// The exponent as it is stored.
pub(crate) fn biased_decimal_exponent(exponent: i32) -> u32 {
    debug_assert!((-EXPONENT_BIAS..EXPONENT_COUNT as i32 - EXPONENT_BIAS).contains(&exponent));
    (exponent + EXPONENT_BIAS) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_representation_is_found_again() {
        // 1200 as 12E2, 120E1, …, 1200…0E-30.
        let twelve_hundred = |exponent: i32| {
            let coefficient = 12 * 10_u128.pow((2 - exponent) as u32);
            Magnitude { coefficient, exponent }
        };
        for exponent in -30..=2 {
            for start in -30..=2 {
                let found = twelve_hundred(start).with_exponent_bits(biased_decimal_exponent(exponent) & 63);
                assert_eq!(found, Some(twelve_hundred(exponent)));
            }
        }
        assert_eq!(twelve_hundred(2).with_exponent_bits(biased_decimal_exponent(3) & 63), None);
        assert_eq!(twelve_hundred(-30).with_exponent_bits(biased_decimal_exponent(-31) & 63), None);
    }

    #[test]
    fn the_widest_form_stops_at_the_smallest_exponent() {
        let wide = Magnitude { coefficient: 12, exponent: -6170 }.widest();
        assert_eq!(wide, Magnitude { coefficient: 12_000_000, exponent: -6176 });
        let wide = Magnitude { coefficient: 12, exponent: 0 }.widest();
        assert_eq!(wide, Magnitude { coefficient: 12 * 10_u128.pow(32), exponent: -32 });
    }
}
