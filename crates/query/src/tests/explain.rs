//! Explaining.

use super::support::*;
use crate::explain::Verbosity;
use crate::request::{AggregateRequest, DeleteRequest};
use pando_doc::{Doc, Value, doc};

fn at<'d>(document: &'d Doc, path: &str) -> Option<Value<'d>> {
    let path = pando_doc::FieldPath::lenient(path).unwrap();
    pando_doc::get_path_with_indexes(document.view(), &path)
}

fn text<'d>(document: &'d Doc, path: &str) -> &'d str {
    at(document, path).unwrap_or_else(|| panic!("{path} in {document}")).as_str().unwrap()
}

fn filled() -> Fixture {
    let fixture = Fixture::new(&[index(doc! { "a": 1 }), index(doc! { "b": 1 })]);
    fixture.insert(&(0..50).map(|n| doc! { "_id": n, "a": n % 10, "b": 1 }).collect::<Vec<_>>());
    fixture
}

#[test]
fn u8_explain_shows_the_chosen_and_the_rejected_plans() {
    let fixture = filled();
    let request = fixture.request(doc! { "a": 3, "b": 1 });
    let explain = |verbosity| now(fixture.engine.explain_find(&mut fixture.operation(), &request, verbosity)).unwrap();
    let plan = explain(Verbosity::QueryPlanner);
    assert_eq!(text(&plan, "queryPlanner.namespace"), "test.c");
    assert_eq!(text(&plan, "queryPlanner.winningPlan.stage"), "FETCH");
    assert_eq!(text(&plan, "queryPlanner.winningPlan.inputStage.indexName"), "a_1");
    assert_eq!(text(&plan, "queryPlanner.winningPlan.inputStage.indexBounds.a.0"), "[3, 3]");
    assert_eq!(text(&plan, "queryPlanner.rejectedPlans.0.inputStage.indexName"), "b_1");
    assert_eq!(text(&plan, "queryPlanner.queryHash").len(), 8);
    assert!(plan.get("executionStats").is_none());
    let stats = explain(Verbosity::AllPlansExecution);
    let number = |path: &str| at(&stats, path).unwrap().to_i64_exact().unwrap();
    assert_eq!(number("executionStats.nReturned"), 5);
    assert_eq!(number("executionStats.totalKeysExamined"), 5);
    assert_eq!(number("executionStats.totalDocsExamined"), 5);
    assert_eq!(number("executionStats.executionStages.inputStage.keysExamined"), 5);
    assert_eq!(at(&stats, "executionStats.allPlansExecution").unwrap().as_array().unwrap().len(), 2);
}

#[test]
fn u8_explaining_a_write_writes_nothing() {
    let fixture = filled();
    let request = DeleteRequest::new(fixture.namespace.clone(), doc! { "a": 3 }, true);
    let verbosity = Verbosity::ExecutionStats;
    let explained = now(fixture.engine.explain_delete(&mut fixture.operation(), &request, verbosity)).unwrap();
    assert_eq!(text(&explained, "queryPlanner.winningPlan.stage"), "BATCHED_DELETE");
    assert_eq!(at(&explained, "executionStats.executionStages.nWouldDelete"), Some(Value::Int32(5)));
    assert_eq!(fixture.find(&fixture.request(doc! {})).unwrap().len(), 50);
}

#[test]
fn u8_explaining_a_pipeline_shows_its_stages() {
    let fixture = filled();
    let stages = vec![doc! { "$match": { "a": 3 } }, doc! { "$group": { "_id": "$b" } }];
    let request = AggregateRequest::new(fixture.namespace.clone(), stages);
    let verbosity = Verbosity::QueryPlanner;
    let explained = now(fixture.engine.explain_aggregate(&mut fixture.operation(), &request, None, verbosity)).unwrap();
    assert_eq!(text(&explained, "stages.0.$cursor.queryPlanner.winningPlan.stage"), "PROJECTION_SIMPLE");
    assert!(at(&explained, "stages.1.$group._id").is_some());
}

#[test]
fn u8_plans_are_remembered_until_indexes_change() {
    let fixture = filled();
    let request = fixture.request(doc! { "a": 3, "b": 1 });
    for _ in 0..3 {
        fixture.find(&request).unwrap();
    }
    let entries = fixture.engine.plan_cache.entries(&fixture.collection());
    assert_eq!(entries.len(), 1);
    assert!(entries[0].1.is_active && entries[0].1.signature.contains("a_1"), "{entries:?}");
    let (found, stages) = fixture.find_with_summary(&request).unwrap();
    assert_eq!((found.len(), stages.as_str()), (5, "MULTI_PLAN(FETCH(IXSCAN))"));
    fixture.drop_index("a_1");
    assert_eq!(fixture.find_with_summary(&request).unwrap().1, "FETCH(IXSCAN)");
}
