//! Want of memory: every kind of write is answered alike, and everything is counted.

use super::node::{Node, durable_node, part};
use super::transactions::{ONE, TWO, Transaction, code, has_label, insert, set};
use super::*;
use pando_doc::Value;
use pando_engine::{EngineOptions, Mode};

const TEMPORARILY_UNAVAILABLE: i32 = 365;
const TOO_LARGE: i32 = 388;
const WRITE_CONFLICT: i32 = 112;
const RETRIES: i64 = 2;
/// Half of it may be what is not on disk.
const MEMORY_BYTES: u64 = 4 << 20;

/// A node whose engine has little memory, with a few documents.
async fn narrow_node() -> Node {
    let simulation = Simulation::new(5);
    let (env, retries) = (simulation.env(), RETRIES.to_string());
    let engine_options = EngineOptions { memory_bytes: MEMORY_BYTES, ..EngineOptions::stepped(Mode::ReplicaSet) };
    let parameters =
        [("temporarilyUnavailableMaxRetries", retries.as_str()), ("temporarilyUnavailableBackoffBaseMs", "0")];
    let mut node = durable_node(simulation, env, engine_options, &parameters).await;
    node.insert((0..4).map(|id| doc! { "_id": id, "a": 1 }).collect()).await;
    node.ok(doc! { "insert": "c", "documents": [{ "_id": 50 }] }).await;
    node
}

/// Two transactions that write until there is no room.
async fn fill(node: &mut Node) {
    let large = "x".repeat(300 << 10);
    for (transaction, first, count) in [(ONE, 100, 4), (TWO, 200, 2)] {
        for id in first..first + count {
            let insert = doc! { "insert": "c", "documents": [{ "_id": id, "text": (large.as_str()) }] };
            match id == first {
                true => transaction.start(node, insert).await,
                false => transaction.go_on(node, insert).await,
            };
        }
    }
    // The last write is a single one: what fills the last room is not refused, only the next.
    let update = doc! { "q": { "_id": 50 }, "u": { "$set": { "text": (large.as_str()) } } };
    TWO.go_on(node, doc! { "update": "c", "updates": [update] }).await;
}

/// The error's code, of the command or of its only write.
fn refusal(reply: &Doc) -> i32 {
    match reply.get("writeErrors").and_then(|errors| errors.as_array()) {
        Some(errors) => {
            let first = errors.values().next().and_then(|error| error.as_document()).expect("an error");
            number(&first.to_doc(), "code") as i32
        }
        None => code(reply),
    }
}

async fn metric(node: &mut Node, name: &str) -> i64 {
    let status = node.client.admin(doc! { "serverStatus": 1 }).await;
    number(&part(&part(&status, "metrics"), "operation"), name) as i64
}

fn writes() -> [Doc; 7] {
    [
        doc! { "insert": "c", "documents": [{ "_id": 10 }] },
        set(1, 2),
        doc! { "update": "c", "updates": [{ "q": { "a": 1 }, "u": { "$set": { "b": 1 } }, "multi": true }] },
        doc! { "update": "c", "updates": [{ "q": { "_id": 11 }, "u": { "$set": { "b": 1 } }, "upsert": true }] },
        doc! { "delete": "c", "deletes": [{ "q": { "_id": 1 }, "limit": 1 }] },
        doc! { "delete": "c", "deletes": [{ "q": { "a": 1 }, "limit": 0 }] },
        doc! { "findAndModify": "c", "query": { "_id": 2 }, "update": { "$set": { "a": 3 } } },
    ]
}

#[test]
fn x5_every_write_is_answered_alike_while_memory_is_short() {
    run(async {
        let mut node = narrow_node().await;
        fill(&mut node).await;
        let count = writes().len() as i64;
        for write in writes() {
            let reply = node.run(write.clone()).await;
            assert_eq!(refusal(&reply), TEMPORARILY_UNAVAILABLE, "{write}: {reply}");
        }
        assert_eq!(metric(&mut node, "temporarilyUnavailableErrors").await, count * (RETRIES + 1));
        assert_eq!(metric(&mut node, "temporarilyUnavailableErrorsEscaped").await, count);
        assert_eq!(node.find(doc! { "find": "c", "filter": { "a": 1 } }).await.len(), 4, "who reads is not refused");

        // A transaction is told to begin again, whatever it writes.
        for (place, write) in writes().into_iter().enumerate() {
            let third = Transaction { session: 3, number: 1 + place as i64 };
            let reply = third.fails(&mut node, write.clone(), true).await;
            assert_eq!(code(&reply), WRITE_CONFLICT, "{write}: {reply}");
            assert!(has_label(&reply, "TransientTransactionError"), "{reply}");
        }
        assert_eq!(metric(&mut node, "temporarilyUnavailableErrorsConvertedToWriteConflict").await, count);

        ONE.abort(&mut node).await;
        assert_eq!(number(&TWO.commit(&mut node).await, "ok"), 1.0);
        for write in writes() {
            let reply = node.ok(write.clone()).await;
            assert_eq!(reply.get("writeErrors"), None, "{write}: {reply}");
        }
    });
}

#[test]
fn x5_what_alone_fills_the_cache_is_too_large_if_the_parameter_says_so() {
    run(async {
        let mut node = narrow_node().await;
        let large = "x".repeat(300 << 10);
        let fill = |id: i32| doc! { "insert": "c", "documents": [{ "_id": id, "text": (large.as_str()) }] };
        for (number, threshold, expected) in [(1, 0.75, TOO_LARGE), (2, 1.0, WRITE_CONFLICT), (3, 0.5, TOO_LARGE)] {
            node.client.admin(doc! { "setParameter": 1, "transactionTooLargeForCacheThreshold": threshold }).await;
            let transaction = Transaction { number, ..ONE };
            transaction.start(&mut node, insert(60)).await;
            let mut refused = None;
            for id in 100..110 {
                let reply = node.run(transaction.statement(&fill(id), false)).await;
                if reply.get("ok") != Some(Value::Double(1.0)) || reply.view().contains("writeErrors") {
                    refused = Some(reply);
                    break;
                }
            }
            let refused = refused.expect("it does not fit");
            assert_eq!(refusal(&refused), expected, "{refused}");
            assert_eq!(has_label(&refused, "TransientTransactionError"), expected == WRITE_CONFLICT, "{refused}");
        }
        assert_eq!(metric(&mut node, "transactionTooLargeForCacheErrors").await, 2);
    });
}
