//! `applyOps`, over the wire.

use super::node::{Node, node};
use super::*;
use pando_doc::Value;

async fn all(node: &mut Node) -> Vec<Doc> {
    node.find(doc! { "find": "c", "sort": { "_id": 1 } }).await
}

fn results(reply: &Doc) -> Vec<bool> {
    let results = reply.get("results").and_then(|results| results.as_array()).expect("results");
    results.values().map(|result| result.is_true()).collect()
}

#[test]
fn r1_documents_of_the_oplog_are_applied_and_applied_again() {
    run(async {
        let mut node = node().await;
        node.ok(doc! { "create": "c" }).await;
        let inserts = doc! { "applyOps": [
            { "op": "i", "ns": "d.c", "o": { "_id": 1, "a": 1 } },
            { "op": "n", "ns": "", "o": {} },
            { "op": "i", "ns": "d.c", "o": { "_id": 2, "a": 2 } },
        ] };
        for _ in 0..2 {
            let reply = node.ok_on("admin", inserts.clone()).await;
            assert_eq!((number(&reply, "applied"), results(&reply)), (2.0, vec![true, true]));
        }
        let changes = doc! { "applyOps": [
            { "op": "u", "ns": "d.c", "o2": { "_id": 1 }, "o": { "$v": 2, "diff": { "u": { "a": 5 }, "i": { "b": 6 } } } },
            { "op": "u", "ns": "d.c", "o2": { "_id": 2 }, "o": { "_id": 2, "whole": true } },
            { "op": "u", "ns": "d.c", "o2": { "_id": 3 }, "o": { "$v": 2, "diff": { "i": { "x": 1 } } } },
            { "op": "d", "ns": "d.c", "o": { "_id": 9 } },
        ] };
        node.ok_on("admin", changes).await;
        let expected = [doc! { "_id": 1, "a": 5, "b": 6 }, doc! { "_id": 2, "whole": true }, doc! { "_id": 3, "x": 1 }];
        assert_eq!(all(&mut node).await, expected);
        let strict = doc! { "applyOps": [
            { "op": "u", "ns": "d.c", "o2": { "_id": 7 }, "o": { "$v": 2, "diff": { "i": { "x": 1 } } } },
            { "op": "d", "ns": "d.c", "o": { "_id": 3 } },
        ], "alwaysUpsert": false };
        let reply = node.run_on("admin", strict).await;
        assert_eq!((number(&reply, "code"), results(&reply)), (8.0, vec![false, true]), "{reply}");
        assert_eq!(all(&mut node).await.len(), 2, "one that fails leaves the others alone");
        let entries = node.find_on("local", doc! { "find": "oplog.rs", "filter": { "ns": "d.c", "op": "u" } }).await;
        assert_eq!(entries.len(), 2, "what changed is in the oplog once: {entries:?}");
    });
}

#[test]
fn r1_commands_of_the_oplog_are_applied() {
    run(async {
        let mut node = node().await;
        let uuid = Value::Binary { subtype: 4, bytes: &[7; 16] };
        let create = doc! { "applyOps": [{ "op": "c", "ns": "d.$cmd", "ui": uuid, "o": { "create": "c", "idIndex": { "v": 2, "key": { "_id": 1 }, "name": "_id_" } } }] };
        node.ok_on("admin", create.clone()).await;
        node.ok_on("admin", create).await;
        let listed = node.find(doc! { "listCollections": 1 }).await;
        let info = super::node::part(&listed[0], "info");
        assert_eq!(info.get("uuid"), Some(uuid));
        let rename = doc! { "applyOps": [{ "op": "c", "ns": "d.$cmd", "ui": uuid, "o": { "renameCollection": "d.c", "to": "d.e" } }] };
        node.ok_on("admin", rename.clone()).await;
        node.ok_on("admin", rename).await;
        let wrong = doc! { "applyOps": [{ "op": "i", "ns": "d.c", "ui": uuid, "o": { "_id": 1 } }] };
        assert_eq!(node.code_on("admin", wrong).await, 3318200);
        node.ok(doc! { "createIndexes": "e", "indexes": [{ "key": { "a": 1 }, "name": "a_1" }] }).await;
        let drops = doc! { "applyOps": [
            { "op": "c", "ns": "d.$cmd", "o": { "dropIndexes": "e", "index": "a_1" } },
            { "op": "c", "ns": "d.$cmd", "o": { "dropIndexes": "nothing", "index": "a_1" } },
            { "op": "c", "ns": "d.$cmd", "o": { "applyOps": [{ "op": "i", "ns": "d.e", "o": { "_id": 1 } }] } },
        ] };
        node.ok_on("admin", drops).await;
        assert_eq!(node.find(doc! { "listIndexes": "e" }).await.len(), 1);
        assert_eq!(node.find(doc! { "find": "e" }).await.len(), 1);
        node.ok_on("admin", doc! { "applyOps": [{ "op": "c", "ns": "d.$cmd", "ui": uuid, "o": { "drop": "other" } }] })
            .await;
        assert_eq!(node.find(doc! { "listCollections": 1 }).await.len(), 0);
    });
}

#[test]
fn r1_operations_that_make_no_sense_are_refused() {
    run(async {
        let mut node = node().await;
        node.ok(doc! { "create": "c" }).await;
        let update = |change: Doc| doc! { "op": "u", "ns": "d.c", "o2": { "_id": 1 }, "o": change };
        for (operations, code) in [
            (doc! { "applyOps": "none" }, 14),
            (doc! { "applyOps": [{ "ns": "d.c" }] }, 4),
            (doc! { "applyOps": [{ "op": "i" , "o": {} }] }, 20),
            (doc! { "applyOps": [{ "op": "i", "ns": "", "o": {} }] }, 20),
            (doc! { "applyOps": [{ "op": "i", "ns": "d", "o": { "_id": 1 } }] }, 73),
            (doc! { "applyOps": [{ "op": "i", "ns": "d.nothing", "o": { "_id": 1 } }] }, 26),
            (doc! { "applyOps": [{ "op": "i", "ns": "d.c", "o": { "a": 1 } }] }, 4),
            (doc! { "applyOps": [update(doc! { "$v": 1, "$set": { "a": 1 } })] }, 4772600),
            (doc! { "applyOps": [update(doc! { "$v": 3, "diff": {} })] }, 4772600),
            (doc! { "applyOps": [{ "op": "c", "ns": "d.$cmd", "o": { "createIndexes": "c" } }] }, 115),
            (doc! { "applyOps": [{ "op": "c", "ns": "d.$cmd", "o": { "hello": 1 } }] }, 2),
            (doc! { "applyOps": [], "preCondition": [] }, 6711600),
        ] {
            assert_eq!(node.code_on("admin", operations.clone()).await, code, "{operations}");
        }
        node.ok_on("admin", doc! { "applyOps": [] }).await;
    });
}
