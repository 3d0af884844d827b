//! From numbers to the integers and doubles of the machine, as forgiving or as strict as MongoDB is at each place.

use super::Number;
use crate::{Decimal128, Element, Rounding, Value};
use pando_base::{Error, ErrorCode, Result};

impl Number {
    /// The number as a double, rounded if need be.
    pub fn to_double(self) -> f64 {
        match self {
            Number::Int32(number) => number.into(),
            Number::Int64(number) => number as f64,
            Number::Double(number) => number,
            Number::Decimal(number) => number.to_double(),
        }
    }

    /// The number as a decimal; of a double fifteen digits are kept.
    pub fn to_decimal(self) -> Decimal128 {
        match self {
            Number::Int32(number) => number.into(),
            Number::Int64(number) => number.into(),
            Number::Double(number) => number.into(),
            Number::Decimal(number) => number,
        }
    }

    /// The number without its fraction; a decimal is rounded half-even instead. Too large ones give the nearest int64,
    /// NaN gives zero.
    pub fn truncated_i64(self) -> i64 {
        match self {
            Number::Int32(number) => number.into(),
            Number::Int64(number) => number,
            Number::Double(number) => number as i64,
            Number::Decimal(number) => {
                let whole = number.round_to_whole(Rounding::HalfEven);
                match whole.to_i64_exact() {
                    Some(whole) => whole,
                    None if whole.is_nan() => 0,
                    None if whole.is_sign_negative() => i64::MIN,
                    None => i64::MAX,
                }
            }
        }
    }

    /// The number if it is whole and fits.
    pub fn to_i64_exact(self) -> Option<i64> {
        // Two to the 63rd: the first double that no int64 reaches.
        const BOUND: f64 = 9_223_372_036_854_775_808.0;
        match self {
            Number::Int32(number) => Some(number.into()),
            Number::Int64(number) => Some(number),
            Number::Double(number) => {
                let is_whole = (-BOUND..BOUND).contains(&number) && number.fract() == 0.0;
                is_whole.then_some(number as i64)
            }
            Number::Decimal(number) => number.to_i64_exact(),
        }
    }

    /// True if it is not a number.
    pub fn is_nan(self) -> bool {
        match self {
            Number::Double(number) => number.is_nan(),
            Number::Decimal(number) => number.is_nan(),
            _ => false,
        }
    }
}

impl Value<'_> {
    /// The number as a double; none if it is not a number.
    pub fn to_double(&self) -> Option<f64> {
        self.as_number().map(Number::to_double)
    }

    /// The number if it is whole and fits; none also if it is not a number.
    pub fn to_i64_exact(&self) -> Option<i64> {
        self.as_number().and_then(Number::to_i64_exact)
    }

    /// The number cut down to an int64; zero if it is not a number.
    pub fn to_i64_or_zero(&self) -> i64 {
        self.as_number().map_or(0, Number::truncated_i64)
    }
}

/// Numbers in requests, where anything but a whole number is refused with MongoDB's words.
impl Element<'_> {
    /// A whole number.
    pub fn parse_i64(&self) -> Result<i64> {
        let Some(number) = self.value.as_number() else {
            return Err(self.refused("Expected a number in"));
        };
        if let Some(whole) = number.to_i64_exact() {
            return Ok(whole);
        }
        Err(match number {
            Number::Double(number) if number.is_nan() => self.refused("Expected an integer, but found NaN in"),
            Number::Double(number) if number.is_finite() && number.fract() != 0.0 => {
                self.refused("Expected an integer")
            }
            _ => self.refused("Cannot represent as a 64-bit integer"),
        })
    }

    /// A whole number that is not negative.
    pub fn parse_non_negative_i64(&self) -> Result<i64> {
        self.parse_i64().and_then(|number| self.non_negative(number))
    }

    /// A whole number of 32 bits.
    pub fn parse_i32(&self) -> Result<i32> {
        let refused = |_| Error::new(ErrorCode::FailedToParse, format!("Cannot represent {self:#} in an int"));
        i32::try_from(self.parse_i64()?).map_err(refused)
    }

    /// A whole number of 32 bits that is not negative.
    pub fn parse_non_negative_i32(&self) -> Result<i32> {
        self.parse_i32().and_then(|number| self.non_negative(number))
    }

    fn non_negative<N: PartialOrd + Default>(&self, number: N) -> Result<N> {
        if number < N::default() { Err(self.refused("Expected a non-negative number in")) } else { Ok(number) }
    }

    fn refused(&self, what: &str) -> Error {
        Error::new(ErrorCode::FailedToParse, format!("{what}: {self:#}"))
    }
}
