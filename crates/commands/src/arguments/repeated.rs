//! Refuses commands in which a field stands twice.
//!
//! Who looks for a field by its name sees the first or the last of the two, and whoever checks a
//! request need not see what is carried out. So each command is looked at as a whole before
//! anything is read of it: on top and in every document and array inside, however deep. Left out is
//! what holds data or a language of its own, below the names in [`OPEN`]: documents, filters,
//! updates, and what its own parser looks at in the same way: stages of pipelines, keys of indexes.

use super::field::Place;
use bstr::{BStr, ByteSlice};
use pando_base::{Error, ErrorCode, Result};
use pando_doc::{ArrayRef, DocRef, RawElement, Value, ValueType};
use pando_wire::Command;

/// Fields whose values are not commands' own, wherever they stand. In alphabetical order.
const OPEN: &[&str] = &[
    "arrayFilters",
    "c",
    "client",
    "comment",
    "customData",
    "documents",
    "fields",
    "filter",
    "key",
    "let",
    "max",
    "min",
    "o",
    "o2",
    "partialFilterExpression",
    "pipeline",
    "projection",
    "q",
    "query",
    "scope",
    "sort",
    "u",
    "update",
    "validator",
];

/// Looks at a request with all its document sequences.
pub fn refuse_repeated(command: &str, request: &Command) -> Result<()> {
    let place = Place::of_command(command);
    refuse_repeated_on_top(request.body(), &place)?;
    inside(request.body(), &place)?;
    for (name, documents) in request.sequences().filter(|(name, _)| !is_open(name)) {
        let here = place.field(name);
        documents.iter().try_for_each(|document| refuse_repeated_in(document, &here))?;
    }
    Ok(())
}

/// Looks at a command that stands in another one.
pub fn refuse_repeated_in_command(command: &str, body: DocRef<'_>) -> Result<()> {
    let place = Place::of_command(command);
    refuse_repeated_on_top(body, &place)?;
    inside(body, &place)
}

/// The command's own name is no field of it, and MongoDB says so in other words.
fn refuse_repeated_on_top(body: DocRef<'_>, place: &Place<'_>) -> Result<()> {
    let Some(repeated) = body.repeated_name() else { return Ok(()) };
    if super::is_generic(repeated) || body.first().is_some_and(|first| first.name == repeated) {
        let reason = format!("Parsed command object contains duplicate top level key: {repeated}");
        return Err(Error::new(ErrorCode::FailedToParse, reason));
    }
    Err(place.duplicate(repeated))
}

fn refuse_repeated_in(document: DocRef<'_>, place: &Place<'_>) -> Result<()> {
    match document.repeated_name() {
        Some(repeated) => Err(place.duplicate(repeated)),
        None => inside(document, place),
    }
}

fn inside(document: DocRef<'_>, place: &Place<'_>) -> Result<()> {
    let is_nested = |element: &RawElement<'_>| matches!(element.value_type, ValueType::Document | ValueType::Array);
    for element in document.raw_elements().filter(is_nested).filter(|element| !is_open(element.name)) {
        let here = place.field(element.name);
        match element.value() {
            Some(Value::Document(inner)) => refuse_repeated_in(inner, &here)?,
            Some(Value::Array(array)) => inside_array(array, &here)?,
            _ => {}
        }
    }
    Ok(())
}

/// The names in an array are nobody's to read.
fn inside_array(array: ArrayRef<'_>, place: &Place<'_>) -> Result<()> {
    let is_nested = |element: &RawElement<'_>| matches!(element.value_type, ValueType::Document | ValueType::Array);
    for element in array.as_doc().raw_elements().filter(is_nested) {
        match element.value() {
            Some(Value::Document(inner)) => refuse_repeated_in(inner, place)?,
            Some(Value::Array(inner)) => inside_array(inner, place)?,
            _ => {}
        }
    }
    Ok(())
}

fn is_open(name: &BStr) -> bool {
    OPEN.binary_search_by(|open| open.as_bytes().as_bstr().cmp(name)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::doc;

    fn refused(body: &pando_doc::Doc) -> (ErrorCode, String) {
        let error = refuse_repeated_in_command("x", body.view()).unwrap_err();
        (error.code(), error.reason().to_owned())
    }

    #[test]
    fn u10_fields_that_stand_twice_are_refused_wherever_they_are() {
        let code = ErrorCode::location(40413);
        let on_top = doc! { "x": 1, "a": 1, "a": 1 };
        assert_eq!(refused(&on_top), (code, "BSON field 'x.a' is a duplicate field".to_owned()));
        let below = doc! { "x": 1, "a": { "b": { "c": 1, "c": 2 } } };
        assert_eq!(refused(&below), (code, "BSON field 'x.a.b.c' is a duplicate field".to_owned()));
        let in_array = doc! { "x": 1, "a": [1, [{ "b": 1, "b": 1 }]] };
        assert_eq!(refused(&in_array), (code, "BSON field 'x.a.b' is a duplicate field".to_owned()));
        let reason = |name: &str| format!("Parsed command object contains duplicate top level key: {name}");
        for (body, name) in [(doc! { "x": 1, "x": 1 }, "x"), (doc! { "x": 1, "lsid": {}, "lsid": {} }, "lsid")] {
            assert_eq!(refused(&body), (ErrorCode::FailedToParse, reason(name)));
        }
    }

    #[test]
    fn u10_data_may_have_what_it_wants() {
        let data = doc! { "a": 1, "a": { "b": 1, "b": 2 } };
        for name in OPEN {
            let on_top = doc! { "x": 1, (*name): (data.clone()) };
            refuse_repeated_in_command("x", on_top.view()).unwrap();
            let deeper = doc! { "x": 1, "statements": [{ (*name): (data.clone()) }] };
            refuse_repeated_in_command("x", deeper.view()).unwrap();
        }
        assert!(OPEN.is_sorted());
    }
}
