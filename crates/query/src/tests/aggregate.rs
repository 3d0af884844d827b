//! Pipelines end to end.

use super::support::*;
use crate::executor::{CountingSink, drive};
use crate::request::{AggregateRequest, DeleteRequest};
use pando_base::{ErrorCode, Result};
use pando_doc::{Doc, Value, doc};

pub(super) fn run(fixture: &Fixture, pipeline: Vec<Doc>) -> Result<Vec<Doc>> {
    let mut operation = fixture.operation();
    let request = AggregateRequest::new(fixture.namespace.clone(), pipeline);
    let mut aggregation = fixture.engine.aggregate(&mut operation, &request, None)?;
    let mut found: Vec<Doc> = Vec::new();
    now(drive(&mut aggregation.executor, &mut operation, &*fixture.engine.collections, &mut found))?;
    Ok(found)
}

fn summary(fixture: &Fixture, pipeline: Vec<Doc>) -> (String, usize) {
    let mut operation = fixture.operation();
    let request = AggregateRequest::new(fixture.namespace.clone(), pipeline);
    let aggregation = fixture.engine.aggregate(&mut operation, &request, None).unwrap();
    let executor = &aggregation.executor;
    (stages_of(executor.executor().unwrap().root()), executor.stages().len())
}

fn filled() -> Fixture {
    let fixture = Fixture::new(&[index(doc! { "a": 1 })]);
    fixture.insert(&[
        doc! { "_id": 1, "a": 1, "t": ["x", "y"], "n": 10 },
        doc! { "_id": 2, "a": 2, "t": ["y"], "n": 20 },
        doc! { "_id": 3, "a": 1, "t": [], "n": 30 },
        doc! { "_id": 4, "a": 3, "n": 40.5 },
    ]);
    fixture
}

#[test]
fn u6_first_stages_are_planned() {
    let fixture = filled();
    let pipeline = vec![
        doc! { "$match": { "a": { "$lt": 3 } } },
        doc! { "$sort": { "a": -1 } },
        doc! { "$limit": 2 },
        doc! { "$project": { "a": 1 } },
    ];
    assert_eq!(summary(&fixture, pipeline.clone()), ("PROJECTION_SIMPLE(LIMIT(FETCH(IXSCAN)))".into(), 0));
    assert_eq!(run(&fixture, pipeline).unwrap().first(), Some(&doc! { "_id": 2, "a": 2 }));
    assert_eq!(summary(&fixture, vec![doc! { "$unwind": "$t" }]), ("COLLSCAN".into(), 1));
}

#[test]
fn u6_an_index_covers_what_a_pipeline_looks_at() {
    let fixture = Fixture::new(&[index(doc! { "a": 1, "n": 1 })]);
    let documents: Vec<Doc> =
        (0..40).map(|n| doc! { "_id": n, "a": (n % 4), "n": n, "z": "not in the index" }).collect();
    fixture.insert(&documents);
    let low = doc! { "$match": { "a": { "$lt": 2 } } };
    let sum = doc! { "$group": { "_id": "$a", "n": { "$sum": "$n" } } };
    let by_id = doc! { "$sort": { "_id": 1 } };
    let covered = vec![low.clone(), sum.clone(), by_id.clone()];
    assert_eq!(summary(&fixture, covered.clone()), ("PROJECTION_COVERED(IXSCAN)".into(), 2));
    assert_eq!(run(&fixture, covered).unwrap(), vec![doc! { "_id": 0, "n": 180 }, doc! { "_id": 1, "n": 190 }]);
    // An order may come from the keys alone.
    let sorted = vec![low.clone(), doc! { "$sort": { "n": -1 } }, doc! { "$project": { "n": 1, "_id": 0 } }];
    assert_eq!(summary(&fixture, sorted.clone()), ("PROJECTION_COVERED(SORT(IXSCAN))".into(), 0));
    assert_eq!(run(&fixture, sorted).unwrap().first(), Some(&doc! { "n": 37 }));
    // Whatever needs the whole document, or another field of it, reads documents.
    let whole = vec![low.clone(), doc! { "$group": { "_id": "$a", "all": { "$push": "$$ROOT" } } }];
    assert_eq!(summary(&fixture, whole), ("FETCH(IXSCAN)".into(), 1));
    let other = vec![low.clone(), doc! { "$group": { "_id": "$z" } }];
    assert_eq!(summary(&fixture, other), ("PROJECTION_SIMPLE(FETCH(IXSCAN))".into(), 1));
    // Renamed fields are looked for under their old names.
    let renamed = vec![doc! { "$project": { "z": "$a" } }, doc! { "$match": { "z": 1 } }, doc! { "$count": "n" }];
    assert_eq!(summary(&fixture, renamed.clone()), ("PROJECTION_DEFAULT(FETCH(IXSCAN))".into(), 2));
    assert_eq!(run(&fixture, renamed).unwrap(), vec![doc! { "n": 10 }]);
    let grouped = vec![doc! { "$group": { "_id": "$a", "n": { "$sum": "$n" } } }, doc! { "$match": { "_id": 1 } }];
    assert_eq!(summary(&fixture, grouped.clone()), ("PROJECTION_COVERED(IXSCAN)".into(), 1));
    assert_eq!(run(&fixture, grouped).unwrap(), vec![doc! { "_id": 1, "n": 190 }]);
    // Nothing of the documents is needed to count them.
    let counted = vec![low, doc! { "$count": "n" }];
    assert_eq!(summary(&fixture, counted.clone()), ("COUNT_SCAN".into(), 2));
    assert_eq!(run(&fixture, counted).unwrap(), vec![doc! { "n": 20 }]);
}

#[test]
fn u6_groups_and_their_kin() {
    let fixture = filled();
    let grouped = vec![
        doc! { "$group": { "_id": "$a", "n": { "$sum": "$n" }, "ids": { "$push": "$_id" } } },
        doc! { "$sort": { "_id": 1 } },
    ];
    let expected = vec![
        doc! { "_id": 1, "n": 40, "ids": [1, 3] },
        doc! { "_id": 2, "n": 20, "ids": [2] },
        doc! { "_id": 3, "n": 40.5, "ids": [4] },
    ];
    assert_eq!(run(&fixture, grouped).unwrap(), expected);
    assert_eq!(run(&fixture, vec![doc! { "$count": "all" }]).unwrap(), vec![doc! { "all": 4 }]);
    let by_count = vec![doc! { "$unwind": "$t" }, doc! { "$sortByCount": "$t" }];
    let expected = vec![doc! { "_id": "y", "count": 2 }, doc! { "_id": "x", "count": 1 }];
    assert_eq!(run(&fixture, by_count).unwrap(), expected);
}

#[test]
fn u6_documents_are_reshaped() {
    let fixture = filled();
    let first = doc! { "$match": { "_id": 1 } };
    let one = |stage: Doc| run(&fixture, vec![first.clone(), stage]).unwrap();
    assert_eq!(one(doc! { "$unset": ["t", "n"] }), vec![doc! { "_id": 1, "a": 1 }]);
    assert_eq!(one(doc! { "$project": { "_id": 0, "m": { "$add": ["$a", 5] } } }), vec![doc! { "m": 6 }]);
    assert_eq!(one(doc! { "$replaceWith": { "only": "$n" } }), vec![doc! { "only": 10 }]);
    let unwound = vec![
        doc! { "_id": 1, "a": 1, "t": "x", "n": 10, "i": 0_i64 },
        doc! { "_id": 1, "a": 1, "t": "y", "n": 10, "i": 1_i64 },
    ];
    assert_eq!(one(doc! { "$unwind": { "path": "$t", "includeArrayIndex": "i" } }), unwound);
    let kept = doc! { "$unwind": { "path": "$t", "preserveNullAndEmptyArrays": true } };
    assert_eq!(run(&fixture, vec![kept]).unwrap().len(), 5);
    let facet = doc! { "$facet": { "low": [{ "$match": { "a": 1 } }, { "$count": "c" }], "all": [{ "$count": "c" }] } };
    assert_eq!(run(&fixture, vec![facet]).unwrap(), vec![doc! { "low": [{ "c": 2 }], "all": [{ "c": 4 }] }]);
    assert_eq!(run(&fixture, vec![doc! { "$sample": { "size": 3 } }]).unwrap().len(), 3);
}

#[test]
fn u6_other_collections_are_joined_and_appended() {
    let fixture = filled();
    let simple = doc! { "$lookup": { "from": "c", "localField": "a", "foreignField": "_id", "as": "o" } };
    let found = run(&fixture, vec![doc! { "$match": { "_id": 4 } }, simple, doc! { "$project": { "o._id": 1 } }]);
    assert_eq!(found.unwrap(), vec![doc! { "_id": 4, "o": [{ "_id": 3 }] }]);
    let by_pipeline = doc! { "$lookup": {
        "from": "c",
        "let": { "mine": "$n" },
        "pipeline": [{ "$match": { "$expr": { "$gt": ["$n", "$$mine"] } } }, { "$project": { "_id": 1 } }],
        "as": "greater",
    } };
    let found =
        run(&fixture, vec![doc! { "$match": { "_id": 2 } }, by_pipeline, doc! { "$project": { "greater": 1 } }]);
    assert_eq!(found.unwrap(), vec![doc! { "_id": 2, "greater": [{ "_id": 3 }, { "_id": 4 }] }]);
    let union = vec![
        doc! { "$match": { "a": 2 } },
        doc! { "$unionWith": { "coll": "c", "pipeline": [{ "$match": { "a": 3 } }] } },
    ];
    assert_eq!(ids(&run(&fixture, union).unwrap()), ["2", "4"]);
    let given = vec![doc! { "$documents": [{ "x": 1 }, { "x": 2 }] }, doc! { "$match": { "x": 2 } }];
    assert_eq!(run(&fixture, given).unwrap(), vec![doc! { "x": 2 }]);
}

#[test]
fn u6_bad_stages_are_refused_as_mongodb_does() {
    let fixture = filled();
    let code = |stage: Doc| run(&fixture, vec![stage]).unwrap_err().code().number();
    assert_eq!(code(doc! { "$nothing": 1 }), 40324);
    assert_eq!(code(doc! { "$match": 1 }), 15959);
    assert_eq!(code(doc! { "$limit": 0 }), 15958);
    assert_eq!(code(doc! { "$skip": -1 }), 5107200);
    assert_eq!(code(doc! { "$sort": {} }), 15976);
    assert_eq!(code(doc! { "$group": { "n": { "$sum": 1 } } }), 15955);
    assert_eq!(code(doc! { "$group": { "_id": 1, "n": { "$bad": 1 } } }), 15952);
    assert_eq!(code(doc! { "$unwind": "t" }), 28818);
    assert_eq!(code(doc! { "$match": {}, "$limit": 1 }), 40323);
    let out_first = vec![doc! { "$out": "x" }, doc! { "$limit": 1 }];
    assert_eq!(run(&fixture, out_first).unwrap_err().code().number(), 40601);
    let late = vec![doc! { "$limit": 1 }, doc! { "$documents": [] }];
    assert_eq!(run(&fixture, late).unwrap_err().code().number(), 40602);
}

/// A pipeline that takes in everything before it gives anything out lets others run meanwhile, and can be stopped.
#[test]
fn u6_pipelines_yield_and_end_when_they_are_told_to() {
    let fixture = Fixture::new(&[]);
    let documents: Vec<Doc> = (0..5000).map(|number| doc! { "_id": number, "a": (number % 7) }).collect();
    fixture.insert(&documents);
    let pipelines = [
        vec![doc! { "$group": { "_id": "$a", "n": { "$sum": 1 } } }],
        vec![doc! { "$limit": 1 }, doc! { "$project": { "l": { "$range": [0, 5000] } } }, doc! { "$unwind": "$l" }],
        vec![
            doc! { "$limit": 1 },
            doc! { "$lookup": { "from": "c", "pipeline": [{ "$group": { "_id": "$a" } }], "as": "all" } },
        ],
    ];
    for (place, pipeline) in pipelines.into_iter().enumerate() {
        let request = AggregateRequest::new(fixture.namespace.clone(), pipeline);
        let drain = |is_killed: bool| {
            let mut operation = fixture.operation();
            let mut aggregation = fixture.engine.aggregate(&mut operation, &request, None)?;
            if is_killed {
                operation.context.kill(ErrorCode::Interrupted);
            }
            let mut sink = CountingSink::default();
            now(drive(&mut aggregation.executor, &mut operation, &*fixture.engine.collections, &mut sink))?;
            Ok(operation.context.statistics().yields.get())
        };
        // A query inside another leaves yielding to the outer one, but ends with it.
        let yields: Result<u64> = drain(false);
        assert_eq!(yields.unwrap() > 0, place < 2, "pipeline {place}");
        assert_eq!(drain(true).unwrap_err().code(), ErrorCode::Interrupted, "pipeline {place}");
    }
}

/// The groups in the order of their ids; of equal values of several types the first is shown.
fn groups(fixture: &Fixture, pipeline: &[Doc]) -> Vec<Doc> {
    let mut found = run(fixture, pipeline.to_vec()).unwrap();
    found.sort_by(|one, two| pando_doc::compare_docs(one.view(), two.view()));
    found
}

#[test]
fn u6_a_group_of_first_documents_skips_in_an_index() {
    use super::generate::{Chance, scalar};
    let sets = [vec![doc! { "a": 1, "b": 1 }], vec![doc! { "b": -1, "a": 1 }], vec![doc! { "a": -1 }, doc! { "b": 1 }]];
    let first = doc! { "$group": { "_id": "$a", "b": { "$first": "$b" } } };
    let last = doc! { "$group": { "_id": "$a", "b": { "$last": "$b" } } };
    let plain = doc! { "$group": { "_id": "$a" } };
    let by_both = doc! { "$sort": { "a": 1, "b": 1 } };
    let pipelines = [
        vec![plain.clone()],
        vec![by_both.clone(), first.clone()],
        vec![by_both.clone(), last.clone()],
        vec![doc! { "$sort": { "a": 1, "b": -1 } }, first.clone()],
        vec![doc! { "$match": { "b": { "$gt": 1 } } }, by_both.clone(), first.clone()],
        vec![doc! { "$match": { "b": 3 } }, doc! { "$sort": { "a": 1 } }, first.clone()],
        vec![doc! { "$match": { "a": { "$gte": 2 } } }, plain, doc! { "$match": { "_id": { "$lt": 5 } } }],
    ];
    let mut skipped = 0;
    for (number, indexes) in sets.iter().enumerate() {
        for seed in 0..6 {
            let mut chance = Chance::new(seed * 10 + number as u64 + 77);
            let indexes: Vec<Doc> = indexes.iter().cloned().map(index).collect();
            let (with, without) = (Fixture::new(&indexes), Fixture::new(&[]));
            let rows: Vec<Doc> = (0..80)
                .map(|id| {
                    let mut row = pando_doc::DocBuilder::new();
                    row.append("_id", id);
                    for name in ["a", "b"] {
                        if !chance.one_in(6) {
                            row.append(name, scalar(&mut chance));
                        }
                    }
                    row.finish()
                })
                .collect();
            with.insert(&rows);
            without.insert(&rows);
            for pipeline in &pipelines {
                let (found, expected) = (groups(&with, pipeline), groups(&without, pipeline));
                assert_eq!(found.len(), expected.len(), "{pipeline:?}");
                for (found, expected) in found.iter().zip(&expected) {
                    let order = pando_doc::compare_docs(found.view(), expected.view());
                    assert!(order.is_eq(), "{found} for {expected} by {pipeline:?}");
                }
                skipped += usize::from(summary(&with, pipeline.clone()).0.contains("DISTINCT_SCAN"));
            }
        }
    }
    assert!(skipped > 30, "only {skipped} scans skipped");
}

#[test]
fn u6_a_group_that_cannot_skip_reads_everything() {
    let fixture = Fixture::new(&[index(doc! { "a": 1, "b": 1 })]);
    fixture.insert(&[doc! { "a": 1, "b": 1 }, doc! { "a": 1, "b": 2 }, doc! { "a": 2, "b": 1 }]);
    let covered = vec![doc! { "$group": { "_id": "$a" } }];
    assert_eq!(summary(&fixture, covered.clone()).0, "PROJECTION_COVERED(DISTINCT_SCAN)");
    for group in [
        doc! { "$group": { "_id": "$a", "n": { "$sum": 1 } } },
        doc! { "$group": { "_id": "$b" } },
        doc! { "$group": { "_id": { "a": "$a" } } },
    ] {
        assert!(!summary(&fixture, vec![group.clone()]).0.contains("DISTINCT_SCAN"), "{group}");
    }
    fixture.insert(&[doc! { "a": [3, 4] }]);
    assert!(!summary(&fixture, covered).0.contains("DISTINCT_SCAN"), "an array has several keys");
}

#[test]
fn u6_a_group_has_what_an_index_finds_in_its_order_wherever_it_lies() {
    let fixture = Fixture::new(&[index(doc! { "number": 1 })]);
    let documents: Vec<Doc> = (0..3000).map(|n| doc! { "_id": n, "number": (n * 1001 % 3000), "n": n }).collect();
    fixture.insert(&documents);
    let mut operation = fixture.operation();
    let gone = DeleteRequest::new(fixture.namespace.clone(), doc! { "n": { "$mod": [5, 0] } }, true);
    now(fixture.engine.delete(&mut operation, &gone)).unwrap();
    let all = vec![
        doc! { "$match": { "number": { "$gte": 500, "$lt": 2500 }, "n": { "$gte": 20 } } },
        doc! { "$group": { "_id": null, "numbers": { "$push": "$number" }, "total": { "$sum": "$n" } } },
    ];
    assert_eq!(summary(&fixture, all.clone()).0, "PROJECTION_SIMPLE(FETCH(IXSCAN))");
    let found = run(&fixture, all).unwrap();
    let wanted = (0..3000_i32).filter(|n| n % 5 != 0 && *n >= 20 && (500..2500).contains(&(n * 1001 % 3000)));
    let mut numbers: Vec<i32> = wanted.clone().map(|n| n * 1001 % 3000).collect();
    numbers.sort_unstable();
    let mut pushed = pando_doc::ArrayBuilder::new();
    numbers.iter().for_each(|number| pushed.push(*number));
    let expected = doc! { "_id": null, "numbers": (pushed.finish()), "total": (wanted.sum::<i32>()) };
    assert_eq!(found, vec![expected]);
}

#[test]
fn u6_an_unwound_array_takes_no_more_memory_than_its_document() {
    let fixture = Fixture::new(&[]);
    let mut values = pando_doc::ArrayBuilder::new();
    (0..200_000).for_each(|value| values.push(value % 10));
    let long = "a".repeat(4 * 1024 * 1024);
    fixture.insert(&[doc! { "_id": 1, "values": (values.finish()), "long": long.as_str() }]);
    // All of them at once would be 800 gigabytes.
    let first = run(&fixture, vec![doc! { "$unwind": "$values" }, doc! { "$limit": 3 }]).unwrap();
    let found: Vec<Option<i32>> = first
        .iter()
        .map(|document| match document.get("values") {
            Some(Value::Int32(value)) => Some(value),
            _ => None,
        })
        .collect();
    assert_eq!(found, [Some(0), Some(1), Some(2)]);
    assert!(first.iter().all(|document| document.get("long").is_some()));
    let groups = vec![
        doc! { "$unwind": "$values" },
        doc! { "$group": { "_id": "$values", "count": { "$sum": 1 } } },
        doc! { "$sort": { "_id": 1 } },
    ];
    let expected: Vec<Doc> = (0..10).map(|value| doc! { "_id": value, "count": 20_000 }).collect();
    assert_eq!(run(&fixture, groups).unwrap(), expected);
}

#[test]
fn u6_unwound_documents_are_grouped_in_their_order_whatever_their_arrays() {
    let fixture = Fixture::new(&[]);
    let mut long = pando_doc::ArrayBuilder::new();
    (0..5000).for_each(|value| long.push(value));
    let long = long.finish();
    let mut documents = Vec::new();
    for round in 0..100 {
        let id = round * 10;
        documents.push(doc! { "_id": id, "before": "b", "t": ["x", ["y"], { "z": 1 }], "behind": round });
        documents.push(doc! { "_id": (id + 1), "t": "no array", "behind": round });
        documents.push(doc! { "_id": (id + 2), "behind": round });
        documents.push(doc! { "_id": (id + 3), "t": null, "behind": round });
        documents.push(doc! { "_id": (id + 4), "before": "b", "t": [], "behind": round });
        if round % 30 == 7 {
            documents.push(doc! { "_id": (id + 5), "t": (&long), "behind": round });
        }
    }
    fixture.insert(&documents);
    let wanted = doc! { "_id": 0, "i": "$_id", "t": "$t", "b": "$behind" };
    for keeps_empty in [false, true] {
        let unwind = doc! { "$unwind": { "path": "$t", "preserveNullAndEmptyArrays": keeps_empty } };
        let pulled = run(&fixture, vec![unwind.clone(), doc! { "$project": (&wanted) }]).unwrap();
        let all = doc! { "$push": { "i": "$_id", "t": "$t", "b": "$behind" } };
        let grouped = run(&fixture, vec![unwind, doc! { "$group": { "_id": null, "all": all } }]).unwrap();
        let looked_at: Vec<Doc> = match grouped.first().and_then(|group| group.get("all")) {
            Some(Value::Array(all)) => all.values().filter_map(|value| value.as_document().map(Doc::from)).collect(),
            _ => Vec::new(),
        };
        let per_round = if keeps_empty { 7 } else { 4 };
        assert_eq!(pulled.len(), 100 * per_round + 4 * 5000);
        assert!(looked_at == pulled, "keeps empty {keeps_empty}");
    }
}
