//! `validate` on what was damaged on purpose, and its repairs.

use super::*;
use pando_base::{Namespace, RecordId};
use pando_operation::Operation;

fn unique_on(field: &str) -> Doc {
    let mut key = DocBuilder::new();
    key.append(field, 1);
    doc! { "createIndexes": "c", "indexes": [{ "key": (key.finish()), "name": "damaged", "unique": true }] }
}

/// A node that stands alone, with documents and an index.
async fn prepared() -> Node {
    let mut node = node_as(ReplicationMode::StandAlone).await;
    let documents: Vec<Doc> = (0..100).map(|id| doc! { "_id": id, "k": (id * 10) }).collect();
    node.insert_into("c", &documents).await;
    node.ok(unique_on("k")).await;
    node.valid("c").await;
    node
}

impl Node {
    /// Changes storage behind the server's back.
    fn tamper(&self, change: impl FnOnce(&mut Operation, &pando_catalog::Collection)) {
        let data = self.fixture.server.node().data.clone().unwrap();
        let namespace = Namespace::of("d", "c").unwrap();
        let collection = data.catalog.latest().collection(&namespace).unwrap().clone();
        let mut operation = data.services.internal_operation("tamper");
        operation
            .in_unit_of_work(|operation| {
                change(operation, &collection);
                Ok(())
            })
            .unwrap();
    }

    async fn invalid(&mut self) -> Doc {
        let reply = self.ok(doc! { "validate": "c" }).await;
        assert_eq!(reply.get("valid"), Some(Value::Bool(false)), "{reply}");
        reply
    }

    async fn repaired(&mut self) -> Doc {
        let reply = self.ok(doc! { "validate": "c", "repair": true }).await;
        assert_eq!(
            (reply.get("valid"), reply.get("repaired")),
            (Some(Value::Bool(true)), Some(Value::Bool(true))),
            "{reply}"
        );
        self.valid("c").await;
        reply
    }
}

fn length(reply: &Doc, name: &str) -> usize {
    reply.get(name).and_then(|array| array.as_array()).map(|array| array.len()).unwrap()
}

/// The key and record id of the index's first entry.
fn first_entry(operation: &mut Operation, collection: &pando_catalog::Collection) -> (Vec<u8>, RecordId) {
    let index = collection.index("damaged").unwrap();
    let mut cursor = index.data.cursor(pando_storage::Direction::Forward);
    let entry = cursor.next(&mut operation.recovery_unit).unwrap().unwrap();
    (entry.key.to_vec(), entry.record_id)
}

/// A node whose index lacks its first entry.
async fn with_missing_entry() -> Node {
    let node = prepared().await;
    node.tamper(|operation, collection| {
        let (key, id) = first_entry(operation, collection);
        collection.index("damaged").unwrap().data.unindex(&mut operation.recovery_unit, &key, &id).unwrap();
    });
    node
}

#[test]
fn x24_missing_entries_are_found_and_put_back() {
    run(async {
        let mut node = with_missing_entry().await;
        let reply = node.invalid().await;
        assert_eq!((length(&reply, "missingIndexEntries"), length(&reply, "extraIndexEntries")), (1, 0), "{reply}");
        let missing =
            reply.get("missingIndexEntries").and_then(|array| array.as_array()?.get(0)?.as_document()).unwrap();
        let expected = doc! { "indexName": "damaged", "recordId": 1_i64, "idKey": 0, "indexKey": { "": 0 } };
        assert_eq!(missing.to_doc(), expected);
        let details = part(&part(&reply, "indexDetails"), "damaged");
        assert_eq!(details.get("valid"), Some(Value::Bool(false)), "{reply}");
        assert_eq!(number(&node.repaired().await, "numInsertedMissingIndexEntries"), 1.0);
    });
}

#[test]
fn x24_extra_entries_are_found_and_removed() {
    run(async {
        let mut node = prepared().await;
        node.tamper(|operation, collection| {
            let (key, _) = first_entry(operation, collection);
            let data = &collection.index("damaged").unwrap().data;
            data.insert(&mut operation.recovery_unit, &key, &RecordId::Long(77), &[], true).unwrap();
        });
        let reply = node.invalid().await;
        assert_eq!((length(&reply, "missingIndexEntries"), length(&reply, "extraIndexEntries")), (0, 1), "{reply}");
        let details = part(&part(&reply, "indexDetails"), "damaged");
        assert!(details.to_string().contains("duplicate key"), "{reply}");
        let reply = node.ok(doc! { "validate": "c", "repair": true }).await;
        assert_eq!(number(&reply, "numRemovedExtraIndexEntries"), 1.0, "{reply}");
        node.valid("c").await;
    });
}

#[test]
fn x24_documents_that_are_none_are_found_and_removed() {
    run(async {
        let mut node = prepared().await;
        node.tamper(|operation, collection| {
            collection.records.insert(&mut operation.recovery_unit, b"no document").unwrap();
        });
        let reply = node.invalid().await;
        assert_eq!((number(&reply, "nInvalidDocuments"), length(&reply, "corruptRecords")), (1.0, 1), "{reply}");
        assert_eq!(number(&node.repaired().await, "numRemovedCorruptRecords"), 1.0);
    });
}

#[test]
fn x24_counts_are_put_right_or_told() {
    run(async {
        let mut node = prepared().await;
        let wrong = |_: &mut Operation, collection: &pando_catalog::Collection| {
            collection.records.set_size(pando_storage::TableSize::new(7, 7)).unwrap();
        };
        node.tamper(wrong);
        let reply = node.ok(doc! { "validate": "c", "enforceFastCount": true }).await;
        let told = "fast count (7) does not match number of records (100) for collection 'd.c'";
        assert!(reply.to_string().contains(told), "{reply}");
        node.valid("c").await;
        assert_eq!(number(&node.ok(doc! { "count": "c" }).await, "n"), 100.0);
    });
}

#[test]
fn x24_documents_are_held_against_the_validator_and_bson() {
    run(async {
        let mut node = prepared().await;
        node.ok(doc! { "collMod": "c", "validator": { "k": { "$lt": 900 } }, "validationAction": "warn" }).await;
        let reply = node.valid("c").await;
        assert_eq!(number(&reply, "nNonCompliantDocuments"), 10.0, "{reply}");
        assert_eq!(length(&reply, "warnings"), 1);
        node.insert_into("c", &[doc! { "_id": 1000, "k": 1, "s": (Value::Undefined) }]).await;
        let reply = node.ok(doc! { "validate": "c", "checkBSONConformance": true }).await;
        assert_eq!((number(&reply, "nNonCompliantDocuments"), length(&reply, "warnings")), (11.0, 2), "{reply}");
        let full = node.ok(doc! { "validate": "c", "full": true }).await;
        assert_eq!(full.get("valid"), Some(Value::Bool(true)), "{full}");
    });
}

#[test]
fn x24_modes_that_do_not_go_together_are_refused() {
    run(async {
        let mut node = prepared().await;
        for body in [
            doc! { "validate": "c", "background": true, "full": true },
            doc! { "validate": "c", "background": true, "enforceFastCount": true },
            doc! { "validate": "c", "background": true, "repair": true },
            doc! { "validate": "c", "enforceFastCount": true, "repair": true },
            doc! { "validate": "c", "checkBSONConformance": true, "repair": true },
            doc! { "validate": "c", "checkBSONConformance": false, "full": true },
            doc! { "validate": "c", "metadata": true, "full": true },
        ] {
            assert_eq!(node.code(body.clone()).await, 72, "{body}");
        }
        let reply = node.ok(doc! { "validate": "c", "metadata": true }).await;
        assert!(reply.get("valid") == Some(Value::Bool(true)) && reply.get("nrecords").is_none(), "{reply}");
        node.ok(doc! { "validate": "c", "background": true }).await;
        let mut member = super::node().await;
        member.insert_into("c", &numbered(3)).await;
        assert_eq!(member.code(doc! { "validate": "c", "repair": true }).await, 72);
    });
}

/// Whether an index is multikey, and for each of its fields whether there are arrays.
fn arrays_of(node: &Node, index: &str) -> (bool, Vec<bool>) {
    let data = node.fixture.server.node().data.clone().unwrap();
    let latest = data.catalog.latest();
    let collection = latest.collection(&Namespace::of("d", "c").unwrap()).unwrap();
    let multikey = collection.index(index).unwrap().multikey.clone();
    (multikey.is_multikey(), multikey.paths().iter().map(|path| !path.is_empty()).collect())
}

#[test]
fn x24_states_that_say_too_much_of_arrays_are_narrowed() {
    run(async {
        let mut node = node_as(ReplicationMode::StandAlone).await;
        let index = |key: Doc, name: &str| doc! { "createIndexes": "c", "indexes": [{ "key": key, "name": name }] };
        node.ok(index(doc! { "a": 1, "b": 1 }, "damaged")).await;
        node.ok(index(doc! { "a": 1 }, "other")).await;
        node.insert_into("c", &[doc! { "_id": 1, "a": [0, 1] }, doc! { "_id": 2, "b": [0, 1] }]).await;
        node.valid("c").await;
        node.ok(doc! { "delete": "c", "deletes": [{ "q": { "_id": 1 }, "limit": 1 }] }).await;
        let reply = node.ok(doc! { "validate": "c" }).await;
        assert_eq!((reply.get("valid"), reply.get("repaired")), (Some(Value::Bool(true)), Some(Value::Bool(true))));
        assert_eq!((length(&reply, "warnings"), length(&reply, "errors")), (2, 0), "{reply}");
        assert_eq!(
            (arrays_of(&node, "damaged"), arrays_of(&node, "other")),
            ((true, vec![false, true]), (false, vec![false]))
        );
        // What was learnt is still learnt.
        node.insert_into("c", &[doc! { "_id": 3, "a": [5] }]).await;
        assert_eq!(arrays_of(&node, "other"), (true, vec![true]));
        let reply = node.ok(doc! { "validate": "c" }).await;
        assert_eq!(reply.get("repaired"), Some(Value::Bool(false)), "{reply}");
    });
}

#[test]
fn x24_what_is_said_of_an_index_is_said_of_the_collection() {
    run(async {
        let mut node = with_missing_entry().await;
        let reply = node.invalid().await;
        let errors = reply.get("errors").and_then(|errors| errors.as_array()).unwrap();
        let is_told = |error: Value<'_>| error.as_str().is_some_and(|error| error.contains("inconsistencies"));
        assert!(errors.values().any(is_told), "{reply}");
    });
}

impl Node {
    async fn validated_beside(&mut self) -> Doc {
        self.ok(doc! { "validate": "c", "background": true }).await
    }
}

#[test]
fn x24_validation_beside_clients_reads_the_last_checkpoint() {
    run(async {
        let mut node = node().await;
        let engine = node.fixture.server.node().data.clone().unwrap().services.engine.clone();
        node.insert_into("c", &numbered(10)).await;
        let reply = node.validated_beside().await;
        assert_eq!((reply.get("valid"), reply.get("nrecords")), (Some(Value::Bool(true)), None), "{reply}");
        engine.checkpoint(pando_storage::CheckpointKind::Automatic).unwrap();
        node.ok(doc! { "delete": "c", "deletes": [{ "q": { "_id": 1 }, "limit": 1 }] }).await;
        node.insert_into("c", &[doc! { "_id": 100, "a": 1 }, doc! { "_id": 101, "a": 1 }]).await;
        node.ok(doc! { "createIndexes": "c", "indexes": [{ "key": { "a": 1 }, "name": "a_1" }] }).await;
        let reply = node.validated_beside().await;
        let found = |reply: &Doc| (number(reply, "nrecords"), number(reply, "nIndexes"), reply.get("valid").is_some());
        assert_eq!(found(&reply), (10.0, 1.0, true), "{reply}");
        assert_eq!(reply.get("valid"), Some(Value::Bool(true)), "{reply}");
        engine.checkpoint(pando_storage::CheckpointKind::Automatic).unwrap();
        node.tamper(|operation, collection| {
            operation.recovery_unit.set_read_source(pando_storage::ReadSource::NoTimestamp).unwrap();
            let index = collection.index("a_1").unwrap();
            let mut cursor = index.data.cursor(pando_storage::Direction::Forward);
            let entry = cursor.next(&mut operation.recovery_unit).unwrap().unwrap();
            let (key, id) = (entry.key.to_vec(), entry.record_id);
            drop(cursor);
            index.data.unindex(&mut operation.recovery_unit, &key, &id).unwrap();
        });
        let reply = node.validated_beside().await;
        assert_eq!(found(&reply), (11.0, 2.0, true), "{reply}");
        assert_eq!(
            (reply.get("valid"), length(&reply, "missingIndexEntries")),
            (Some(Value::Bool(false)), 1),
            "{reply}"
        );
        assert_eq!(node.code(doc! { "validate": "none", "background": true }).await, 26);
    });
}

#[test]
fn x24_validation_beside_clients_reads_no_faster_than_told() {
    run(async {
        let mut node = node_as(ReplicationMode::StandAlone).await;
        let large = "x".repeat(512 * 1024);
        for id in 0..12 {
            node.insert_into("c", &[doc! { "_id": id, "large": (large.as_str()) }]).await;
        }
        let mut seconds = Vec::new();
        for (megabytes, body) in [
            (0, doc! { "validate": "c", "background": true }),
            (2, doc! { "validate": "c", "background": true }),
            (2, doc! { "validate": "c" }),
        ] {
            node.client.admin(doc! { "setParameter": 1, "maxValidateMBperSec": megabytes }).await;
            let before_ns = node.fixture.env.clock().monotonic_ns();
            node.ok(body).await;
            seconds.push((node.fixture.env.clock().monotonic_ns() - before_ns) / 1_000_000_000);
        }
        // Six megabytes, of which two are there at once; who keeps others out hurries.
        assert_eq!(seconds, [0, 2, 0]);
    });
}
