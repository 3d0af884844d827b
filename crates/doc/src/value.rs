//! One BSON value, seen in place: a small copyable enum that borrows from the document's bytes.
//!
//! Byte strings are `BStr`, not `str`: BSON that claims to be UTF-8 often is not, and a database has to give back what
//! it was given. Nothing here is checked at access; what can be decoded was validated before (see `validate`).

use crate::{ArrayRef, Decimal128, DocRef, ObjectId, ValueType};
use bstr::BStr;
use pando_base::Timestamp;

/// A BSON value, borrowed. Equality is that of types and contents: an int32 never equals an int64 here; MongoDB's
/// equality is `compare(..).is_eq()`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Value<'a> {
    Double(f64),
    String(&'a BStr),
    Document(DocRef<'a>),
    Array(ArrayRef<'a>),
    Binary {
        subtype: u8,
        bytes: &'a [u8],
    },
    /// Deprecated, but it has to survive.
    Undefined,
    ObjectId(ObjectId),
    Bool(bool),
    /// Milliseconds since 1970, signed.
    DateTime(i64),
    Null,
    Regex {
        pattern: &'a BStr,
        options: &'a BStr,
    },
    /// Deprecated, but it has to survive.
    DbPointer {
        namespace: &'a BStr,
        id: ObjectId,
    },
    Code(&'a BStr),
    /// Deprecated, but it has to survive.
    Symbol(&'a BStr),
    /// Deprecated, but it has to survive.
    CodeWithScope {
        code: &'a BStr,
        scope: DocRef<'a>,
    },
    Int32(i32),
    Timestamp(Timestamp),
    Int64(i64),
    Decimal(Decimal128),
    MinKey,
    MaxKey,
}

impl<'a> Value<'a> {
    /// The value's type.
    #[inline]
    pub const fn value_type(&self) -> ValueType {
        match self {
            Value::Double(_) => ValueType::Double,
            Value::String(_) => ValueType::String,
            Value::Document(_) => ValueType::Document,
            Value::Array(_) => ValueType::Array,
            Value::Binary { .. } => ValueType::Binary,
            Value::Undefined => ValueType::Undefined,
            Value::ObjectId(_) => ValueType::ObjectId,
            Value::Bool(_) => ValueType::Bool,
            Value::DateTime(_) => ValueType::DateTime,
            Value::Null => ValueType::Null,
            Value::Regex { .. } => ValueType::Regex,
            Value::DbPointer { .. } => ValueType::DbPointer,
            Value::Code(_) => ValueType::Code,
            Value::Symbol(_) => ValueType::Symbol,
            Value::CodeWithScope { .. } => ValueType::CodeWithScope,
            Value::Int32(_) => ValueType::Int32,
            Value::Timestamp(_) => ValueType::Timestamp,
            Value::Int64(_) => ValueType::Int64,
            Value::Decimal(_) => ValueType::Decimal,
            Value::MinKey => ValueType::MinKey,
            Value::MaxKey => ValueType::MaxKey,
        }
    }

    /// True for the four kinds of number.
    #[inline]
    pub const fn is_number(&self) -> bool {
        self.value_type().is_number()
    }

    /// True for null and undefined.
    pub const fn is_nullish(&self) -> bool {
        matches!(self, Value::Null | Value::Undefined)
    }

    /// The document, if it is one.
    pub const fn as_document(&self) -> Option<DocRef<'a>> {
        match self {
            Value::Document(doc) => Some(*doc),
            _ => None,
        }
    }

    /// The array, if it is one.
    pub const fn as_array(&self) -> Option<ArrayRef<'a>> {
        match self {
            Value::Array(array) => Some(*array),
            _ => None,
        }
    }

    /// The document or the array as a document, if it is one of the two.
    pub const fn as_nested(&self) -> Option<DocRef<'a>> {
        match self {
            Value::Document(doc) => Some(*doc),
            Value::Array(array) => Some(array.as_doc()),
            _ => None,
        }
    }

    /// The string's bytes, if it is a string.
    pub const fn as_bytes(&self) -> Option<&'a BStr> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The string, if it is one and valid UTF-8.
    pub fn as_str(&self) -> Option<&'a str> {
        self.as_bytes().and_then(|text| std::str::from_utf8(text).ok())
    }

    /// The boolean, if it is one.
    pub const fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(truth) => Some(*truth),
            _ => None,
        }
    }

    /// The object id, if it is one.
    pub const fn as_object_id(&self) -> Option<ObjectId> {
        match self {
            Value::ObjectId(id) => Some(*id),
            _ => None,
        }
    }

    /// The timestamp, if it is one.
    pub const fn as_timestamp(&self) -> Option<Timestamp> {
        match self {
            Value::Timestamp(timestamp) => Some(*timestamp),
            _ => None,
        }
    }

    /// The milliseconds since 1970, if it is a date.
    pub const fn as_date(&self) -> Option<i64> {
        match self {
            Value::DateTime(milliseconds) => Some(*milliseconds),
            _ => None,
        }
    }

    /// What MongoDB takes for true: everything but false, null, undefined and zero. NaN is true.
    pub fn is_true(&self) -> bool {
        match self {
            Value::Null | Value::Undefined => false,
            Value::Bool(truth) => *truth,
            Value::Int32(number) => *number != 0,
            Value::Int64(number) => *number != 0,
            Value::Double(number) => *number != 0.0,
            Value::Decimal(number) => !number.is_zero(),
            _ => true,
        }
    }
}
