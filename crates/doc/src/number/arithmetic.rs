//! Arithmetic by MongoDB's rules of widening.

use super::Number;
use crate::Decimal128;

impl Number {
    /// An int32 if it fits, else an int64.
    pub fn narrowest(number: i64) -> Number {
        i32::try_from(number).map_or(Number::Int64(number), Number::Int32)
    }

    /// The sum; an int64 that overflows becomes a double.
    #[must_use]
    pub fn plus(self, other: Number) -> Number {
        self.checked_add(other).unwrap_or_else(|| Number::Double(self.to_double() + other.to_double()))
    }

    /// The difference; an int64 that overflows becomes a double.
    #[must_use]
    pub fn minus(self, other: Number) -> Number {
        let whole = |left: i64, right: i64| left.checked_sub(right);
        let reckoned = self.reckon(other, whole, |left, right| left - right, |left, right| left - right);
        reckoned.unwrap_or_else(|| Number::Double(self.to_double() - other.to_double()))
    }

    /// The product; an int64 that overflows becomes a double.
    #[must_use]
    pub fn times(self, other: Number) -> Number {
        self.checked_multiply(other).unwrap_or_else(|| Number::Double(self.to_double() * other.to_double()))
    }

    /// The quotient, a double or a decimal; none by zero.
    pub fn divided_by(self, other: Number) -> Option<Number> {
        if self.is_decimal() || other.is_decimal() {
            let divisor = other.to_decimal();
            return if divisor.is_zero() { None } else { Some(Number::Decimal(self.to_decimal() / divisor)) };
        }
        let divisor = other.to_double();
        if divisor == 0.0 { None } else { Some(Number::Double(self.to_double() / divisor)) }
    }

    /// What a truncated division leaves, with the sign of the dividend; none by zero. A whole number by a double without
    /// fraction stays whole.
    pub fn modulo(self, other: Number) -> Option<Number> {
        if self.is_decimal() || other.is_decimal() {
            let divisor = other.to_decimal();
            return if divisor.is_zero() { None } else { Some(Number::Decimal(self.to_decimal() % divisor)) };
        }
        let divisor = other.to_double();
        if divisor == 0.0 {
            return None;
        }
        match (self, other) {
            (Number::Double(left), _) => Some(Number::Double(left % divisor)),
            (left, Number::Double(right)) if i32::try_from(right as i64).ok().map(f64::from) != Some(right) => {
                Some(Number::Double(left.to_double() % right))
            }
            (Number::Int32(left), right @ (Number::Int32(_) | Number::Double(_))) => {
                let rest = i64::from(left).checked_rem(right.truncated_i64())?;
                i32::try_from(rest).ok().map(Number::Int32)
            }
            // The least int64 by minus one overflows, and leaves nothing.
            (left, right) => Some(Number::Int64(left.truncated_i64().wrapping_rem(right.truncated_i64()))),
        }
    }

    /// The sum; none if an int64 overflows.
    pub fn checked_add(self, other: Number) -> Option<Number> {
        let whole = |left: i64, right: i64| left.checked_add(right);
        self.reckon(other, whole, |left, right| left + right, |left, right| left + right)
    }

    /// The product; none if an int64 overflows.
    pub fn checked_multiply(self, other: Number) -> Option<Number> {
        let whole = |left: i64, right: i64| left.checked_mul(right);
        self.reckon(other, whole, |left, right| left * right, |left, right| left * right)
    }

    /// Reckons in the widest kind of the two; none if whole numbers overflow.
    fn reckon(
        self,
        other: Number,
        whole: impl Fn(i64, i64) -> Option<i64>,
        double: impl Fn(f64, f64) -> f64,
        decimal: impl Fn(Decimal128, Decimal128) -> Decimal128,
    ) -> Option<Number> {
        match (self, other) {
            (Number::Decimal(_), _) | (_, Number::Decimal(_)) => {
                Some(Number::Decimal(decimal(self.to_decimal(), other.to_decimal())))
            }
            (Number::Double(_), _) | (_, Number::Double(_)) => {
                Some(Number::Double(double(self.to_double(), other.to_double())))
            }
            (Number::Int32(left), Number::Int32(right)) => whole(left.into(), right.into()).map(Number::narrowest),
            (left, right) => whole(left.truncated_i64(), right.truncated_i64()).map(Number::Int64),
        }
    }

    fn is_decimal(self) -> bool {
        matches!(self, Number::Decimal(_))
    }
}
