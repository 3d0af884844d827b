//! Keys as they are known from MongoDB, case by case.

use super::*;
use pando_base::{ErrorCode, Timestamp};
use pando_doc::Collator;
use pando_doc::{Doc, ObjectId, Value, doc, doc_from_json};
use pando_keystring::{Version, to_doc};
use proptest::prelude::*;
use std::sync::Arc;

/// A document from extended JSON.
fn json(text: &str) -> Doc {
    doc_from_json(text).unwrap()
}

fn generator(pattern: &str, sparse: bool) -> KeyGenerator {
    KeyGenerator::new(json(pattern).view(), sparse, None).unwrap()
}

/// The keys and the array parts, as text.
fn shown(generator: &KeyGenerator, doc: &Doc) -> String {
    let mut keys = KeySet::new();
    if let Err(error) = generator.keys(doc.view(), &mut keys) {
        assert!(keys.is_empty());
        return format!("{}: {}", error.code().number(), error.reason());
    }
    let texts: Vec<String> = keys
        .iter()
        .map(|key| to_doc(key.bytes, generator.ordering(), key.type_bits, Version::V1).unwrap().to_string())
        .collect();
    assert!(keys.iter().zip(keys.iter().skip(1)).all(|(a, b)| a.bytes < b.bytes), "sorted, each once");
    check_short_way(generator, doc, &keys);
    let paths: Vec<Vec<usize>> = keys.multikey_paths().iter().map(|field| field.iter().collect()).collect();
    format!("{} {paths:?}", texts.join(" "))
}

/// The short way for documents without arrays gives what the long way would.
fn check_short_way(generator: &KeyGenerator, doc: &Doc, keys: &KeySet) {
    let Kind::Btree(btree) = &generator.kind else { return };
    let mut long_way = KeySet::new();
    long_way.track_paths(btree.paths.len());
    if btree.paths.iter().all(|path| path.text() != "_id") {
        super::expand::Expansion::new(btree).run(doc.view(), &mut long_way).unwrap();
        long_way.sort();
        assert!(keys.same_keys(&long_way), "{doc}");
        assert_eq!(keys.multikey_paths(), long_way.multikey_paths(), "{doc}");
    }
}

/// Pattern, document, expected keys and array parts.
fn check(pattern: &str, doc: &str, expected: &str) {
    assert_eq!(shown(&generator(pattern, false), &json(doc)), expected, "{pattern} of {doc}");
}

fn check_sparse(pattern: &str, doc: &str, expected: &str) {
    assert_eq!(shown(&generator(pattern, true), &json(doc)), expected, "sparse {pattern} of {doc}");
}

#[test]
fn u7_single_values() {
    check(r#"{"a": 1}"#, r#"{"b": 4, "a": 5}"#, "{ : 5 } [[]]");
    check(r#"{"a": 1}"#, r#"{"b": 4}"#, "{ : null } [[]]");
    check(r#"{"a": 1}"#, r#"{"a": null}"#, "{ : null } [[]]");
    check(r#"{"a": 1}"#, r#"{"a": {"b": 1}}"#, "{ : { b: 1 } } [[]]");
    check(r#"{"a.b": 1}"#, r#"{"a": {"b": 4}, "c": 1}"#, "{ : 4 } [[]]");
    check(r#"{"a.b": 1}"#, r#"{"a": 4}"#, "{ : null } [[]]");
    check(r#"{"a.b.c": -1}"#, r#"{"a": {"b": {"c": "x"}}}"#, r#"{ : "x" } [[]]"#);
    check(r#"{"a": 1, "b": -1}"#, r#"{"b": 2, "a": 1}"#, "{ : 1, : 2 } [[], []]");
    check(r#"{"_id": 1}"#, r#"{"a": 1, "_id": {"x": [1]}}"#, "{ : { x: [ 1 ] } } [[]]");
    check(r#"{"_id": 1}"#, r#"{"a": 1}"#, "{ : null } [[]]");
}

#[test]
fn u7_arrays_have_a_key_for_each_value() {
    check(r#"{"a": 1}"#, r#"{"a": [1, 2, 3, 2]}"#, "{ : 1 } { : 2 } { : 3 } [[0]]");
    check(r#"{"a": 1}"#, r#"{"a": [3]}"#, "{ : 3 } [[0]]");
    check(r#"{"a": -1}"#, r#"{"a": [1, 2]}"#, "{ : 2 } { : 1 } [[0]]");
    check(r#"{"a": 1}"#, r#"{"a": [1, null, {"b": 1}]}"#, "{ : null } { : 1 } { : { b: 1 } } [[0]]");
    check(r#"{"a": 1, "b": 1}"#, r#"{"a": [1, 2], "b": 5}"#, "{ : 1, : 5 } { : 2, : 5 } [[0], []]");
    check(r#"{"a.b": 1}"#, r#"{"a": [{"b": 1}, {"b": 2}, {"c": 3}, 4]}"#, "{ : null } { : 1 } { : 2 } [[0]]");
    check(r#"{"a.b": 1}"#, r#"{"a": {"b": [1, 2]}}"#, "{ : 1 } { : 2 } [[1]]");
    check(r#"{"a.b": 1}"#, r#"{"a": [{"b": [1, 2]}, {"b": 3}]}"#, "{ : 1 } { : 2 } { : 3 } [[0, 1]]");
    check(
        r#"{"a.b": 1, "a.c": 1}"#,
        r#"{"a": [{"b": 1, "c": 2}, {"b": 3}]}"#,
        "{ : 1, : 2 } { : 3, : null } [[0], [0]]",
    );
    check(r#"{"a.b": 1, "d": 1}"#, r#"{"a": [{"b": 1}, {"b": 1}], "d": 9}"#, "{ : 1, : 9 } [[0], []]");
}

#[test]
fn u7_empty_arrays_are_undefined() {
    check(r#"{"a": 1}"#, r#"{"a": []}"#, "{ : undefined } [[0]]");
    check(r#"{"a": 1, "b": 1}"#, r#"{"a": [], "b": 1}"#, "{ : undefined, : 1 } [[0], []]");
    check(r#"{"a.b": 1}"#, r#"{"a": []}"#, "{ : null } [[0]]");
    check(r#"{"a.b": 1, "a.c": 1}"#, r#"{"a": []}"#, "{ : null, : null } [[0], [0]]");
    check(r#"{"a.b": 1}"#, r#"{"a": [{"b": []}, {"b": 1}]}"#, "{ : undefined } { : 1 } [[0, 1]]");
    check(r#"{"a": 1, "a.b": 1}"#, r#"{"a": []}"#, "{ : undefined, : null } [[0], [0]]");
}

#[test]
fn u7_arrays_inside_arrays_are_taken_whole() {
    check(r#"{"a": 1}"#, r#"{"a": [[1, 2], 3]}"#, "{ : 3 } { : [ 1, 2 ] } [[0]]");
    check(r#"{"a": 1}"#, r#"{"a": [[]]}"#, "{ : [] } [[0]]");
    check(r#"{"a.b": 1}"#, r#"{"a": [[{"b": 1}]]}"#, "{ : null } [[0]]");
    check(r#"{"a": 1, "a.b": 1}"#, r#"{"a": [{"b": 1}]}"#, "{ : { b: 1 }, : 1 } [[0], [0]]");
}

#[test]
fn u7_numbers_in_paths_choose_a_place() {
    check(r#"{"a.0": 1}"#, r#"{"a": [5, 6]}"#, "{ : 5 } [[]]");
    check(r#"{"a.2": 1}"#, r#"{"a": [5, 6]}"#, "{ : null } [[0]]");
    check(r#"{"a.0": 1}"#, r#"{"a": {"0": 7}}"#, "{ : 7 } [[]]");
    check(r#"{"a.0.b": 1}"#, r#"{"a": [{"b": 1}, {"b": 2}]}"#, "{ : 1 } [[]]");
    check(r#"{"a.0.b": 1}"#, r#"{"a": [{"b": [3, 4]}]}"#, "{ : 3 } { : 4 } [[2]]");
    check(
        r#"{"a.0": 1}"#,
        r#"{"a": [{"0": 1}]}"#,
        "16746: Ambiguous field name found in array (do not use numeric field names in embedded elements in an array), field: '0' for array: { 0: { 0: 1 } }",
    );
    check(r#"{"a.0": 1}"#, r#"{"a": [[1, 2], 3]}"#, "{ : [ 1, 2 ] } [[]]");
    check(r#"{"a.0.0": 1}"#, r#"{"a": [[5]]}"#, "{ : 5 } [[]]");
    check(r#"{"a.b": 1, "a.b.0": 1}"#, r#"{"a": {"b": [1, 2]}}"#, "{ : 1, : 1 } { : 2, : 1 } [[1], []]");
    check(r#"{"a.1": 1}"#, r#"{"a": [{"0": 5, "1": 6}]}"#, "{ : 6 } [[0]]");
}

#[test]
fn u7_parallel_arrays_are_refused() {
    let refused = "171: cannot index parallel arrays [b] [a]";
    check(r#"{"a": 1, "b": 1}"#, r#"{"a": [1], "b": [2]}"#, refused);
    check(r#"{"a": 1, "b": 1}"#, r#"{"a": [], "b": []}"#, refused);
    check(r#"{"x.a": 1, "x.b": 1}"#, r#"{"x": [{"a": [1, 2], "b": [3]}]}"#, refused);
    check(r#"{"x.a": 1, "x.b": 1}"#, r#"{"x": [{"a": [1, 2], "b": 3}]}"#, "{ : 1, : 3 } { : 2, : 3 } [[0, 1], [0]]");
}

#[test]
fn u7_sparse_leaves_out_documents_without_any_field() {
    check_sparse(r#"{"a": 1}"#, r#"{"b": 1}"#, " [[]]");
    check_sparse(r#"{"a": 1}"#, r#"{"a": null}"#, "{ : null } [[]]");
    check_sparse(r#"{"a": 1, "b": 1}"#, r#"{"b": 1}"#, "{ : null, : 1 } [[], []]");
    check_sparse(r#"{"a.b": 1}"#, r#"{"a": [{"c": 1}, {"b": 2}]}"#, "{ : 2 } [[0]]");
    check_sparse(r#"{"a.b": 1}"#, r#"{"a": [1, 2]}"#, " [[0]]");
    check_sparse(r#"{"a": 1}"#, r#"{"a": []}"#, "{ : undefined } [[0]]");
}

#[test]
fn u7_every_type_can_be_indexed() {
    let generator = generator(r#"{"a": 1}"#, false);
    let values = [
        Value::MinKey,
        Value::Undefined,
        Value::Bool(true),
        Value::DateTime(5),
        Value::Timestamp(Timestamp(7)),
        Value::ObjectId(ObjectId::from_bytes([1; 12])),
        Value::Binary { subtype: 0, bytes: &[1, 2] },
        Value::Symbol("s".into()),
        Value::Code("f".into()),
        Value::MaxKey,
    ];
    for value in values {
        let mut keys = KeySet::new();
        generator.keys(doc! { "a": value }.view(), &mut keys).unwrap();
        let key = keys.iter().next().unwrap();
        let decoded = to_doc(key.bytes, generator.ordering(), key.type_bits, Version::V1).unwrap();
        assert_eq!(decoded.elements().next().unwrap().value, value);
    }
}

#[test]
fn u7_hashed_keys_are_hashes() {
    let generator = generator(r#"{"a": "hashed"}"#, false);
    assert_eq!(shown(&generator, &json(r#"{"a": 42}"#)), "{ : -944302157085130861 } []");
    assert_eq!(shown(&generator, &json(r#"{"b": 1}"#)), shown(&generator, &json(r#"{"a": null}"#)));
    let compound = self::generator(r#"{"b": -1, "a.c": "hashed"}"#, true);
    assert_eq!(shown(&compound, &json(r#"{"b": "x", "a": {"c": 42}}"#)), r#"{ : "x", : -944302157085130861 } []"#);
    assert_eq!(shown(&compound, &json(r#"{"c": 1}"#)), " []");
    let refused = "16766: Error: hashed indexes do not currently support array values. Found array at path: ";
    assert_eq!(shown(&compound, &json(r#"{"a": [{"c": 1}]}"#)), format!("{refused}a"));
    assert_eq!(shown(&compound, &json(r#"{"b": [], "a": 1}"#)), format!("{refused}b"));
    assert_eq!(shown(&compound, &json(r#"{"a": {"c": [1]}}"#)), format!("{refused}a.c"));
    let mut keys = KeySet::new();
    compound.keys_for(json(r#"{"a": [{"c": 1}]}"#).view(), Purpose::Removing, &mut keys).unwrap();
    assert_eq!(keys.len(), 1);
}

#[test]
fn u7_other_kinds_say_that_they_are_missing() {
    for (pattern, name) in
        [(r#"{"a": "text"}"#, "text"), (r#"{"a": "2dsphere"}"#, "2dsphere"), (r#"{"a": "2d", "b": 1}"#, "2d")]
    {
        let error = KeyGenerator::new(json(pattern).view(), false, None).err().unwrap();
        assert_eq!(error.code(), ErrorCode::CannotCreateIndex);
        assert!(error.reason().contains(&format!("'{name}'")), "{error}");
    }
}

#[test]
fn u7_differences_see_values_and_types() {
    let generator = generator(r#"{"a": 1}"#, false);
    let keys_of = |doc: &str| {
        let mut keys = KeySet::new();
        generator.keys(json(doc).view(), &mut keys).unwrap();
        keys
    };
    let (old, new) = (keys_of(r#"{"a": [1, 2, 4]}"#), keys_of(r#"{"a": [2, 3, 4.0]}"#));
    let text = |keys: &KeySet, other: &KeySet| {
        let key_text =
            |key: Key<'_>| to_doc(key.bytes, generator.ordering(), key.type_bits, Version::V1).unwrap().to_string();
        keys.difference(other).map(key_text).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(text(&old, &new), "{ : 1 } { : 4 }");
    assert_eq!(text(&new, &old), "{ : 3 } { : 4.0 }");
    assert!(old.same_keys(&keys_of(r#"{"a": [4, 2, 1, 1], "b": 1}"#)) && !old.same_keys(&new));
}

/// Does not care about case.
struct CaseBlind;

impl pando_doc::StringComparator for CaseBlind {
    fn compare(&self, left: &bstr::BStr, right: &bstr::BStr) -> std::cmp::Ordering {
        self.equality_key(left).cmp(&self.equality_key(right))
    }

    fn equality_key(&self, text: &bstr::BStr) -> Vec<u8> {
        text.to_ascii_lowercase()
    }
}

impl Collator for CaseBlind {
    fn sort_key(&self, text: &bstr::BStr) -> Vec<u8> {
        text.to_ascii_lowercase()
    }

    fn specification(&self) -> &Doc {
        static NONE: std::sync::LazyLock<Doc> = std::sync::LazyLock::new(Doc::new);
        &NONE
    }
}

#[test]
fn u7_collations_replace_strings_by_their_sort_keys() {
    for pattern in [r#"{"a": 1}"#, r#"{"a": "hashed"}"#, r#"{"_id": 1}"#] {
        let generator = KeyGenerator::new(json(pattern).view(), false, Some(Arc::new(CaseBlind))).unwrap();
        let keys_of = |doc: &Doc| {
            let mut keys = KeySet::new();
            generator.keys(doc.view(), &mut keys).map(|()| keys)
        };
        let upper = keys_of(&json(r#"{"_id": "ABC", "a": {"x": "ABC"}}"#)).unwrap();
        let lower = keys_of(&json(r#"{"_id": "abc", "a": {"x": "abC"}}"#)).unwrap();
        assert!(upper.same_keys(&lower), "{pattern}");
        let symbol = keys_of(&doc! { "_id": Value::Symbol("s".into()), "a": Value::Symbol("s".into()) });
        assert_eq!(symbol.unwrap_err().code(), ErrorCode::CannotBuildIndexKeys);
    }
}

/// JSON of small values with few names, numbers among them.
fn any_value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![Just("1".to_owned()), Just("null".to_owned()), Just(r#""x""#.to_owned())];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let name = prop_oneof![Just("a"), Just("b"), Just("0"), Just("1")];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|values| format!("[{}]", values.join(", "))),
            prop::collection::btree_map(name, inner, 0..3).prop_map(|fields| {
                let fields: Vec<String> = fields.iter().map(|(name, value)| format!(r#""{name}": {value}"#)).collect();
                format!("{{{}}}", fields.join(", "))
            }),
        ]
    })
}

fn any_path() -> impl Strategy<Value = String> {
    prop::collection::vec(prop_oneof![Just("a"), Just("b"), Just("0"), Just("1")], 1..4)
        .prop_map(|parts| parts.join("."))
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: proptest::test_runner::RngSeed::Fixed(7), failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    /// Keys are sorted and unique, both ways agree, a change of what is beside the path changes nothing, and a document
    /// without arrays has one key at most.
    #[test]
    fn u7_random_documents_have_sound_keys(
        first in any_path(), second in any_path(), sparse in any::<bool>(), a in any_value(), b in any_value(),
    ) {
        let second = if first == second { String::new() } else { format!(r#", "{second}": -1"#) };
        let pattern = json(&format!(r#"{{"{first}": 1{second}}}"#));
        let generator = KeyGenerator::new(pattern.view(), sparse, None).unwrap();
        let text = format!(r#"{{"a": {a}, "b": {b}}}"#);
        let plain = shown(&generator, &json(&text));
        let beside = shown(&generator, &json(&format!(r#"{{"z": [1], "a": {a}, "y": {{}}, "b": {b}}}"#)));
        prop_assert_eq!(&plain, &beside);
        let mut keys = KeySet::new();
        if generator.keys(json(&text).view(), &mut keys).is_ok() {
            prop_assert!(sparse || !keys.is_empty());
            prop_assert!(text.contains('[') || (keys.len() <= 1 && !keys.is_multikey()));
            // Positions chosen by number make no index multikey; so one key says nothing, but several do.
            prop_assert!(keys.len() <= 1 || keys.multikey_paths().iter().any(|parts| !parts.is_empty()));
        } else {
            prop_assert!(plain.starts_with("171:") || plain.starts_with("16746:"));
        }
    }
}

#[test]
fn u7_text_indexes_have_a_key_for_each_term() {
    let specification = json(r#"{"weights": {"a": 1, "t": 2}, "default_language": "english"}"#);
    let pattern = json(r#"{"x": 1, "_fts": "text", "_ftsx": 1, "y.z": -1}"#);
    let generator = KeyGenerator::text(pattern.view(), specification.view()).unwrap();
    let mut keys = KeySet::new();
    generator.keys(json(r#"{"x": 5, "a": "running dogs", "t": "the dog", "y": {"z": 7}}"#).view(), &mut keys).unwrap();
    let mut expected = KeySet::new();
    for (term, score) in [("dog", 0.75 + 2.0), ("run", 0.75)] {
        expected.begin(generator.ordering());
        for value in [Value::Int32(5), Value::String(term.into()), Value::Double(score), Value::Int32(7)] {
            expected.append(value, None).unwrap();
        }
        expected.end();
    }
    assert!(keys.same_keys(&expected));
    generator.keys(json(r#"{"x": 5, "b": "other"}"#).view(), &mut keys).unwrap();
    assert!(keys.is_empty());
    let refused = generator.keys(json(r#"{"x": [1], "a": "dog"}"#).view(), &mut keys).unwrap_err();
    assert_eq!(refused.code(), ErrorCode::CannotBuildIndexKeys);
}
