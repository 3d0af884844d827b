//! What the golden tables cannot say: which paths a projection needs.

use super::*;
use pando_doc::doc;

fn parse(spec: Doc) -> Projection {
    Projection::parse(spec.view(), ProjectionPolicies::FIND, &ParseContext::default()).unwrap()
}

#[test]
fn u4_needed_paths() {
    let paths = |spec: Doc| parse(spec).paths().map(|paths| paths.iter().map(ToString::to_string).collect::<Vec<_>>());
    let some = |paths: &[&str]| Some(paths.iter().map(ToString::to_string).collect::<Vec<_>>());
    assert_eq!(paths(doc! { "a": 1, "b.c": 1, "_id": 0 }), some(&["a", "b.c"]));
    assert_eq!(paths(doc! { "a": 1 }), some(&["a", "_id"]));
    assert_eq!(paths(doc! { "x": { "$add": ["$a", "$b"] }, "_id": 0 }), some(&["a", "b"]));
    assert_eq!(paths(doc! { "a": 0 }), None);
    assert_eq!(paths(doc! { "x": "$$ROOT" }), None);
}

#[test]
fn u4_simple_inclusions_are_recognised() {
    assert!(parse(doc! { "a": 1, "b.c": 1, "_id": 0 }).is_simple_inclusion());
    assert!(!parse(doc! { "a": 1, "b": "$c" }).is_simple_inclusion());
    assert!(!parse(doc! { "a": 0 }).is_simple_inclusion());
    assert!(!parse(doc! { "a.$": 1 }).is_simple_inclusion());
    assert!(parse(doc! {}).is_identity());
    assert!(!parse(doc! { "_id": 0 }).is_identity());
}
