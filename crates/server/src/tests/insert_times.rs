//! When the documents of one insert are there: each at the time of its own entry in the oplog.

use super::node::{Node, batch, node, part};
use super::*;
use pando_base::Timestamp;
use pando_doc::{DocBuilder, Value};

/// The times of the entries of these documents, by `_id`.
async fn times(node: &mut Node, namespace: &str) -> Vec<Timestamp> {
    let find = doc! { "find": "oplog.rs", "filter": { "op": "i", "ns": namespace }, "batchSize": 10_000 };
    let entries = node.find_on("local", find).await;
    let mut times: Vec<_> = entries
        .iter()
        .map(|entry| {
            let id = number(&part(entry, "o"), "_id") as usize;
            (id, entry.get("ts").and_then(|time| time.as_timestamp()).expect("a time"))
        })
        .collect();
    times.sort_unstable_by_key(|(id, _)| *id);
    times.into_iter().map(|(_, time)| time).collect()
}

fn at(time: Timestamp) -> Doc {
    doc! { "level": "snapshot", "atClusterTime": Value::Timestamp(time) }
}

#[test]
fn x13_a_thousand_documents_of_one_insert_are_read_one_by_one_in_the_past() {
    run(async {
        let mut node = node().await;
        let index = doc! { "key": { "a": 1 }, "name": "a_1" };
        node.ok(doc! { "createIndexes": "c", "indexes": [index] }).await;
        node.insert((0..1000).map(|id| doc! { "_id": id, "a": (-id) }).collect()).await;
        let times = times(&mut node, "d.c").await;
        assert_eq!(times.len(), 1000);
        assert!(times.windows(2).all(|pair| pair[0] < pair[1]), "in their order");
        // Every second one by the index.
        let found_by = [doc! {}, doc! { "a": { "$lte": 0 } }];
        for (place, time) in times.iter().enumerate() {
            let pipeline = [doc! { "$match": (&found_by[place % 2]) }, doc! { "$count": "n" }];
            let mut count = DocBuilder::new();
            count.append("aggregate", "c");
            count.array("pipeline", |stages| pipeline.iter().for_each(|stage| stages.push(stage)));
            count.append("cursor", Doc::new());
            count.append("readConcern", at(*time));
            let counted = batch(&node.ok(count.finish()).await, "firstBatch");
            assert_eq!(number(&counted[0], "n") as usize, place + 1);
        }
        let last = doc! { "find": "c", "sort": { "_id": -1 }, "limit": 1, "readConcern": at(times[499]) };
        assert_eq!(node.find(last).await, [doc! { "_id": 499, "a": (-499) }]);
    });
}

#[test]
fn x13_an_index_knows_of_several_keys_from_the_document_on_that_has_them() {
    run(async {
        let mut node = node().await;
        let index = doc! { "key": { "a": 1 }, "name": "a_1" };
        node.ok(doc! { "createIndexes": "c", "indexes": [index] }).await;
        let documents = (0..6).map(|id| {
            if id < 3 {
                doc! { "_id": id, "a": id }
            } else {
                doc! { "_id": id, "a": [id, 9] }
            }
        });
        node.insert(documents.collect()).await;
        for (place, time) in times(&mut node, "d.c").await.into_iter().enumerate() {
            let find = doc! { "find": "c", "filter": { "a": { "$gte": 0 } }, "hint": "a_1", "readConcern": at(time) };
            assert_eq!(node.find(find).await.len(), place + 1);
        }
        assert_eq!(node.find(doc! { "find": "c", "filter": { "a": 9 } }).await.len(), 3);
        let valid = node.ok(doc! { "validate": "c" }).await;
        assert_eq!(valid.get("valid"), Some(Value::Bool(true)), "{valid}");
    });
}
