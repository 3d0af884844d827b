//! Every plan gives what a scan of the collection gives, for random documents, filters, orders and indexes.

use super::generate::{Chance, document, filter, scalar, sort};
use super::support::*;
use crate::request::{Hint, SortPattern};
use crate::stage::SortKeyGenerator;
use pando_doc::{Doc, doc};
use pando_expr::{MatchExpression, ParseContext};
use pando_storage::Direction;
use std::collections::BTreeSet;

const SEEDS: u64 = 6;
const FILTERS: u64 = 80;
const DOCUMENTS: i32 = 60;

fn index_sets() -> Vec<Vec<Doc>> {
    let sparse = |key: Doc, name: &str| doc! { "v": 2, "key": key, "name": name, "sparse": true };
    let partial = |key: Doc, name: &str, filter: Doc| {
        doc! { "v": 2, "key": key, "name": name, "partialFilterExpression": filter }
    };
    vec![
        vec![index(doc! { "a": 1 }), index(doc! { "b": -1 })],
        vec![index(doc! { "a": 1, "b": -1 }), index(doc! { "b": 1, "c": 1 })],
        vec![index(doc! { "a.b": 1 }), index(doc! { "a.b": -1, "a.c": 1 }), index(doc! { "a.0": 1 })],
        vec![sparse(doc! { "a": 1 }, "sparse_a"), sparse(doc! { "a.b": 1, "b": 1 }, "sparse_ab")],
        vec![
            partial(doc! { "a": 1 }, "partial_a", doc! { "a": { "$gt": 2 } }),
            partial(doc! { "b": 1 }, "partial_b", doc! { "a": { "$exists": true } }),
            index(doc! { "c": 1, "a": 1 }),
        ],
        vec![index(doc! { "b.c": 1, "a": 1 }), index(doc! { "_id": -1, "a": 1 }), index(doc! { "a.c": 1 })],
        vec![index(doc! { "$**": 1 })],
        vec![index(doc! { "a.$**": -1 }), index(doc! { "b": 1, "a.$**": 1 })],
        vec![doc! { "v": 2, "key": { "$**": 1 }, "name": "some", "wildcardProjection": { "a.b": 0, "c": 0 } }],
    ]
}

fn id_set(documents: &[Doc]) -> BTreeSet<String> {
    let ids = ids(documents);
    let set: BTreeSet<String> = ids.iter().cloned().collect();
    assert_eq!(set.len(), ids.len(), "no document twice");
    set
}

fn sort_keys(pattern: &SortPattern, documents: &[Doc]) -> Vec<Box<[u8]>> {
    let mut generator = SortKeyGenerator::new(pattern, None).unwrap();
    documents.iter().map(|document| generator.of_document(document.view()).unwrap()).collect()
}

/// Documents that the indexes can take.
fn filled(indexes: &[Doc], chance: &mut Chance) -> Fixture {
    let fixture = Fixture::new(indexes);
    for id in 0..DOCUMENTS {
        // Two arrays side by side have no keys in a compound index.
        if let Err(error) = fixture.try_insert(&[document(chance, id)]) {
            // Nor may the fields beside a wildcard be arrays.
            assert!([171, 7_246_301].contains(&error.code().number()), "{error}");
        }
    }
    fixture
}

/// Indexes that have every document, so that a hint does not change the result.
fn is_complete(index: &Doc) -> bool {
    let is_wildcard = index.get("key").is_some_and(|key| key.to_string().contains("$**"));
    index.get("sparse").is_none() && index.get("partialFilterExpression").is_none() && !is_wildcard
}

#[test]
fn x12_every_plan_finds_what_a_collection_scan_finds() {
    let mut plans: BTreeSet<String> = BTreeSet::new();
    for (number, indexes) in index_sets().into_iter().enumerate() {
        for seed in 0..SEEDS {
            let mut chance = Chance::new(seed * 100 + number as u64 + 1);
            let fixture = filled(&indexes, &mut chance);
            for _ in 0..FILTERS {
                let filter = filter(&mut chance, 2);
                let mut reference = fixture.request(filter.clone());
                reference.hint = Hint::Natural(Direction::Forward);
                let expected = id_set(&fixture.find(&reference).unwrap_or_else(|error| panic!("{filter}: {error}")));
                let (found, plan) = fixture.find_with_summary(&fixture.request(filter.clone())).unwrap();
                assert_eq!(id_set(&found), expected, "seed {seed} of {number}: {filter} by {plan}");
                plans.insert(plan);
                for index in indexes.iter().filter(|index| is_complete(index)) {
                    let mut hinted = fixture.request(filter.clone());
                    hinted.hint = Hint::Name(index.get("name").unwrap().as_str().unwrap().to_owned());
                    let (found, plan) = fixture.find_with_summary(&hinted).unwrap();
                    assert_eq!(
                        id_set(&found),
                        expected,
                        "seed {seed} of {number}: {filter} by {:?} {plan}",
                        hinted.hint
                    );
                    plans.insert(plan);
                }
            }
        }
    }
    for stage in ["FETCH(IXSCAN)", "OR(", "COLLSCAN"] {
        assert!(plans.iter().any(|plan| plan.contains(stage)), "{stage} was never used: {plans:?}");
    }
}

/// What `$expr` says of single fields bounds indexes, and leaves nothing out that the expression alone would find.
#[test]
fn x12_comparisons_in_expressions_find_what_they_find_alone() {
    let paths = ["a", "b", "c", "a.b", "a.c", "b.c", "a.0"];
    let mut plans: BTreeSet<String> = BTreeSet::new();
    for (number, indexes) in index_sets().into_iter().enumerate() {
        for seed in 0..SEEDS {
            let mut chance = Chance::new(seed * 100 + number as u64 + 9000);
            let fixture = filled(&indexes, &mut chance);
            let all = fixture.find(&fixture.request(doc! {})).unwrap();
            for _ in 0..FILTERS {
                let mut comparison = || {
                    let name = ["$eq", "$eq", "$lt", "$lte", "$gt", "$gte"][chance.below(6) as usize];
                    let field = format!("${}", paths[chance.below(paths.len() as u64) as usize]);
                    let constant = doc! { "$literal": scalar(&mut chance) };
                    match chance.one_in(3) {
                        true => doc! { (name): [constant, field] },
                        false => doc! { (name): [field, constant] },
                    }
                };
                let (one, two) = (comparison(), comparison());
                let expression = match chance.below(4) {
                    0 => doc! { "$and": [one, two] },
                    1 => doc! { "$or": [one, two] },
                    _ => one,
                };
                let filter = doc! { "$expr": expression };
                let alone = MatchExpression::parse(filter.view(), &ParseContext::default()).unwrap();
                let expected: Vec<Doc> =
                    all.iter().filter(|document| alone.matches(document.view())).cloned().collect();
                let (found, plan) = fixture.find_with_summary(&fixture.request(filter.clone())).unwrap();
                assert_eq!(id_set(&found), id_set(&expected), "seed {seed} of {number}: {filter} by {plan}");
                plans.insert(plan);
            }
        }
    }
    assert!(plans.iter().any(|plan| plan.contains("IXSCAN")), "no index was used: {plans:?}");
}

#[test]
fn x12_every_plan_gives_the_order_that_a_sort_gives() {
    let mut plans: BTreeSet<String> = BTreeSet::new();
    for (number, indexes) in index_sets().into_iter().enumerate() {
        for seed in 0..SEEDS {
            let mut chance = Chance::new(seed * 100 + number as u64 + 5000);
            let fixture = filled(&indexes, &mut chance);
            for _ in 0..FILTERS {
                let filter = if chance.one_in(3) {
                    doc! {}
                } else {
                    filter(&mut chance, 1)
                };
                let sort = sort(&mut chance);
                let pattern = SortPattern::parse(sort.view()).unwrap().unwrap();
                let mut reference = fixture.request(filter.clone());
                (reference.hint, reference.sort) = (Hint::Natural(Direction::Forward), sort.clone());
                // Two arrays side by side have no order.
                let Ok(expected) = fixture.find(&reference) else { continue };
                let mut request = fixture.request(filter.clone());
                request.sort = sort.clone();
                let (found, plan) = fixture.find_with_summary(&request).unwrap();
                let told = || format!("seed {seed} of {number}: {filter} sorted by {sort} with {plan}");
                assert_eq!(id_set(&found), id_set(&expected), "{}", told());
                assert_eq!(sort_keys(&pattern, &found), sort_keys(&pattern, &expected), "{}", told());
                plans.insert(plan.clone());
                let limit = chance.below(8) as i64 + 1;
                request.limit = Some(limit);
                let limited = fixture.find(&request).unwrap();
                let first = &expected[..expected.len().min(limit as usize)];
                assert_eq!(sort_keys(&pattern, &limited), sort_keys(&pattern, first), "limited to {limit}: {}", told());
            }
        }
    }
    for stage in ["SORT(", "SORT_MERGE(", "FETCH(IXSCAN)"] {
        assert!(plans.iter().any(|plan| plan.contains(stage)), "{stage} was never used: {plans:?}");
    }
}
