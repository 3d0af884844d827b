//! Reading named fields of a document with MongoDB's errors: 40414 for a missing field, 14 for a wrong type, 40415 for an
//! unknown one.
//!
//! A field is read by a function from a value to what is wanted, or to the name of the type it should have had.

use pando_base::{Error, Result, Timestamp, Uuid};
use pando_doc::{ArrayRef, DocRef, Number, ObjectId, Value};

/// What was found, or the type that was expected.
pub type Found<T> = std::result::Result<T, &'static str>;

/// A document whose fields are read; the name is for errors.
#[derive(Clone, Copy)]
pub struct Fields<'a> {
    name: &'static str,
    document: DocRef<'a>,
}

impl<'a> Fields<'a> {
    /// The fields of a document that errors call by this name.
    pub fn of(name: &'static str, document: DocRef<'a>) -> Fields<'a> {
        Fields { name, document }
    }

    /// A field that must be there.
    pub fn required<T>(&self, field: &str, read: impl Fn(Value<'a>) -> Found<T>) -> Result<T> {
        self.optional(field, read)?.ok_or_else(|| self.missing(field))
    }

    /// A field is not there that must be.
    pub fn missing(&self, field: &str) -> Error {
        Error::location(40414, format!("BSON field '{}.{field}' is missing but a required field", self.name))
    }

    /// A field that may be there.
    pub fn optional<T>(&self, field: &str, read: impl Fn(Value<'a>) -> Found<T>) -> Result<Option<T>> {
        self.read(field, self.document.get(field), read)
    }

    /// A field whose value was found already.
    pub fn read<T>(
        &self,
        field: &str,
        value: Option<Value<'a>>,
        read: impl Fn(Value<'a>) -> Found<T>,
    ) -> Result<Option<T>> {
        let Some(value) = value else { return Ok(None) };
        read(value).map(Some).map_err(|expected| {
            let (name, found) = (self.name, value.value_type().name());
            Error::type_mismatch(format!(
                "BSON field '{name}.{field}' is the wrong type '{found}', expected type '{expected}'"
            ))
        })
    }

    /// Fails if there is a field that is none of these, or one of them twice.
    pub fn only<const COUNT: usize>(&self, known: &[&str; COUNT]) -> Result<()> {
        self.all(known).map(|_| ())
    }

    /// The values of these fields, in this order. Fails if there is a field that is none of these, or one of them twice.
    pub fn all<const COUNT: usize>(&self, known: &[&str; COUNT]) -> Result<[Option<Value<'a>>; COUNT]> {
        let mut values = [None; COUNT];
        for element in self.document.elements() {
            let (name, field) = (self.name, element.name);
            let mut places = known.iter().zip(&mut values);
            let Some((_, place)) = places.find(|(known, _)| field == **known) else {
                return Err(Error::location(40415, format!("BSON field '{name}.{field}' is an unknown field.")));
            };
            if place.replace(element.value).is_some() {
                return Err(Error::location(40413, format!("BSON field '{name}.{field}' is a duplicate field")));
            }
        }
        Ok(values)
    }
}

/// Any number that is whole and fits.
pub fn whole_number(value: Value<'_>) -> Found<i64> {
    let expected = "long";
    match value.as_number().ok_or(expected)? {
        Number::Int32(number) => Ok(i64::from(number)),
        Number::Int64(number) => Ok(number),
        Number::Double(number) => {
            // The bounds are exact in a double; beyond them the cast would saturate.
            let fits = number >= i64::MIN as f64 && number < i64::MAX as f64;
            if fits && number.fract() == 0.0 { Ok(number as i64) } else { Err(expected) }
        }
        Number::Decimal(_) => Err(expected),
    }
}

/// A 64-bit number and nothing else.
pub fn long(value: Value<'_>) -> Found<i64> {
    match value {
        Value::Int64(number) => Ok(number),
        _ => Err("long"),
    }
}

/// A 32-bit number and nothing else.
pub fn int(value: Value<'_>) -> Found<i32> {
    match value {
        Value::Int32(number) => Ok(number),
        _ => Err("int"),
    }
}

/// True or false.
pub fn boolean(value: Value<'_>) -> Found<bool> {
    value.as_bool().ok_or("bool")
}

/// True or false, or a number that stands for it.
pub fn safe_boolean(value: Value<'_>) -> Found<bool> {
    match value {
        Value::Bool(flag) => Ok(flag),
        _ if value.is_number() => Ok(value.is_true()),
        Value::Null | Value::Undefined => Ok(false),
        _ => Err("bool"),
    }
}

/// A document.
pub fn document(value: Value<'_>) -> Found<DocRef<'_>> {
    value.as_document().ok_or("object")
}

/// An array.
pub fn array(value: Value<'_>) -> Found<ArrayRef<'_>> {
    value.as_array().ok_or("array")
}

/// Text in UTF-8.
pub fn text(value: Value<'_>) -> Found<&str> {
    value.as_str().ok_or("string")
}

/// A timestamp.
pub fn timestamp(value: Value<'_>) -> Found<Timestamp> {
    value.as_timestamp().ok_or("timestamp")
}

/// A date, in milliseconds since 1970.
pub fn date(value: Value<'_>) -> Found<i64> {
    value.as_date().ok_or("date")
}

/// An object id.
pub fn object_id(value: Value<'_>) -> Found<ObjectId> {
    value.as_object_id().ok_or("objectId")
}

/// Binary data of the subtype for UUIDs.
pub fn uuid(value: Value<'_>) -> Found<Uuid> {
    match value {
        Value::Binary { subtype: UUID_SUBTYPE, bytes } => Uuid::from_slice(bytes).map_err(|_| "UUID"),
        _ => Err("UUID"),
    }
}

const UUID_SUBTYPE: u8 = 4;

/// A UUID as a value of a document.
pub fn uuid_value(uuid: &Uuid) -> Value<'_> {
    Value::Binary { subtype: UUID_SUBTYPE, bytes: uuid.as_bytes() }
}
