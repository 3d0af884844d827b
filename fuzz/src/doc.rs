//! Documents: validation, the walk, the order, building again, text and back.

use pando_doc::{Doc, DocBuilder, DocRef, Value, compare, compare_docs};
use std::cmp::Ordering;

/// Reads the bytes as a document and as a pair of documents.
pub fn fuzz_doc(bytes: &[u8]) {
    let Ok((one, rest)) = DocRef::parse_prefix(bytes, &pando_doc::Limits::default()) else {
        return;
    };
    walk(one);
    rebuild(one);
    if let Ok((other, _)) = DocRef::parse_prefix(rest, &pando_doc::Limits::default()) {
        order(one, other);
    }
}

/// Every value can be looked at, and inner documents are valid by themselves.
fn walk(document: DocRef<'_>) {
    assert_eq!(document.elements().count(), document.field_count());
    for element in document.elements() {
        assert_eq!(compare(element.value, element.value), Ordering::Equal);
        match element.value {
            Value::Document(inner) | Value::CodeWithScope { scope: inner, .. } => walk(inner),
            Value::Array(inner) => walk(inner.as_doc()),
            _ => {}
        }
    }
}

/// A document built from the values of another has the same bytes.
fn rebuild(document: DocRef<'_>) {
    let mut builder = DocBuilder::new();
    document.elements().for_each(|element| builder.append_element(element));
    let built = builder.finish();
    assert_eq!(built.bytes(), document.bytes());
    Doc::parse(built.into_bytes()).expect("what is built is valid");
}

/// The order is the same from both sides.
fn order(one: DocRef<'_>, other: DocRef<'_>) {
    assert_eq!(compare_docs(one, other), compare_docs(other, one).reverse());
    for (left, right) in one.elements().zip(other.elements()) {
        assert_eq!(compare(left.value, right.value), compare(right.value, left.value).reverse());
    }
}
