//! Multi-document transactions over the wire.

use super::node::{Node, batch, cursor_id, node, node_on, part};
use super::*;
use pando_base::Uuid;
use pando_doc::{DocBuilder, Value};
use pando_engine_model::ModelDisk;

/// A transaction of a client.
#[derive(Clone, Copy)]
pub(super) struct Transaction {
    pub(super) session: u8,
    pub(super) number: i64,
}

impl Transaction {
    /// The command as a statement.
    pub(super) fn statement(self, body: &Doc, start: bool) -> Doc {
        let id = Uuid::from_random([self.session; 16]);
        let session = doc! { "id": (Value::Binary { subtype: 4, bytes: id.as_bytes() }) };
        let mut builder = DocBuilder::new();
        builder.append_all(body.view());
        builder.append("lsid", &session);
        builder.append("txnNumber", self.number);
        builder.append("autocommit", false);
        if start {
            builder.append("startTransaction", true);
        }
        builder.finish()
    }

    pub(super) async fn start(self, node: &mut Node, body: Doc) -> Doc {
        node.ok(self.statement(&body, true)).await
    }

    pub(super) async fn go_on(self, node: &mut Node, body: Doc) -> Doc {
        node.ok(self.statement(&body, false)).await
    }

    pub(super) async fn commit(self, node: &mut Node) -> Doc {
        node.run_on("admin", self.statement(&doc! { "commitTransaction": 1 }, false)).await
    }

    pub(super) async fn abort(self, node: &mut Node) -> Doc {
        node.run_on("admin", self.statement(&doc! { "abortTransaction": 1 }, false)).await
    }

    /// The error of a statement.
    pub(super) async fn fails(self, node: &mut Node, body: Doc, start: bool) -> Doc {
        let reply = node.run(self.statement(&body, start)).await;
        assert_eq!(number(&reply, "ok"), 0.0, "{body}: {reply}");
        reply
    }
}

pub(super) fn has_label(reply: &Doc, label: &str) -> bool {
    let labels = reply.get("errorLabels").and_then(|labels| labels.as_array());
    labels.is_some_and(|labels| labels.values().any(|other| other == Value::String(label.into())))
}

pub(super) fn code(reply: &Doc) -> i32 {
    number(reply, "code") as i32
}

pub(super) fn insert(id: i32) -> Doc {
    doc! { "insert": "c", "documents": [{ "_id": id, "a": 1 }] }
}

pub(super) fn set(id: i32, value: i32) -> Doc {
    doc! { "update": "c", "updates": [{ "q": { "_id": id }, "u": { "$set": { "a": value } } }] }
}

pub(super) const ONE: Transaction = Transaction { session: 1, number: 1 };
pub(super) const TWO: Transaction = Transaction { session: 2, number: 1 };

#[test]
fn r9_a_transaction_is_seen_as_a_whole_when_it_commits() {
    run(async {
        let mut node = node().await;
        node.ok(insert(1)).await;
        ONE.start(&mut node, insert(2)).await;
        ONE.go_on(&mut node, set(1, 7)).await;
        ONE.go_on(&mut node, doc! { "delete": "other", "deletes": [{ "q": {}, "limit": 0 }] }).await;
        let all = || doc! { "find": "c", "sort": { "_id": 1 } };
        let inside = batch(&ONE.go_on(&mut node, all()).await, "firstBatch");
        assert_eq!(inside, [doc! { "_id": 1, "a": 7 }, doc! { "_id": 2, "a": 1 }]);
        assert_eq!(node.find(all()).await, [doc! { "_id": 1, "a": 1 }], "nobody else sees any of it");
        assert_eq!(number(&ONE.commit(&mut node).await, "ok"), 1.0);
        assert_eq!(node.find(all()).await, inside);
        // One entry has everything, and the session's record says that it is done.
        let entries = node.find_on("local", doc! { "find": "oplog.rs", "filter": { "txnNumber": 1_i64 } }).await;
        assert_eq!(entries.len(), 1);
        let operations = part(&entries[0], "o");
        assert_eq!(operations.get("applyOps").and_then(|list| list.as_array()).unwrap().values().count(), 2);
        let records = node.find_on("config", doc! { "find": "transactions" }).await;
        assert_eq!(text(&records[0], "state"), "committed");
        // A driver that never got the answer asks again; nothing else goes on.
        assert_eq!(number(&ONE.commit(&mut node).await, "ok"), 1.0);
        assert_eq!(code(&ONE.fails(&mut node, insert(9), false).await), 256);
        assert_eq!(code(&ONE.abort(&mut node).await), 256);
    });
}

#[test]
fn r9_an_aborted_transaction_leaves_nothing() {
    run(async {
        let mut node = node().await;
        node.ok(insert(1)).await;
        ONE.start(&mut node, set(1, 5)).await;
        ONE.go_on(&mut node, insert(2)).await;
        assert_eq!(number(&ONE.abort(&mut node).await, "ok"), 1.0);
        assert_eq!(node.find(doc! { "find": "c" }).await, [doc! { "_id": 1, "a": 1 }]);
        let gone = ONE.fails(&mut node, insert(3), false).await;
        assert_eq!((code(&gone), has_label(&gone, "TransientTransactionError")), (251, true));
        assert_eq!(code(&ONE.commit(&mut node).await), 251);
        assert_eq!(code(&ONE.abort(&mut node).await), 251);
        // Its locks are gone.
        node.ok(doc! { "drop": "c" }).await;
    });
}

#[test]
fn r9_two_that_write_one_document_conflict() {
    run(async {
        let mut node = node().await;
        node.ok(insert(1)).await;
        ONE.start(&mut node, set(1, 2)).await;
        let lost = TWO.fails(&mut node, set(1, 3), true).await;
        assert_eq!((code(&lost), has_label(&lost, "TransientTransactionError")), (112, true));
        assert_eq!(code(&TWO.commit(&mut node).await), 251, "it was aborted by its failure");
        assert_eq!(number(&ONE.commit(&mut node).await, "ok"), 1.0);
        // What was read is what was there at the beginning, and may not be overwritten unseen.
        let late = Transaction { session: 2, number: 2 };
        late.start(&mut node, doc! { "find": "c" }).await;
        node.ok(set(1, 8)).await;
        let seen = batch(&late.go_on(&mut node, doc! { "find": "c" }).await, "firstBatch");
        assert_eq!(seen, [doc! { "_id": 1, "a": 2 }]);
        assert_eq!(code(&late.fails(&mut node, set(1, 9), false).await), 112);
        assert_eq!(node.find(doc! { "find": "c" }).await, [doc! { "_id": 1, "a": 8 }]);
    });
}

#[test]
fn r9_an_error_of_a_statement_aborts_the_transaction() {
    run(async {
        let mut node = node().await;
        node.ok(insert(1)).await;
        ONE.start(&mut node, insert(2)).await;
        let reply = ONE.go_on(&mut node, insert(1)).await;
        assert!(reply.get("writeErrors").is_some(), "{reply}");
        assert_eq!(code(&ONE.commit(&mut node).await), 251);
        let next = Transaction { session: 1, number: 2 };
        next.start(&mut node, insert(2)).await;
        assert_eq!(code(&next.fails(&mut node, doc! { "find": "c", "filter": { "$x": 1 } }, false).await), 2);
        assert_eq!(code(&next.commit(&mut node).await), 251);
        assert_eq!(node.find(doc! { "find": "c" }).await.len(), 1);
    });
}

#[test]
fn r9_numbers_and_options_are_checked() {
    run(async {
        let mut node = node().await;
        node.ok(insert(1)).await;
        assert_eq!(code(&ONE.fails(&mut node, insert(5), false).await), 251, "nothing has begun");
        ONE.start(&mut node, insert(2)).await;
        assert_eq!(code(&ONE.fails(&mut node, insert(3), true).await), 117);
        let newer = Transaction { session: 1, number: 5 };
        newer.start(&mut node, insert(3)).await;
        assert_eq!(code(&ONE.fails(&mut node, insert(4), false).await), 225);
        let concern = doc! { "find": "c", "readConcern": { "level": "local" } };
        assert_eq!(code(&newer.fails(&mut node, concern, false).await), 72);
        let write = doc! { "insert": "c", "documents": [{ "_id": 7 }], "writeConcern": { "w": 1 } };
        let next = Transaction { session: 1, number: 6 };
        assert_eq!(code(&next.fails(&mut node, write, true).await), 72);
        assert_eq!(code(&next.fails(&mut node, doc! { "listCollections": 1 }, true).await), 263);
        let available = doc! { "find": "c", "readConcern": { "level": "available" } };
        assert_eq!(code(&next.fails(&mut node, available, true).await), 72);
        // A retryable write with a newer number ends what is in progress.
        let open = Transaction { session: 1, number: 9 };
        open.start(&mut node, insert(3)).await;
        let id = Uuid::from_random([1; 16]);
        let session = doc! { "id": (Value::Binary { subtype: 4, bytes: id.as_bytes() }) };
        let retryable = doc! { "insert": "c", "documents": [{ "_id": 3 }], "lsid": session, "txnNumber": 10_i64 };
        node.ok(retryable).await;
        assert_eq!(code(&open.commit(&mut node).await), 225);
        assert_eq!(node.find(doc! { "find": "c" }).await.len(), 2);
    });
}

#[test]
fn r9_cursors_of_a_transaction_go_on_in_it_alone() {
    run(async {
        let mut node = node().await;
        node.insert((0..10).map(|id| doc! { "_id": id }).collect()).await;
        let reply = ONE.start(&mut node, doc! { "find": "c", "batchSize": 2 }).await;
        let more = || doc! { "getMore": (cursor_id(&reply)), "collection": "c", "batchSize": 3 };
        node.ok(insert(11)).await;
        assert_eq!(batch(&ONE.go_on(&mut node, more()).await, "nextBatch").len(), 3);
        let reply_outside = node.run(more()).await;
        assert_eq!(number(&reply_outside, "ok"), 0.0);
        let rest = doc! { "getMore": (cursor_id(&reply)), "collection": "c" };
        assert_eq!(batch(&ONE.go_on(&mut node, rest).await, "nextBatch").len(), 5, "the snapshot is the first find's");
        assert_eq!(number(&ONE.commit(&mut node).await, "ok"), 1.0);
        // The end of a transaction ends its cursors.
        let reply = TWO.start(&mut node, doc! { "find": "c", "batchSize": 2 }).await;
        assert_eq!(number(&TWO.commit(&mut node).await, "ok"), 1.0);
        assert_eq!(node.code(doc! { "getMore": (cursor_id(&reply)), "collection": "c" }).await, 43);
    });
}

#[test]
fn r9_collections_and_indexes_may_be_created_inside() {
    run(async {
        let mut node = node().await;
        ONE.start(&mut node, insert(1)).await;
        ONE.go_on(&mut node, doc! { "create": "made" }).await;
        let index = doc! { "createIndexes": "made", "indexes": [{ "key": { "a": 1 }, "name": "a_1" }] };
        ONE.go_on(&mut node, index).await;
        ONE.go_on(&mut node, doc! { "insert": "made", "documents": [{ "_id": 1, "a": 4 }] }).await;
        let inside = ONE.go_on(&mut node, doc! { "find": "made", "filter": { "a": 4 } }).await;
        assert_eq!(batch(&inside, "firstBatch").len(), 1);
        assert!(node.find(doc! { "listCollections": 1 }).await.is_empty());
        assert_eq!(number(&ONE.commit(&mut node).await, "ok"), 1.0);
        assert_eq!(node.find(doc! { "listCollections": 1 }).await.len(), 2);
        assert_eq!(node.find(doc! { "find": "made", "hint": "a_1" }).await.len(), 1);
        node.ok(doc! { "create": "capped", "capped": true, "size": 4096 }).await;
        // What was there before is left as it is.
        let refused = [
            (doc! { "create": "made" }, 48),
            (doc! { "createIndexes": "made", "indexes": [{ "key": { "b": 1 }, "name": "b_1" }] }, 263),
            (doc! { "create": "view", "viewOn": "made" }, 263),
            (doc! { "aggregate": "made", "pipeline": [{ "$out": "x" }], "cursor": {} }, 263),
            (doc! { "drop": "made" }, 263),
            (doc! { "find": "made", "readOnce": true }, 263),
            (
                doc! { "insert": "system.views", "documents": [{ "_id": "d.v", "viewOn": "made", "pipeline": [] }] },
                50791,
            ),
        ];
        for (place, (body, expected)) in refused.into_iter().enumerate() {
            let transaction = Transaction { session: 3, number: place as i64 };
            assert_eq!(code(&transaction.fails(&mut node, body, true).await), expected, "{place}");
        }
        for (place, (body, expected)) in [
            (doc! { "insert": "capped", "documents": [{}] }, 263),
            (doc! { "update": "capped", "updates": [{ "q": {}, "u": { "$set": { "a": 1 } } }] }, 263),
            (doc! { "delete": "capped", "deletes": [{ "q": {}, "limit": 1 }] }, 20),
        ]
        .into_iter()
        .enumerate()
        {
            let transaction = Transaction { session: 4, number: place as i64 };
            let reply = transaction.start(&mut node, body).await;
            let errors = reply.get("writeErrors").and_then(|errors| errors.as_array()).unwrap();
            let first = errors.values().next().and_then(|error| error.as_document()).unwrap().to_doc();
            assert_eq!((code(&first), code(&transaction.commit(&mut node).await)), (expected, 251));
        }
        // And one that is aborted leaves none.
        TWO.start(&mut node, doc! { "insert": "gone", "documents": [{ "_id": 1 }] }).await;
        assert_eq!(number(&TWO.abort(&mut node).await, "ok"), 1.0);
        assert_eq!(node.find(doc! { "listCollections": 1 }).await.len(), 3);
    });
}

#[test]
fn r9_who_makes_a_collection_first_has_it() {
    run(async {
        let mut node = node().await;
        node.ok(insert(1)).await;
        let index = |name: &str| doc! { "createIndexes": name, "indexes": [{ "key": { "a": 1 }, "name": "a_1" }] };
        let into = |name: &str, id: i32| doc! { "insert": name, "documents": [{ "_id": id }] };
        let makers = [
            ("by_create", doc! { "create": "by_create" }),
            ("by_insert", into("by_insert", 1)),
            ("by_index", index("by_index")),
        ];
        for (place, (name, make)) in makers.into_iter().enumerate() {
            let number_of = 10 + place as i64;
            let (first, second) = (Transaction { number: number_of, ..ONE }, Transaction { number: number_of, ..TWO });
            // Two transactions make it side by side, and neither waits for the other.
            first.start(&mut node, make.clone()).await;
            second.start(&mut node, make.clone()).await;
            second.go_on(&mut node, into(name, 2)).await;
            first.go_on(&mut node, into(name, 3)).await;
            assert_eq!(number(&second.commit(&mut node).await, "ok"), 1.0, "{name}");
            let late = first.commit(&mut node).await;
            assert_eq!(code(&late), 112, "{name}: {late}");
            assert!(has_label(&late, "TransientTransactionError"), "{late}");
            let found = node.find(doc! { "find": name, "filter": { "_id": { "$in": [2, 3] } } }).await;
            assert_eq!(found, [doc! { "_id": 2 }], "{name}");
            // Nor does anybody outside wait for a transaction, which finds out when it commits.
            let (later, other) = (Transaction { session: 3, number: number_of }, format!("{name}_other"));
            later.start(&mut node, doc! { "find": "c" }).await;
            later.go_on(&mut node, into(&other, 4)).await;
            node.ok(into(&other, 5)).await;
            assert_eq!(code(&later.commit(&mut node).await), 112, "{name}");
            assert_eq!(node.find(doc! { "find": (other.as_str()) }).await, [doc! { "_id": 5 }]);
        }
    });
}

#[test]
fn r9_what_is_newer_than_the_snapshot_is_not_there_until_the_commit() {
    run(async {
        let mut node = node().await;
        node.ok(insert(1)).await;
        for (number, level) in [(1, "local"), (2, "majority"), (3, "snapshot")] {
            let transaction = Transaction { number, ..ONE };
            let name = format!("new_{level}");
            let begin = doc! { "find": "c", "readConcern": { "level": level } };
            transaction.start(&mut node, begin).await;
            node.ok(doc! { "insert": (name.as_str()), "documents": [{ "_id": 1 }] }).await;
            let inside = transaction.go_on(&mut node, doc! { "find": (name.as_str()) }).await;
            assert_eq!(batch(&inside, "firstBatch"), Vec::<Doc>::new());
            transaction.go_on(&mut node, doc! { "insert": (name.as_str()), "documents": [{ "_id": 2 }] }).await;
            let inside = transaction.go_on(&mut node, doc! { "find": (name.as_str()) }).await;
            assert_eq!(batch(&inside, "firstBatch"), [doc! { "_id": 2 }]);
            assert_eq!(code(&transaction.commit(&mut node).await), 112, "{level}");
            assert_eq!(node.find(doc! { "find": (name.as_str()) }).await, [doc! { "_id": 1 }]);
            // What was there and is another now cannot be written to.
            let transaction = Transaction { session: 2, number };
            transaction.start(&mut node, doc! { "find": "c", "readConcern": { "level": level } }).await;
            node.ok(doc! { "drop": (name.as_str()) }).await;
            node.ok(doc! { "create": (name.as_str()) }).await;
            let write = doc! { "insert": (name.as_str()), "documents": [{ "_id": 3 }] };
            assert_eq!(code(&transaction.fails(&mut node, write, false).await), 112, "{level}");
        }
    });
}

#[test]
fn r9_transactions_end_with_their_session_or_their_time() {
    run(async {
        let mut node = node().await;
        node.ok(insert(1)).await;
        let data = node.fixture.server.node().data.clone().unwrap();
        ONE.start(&mut node, set(1, 3)).await;
        let id = Uuid::from_random([1; 16]);
        let session = doc! { "id": (Value::Binary { subtype: 4, bytes: id.as_bytes() }) };
        node.ok_on("admin", doc! { "killSessions": [session] }).await;
        assert_eq!(code(&ONE.commit(&mut node).await), 251);
        TWO.start(&mut node, set(1, 4)).await;
        data.sessions.abort_expired(data.services.env.clock().monotonic_ns());
        TWO.go_on(&mut node, insert(2)).await;
        node.fixture.simulation.clock().advance(std::time::Duration::from_secs(61));
        data.sessions.abort_expired(data.services.env.clock().monotonic_ns());
        assert_eq!(code(&TWO.commit(&mut node).await), 251);
        node.ok(set(1, 5)).await;
        let status = part(&node.ok_on("admin", doc! { "serverStatus": 1 }).await, "transactions");
        let counts =
            ["totalStarted", "totalAborted", "totalCommitted", "currentOpen"].map(|name| number(&status, name));
        assert_eq!(counts, [2.0, 2.0, 0.0, 0.0]);
    });
}

#[test]
fn r9_committed_transactions_are_known_after_a_restart_and_others_are_gone() {
    run(async {
        let disk = ModelDisk::new();
        let mut node = node_on(&disk, ReplicationMode::OneMember("rs0".into())).await;
        node.ok(insert(1)).await;
        ONE.start(&mut node, insert(2)).await;
        assert_eq!(number(&ONE.commit(&mut node).await, "ok"), 1.0);
        TWO.start(&mut node, insert(3)).await;
        drop(node);
        disk.crash();
        let mut node = node_on(&disk, ReplicationMode::OneMember("rs0".into())).await;
        assert_eq!(node.find(doc! { "find": "c" }).await.len(), 2);
        assert_eq!(number(&ONE.commit(&mut node).await, "ok"), 1.0);
        assert_eq!(code(&TWO.commit(&mut node).await), 251);
    });
}

#[test]
fn r9_a_transaction_that_cannot_begin_keeps_no_locks() {
    run(async {
        let mut node = node().await;
        node.ok(insert(1)).await;
        // A time that is not there yet, and one that is too long ago.
        for (number, seconds) in [(1, u32::MAX), (2, 1)] {
            let time = pando_base::Timestamp::new(seconds, 1);
            let find = doc! { "find": "c", "readConcern": { "level": "snapshot", "atClusterTime": time } };
            Transaction { number, ..ONE }.fails(&mut node, find, true).await;
        }
        node.ok(doc! { "drop": "c" }).await;
        node.client.admin(doc! { "fsync": 1 }).await;
    });
}
