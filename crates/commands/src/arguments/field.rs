//! One field: where it stands, whether it was seen, and what is wrong with it.

use bstr::BStr;
use pando_base::{Error, ErrorCode, Result};
use pando_doc::{RawElement, Value, ValueType};
use pando_wire::Documents;
use std::fmt;

/// Where a field stands, for messages: "find.collation.locale".
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    parent: Option<&'a Place<'a>>,
    name: &'a BStr,
}

impl<'a> Place<'a> {
    /// A command's own place.
    pub fn of_command(name: &'a str) -> Place<'a> {
        Place { parent: None, name: BStr::new(name) }
    }

    /// A field here.
    pub fn field(&'a self, name: &'a BStr) -> Place<'a> {
        Place { parent: Some(self), name }
    }

    /// The last name of it.
    pub fn name(&self) -> &BStr {
        self.name
    }

    /// A field here that nobody knows.
    #[cold]
    pub fn unknown(&self, field: &BStr) -> Error {
        Error::new(ErrorCode::IDLUnknownField, format!("BSON field '{}' is an unknown field.", self.field(field)))
    }

    /// A field here that is not there but must be.
    #[cold]
    pub fn missing(&self, field: &str) -> Error {
        let reason = format!("BSON field '{}' is missing but a required field", self.field(BStr::new(field)));
        Error::new(ErrorCode::location(40414), reason)
    }

    /// A field here that is there twice.
    #[cold]
    pub fn duplicate(&self, field: &BStr) -> Error {
        let reason = format!("BSON field '{}' is a duplicate field", self.field(field));
        Error::new(ErrorCode::location(40413), reason)
    }

    /// This field is of a wrong type.
    #[cold]
    pub fn wrong_type(&self, found: ValueType, expected: &[ValueType]) -> Error {
        let start = format!("BSON field '{self}' is the wrong type '{}'", found.name());
        Error::type_mismatch(match expected {
            [only] => format!("{start}, expected type '{}'", only.name()),
            several => {
                let names: Vec<&str> = several.iter().map(|expected| expected.name()).collect();
                // The quote stands inside the bracket in MongoDB, too.
                format!("{start}, expected types '[{}']", names.join(", "))
            }
        })
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            write!(f, "{parent}.")?;
        }
        write!(f, "{}", self.name)
    }
}

/// What a field can be.
pub trait Argument<'a>: Sized {
    /// The types that it takes, in the order in which messages name them.
    const TYPES: &'static [ValueType];

    /// Reads a value of one of these types. The place is the field's own.
    fn read(place: &Place<'_>, value: Value<'a>) -> Result<Self>;

    /// Reads a document sequence, if it can be one.
    fn read_sequence(_documents: Documents<'a>) -> Option<Self> {
        None
    }

    /// What it is if the field is not there; none if it must be.
    fn absent() -> Option<Self> {
        None
    }
}

impl<'a, T: Argument<'a>> Argument<'a> for Option<T> {
    const TYPES: &'static [ValueType] = T::TYPES;

    fn read(place: &Place<'_>, value: Value<'a>) -> Result<Option<T>> {
        T::read(place, value).map(Some)
    }

    fn read_sequence(documents: Documents<'a>) -> Option<Option<T>> {
        T::read_sequence(documents).map(Some)
    }

    fn absent() -> Option<Option<T>> {
        Some(None)
    }
}

/// A declared field while a request is parsed.
#[derive(Debug)]
pub struct Slot<T> {
    name: &'static str,
    is_seen: bool,
    value: Option<T>,
}

impl<T> Slot<T> {
    /// A field that was not seen yet.
    pub fn new(name: &'static str) -> Slot<T> {
        Slot { name, is_seen: false, value: None }
    }

    /// Takes the field's element.
    pub fn take<'a>(&mut self, place: &Place<'_>, element: RawElement<'a>) -> Result<()>
    where
        T: Argument<'a>,
    {
        let here = place.field(element.name);
        if !T::TYPES.contains(&element.value_type) {
            return match element.value_type {
                // As if it was not there: it may stand once more.
                ValueType::Null | ValueType::Undefined => Ok(()),
                other => Err(here.wrong_type(other, T::TYPES)),
            };
        }
        if std::mem::replace(&mut self.is_seen, true) {
            return Err(place.duplicate(element.name));
        }
        if let Some(value) = element.value() {
            self.value = Some(T::read(&here, value)?);
        }
        Ok(())
    }

    /// Takes the field as a document sequence.
    pub fn take_sequence<'a>(&mut self, place: &Place<'_>, documents: Documents<'a>) -> Result<()>
    where
        T: Argument<'a>,
    {
        self.is_seen = true;
        self.value = T::read_sequence(documents);
        if self.value.is_some() { Ok(()) } else { Err(place.unknown(BStr::new(self.name))) }
    }

    /// The value in the end; an error if it must be there and is not.
    pub fn finish<'a>(self, place: &Place<'_>) -> Result<T>
    where
        T: Argument<'a>,
    {
        self.value.or_else(T::absent).ok_or_else(|| place.missing(self.name))
    }

    /// The value in the end, or a default.
    pub fn finish_or(self, _: &Place<'_>, default: impl FnOnce() -> T) -> Result<T> {
        Ok(self.value.unwrap_or_else(default))
    }
}

/// Refuses a number that is too small.
pub fn at_least(path: &str, value: i64, minimum: i64) -> Result<i64> {
    if value >= minimum {
        return Ok(value);
    }
    let reason = format!("BSON field '{path}' value must be >= {minimum}, actual value '{value}'");
    Err(Error::location(51024, reason))
}
