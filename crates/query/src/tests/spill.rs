//! Stages that need more memory than they may take.

use super::support::*;
use crate::executor::drive;
use crate::explain::Verbosity;
use crate::pipeline::StageRun;
use crate::request::AggregateRequest;
use crate::spill::{
    DENSIFY_MEMORY_BYTES_MAX, GROUP_MEMORY_BYTES_MAX, PARAMETERS, SORT_MEMORY_BYTES_MAX, SPILL_FREE_BYTES_MIN,
    WINDOW_MEMORY_BYTES_MAX,
};
use pando_base::{MetricTree, MetricValue, ParameterSet, Result};
use pando_doc::{Doc, FieldPath, Value, doc};
use pando_env::simulated::{Fault, FaultKind, SimulatedDisk};
use pando_sorter::SpillDirectory;
use std::sync::Arc;

/// A collection whose stages may take so much memory and write to a disk that is returned.
fn filled(memory_bytes_max: i64) -> (Fixture, SimulatedDisk) {
    let mut fixture = Fixture::new(&[index(doc! { "a": 1, "b": 1 })]);
    let parameters = Arc::new(ParameterSet::new(&[PARAMETERS], true).unwrap());
    for parameter in [&SORT_MEMORY_BYTES_MAX, &GROUP_MEMORY_BYTES_MAX, &WINDOW_MEMORY_BYTES_MAX] {
        parameters.set(parameter, memory_bytes_max).unwrap();
    }
    parameters.set(&SPILL_FREE_BYTES_MIN, 0).unwrap();
    let disk = SimulatedDisk::new(11);
    let directory = Arc::new(SpillDirectory::new(disk.handle(), "/data/_tmp"));
    fixture.engine.parameters = parameters;
    fixture.engine = fixture.engine.clone().spilling_to(directory);
    let document = |n: i32| {
        let scattered = n.wrapping_mul(7919) % 1009;
        doc! { "_id": n, "a": scattered, "b": (n % 13), "t": [scattered, (n % 5)], "s": format!("text {}", n % 97) }
    };
    fixture.insert(&(0..1500).map(document).collect::<Vec<_>>());
    (fixture, disk)
}

fn run(fixture: &Fixture, pipeline: &[Doc], allow: Option<bool>) -> Result<(Vec<Doc>, Vec<StageRun>, bool)> {
    let mut operation = fixture.operation();
    let mut request = AggregateRequest::new(fixture.namespace.clone(), pipeline.to_vec());
    request.allow_disk_use = allow;
    let mut aggregation = fixture.engine.aggregate(&mut operation, &request, None)?;
    let mut found: Vec<Doc> = Vec::new();
    now(drive(&mut aggregation.executor, &mut operation, &*fixture.engine.collections, &mut found))?;
    let executor = &aggregation.executor;
    let root_used_disk = executor.executor().is_some_and(|executor| executor.root().used_disk());
    Ok((found, executor.runs(), root_used_disk))
}

fn pipelines() -> Vec<(&'static str, Vec<Doc>)> {
    let windows = doc! { "$setWindowFields": {
        "partitionBy": "$b",
        "sortBy": { "a": 1 },
        "output": {
            "sum": { "$sum": "$a", "window": { "documents": [-2, 1] } },
            "first": { "$first": "$_id" },
            "rank": { "$documentNumber": {} },
            "before": { "$shift": { "output": "$_id", "by": -1 } },
        },
    } };
    let inhibit = doc! { "$_internalInhibitOptimization": {} };
    let by_id = doc! { "$sort": { "_id": 1 } };
    let accumulators = doc! { "$group": {
        "_id": { "b": "$b", "s": "$s" },
        "sum": { "$sum": "$a" },
        "avg": { "$avg": "$a" },
        "all": { "$push": "$_id" },
        "first": { "$first": "$_id" },
        "last": { "$last": "$t" },
        "set": { "$addToSet": "$b" },
        "least": { "$min": "$a" },
        "top": { "$topN": { "n": 2, "sortBy": { "a": -1 }, "output": ["$a", "$_id"] } },
        "median": { "$median": { "input": "$a", "method": "approximate" } },
    } };
    vec![
        ("sort", vec![doc! { "$sort": { "a": -1, "b": 1 } }]),
        ("sort of arrays", vec![inhibit.clone(), doc! { "$sort": { "t": 1, "s": -1 } }]),
        ("sort with limit", vec![inhibit, doc! { "$sort": { "s": 1, "a": 1 } }, doc! { "$limit": 700 }]),
        ("group", vec![accumulators, by_id.clone()]),
        ("group of everything", vec![doc! { "$group": { "_id": "$_id", "t": { "$first": "$t" } } }, by_id]),
        (
            "bucketAuto",
            vec![doc! { "$bucketAuto": { "groupBy": "$s", "buckets": 7, "output": { "n": { "$sum": "$a" } } } }],
        ),
        ("windows", vec![windows]),
    ]
}

#[test]
fn x14_stages_on_disk_give_what_they_give_in_memory() {
    let (roomy, roomy_disk) = filled(100 << 20);
    let (tight, tight_disk) = filled(8_000);
    for (name, pipeline) in pipelines() {
        let (wanted, runs, root_used_disk) = run(&roomy, &pipeline, None).unwrap();
        assert!(!root_used_disk && runs.iter().all(|run| !run.facts.used_disk), "{name}");
        let (found, runs, root_used_disk) = run(&tight, &pipeline, Some(true)).unwrap();
        assert!(root_used_disk || runs.iter().any(|run| run.facts.used_disk), "{name} did not use the disk");
        assert!(found == wanted, "{name}\n{:?}\n{:?}", found.first(), wanted.first());
        assert!(tight_disk.files().is_empty(), "{name} left {:?}", tight_disk.files());
    }
    assert!(roomy_disk.files().is_empty());
}

#[test]
fn x14_without_leave_to_use_the_disk_too_much_is_refused() {
    let (tight, disk) = filled(8_000);
    for (name, pipeline) in pipelines() {
        let error = run(&tight, &pipeline, Some(false)).unwrap_err();
        assert_eq!(error.code().number(), 292, "{name}: {error}");
    }
    let (_, mut pipeline) = pipelines().pop().unwrap();
    pipeline.insert(0, doc! { "$match": { "b": 1 } });
    tight.engine.parameters.set(&SORT_MEMORY_BYTES_MAX, 100 << 20).unwrap();
    assert_eq!(run(&tight, &pipeline, Some(false)).unwrap_err().code().number(), 5643011);
    // The partitions of a $densify stay in memory, whatever is allowed.
    let densify = doc! { "$densify": { "field": "a", "partitionByFields": ["_id"], "range": { "step": 1, "bounds": "partition" } } };
    let pipeline = [doc! { "$sort": { "_id": 1 } }, densify];
    tight.engine.parameters.set(&DENSIFY_MEMORY_BYTES_MAX, 1000).unwrap();
    assert_eq!(run(&tight, &pipeline, None).unwrap_err().code().number(), 6007200);
    assert_eq!(disk.operation_count(), 0);
}

#[test]
fn x14_find_sorts_on_disk() {
    let (tight, disk) = filled(8_000);
    let mut request = tight.request(doc! { "a": { "$gte": 0 } });
    (request.sort, request.projection) = (doc! { "b": -1, "a": 1 }, doc! { "a": 1, "b": 1, "_id": 0 });
    let found = tight.find(&request).unwrap();
    let number = |document: &Doc, name: &str| document.get(name).unwrap().to_i64_exact().unwrap();
    let keys: Vec<(i64, i64)> = found.iter().map(|found| (-number(found, "b"), number(found, "a"))).collect();
    assert!(keys.is_sorted() && keys.len() == 1500);
    request.allow_disk_use = Some(false);
    let error = tight.find(&request).unwrap_err();
    assert_eq!(error.code().number(), 292);
    assert!(error.reason().starts_with("Sort exceeded memory limit of 8000 bytes"), "{error}");
    assert!(disk.operation_count() > 0 && disk.files().is_empty());
}

#[test]
fn x14_explain_and_metrics_tell_of_spilling() {
    let (tight, _disk) = filled(8_000);
    let explain = |pipeline: Vec<Doc>| {
        let request = AggregateRequest::new(tight.namespace.clone(), pipeline);
        let operation = &mut tight.operation();
        now(tight.engine.explain_aggregate(operation, &request, None, Verbosity::ExecutionStats)).unwrap()
    };
    let at = |document: &Doc, path: &str| {
        let path = FieldPath::lenient(path).unwrap();
        pando_doc::get_path_with_indexes(document.view(), &path).map(Value::to_owned)
    };
    let number = |document: &Doc, path: &str| at(document, path).unwrap().view().to_i64_exact().unwrap();
    let sorted = explain(vec![doc! { "$sort": { "s": 1 } }]);
    let stage = "executionStats.executionStages";
    assert_eq!(at(&sorted, &format!("{stage}.usedDisk")), Some(true.into()), "{sorted}");
    assert!(number(&sorted, &format!("{stage}.spills")) > 3);
    assert!(number(&sorted, &format!("{stage}.spilledDataStorageSize")) > 0);
    let grouped = explain(vec![doc! { "$group": { "_id": "$s", "n": { "$sum": 1 } } }]);
    assert_eq!(number(&grouped, "stages.1.nReturned"), 97);
    assert_eq!(at(&grouped, "stages.1.usedDisk"), Some(true.into()), "{grouped}");
    assert!(number(&grouped, "stages.1.spilledRecords") > 97);
    assert!(number(&grouped, "stages.1.maxAccumulatorMemoryUsageBytes.n") > 0);
    let mut tree = MetricTree::new();
    tight.engine.spill_counters().add_metrics(&mut tree).unwrap();
    let metric = |name: &str| tree.iter().find(|(path, _)| *path == name).map(|(_, value)| value);
    assert_eq!(metric("metrics.query.sort.totalKeysSorted"), Some(MetricValue::Long(1500)));
    for name in ["sort.spillToDisk", "sort.spillToDiskBytes", "group.spills", "group.spilledRecords"] {
        let value = metric(&format!("metrics.query.{name}"));
        assert!(matches!(value, Some(MetricValue::Long(count)) if count > 1), "{name}: {value:?}");
    }
}

#[test]
fn x14_a_disk_that_fails_fails_the_query_alone() {
    let (tight, disk) = filled(8_000);
    for (name, pipeline) in pipelines() {
        disk.set_capacity_bytes(0);
        assert_eq!(run(&tight, &pipeline, None).unwrap_err().code().number(), 14031, "{name}");
        disk.set_capacity_bytes(1 << 40);
        disk.inject(Fault::new(FaultKind::ReadFails).times(1));
        assert_eq!(run(&tight, &pipeline, None).unwrap_err().code().number(), 16817, "{name}");
        assert!(run(&tight, &pipeline, None).is_ok(), "{name}");
        assert!(disk.files().is_empty(), "{name}");
    }
}
