//! Prepared transactions: what they keep from others, how they end, and that nothing but their end ends them.

use super::concurrency::{is_waiting, settle};
use super::node::{Node, node, node_on, part};
use super::transactions::{ONE, TWO, Transaction, code, has_label, insert, set};
use super::*;
use pando_base::Timestamp;
use pando_doc::Value;
use pando_engine_model::ModelDisk;

impl Transaction {
    pub(super) async fn prepare(self, node: &mut Node) -> Timestamp {
        let prepare = doc! { "prepareTransaction": 1, "writeConcern": { "w": "majority" } };
        let reply = node.ok_on("admin", self.statement(&prepare, false)).await;
        reply.get("prepareTimestamp").and_then(|time| time.as_timestamp()).unwrap()
    }

    async fn commit_at(self, node: &mut Node, at: Timestamp) -> Doc {
        let commit = doc! { "commitTransaction": 1, "commitTimestamp": at };
        node.run_on("admin", self.statement(&commit, false)).await
    }
}

async fn ids(node: &mut Node) -> Vec<i64> {
    let found = node.find(doc! { "find": "c", "sort": { "_id": 1 } }).await;
    found.iter().map(|document| number(document, "_id") as i64).collect()
}

async fn entries(node: &mut Node) -> Vec<Doc> {
    let filter = doc! { "lsid": { "$exists": true } };
    node.find_on("local", doc! { "find": "oplog.rs", "filter": filter }).await
}

async fn state(node: &mut Node) -> String {
    text(&node.find_on("config", doc! { "find": "transactions" }).await[0], "state")
}

#[test]
fn r10_a_prepared_transaction_commits_at_the_time_it_is_told() {
    run(async {
        let mut node = node().await;
        node.ok(insert(1)).await;
        ONE.start(&mut node, insert(2)).await;
        let prepared = ONE.prepare(&mut node).await;
        assert_eq!(ONE.prepare(&mut node).await, prepared, "asked again it says the same");
        assert_eq!((ids(&mut node).await, state(&mut node).await.as_str()), (vec![1], "prepared"));
        // Nothing goes on in it, and what is wrong does not end it.
        assert_eq!(code(&ONE.fails(&mut node, insert(3), false).await), 267);
        assert_eq!(code(&ONE.commit(&mut node).await), 72);
        assert_eq!(code(&ONE.commit_at(&mut node, prepared.previous()).await), 72);
        assert_eq!(number(&ONE.commit_at(&mut node, prepared).await, "ok"), 1.0);
        assert_eq!((ids(&mut node).await, state(&mut node).await.as_str()), (vec![1, 2], "committed"));
        assert_eq!(number(&ONE.commit_at(&mut node, prepared).await, "ok"), 1.0, "a retry");
        let written = entries(&mut node).await;
        let [first, last] = written.as_slice() else { panic!("{written:?}") };
        assert!(part(first, "o").get("prepare").is_some_and(|value| value.is_true()));
        assert_eq!(part(last, "o"), doc! { "commitTransaction": 1, "commitTimestamp": prepared });
        assert_eq!(part(last, "prevOpTime").get("ts"), first.get("ts"));
    });
}

#[test]
fn r10_a_prepared_transaction_is_undone_when_it_is_told() {
    run(async {
        let mut node = node().await;
        node.ok(insert(1)).await;
        ONE.start(&mut node, set(1, 5)).await;
        ONE.prepare(&mut node).await;
        assert_eq!(number(&ONE.abort(&mut node).await, "ok"), 1.0);
        assert_eq!(node.find(doc! { "find": "c" }).await, [doc! { "_id": 1, "a": 1 }]);
        assert_eq!(state(&mut node).await, "aborted");
        assert_eq!(part(entries(&mut node).await.last().unwrap(), "o"), doc! { "abortTransaction": 1 });
        assert_eq!(code(&ONE.abort(&mut node).await), 251);
        node.ok(doc! { "drop": "c" }).await;
    });
}

#[test]
fn r10_who_wants_to_be_certain_waits_for_what_is_prepared() {
    run(async {
        let mut node = node().await;
        node.ok(insert(1)).await;
        node.ok(insert(2)).await;
        ONE.start(&mut node, set(1, 5)).await;
        let prepared = ONE.prepare(&mut node).await;
        let find = |concern: Doc| doc! { "find": "c", "filter": { "_id": 1 }, "readConcern": concern };
        let before = [doc! { "_id": 1, "a": 1 }];
        assert_eq!(node.find(find(doc! {})).await, before);
        assert_eq!(node.find(find(doc! { "level": "majority" })).await, before);
        let mut reader = node.begin(&find(doc! { "afterClusterTime": prepared })).await;
        let mut writer = node.begin(&set(1, 9)).await;
        let mut transaction = node.begin(&TWO.statement(&doc! { "find": "c" }, true)).await;
        let mut distinct = doc! { "distinct": "c", "key": "a", "readConcern": { "afterClusterTime": prepared } };
        let mut values = node.begin(&std::mem::take(&mut distinct)).await;
        settle().await;
        for answer in [&mut reader, &mut writer, &mut transaction, &mut values] {
            assert!(is_waiting(answer).await);
        }
        node.ok(set(2, 3)).await;
        assert_eq!(number(&ONE.commit_at(&mut node, prepared).await, "ok"), 1.0);
        // The writer that waits as well may be faster.
        let read = super::node::batch(&reader.await, "firstBatch");
        assert!(read == [doc! { "_id": 1, "a": 5 }] || read == [doc! { "_id": 1, "a": 9 }], "{read:?}");
        assert_eq!(number(&writer.await, "nModified"), 1.0);
        assert_eq!(number(&values.await, "ok"), 1.0);
        // Its snapshot is older than the commit, which happened at a time before it all the same.
        assert_eq!(number(&transaction.await, "ok"), 1.0);
        assert_eq!(node.find(find(doc! {})).await, [doc! { "_id": 1, "a": 9 }]);
    });
}

#[test]
fn r10_neither_kills_nor_time_nor_newer_numbers_end_what_is_prepared() {
    run(async {
        let mut node = node().await;
        node.ok(insert(1)).await;
        ONE.start(&mut node, insert(2)).await;
        TWO.start(&mut node, insert(3)).await;
        let prepared = ONE.prepare(&mut node).await;
        node.ok_on("admin", doc! { "killAllSessions": [] }).await;
        assert_eq!(code(&TWO.commit(&mut node).await), 251);
        let data = node.fixture.server.node().data.clone().unwrap();
        data.sessions.abort_expired(u64::MAX);
        data.sessions.abort_all(pando_base::ErrorCode::InterruptedDueToReplStateChange);
        // A newer number of the same session waits for the end.
        let newer = Transaction { number: 2, ..ONE };
        let mut waiting = node.begin(&newer.statement(&insert(4), true)).await;
        let mut retryable = node.begin(&retryable_insert(5, 3)).await;
        assert!(is_waiting(&mut waiting).await && is_waiting(&mut retryable).await);
        // One that nobody has begun has nothing to wait for.
        assert_eq!(code(&newer.fails(&mut node, insert(6), false).await), 251);
        assert_eq!(node.code_on("config", doc! { "drop": "transactions" }).await, 4852500);
        assert_eq!(number(&ONE.commit_at(&mut node, prepared).await, "ok"), 1.0);
        settle().await;
        assert_eq!(number(&retryable.await, "ok"), 1.0);
        let _ = waiting.await;
        assert_eq!(ids(&mut node).await, [1, 2, 5]);
    });
}

/// A write with a number of the session of the first transaction.
fn retryable_insert(id: i32, number: i64) -> Doc {
    let statement = Transaction { number, ..ONE }.statement(&insert(id), false);
    let mut body = pando_doc::DocBuilder::new();
    statement
        .elements()
        .filter(|element| element.name != "autocommit")
        .for_each(|element| body.append_element(element));
    body.finish()
}

#[test]
fn r10_what_is_prepared_outlives_a_crash() {
    run(async {
        let disk = ModelDisk::new();
        let set_of_one = || ReplicationMode::OneMember("rs0".into());
        let mut node = node_on(&disk, set_of_one()).await;
        node.ok(insert(1)).await;
        ONE.start(&mut node, insert(2)).await;
        ONE.go_on(&mut node, set(1, 8)).await;
        let prepared = ONE.prepare(&mut node).await;
        TWO.start(&mut node, insert(3)).await;
        TWO.prepare(&mut node).await;
        node.ok(insert(4)).await;
        // Once from the oplog, once from a checkpoint that stands behind the entries.
        for _ in 0..2 {
            node.fixture
                .server
                .node()
                .data
                .as_ref()
                .unwrap()
                .services
                .engine
                .checkpoint(pando_storage::CheckpointKind::Automatic)
                .unwrap();
            drop(node);
            disk.crash();
            node = node_on(&disk, set_of_one()).await;
            assert_eq!(ids(&mut node).await, [1, 4]);
            assert_eq!(code(&ONE.fails(&mut node, insert(5), false).await), 267);
            // It keeps others from what it wrote.
            let mut writer = node.begin(&set(1, 9)).await;
            assert!(is_waiting(&mut writer).await);
        }
        assert_eq!(number(&ONE.commit_at(&mut node, prepared).await, "ok"), 1.0);
        assert_eq!(number(&TWO.abort(&mut node).await, "ok"), 1.0);
        drop(node);
        disk.crash();
        let mut node = node_on(&disk, set_of_one()).await;
        assert_eq!(ids(&mut node).await, [1, 2, 4]);
        assert_eq!(number(&ONE.commit_at(&mut node, prepared).await, "ok"), 1.0);
        assert_eq!(code(&TWO.abort(&mut node).await), 251);
    });
}

/// Writes much, takes a checkpoint and lets the oplog lose its old end; its oldest entry then.
async fn overflow(node: &mut Node) -> Timestamp {
    let engine = Arc::clone(&node.fixture.server.node().data.as_ref().unwrap().services.engine);
    let oplog = engine.oplog().unwrap();
    oplog.set_size_max(4096).unwrap();
    // A node that is started again in a simulation would choose the same ids again.
    let insert = || {
        let document = doc! { "_id": (oplog.last().unwrap()), "text": ("x".repeat(400)) };
        doc! { "insert": "c", "documents": [document], "writeConcern": { "w": "majority" } }
    };
    for _ in 0..40 {
        assert_eq!(number(&node.ok_on("filler", insert()).await, "n"), 1.0);
    }
    engine.checkpoint(pando_storage::CheckpointKind::Automatic).unwrap();
    // What the checkpoint has is let go with the next write that a majority has.
    assert_eq!(number(&node.ok_on("filler", insert()).await, "n"), 1.0);
    oplog.truncate_old().unwrap();
    oplog.first().unwrap()
}

#[test]
fn r10_the_oplog_keeps_what_is_prepared_until_a_checkpoint_has_its_end() {
    run(async {
        let disk = ModelDisk::new();
        let set_of_one = || ReplicationMode::OneMember("rs0".into());
        let mut node = node_on(&disk, set_of_one()).await;
        node.ok(insert(1)).await;
        let limit = doc! { "setParameter": 1, "maxNumberOfTransactionOperationsInSingleOplogEntry": 1 };
        node.ok_on("admin", limit).await;
        let started = overflow(&mut node).await;
        ONE.start(&mut node, insert(2)).await;
        ONE.go_on(&mut node, insert(3)).await;
        let prepared = ONE.prepare(&mut node).await;
        let first = overflow(&mut node).await;
        assert!(started < first && first < prepared, "the first entry of the transaction is the oldest that is needed");
        drop(node);
        disk.crash();
        let mut node = node_on(&disk, set_of_one()).await;
        assert_eq!(overflow(&mut node).await, first, "after a crash as well");
        assert_eq!(number(&ONE.commit_at(&mut node, prepared).await, "ok"), 1.0);
        // The checkpoint stands before the commit: who starts from it needs what was prepared.
        let engine = Arc::clone(&node.fixture.server.node().data.as_ref().unwrap().services.engine);
        node.ok_on("filler", doc! { "insert": "c", "documents": [{}] }).await;
        engine.oplog().unwrap().truncate_old().unwrap();
        assert_eq!(engine.oplog().unwrap().first(), Some(first));
        drop((node, engine));
        disk.crash();
        let mut node = node_on(&disk, set_of_one()).await;
        assert_eq!(ids(&mut node).await, [1, 2, 3]);
        assert!(overflow(&mut node).await > prepared, "a checkpoint has it all");
    });
}

#[test]
fn r10_large_transactions_are_prepared_in_several_entries() {
    run(async {
        let mut node = node().await;
        node.ok(insert(0)).await;
        let limit = doc! { "setParameter": 1, "maxNumberOfTransactionOperationsInSingleOplogEntry": 2 };
        node.ok_on("admin", limit).await;
        ONE.start(&mut node, insert(1)).await;
        for id in 2..=5 {
            ONE.go_on(&mut node, insert(id)).await;
        }
        let prepared = ONE.prepare(&mut node).await;
        assert_eq!(number(&ONE.commit_at(&mut node, prepared).await, "ok"), 1.0);
        assert_eq!(ids(&mut node).await, [0, 1, 2, 3, 4, 5]);
        let written = entries(&mut node).await;
        assert_eq!(written.len(), 4);
        assert!(part(&written[0], "o").get("partialTxn").is_some_and(|value| value.is_true()));
        let last = part(&written[2], "o");
        assert_eq!((number(&last, "count"), last.get("prepare").is_some()), (5.0, true));
    });
}

#[test]
fn r10_what_cannot_be_prepared_is_aborted() {
    run(async {
        let mut node = node().await;
        node.ok(insert(1)).await;
        let prepare = doc! { "prepareTransaction": 1 };
        ONE.start(&mut node, doc! { "create": "new" }).await;
        assert_eq!(code(&node.run_on("admin", ONE.statement(&prepare, false)).await), 263);
        assert_eq!(code(&ONE.abort(&mut node).await), 251);
        assert_eq!(code(&node.run_on("admin", TWO.statement(&prepare, true)).await), 263);
        let none = node.run_on("admin", TWO.statement(&prepare, false)).await;
        assert_eq!((code(&none), has_label(&none, "TransientTransactionError")), (251, true));
        // One that has only read is prepared all the same.
        TWO.start(&mut node, doc! { "find": "c" }).await;
        let prepared = TWO.prepare(&mut node).await;
        assert_eq!(number(&TWO.commit_at(&mut node, prepared).await, "ok"), 1.0);
    });
}

#[test]
fn r10_transactions_are_shown_while_they_wait_for_their_clients() {
    run(async {
        let mut node = node().await;
        node.ok(insert(1)).await;
        ONE.start(&mut node, insert(2)).await;
        let prepared = ONE.prepare(&mut node).await;
        let idle = node.client.admin(doc! { "currentOp": 1, "desc": "inactive transaction" }).await;
        let idle = idle.get("inprog").and_then(|list| list.as_array()).unwrap();
        let idle = idle.values().next().and_then(|value| value.as_document()).unwrap().to_doc();
        let told = part(&idle, "transaction");
        assert_eq!(number(&part(&told, "parameters"), "txnNumber"), 1.0);
        assert!(number(&told, "timeOpenMicros") >= 0.0 && told.get("timePreparedMicros").is_some());
        assert_eq!(text(&part(&idle, "locks"), "Collection"), "w");
        let section = |status: &Doc| part(status, "transactions");
        let status = section(&node.client.admin(doc! { "serverStatus": 1 }).await);
        assert_eq!((number(&status, "currentPrepared"), number(&status, "totalPrepared")), (1.0, 1.0));
        assert_eq!(number(&status, "currentInactive"), 1.0);
        assert_eq!(number(&ONE.commit_at(&mut node, prepared).await, "ok"), 1.0);
        let status = section(&node.client.admin(doc! { "serverStatus": 1 }).await);
        assert_eq!((number(&status, "currentPrepared"), number(&status, "totalPreparedThenCommitted")), (0.0, 1.0));
        assert_eq!(number(&part(&status, "lastCommittedTransaction"), "operationCount"), 1.0);
    });
}

#[test]
fn r10_who_holds_and_who_waits_for_long_is_told() {
    use pando_commands::diagnostic::{LongWait, LongWaits};
    use std::time::Duration;
    run(async {
        let mut node = node().await;
        node.ok(insert(1)).await;
        let data = node.fixture.server.node().data.clone().unwrap();
        let waits = LongWaits::default();
        assert_eq!(waits.look(&data), []);
        // A client goes away with a prepared transaction, and another wants to drop what it has written to.
        ONE.start(&mut node, insert(2)).await;
        ONE.prepare(&mut node).await;
        let mut drop = node.begin(&doc! { "drop": "c" }).await;
        assert!(is_waiting(&mut drop).await);
        assert_eq!(waits.look(&data), [], "nobody has waited for long");
        node.fixture.env.clock().sleep(Duration::from_secs(6)).await;
        let told = waits.look(&data);
        let [LongWait::Lock { resource, mode, waited_ms, waiter, holders }, LongWait::Prepared { holder, .. }] =
            &told[..]
        else {
            panic!("{told:?}")
        };
        assert!(resource.ends_with(", d.c}") && *mode == "X" && *waited_ms >= 6000, "{told:?}");
        assert_eq!(text(waiter, "ns"), "d.c");
        assert!(waiter.view().contains("opid"), "{waiter}");
        let [of_lock] = &holders[..] else { panic!("{told:?}") };
        for shown in [of_lock, holder] {
            assert_eq!((number(shown, "txnNumber"), shown.get("prepared")), (1.0, Some(Value::Bool(true))), "{shown}");
            assert!(shown.view().contains("lsid"), "{shown}");
        }
        node.fixture.env.clock().sleep(Duration::from_secs(1)).await;
        assert_eq!(waits.look(&data), [], "it was told just now");
        node.fixture.env.clock().sleep(Duration::from_secs(10)).await;
        assert_eq!(waits.look(&data).len(), 2, "it still waits");
        ONE.abort(&mut node).await;
        assert_eq!(number(&drop.await, "ok"), 1.0);
        node.fixture.env.clock().sleep(Duration::from_secs(60)).await;
        assert_eq!(waits.look(&data), []);
    });
}
