//! Finding: each access path, order, limits, projection.

use super::support::*;
use crate::request::Hint;
use pando_doc::{Doc, doc};

#[test]
fn u3_find_by_id_is_a_look_up() {
    let fixture = Fixture::new(&[]);
    fixture.insert(&[doc! { "_id": 1, "a": 10 }, doc! { "_id": 2, "a": 20 }]);
    let (found, stages) = fixture.find_with_summary(&fixture.request(doc! { "_id": 2 })).unwrap();
    assert_eq!((found, stages.as_str()), (vec![doc! { "_id": 2, "a": 20 }], "IDHACK"));
    assert!(fixture.find(&fixture.request(doc! { "_id": 3 })).unwrap().is_empty());
    let mut projected = fixture.request(doc! { "_id": 2.0 });
    projected.projection = doc! { "a": 1, "_id": 0 };
    assert_eq!(fixture.find(&projected).unwrap(), vec![doc! { "a": 20 }]);
}

#[test]
fn u3_filters_scan_the_collection_or_an_index() {
    let fixture = Fixture::new(&[index(doc! { "a": 1, "b": -1 })]);
    let documents: Vec<Doc> = (0..50).map(|n| doc! { "_id": n, "a": n % 5, "b": n / 5, "c": n % 3 }).collect();
    fixture.insert(&documents);
    let run = |filter: Doc| {
        let (found, stages) = fixture.find_with_summary(&fixture.request(filter)).unwrap();
        (found.len(), stages)
    };
    assert_eq!(run(doc! { "c": 1 }), (17, "COLLSCAN".into()));
    assert_eq!(run(doc! { "a": 3 }), (10, "FETCH(IXSCAN)".into()));
    assert_eq!(run(doc! { "a": 3, "b": { "$gte": 2, "$lt": 6 } }), (4, "FETCH(IXSCAN)".into()));
    assert_eq!(run(doc! { "a": { "$in": [1, 4] }, "b": { "$gt": 7 } }), (4, "FETCH(IXSCAN)".into()));
    assert_eq!(run(doc! { "$or": [{ "a": 3 }, { "a": 4, "b": 1 }] }), (11, "FETCH(OR(IXSCAN,IXSCAN))".into()));
    assert_eq!(run(doc! { "a": { "$ne": 3 } }).0, 40);
    assert_eq!(run(doc! { "$alwaysFalse": 1 }), (0, "EOF".into()));
}

#[test]
fn u3_order_comes_from_an_index_or_a_sort() {
    let fixture = Fixture::new(&[index(doc! { "a": 1, "b": -1 })]);
    let documents: Vec<Doc> = (0..30).map(|n| doc! { "_id": n, "a": n % 3, "b": (n * 7) % 10, "c": -n }).collect();
    fixture.insert(&documents);
    let run = |filter: Doc, sort: Doc, limit: Option<i64>| {
        let mut request = fixture.request(filter);
        (request.sort, request.limit) = (sort, limit);
        fixture.find_with_summary(&request).unwrap()
    };
    let (found, stages) = run(doc! { "a": 1 }, doc! { "b": 1 }, None);
    assert_eq!(stages, "FETCH(IXSCAN)");
    let order: Vec<i64> = found.iter().map(|document| document.get("b").unwrap().to_i64_exact().unwrap()).collect();
    assert_eq!(order, (0..10).collect::<Vec<_>>());
    let (found, stages) = run(doc! {}, doc! { "c": 1 }, Some(3));
    assert_eq!((ids(&found), stages.as_str()), (vec!["29".into(), "28".into(), "27".into()], "LIMIT(SORT(COLLSCAN))"));
    let (found, stages) = run(doc! { "a": { "$in": [0, 2] } }, doc! { "b": -1 }, Some(4));
    assert_eq!(stages, "LIMIT(FETCH(SORT_MERGE(IXSCAN,IXSCAN)))");
    let order: Vec<i64> = found.iter().map(|document| document.get("b").unwrap().to_i64_exact().unwrap()).collect();
    assert_eq!(order, [9, 9, 8, 8]);
    assert_eq!(run(doc! {}, doc! { "a": -1, "b": 1 }, None).1, "FETCH(IXSCAN)");
    assert_eq!(run(doc! {}, doc! { "a": 1, "b": 1 }, None).1, "SORT(COLLSCAN)");
}

#[test]
fn u3_covered_plans_read_no_document() {
    let fixture = Fixture::new(&[index(doc! { "a": 1, "b.c": 1 })]);
    fixture.insert(&[doc! { "_id": 1, "a": 5, "b": { "c": 6_i64, "d": 1 } }, doc! { "_id": 2, "a": 9 }]);
    let mut request = fixture.request(doc! { "a": 5 });
    request.projection = doc! { "_id": 0, "a": 1, "b.c": 1 };
    let (found, stages) = fixture.find_with_summary(&request).unwrap();
    assert_eq!(stages, "PROJECTION_DEFAULT(IXSCAN)", "a field within a field is no simple projection");
    assert_eq!(found, vec![doc! { "a": 5, "b": { "c": 6_i64 } }]);
    request.projection = doc! { "a": 1 };
    assert_eq!(fixture.find_with_summary(&request).unwrap().1, "PROJECTION_SIMPLE(FETCH(IXSCAN))");
}

#[test]
fn u3_hints_ranges_and_their_errors() {
    let fixture = Fixture::new(&[index(doc! { "a": 1 })]);
    fixture.insert(&(0..10).map(|n| doc! { "_id": n, "a": n }).collect::<Vec<_>>());
    let mut request = fixture.request(doc! {});
    request.hint = Hint::Name("a_1".into());
    assert_eq!(fixture.find_with_summary(&request).unwrap().1, "FETCH(IXSCAN)");
    (request.min, request.max) = (doc! { "a": 3 }, doc! { "a": 6 });
    assert_eq!(ids(&fixture.find(&request).unwrap()), ["3", "4", "5"]);
    (request.min, request.max) = (doc! { "a": 6 }, doc! { "a": 3 });
    assert_eq!(fixture.find(&request).unwrap_err().code().number(), 51175);
    (request.min, request.max) = (doc! { "b": 6 }, doc! {});
    assert_eq!(fixture.find(&request).unwrap_err().code().number(), 51174);
    let mut missing = fixture.request(doc! {});
    missing.hint = Hint::KeyPattern(doc! { "z": 1 });
    let error = fixture.find(&missing).unwrap_err();
    assert_eq!(error.code().number(), 2);
    assert!(error.reason().ends_with("hint provided does not correspond to an existing index"), "{error}");
    let mut natural = fixture.request(doc! { "a": { "$gt": 6 } });
    natural.hint = Hint::Natural(pando_storage::Direction::Reverse);
    let (found, stages) = fixture.find_with_summary(&natural).unwrap();
    assert_eq!((ids(&found), stages.as_str()), (vec!["9".into(), "8".into(), "7".into()], "COLLSCAN"));
    let mut tailable = fixture.request(doc! {});
    tailable.tailable = true;
    assert_eq!(fixture.find(&tailable).unwrap_err().code().number(), 2);
}

#[test]
fn u3_skip_limit_keys_and_record_ids() {
    let fixture = Fixture::new(&[index(doc! { "a": 1 })]);
    fixture.insert(&(0..10).map(|n| doc! { "_id": n, "a": n }).collect::<Vec<_>>());
    let mut request = fixture.request(doc! { "a": { "$gte": 2 } });
    (request.skip, request.limit) = (Some(3), Some(2));
    assert_eq!(ids(&fixture.find(&request).unwrap()), ["5", "6"]);
    request.return_key = true;
    assert_eq!(fixture.find(&request).unwrap(), vec![doc! { "a": 5 }, doc! { "a": 6 }]);
    let mut shown = fixture.request(doc! { "_id": { "$lt": 1 } });
    shown.show_record_id = true;
    assert_eq!(fixture.find(&shown).unwrap(), vec![doc! { "_id": 0, "a": 0, "$recordId": 1_i64 }]);
}

#[test]
fn u3_a_collection_that_is_not_there_is_empty() {
    let fixture = Fixture::new(&[]);
    let mut request = fixture.request(doc! { "a": 1 });
    request.namespace = pando_base::Namespace::of("test", "other").unwrap();
    assert_eq!(fixture.find_with_summary(&request).unwrap(), (vec![], "EOF".into()));
    request.filter = doc! { "a": { "$bad": 1 } };
    assert!(fixture.find(&request).is_err());
}

#[test]
fn u3_a_find_by_id_can_be_answered_at_once() {
    let fixture = Fixture::new(&[]);
    fixture.insert(&[doc! { "_id": 1, "a": 10 }]);
    let at_once = |change: &dyn Fn(&mut crate::request::FindRequest), filter: Doc| {
        let mut request = fixture.request(filter);
        change(&mut request);
        fixture.engine.find_at_once(&mut fixture.operation(), &request).unwrap()
    };
    assert_eq!(at_once(&|_| {}, doc! { "_id": 1 }), Some(Some(doc! { "_id": 1, "a": 10 })));
    assert_eq!(at_once(&|request| request.limit = Some(1), doc! { "_id": 2 }), Some(None));
    assert_eq!(at_once(&|_| {}, doc! { "_id": { "$gt": 1 } }), None);
    assert_eq!(at_once(&|request| request.batch_size = Some(0), doc! { "_id": 1 }), None);
    assert_eq!(at_once(&|request| request.projection = doc! { "a": 1 }, doc! { "_id": 1 }), None);
}

#[test]
fn u7_hashed_indexes_serve_equality() {
    let fixture = Fixture::new(&[doc! { "v": 2, "key": { "h": "hashed" }, "name": "h" }]);
    let values = (0..20).map(|n| doc! { "_id": n, "h": n % 7 });
    fixture.insert(&values.collect::<Vec<_>>());
    fixture.insert(&[doc! { "_id": 50, "h": "x" }, doc! { "_id": 51, "h": null }, doc! { "_id": 52 }]);
    let run = |filter: Doc| {
        let (found, stages) = fixture.find_with_summary(&fixture.request(filter)).unwrap();
        (found.len(), stages)
    };
    assert_eq!(run(doc! { "h": 3.0 }), (3, "FETCH(IXSCAN)".into()));
    assert_eq!(run(doc! { "h": { "$in": [3, "x"] } }), (4, "FETCH(IXSCAN)".into()));
    assert_eq!(run(doc! { "h": null }), (2, "FETCH(IXSCAN)".into()));
    assert_eq!(run(doc! { "h": { "$gt": 3 } }).1, "COLLSCAN");
}

#[test]
fn u7_hidden_indexes_are_not_used() {
    let hidden = doc! { "v": 2, "key": { "a": 1 }, "name": "a_1", "hidden": true };
    let fixture = Fixture::new(&[hidden]);
    fixture.insert(&[doc! { "_id": 1, "a": 1 }]);
    assert_eq!(fixture.find_with_summary(&fixture.request(doc! { "a": 1 })).unwrap().1, "COLLSCAN");
    let mut hinted = fixture.request(doc! { "a": 1 });
    hinted.hint = Hint::Name("a_1".into());
    assert_eq!(fixture.find(&hinted).unwrap_err().code().number(), 2);
}

#[test]
fn u7_clustered_collections_are_found_by_their_key() {
    let specification = doc! { "v": 2, "key": { "_id": 1 }, "name": "_id_", "unique": true };
    let clustered = pando_catalog::ClusteredIndex { specification, legacy: false };
    let options = pando_catalog::CollectionOptions {
        clustered_index: Some(clustered),
        ..pando_catalog::CollectionOptions::default()
    };
    let fixture = Fixture::with_options(options, &[index(doc! { "a": 1 })]);
    fixture.insert(&(0..10).map(|n| doc! { "_id": n, "a": n % 3 }).collect::<Vec<_>>());
    let (found, stages) = fixture.find_with_summary(&fixture.request(doc! { "_id": 4 })).unwrap();
    assert_eq!((ids(&found), stages.as_str()), (vec!["4".to_owned()], "CLUSTERED_IXSCAN"));
    assert_eq!(fixture.find(&fixture.request(doc! { "a": 1 })).unwrap().len(), 3);
}
