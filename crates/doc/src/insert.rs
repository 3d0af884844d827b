//! What MongoDB checks and mends in a document before it is stored.
//!
//! The `_id` comes first, a top-level `Timestamp(0, 0)` becomes the present one, nesting is bounded more tightly than in
//! messages. Names with dots and dollars are allowed, but not inside `_id`, where a dollar is only for references.

use crate::validate::{DEPTH_MAX, USER_SIZE_BYTES_MAX, depth_max};
use crate::{Doc, DocBuilder, DocRef, ObjectId, RawElement, RawElements, Value, ValueType};
use pando_base::{Error, ErrorCode, Result, Timestamp};

/// How many levels a stored document may have; messages may have more, for what is put around it.
pub const USER_DEPTH_MAX: usize = DEPTH_MAX - ROOM;

/// The levels for what is put around it.
const ROOM: usize = 20;

/// Checks a document that is to be inserted, and mends it: none if it can be stored as it is. Without `next_timestamp` empty
/// timestamps stay empty.
pub fn prepare_for_insert(
    doc: DocRef<'_>,
    new_id: impl FnOnce() -> ObjectId,
    next_timestamp: Option<impl FnMut() -> Timestamp>,
) -> Result<Option<Doc>> {
    if doc.size_bytes() > USER_SIZE_BYTES_MAX {
        let reason =
            format!("object to insert too large. size in bytes: {}, max size: {USER_SIZE_BYTES_MAX}", doc.size_bytes());
        return Err(Error::new(ErrorCode::BSONObjectTooLarge, reason));
    }
    let found = scan(doc)?;
    if found.is_nested {
        check_user_depth(doc)?;
    }
    if found.id_is_first && (!found.has_empty_timestamp || next_timestamp.is_none()) {
        return Ok(None);
    }
    Ok(Some(rebuild(doc, found.id, new_id, next_timestamp)))
}

/// What the first look at a document showed.
struct Found<'a> {
    id: Option<RawElement<'a>>,
    id_is_first: bool,
    has_empty_timestamp: bool,
    is_nested: bool,
}

fn scan(doc: DocRef<'_>) -> Result<Found<'_>> {
    let mut found = Found { id: None, id_is_first: false, has_empty_timestamp: false, is_nested: false };
    for (index, element) in doc.raw_elements().enumerate() {
        found.has_empty_timestamp |= is_empty_timestamp(element);
        found.is_nested |= matches!(element.value_type, ValueType::Document | ValueType::Array);
        if element.name == "_id" {
            element.value().map_or(Ok(()), check_id)?;
            if found.id.replace(element).is_some() {
                return Err(Error::bad_value("can't have multiple _id fields in one document"));
            }
            found.id_is_first = index == 0;
        }
    }
    Ok(found)
}

fn is_empty_timestamp(element: RawElement<'_>) -> bool {
    element.value_type == ValueType::Timestamp && element.value_bytes == [0; 8] && element.name != "_id"
}

fn rebuild(
    doc: DocRef<'_>,
    id: Option<RawElement<'_>>,
    new_id: impl FnOnce() -> ObjectId,
    next_timestamp: Option<impl FnMut() -> Timestamp>,
) -> Doc {
    let mut builder = DocBuilder::with_capacity(doc.size_bytes() + 17);
    match id {
        Some(id) => builder.append_raw(id),
        None => builder.append("_id", new_id()),
    }
    append_filled(&mut builder, doc.raw_elements().filter(|element| element.name != "_id"), next_timestamp);
    builder.finish()
}

fn append_filled<'a>(
    builder: &mut DocBuilder,
    elements: impl Iterator<Item = RawElement<'a>>,
    mut next_timestamp: Option<impl FnMut() -> Timestamp>,
) {
    for element in elements {
        match &mut next_timestamp {
            Some(next) if is_empty_timestamp(element) => builder.append(element.name, next()),
            _ => builder.append_raw(element),
        }
    }
}

/// A document that replaces another, with its empty timestamps filled; none if it has none.
pub fn fill_empty_timestamps(doc: DocRef<'_>, next_timestamp: impl FnMut() -> Timestamp) -> Option<Doc> {
    doc.raw_elements().find(|element| is_empty_timestamp(*element))?;
    let mut builder = DocBuilder::with_capacity(doc.size_bytes());
    append_filled(&mut builder, doc.raw_elements(), Some(next_timestamp));
    Some(builder.finish())
}

/// The document with its `_id` moved to the front; none if it is there already or absent.
pub fn with_id_first(doc: DocRef<'_>) -> Option<Doc> {
    let id = doc.get_raw("_id")?;
    if doc.raw_elements().next().is_some_and(|first| first.name == "_id") {
        return None;
    }
    let mut builder = DocBuilder::with_capacity(doc.size_bytes());
    builder.append_raw(id);
    doc.raw_elements()
        .filter(|element| element.bytes.as_ptr() != id.bytes.as_ptr())
        .for_each(|element| builder.append_raw(element));
    Some(builder.finish())
}

/// Checks that a value may be an `_id`.
pub fn check_id(id: Value<'_>) -> Result<()> {
    match id {
        Value::Regex { .. } | Value::Array(_) | Value::Undefined => {
            let reason = format!("The '_id' value cannot be of type {}", id.value_type());
            Err(Error::new(ErrorCode::InvalidIdField, reason))
        }
        Value::Document(doc) => check_names_inside_id(doc),
        _ => Ok(()),
    }
}

/// Checks every document inside the `_id` for names with a dollar.
fn check_names_inside_id(doc: DocRef<'_>) -> Result<()> {
    let mut pending = vec![doc];
    while let Some(doc) = pending.pop() {
        check_dollars(doc)?;
        pending.extend(doc.elements().filter_map(|element| match element.value {
            Value::CodeWithScope { scope, .. } => Some(scope),
            value => value.as_nested(),
        }));
    }
    Ok(())
}

/// A reference begins with `$ref` (a string), `$id` and perhaps `$db` (a string); no other name may have a dollar.
fn check_dollars(doc: DocRef<'_>) -> Result<()> {
    let mut rest = doc.raw_elements();
    let mut ahead = rest.clone();
    let is = |element: Option<RawElement<'_>>, name: &str| element.is_some_and(|element| element.name == name);
    let is_string =
        |element: Option<RawElement<'_>>| element.is_some_and(|element| element.value_type == ValueType::String);
    let first = ahead.next();
    if is(first, "$ref") && is_string(first) && is(ahead.next(), "$id") {
        rest = ahead.clone();
        let third = ahead.next();
        if is(third, "$db") && is_string(third) {
            rest = ahead;
        }
    }
    refuse_dollars(rest)
}

fn refuse_dollars(mut elements: RawElements<'_>) -> Result<()> {
    match elements.find(|element| element.name.starts_with(b"$")) {
        None => Ok(()),
        Some(element) => Err(Error::new(
            ErrorCode::DollarPrefixedFieldName,
            format!("_id fields may not contain '$'-prefixed fields: {} is not valid for storage.", element.name),
        )),
    }
}

/// Checks that a document is not nested too deeply to be stored. Empty documents do not count as a level.
pub fn check_user_depth(doc: DocRef<'_>) -> Result<()> {
    /// A level takes a type, the end of a name, a length and a zero at least.
    const LEVEL_BYTES_MIN: usize = 7;
    let user_depth_max = depth_max().saturating_sub(ROOM);
    if doc.size_bytes() < user_depth_max * LEVEL_BYTES_MIN {
        return Ok(());
    }
    let mut open = vec![doc.raw_elements()];
    while let Some(innermost) = open.last_mut() {
        let is_nested = |element: &RawElement<'_>| matches!(element.value_type, ValueType::Document | ValueType::Array);
        let Some(element) = innermost.find(is_nested) else {
            open.pop();
            continue;
        };
        let nested = DocRef::trusted(element.value_bytes);
        if nested.is_empty() {
            continue;
        }
        if open.len() >= user_depth_max {
            let reason = format!("cannot insert document because it exceeds {user_depth_max} levels of nesting");
            return Err(Error::new(ErrorCode::Overflow, reason));
        }
        open.push(nested.raw_elements());
    }
    Ok(())
}

#[cfg(test)]
mod tests;
