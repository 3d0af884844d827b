//! MongoDB's order of values: what sorts, indexes, matches and groups go by.
//!
//! Types are ordered first, by their canonical place; numbers of all kinds share one place and are compared exactly, as
//! do strings and symbols. Documents compare field by field: type, then name, then value. The order is total: NaN equals
//! NaN and is the least number, zeros are equal.
//!
//! The walk calls itself once a level; validation bounds the levels.

mod collator;
mod hash;
mod number;

#[cfg(test)]
mod tests;

pub use collator::{Collator, SharedCollator, StringComparator};
pub use hash::{hash_value, hash_value_with};
pub use number::compare_numbers;

use crate::{DocRef, Element, Value};
use pando_base::operation;
use std::cmp::Ordering;

/// How to compare, where MongoDB has a choice.
#[derive(Clone, Copy, Default)]
pub struct CompareOptions<'c> {
    /// Compares strings; by bytes if absent.
    pub strings: Option<&'c dyn StringComparator>,
    /// The names of the outermost fields do not matter; those of nested documents do.
    pub ignore_field_names: bool,
    /// Documents with the same fields in another order are equal.
    pub ignore_field_order: bool,
}

/// The order of two values, strings by bytes.
#[inline]
pub fn compare(left: Value<'_>, right: Value<'_>) -> Ordering {
    compare_with(left, right, &CompareOptions::default())
}

/// The order of two documents, strings by bytes.
pub fn compare_docs(left: DocRef<'_>, right: DocRef<'_>) -> Ordering {
    compare_documents_with(left, right, &CompareOptions::default())
}

/// The order of two values.
#[inline]
pub fn compare_with(left: Value<'_>, right: Value<'_>, options: &CompareOptions<'_>) -> Ordering {
    let (left_type, right_type) = (left.value_type(), right.value_type());
    left_type
        .canonical_order()
        .cmp(&right_type.canonical_order())
        .then_with(|| compare_same_order(left, right, options))
}

/// The order of two documents.
pub fn compare_documents_with(left: DocRef<'_>, right: DocRef<'_>, options: &CompareOptions<'_>) -> Ordering {
    if options.ignore_field_order {
        return compare_elements(sorted(left).into_iter(), sorted(right).into_iter(), options);
    }
    compare_elements(left.elements(), right.elements(), options)
}

fn sorted(doc: DocRef<'_>) -> Vec<Element<'_>> {
    let mut elements: Vec<Element<'_>> = doc.elements().collect();
    elements.sort_by(|left, right| left.name.cmp(right.name));
    elements
}

fn compare_elements<'a>(
    mut left: impl Iterator<Item = Element<'a>>,
    mut right: impl Iterator<Item = Element<'a>>,
    options: &CompareOptions<'_>,
) -> Ordering {
    loop {
        // An order has to be given, so this only counts; one document has not that many fields.
        operation::count(1);
        let order = match (left.next(), right.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some(left), Some(right)) => compare_element(left, right, options),
        };
        if order.is_ne() {
            return order;
        }
    }
}

/// Type, then name, then value.
fn compare_element(left: Element<'_>, right: Element<'_>, options: &CompareOptions<'_>) -> Ordering {
    let order = |element: Element<'_>| element.value.value_type().canonical_order();
    order(left)
        .cmp(&order(right))
        .then_with(|| if options.ignore_field_names { Ordering::Equal } else { left.name.cmp(right.name) })
        .then_with(|| compare_same_order(left.value, right.value, options))
}

/// The order of values whose types share a place.
fn compare_same_order(left: Value<'_>, right: Value<'_>, options: &CompareOptions<'_>) -> Ordering {
    let nested = CompareOptions { ignore_field_names: false, ..*options };
    match (left, right) {
        (Value::String(left) | Value::Symbol(left), Value::String(right) | Value::Symbol(right)) => {
            match options.strings {
                Some(strings) => strings.compare(left, right),
                None => left.cmp(right),
            }
        }
        (Value::ObjectId(left), Value::ObjectId(right)) => left.cmp(&right),
        (Value::Document(left), Value::Document(right)) => compare_documents_with(left, right, &nested),
        (Value::Array(left), Value::Array(right)) => {
            compare_elements(left.as_doc().elements(), right.as_doc().elements(), &nested)
        }
        (Value::Bool(left), Value::Bool(right)) => left.cmp(&right),
        (Value::DateTime(left), Value::DateTime(right)) => left.cmp(&right),
        (Value::Timestamp(left), Value::Timestamp(right)) => left.cmp(&right),
        (Value::Binary { subtype, bytes }, Value::Binary { subtype: right_subtype, bytes: right_bytes }) => {
            bytes.len().cmp(&right_bytes.len()).then(subtype.cmp(&right_subtype)).then_with(|| bytes.cmp(right_bytes))
        }
        (Value::Regex { pattern, options }, Value::Regex { pattern: right_pattern, options: right_options }) => {
            pattern.cmp(right_pattern).then_with(|| options.cmp(right_options))
        }
        (Value::DbPointer { namespace, id }, Value::DbPointer { namespace: right_namespace, id: right_id }) => {
            namespace
                .len()
                .cmp(&right_namespace.len())
                .then_with(|| namespace.cmp(right_namespace))
                .then_with(|| id.cmp(&right_id))
        }
        (Value::Code(left), Value::Code(right)) => left.cmp(right),
        (Value::CodeWithScope { code, scope }, Value::CodeWithScope { code: right_code, scope: right_scope }) => {
            // A collation has no say in code.
            let plain = CompareOptions { strings: None, ..nested };
            code.cmp(right_code).then_with(|| compare_documents_with(scope, right_scope, &plain))
        }
        (left, right) if left.is_number() => compare_numbers(left, right),
        (left, right) => {
            debug_assert_eq!(left.value_type(), right.value_type(), "what is left are types of one value");
            Ordering::Equal
        }
    }
}
