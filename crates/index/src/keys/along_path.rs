//! All values that a path leads to, for the kinds of index that take them as a set.
//!
//! Arrays on the way are gone through; a number in the path is a place in an array, if it meets one. The array at the end stays whole, or its
//! values are taken, as the caller wants.

use pando_doc::{DocRef, FieldPath, Value, compare};

/// The values, sorted, each once. `note_array` is told of the parts of the path before the last that were arrays.
pub fn values_along<'d>(
    doc: DocRef<'d>,
    path: &FieldPath,
    expands_last: bool,
    note_array: &mut dyn FnMut(usize),
) -> Vec<Value<'d>> {
    let mut found = Vec::new();
    collect(doc, path, 0, expands_last, note_array, &mut found);
    found.sort_by(|one, two| compare(*one, *two));
    found.dedup_by(|one, two| compare(*one, *two).is_eq());
    found
}

fn collect<'d>(
    doc: DocRef<'d>,
    path: &FieldPath,
    part: usize,
    expands_last: bool,
    note_array: &mut dyn FnMut(usize),
    found: &mut Vec<Value<'d>>,
) {
    let Some(value) = doc.get(path.part(part)) else { return };
    if part + 1 == path.part_count() {
        match value {
            Value::Array(array) if expands_last => found.extend(array.values()),
            value => found.push(value),
        }
        return;
    }
    match value {
        Value::Document(nested) => collect(nested, path, part + 1, expands_last, note_array, found),
        Value::Array(array) if path.part(part + 1).iter().all(u8::is_ascii_digit) => {
            collect(array.as_doc(), path, part + 1, expands_last, note_array, found);
        }
        Value::Array(array) => {
            note_array(part);
            for nested in array.values().filter_map(|value| value.as_nested()) {
                collect(nested, path, part + 1, expands_last, note_array, found);
            }
        }
        _ => {}
    }
}
