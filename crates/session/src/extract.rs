//! Reading single fields of older commands, which are not parsed strictly: fields that nobody knows pass, and the words of
//! refusals differ from those of [`crate::fields`].

use pando_base::{Error, ErrorCode, Result, Timestamp};
use pando_doc::{DocRef, Value, ValueType};

fn wrong_type(field: &str, expected: ValueType, found: Value<'_>) -> Error {
    Error::type_mismatch(format!(
        "\"{field}\" had the wrong type. Expected {}, found {}",
        expected.name(),
        found.value_type().name()
    ))
}

/// The error of a field that has to be there.
pub fn missing(field: &str) -> Error {
    Error::new(ErrorCode::NoSuchKey, format!("Missing expected field \"{field}\""))
}

/// A whole number.
pub fn number(document: DocRef<'_>, field: &str) -> Result<Option<i64>> {
    let Some(value) = document.get(field) else { return Ok(None) };
    let Some(number) = value.as_number() else {
        let found = value.value_type().name();
        let reason = format!("Expected field \"{field}\" to have numeric type, but found {found}");
        return Err(Error::type_mismatch(reason));
    };
    number.to_i64_exact().map(Some).ok_or_else(|| {
        Error::bad_value(format!(
            "Expected field \"{field}\" to have a value exactly representable as a 64-bit integer, but found {field}: \
             {value}"
        ))
    })
}

/// True or false; numbers stand for them too.
pub fn safe_boolean(document: DocRef<'_>, field: &str) -> Result<Option<bool>> {
    match document.get(field) {
        None => Ok(None),
        Some(Value::Bool(truth)) => Ok(Some(truth)),
        Some(value) if value.is_number() => Ok(Some(value.is_true())),
        Some(value) => {
            let found = value.value_type().name();
            let reason = format!("Expected boolean or number type for field \"{field}\", found {found}");
            Err(Error::type_mismatch(reason))
        }
    }
}

/// True or false and nothing else.
pub fn boolean(document: DocRef<'_>, field: &str) -> Result<Option<bool>> {
    let read = |value: Value<'_>| value.as_bool().ok_or_else(|| wrong_type(field, ValueType::Bool, value));
    document.get(field).map(read).transpose()
}

/// Text.
pub fn text<'a>(document: DocRef<'a>, field: &str) -> Result<Option<&'a str>> {
    let read = |value: Value<'a>| value.as_str().ok_or_else(|| wrong_type(field, ValueType::String, value));
    document.get(field).map(read).transpose()
}

/// A timestamp.
pub fn timestamp(document: DocRef<'_>, field: &str) -> Result<Option<Timestamp>> {
    let read = |value: Value<'_>| value.as_timestamp().ok_or_else(|| wrong_type(field, ValueType::Timestamp, value));
    document.get(field).map(read).transpose()
}

/// A document.
pub fn document<'a>(document: DocRef<'a>, field: &str) -> Result<Option<DocRef<'a>>> {
    let read = |value: Value<'a>| value.as_document().ok_or_else(|| wrong_type(field, ValueType::Document, value));
    document.get(field).map(read).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::doc;

    #[test]
    fn r18_fields_of_older_commands_are_read_with_their_own_words() {
        let command = doc! { "whole": 3.0, "part": 3.5, "text": "t", "flag": true };
        let view = command.view();
        assert_eq!(number(view, "whole"), Ok(Some(3)));
        assert_eq!(number(view, "nothing"), Ok(None));
        assert_eq!(number(view, "part").unwrap_err().code().number(), 2);
        assert_eq!(number(view, "text").unwrap_err().code().number(), 14);
        assert_eq!(safe_boolean(view, "whole"), Ok(Some(true)));
        assert_eq!(
            boolean(view, "whole").unwrap_err().reason(),
            "\"whole\" had the wrong type. Expected bool, found double"
        );
        assert_eq!(text(view, "text"), Ok(Some("t")));
        assert_eq!(timestamp(view, "flag").unwrap_err().code().number(), 14);
        assert_eq!(missing("x").code().number(), 4);
    }
}
