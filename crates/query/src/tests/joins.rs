//! `$lookup` by a table gives what it gives by a query for each document.

use super::generate::{Chance, document};
use super::support::*;
use crate::executor::drive;
use crate::request::AggregateRequest;
use crate::spill::{HASH_LOOKUP_BYTES_MAX, HASH_LOOKUP_OFF, PARAMETERS, Spilling};
use pando_base::{ParameterSet, Result};
use pando_doc::{Doc, doc};
use std::sync::Arc;

const PATHS: [&str; 6] = ["a", "b", "a.b", "b.c", "a.0", "a.b.c"];
const SEEDS: u64 = 4;
const DOCUMENTS: i32 = 40;

/// A collection whose engine has the parameters of joins.
fn fixture() -> Fixture {
    let mut fixture = Fixture::new(&[]);
    fixture.engine.parameters = Arc::new(ParameterSet::new(&[PARAMETERS], true).unwrap());
    fixture.engine.spilling = Arc::new(Spilling::new(&fixture.engine.parameters, None));
    fixture
}

/// Random documents without undefined, which cannot be looked for.
fn documents(chance: &mut Chance) -> Vec<Doc> {
    let made = (0..DOCUMENTS * 2).map(|id| document(chance, id));
    made.filter(|document| !document.to_string().contains("undefined")).take(DOCUMENTS as usize).collect()
}

/// What a pipeline gives, and how its first stage joined.
fn joined(fixture: &Fixture, pipeline: &[Doc], collation: &Doc) -> Result<(Vec<Doc>, String)> {
    let mut operation = fixture.operation();
    let mut request = AggregateRequest::new(fixture.namespace.clone(), pipeline.to_vec());
    request.collation = collation.clone();
    let mut aggregation = fixture.engine.explaining().aggregate(&mut operation, &request, None)?;
    let mut found: Vec<Doc> = Vec::new();
    now(drive(&mut aggregation.executor, &mut operation, &*fixture.engine.collections, &mut found))?;
    let details = aggregation.executor.runs().first().map(|run| run.facts.details.clone()).unwrap_or_default();
    let strategy = details.get("strategy").and_then(|strategy| strategy.as_str()).unwrap_or_default().to_owned();
    Ok((found, strategy))
}

fn lookup(local: &str, foreign: &str) -> Doc {
    doc! { "$lookup": { "from": "other", "localField": local, "foreignField": foreign, "as": "found" } }
}

#[test]
fn u6_a_table_joins_as_queries_do() {
    let collations = [doc! {}, doc! { "locale": "en", "strength": 1 }];
    let mut count = 0;
    for seed in 0..SEEDS {
        let mut chance = Chance::new(seed + 900);
        let fixture = fixture();
        fixture.insert(&documents(&mut chance));
        let mut other = documents(&mut chance);
        other.extend(["A", "a", "AB", "á"].map(|text| doc! { "a": text, "b": { "c": text } }));
        fixture.create_with("other", &other);
        for (local, foreign) in PATHS.iter().flat_map(|local| PATHS.map(|foreign| (*local, foreign))) {
            let unwind = doc! { "$unwind": { "path": "$found", "includeArrayIndex": "place" } };
            let filter = doc! { "$match": { "found.b": { "$ne": 1 } } };
            for behind in [vec![], vec![unwind], vec![doc! { "$unwind": "$found" }, filter]] {
                let pipeline: Vec<Doc> = std::iter::once(lookup(local, foreign)).chain(behind).collect();
                for collation in &collations {
                    let parameters = &fixture.engine.parameters;
                    parameters.set(&HASH_LOOKUP_OFF, true).unwrap();
                    let (expected, one) = joined(&fixture, &pipeline, collation).unwrap();
                    parameters.set(&HASH_LOOKUP_OFF, false).unwrap();
                    let (found, two) = joined(&fixture, &pipeline, collation).unwrap();
                    assert_eq!((one.as_str(), two.as_str()), ("NestedLoopJoin", "HashJoin"));
                    assert_eq!(found, expected, "seed {seed}: {local} = {foreign} with {collation}");
                    count += usize::from(!found.is_empty());
                }
            }
        }
    }
    assert!(count > 300, "only {count} pipelines found something");
}

#[test]
fn u6_a_table_is_not_made_where_an_index_is_or_memory_is_not() {
    let fixture = fixture();
    let rows: Vec<Doc> = (0..30).map(|id| doc! { "_id": id, "a": (id % 7), "text": "some more of it" }).collect();
    fixture.insert(&rows);
    fixture.create_with("other", &rows);
    let strategy = |foreign: &str| {
        let (found, strategy) = joined(&fixture, &[lookup("a", foreign)], &doc! {}).unwrap();
        assert_eq!(found.len(), rows.len());
        strategy
    };
    assert_eq!(strategy("a"), "HashJoin");
    assert_eq!(strategy("_id"), "IndexedLoopJoin");
    fixture.engine.parameters.set(&HASH_LOOKUP_BYTES_MAX, 500).unwrap();
    assert_eq!(strategy("a"), "NestedLoopJoin");
    // Few documents are looked for one by one.
    fixture.engine.parameters.set(&HASH_LOOKUP_BYTES_MAX, 1 << 20).unwrap();
    let few = [doc! { "$limit": 2 }, lookup("a", "a")];
    assert_eq!(joined(&fixture, &few, &doc! {}).unwrap().1, "NestedLoopJoin");
}
