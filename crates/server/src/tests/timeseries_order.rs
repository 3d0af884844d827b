//! Time-series collections over the wire: orders by time, and results that become time series.

use super::node::{Node, batch, node};
use super::*;
use pando_doc::{Array, DocBuilder, Value};

const HOUR_MS: i64 = 1_699_999_200_000;

fn at(seconds: i64) -> Value<'static> {
    Value::DateTime(HOUR_MS + seconds * 1000)
}

/// A time series of three sources, whose buckets overlap, and a plain collection with the same documents.
async fn both() -> Node {
    let mut node = node().await;
    node.ok(doc! { "create": "s", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
    node.ok(doc! { "createIndexes": "s", "indexes": [{ "key": { "t": -1 }, "name": "late" }] }).await;
    let mut documents = Vec::new();
    for round in 0..4_i64 {
        for place in 0..60_i64 {
            let id = round * 60 + place;
            documents.push(doc! { "_id": id, "t": at(place * 240 + round * 7), "m": (id % 3), "x": (id % 11) });
        }
    }
    for collection in ["s", "p"] {
        let documents = Array::from_iter(documents.iter());
        node.ok(doc! { "insert": collection, "documents": documents }).await;
    }
    node
}

async fn ids(node: &mut Node, collection: &str, pipeline: &Array, hint: &Doc) -> Vec<i64> {
    let mut command = DocBuilder::new();
    command.append("aggregate", collection);
    command.append("pipeline", pipeline);
    command.append("cursor", doc! { "batchSize": 10_000 });
    if !hint.is_empty() {
        command.append("hint", hint);
    }
    let reply = node.ok(command.finish()).await;
    batch(&reply, "firstBatch").iter().map(|found| found.get("_id").unwrap().to_i64_exact().unwrap()).collect()
}

/// Whether the pipeline on the time series sorts with a bound.
async fn is_bounded(node: &mut Node, pipeline: &Array, hint: &Doc) -> bool {
    let mut command = DocBuilder::new();
    command.append("aggregate", "s");
    command.append("pipeline", pipeline);
    command.append("cursor", doc! {});
    if !hint.is_empty() {
        command.append("hint", hint);
    }
    let reply = node.ok(doc! { "explain": command.finish(), "verbosity": "queryPlanner" }).await;
    reply.to_string().contains("$_internalBoundedSort")
}

#[test]
fn x29_sorts_by_time_keep_no_more_than_they_must() {
    run(async {
        let mut node = both().await;
        let none = doc! {};
        let cases = [
            (doc! { "t": 1 }, none.clone(), true),
            (doc! { "t": -1 }, none.clone(), true),
            (doc! { "t": 1 }, doc! { "t": -1 }, true),
            (doc! { "t": -1 }, doc! { "t": -1 }, true),
            (doc! { "m": 1, "t": 1 }, doc! { "m": 1, "t": 1 }, true),
            (doc! { "m": -1, "t": -1 }, doc! { "m": 1, "t": 1 }, true),
            (doc! { "m": 1, "t": -1 }, doc! { "m": 1, "t": 1 }, false),
            (doc! { "x": 1, "t": 1 }, none.clone(), false),
        ];
        for (sort, hint, is_helped) in cases {
            let filters = [doc! {}, doc! { "x": { "$gt": 3 } }, doc! { "t": { "$gte": at(3000) } }, doc! { "m": 2 }];
            for filter in filters {
                let stages = [doc! { "$match": &filter }, doc! { "$sort": &sort }, doc! { "$limit": 150 }];
                let pipeline = Array::from_iter(stages.iter());
                let wanted = ids(&mut node, "p", &pipeline, &none).await;
                assert_eq!(ids(&mut node, "s", &pipeline, &hint).await, wanted, "{sort} of {filter} by {hint}");
            }
            let pipeline = Array::from_iter([doc! { "$sort": &sort }]);
            assert_eq!(is_bounded(&mut node, &pipeline, &hint).await, is_helped, "{sort} by {hint}");
        }
        // What is sorted by is made anew.
        let changed = Array::from_iter([doc! { "$set": { "t": "$x" } }, doc! { "$sort": { "t": 1 } }]);
        assert!(!is_bounded(&mut node, &changed, &none).await);
        // Neither ids nor starts of buckets are in order with a time before 1970.
        let early = doc! { "_id": 1000, "t": (Value::DateTime(-86_400_000)), "m": 1, "x": 1 };
        for collection in ["s", "p"] {
            node.ok(doc! { "insert": collection, "documents": [&early] }).await;
        }
        let pipeline = Array::from_iter([doc! { "$sort": { "t": 1 } }]);
        assert!(!is_bounded(&mut node, &pipeline, &none).await);
        assert!(is_bounded(&mut node, &pipeline, &doc! { "t": -1 }).await, "ends are in order");
        for hint in [none.clone(), doc! { "t": -1 }] {
            let wanted = ids(&mut node, "p", &pipeline, &none).await;
            assert_eq!(ids(&mut node, "s", &pipeline, &hint).await, wanted);
            assert_eq!(wanted.first(), Some(&1000));
        }
    });
}

#[test]
fn x29_times_bound_the_ids_of_buckets() {
    run(async {
        let mut node = both().await;
        node.ok(doc! { "dropIndexes": "s", "index": "late" }).await;
        let range = doc! { "$gte": at(7200), "$lt": at(7500) };
        let pipeline = Array::from_iter([doc! { "$match": { "t": range } }, doc! { "$sort": { "_id": 1 } }]);
        let wanted = ids(&mut node, "p", &pipeline, &doc! {}).await;
        assert_eq!(ids(&mut node, "s", &pipeline, &doc! {}).await, wanted);
        let command = doc! { "aggregate": "s", "pipeline": &pipeline, "cursor": {} };
        let reply = node.ok(doc! { "explain": command, "verbosity": "queryPlanner" }).await;
        assert!(reply.to_string().contains("CLUSTERED_IXSCAN"), "{reply}");
    });
}

#[test]
fn x29_results_become_a_time_series() {
    run(async {
        let mut node = both().await;
        let out = |target: Doc| doc! { "aggregate": "p", "pipeline": [{ "$out": target }], "cursor": {} };
        let series = doc! { "timeField": "t", "metaField": "m" };
        let database = node.ok(doc! { "dbStats": 1 }).await;
        let database = text(&database, "db");
        node.ok(out(doc! { "db": (database.as_str()), "coll": "o", "timeseries": &series })).await;
        let count = node.ok(doc! { "count": "o" }).await;
        assert_eq!(count.get("n"), Some(Value::Int32(240)));
        let reply = node.ok(doc! { "listCollections": 1, "filter": { "name": "o" } }).await;
        assert_eq!(text(&batch(&reply, "firstBatch")[0], "type"), "timeseries");
        // What is there already stays what it is, with its indexes.
        node.ok(doc! { "createIndexes": "o", "indexes": [{ "key": { "x": 1 }, "name": "x_1" }] }).await;
        let half = doc! { "$match": { "m": 1 } };
        node.ok(doc! { "aggregate": "p", "pipeline": [half, { "$out": "o" }], "cursor": {} }).await;
        let count = node.ok(doc! { "count": "o" }).await;
        assert_eq!(count.get("n"), Some(Value::Int32(80)));
        let reply = node.ok(doc! { "listIndexes": "o" }).await;
        assert!(batch(&reply, "firstBatch").iter().any(|index| text(index, "name") == "x_1"), "{reply}");
        let other = doc! { "timeField": "x" };
        assert_eq!(
            node.code(out(doc! { "db": (database.as_str()), "coll": "o", "timeseries": &other })).await,
            7_406_103
        );
        assert_eq!(
            node.code(out(doc! { "db": (database.as_str()), "coll": "p", "timeseries": &series })).await,
            7_268_700
        );
        node.ok(doc! { "create": "v", "viewOn": "p" }).await;
        assert_eq!(
            node.code(out(doc! { "db": (database.as_str()), "coll": "v", "timeseries": &series })).await,
            7_268_703
        );
        let unknown = doc! { "timeField": "t", "more": 1 };
        assert_eq!(node.code(out(doc! { "db": (database.as_str()), "coll": "o", "timeseries": unknown })).await, 40415);
        // Nothing is left of what failed.
        let reply = node.ok(doc! { "listCollections": 1, "filter": { "name": { "$regex": "agg_out" } } }).await;
        assert_eq!(batch(&reply, "firstBatch"), Vec::<Doc>::new());
    });
}

#[test]
fn x29_arrays_and_mixed_kinds_are_refused_where_an_index_or_a_filter_relies_on_it() {
    run(async {
        let mut node = both().await;
        let index = doc! { "key": { "m": 1, "a.b": 1 }, "name": "n" };
        node.ok(doc! { "createIndexes": "s", "indexes": [index] }).await;
        let refused = doc! { "insert": "s", "documents": [{ "t": at(0), "m": 1, "a": [{ "b": 1 }] }] };
        assert!(node.ok(refused).await.to_string().contains("5930501"));
        node.ok(doc! { "insert": "s", "documents": [{ "t": at(0), "m": 1, "a": { "b": 1 }, "c": [1] }] }).await;
        let mixed = |value: bool| doc! { "collMod": "s", "timeseriesBucketsMayHaveMixedSchemaData": value };
        let bucket = doc! {
            "_id": (Value::ObjectId(pando_doc::ObjectId::from_parts(1_699_999_200, [9; 5], 9))),
            "control": { "version": 1, "min": { "t": at(0), "x": 1 }, "max": { "t": at(1), "x": "a" } },
            "meta": 9,
            "data": { "t": { "0": at(0), "1": at(1) }, "x": { "0": 1, "1": "a" } },
        };
        let write = doc! { "insert": "system.buckets.s", "documents": [&bucket] };
        assert!(node.ok(write.clone()).await.to_string().contains("408"));
        node.ok(mixed(true)).await;
        assert_eq!(node.ok(write).await.get("n"), Some(Value::Int32(1)));
        assert_eq!(node.code(mixed(false)).await, 72, "there is such a bucket");
        node.ok(doc! { "delete": "s", "deletes": [{ "q": { "m": 9 }, "limit": 0 }] }).await;
        node.ok(mixed(false)).await;
    });
}
