//! What one request may take: of the planner, of stages, of memory. Where there was no bound, these tests did not end.

use super::support::*;
use crate::executor::drive;
use crate::limits::{HELD_BYTES_MAX, PARAMETERS};
use crate::planner::plans;
use crate::request::AggregateRequest;
use crate::{CanonicalQuery, limits::PlannerLimits, spill};
use pando_base::{ErrorCode, ParameterSet, Result};
use pando_doc::{Array, Doc, DocBuilder, Value, doc};
use pando_env::simulated::SimulatedDisk;
use pando_expr::ParseContext;
use pando_sorter::SpillDirectory;
use std::sync::Arc;

/// `$or` of `$and` of `$or`, so deep; what is innermost stands at the end.
fn nested(depth: usize, innermost: Doc) -> Doc {
    (0..depth).fold(innermost, |inner, level| {
        doc! { "$or": [{ "$and": [{ (format!("p{level}")): 1 }, inner] }, { (format!("q{level}")): 2 }] }
    })
}

fn plan_count(fixture: &Fixture, filter: Doc, limits: PlannerLimits) -> usize {
    let query = CanonicalQuery::of_find(&fixture.request(filter), &ParseContext::default()).unwrap();
    plans(&query, &fixture.collection(), None, limits).unwrap().len()
}

#[test]
fn nested_alternatives_are_planned_with_bounded_effort() {
    let fixture = Fixture::new(&[index(doc! { "a": 1 }), index(doc! { "p0": 1 })]);
    fixture.insert(&[doc! { "_id": 1, "p0": 1, "a": 5 }, doc! { "_id": 2, "q0": 2 }]);
    for innermost in [doc! { "x": 1 }, doc! { "a": 5 }] {
        let filter = nested(40, innermost);
        assert!(plan_count(&fixture, filter.clone(), PlannerLimits::default()) <= 64);
        assert!(fixture.find(&fixture.request(filter)).unwrap().is_empty());
    }
    let (found, stages) = fixture.find_with_summary(&fixture.request(nested(1, doc! { "a": 5 }))).unwrap();
    assert_eq!((ids(&found), stages.as_str()), (vec!["1".into(), "2".into()], "COLLSCAN"));
    // One more alternative with an index is still found.
    let filter = doc! { "$and": [nested(40, doc! { "x": 1 }), { "a": 5 }] };
    assert!(!fixture.find_with_summary(&fixture.request(filter)).unwrap().1.contains("COLLSCAN"));
}

#[test]
fn plans_are_as_many_as_the_parameters_say() {
    let fixture = Fixture::new(&[
        index(doc! { "a": 1 }),
        index(doc! { "a": 1, "b": 1 }),
        index(doc! { "a": 1, "c": 1 }),
        index(doc! { "b": 1 }),
    ]);
    let wide: Array = (0..500).map(|number| doc! { "a": { "$gt": number }, "b": number }).collect();
    let wide = doc! { "$or": wide };
    let limits = PlannerLimits::default();
    assert_eq!(plan_count(&fixture, wide.clone(), limits), 10);
    assert_eq!(plan_count(&fixture, wide.clone(), PlannerLimits { or_plans_max: 3, ..limits }), 3);
    assert_eq!(plan_count(&fixture, wide, PlannerLimits { plans_max: 2, ..limits }), 2);
    let sorted = |limits: PlannerLimits| {
        let mut request = fixture.request(doc! { "a": { "$in": [1, 2, 3] } });
        request.sort = doc! { "b": 1 };
        let query = CanonicalQuery::of_find(&request, &ParseContext::default()).unwrap();
        let found = plans(&query, &fixture.collection(), None, limits).unwrap();
        found.iter().any(|plan| !plan.has_blocking_sort())
    };
    assert!(sorted(limits));
    assert!(!sorted(PlannerLimits { exploded_scans_max: 2, plans_max: 2, ..limits }));
}

#[test]
fn planning_ends_with_its_operation() {
    let fixture = Fixture::new(&[index(doc! { "a": 1 }), index(doc! { "b": 1 })]);
    let wide: Array = (0..3000).map(|number| doc! { "a": { "$gt": number }, "b": number }).collect();
    let query = CanonicalQuery::of_find(&fixture.request(doc! { "$or": wide }), &ParseContext::default()).unwrap();
    let operation = pando_base::OperationContext::detached();
    operation.kill(ErrorCode::Interrupted);
    let planned = pando_base::operation::during(&operation, || {
        plans(&query, &fixture.collection(), None, PlannerLimits::default()).map(|plans| plans.len())
    });
    assert_eq!(planned.unwrap_err().code(), ErrorCode::Interrupted);
}

#[test]
fn long_lists_bound_an_index() {
    let fixture = Fixture::new(&[index(doc! { "a": 1 }), index(doc! { "a": 1, "b": 1 })]);
    fixture.insert(&(0..50).map(|number| doc! { "_id": number, "a": number }).collect::<Vec<_>>());
    let wanted: Array = (0..100_000).map(|number: i32| Value::Int32(number * 7)).collect();
    let found = fixture.find(&fixture.request(doc! { "a": { "$in": wanted } })).unwrap();
    assert_eq!(found.len(), 8);
}

#[test]
fn many_conditions_on_one_field_are_planned_in_one_pass() {
    let fixture = Fixture::new(&[index(doc! { "a": 1 }), index(doc! { "a.b": 1 })]);
    fixture.insert(&[doc! { "_id": 1, "a": 150_000 }]);
    let wide: Array = (0..100_000).map(|number| doc! { "a": { "$gt": number } }).collect();
    assert_eq!(fixture.find(&fixture.request(doc! { "$and": wide })).unwrap().len(), 1);
    // With arrays each element has conditions of its own.
    fixture.insert(&[doc! { "_id": 2, "a": [{ "b": 1 }, { "b": 2 }] }]);
    let elements = |number: i32| doc! { "a": { "$elemMatch": { "b": { "$gt": (number % 2), "$lt": 5 } } } };
    let wide: Array = (0..2000).map(elements).collect();
    assert_eq!(fixture.find(&fixture.request(doc! { "$and": wide })).unwrap().len(), 1);
}

fn run(fixture: &Fixture, pipeline: &[Doc]) -> Result<Vec<Doc>> {
    let mut operation = fixture.operation();
    let request = AggregateRequest::new(fixture.namespace.clone(), pipeline.to_vec());
    let mut aggregation = fixture.engine.aggregate(&mut operation, &request, None)?;
    let mut found: Vec<Doc> = Vec::new();
    now(drive(&mut aggregation.executor, &mut operation, &*fixture.engine.collections, &mut found))?;
    Ok(found)
}

#[test]
fn pipelines_have_a_thousand_stages() {
    let fixture = Fixture::new(&[]);
    fixture.insert(&[doc! { "_id": 1, "a": 1 }]);
    assert_eq!(run(&fixture, &vec![doc! { "$match": { "a": 1 } }; 1000]).unwrap().len(), 1);
    let too_long = run(&fixture, &vec![doc! { "$match": { "a": 1 } }; 1001]).unwrap_err();
    assert_eq!(too_long.code(), ErrorCode::FailedToParse);
    let both = |number: i32| {
        let (new, old) = (format!("x{number}"), format!("a{number}"));
        [doc! { "$addFields": { (new): 1 } }, doc! { "$match": { (old): { "$exists": false } } }]
    };
    let mixed: Vec<Doc> = (0..500).flat_map(both).collect();
    assert_eq!(run(&fixture, &mixed).unwrap().len(), 1);
    // A facet counts for itself.
    let facet = doc! { "$facet": { "f": (vec![doc! { "$match": {} }; 1001].into_iter().collect::<Array>()) } };
    assert_eq!(run(&fixture, &[facet]).unwrap_err().code(), ErrorCode::FailedToParse);
}

#[test]
fn a_result_is_no_larger_than_a_document() {
    let fixture = Fixture::new(&[]);
    fixture.insert(&[doc! { "_id": 1 }]);
    let large = doc! { "$project": { "x": { "$range": [0, 2_000_000] } } };
    assert_eq!(run(&fixture, std::slice::from_ref(&large)).unwrap_err().code(), ErrorCode::BSONObjectTooLarge);
    let count = run(&fixture, &[large, doc! { "$project": { "n": { "$size": "$x" } } }]).unwrap();
    assert_eq!(count, [doc! { "_id": 1, "n": 2_000_000 }]);
}

/// A fixture whose requests may hold so much.
fn holding(limit_bytes: i64) -> Fixture {
    let mut fixture = Fixture::new(&[]);
    let parameters = Arc::new(ParameterSet::new(&[PARAMETERS, spill::PARAMETERS], true).unwrap());
    parameters.set(&HELD_BYTES_MAX, limit_bytes).unwrap();
    fixture.engine.parameters = parameters;
    let directory = Arc::new(SpillDirectory::new(SimulatedDisk::new(3).handle(), "/data/_tmp"));
    fixture.engine = fixture.engine.clone().spilling_to(directory);
    fixture.insert(&(0..2000).map(|number| doc! { "_id": number, "s": "a text of some length" }).collect::<Vec<_>>());
    fixture
}

#[test]
fn the_stages_of_a_request_share_its_memory() {
    let groups = |count: usize| {
        let mut facets = DocBuilder::new();
        for number in 0..count {
            let group = doc! { "$group": { "_id": "$_id", "all": { "$push": "$s" } } };
            facets.array(format!("f{number}"), |stages| {
                stages.push(group);
                stages.push(doc! { "$count": "n" });
            });
        }
        vec![doc! { "$facet": (facets.finish()) }]
    };
    let fixture = holding(2_000_000);
    assert!(run(&fixture, &groups(3)).is_ok(), "what a facet held is given back");
    let nested = doc! { "$group": { "_id": Value::Null, "all": { "$push": "$$ROOT" } } };
    let small = holding(100_000);
    for pipeline in [
        groups(1),
        vec![nested],
        vec![doc! { "$_internalInhibitOptimization": {} }, doc! { "$sort": { "s": 1, "x": 1 } }],
        vec![doc! { "$bucketAuto": { "groupBy": "$_id", "buckets": 2 } }],
        vec![
            doc! { "$set": { "t": 1 } },
            doc! { "$_internalDensify": {
                "field": "t", "partitionByFields": ["_id"], "range": { "step": 1, "bounds": "full" },
            } },
        ],
    ] {
        let error = run(&small, &pipeline).unwrap_err();
        assert_eq!(error.code(), ErrorCode::ExceededMemoryLimit, "{pipeline:?}: {error}");
    }
    let mut sorted = small.request(doc! {});
    sorted.sort = doc! { "s": 1, "x": 1 };
    assert_eq!(small.find(&sorted).unwrap_err().code(), ErrorCode::ExceededMemoryLimit);
    assert_eq!(small.engine.held_memory().bytes(), 0, "requests that are over hold nothing");
}

#[test]
fn densify_knows_so_many_partitions() {
    let fixture = holding(1 << 30);
    let set = doc! { "$set": { "t": 1 } };
    let densify = doc! { "$densify": {
        "field": "t", "partitionByFields": ["_id"], "range": { "step": 1, "bounds": [1, 2] },
    } };
    let count = [set.clone(), densify.clone(), doc! { "$count": "n" }];
    assert_eq!(run(&fixture, &count).unwrap(), [doc! { "n": 2000 }]);
    fixture.engine.parameters.set(&spill::DENSIFY_MEMORY_BYTES_MAX, 10_000).unwrap();
    assert_eq!(run(&fixture, &[set, densify]).unwrap_err().code(), ErrorCode::location(6007200));
}
