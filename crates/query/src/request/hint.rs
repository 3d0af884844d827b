//! The index that a client wants used.

use pando_base::{Error, Result};
use pando_doc::{Doc, DocRef, Value};
use pando_storage::Direction;

/// What a client wants used.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Hint {
    /// Nothing in particular.
    #[default]
    None,
    /// The index of this name.
    Name(String),
    /// The index with this key pattern.
    KeyPattern(Doc),
    /// No index: the collection in the order of its records.
    Natural(Direction),
}

impl Hint {
    /// Reads the `hint` of a command.
    pub fn parse(value: Value<'_>) -> Result<Hint> {
        match value {
            Value::String(name) => Ok(Hint::Name(name.to_string())),
            Value::Document(doc) if doc.is_empty() => Ok(Hint::None),
            Value::Document(doc) => Hint::of_document(doc),
            _ => Err(Error::failed_to_parse("Hint must be a string or an object")),
        }
    }

    fn of_document(doc: DocRef<'_>) -> Result<Hint> {
        if let Some(hint) = doc.get("$hint") {
            return Hint::parse(hint);
        }
        let Some(natural) = doc.get("$natural") else { return Ok(Hint::KeyPattern(doc.to_doc())) };
        if doc.field_count() > 1 {
            return Err(Error::bad_value(format!("$natural cannot be used with other hints: {doc}")));
        }
        natural_direction(natural).map(Hint::Natural)
    }

    /// True without a wish.
    pub fn is_none(&self) -> bool {
        *self == Hint::None
    }

    /// The direction of a wish for no index.
    pub fn natural(&self) -> Option<Direction> {
        match self {
            Hint::Natural(direction) => Some(*direction),
            _ => None,
        }
    }

    /// As `explain` and the profiler show it.
    pub fn to_doc(&self) -> Doc {
        match self {
            Hint::None => Doc::new(),
            Hint::Name(name) => pando_doc::doc! { "$hint": name },
            Hint::KeyPattern(pattern) => pattern.clone(),
            Hint::Natural(direction) => pando_doc::doc! { "$natural": direction_number(*direction) },
        }
    }
}

/// 1 or -1.
pub(crate) fn direction_number(direction: Direction) -> i32 {
    match direction {
        Direction::Forward => 1,
        Direction::Reverse => -1,
    }
}

/// The direction of a `$natural`.
pub(crate) fn natural_direction(value: Value<'_>) -> Result<Direction> {
    match value.to_i64_exact() {
        Some(1) => Ok(Direction::Forward),
        Some(-1) => Ok(Direction::Reverse),
        _ => Err(Error::bad_value("$natural sort cannot be set to a value other than -1 or 1.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::doc;

    #[test]
    fn hints_are_names_patterns_and_natural() {
        let parse = |doc: Doc| Hint::parse(Value::Document(doc.view()));
        assert_eq!(parse(doc! {}).unwrap(), Hint::None);
        assert_eq!(parse(doc! { "a": 1 }).unwrap(), Hint::KeyPattern(doc! { "a": 1 }));
        assert_eq!(parse(doc! { "$natural": -1.0 }).unwrap(), Hint::Natural(Direction::Reverse));
        assert_eq!(parse(doc! { "$hint": "a_1" }).unwrap(), Hint::Name("a_1".into()));
        assert_eq!(parse(doc! { "$natural": 2 }).unwrap_err().code().number(), 2);
        assert_eq!(parse(doc! { "$natural": 1, "a": 1 }).unwrap_err().code().number(), 2);
        assert_eq!(Hint::parse(Value::Int32(1)).unwrap_err().code().number(), 9);
    }
}
