//! What is counted, logged and profiled of operations, over the wire.

use super::concurrency::is_waiting;
use super::node::{Node, batch, cursor_id, node};
use super::transactions::{ONE, insert};
use super::*;

fn inner(document: &Doc, path: &str) -> Doc {
    path.split('/').fold(document.clone(), |found, part| {
        let below = found.get(part).and_then(|value| value.as_document().map(|below| below.to_doc()));
        below.unwrap_or_else(|| panic!("no {part} of {path} in {found}"))
    })
}

/// How often top has counted operations of a kind on the collection d.c.
async fn top(node: &mut Node, kind: &str) -> f64 {
    let reply = node.client.admin(doc! { "top": 1 }).await;
    number(&inner(&reply, &format!("totals/d.c/{kind}")), "count")
}

async fn latencies(node: &mut Node) -> [f64; 3] {
    let pipeline = doc! { "aggregate": "c", "pipeline": [{ "$collStats": { "latencyStats": { "histograms": true } } }], "cursor": {} };
    let found = node.find(pipeline).await;
    let stats = inner(&found[0], "latencyStats");
    assert!(inner(&stats, "reads").view().contains("histogram"));
    ["reads", "writes", "commands"].map(|name| number(&inner(&stats, name), "ops"))
}

/// The documents of system.profile that match, the last first.
async fn profiled(node: &mut Node, filter: Doc) -> Vec<Doc> {
    node.find(doc! { "find": "system.profile", "filter": filter, "sort": { "$natural": -1 } }).await
}

#[test]
fn u11_scans_of_a_collection_are_counted() {
    run(async {
        let mut node = node().await;
        node.insert(vec![doc! { "_id": 1, "a": 1 }, doc! { "_id": 2 }]).await;
        node.ok(doc! { "create": "log", "capped": true, "size": 4096 }).await;
        node.insert_into("log", &[doc! { "_id": 1 }]).await;
        let scans = |collection: &str| {
            doc! { "aggregate": collection, "pipeline": [{ "$collStats": { "queryExecStats": {} } }], "cursor": {} }
        };
        let shown = |found: Vec<Doc>| {
            let scans = inner(&found[0], "queryExecStats/collectionScans");
            (number(&scans, "total"), number(&scans, "nonTailable"))
        };
        assert_eq!(shown(node.find(scans("c")).await), (0.0, 0.0));
        node.find(doc! { "find": "c", "filter": { "a": 1 } }).await;
        node.find(doc! { "find": "c", "filter": { "_id": 1 } }).await;
        node.ok(doc! { "update": "c", "updates": [{ "q": { "a": 1 }, "u": { "$set": { "b": 1 } } }] }).await;
        assert_eq!(shown(node.find(scans("c")).await), (2.0, 2.0));
        node.ok(doc! { "find": "log", "tailable": true }).await;
        assert_eq!(shown(node.find(scans("log")).await), (1.0, 0.0));
        assert_eq!(node.code(scans("nothing")).await, 26);
    });
}

#[test]
fn u15_top_counts_what_was_done_to_each_collection() {
    run(async {
        let mut node = node().await;
        node.insert(vec![doc! { "_id": 1 }, doc! { "_id": 2 }, doc! { "_id": 3 }]).await;
        node.ok(doc! { "update": "c", "updates": [{ "q": {}, "u": { "$set": { "a": 1 } } }, { "q": { "_id": 9 }, "u": {} }] }).await;
        node.ok(doc! { "delete": "c", "deletes": [{ "q": { "_id": 3 }, "limit": 1 }] }).await;
        let reply = node.ok(doc! { "find": "c", "batchSize": 1 }).await;
        let id = cursor_id(&reply);
        node.ok(doc! { "getMore": id, "collection": "c" }).await;
        node.ok(doc! { "count": "c" }).await;
        let mut found = Vec::new();
        for kind in ["insert", "update", "remove", "queries", "getmore", "commands", "writeLock", "readLock", "total"] {
            found.push(top(&mut node, kind).await);
        }
        assert_eq!(found, [1.0, 2.0, 1.0, 1.0, 1.0, 1.0, 4.0, 3.0, 7.0]);
        let before = latencies(&mut node).await;
        assert_eq!(before, [3.0, 4.0, 0.0]);
        node.ok(doc! { "listIndexes": "c" }).await;
        assert_eq!(latencies(&mut node).await, [4.0, 4.0, 1.0]);
        node.ok(doc! { "drop": "c" }).await;
        let reply = node.client.admin(doc! { "top": 1 }).await;
        assert!(!inner(&reply, "totals").view().contains("d.c"));
    });
}

#[test]
fn u15_the_profiler_tells_what_operations_did() {
    run(async {
        let mut node = node().await;
        let was = node.ok(doc! { "profile": 2 }).await;
        assert_eq!((number(&was, "was"), number(&was, "slowms"), number(&was, "sampleRate")), (0.0, 100.0, 1.0));
        node.insert(vec![doc! { "_id": 1, "a": 1 }, doc! { "_id": 2, "a": 2 }]).await;
        node.ok(doc! { "createIndexes": "c", "indexes": [{ "key": { "a": 1 }, "name": "a_1" }] }).await;
        let insert = &profiled(&mut node, doc! { "op": "insert" }).await[0];
        assert_eq!((number(insert, "ninserted"), number(insert, "keysInserted")), (2.0, 2.0));
        assert_eq!(
            (text(insert, "ns"), text(insert, "protocol"), text(insert, "user")),
            ("d.c".into(), "op_msg".into(), String::new())
        );
        assert!(
            inner(insert, "locks").view().contains("Global")
                && insert.view().contains("ts")
                && insert.view().contains("millis")
        );

        node.find(doc! { "find": "c", "filter": { "a": { "$gte": 1 } }, "sort": { "b": 1 } }).await;
        let find = &profiled(&mut node, doc! { "op": "query", "ns": "d.c" }).await[0];
        let counts = ["keysExamined", "docsExamined", "nreturned"].map(|name| number(find, name));
        assert_eq!((counts, text(find, "planSummary")), ([2.0, 2.0, 2.0], "IXSCAN { a: 1 }".to_owned()));
        assert_eq!(text(&inner(find, "execStats"), "stage"), "SORT");
        assert!(find.get("hasSortStage").unwrap().is_true() && find.get("cursorExhausted").unwrap().is_true());
        assert!(
            find.view().contains("queryHash")
                && find.view().contains("responseLength")
                && !find.view().contains("cursorid")
        );

        node.ok(doc! { "update": "c", "updates": [{ "q": { "a": 1 }, "u": { "$set": { "a": 5 } } }, { "q": { "a": 7 }, "u": { "$set": { "b": 1 } }, "upsert": true }] }).await;
        let updates = profiled(&mut node, doc! { "op": "update" }).await;
        assert_eq!(updates.len(), 2);
        let told = |update: &Doc| ["nMatched", "nModified", "nUpserted"].map(|name| number(update, name));
        assert_eq!((told(&updates[1]), told(&updates[0])), ([1.0, 1.0, 0.0], [0.0, 0.0, 1.0]));
        let expected = doc! { "q": { "a": 1 }, "u": { "$set": { "a": 5 } }, "multi": false, "upsert": false };
        assert_eq!(inner(&updates[1], "command"), expected);
        node.ok(doc! { "delete": "c", "deletes": [{ "q": {}, "limit": 0 }] }).await;
        assert_eq!(number(&profiled(&mut node, doc! { "op": "remove" }).await[0], "ndeleted"), 3.0);

        assert_eq!(node.code(doc! { "find": "c", "filter": { "$nonsense": 1 } }).await, 2);
        let failed = &profiled(&mut node, doc! { "errCode": 2 }).await[0];
        assert_eq!((text(failed, "errName"), number(failed, "ok")), ("BadValue".to_owned(), 0.0));
    });
}

#[test]
fn u15_the_profilers_collection_is_capped_and_its_own() {
    run(async {
        let mut node = node().await;
        node.ok(doc! { "profile": 2 }).await;
        let stats = node.ok(doc! { "collStats": "system.profile" }).await;
        assert!(stats.get("capped").unwrap().is_true());
        assert_eq!(node.code(doc! { "drop": "system.profile" }).await, 20);
        assert_eq!(node.code(doc! { "insert": "system.profile", "documents": [{ "a": 1 }] }).await, 73);
        node.ok(doc! { "profile": 0 }).await;
        node.ok(doc! { "drop": "system.profile" }).await;
        node.ok(doc! { "create": "system.profile" }).await;
        assert_eq!(node.code(doc! { "profile": 1 }).await, 48);
        assert_eq!(number(&node.ok(doc! { "profile": -1 }).await, "was"), 0.0);
        node.ok(doc! { "dropDatabase": 1 }).await;
        node.ok(doc! { "profile": 1 }).await;
        node.ok(doc! { "dropDatabase": 1 }).await;
        assert_eq!(number(&node.ok(doc! { "profile": -1 }).await, "was"), 0.0);
    });
}

#[test]
fn u15_the_profiler_does_not_wait_for_locks_inside_of_transactions() {
    run(async {
        let mut node = node().await;
        node.ok(insert(1)).await;
        node.ok(doc! { "profile": 2 }).await;
        ONE.start(&mut node, insert(2)).await;
        assert_eq!(profiled(&mut node, doc! { "op": "insert" }).await.len(), 1);
        // It waits for the transaction; whoever comes now and wants to write there waits for it.
        let mut drop = node.begin(&doc! { "dropDatabase": 1 }).await;
        assert!(is_waiting(&mut drop).await);
        ONE.go_on(&mut node, insert(3)).await;
        assert_eq!(number(&ONE.commit(&mut node).await, "ok"), 1.0);
        assert_eq!(number(&drop.await, "ok"), 1.0);
    });
}

#[test]
fn u15_threshold_sample_rate_and_filter_choose_what_is_profiled() {
    run(async {
        let mut node = node().await;
        node.insert(vec![doc! { "_id": 1 }]).await;
        node.ok(doc! { "profile": 1, "slowms": 1000 }).await;
        node.find(doc! { "find": "c" }).await;
        node.ok(doc! { "profile": 1, "slowms": -1, "sampleRate": 0.0 }).await;
        node.find(doc! { "find": "c" }).await;
        assert_eq!(profiled(&mut node, doc! { "op": "query", "ns": "d.c" }).await.len(), 0);
        node.ok(doc! { "profile": 1, "slowms": -1, "sampleRate": 1.0 }).await;
        node.find(doc! { "find": "c" }).await;
        assert_eq!(profiled(&mut node, doc! { "op": "query", "ns": "d.c" }).await.len(), 1);
        let set = node.ok(doc! { "profile": 1, "slowms": 1000, "filter": { "nreturned": 1 } }).await;
        assert!(set.view().contains("note"));
        node.find(doc! { "find": "c", "comment": "one" }).await;
        node.find(doc! { "find": "c", "filter": { "_id": 5 }, "comment": "none" }).await;
        let found = profiled(&mut node, doc! { "command.comment": { "$exists": true } }).await;
        assert_eq!((found.len(), text(&inner(&found[0], "command"), "comment")), (1, "one".to_owned()));
        assert_eq!(node.code(doc! { "profile": 1, "filter": { "no_such_field": 1 } }).await, 4_910_200);
        assert_eq!(node.code(doc! { "profile": 1, "filter": null }).await, 2);
        assert_eq!(node.code(doc! { "profile": 1, "sampleRate": 2 }).await, 2);
        assert_eq!(
            inner(&node.ok(doc! { "profile": 0, "filter": "unset" }).await, "filter"),
            doc! { "nreturned": { "$eq": 1 } }
        );
        assert!(!node.ok(doc! { "profile": -1 }).await.view().contains("filter"));
    });
}

#[test]
fn u15_a_hash_of_the_database_is_of_its_documents() {
    run(async {
        let mut node = node().await;
        node.insert(vec![doc! { "_id": 1 }, doc! { "_id": 2 }]).await;
        node.ok(doc! { "create": "capped", "capped": true, "size": 4096 }).await;
        let first = node.ok(doc! { "dbHash": 1 }).await;
        let hash = |reply: &Doc| text(&inner(reply, "collections"), "c");
        // Of the bytes of both documents, one after the other.
        assert_eq!(hash(&first).len(), 32);
        assert_eq!(first.get("capped").unwrap().as_array().unwrap().values().next().unwrap().as_str(), Some("capped"));
        node.ok(doc! { "delete": "c", "deletes": [{ "q": { "_id": 1 }, "limit": 1 }] }).await;
        assert_ne!(hash(&first), hash(&node.ok(doc! { "dbHash": 1 }).await));
        node.insert(vec![doc! { "_id": 1 }]).await;
        let again = node.ok(doc! { "dbHash": 1 }).await;
        assert_eq!((hash(&first), text(&first, "md5")), (hash(&again), text(&again, "md5")));
        let only = node.ok(doc! { "dbHash": 1, "collections": ["capped"] }).await;
        assert!(!inner(&only, "collections").view().contains("c") && inner(&only, "uuids").view().contains("capped"));
    });
}

#[test]
fn u15_parameters_of_the_log_and_of_tickets_are_typed() {
    run(async {
        let mut node = node().await;
        let set = doc! { "setParameter": 1, "logComponentVerbosity": { "query": { "verbosity": 2 } } };
        node.client.admin(set).await;
        let found = node.client.admin(doc! { "getParameter": 1, "logComponentVerbosity": 1, "logLevel": 1 }).await;
        assert_eq!(number(&inner(&found, "logComponentVerbosity/query"), "verbosity"), 2.0);
        assert_eq!(number(&inner(&found, "logComponentVerbosity/storage/journal"), "verbosity"), -1.0);
        node.client.admin(doc! { "setParameter": 1, "logComponentVerbosity": { "verbosity": 1 } }).await;
        assert_eq!(number(&node.client.admin(doc! { "getParameter": 1, "logLevel": 1 }).await, "logLevel"), 1.0);
        let reply =
            node.client.ask(doc! { "setParameter": 1, "logComponentVerbosity": { "x": 1 }, "$db": "admin" }).await;
        assert_eq!(number(&reply, "code"), 2.0);
        let reply = node
            .client
            .ask(doc! { "setParameter": 1, "wiredTigerConcurrentReadTransactions": 10, "$db": "admin" })
            .await;
        assert_eq!(number(&reply, "code"), 20.0, "{reply}");
        let found = node.client.admin(doc! { "getParameter": "*" }).await;
        assert!(
            found.view().contains("wiredTigerConcurrentWriteTransactions")
                && found.view().contains("storageEngineConcurrentWriteTransactions")
        );
        assert!(batch(&node.ok(doc! { "find": "c" }).await, "firstBatch").is_empty());
    });
}

#[test]
fn u15_server_status_counts_documents_cursors_sorts_and_waits() {
    run(async {
        let mut node = node().await;
        let before = inner(&node.client.admin(doc! { "serverStatus": 1 }).await, "metrics");
        node.insert((0..5).map(|number| doc! { "_id": number, "a": (5 - number) }).collect()).await;
        node.ok(doc! { "update": "c", "updates": [{ "q": { "a": { "$gt": 2 } }, "u": { "$set": { "b": 1 } }, "multi": true }] }).await;
        node.ok(doc! { "delete": "c", "deletes": [{ "q": { "_id": 4 }, "limit": 1 }] }).await;
        node.find(doc! { "find": "c", "sort": { "a": 1 } }).await;
        node.find(doc! { "find": "c", "sort": { "_id": 1 } }).await;
        let open = cursor_id(&node.ok(doc! { "find": "c", "batchSize": 1, "noCursorTimeout": true }).await);
        assert_ne!(open, 0);
        let after = inner(&node.client.admin(doc! { "serverStatus": 1 }).await, "metrics");
        let grown = |path: &str, name: &str| number(&inner(&after, path), name) - number(&inner(&before, path), name);
        let documents = ["inserted", "updated", "deleted", "returned"].map(|name| grown("document", name));
        assert_eq!(documents, [5.0, 3.0, 1.0, 9.0]);
        assert_eq!(grown("operation", "scanAndOrder"), 1.0);
        assert_eq!(grown("cursor", "totalOpened"), 1.0);
        assert_eq!(["total", "noTimeout", "pinned"].map(|name| grown("cursor/open", name)), [1.0, 1.0, 0.0]);
        assert_eq!(grown("getLastError/wtime", "num"), 3.0);
        assert_eq!(grown("getLastError", "wtimeouts"), 0.0);
    });
}
