//! Collations in queries: what matches, in which order, and which indexes serve.

use super::support::*;
use crate::request::{AggregateRequest, FindRequest};
use pando_catalog::CollectionOptions;
use pando_collation::Collation;
use pando_doc::{Doc, doc};

/// The specification as the catalog keeps it.
fn whole(specification: Doc) -> Doc {
    Collation::parse(specification.view()).unwrap().unwrap().to_doc()
}

fn case_blind() -> Doc {
    doc! { "locale": "en_US", "strength": 2 }
}

fn collated_index(key: Doc, collation: Doc) -> Doc {
    doc! { "v": 2, "key": key, "name": "collated", "collation": whole(collation) }
}

fn words(fixture: &Fixture) {
    let words = ["Apple", "apple", "Banana", "banana", "cherry"];
    let documents = words.iter().enumerate();
    fixture.insert(&documents.map(|(n, word)| doc! { "_id": n as i32, "w": *word, "n": n as i32 }).collect::<Vec<_>>());
}

fn found(fixture: &Fixture, request: &FindRequest) -> (Vec<String>, String) {
    let (found, stages) = fixture.find_with_summary(request).unwrap();
    (ids(&found), stages)
}

#[test]
fn u7_an_index_serves_strings_only_under_its_own_collation() {
    let fixture = Fixture::new(&[collated_index(doc! { "w": 1 }, case_blind())]);
    words(&fixture);
    let mut request = fixture.request(doc! { "w": "APPLE" });
    request.collation = case_blind();
    assert_eq!(found(&fixture, &request), (vec!["0".into(), "1".into()], "FETCH(IXSCAN)".into()));
    request.filter = doc! { "w": { "$in": ["BANANA", "x"] } };
    assert_eq!(found(&fixture, &request).0, ["2", "3"]);
    request.filter = doc! { "w": { "$gt": "banana" } };
    assert_eq!(found(&fixture, &request), (vec!["4".into()], "FETCH(IXSCAN)".into()));
    request.filter = doc! { "w": "APPLE" };
    request.collation = doc! { "locale": "en_US", "strength": 3 };
    assert_eq!(found(&fixture, &request), (vec![], "COLLSCAN".into()));
    request.collation = doc! {};
    assert_eq!(found(&fixture, &request), (vec![], "COLLSCAN".into()));
    request.filter = doc! { "w": { "$gt": 5 } };
    assert_eq!(found(&fixture, &request).1, "FETCH(IXSCAN)", "no string is compared");
    fixture.check();
}

#[test]
fn u7_patterns_know_no_collation() {
    let fixture = Fixture::new(&[collated_index(doc! { "w": 1 }, case_blind())]);
    words(&fixture);
    let mut request = fixture.request(doc! { "w": { "$regex": "^a" } });
    request.collation = case_blind();
    assert_eq!(found(&fixture, &request).0, ["1"]);
}

#[test]
fn u7_an_index_gives_the_order_of_its_collation() {
    let fixture = Fixture::new(&[collated_index(doc! { "w": 1 }, doc! { "locale": "en_US", "caseFirst": "upper" })]);
    words(&fixture);
    let mut request = fixture.request(doc! {});
    request.sort = doc! { "w": 1 };
    request.collation = doc! { "locale": "en_US", "caseFirst": "upper" };
    assert_eq!(
        found(&fixture, &request),
        (["0", "1", "2", "3", "4"].map(String::from).to_vec(), "FETCH(IXSCAN)".into())
    );
    request.collation = doc! { "locale": "en_US" };
    let (ids, stages) = found(&fixture, &request);
    assert_eq!(ids, ["1", "0", "3", "2", "4"]);
    assert!(stages.starts_with("SORT"), "{stages}");
    request.collation = doc! {};
    assert_eq!(found(&fixture, &request).0, ["0", "2", "1", "3", "4"]);
}

#[test]
fn u7_requests_have_the_collation_of_their_collection() {
    let options = CollectionOptions { collation: Some(whole(case_blind())), ..CollectionOptions::default() };
    let fixture = Fixture::with_options(options, &[]);
    fixture.insert(&[doc! { "_id": "One", "w": "X" }, doc! { "_id": "two", "w": "x" }]);
    assert_eq!(found(&fixture, &fixture.request(doc! { "w": "x" })).0.len(), 2);
    assert_eq!(found(&fixture, &fixture.request(doc! { "_id": "ONE" })), (vec!["\"One\"".into()], "IDHACK".into()));
    assert_eq!(fixture.try_insert(&[doc! { "_id": "TWO" }]).unwrap_err().code().number(), 11000);
    let mut request = fixture.request(doc! { "w": "x" });
    request.collation = doc! { "locale": "simple" };
    assert_eq!(found(&fixture, &request).0, ["\"two\""]);
    request.filter = doc! { "_id": "ONE" };
    assert_eq!(found(&fixture, &request).0, Vec::<String>::new());
    fixture.check();
}

#[test]
fn u7_unique_keys_are_compared_by_the_collation() {
    let mut specification = collated_index(doc! { "w": 1 }, case_blind());
    specification = doc! {
        "v": 2, "key": { "w": 1 }, "name": "w_1", "unique": true,
        "collation": specification.get("collation").unwrap(),
    };
    let fixture = Fixture::new(&[specification]);
    fixture.insert(&[doc! { "_id": 1, "w": "Apple" }]);
    let error = fixture.try_insert(&[doc! { "_id": 2, "w": "apple" }]).unwrap_err();
    assert_eq!(error.code().number(), 11000);
    assert!(error.reason().contains("collation: { locale: \"en_US\""), "{}", error.reason());
    assert!(error.reason().contains("dup key: { w: \"CollationKey(0x"), "{}", error.reason());
}

#[test]
fn u7_partial_indexes_serve_what_their_collation_implies() {
    let fixture = Fixture::new(&[doc! {
        "v": 2, "key": { "n": 1 }, "name": "partial", "partialFilterExpression": { "w": { "$gte": "banana" } },
        "collation": whole(case_blind()),
    }]);
    words(&fixture);
    let mut request = fixture.request(doc! { "n": { "$gte": 0 }, "w": "BANANA" });
    request.collation = case_blind();
    assert_eq!(found(&fixture, &request), (vec!["2".into(), "3".into()], "FETCH(IXSCAN)".into()));
    request.collation = doc! {};
    assert_eq!(found(&fixture, &request), (vec![], "COLLSCAN".into()));
    fixture.check();
}

#[test]
fn u3_grouping_and_joining_follow_the_collation() {
    let fixture = Fixture::new(&[]);
    words(&fixture);
    let mut aggregate = AggregateRequest::new(
        fixture.namespace.clone(),
        vec![doc! { "$group": { "_id": "$w", "n": { "$sum": 1 } } }, doc! { "$sort": { "_id": 1 } }],
    );
    let run = |request: &AggregateRequest| {
        let mut operation = fixture.operation();
        let mut aggregation = fixture.engine.aggregate(&mut operation, request, None).unwrap();
        let mut found: Vec<Doc> = Vec::new();
        let collections = &*fixture.engine.collections;
        now(crate::executor::drive(&mut aggregation.executor, &mut operation, collections, &mut found)).unwrap();
        found
    };
    assert_eq!(run(&aggregate).len(), 5);
    aggregate.collation = case_blind();
    let counts: Vec<String> = run(&aggregate).iter().map(|group| group.get("n").unwrap().to_string()).collect();
    assert_eq!(counts, ["2", "2", "1"]);
    aggregate.pipeline = vec![
        doc! { "$match": { "_id": 0 } },
        doc! { "$lookup": { "from": "c", "localField": "w", "foreignField": "w", "as": "same" } },
        doc! { "$project": { "n": { "$size": "$same" }, "equal": { "$eq": ["$w", "APPLE"] } } },
    ];
    assert_eq!(run(&aggregate), [doc! { "_id": 0, "n": 2, "equal": true }]);
}

#[test]
fn u3_an_unknown_collation_is_refused() {
    let fixture = Fixture::new(&[]);
    let mut request = fixture.request(doc! { "w": 1 });
    request.collation = doc! { "locale": "xx" };
    let error = fixture.find(&request).unwrap_err();
    assert_eq!(error.reason(), "Field 'locale' is invalid in: { locale: \"xx\" }");
}
