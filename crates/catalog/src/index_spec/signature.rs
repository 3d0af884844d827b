//! What two options of indexes come down to, however they are written: the filter of a partial index, the projection of a wildcard
//! index. Two indexes are one if these are the same.

use pando_doc::{DocRef, OwnedValue, Value, compare};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// A value that is equal to another if they compare equal: 1 and 1.0 are.
#[derive(Debug)]
pub(super) struct Comparable(pub(super) OwnedValue);

impl PartialEq for Comparable {
    fn eq(&self, other: &Comparable) -> bool {
        compare(self.0.view(), other.0.view()) == Ordering::Equal
    }
}

/// One condition: its path, or the operator on the whole document; its operator; its value.
type Condition = (Vec<u8>, Vec<u8>, Comparable);

/// The conditions of a filter, those on one path together. Conditions of one kind on one path stay in their order.
pub(super) fn conditions(filter: DocRef<'_>) -> Vec<Condition> {
    let mut found = Vec::new();
    collect(filter, &mut found);
    found.sort_by(|left, right| (&left.0, &left.1).cmp(&(&right.0, &right.1)));
    found
}

fn collect(filter: DocRef<'_>, found: &mut Vec<Condition>) {
    for element in filter.elements() {
        let name = element.name.to_vec();
        match element.value {
            Value::Array(parts) if element.name == "$and" => {
                parts.values().filter_map(|part| part.as_document()).for_each(|part| collect(part, found));
            }
            Value::Document(operators) if has_operators(operators) => {
                for operator in operators.elements() {
                    found.push((name.clone(), operator.name.to_vec(), Comparable(operator.value.to_owned())));
                }
            }
            value => found.push((name, b"$eq".to_vec(), Comparable(value.to_owned()))),
        }
    }
}

fn has_operators(document: DocRef<'_>) -> bool {
    document.first().is_some_and(|first| first.name.starts_with(b"$"))
}

/// The paths of a projection, with true for those that are taken in. `_id` is left out unless it is asked for.
pub(super) fn paths(projection: DocRef<'_>) -> BTreeMap<Vec<u8>, bool> {
    let mut found = BTreeMap::new();
    flatten(projection, &[], &mut found);
    if found.get(&b"_id"[..]) == Some(&false) {
        found.remove(&b"_id"[..]);
    }
    found
}

fn flatten(projection: DocRef<'_>, prefix: &[u8], found: &mut BTreeMap<Vec<u8>, bool>) {
    for element in projection.elements() {
        let path = if prefix.is_empty() { element.name.to_vec() } else { [prefix, b".", element.name].concat() };
        match element.value {
            Value::Document(below) => flatten(below, &path, found),
            value => {
                found.insert(path, value.is_true());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::{Doc, doc};

    #[test]
    fn u8_filters_are_the_same_however_they_are_written() {
        let same = |left: Doc, right: Doc| conditions(left.view()) == conditions(right.view());
        let plain = || doc! { "a": { "$gt": 0, "$lt": 10 }, "b": "x" };
        assert!(same(
            plain(),
            doc! { "$and": [{ "b": { "$eq": "x" } }, { "a": { "$lt": 10.0 } }, { "a": { "$gt": 0 } }] }
        ));
        assert!(!same(plain(), doc! { "a": { "$gt": 5, "$lt": 10 }, "b": "x" }));
        let types = |first: i32, second: i32| {
            doc! { "$and": [{ "a": { "$type": first } }, { "a": { "$type": second } }] }
        };
        assert!(!same(types(1, 2), types(2, 1)));
    }

    #[test]
    fn u8_projections_are_the_same_however_they_are_written() {
        let same = |left: Doc, right: Doc| paths(left.view()) == paths(right.view());
        assert!(same(doc! { "a.b": 1, "a.c": true }, doc! { "a": { "c": 1, "b": 1 }, "_id": 0 }));
        assert!(same(doc! { "a": 0 }, doc! { "_id": 0, "a": false }));
        assert!(!same(doc! { "a": 1 }, doc! { "_id": 1, "a": 1 }));
    }
}
