//! Documents that expire.

use super::node::{Node, node, node_with};
use super::*;
use pando_commands::ttl::Pass;
use pando_doc::Value;

/// One pass of the monitor.
pub(super) async fn pass(node: &Node) {
    let server = node.fixture.server.node();
    let data = server.data.clone().unwrap();
    Pass::new(&data, &server.counters, &Log::silent()).run().await.unwrap();
}

fn now_ms(node: &Node) -> i64 {
    node.fixture.server.node().now_ms()
}

/// What serverStatus says of the monitor.
async fn counted(node: &mut Node, name: &str) -> f64 {
    let status = node.ok_on("admin", doc! { "serverStatus": 1 }).await;
    let metrics = status.get("metrics").unwrap().as_document().unwrap();
    metrics.get("ttl").unwrap().as_document().unwrap().get(name).unwrap().to_double().unwrap()
}

/// How many deletes each group in the oplog has, and how many there are by themselves.
async fn logged(node: &mut Node) -> (Vec<usize>, usize) {
    let sizes = doc! { "aggregate": "oplog.rs", "cursor": { "batchSize": 1000 }, "pipeline": [
        { "$match": { "op": "c", "ns": "admin.$cmd", "o.applyOps.op": "d" } },
        { "$project": { "_id": 0, "n": { "$size": "$o.applyOps" } } },
    ] };
    let groups = super::node::batch(&node.ok_on("local", sizes).await, "firstBatch");
    let single = node.ok_on("local", doc! { "count": "oplog.rs", "query": { "op": "d", "ns": "d.c" } }).await;
    (groups.iter().map(|group| number(group, "n") as usize).collect(), number(&single, "n") as usize)
}

/// What serverStatus says of batches: how many, and how many documents.
async fn batches(node: &mut Node) -> (f64, f64) {
    let status = node.ok_on("admin", doc! { "serverStatus": 1 }).await;
    let section = status.get("batchedDeletes").unwrap().as_document().unwrap().to_doc();
    (number(&section, "batches"), number(&section, "docs"))
}

#[test]
fn x15_expired_documents_leave_in_batches() {
    run(async {
        let mut node = node_with(&[("batchedDeletesTargetBatchDocs", "10")]).await;
        index(&mut node, doc! { "key": { "at": 1 }, "name": "at", "expireAfterSeconds": 0 }).await;
        let old = Value::DateTime(now_ms(&node) - 1000);
        let documents = || (0..35).map(|id| doc! { "_id": id, "at": old }).collect::<Vec<_>>();
        node.insert(documents()).await;
        pass(&node).await;
        assert_eq!((logged(&mut node).await, batches(&mut node).await), ((vec![10, 10, 10, 5], 0), (4.0, 35.0)));
        node.ok_on("admin", doc! { "setParameter": 1, "ttlMonitorBatchDeletes": false }).await;
        node.insert(documents()).await;
        pass(&node).await;
        assert!(ids(&mut node, "c").await.is_empty());
        assert_eq!((logged(&mut node).await, batches(&mut node).await), ((vec![10, 10, 10, 5], 35), (4.0, 35.0)));
    });
}

#[test]
fn x15_deletes_of_clients_go_in_batches_within_one_entry() {
    run(async {
        let unlimited = [("batchedDeletesTargetBatchDocs", "0"), ("batchedDeletesTargetStagedDocBytes", "0")];
        let mut node = node_with(&unlimited).await;
        // Their keys do not fit into one entry.
        let long = |id: i32| format!("{id}{}", "x".repeat(6 << 20));
        for id in 0..5 {
            node.insert(vec![doc! { "_id": (long(id)) }]).await;
        }
        let point = "throwWriteConflictExceptionInBatchedDeleteStage";
        node.ok_on("admin", doc! { "configureFailPoint": point, "mode": { "times": 2 } }).await;
        let deleted = node.ok(doc! { "delete": "c", "deletes": [{ "q": {}, "limit": 0 }] }).await;
        assert_eq!(number(&deleted, "n"), 5.0);
        assert_eq!(logged(&mut node).await, (vec![2, 2], 1));
        assert_eq!(batches(&mut node).await, (3.0, 5.0));
        node.ok_on("admin", doc! { "setParameter": 1, "batchUserMultiDeletes": false }).await;
        node.insert(vec![doc! { "_id": 1 }, doc! { "_id": 2 }]).await;
        node.ok(doc! { "delete": "c", "deletes": [{ "q": {}, "limit": 0 }] }).await;
        assert_eq!(logged(&mut node).await, (vec![2, 2], 3));
    });
}

#[test]
fn x15_a_primary_corrects_what_an_old_version_has_stored() {
    run(async {
        let mut node = node().await;
        let points =
            ["skipTTLIndexValidationOnCreateIndex", "skipTTLIndexInvalidExpireAfterSecondsValidationForCreateIndex"];
        for point in points {
            node.ok_on("admin", doc! { "configureFailPoint": point, "mode": "alwaysOn" }).await;
        }
        for (field, seconds) in [("a", f64::NAN), ("b", f64::MAX), ("c", f64::MIN)] {
            let mut key = pando_doc::DocBuilder::new();
            key.append(field, 1);
            index(&mut node, doc! { "key": (key.finish()), "name": field, "expireAfterSeconds": seconds }).await;
        }
        for point in points {
            node.ok_on("admin", doc! { "configureFailPoint": point, "mode": "off" }).await;
        }
        let data = node.fixture.server.node().data.clone().unwrap();
        let stored = |name: &str| {
            let collection = data.catalog.latest().collection(&"d.c".parse().unwrap()).cloned().unwrap();
            collection.index(name).unwrap().descriptor.specification.get("expireAfterSeconds").unwrap().to_double()
        };
        assert!(stored("a").unwrap().is_nan() && stored("b") == Some(f64::MAX) && stored("c") == Some(f64::MIN));
        let listed = super::node::batch(&node.ok(doc! { "listIndexes": "c" }).await, "firstBatch");
        let never = f64::from(i32::MAX);
        assert!(listed.iter().skip(1).all(|index| number(index, "expireAfterSeconds") == never), "{listed:?}");
        pando_commands::ttl::correct_expiries(&data, &Log::silent()).await;
        assert_eq!(["a", "b", "c"].map(stored), [Some(never); 3]);
        let told = doc! { "op": "c", "o.collMod": "c", "o.index.expireAfterSeconds": (i32::MAX) };
        assert_eq!(number(&node.ok_on("local", doc! { "count": "oplog.rs", "query": told }).await, "n"), 3.0);
    });
}

async fn index(node: &mut Node, specification: Doc) {
    node.ok(doc! { "createIndexes": "c", "indexes": [specification] }).await;
}

async fn ids(node: &mut Node, collection: &str) -> Vec<i32> {
    let found = node.find(doc! { "find": collection, "sort": { "_id": 1 } }).await;
    found.iter().map(|document| number(document, "_id") as i32).collect()
}

#[test]
fn x15_documents_leave_when_their_date_is_old_enough() {
    run(async {
        let mut node = node().await;
        index(&mut node, doc! { "key": { "at": 1 }, "name": "at", "expireAfterSeconds": 100 }).await;
        let now = now_ms(&node);
        let date = |seconds: i64| Value::DateTime(now - seconds * 1000);
        node.insert(vec![
            doc! { "_id": 1, "at": (date(1000)) },
            doc! { "_id": 2, "at": (date(50)) },
            doc! { "_id": 3, "at": "yesterday" },
            doc! { "_id": 4 },
            doc! { "_id": 5, "at": [(date(10)), (date(1000))] },
            doc! { "_id": 6, "at": (Value::DateTime(i64::MIN)) },
        ])
        .await;
        pass(&node).await;
        assert_eq!(ids(&mut node, "c").await, [2, 3, 4]);
        assert_eq!(counted(&mut node, "deletedDocuments").await, 3.0);
        assert_eq!((counted(&mut node, "passes").await, counted(&mut node, "subPasses").await), (1.0, 1.0));
        node.ok(doc! { "collMod": "c", "index": { "name": "at", "expireAfterSeconds": 10 } }).await;
        pass(&node).await;
        assert_eq!(ids(&mut node, "c").await, [3, 4]);
        // Three at once, then one.
        assert_eq!(logged(&mut node).await, (vec![3], 1));
    });
}

#[test]
fn x15_hidden_descending_and_partial_indexes_expire_what_they_have() {
    run(async {
        let mut node = node().await;
        index(&mut node, doc! { "key": { "at": (-1) }, "name": "hidden", "expireAfterSeconds": 0, "hidden": true })
            .await;
        let partial = doc! { "key": { "b": 1 }, "name": "b", "expireAfterSeconds": 0, "partialFilterExpression": { "done": true } };
        index(&mut node, partial).await;
        // One that was given no number never expires anything.
        index(&mut node, doc! { "key": { "n": 1 }, "name": "n", "expireAfterSeconds": (f64::NAN) }).await;
        let old = Value::DateTime(now_ms(&node) - 1000);
        node.insert(vec![
            doc! { "_id": 1, "at": old },
            doc! { "_id": 2, "b": old, "done": true },
            doc! { "_id": 3, "b": old, "done": false },
            doc! { "_id": 4, "n": old },
        ])
        .await;
        pass(&node).await;
        assert_eq!(ids(&mut node, "c").await, [3, 4]);
    });
}

#[test]
fn x15_indexes_are_visited_in_turn_until_nothing_is_left() {
    run(async {
        let mut node = node_with(&[
            ("ttlIndexDeleteTargetDocs", "10"),
            ("ttlMonitorSubPassTargetSecs", "0"),
            ("ttlCollLowPrioritySubpassLimit", "2"),
        ])
        .await;
        index(&mut node, doc! { "key": { "at": 1 }, "name": "at", "expireAfterSeconds": 0 }).await;
        node.ok(doc! { "createIndexes": "other", "indexes": [{ "key": { "at": 1 }, "name": "at", "expireAfterSeconds": 0 }] }).await;
        let old = Value::DateTime(now_ms(&node) - 1000);
        node.insert((0..35).map(|id| doc! { "_id": id, "at": old }).collect()).await;
        node.insert_into("other", &[doc! { "_id": 1, "at": old }]).await;
        pass(&node).await;
        assert!(ids(&mut node, "c").await.is_empty() && ids(&mut node, "other").await.is_empty());
        // 10, 10, 10 and 5; the last two with the usual priority.
        assert_eq!((counted(&mut node, "passes").await, counted(&mut node, "subPasses").await), (1.0, 4.0));
        assert_eq!(counted(&mut node, "collSubpassesIncreasedPriority").await, 2.0);
        assert_eq!(counted(&mut node, "deletedDocuments").await, 36.0);
    });
}

#[test]
fn x15_clustered_collections_expire_by_their_key() {
    run(async {
        let mut node = node().await;
        let clustered = doc! { "key": { "_id": 1 }, "unique": true };
        node.ok(doc! { "create": "k", "clusteredIndex": clustered, "expireAfterSeconds": 100 }).await;
        let now = now_ms(&node);
        let date = |seconds: i64| Value::DateTime(now - seconds * 1000);
        let documents = [doc! { "_id": (date(1000)) }, doc! { "_id": (date(10)) }, doc! { "_id": 7 }];
        node.insert_into("k", &documents).await;
        pass(&node).await;
        assert_eq!(
            node.find(doc! { "find": "k", "sort": { "_id": 1 } }).await,
            [documents[2].clone(), documents[1].clone()]
        );
        node.ok(doc! { "collMod": "k", "expireAfterSeconds": "off" }).await;
        node.insert_into("k", &documents[..1]).await;
        pass(&node).await;
        assert_eq!(node.find(doc! { "find": "k" }).await.len(), 3);
    });
}

#[test]
fn x15_x27_deletes_are_accounted_to_their_database() {
    run(async {
        let mut node = node_with(&[("aggregateOperationResourceConsumptionMetrics", "true")]).await;
        index(&mut node, doc! { "key": { "at": 1 }, "name": "at", "expireAfterSeconds": 0 }).await;
        let old = Value::DateTime(now_ms(&node) - 1000);
        node.insert((0..10).map(|id| doc! { "_id": id, "at": old }).collect()).await;
        let sums = |clear: bool| doc! { "aggregate": 1, "pipeline": [{ "$operationMetrics": { "clearMetrics": clear } }], "cursor": {} };
        node.ok_on("admin", sums(true)).await;
        pass(&node).await;
        let found = super::node::batch(&node.ok_on("admin", sums(false)).await, "firstBatch");
        assert_eq!((text(&found[0], "db"), number(&found[0], "docUnitsWritten")), ("d".to_owned(), 10.0));
        // One unit for each `_id`, two for each date with its record id.
        assert_eq!(number(&found[0], "idxEntryUnitsWritten"), 30.0);
    });
}
