//! The errors of options that a stage does not know, misses, gets twice, or gets with another type.

use pando_base::{Error, Result};
use pando_doc::{DocRef, Element, Value};

/// Stages whose value is a document of options, beside those that look at it themselves. In alphabetical order. Names in the documents of
/// others are the client's own.
const WITH_OPTIONS: &[&str] = &[
    "$_internalUnpackBucket",
    "$_unpackBucket",
    "$backupCursor",
    "$backupCursorExtend",
    "$bucket",
    "$bucketAuto",
    "$changeStream",
    "$currentOp",
    "$densify",
    "$fill",
    "$geoNear",
    "$graphLookup",
    "$listLocalSessions",
    "$listSessions",
    "$lookup",
    "$merge",
    "$operationMetrics",
    "$out",
    "$replaceRoot",
    "$sample",
    "$setWindowFields",
    "$unionWith",
    "$unwind",
];

/// Options that are documents of options themselves.
const WITH_OPTIONS_INSIDE: &[&str] = &["into", "range", "timeseries"];

/// Refuses a stage with an option that stands there twice: who checks it and who runs it might see
/// different ones.
pub(in crate::pipeline) fn refuse_repeated(stage: Element<'_>) -> Result<()> {
    let has_options = || WITH_OPTIONS.iter().any(|name| stage.name == *name);
    let Some(options) = stage.value.as_document().filter(|_| has_options()) else { return Ok(()) };
    if let Some(name) = options.repeated_name() {
        if stage.name == "$graphLookup" {
            return Err(Error::location(12_735_700, format!("Duplicate field '{name}' in $graphLookup stage")));
        }
        return Err(repeated(format!("{}.{name}", stage.name)));
    }
    for option in options.elements().filter(|option| WITH_OPTIONS_INSIDE.iter().any(|name| option.name == *name)) {
        if let Some(name) = option.value.as_document().and_then(|inside| inside.repeated_name()) {
            return Err(repeated(format!("{}.{}.{name}", stage.name, option.name)));
        }
    }
    Ok(())
}

#[cold]
fn repeated(path: String) -> Error {
    Error::location(40413, format!("BSON field '{path}' is a duplicate field"))
}

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
