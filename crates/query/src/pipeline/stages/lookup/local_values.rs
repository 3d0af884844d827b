//! What a document looks for: the values at its path, as a list or as a filter.

use bstr::BStr;
use pando_doc::{ArrayBuilder, Doc, DocRef, FieldPath, Value, doc};
use smallvec::SmallVec;

/// Most documents look for one value.
type Values<'d> = SmallVec<[Value<'d>; 1]>;

/// The values that a document looks for, at least one. What is not there is null.
pub(super) fn values_of<'d>(document: DocRef<'d>, local: &FieldPath) -> Values<'d> {
    let parts: SmallVec<[&BStr; 4]> = local.parts().collect();
    let mut values = Values::new();
    visit(document, &parts, &mut |value| values.push(value));
    if values.is_empty() {
        values.push(Value::Null);
    }
    values
}

/// The filter for documents that have one of the values.
pub(super) fn equality(document: DocRef<'_>, local: &FieldPath, foreign: &FieldPath) -> Doc {
    let values = values_of(document, local);
    let has_pattern = values.iter().any(|value| matches!(value, Value::Regex { .. }));
    match values.as_slice() {
        [only] => doc! { (foreign.text()): { "$eq": *only } },
        // A pattern in a list would be matched, not compared.
        several if has_pattern => {
            let mut alternatives = ArrayBuilder::new();
            for value in several {
                alternatives.push(doc! { (foreign.text()): { "$eq": *value } });
            }
            doc! { "$or": alternatives.finish() }
        }
        several => {
            let mut list = ArrayBuilder::new();
            several.iter().for_each(|value| list.push(*value));
            doc! { (foreign.text()): { "$in": list.finish() } }
        }
    }
}

/// All values at a path: numbers are places in arrays, an array at the end stands for what is in it, and in others documents are looked into.
fn visit<'d>(document: DocRef<'d>, parts: &[&BStr], found: &mut dyn FnMut(Value<'d>)) {
    let Some((name, mut below)) = parts.split_first() else { return };
    let mut value = document.get(name);
    while let (Some(Value::Array(array)), Some((next, behind))) = (value, below.split_first()) {
        let Some(place) = std::str::from_utf8(next).ok().and_then(|text| text.parse::<usize>().ok()) else { break };
        (value, below) = (array.values().nth(place), behind);
    }
    match value {
        Some(Value::Array(array)) if below.is_empty() => array.values().for_each(found),
        Some(value) if below.is_empty() => found(value),
        Some(Value::Array(array)) => {
            for inside in array.values().filter_map(|value| value.as_document()) {
                visit(inside, below, found);
            }
        }
        Some(Value::Document(inside)) => visit(inside, below, found),
        _ => {}
    }
}
