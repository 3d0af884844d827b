//! A BSON value that owns what it holds. A clone copies at most a few words: texts, documents and arrays are shared.

use crate::{Array, Decimal128, Doc, DocRef, ObjectId, Value, ValueType};
use bstr::BStr;
use bytes::Bytes;
use pando_base::Timestamp;

/// A BSON value, owned. Equality is that of types and contents; MongoDB's is `compare(..).is_eq()`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum OwnedValue {
    Double(f64),
    String(Bytes),
    Document(Doc),
    Array(Array),
    Binary { subtype: u8, bytes: Bytes },
    Undefined,
    ObjectId(ObjectId),
    Bool(bool),
    DateTime(i64),
    Null,
    Regex(Box<OwnedRegex>),
    DbPointer { namespace: Bytes, id: ObjectId },
    Code(Bytes),
    Symbol(Bytes),
    CodeWithScope(Box<OwnedCodeWithScope>),
    Int32(i32),
    Timestamp(Timestamp),
    Int64(i64),
    Decimal(Decimal128),
    MinKey,
    MaxKey,
}

/// A regular expression, owned.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct OwnedRegex {
    pub pattern: Bytes,
    pub options: Bytes,
}

/// JavaScript with the variables that it sees, owned.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct OwnedCodeWithScope {
    pub code: Bytes,
    pub scope: Doc,
}

impl OwnedValue {
    /// The value in place.
    pub fn view(&self) -> Value<'_> {
        match self {
            OwnedValue::Double(number) => Value::Double(*number),
            OwnedValue::String(text) => Value::String(BStr::new(text)),
            OwnedValue::Document(doc) => Value::Document(doc.view()),
            OwnedValue::Array(array) => Value::Array(array.view()),
            OwnedValue::Binary { subtype, bytes } => Value::Binary { subtype: *subtype, bytes },
            OwnedValue::Undefined => Value::Undefined,
            OwnedValue::ObjectId(id) => Value::ObjectId(*id),
            OwnedValue::Bool(truth) => Value::Bool(*truth),
            OwnedValue::DateTime(milliseconds) => Value::DateTime(*milliseconds),
            OwnedValue::Null => Value::Null,
            OwnedValue::Regex(regex) => {
                Value::Regex { pattern: BStr::new(&regex.pattern), options: BStr::new(&regex.options) }
            }
            OwnedValue::DbPointer { namespace, id } => Value::DbPointer { namespace: BStr::new(namespace), id: *id },
            OwnedValue::Code(code) => Value::Code(BStr::new(code)),
            OwnedValue::Symbol(symbol) => Value::Symbol(BStr::new(symbol)),
            OwnedValue::CodeWithScope(code) => {
                Value::CodeWithScope { code: BStr::new(&code.code), scope: code.scope.view() }
            }
            OwnedValue::Int32(number) => Value::Int32(*number),
            OwnedValue::Timestamp(timestamp) => Value::Timestamp(*timestamp),
            OwnedValue::Int64(number) => Value::Int64(*number),
            OwnedValue::Decimal(number) => Value::Decimal(*number),
            OwnedValue::MinKey => Value::MinKey,
            OwnedValue::MaxKey => Value::MaxKey,
        }
    }

    /// The value's type.
    pub fn value_type(&self) -> ValueType {
        self.view().value_type()
    }
}

impl Value<'_> {
    /// A copy that owns what it holds.
    pub fn to_owned(self) -> OwnedValue {
        self.owned_by(Bytes::copy_from_slice)
    }

    /// A value that shares the bytes of the document it was taken from, and so keeps all of them alive.
    pub fn to_shared(self, source: &Doc) -> OwnedValue {
        self.owned_by(|part| source.share(part))
    }

    fn owned_by(self, own: impl Fn(&[u8]) -> Bytes) -> OwnedValue {
        let own_doc = |doc: DocRef<'_>| Doc::trusted(own(doc.bytes()));
        match self {
            Value::Double(number) => OwnedValue::Double(number),
            Value::String(text) => OwnedValue::String(own(text)),
            Value::Document(doc) => OwnedValue::Document(own_doc(doc)),
            Value::Array(array) => OwnedValue::Array(Array::from_doc(own_doc(array.as_doc()))),
            Value::Binary { subtype, bytes } => OwnedValue::Binary { subtype, bytes: own(bytes) },
            Value::Undefined => OwnedValue::Undefined,
            Value::ObjectId(id) => OwnedValue::ObjectId(id),
            Value::Bool(truth) => OwnedValue::Bool(truth),
            Value::DateTime(milliseconds) => OwnedValue::DateTime(milliseconds),
            Value::Null => OwnedValue::Null,
            Value::Regex { pattern, options } => {
                OwnedValue::Regex(Box::new(OwnedRegex { pattern: own(pattern), options: own(options) }))
            }
            Value::DbPointer { namespace, id } => OwnedValue::DbPointer { namespace: own(namespace), id },
            Value::Code(code) => OwnedValue::Code(own(code)),
            Value::Symbol(symbol) => OwnedValue::Symbol(own(symbol)),
            Value::CodeWithScope { code, scope } => {
                OwnedValue::CodeWithScope(Box::new(OwnedCodeWithScope { code: own(code), scope: own_doc(scope) }))
            }
            Value::Int32(number) => OwnedValue::Int32(number),
            Value::Timestamp(timestamp) => OwnedValue::Timestamp(timestamp),
            Value::Int64(number) => OwnedValue::Int64(number),
            Value::Decimal(number) => OwnedValue::Decimal(number),
            Value::MinKey => OwnedValue::MinKey,
            Value::MaxKey => OwnedValue::MaxKey,
        }
    }
}
