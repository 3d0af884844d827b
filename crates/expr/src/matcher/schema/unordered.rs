//! Equality of values whose documents may have their fields in any order, as schemas compare.

use pando_doc::{DocRef, Value, compare};
use std::cmp::Ordering;

pub(super) fn are_equal(left: Value<'_>, right: Value<'_>) -> bool {
    match (left, right) {
        (Value::Document(left), Value::Document(right)) => documents_are_equal(left, right),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.values().zip(right.values()).all(|(left, right)| are_equal(left, right))
        }
        (left, right) => compare(left, right) == Ordering::Equal,
    }
}

fn documents_are_equal(left: DocRef<'_>, right: DocRef<'_>) -> bool {
    let has_equal = |of: DocRef<'_>, name, value| of.get(name).is_some_and(|other| are_equal(value, other));
    left.field_count() == right.field_count()
        && left.elements().all(|element| has_equal(right, element.name, element.value))
}
