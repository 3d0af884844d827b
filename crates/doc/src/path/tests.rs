//! What paths lead to.

use super::*;
use crate::{Doc, array, doc};
use pando_base::ErrorCode;
use std::ops::ControlFlow;

/// Everything the walk reports, as text: the value or `-`, and the index behind an `@`.
fn walk(doc: &Doc, path: &str, options: PathOptions) -> Vec<String> {
    let mut found = Vec::new();
    let path = FieldPath::lenient(path).unwrap();
    let end = visit_path(doc.view(), &path, options, &mut |visit| {
        let value = visit.value.map_or("-".to_owned(), |value| value.to_string());
        found.push(visit.array_index.map_or(value.clone(), |index| format!("{value}@{index}")));
        ControlFlow::<()>::Continue(())
    });
    assert!(end.is_continue());
    found
}

fn default_walk(doc: &Doc, path: &str) -> Vec<String> {
    walk(doc, path, PathOptions::default())
}

#[test]
fn documents_are_walked_through() {
    let doc = doc! { "a": { "b": { "c": 1 } }, "": { "": 2 }, "x": 5 };
    assert_eq!(default_walk(&doc, "a.b.c"), ["1"]);
    assert_eq!(default_walk(&doc, "a.b"), ["{ c: 1 }"]);
    assert_eq!(default_walk(&doc, "a.z.c"), ["-"]);
    assert_eq!(default_walk(&doc, "x.y"), ["-"]);
    assert_eq!(default_walk(&doc, "."), ["2"]);
}

#[test]
fn arrays_at_the_end_give_their_values_and_themselves() {
    let doc = doc! { "a": [1, [2, 3]], "e": [] };
    assert_eq!(default_walk(&doc, "a"), ["1@0", "[ 2, 3 ]@1", "[ 1, [ 2, 3 ] ]"]);
    let omit = PathOptions { leaf: LeafArrays::TraverseOmitArray, ..PathOptions::default() };
    assert_eq!(walk(&doc, "a", omit), ["1@0", "[ 2, 3 ]@1"]);
    let whole = PathOptions { leaf: LeafArrays::NoTraversal, ..PathOptions::default() };
    assert_eq!(walk(&doc, "a", whole), ["[ 1, [ 2, 3 ] ]"]);
    assert_eq!(default_walk(&doc, "e"), ["[]"]);
}

#[test]
fn arrays_on_the_way_are_expanded() {
    let doc = doc! { "a": [{ "b": 1 }, { "c": 2 }, 3, { "b": [4, 5] }], "e": [], "n": [[{ "b": 6 }]] };
    assert_eq!(default_walk(&doc, "a.b"), ["1@0", "-@1", "4@3", "5@3", "[ 4, 5 ]@3"]);
    assert_eq!(default_walk(&doc, "e.b"), [""; 0]);
    assert_eq!(default_walk(&doc, "n.b"), [""; 0], "an array in an array is not expanded");
    let none = PathOptions { non_leaf: NonLeafArrays::NoTraversal, ..PathOptions::default() };
    assert_eq!(walk(&doc, "a.b", none), [""; 0]);
    let subpath = PathOptions { non_leaf: NonLeafArrays::MatchSubpath, ..PathOptions::default() };
    assert_eq!(walk(&doc, "n.b", subpath), ["[ [ { b: 6 } ] ]"]);
}

#[test]
fn numbers_name_places_and_fields() {
    let doc = doc! { "a": [{ "0": 1 }, 2], "n": [[7, { "b": 8 }], 9], "o": { "0": 3 } };
    assert_eq!(default_walk(&doc, "a.0"), ["1@0", "{ 0: 1 }"]);
    assert_eq!(default_walk(&doc, "a.1"), ["-@0", "2"]);
    assert_eq!(default_walk(&doc, "n.0"), ["[ 7, { b: 8 } ]"], "a named place is not expanded at the end");
    assert_eq!(default_walk(&doc, "n.0.b"), ["8@1"]);
    assert_eq!(default_walk(&doc, "n.0.1.b"), ["-@1", "8"], "the index counts only where the path does not name it");
    assert_eq!(default_walk(&doc, "o.0"), ["3"]);
}

#[test]
fn the_walk_can_be_broken_off() {
    let doc = doc! { "a": [1, 2, 3] };
    let path = FieldPath::lenient("a").unwrap();
    let found = visit_path(doc.view(), &path, PathOptions::default(), &mut |visit| {
        let number = visit.value.and_then(|value| value.to_i64_exact());
        if number == Some(2) { ControlFlow::Break("two") } else { ControlFlow::Continue(()) }
    });
    assert_eq!(found, ControlFlow::Break("two"));
}

#[test]
fn exact_paths() {
    let doc = doc! { "a": { "b": [10, { "c": 11 }] }, "x": array![1] };
    let at = |path: &str| get_path(doc.view(), &FieldPath::lenient(path).unwrap()).map(|value| value.to_string());
    assert_eq!(at("a.b").as_deref(), Some("[ 10, { c: 11 } ]"));
    assert_eq!(at("a.b.0"), None);
    let indexed =
        |path: &str| get_path_with_indexes(doc.view(), &FieldPath::lenient(path).unwrap()).map(|v| v.to_string());
    assert_eq!(indexed("a.b.1.c").as_deref(), Some("11"));
    assert_eq!((indexed("a.b.01"), indexed("a.b.2"), indexed("a.b.-1"), indexed("x.0.y")), (None, None, None, None));
}

#[test]
fn paths_are_checked() {
    let code = |text: &str| FieldPath::parse(text).unwrap_err().code().number();
    assert_eq!([code(""), code("a."), code("a..b"), code("a.$b"), code("a\0b")], [40352, 40353, 15998, 16410, 16411]);
    assert!(FieldPath::parse("a.$id").is_ok());
    let long = vec!["a"; 201].join(".");
    assert_eq!(FieldPath::lenient(&long).unwrap_err().code(), ErrorCode::Overflow);
    let path = FieldPath::parse("a.bc.d").unwrap();
    assert_eq!(path.parts().map(|part| part.to_string()).collect::<Vec<_>>(), ["a", "bc", "d"]);
    assert!(
        FieldPath::parse("a.bc").unwrap().is_prefix_of(&path) && !FieldPath::parse("a.b").unwrap().is_prefix_of(&path)
    );
    assert_eq!(path.join(&FieldPath::parse("x.y").unwrap()).unwrap().to_string(), "a.bc.d.x.y");
}
