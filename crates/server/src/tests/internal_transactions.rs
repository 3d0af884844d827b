//! Transactions that the server runs itself.

use super::concurrency::is_waiting;
use super::node::{Node, node, node_on, part};
use super::transactions::{ONE, TWO, code, insert, set};
use super::*;
use pando_base::Uuid;
use pando_doc::{ArrayBuilder, DocBuilder, Value};
use pando_engine_model::ModelDisk;

/// Runs commands in one transaction.
fn internal(commands: &[Doc]) -> Doc {
    let mut infos = ArrayBuilder::new();
    commands.iter().for_each(|command| infos.push(doc! { "dbName": "d", "command": command }));
    doc! { "testInternalTransactions": 1, "commandInfos": (infos.finish()) }
}

/// The same in a client's session, as a retryable write if there is a number.
fn in_session(body: &Doc, session: u8, number: Option<i64>) -> Doc {
    let id = Uuid::from_random([session; 16]);
    let mut builder = DocBuilder::new();
    builder.append_all(body.view());
    builder.append("lsid", doc! { "id": (Value::Binary { subtype: 4, bytes: id.as_bytes() }) });
    builder.append_some("txnNumber", number);
    builder.finish()
}

fn responses(reply: &Doc) -> Vec<Doc> {
    let responses = reply.get("responses").and_then(|responses| responses.as_array()).unwrap();
    responses.values().filter_map(|response| response.as_document()).map(|response| response.to_doc()).collect()
}

async fn ids(node: &mut Node) -> Vec<i64> {
    let found = node.find(doc! { "find": "c", "sort": { "_id": 1 } }).await;
    found.iter().map(|document| number(document, "_id") as i64).collect()
}

#[test]
fn s19_all_commands_happen_or_none() {
    run(async {
        let mut node = node().await;
        node.ok(insert(1)).await;
        let reply = node.ok_on("admin", internal(&[insert(2), set(1, 5), doc! { "find": "c" }])).await;
        let told = responses(&reply);
        assert_eq!((told.len(), number(&told[0], "n"), number(&told[1], "nModified")), (3, 1.0, 1.0));
        assert_eq!(super::node::batch(&told[2], "firstBatch").len(), 2, "it sees what it has written");
        assert_eq!(code(&node.run_on("admin", internal(&[insert(3), insert(2)])).await), 11000);
        assert_eq!(ids(&mut node).await, [1, 2]);
        let group = node.find_on("local", doc! { "find": "oplog.rs", "filter": { "o.applyOps.ns": "d.c" } }).await;
        assert_eq!(group.len(), 1, "one entry for what belongs together");
        let status = part(&node.client.admin(doc! { "serverStatus": 1 }).await, "transactions");
        assert_eq!(number(&status, "currentOpen"), 0.0);
    });
}

#[test]
fn s19_what_conflicts_begins_again() {
    run(async {
        let mut node = node().await;
        let into = |id: i32| doc! { "insert": "again", "documents": [{ "_id": id }] };
        let change = doc! { "update": "again", "updates": [{ "q": { "_id": 1 }, "u": { "$inc": { "a": 1 } } }] };
        node.ok(into(1)).await;
        let data =
            doc! { "failCommands": ["update"], "namespace": "d.again", "failInternalCommands": true, "errorCode": 112 };
        let fail = doc! { "configureFailPoint": "failCommand", "mode": { "times": 3 }, "data": data };
        node.client.admin(fail).await;
        let reply = node.ok_on("admin", internal(&[into(2), change])).await;
        assert_eq!(responses(&reply).len(), 2, "those of the last attempt");
        let off = node.client.admin(doc! { "configureFailPoint": "failCommand", "mode": "off" }).await;
        assert!(number(&off, "count") >= 3.0, "{off}");
        let found = node.find(doc! { "find": "again", "sort": { "_id": 1 } }).await;
        assert_eq!(
            found,
            [doc! { "_id": 1, "a": 1 }, doc! { "_id": 2 }],
            "what attempts before have written is undone"
        );
        let status = part(&node.client.admin(doc! { "serverStatus": 1 }).await, "transactions");
        let counts = ["totalStarted", "totalAborted", "totalCommitted"].map(|name| number(&status, name));
        assert_eq!(counts, [4.0, 3.0, 1.0]);
    });
}

#[test]
fn s19_a_conflict_that_does_not_end_is_told_in_the_end() {
    run(async {
        let mut node = node().await;
        node.ok(insert(1)).await;
        ONE.start(&mut node, set(1, 5)).await;
        let change = internal(&[insert(2), set(1, 9)]);
        // Time passes at once here: all attempts fail while the other is still open.
        let reply = node.run_on("admin", change.clone()).await;
        assert_eq!(code(&reply), 112, "{reply}");
        assert_eq!(ids(&mut node).await, [1]);
        assert_eq!(number(&ONE.commit(&mut node).await, "ok"), 1.0);
        node.ok_on("admin", change).await;
        assert_eq!(node.find(doc! { "find": "c", "filter": { "_id": 1 } }).await, [doc! { "_id": 1, "a": 9 }]);
    });
}

#[test]
fn s19_a_transaction_stops_with_the_command_that_runs_it() {
    run(async {
        let mut node = node().await;
        node.ok(insert(1)).await;
        ONE.start(&mut node, set(1, 5)).await;
        ONE.prepare(&mut node).await;
        // It waits for what is prepared until its time is over.
        let mut change = DocBuilder::new();
        change.append_all(internal(&[insert(2), set(1, 9)]).view());
        change.append("maxTimeMS", 500);
        assert_eq!(code(&node.run_on("admin", change.finish()).await), 50);
        assert_eq!(ids(&mut node).await, [1]);
        let status = part(&node.client.admin(doc! { "serverStatus": 1 }).await, "transactions");
        assert_eq!((number(&status, "currentOpen"), number(&status, "currentPrepared")), (1.0, 1.0), "its own is gone");
        // Inside of a client's transaction there is no other.
        let inside = TWO.statement(&internal(&[insert(3)]), true);
        assert_eq!(code(&node.run_on("admin", inside).await), 263);
    });
}

#[test]
fn s19_sessions_are_used_again() {
    run(async {
        let mut node = node().await;
        for id in 0..4 {
            node.ok_on("admin", internal(&[insert(id)])).await;
            node.ok_on("admin", in_session(&internal(&[insert(id + 10)]), 7, None)).await;
        }
        let records = node.find_on("config", doc! { "find": "transactions" }).await;
        assert_eq!(records.len(), 2, "{records:?}");
        let children: Vec<&Doc> = records.iter().filter(|record| record.get("parentLsid").is_some()).collect();
        assert_eq!((children.len(), number(children[0], "txnNum")), (1, 3.0));
    });
}

#[test]
fn s19_a_retryable_write_in_a_transaction_is_carried_out_once() {
    run(async {
        let disk = ModelDisk::new();
        let set_of_one = || ReplicationMode::OneMember("rs0".into());
        let mut node = node_on(&disk, set_of_one()).await;
        node.ok(insert(0)).await;
        let with_id = |body: Doc, id: i32| {
            let mut builder = DocBuilder::new();
            builder.append_all(body.view());
            builder.append("stmtId", id);
            builder.finish()
        };
        let write = in_session(&internal(&[with_id(insert(1), 0), with_id(insert(2), 1)]), 7, Some(3));
        assert_eq!(responses(&node.ok_on("admin", write.clone()).await).len(), 2);
        for _ in 0..2 {
            let again = responses(&node.ok_on("admin", write.clone()).await);
            assert_eq!(again.len(), 1, "what was carried out before is not begun");
            let retried = again[0].get("retriedStmtIds").and_then(|ids| ids.as_array()).unwrap();
            assert_eq!(retried.values().next(), Some(Value::Int32(0)));
            // The client may send the statement by itself as well.
            let alone = node.ok(in_session(&with_id(insert(2), 1), 7, Some(3))).await;
            assert_eq!((number(&alone, "n"), alone.get("retriedStmtIds").is_some()), (1.0, true));
            assert_eq!(ids(&mut node).await, [0, 1, 2]);
            drop(node);
            disk.crash();
            node = node_on(&disk, set_of_one()).await;
        }
        // The client has gone on meanwhile: the write is an old one.
        node.ok(in_session(&insert(9), 7, Some(4))).await;
        assert_eq!(code(&node.run_on("admin", write).await), 225);
    });
}

#[test]
fn s19_a_retried_find_and_modify_returns_what_it_did() {
    run(async {
        let disk = ModelDisk::new();
        let mut node = node_on(&disk, ReplicationMode::OneMember("rs0".into())).await;
        node.ok(insert(1)).await;
        let modify =
            doc! { "findAndModify": "c", "query": { "_id": 1 }, "update": { "$inc": { "a": 1 } }, "stmtId": 0 };
        let write = in_session(&internal(&[modify]), 7, Some(1));
        let first = responses(&node.ok_on("admin", write.clone()).await);
        for is_restarted in [false, true] {
            if is_restarted {
                drop(node);
                disk.crash();
                node = node_on(&disk, ReplicationMode::OneMember("rs0".into())).await;
            }
            let again = responses(&node.ok_on("admin", write.clone()).await);
            assert_eq!(number(&again[0], "retriedStmtId"), 0.0);
            assert_eq!(part(&again[0], "value"), part(&first[0], "value"));
            assert_eq!(part(&again[0], "lastErrorObject"), part(&first[0], "lastErrorObject"));
            assert_eq!(node.find(doc! { "find": "c" }).await, [doc! { "_id": 1, "a": 2 }]);
        }
    });
}

/// A child of the session 7 that carries out its write of this number, told apart by a byte.
fn child(write: i64, byte: u8) -> Doc {
    let uuid = |byte: u8| {
        let id = Uuid::from_random([byte; 16]);
        pando_doc::OwnedValue::from(Value::Binary { subtype: 4, bytes: id.as_bytes() })
    };
    doc! { "id": (uuid(7)), "txnNumber": write, "txnUUID": (uuid(byte)) }
}

/// A statement of the first transaction of a session.
fn statement(body: &Doc, session: &Doc, start: bool) -> Doc {
    let mut builder = DocBuilder::new();
    builder.append_all(body.view());
    builder.append("lsid", session);
    builder.append("txnNumber", 0_i64);
    builder.append("autocommit", false);
    if start {
        builder.append("startTransaction", true);
    }
    builder.finish()
}

#[test]
fn s19_whoever_sends_a_write_again_waits_for_the_transaction_in_the_middle_of_it() {
    run(async {
        let mut node = node().await;
        node.ok(insert(0)).await;
        let (first, second) = (child(5, 1), child(5, 2));
        let commit = doc! { "commitTransaction": 1 };
        node.ok(statement(&insert(1), &first, true)).await;
        let mut beside = node.begin(&statement(&insert(1), &second, true)).await;
        let mut plain = node.begin(&in_session(&insert(1), 7, Some(5))).await;
        assert!(is_waiting(&mut beside).await && is_waiting(&mut plain).await);
        node.ok_on("admin", statement(&commit, &first, false)).await;
        // One of both is first; neither writes again.
        let reply = beside.await;
        assert!(reply.get("retriedStmtIds").is_some(), "{reply}");
        node.ok_on("admin", statement(&commit, &second, false)).await;
        let reply = plain.await;
        assert!(reply.get("retriedStmtIds").is_some(), "{reply}");
        assert_eq!(ids(&mut node).await, [0, 1]);
        // One that is aborted has written nothing.
        let third = child(6, 3);
        node.ok(statement(&insert(2), &third, true)).await;
        let mut plain = node.begin(&in_session(&insert(2), 7, Some(6))).await;
        assert!(is_waiting(&mut plain).await);
        node.ok_on("admin", statement(&doc! { "abortTransaction": 1 }, &third, false)).await;
        let reply = plain.await;
        assert!(reply.get("retriedStmtIds").is_none(), "{reply}");
        assert_eq!(ids(&mut node).await, [0, 1, 2]);
    });
}

#[test]
fn s19_a_write_older_than_that_of_a_transaction_is_refused_after_a_restart_too() {
    run(async {
        let disk = ModelDisk::new();
        let mut node = node_on(&disk, ReplicationMode::OneMember("rs0".into())).await;
        node.ok(insert(0)).await;
        node.ok(in_session(&insert(1), 7, Some(4))).await;
        let session = child(5, 1);
        node.ok(statement(&insert(2), &session, true)).await;
        node.ok_on("admin", statement(&doc! { "commitTransaction": 1 }, &session, false)).await;
        assert_eq!(node.code(in_session(&insert(1), 7, Some(4))).await, 225);
        drop(node);
        disk.crash();
        let mut node = node_on(&disk, ReplicationMode::OneMember("rs0".into())).await;
        assert_eq!(node.code(in_session(&insert(1), 7, Some(4))).await, 225);
        assert!(node.ok(in_session(&insert(2), 7, Some(5))).await.get("retriedStmtIds").is_some());
    });
}
