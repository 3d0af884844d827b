//! Decimal128 numbers: 34 decimal digits and an exponent, in the binary encoding (BID) that BSON uses.
//!
//! The value is kept as its sixteen bytes, so that what a client sends comes back bit by bit, non-canonical forms
//! included. Every operation goes over `Parts`. Arithmetic is libdecnumber's through the `dec` crate, which uses the
//! other encoding of IEEE 754 (DPD): `arithmetic` converts at its border.

mod arithmetic;
mod convert;
mod text;

#[cfg(test)]
mod tests;

pub use arithmetic::Rounding;
pub use text::NotADecimal;

/// A decimal number of IEEE 754-2008. Equality is that of bits; numeric equality is `compare_numbers`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Decimal128 {
    high: u64,
    low: u64,
}

/// A decimal taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parts {
    /// The sign does not matter to comparisons.
    Nan {
        /// True if the sign bit is set.
        negative: bool,
    },
    /// Plus or minus infinity.
    Infinity {
        /// True for minus infinity.
        negative: bool,
    },
    /// `±coefficient × 10^exponent`.
    Finite {
        /// True if the sign bit is set, also on zeros.
        negative: bool,
        /// At most 34 digits.
        coefficient: u128,
        /// Between `EXPONENT_MIN` and `EXPONENT_MAX`.
        exponent: i32,
    },
}

/// The smallest exponent of a finite decimal.
pub const EXPONENT_MIN: i32 = -6176;
/// The largest exponent of a finite decimal.
pub const EXPONENT_MAX: i32 = 6111;
/// The largest coefficient: 34 nines.
pub const COEFFICIENT_MAX: u128 = 10u128.pow(34) - 1;

const SIGN: u64 = 1 << 63;
const COMBINATION_SPECIAL: u64 = 0x6000_0000_0000_0000;
const COMBINATION_INFINITY: u64 = 0x7800_0000_0000_0000;
const COMBINATION_NAN: u64 = 0x7C00_0000_0000_0000;

impl Decimal128 {
    /// Zero with exponent zero.
    pub const ZERO: Decimal128 = Decimal128::from_halves(0x3040_0000_0000_0000, 0);
    /// One with exponent zero.
    pub const ONE: Decimal128 = Decimal128::from_halves(0x3040_0000_0000_0000, 1);
    /// Not a number, positive and quiet.
    pub const NAN: Decimal128 = Decimal128::from_halves(COMBINATION_NAN, 0);
    /// Plus infinity.
    pub const INFINITY: Decimal128 = Decimal128::from_halves(COMBINATION_INFINITY, 0);
    /// Minus infinity.
    pub const NEGATIVE_INFINITY: Decimal128 = Decimal128::from_halves(COMBINATION_INFINITY | SIGN, 0);
    /// The largest finite number.
    pub const MAX: Decimal128 = Decimal128::finite(false, COEFFICIENT_MAX, EXPONENT_MAX);
    /// The smallest finite number: the largest one negated.
    pub const MIN: Decimal128 = Decimal128::finite(true, COEFFICIENT_MAX, EXPONENT_MAX);
    /// The positive number that is nearest to zero.
    pub const MIN_POSITIVE: Decimal128 = Decimal128::finite(false, 1, EXPONENT_MIN);

    /// A decimal from the two halves of its encoding.
    #[inline]
    pub const fn from_halves(high: u64, low: u64) -> Decimal128 {
        Decimal128 { high, low }
    }

    /// The upper half of the encoding: sign, combination field, upper digits.
    pub const fn high(self) -> u64 {
        self.high
    }

    /// The lower half of the encoding.
    pub const fn low(self) -> u64 {
        self.low
    }

    /// A decimal from its bytes in BSON.
    #[inline]
    pub const fn from_bid_bytes(bytes: [u8; 16]) -> Decimal128 {
        let encoding = u128::from_le_bytes(bytes);
        Decimal128 { high: (encoding >> 64) as u64, low: encoding as u64 }
    }

    /// The bytes in BSON.
    #[inline]
    pub const fn to_bid_bytes(self) -> [u8; 16] {
        ((self.high as u128) << 64 | self.low as u128).to_le_bytes()
    }

    /// A finite decimal from parts within their bounds.
    const fn finite(negative: bool, coefficient: u128, exponent: i32) -> Decimal128 {
        debug_assert!(coefficient <= COEFFICIENT_MAX && exponent >= EXPONENT_MIN && exponent <= EXPONENT_MAX);
        let biased = (exponent - EXPONENT_MIN) as u64;
        let sign = if negative { SIGN } else { 0 };
        Decimal128 { high: sign | biased << 49 | (coefficient >> 64) as u64, low: coefficient as u64 }
    }

    /// A decimal from its parts. None if coefficient or exponent are out of bounds; nothing is rounded or shifted.
    pub const fn from_parts(parts: Parts) -> Option<Decimal128> {
        match parts {
            Parts::Nan { negative: false } => Some(Decimal128::NAN),
            Parts::Nan { negative: true } => Some(Decimal128::from_halves(COMBINATION_NAN | SIGN, 0)),
            Parts::Infinity { negative: false } => Some(Decimal128::INFINITY),
            Parts::Infinity { negative: true } => Some(Decimal128::NEGATIVE_INFINITY),
            Parts::Finite { negative, coefficient, exponent } => {
                if coefficient > COEFFICIENT_MAX || exponent < EXPONENT_MIN || exponent > EXPONENT_MAX {
                    None
                } else {
                    Some(Decimal128::finite(negative, coefficient, exponent))
                }
            }
        }
    }

    /// Takes the number apart. Coefficients of more than 34 digits count as zero, as the standard has it.
    pub const fn parts(self) -> Parts {
        let negative = self.is_sign_negative();
        if self.is_nan() {
            return Parts::Nan { negative };
        }
        if self.is_infinite() {
            return Parts::Infinity { negative };
        }
        // With both upper bits of the combination field set the exponent lies two bits further right, and the
        // coefficient starts with 0b100: always more than 34 digits.
        if self.high & COMBINATION_SPECIAL == COMBINATION_SPECIAL {
            let exponent = ((self.high >> 47) & 0x3FFF) as i32 + EXPONENT_MIN;
            return Parts::Finite { negative, coefficient: 0, exponent };
        }
        let exponent = ((self.high >> 49) & 0x3FFF) as i32 + EXPONENT_MIN;
        let coefficient = ((self.high & 0x0001_FFFF_FFFF_FFFF) as u128) << 64 | self.low as u128;
        let coefficient = if coefficient > COEFFICIENT_MAX { 0 } else { coefficient };
        Parts::Finite { negative, coefficient, exponent }
    }

    /// True if it is not a number.
    pub const fn is_nan(self) -> bool {
        self.high & COMBINATION_NAN == COMBINATION_NAN
    }

    /// True for both infinities.
    pub const fn is_infinite(self) -> bool {
        self.high & COMBINATION_NAN == COMBINATION_INFINITY
    }

    /// True for numbers other than the infinities.
    pub const fn is_finite(self) -> bool {
        self.high & COMBINATION_INFINITY != COMBINATION_INFINITY
    }

    /// True if the sign bit is set, also on zeros.
    pub const fn is_sign_negative(self) -> bool {
        self.high & SIGN != 0
    }

    /// True for zeros of both signs and any exponent.
    pub const fn is_zero(self) -> bool {
        matches!(self.parts(), Parts::Finite { coefficient: 0, .. })
    }

    /// The number with the other sign.
    #[must_use]
    pub const fn negate(self) -> Decimal128 {
        Decimal128 { high: self.high ^ SIGN, low: self.low }
    }

    /// The number without its sign.
    #[must_use]
    pub const fn abs(self) -> Decimal128 {
        Decimal128 { high: self.high & !SIGN, low: self.low }
    }
}

impl Default for Decimal128 {
    fn default() -> Decimal128 {
        Decimal128::ZERO
    }
}
