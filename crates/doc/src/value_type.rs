//! The types a BSON value can have: their codes on the wire, their names, their place in the canonical order.
//!
//! The codes are those of the BSON specification. The names are MongoDB's, as `$type` and error messages use them.

use std::fmt;

/// The type of a BSON value; the number is its code on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
#[allow(missing_docs)]
pub enum ValueType {
    Double = 0x01,
    String = 0x02,
    Document = 0x03,
    Array = 0x04,
    Binary = 0x05,
    Undefined = 0x06,
    ObjectId = 0x07,
    Bool = 0x08,
    DateTime = 0x09,
    Null = 0x0A,
    Regex = 0x0B,
    DbPointer = 0x0C,
    Code = 0x0D,
    Symbol = 0x0E,
    CodeWithScope = 0x0F,
    Int32 = 0x10,
    Timestamp = 0x11,
    Int64 = 0x12,
    Decimal = 0x13,
    MinKey = 0xFF,
    MaxKey = 0x7F,
}

impl ValueType {
    /// Every type, by code, the two keys last.
    pub const ALL: [ValueType; 21] = [
        ValueType::Double,
        ValueType::String,
        ValueType::Document,
        ValueType::Array,
        ValueType::Binary,
        ValueType::Undefined,
        ValueType::ObjectId,
        ValueType::Bool,
        ValueType::DateTime,
        ValueType::Null,
        ValueType::Regex,
        ValueType::DbPointer,
        ValueType::Code,
        ValueType::Symbol,
        ValueType::CodeWithScope,
        ValueType::Int32,
        ValueType::Timestamp,
        ValueType::Int64,
        ValueType::Decimal,
        ValueType::MinKey,
        ValueType::MaxKey,
    ];

    /// The type with this code on the wire.
    #[inline]
    pub const fn from_code(code: u8) -> Option<ValueType> {
        Some(match code {
            0x01 => ValueType::Double,
            0x02 => ValueType::String,
            0x03 => ValueType::Document,
            0x04 => ValueType::Array,
            0x05 => ValueType::Binary,
            0x06 => ValueType::Undefined,
            0x07 => ValueType::ObjectId,
            0x08 => ValueType::Bool,
            0x09 => ValueType::DateTime,
            0x0A => ValueType::Null,
            0x0B => ValueType::Regex,
            0x0C => ValueType::DbPointer,
            0x0D => ValueType::Code,
            0x0E => ValueType::Symbol,
            0x0F => ValueType::CodeWithScope,
            0x10 => ValueType::Int32,
            0x11 => ValueType::Timestamp,
            0x12 => ValueType::Int64,
            0x13 => ValueType::Decimal,
            0xFF => ValueType::MinKey,
            0x7F => ValueType::MaxKey,
            _ => return None,
        })
    }

    /// The code on the wire.
    #[inline]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// The number by which users name the type: the code, signed, so that MinKey is -1.
    pub const fn number(self) -> i32 {
        self as u8 as i8 as i32
    }

    /// The type with this number, as `$type` takes it.
    pub fn from_number(number: i32) -> Option<ValueType> {
        i8::try_from(number).ok().and_then(|number| ValueType::from_code(number as u8))
    }

    /// MongoDB's name of the type.
    pub const fn name(self) -> &'static str {
        match self {
            ValueType::Double => "double",
            ValueType::String => "string",
            ValueType::Document => "object",
            ValueType::Array => "array",
            ValueType::Binary => "binData",
            ValueType::Undefined => "undefined",
            ValueType::ObjectId => "objectId",
            ValueType::Bool => "bool",
            ValueType::DateTime => "date",
            ValueType::Null => "null",
            ValueType::Regex => "regex",
            ValueType::DbPointer => "dbPointer",
            ValueType::Code => "javascript",
            ValueType::Symbol => "symbol",
            ValueType::CodeWithScope => "javascriptWithScope",
            ValueType::Int32 => "int",
            ValueType::Timestamp => "timestamp",
            ValueType::Int64 => "long",
            ValueType::Decimal => "decimal",
            ValueType::MinKey => "minKey",
            ValueType::MaxKey => "maxKey",
        }
    }

    /// The type with this name.
    pub fn from_name(name: &str) -> Option<ValueType> {
        ValueType::ALL.into_iter().find(|value_type| value_type.name() == name)
    }

    /// True for the four kinds of number.
    #[inline]
    pub const fn is_number(self) -> bool {
        matches!(self, ValueType::Double | ValueType::Int32 | ValueType::Int64 | ValueType::Decimal)
    }

    /// The place of the type in the canonical order. Types with the same place are compared by value: all numbers,
    /// strings and symbols. A missing value has the place of undefined, which is before null.
    #[inline]
    pub const fn canonical_order(self) -> i8 {
        match self {
            ValueType::MinKey => -1,
            ValueType::Undefined => 0,
            ValueType::Null => 5,
            ValueType::Double | ValueType::Int32 | ValueType::Int64 | ValueType::Decimal => 10,
            ValueType::String | ValueType::Symbol => 15,
            ValueType::Document => 20,
            ValueType::Array => 25,
            ValueType::Binary => 30,
            ValueType::ObjectId => 35,
            ValueType::Bool => 40,
            ValueType::DateTime => 45,
            ValueType::Timestamp => 47,
            ValueType::Regex => 50,
            ValueType::DbPointer => 55,
            ValueType::Code => 60,
            ValueType::CodeWithScope => 65,
            ValueType::MaxKey => 127,
        }
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_names_and_numbers_lead_back_to_the_type() {
        for value_type in ValueType::ALL {
            assert_eq!(ValueType::from_code(value_type.code()), Some(value_type));
            assert_eq!(ValueType::from_name(value_type.name()), Some(value_type));
            assert_eq!(ValueType::from_number(value_type.number()), Some(value_type));
        }
        assert_eq!(ValueType::MinKey.number(), -1);
        assert_eq!(
            (ValueType::from_code(0), ValueType::from_number(255), ValueType::from_code(0x14)),
            (None, None, None)
        );
    }
}
