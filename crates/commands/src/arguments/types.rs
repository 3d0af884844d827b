//! The types that fields can have.

use super::field::{Argument, Place};
use bstr::BStr;
use pando_base::{Error, ErrorCode, Result, Timestamp, Uuid, ensure};
use pando_doc::{ArrayRef, DocRef, Element, Number, ObjectId, Value, ValueType};
use pando_wire::Documents;

const NUMBERS: &[ValueType] = &[ValueType::Int64, ValueType::Int32, ValueType::Decimal, ValueType::Double];

/// A whole number given as a number of any kind; fractions are cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SafeLong(pub i64);

/// The same in 32 bits; larger ones become the nearest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SafeInt(pub i32);

/// A number of any kind, as a double.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SafeDouble(pub f64);

/// A boolean, or a number that is not zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SafeBool(pub bool);

/// A boolean and nothing else: not even null stands for the absence of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainBool(pub bool);

/// A document and nothing else: not even null stands for the absence of one.
#[derive(Clone, Copy, Debug)]
pub struct PlainDoc<'a>(pub DocRef<'a>);

/// Any value at all: whether it is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truth(pub bool);

/// A number for `limit` of count: whole, and without its sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountLimit(pub i64);

impl<'a> Argument<'a> for Truth {
    const TYPES: &'static [ValueType] = &ValueType::ALL;

    fn read(_: &Place<'_>, value: Value<'a>) -> Result<Truth> {
        Ok(Truth(value.is_true()))
    }
}

impl<'a> Argument<'a> for CountLimit {
    const TYPES: &'static [ValueType] = &ValueType::ALL;

    fn read(_: &Place<'_>, value: Value<'a>) -> Result<CountLimit> {
        ensure!(value.is_number(), ErrorCode::BadValue, "limit value is not a valid number");
        let limit = Element { name: BStr::new("limit"), value }.parse_i64()?;
        let magnitude = limit.checked_abs();
        magnitude.map(CountLimit).ok_or_else(|| Error::bad_value("limit value for count cannot be min long"))
    }
}

impl<'a> Argument<'a> for SafeLong {
    const TYPES: &'static [ValueType] = NUMBERS;

    fn read(_: &Place<'_>, value: Value<'a>) -> Result<SafeLong> {
        Ok(SafeLong(value.as_number().map_or(0, Number::truncated_i64)))
    }
}

impl<'a> Argument<'a> for SafeDouble {
    const TYPES: &'static [ValueType] = NUMBERS;

    fn read(_: &Place<'_>, value: Value<'a>) -> Result<SafeDouble> {
        Ok(SafeDouble(value.to_double().unwrap_or(0.0)))
    }
}

impl<'a> Argument<'a> for SafeInt {
    const TYPES: &'static [ValueType] = NUMBERS;

    fn read(_: &Place<'_>, value: Value<'a>) -> Result<SafeInt> {
        let long = value.as_number().map_or(0, Number::truncated_i64);
        Ok(SafeInt(long.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32))
    }
}

impl<'a> Argument<'a> for SafeBool {
    const TYPES: &'static [ValueType] =
        &[ValueType::Bool, ValueType::Int64, ValueType::Int32, ValueType::Decimal, ValueType::Double];

    fn read(_: &Place<'_>, value: Value<'a>) -> Result<SafeBool> {
        Ok(SafeBool(value.is_true()))
    }
}

impl<'a> Argument<'a> for PlainBool {
    const TYPES: &'static [ValueType] = &ValueType::ALL;

    fn read(place: &Place<'_>, value: Value<'a>) -> Result<PlainBool> {
        let Value::Bool(truth) = value else {
            let (name, found) = (place.name(), value.value_type().name());
            let reason = format!("Field '{name}' should be a boolean value, but found: {found}");
            return Err(Error::type_mismatch(reason));
        };
        Ok(PlainBool(truth))
    }
}

impl<'a> Argument<'a> for PlainDoc<'a> {
    const TYPES: &'static [ValueType] = &ValueType::ALL;

    fn read(place: &Place<'_>, value: Value<'a>) -> Result<PlainDoc<'a>> {
        value
            .as_document()
            .map(PlainDoc)
            .ok_or_else(|| Error::type_mismatch(format!("Expected field {}to be of type object", place.name())))
    }
}

/// Types that are exactly one of BSON's.
macro_rules! exact {
    ($($type:ty: $value_type:ident => $pattern:pat => $made:expr;)*) => {
        $(impl<'a> Argument<'a> for $type {
            const TYPES: &'static [ValueType] = &[ValueType::$value_type];

            fn read(place: &Place<'_>, value: Value<'a>) -> Result<$type> {
                match value {
                    $pattern => Ok($made),
                    other => Err(place.wrong_type(other.value_type(), Self::TYPES)),
                }
            }
        })*
    };
}

exact! {
    bool: Bool => Value::Bool(truth) => truth;
    i32: Int32 => Value::Int32(number) => number;
    i64: Int64 => Value::Int64(number) => number;
    f64: Double => Value::Double(number) => number;
    &'a BStr: String => Value::String(text) => text;
    DocRef<'a>: Document => Value::Document(document) => document;
    ArrayRef<'a>: Array => Value::Array(array) => array;
    ObjectId: ObjectId => Value::ObjectId(id) => id;
    Timestamp: Timestamp => Value::Timestamp(timestamp) => timestamp;
}

impl<'a> Argument<'a> for &'a str {
    const TYPES: &'static [ValueType] = &[ValueType::String];

    fn read(place: &Place<'_>, value: Value<'a>) -> Result<&'a str> {
        value.as_str().ok_or_else(|| Error::bad_value(format!("BSON field '{place}' is not valid UTF-8")))
    }
}

/// Anything at all, null included.
impl<'a> Argument<'a> for Value<'a> {
    const TYPES: &'static [ValueType] = &ValueType::ALL;

    fn read(_: &Place<'_>, value: Value<'a>) -> Result<Value<'a>> {
        Ok(value)
    }
}

impl<'a> Argument<'a> for Uuid {
    const TYPES: &'static [ValueType] = &[ValueType::Binary];

    fn read(place: &Place<'_>, value: Value<'a>) -> Result<Uuid> {
        let Value::Binary { subtype, bytes } = value else {
            return Err(place.wrong_type(value.value_type(), Self::TYPES));
        };
        if subtype != 4 {
            let reason = format!(
                "BSON field '{place}' is the wrong binData type '{}', expected type 'UUID'",
                binary_type_name(subtype)
            );
            return Err(Error::type_mismatch(reason));
        }
        let bytes: Option<[u8; 16]> = bytes.try_into().ok();
        let wrong_length =
            || Error::new(ErrorCode::InvalidUUID, "uuid must be a 16-byte binary field with UUID (4) subtype");
        bytes.map(Uuid::from_bytes).ok_or_else(wrong_length)
    }
}

fn binary_type_name(subtype: u8) -> &'static str {
    match subtype {
        0 => "general",
        1 => "function",
        2 => "binary(deprecated)",
        3 => "UUID(deprecated)",
        4 => "UUID",
        5 => "MD5",
        6 => "encrypt",
        7 => "column",
        8 => "sensitive",
        128 => "Custom",
        _ => "invalid",
    }
}

/// An array of strings.
impl<'a> Argument<'a> for Vec<&'a str> {
    const TYPES: &'static [ValueType] = &[ValueType::Array];

    fn read(place: &Place<'_>, value: Value<'a>) -> Result<Vec<&'a str>> {
        each(place, value)
    }
}

/// An array of documents.
impl<'a> Argument<'a> for Vec<DocRef<'a>> {
    const TYPES: &'static [ValueType] = &[ValueType::Array];

    fn read(place: &Place<'_>, value: Value<'a>) -> Result<Vec<DocRef<'a>>> {
        each(place, value)
    }

    fn read_sequence(documents: Documents<'a>) -> Option<Vec<DocRef<'a>>> {
        Some(documents.iter().collect())
    }
}

/// An array of documents or a document sequence, in place.
impl<'a> Argument<'a> for Documents<'a> {
    const TYPES: &'static [ValueType] = &[ValueType::Array];

    fn read(place: &Place<'_>, value: Value<'a>) -> Result<Documents<'a>> {
        Documents::in_array(value, || place.to_string())
    }

    fn read_sequence(documents: Documents<'a>) -> Option<Documents<'a>> {
        Some(documents)
    }
}

fn each<'a, T: Argument<'a>>(place: &Place<'_>, value: Value<'a>) -> Result<Vec<T>> {
    let elements = value.as_array().unwrap_or(ArrayRef::EMPTY).as_doc().elements();
    let is_there = |element: &pando_doc::Element<'a>| {
        // What is null is passed over, as a field is that is null.
        !element.value.is_nullish() || T::TYPES.contains(&element.value.value_type())
    };
    let read = |element: pando_doc::Element<'a>| {
        let here = place.field(element.name);
        if T::TYPES.contains(&element.value.value_type()) {
            T::read(&here, element.value)
        } else {
            Err(here.wrong_type(element.value.value_type(), T::TYPES))
        }
    };
    elements.filter(is_there).map(read).collect()
}
