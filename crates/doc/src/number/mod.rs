//! Numbers of the four kinds, their arithmetic and their conversions.
//!
//! A result has the widest kind of its operands: int32, int64, double, decimal. An int32 that overflows becomes an
//! int64. What becomes of an int64 that overflows depends on who asks: expressions go on with a double, updates
//! (`checked_add`, `checked_multiply`) refuse.

mod arithmetic;
mod convert;

#[cfg(test)]
mod tests;

use crate::{Decimal128, OwnedValue, ToValue, Value};

/// A number of one of BSON's four kinds. Equality is that of kind and contents.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Number {
    Int32(i32),
    Int64(i64),
    Double(f64),
    Decimal(Decimal128),
}

impl Value<'_> {
    /// The number, if it is one.
    #[inline]
    pub const fn as_number(&self) -> Option<Number> {
        match *self {
            Value::Int32(number) => Some(Number::Int32(number)),
            Value::Int64(number) => Some(Number::Int64(number)),
            Value::Double(number) => Some(Number::Double(number)),
            Value::Decimal(number) => Some(Number::Decimal(number)),
            _ => None,
        }
    }
}

impl From<Number> for Value<'_> {
    fn from(number: Number) -> Self {
        match number {
            Number::Int32(number) => Value::Int32(number),
            Number::Int64(number) => Value::Int64(number),
            Number::Double(number) => Value::Double(number),
            Number::Decimal(number) => Value::Decimal(number),
        }
    }
}

impl From<Number> for OwnedValue {
    fn from(number: Number) -> OwnedValue {
        Value::from(number).to_owned()
    }
}

impl ToValue for Number {
    fn to_value(&self) -> Value<'_> {
        Value::from(*self)
    }
}
