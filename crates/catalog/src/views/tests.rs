//! Views: reading, resolving, and what the graph refuses.

use super::*;
use pando_base::{DatabaseName, ErrorCode, Namespace};
use pando_doc::{Array, Doc, array, doc};

fn name(collection: &str) -> Namespace {
    Namespace::of("test", collection).unwrap()
}

fn view(view: &str, on: &str, pipeline: Array) -> ViewDefinition {
    ViewDefinition { namespace: name(view), view_on: name(on), pipeline, collation: None }
}

fn chain(length: usize) -> ViewCatalog {
    (0..length).fold(ViewCatalog::default(), |catalog, i| {
        let on = if i == 0 { "base".to_owned() } else { format!("v{}", i - 1) };
        catalog.with(view(&format!("v{i}"), &on, array![{ "$match": { "i": (i as i32) } }])).unwrap()
    })
}

#[test]
fn u9_pipelines_are_joined_from_the_bottom() {
    let resolved = chain(3).resolve(&name("v2")).unwrap().unwrap();
    assert_eq!(resolved.namespace, name("base"));
    let expected = array![{ "$match": { "i": 0 } }, { "$match": { "i": 1 } }, { "$match": { "i": 2 } }];
    assert_eq!(resolved.pipeline, expected);
    assert_eq!(resolved.chain, ["v2", "v1", "v0", "base"].map(name));
    assert!(chain(1).resolve(&name("base")).unwrap().is_none());
}

#[test]
fn u9_depth_is_limited() {
    let deepest = chain(VIEW_DEPTH_MAX);
    assert!(deepest.resolve(&name("v19")).unwrap().is_some());
    let error = deepest.with(view("v20", "v19", array![])).unwrap_err();
    assert_eq!(error.code(), ErrorCode::ViewDepthLimitExceeded);
    // Also from below: a new bottom under the chain.
    let error = deepest.with(view("base", "lower", array![])).unwrap_err();
    assert_eq!(error.code(), ErrorCode::ViewDepthLimitExceeded);
}

#[test]
fn u9_circles_are_refused_also_through_stages() {
    let two = chain(2);
    let error = two.with(view("base", "v1", array![])).unwrap_err();
    assert_eq!(error.code(), ErrorCode::GraphContainsCycle);
    assert_eq!(error.reason(), "View cycle detected: test.base => test.v0 => test.v1 => test.base");
    let lookup = array![{ "$facet": { "x": [{ "$lookup": { "from": "v1", "as": "y" } }] } }];
    assert_eq!(two.with(view("base", "lower", lookup)).unwrap_err().code(), ErrorCode::GraphContainsCycle);
    let own = two.with(view("v5", "v5", array![])).unwrap_err();
    assert_eq!(own.code(), ErrorCode::GraphContainsCycle);
    // Changing a view is no circle with its former self.
    assert!(two.with(view("v1", "other", array![])).is_ok());
}

#[test]
fn u9_a_circle_written_by_hand_ends_a_resolution() {
    let database = DatabaseName::new("test").unwrap();
    let documents = [
        doc! { "_id": "test.a", "viewOn": "b", "pipeline": [] },
        doc! { "_id": "test.b", "viewOn": "a", "pipeline": [] },
    ];
    let catalog = ViewCatalog::read(&database, documents.iter().map(Doc::view));
    assert_eq!(catalog.resolve(&name("a")).unwrap_err().code(), ErrorCode::ViewDepthLimitExceeded);
}

#[test]
fn u9_pipelines_do_not_refer_to_views_that_are_too_deep() {
    let catalog = chain(VIEW_DEPTH_MAX);
    let names: Vec<String> = catalog.iter().map(|view| view.namespace.collection().to_owned()).collect();
    let check = |name: &str| catalog.check_pipeline(&self::name("base"), [doc! { "$unionWith": name }.view()]);
    let refused = names.iter().filter(|name| check(name).is_err()).count();
    assert_eq!(refused, 1, "only the one above all others");
    assert!(check("base").is_ok());
}

#[test]
fn u9_collations_and_sizes_must_fit() {
    let mut french = view("fr", "v0", array![]);
    french.collation = Some(doc! { "locale": "fr" });
    assert_eq!(chain(1).with(french).unwrap_err().code(), ErrorCode::OptionNotSupportedOnView);
    let big = "x".repeat(VIEW_PIPELINE_BYTES_MAX / 2);
    let half = |name: &str, on: &str| view(name, on, array![{ "$match": { "x": (big.as_str()) } }]);
    let one = ViewCatalog::default().with(half("one", "base")).unwrap();
    assert_eq!(one.with(half("two", "one")).unwrap_err().code(), ErrorCode::ViewPipelineMaxSizeExceeded);
}

#[test]
fn u9_definitions_read_back_and_damage_is_told() {
    let database = DatabaseName::new("test").unwrap();
    let written = view("v", "base", array![{ "$limit": 1 }]).to_doc();
    assert_eq!(written, doc! { "_id": "test.v", "viewOn": "base", "pipeline": [{ "$limit": 1 }] });
    assert_eq!(ViewDefinition::parse(&database, written.view()).unwrap(), view("v", "base", array![{ "$limit": 1 }]));
    let damaged = [
        doc! { "_id": "test.w", "viewOn": "base" },
        doc! { "_id": "other.w", "viewOn": "base", "pipeline": [] },
        doc! { "_id": "test.w", "viewOn": "base", "pipeline": [1] },
        doc! { "_id": "test.w", "viewOn": "base", "pipeline": [], "more": 1 },
    ];
    for damaged in damaged {
        let catalog = ViewCatalog::read(&database, [written.view(), damaged.view()]);
        assert_eq!(catalog.resolve(&name("v")).unwrap_err().code(), ErrorCode::InvalidViewDefinition, "{damaged:?}");
        assert_eq!(catalog.iter().count(), 1);
    }
}

#[test]
fn u9_references_are_found_in_nested_pipelines() {
    let pipeline = array![
        { "$lookup": { "from": "a", "pipeline": [{ "$unionWith": "b" }] } },
        { "$graphLookup": { "from": "c" } },
        { "$unionWith": { "coll": "d", "pipeline": [{ "$lookup": { "from": "e" } }] } },
        { "$facet": { "x": [{ "$unionWith": "f" }] } },
        { "$match": { "from": "g" } },
    ];
    assert_eq!(referenced_collections(pipeline.view()), ["a", "b", "c", "d", "e", "f"]);
}
