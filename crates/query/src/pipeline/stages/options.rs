//! The errors of options that a stage does not know, misses, or gets with another type.

use pando_base::{Error, Result};
use pando_doc::{DocRef, Element, Value};

pub(super) fn unknown(stage: &str, option: Element<'_>) -> Error {
    Error::location(40415, format!("BSON field '{stage}.{}' is an unknown field.", option.name))
}

pub(super) fn missing(stage: &str, name: &str) -> Error {
    Error::location(40414, format!("BSON field '{stage}.{name}' is missing but a required field"))
}

pub(super) fn wrong_type(stage: &str, option: Element<'_>, expected: &str) -> Error {
    let found = option.value.value_type();
    let reason = format!("BSON field '{stage}.{}' is the wrong type '{found}', expected {expected}", option.name);
    Error::type_mismatch(reason)
}

/// An option that is a document.
pub(super) fn document<'a>(stage: &str, option: Element<'a>) -> Result<DocRef<'a>> {
    match option.value {
        Value::Document(document) => Ok(document),
        _ => Err(wrong_type(stage, option, "type 'object'")),
    }
}

/// An option that is a string.
pub(super) fn string(stage: &str, option: Element<'_>) -> Result<String> {
    match option.value {
        Value::String(text) => Ok(text.to_string()),
        _ => Err(wrong_type(stage, option, "type 'string'")),
    }
}

/// An option that is an array of strings.
pub(super) fn strings(stage: &str, option: Element<'_>) -> Result<Vec<String>> {
    let Value::Array(array) = option.value else { return Err(wrong_type(stage, option, "type 'array'")) };
    let texts = array.values().enumerate().map(|(place, value)| match value {
        Value::String(text) => Ok(text.to_string()),
        other => {
            let (name, found) = (option.name, other.value_type());
            let reason =
                format!("BSON field '{stage}.{name}.{place}' is the wrong type '{found}', expected type 'string'");
            Err(Error::type_mismatch(reason))
        }
    });
    texts.collect()
}
