//! What paths lead to in expressions: unlike in filters, an array gives an array of what its documents have, and a number in
//! a path is a name like any other.

use super::Operand;
use pando_doc::{ArrayBuilder, ArrayRef, DocRef, FieldPath, Value};

/// From this part of the path on, in a document.
pub(super) fn in_document<'a>(doc: DocRef<'a>, path: &FieldPath, first: usize) -> Operand<'a> {
    let mut current = doc;
    let mut part = first;
    loop {
        let value = current.get(path.part(part));
        part += 1;
        if part >= path.part_count() {
            return Operand::from(value);
        }
        match value {
            Some(Value::Document(nested)) => current = nested,
            Some(Value::Array(array)) => return in_array(array, path, part),
            _ => return Operand::Missing,
        }
    }
}

/// What each document of the array has; what is missing leaves no gap. Arrays in the array are passed over.
fn in_array<'a>(array: ArrayRef<'_>, path: &FieldPath, part: usize) -> Operand<'a> {
    let mut builder = ArrayBuilder::new();
    for value in array.values() {
        if let Value::Document(nested) = value
            && let Some(found) = in_document(nested, path, part).view()
        {
            builder.push(found);
        }
    }
    Operand::from(builder.finish())
}

/// In the value of a variable.
pub(super) fn in_operand<'a>(operand: &Operand<'a>, path: &FieldPath) -> Operand<'a> {
    match operand {
        Operand::Borrowed(Value::Document(doc)) => in_document(*doc, path, 0),
        Operand::Borrowed(Value::Array(array)) => in_array(*array, path, 0),
        owned => match owned.view() {
            Some(Value::Document(doc)) => match in_document(doc, path, 0) {
                Operand::Borrowed(part) => owned.child(Some(part)),
                Operand::Owned(value) => Operand::Owned(value),
                Operand::Missing => Operand::Missing,
            },
            Some(Value::Array(array)) => in_array(array, path, 0),
            _ => Operand::Missing,
        },
    }
}
