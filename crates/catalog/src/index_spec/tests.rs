//! Specifications: names, what is refused, the form that is stored.

use super::*;
use crate::CollectionOptions;
use pando_base::ErrorCode;
use pando_doc::{Doc, doc};

fn code(specification: &Doc) -> Option<ErrorCode> {
    validate_index_spec(specification.view()).err().map(|error| error.code())
}

fn complete(specification: Doc) -> Doc {
    let validated = validate_index_spec(specification.view()).unwrap();
    complete_index_spec(validated.view(), &CollectionOptions::default()).unwrap()
}

#[test]
fn names_are_made_from_keys() {
    let rows = [
        (doc! { "a": 1, "b": -1 }, "a_1_b_-1"),
        (doc! { "a.b": 1.0 }, "a.b_1"),
        (doc! { "loc": "2dsphere", "x": 1_i64 }, "loc_2dsphere_x_1"),
        (doc! { "$**": 1 }, "$**_1"),
        (doc! { "a": 0.5 }, "a_0.5"),
    ];
    for (key, expected) in rows {
        assert_eq!(default_index_name(key.view()), expected);
    }
}

#[test]
fn key_patterns_are_checked() {
    let long = doc! { (&"x".repeat(2048)): 1 };
    let refused = [
        doc! {},
        long,
        doc! { "a": 0 },
        doc! { "a": (f64::NAN) },
        doc! { "a": true },
        doc! { "a": {} },
        doc! { "a": "" },
        doc! { "a": "no such" },
        doc! { "a": "geoHaystack" },
        doc! { "$**": "wildcard" },
        doc! { "a": "hashed", "b": "2d" },
        doc! { "a": "text", "b": (f64::MAX) },
        doc! { "b": 2, "a": "text" },
        doc! { "": 1 },
        doc! { "a..b": 1 },
        doc! { "a.": 1 },
        doc! { "$a": 1 },
        doc! { "a.$b": 1 },
        doc! { "_fts": 1 },
    ];
    for (key, code) in [
        (doc! { "$**": 1, "a.$**": 1 }, 7246201),
        (doc! { "a": "wildcard" }, 7246202),
        (doc! { "a.$**": 1, "a.b": 1 }, 7246204),
        (doc! { "a": "hashed", "c": 1, "b": "hashed" }, 31303),
    ] {
        assert_eq!(validate_key_pattern(key.view()).unwrap_err().code(), ErrorCode::location(code), "{key:?}");
    }
    for key in refused {
        assert_eq!(validate_key_pattern(key.view()).unwrap_err().code(), ErrorCode::CannotCreateIndex, "{key:?}");
    }
    let twice = pando_doc::doc_from_json(r#"{"a": 1, "a": -1}"#).unwrap();
    assert_eq!(validate_key_pattern(twice.view()).unwrap_err().code(), ErrorCode::BadValue);
    let accepted = [
        doc! { "a": 1, "b": -1.5 },
        doc! { "a.$id": 1 },
        doc! { "$**": 1 },
        doc! { "a.$**": -1, "b": 1 },
        doc! { "$**": "text" },
        doc! { "a": "text", "b": 1 },
    ];
    for key in accepted {
        validate_key_pattern(key.view()).unwrap_or_else(|error| panic!("{key:?}: {error}"));
    }
}

#[test]
fn specifications_are_checked() {
    let key = doc! { "a": 1 };
    let with = |more: Doc| {
        let mut builder = pando_doc::DocBuilder::new();
        builder.append("key", &key);
        builder.append("name", "a_1");
        more.elements().for_each(|element| builder.append_element(element));
        builder.finish()
    };
    let rows = [
        (doc! { "key": { "a": 1 } }, ErrorCode::FailedToParse),
        (doc! { "name": "a" }, ErrorCode::FailedToParse),
        (doc! { "key": 1, "name": "a" }, ErrorCode::TypeMismatch),
        (doc! { "key": { "a": 1 }, "name": 1 }, ErrorCode::TypeMismatch),
        (doc! { "key": { "a": 1 }, "name": "" }, ErrorCode::CannotCreateIndex),
        (doc! { "key": { "a": 1 }, "name": "*" }, ErrorCode::BadValue),
        (with(doc! { "more": 1 }), ErrorCode::InvalidIndexSpecificationOption),
        (with(doc! { "v": 3 }), ErrorCode::CannotCreateIndex),
        (with(doc! { "v": 0 }), ErrorCode::CannotCreateIndex),
        (with(doc! { "v": 1.5 }), ErrorCode::BadValue),
        (with(doc! { "v": "2" }), ErrorCode::TypeMismatch),
        (with(doc! { "unique": "yes" }), ErrorCode::TypeMismatch),
        (with(doc! { "hidden": 1 }), ErrorCode::TypeMismatch),
        (with(doc! { "unique": true, "prepareUnique": true }), ErrorCode::CannotCreateIndex),
        (with(doc! { "sparse": true, "partialFilterExpression": {} }), ErrorCode::CannotCreateIndex),
        (with(doc! { "partialFilterExpression": 1 }), ErrorCode::TypeMismatch),
        (with(doc! { "collation": {} }), ErrorCode::BadValue),
        (with(doc! { "collation": { "locale": "fr" }, "v": 1 }), ErrorCode::CannotCreateIndex),
        (with(doc! { "weights": { "a": 1 } }), ErrorCode::CannotCreateIndex),
        (with(doc! { "wildcardProjection": { "a": 1 } }), ErrorCode::BadValue),
        (with(doc! { "expireAfterSeconds": "x" }), ErrorCode::CannotCreateIndex),
        (with(doc! { "expireAfterSeconds": -1 }), ErrorCode::CannotCreateIndex),
        (with(doc! { "expireAfterSeconds": (1_i64 << 40) }), ErrorCode::CannotCreateIndex),
        (doc! { "key": { "a": 1, "b": 1 }, "name": "x", "expireAfterSeconds": 1 }, ErrorCode::CannotCreateIndex),
        (doc! { "key": { "a": "hashed" }, "name": "x", "unique": true }, ErrorCode::location(16764)),
        (doc! { "key": { "$**": 1 }, "name": "x", "sparse": true }, ErrorCode::CannotCreateIndex),
        (doc! { "key": { "$**": 1, "b": 1 }, "name": "x" }, ErrorCode::CannotCreateIndex),
        (doc! { "key": { "a": "2d" }, "name": "x", "collation": { "locale": "fr" } }, ErrorCode::CannotCreateIndex),
    ];
    for (specification, expected) in rows {
        assert_eq!(code(&specification), Some(expected), "{specification:?}");
    }
    for specification in
        [with(doc! { "v": 1 }), with(doc! { "sparse": 12345 }), with(doc! { "expireAfterSeconds": 10.23 })]
    {
        assert_eq!(code(&specification), None, "{specification:?}");
    }
}

#[test]
fn the_stored_form_has_version_key_and_name_first() {
    let stored =
        complete(doc! { "name": "a_1", "unique": 1, "hidden": false, "ns": "x.y", "key": { "a": 1 }, "sparse": 12345 });
    assert_eq!(stored, doc! { "v": 2, "key": { "a": 1 }, "name": "a_1", "unique": true, "sparse": 12345 });
    let inactive = complete(doc! { "key": { "a": 1 }, "name": "a_1", "expireAfterSeconds": (f64::NAN) });
    assert_eq!(inactive, doc! { "v": 2, "key": { "a": 1 }, "name": "a_1", "expireAfterSeconds": (i32::MAX) });
    let id = complete(doc! { "key": { "_id": 1.0 }, "name": "other" });
    assert_eq!(id, doc! { "v": 2, "key": { "_id": 1 }, "name": "_id_" });
    let sphere = complete(doc! { "key": { "a": "2dsphere" }, "name": "s" });
    assert_eq!(sphere, doc! { "v": 2, "key": { "a": "2dsphere" }, "name": "s", "2dsphereIndexVersion": 3 });
}

#[test]
fn text_indexes_are_brought_into_form() {
    let text =
        complete(doc! { "key": { "x": 1, "b": "text", "a": "text", "y": -1 }, "name": "t", "weights": { "b": 5 } });
    let expected = doc! {
        "v": 2, "key": { "x": 1, "_fts": "text", "_ftsx": 1, "y": -1 }, "name": "t", "weights": { "a": 1, "b": 5 },
        "default_language": "english", "language_override": "language", "textIndexVersion": 3,
    };
    assert_eq!(text, expected);
    // What is in form stays as it is.
    assert_eq!(complete(text.clone()), text);
}

#[test]
fn collations_come_from_the_collection_and_the_simple_one_is_not_written() {
    let options = CollectionOptions { collation: Some(doc! { "locale": "fr" }), ..CollectionOptions::default() };
    let on = |specification: Doc| complete_index_spec(specification.view(), &options).unwrap();
    let inherited = on(doc! { "v": 2, "key": { "a": 1 }, "name": "a_1" });
    assert_eq!(inherited.get("collation"), doc! { "x": { "locale": "fr" } }.get("x"));
    let simple = on(doc! { "v": 2, "key": { "a": 1 }, "name": "a_1", "collation": { "locale": "simple" } });
    assert_eq!(simple.get("collation"), None);
    assert_eq!(default_id_index_spec(&options).get("collation"), inherited.get("collation"));
    // Kinds without a collation do not inherit one: it has to be said that they have the simple one.
    for kind in ["text", "2d"] {
        let plain = doc! { "v": 2, "key": { "a": kind }, "name": "a" };
        let refused = complete_index_spec(plain.view(), &options).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::CannotCreateIndex);
        let simple = on(doc! { "v": 2, "key": { "a": kind }, "name": "a", "collation": { "locale": "simple" } });
        assert_eq!(simple.get("collation"), None);
    }
}

#[test]
fn the_id_index_takes_few_options() {
    let check = |specification: Doc| validate_id_index_spec(specification.view()).map_err(|error| error.code());
    assert_eq!(check(doc! { "key": { "_id": 1 }, "name": "_id_", "v": 2 }), Ok(()));
    assert_eq!(check(doc! { "key": { "_id": -1 }, "name": "_id_" }), Err(ErrorCode::BadValue));
    assert_eq!(check(doc! { "key": { "_id": 1 }, "hidden": true }), Err(ErrorCode::BadValue));
    let sparse = doc! { "key": { "_id": 1 }, "sparse": true };
    assert_eq!(check(sparse), Err(ErrorCode::InvalidIndexSpecificationOption));
}
