//! Is a document as the specification of BSON wants it, beyond what can be read at all?

use bstr::ByteSlice;
use pando_doc::{DocRef, Value};
use std::collections::BTreeSet;

/// Why it is not; the first reason.
pub(super) fn fault(document: DocRef<'_>) -> Option<String> {
    let mut names = BTreeSet::new();
    for element in document.elements() {
        if element.name.to_str().is_err() {
            return Some(format!(
                "Found string that doesn't follow UTF-8 encoding in the field name '{}'.",
                element.name
            ));
        }
        if !names.insert(element.name) {
            return Some(format!("A BSON document contains a duplicate field name '{}'.", element.name));
        }
        if let Some(fault) = fault_of_value(element.value) {
            return Some(fault);
        }
    }
    None
}

fn fault_of_value(value: Value<'_>) -> Option<String> {
    match value {
        Value::String(text) | Value::Code(text) => not_utf8(text),
        Value::Document(inner) => fault(inner),
        Value::Array(array) => {
            let is_counted = |(place, name): (usize, &bstr::BStr)| name == place.to_string().as_bytes();
            let elements = array.as_doc();
            if !elements.elements().map(|element| element.name).enumerate().all(is_counted) {
                return Some("Indices of BSON Array are invalid.".to_owned());
            }
            elements.elements().find_map(|element| fault_of_value(element.value))
        }
        Value::Binary { subtype: 3 | 4, bytes } if bytes.len() != 16 => {
            Some("Binary data with UUID subtype has a wrong length, expected 16 bytes.".to_owned())
        }
        Value::Binary { subtype: 5, bytes } if bytes.len() != 16 => {
            Some("Binary data with MD5 subtype has a wrong length, expected 16 bytes.".to_owned())
        }
        Value::Regex { pattern, options } => {
            let is_ordered = options.windows(2).all(|pair| pair.first() < pair.get(1));
            let is_known = options.iter().all(|option| b"ilmsux".contains(option));
            not_utf8(pattern).or_else(|| {
                (!is_ordered || !is_known).then(|| "Regex options string is not in alphabetical order.".to_owned())
            })
        }
        Value::Undefined | Value::DbPointer { .. } | Value::Symbol(_) | Value::CodeWithScope { .. } => {
            Some(format!("Use of deprecated BSON type {}.", value.value_type().name()))
        }
        _ => None,
    }
}

fn not_utf8(text: &bstr::BStr) -> Option<String> {
    text.to_str().err().map(|_| "Found string that doesn't follow UTF-8 encoding.".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::doc;

    #[test]
    fn x24_what_can_be_read_may_still_not_conform() {
        assert_eq!(fault(doc! { "a": 1, "b": { "c": [1, "x"] } }.view()), None);
        let short = doc! { "u": Value::Binary { subtype: 4, bytes: &[1, 2] } };
        let regex = doc! { "r": Value::Regex { pattern: "a".into(), options: "xi".into() } };
        let old = doc! { "a": [{ "s": Value::Symbol("x".into()) }] };
        for wrong in [short, regex, old, doc! { "a": 1, "a": 2 }] {
            assert!(fault(wrong.view()).is_some(), "{wrong}");
        }
    }
}
