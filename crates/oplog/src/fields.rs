//! Reading named fields of a document with the errors that MongoDB gives: 40414 for a missing field, 14 for a wrong type.
//!
//! A field is read by a function from a value to what is wanted, or the name of the type it should have had.

use bstr::BStr;
use pando_base::{Error, ErrorCode, Result, Timestamp, Uuid};
use pando_doc::{ArrayRef, DocRef, ObjectId, Value};

/// What errors call an entry.
pub(crate) const ENTRY: &str = "OplogEntryBase";

/// A document whose fields are read; the name is for errors.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a> {
    name: &'static str,
    document: DocRef<'a>,
}

/// What was found, or the type that was expected.
pub(crate) type Found<T> = std::result::Result<T, &'static str>;
/// How a value is read.
pub(crate) type Read<'a, T> = fn(Value<'a>) -> Found<T>;

impl<'a> Fields<'a> {
    pub(crate) fn of(name: &'static str, document: DocRef<'a>) -> Fields<'a> {
        Fields { name, document }
    }

    pub(crate) fn required<T>(&self, field: &str, read: Read<'a, T>) -> Result<T> {
        match self.document.get(field) {
            Some(value) => self.read(field, value, read),
            None => Err(missing(self.name, field)),
        }
    }

    pub(crate) fn optional<T>(&self, field: &str, read: Read<'a, T>) -> Result<Option<T>> {
        self.document.get(field).map(|value| self.read(field, value, read)).transpose()
    }

    /// Reads a value that was found before.
    pub(crate) fn read<T>(&self, field: &str, value: Value<'a>, read: Read<'a, T>) -> Result<T> {
        read_field(self.name, field.into(), value, read)
    }
}

/// Reads one value; the names of document and field are for the error.
pub(crate) fn read_field<'a, T>(name: &str, field: &BStr, value: Value<'a>, read: Read<'a, T>) -> Result<T> {
    read(value).map_err(|expected| {
        let found = value.value_type().name();
        let reason = format!("BSON field '{name}.{field}' is the wrong type '{found}', expected type '{expected}'");
        Error::new(ErrorCode::TypeMismatch, reason)
    })
}

pub(crate) fn missing(name: &str, field: &str) -> Error {
    Error::location(40414, format!("BSON field '{name}.{field}' is missing but a required field"))
}

pub(crate) fn text(value: Value<'_>) -> Found<&BStr> {
    match value {
        Value::String(text) => Ok(text),
        _ => Err("string"),
    }
}

pub(crate) fn document(value: Value<'_>) -> Found<DocRef<'_>> {
    match value {
        Value::Document(document) => Ok(document),
        _ => Err("object"),
    }
}

pub(crate) fn array(value: Value<'_>) -> Found<ArrayRef<'_>> {
    match value {
        Value::Array(array) => Ok(array),
        _ => Err("array"),
    }
}

pub(crate) fn boolean(value: Value<'_>) -> Found<bool> {
    match value {
        Value::Bool(boolean) => Ok(boolean),
        _ => Err("bool"),
    }
}

/// Numbers that older writers left as another type are as good.
pub(crate) fn long(value: Value<'_>) -> Found<i64> {
    match value {
        Value::Int64(number) => Ok(number),
        Value::Int32(number) => Ok(number.into()),
        Value::Double(number) if number.fract() == 0.0 && number.abs() < 9.0e15 => Ok(number as i64),
        _ => Err("long"),
    }
}

pub(crate) fn int(value: Value<'_>) -> Found<i32> {
    long(value).ok().and_then(|number| i32::try_from(number).ok()).ok_or("int")
}

pub(crate) fn timestamp(value: Value<'_>) -> Found<Timestamp> {
    match value {
        Value::Timestamp(timestamp) => Ok(timestamp),
        _ => Err("timestamp"),
    }
}

pub(crate) fn date(value: Value<'_>) -> Found<i64> {
    match value {
        Value::DateTime(milliseconds) => Ok(milliseconds),
        _ => Err("date"),
    }
}

pub(crate) fn object_id(value: Value<'_>) -> Found<ObjectId> {
    match value {
        Value::ObjectId(id) => Ok(id),
        _ => Err("objectId"),
    }
}

/// Binary subtype 4, sixteen bytes.
pub(crate) fn uuid(value: Value<'_>) -> Found<Uuid> {
    match value {
        Value::Binary { subtype: UUID_SUBTYPE, bytes } => Uuid::from_slice(bytes).map_err(|_| "UUID"),
        _ => Err("UUID"),
    }
}

const UUID_SUBTYPE: u8 = 4;

/// A UUID as a value of a document.
pub(crate) fn uuid_value(uuid: &Uuid) -> Value<'_> {
    Value::Binary { subtype: UUID_SUBTYPE, bytes: uuid.as_bytes() }
}
