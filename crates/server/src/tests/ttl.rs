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
        let deletes = node.ok_on("local", doc! { "count": "oplog.rs", "query": { "op": "d", "ns": "d.c" } }).await;
        assert_eq!(number(&deletes, "n"), 4.0);
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
