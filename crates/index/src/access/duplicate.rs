//! The error for a key that another document has: code 11000, in MongoDB's words, with fields that drivers read.

use crate::Key;
use pando_base::{Error, ErrorCode, Namespace};
use pando_catalog::IndexDescriptor;
use pando_doc::{Doc, DocBuilder, DocRef, Element, Value};
use pando_keystring::{KeyOrdering, Version, to_doc};
use std::fmt::Write;

/// The error for a key of an index.
pub fn duplicate_key_error(
    namespace: &Namespace,
    descriptor: &IndexDescriptor,
    key: Key<'_>,
    ordering: KeyOrdering,
) -> Error {
    let values = to_doc(key.bytes, ordering, key.type_bits, Version::V1).unwrap_or_default();
    let duplicate = Duplicate {
        namespace,
        index_name: Some(&descriptor.name),
        pattern: descriptor.key_pattern.view(),
        collation: descriptor.collation.as_ref().map(Doc::view),
        values: values.view(),
    };
    duplicate.error()
}

/// The error for the key of a clustered collection, which has no index. The message ends as it does in MongoDB, where
/// the document that was found is named by test builds only.
pub fn duplicate_cluster_key_error(
    namespace: &Namespace,
    field: &str,
    collation: Option<DocRef<'_>>,
    key: &[u8],
) -> Error {
    let values = match to_doc(key, KeyOrdering::ASCENDING, &[], Version::V1) {
        Ok(values) => values,
        // The key has no type bits: of a number that is no integer nobody can say which one it was.
        Err(error @ pando_keystring::Error::NotAnInteger(_)) => return error.into(),
        Err(_) => Doc::default(),
    };
    let mut pattern = DocBuilder::new();
    pattern.append(field, 1_i32);
    let pattern = pattern.finish();
    let duplicate =
        Duplicate { namespace, index_name: None, pattern: pattern.view(), collation, values: values.view() };
    let mut details = duplicate.details();
    details.append("foundValue", DocRef::EMPTY);
    Error::new(ErrorCode::DuplicateKey, duplicate.message() + " found value: {}")
        .with_details(details.finish().into_bytes().into())
}

struct Duplicate<'a> {
    namespace: &'a Namespace,
    index_name: Option<&'a str>,
    pattern: DocRef<'a>,
    collation: Option<DocRef<'a>>,
    /// The values, without names.
    values: DocRef<'a>,
}

impl<'a> Duplicate<'a> {
    fn error(&self) -> Error {
        let details = self.details().finish().into_bytes().into();
        Error::new(ErrorCode::DuplicateKey, self.message()).with_details(details)
    }

    fn message(&self) -> String {
        let mut text = format!("E11000 duplicate key error collection: {}", self.namespace);
        if let Some(name) = self.index_name {
            let _ = write!(text, " index: {name}");
        }
        if let Some(collation) = self.collation {
            let _ = write!(text, " collation: {collation}");
        }
        let mut shown = DocBuilder::new();
        for (name, value) in self.fields() {
            match self.hexadecimal(value) {
                None => shown.append(name, value),
                Some(digits) if self.collation.is_some() => shown.append(name, &*format!("CollationKey(0x{digits})")),
                Some(digits) => shown.append(name, &*format!("0x{digits}")),
            }
        }
        let _ = write!(text, " dup key: {}", shown.finish());
        text
    }

    fn details(&self) -> DocBuilder {
        let mut details = DocBuilder::new();
        details.append("keyPattern", self.pattern);
        let mut encoded = Vec::new();
        details.document("keyValue", |key_value| {
            for (name, value) in self.fields() {
                let digits = self.hexadecimal(value);
                encoded.push(digits.is_some());
                match digits {
                    None => key_value.append(name, value),
                    Some(digits) => key_value.append(name, &*digits),
                }
            }
        });
        if encoded.contains(&true) {
            details.array("hexEncoded", |array| encoded.iter().for_each(|is_encoded| array.push(*is_encoded)));
        }
        details.append_some("collation", self.collation);
        details
    }

    /// The values under the names of the pattern.
    fn fields(&self) -> impl Iterator<Item = (&'a bstr::BStr, Value<'a>)> {
        self.pattern.elements().zip(self.values.elements()).map(|(field, Element { value, .. })| (field.name, value))
    }

    /// The digits that stand for a string which is no text: a sort key, or bytes that are not UTF-8.
    fn hexadecimal(&self, value: Value<'_>) -> Option<String> {
        let Value::String(text) = value else { return None };
        if self.collation.is_none() && std::str::from_utf8(text).is_ok() {
            return None;
        }
        Some(text.iter().fold(String::with_capacity(2 * text.len()), |mut digits, byte| {
            let _ = write!(digits, "{byte:02x}");
            digits
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::{OwnedValue, doc};
    use pando_keystring::{Discriminator, HeapBuilder};

    fn error_of(specification: Doc, values: Doc) -> Error {
        let descriptor = IndexDescriptor::parse(specification.view()).unwrap();
        let ordering = KeyOrdering::from_pattern(descriptor.key_pattern.view()).unwrap();
        let mut builder = HeapBuilder::new(Version::V1, ordering);
        builder.reset_to_key(values.view(), ordering, Discriminator::Inclusive).unwrap();
        let key = builder.into_key_string();
        let key = Key { bytes: key.bytes(), type_bits: key.type_bits() };
        duplicate_key_error(&Namespace::parse("db.c").unwrap(), &descriptor, key, ordering)
    }

    fn details(error: &Error) -> Doc {
        Doc::parse(error.details().unwrap().to_vec()).unwrap()
    }

    #[test]
    fn u7_duplicates_are_told_as_in_mongodb() {
        let error = error_of(doc! { "key": { "a": 1_i32 }, "name": "a_1", "unique": true }, doc! { "": 1_i32 });
        assert_eq!(error.code().number(), 11000);
        assert_eq!(error.reason(), "E11000 duplicate key error collection: db.c index: a_1 dup key: { a: 1 }");
        assert_eq!(details(&error), doc! { "keyPattern": { "a": 1_i32 }, "keyValue": { "a": 1_i32 } });

        let values = doc! { "": 1.0, "": "x" };
        let error = error_of(doc! { "key": { "a.b": -1_i32, "c": 1_i32 }, "name": "n" }, values);
        assert!(error.reason().ends_with(r#"index: n dup key: { a.b: 1.0, c: "x" }"#), "{error}");
        assert_eq!(details(&error).get("keyValue").unwrap().to_string(), r#"{ a.b: 1.0, c: "x" }"#);
    }

    #[test]
    fn u7_what_is_no_text_is_told_in_hexadecimal() {
        let bad = OwnedValue::from(Value::String(b"\xff1"[..].into()));
        let error = error_of(doc! { "key": { "a": 1_i32 }, "name": "a_1" }, doc! { "": bad.view() });
        assert!(error.reason().ends_with(r#"dup key: { a: "0xff31" }"#), "{error}");
        let expected = doc! { "keyPattern": { "a": 1_i32 }, "keyValue": { "a": "ff31" }, "hexEncoded": [true] };
        assert_eq!(details(&error), expected);

        let specification = doc! { "key": { "a": 1_i32 }, "name": "a_1", "collation": { "locale": "fr" } };
        let error = error_of(specification, doc! { "": "AB" });
        let expected = r#"index: a_1 collation: { locale: "fr" } dup key: { a: "CollationKey(0x4142)" }"#;
        assert!(error.reason().ends_with(expected), "{error}");
        assert_eq!(details(&error).get("collation").unwrap().to_string(), r#"{ locale: "fr" }"#);
    }

    #[test]
    fn u7_cluster_keys_have_no_index_name() {
        let mut builder = HeapBuilder::new(Version::V1, KeyOrdering::ASCENDING);
        builder.append(Value::Int32(7)).unwrap();
        let error = duplicate_cluster_key_error(&Namespace::parse("db.c").unwrap(), "_id", None, builder.bytes());
        let expected = "E11000 duplicate key error collection: db.c dup key: { _id: 7 } found value: {}";
        assert_eq!(error.reason(), expected);
        assert_eq!(details(&error).get("keyValue").unwrap().to_string(), "{ _id: 7 }");
    }
}
