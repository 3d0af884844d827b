//! What tests ask of a node: plans that are run as they are given, and places where writes are held or fail.

use super::node::{Node, node, part};
use super::*;
use pando_doc::Value;

async fn found(node: &mut Node, plan: Doc) -> Vec<i32> {
    let reply = node.ok(doc! { "stageDebug": { "collection": "c", "plan": plan } }).await;
    let results = reply.get("results").and_then(|results| results.as_array()).unwrap();
    let id = |value: Value<'_>| match value.as_document().and_then(|document| document.get("_id")) {
        Some(Value::Int32(id)) => id,
        other => panic!("no _id: {other:?}"),
    };
    results.values().map(id).collect()
}

fn scan(field: &str, start: Value<'_>, end: Value<'_>, direction: i32) -> Doc {
    let key = |value: Value<'_>| {
        if matches!(value, Value::Null) {
            doc! {}
        } else {
            doc! { "": value }
        }
    };
    let arguments = doc! {
        "keyPattern": { (field): 1 }, "startKey": (key(start)), "endKey": (key(end)),
        "startKeyInclusive": true, "endKeyInclusive": false, "direction": direction,
    };
    doc! { "ixscan": { "args": arguments } }
}

#[test]
fn u7_plans_are_run_as_they_are_given() {
    run(async {
        let mut node = node().await;
        node.insert((0..10).map(|id| doc! { "_id": id, "a": id, "b": (id % 2), "c": (id % 3) }).collect()).await;
        for field in ["a", "b", "c"] {
            let index = doc! { "key": { (field): 1 }, "name": field };
            node.ok(doc! { "createIndexes": "c", "indexes": [index] }).await;
        }
        let all = Value::Null;
        let (three, six) = (Value::Int32(3), Value::Int32(6));
        assert_eq!(found(&mut node, scan("a", three, six, 1)).await, [3, 4, 5]);
        assert_eq!(found(&mut node, scan("a", three, all, -1)).await, [3, 2, 1, 0]);
        assert_eq!(found(&mut node, scan("a", six, three, -1)).await, [6, 5, 4]);
        let odd = || scan("b", Value::Int32(1), Value::Int32(2), 1);
        let thirds = || scan("c", Value::Int32(0), Value::Int32(1), 1);
        for name in ["andHash", "andSorted"] {
            let both = doc! { (name): { "args": { "nodes": [odd(), thirds()] } } };
            assert_eq!(found(&mut node, both).await, [3, 9], "{name}");
        }
        let either = |dedup: bool| doc! { "or": { "args": { "nodes": [odd(), thirds()], "dedup": dedup } } };
        assert_eq!(found(&mut node, either(true)).await.len(), 7);
        assert_eq!(found(&mut node, either(false)).await.len(), 9);
        let limited = doc! { "limit": { "args": { "node": (either(true)), "num": 2 } } };
        let skipped = doc! { "skip": { "args": { "node": limited, "num": 1 } } };
        assert_eq!(found(&mut node, skipped).await, [3]);
        let fetched = doc! { "fetch": { "filter": { "c": 1 }, "args": { "node": (odd()) } } };
        assert_eq!(found(&mut node, fetched).await, [1, 7]);
        let code = |plan: Doc| doc! { "stageDebug": { "collection": "c", "plan": plan } };
        let uncovered = doc! { "ixscan": { "filter": { "b": 1 }, "args": (part(&part(&odd(), "ixscan"), "args")) } };
        assert!(found(&mut node, uncovered.clone()).await.len() == 5, "what the key has may be asked");
        let uncovered = doc! { "ixscan": { "filter": { "a": 1 }, "args": (part(&part(&odd(), "ixscan"), "args")) } };
        assert_eq!(node.code(code(uncovered)).await, 2);
        assert_eq!(node.code(code(doc! { "andHash": { "args": { "nodes": [odd()] } } })).await, 16927);
        let deleting = |multi: bool| {
            let scan = doc! { "cscan": { "filter": { "c": 0 }, "args": { "direction": 1 } } };
            doc! { "delete": { "args": { "node": scan, "isMulti": multi } } }
        };
        assert!(found(&mut node, deleting(false)).await.is_empty());
        assert_eq!(node.find(doc! { "find": "c", "filter": { "c": 0 } }).await.len(), 3);
        found(&mut node, deleting(true)).await;
        assert_eq!(node.find(doc! { "find": "c" }).await.len(), 6);
    });
}

#[test]
fn u18_writes_fail_where_tests_want_them_to() {
    run(async {
        let mut node = node().await;
        let writes = [
            ("failAllInserts", doc! { "insert": "held", "documents": [{ "_id": 1 }] }),
            ("failAllUpdates", doc! { "update": "held", "updates": [{ "q": {}, "u": { "$set": { "a": 1 } } }] }),
            ("failAllRemoves", doc! { "delete": "held", "deletes": [{ "q": { "_id": 7 }, "limit": 1 }] }),
        ];
        for (point, write) in writes {
            let set = |mode: &str| doc! { "configureFailPoint": point, "mode": mode, "data": { "nss": "d.held" } };
            node.ok_on("admin", set("alwaysOn")).await;
            let reply = node.run(write.clone()).await;
            node.ok_on("admin", set("off")).await;
            assert!(reply.to_string().contains(point), "{reply}");
            assert!(node.ok(write).await.get("writeErrors").is_none());
        }
    });
}

#[test]
fn u7_distinct_values_come_from_keys_and_views() {
    run(async {
        let mut node = node().await;
        node.insert(vec![
            doc! { "_id": 1, "a": 1, "s": "x", "b": [{ "c": 1 }, { "c": [2, 3] }] },
            doc! { "_id": 2, "s": "X", "b": { "c": 3 } },
        ])
        .await;
        let values = |reply: Doc| reply.get("values").unwrap().to_string();
        let distinct = |on: &str, key: &str| doc! { "distinct": on, "key": key };
        assert_eq!(values(node.ok(distinct("c", "a")).await), "[ 1 ]");
        let english = || doc! { "locale": "en", "strength": 2 };
        node.ok(doc! { "createIndexes": "c", "indexes": [
            { "key": { "a": 1 }, "name": "a" }, { "key": { "s": 1 }, "name": "s", "collation": (english()) },
        ] })
        .await;
        assert_eq!(values(node.ok(distinct("c", "a")).await), "[ null, 1 ]", "keys do not tell null from nothing");
        let collated = doc! { "distinct": "c", "key": "s", "collation": (english()) };
        assert_eq!(values(node.ok(collated.clone()).await), r#"[ "x" ]"#);
        let explained = node.ok(doc! { "explain": collated }).await;
        let plan = part(&part(&explained, "queryPlanner"), "winningPlan");
        assert_eq!(text(&plan, "stage"), "FETCH");
        assert_eq!(text(&part(&plan, "inputStage"), "stage"), "DISTINCT_SCAN");
        node.ok(doc! { "create": "v", "viewOn": "c", "pipeline": [] }).await;
        assert_eq!(values(node.ok(distinct("v", "b.c")).await), "[ 1, 2, 3 ]");
        assert_eq!(values(node.ok(distinct("v", "b.0.c")).await), "[ 1 ]");
    });
}

#[test]
fn u9_views_that_cannot_be_read_are_told_of() {
    run(async {
        let mut node = node().await;
        node.ok(doc! { "create": "base" }).await;
        node.ok(doc! { "create": "system.views" }).await;
        let put = |document: Doc| {
            let namespace = "d.system.views";
            doc! { "applyOps": [{ "op": "i", "ns": namespace, "o": document }] }
        };
        node.ok_on("admin", put(doc! { "_id": "d.bad", "viewOn": "base", "pipeline": [{ "$out": "x" }] })).await;
        let view = || doc! { "create": "v", "viewOn": "base", "pipeline": [] };
        assert_eq!(node.code(view()).await, 167, "one that writes is in the way of all");
        node.ok_on("admin", put(doc! { "_id": "d.worse", "viewOn": 7 })).await;
        assert_eq!(node.code(doc! { "listCollections": 1 }).await, 182);
        let alone = doc! { "$or": [{ "type": "collection" }, { "type": { "$exists": false } }] };
        node.ok(doc! { "listCollections": 1, "filter": alone }).await;
    });
}

#[test]
fn u16_operators_that_are_in_no_version_are_found_wherever_they_stand() {
    run(async {
        let mut node = node().await;
        node.insert(vec![doc! { "_id": 1 }]).await;
        let of = |kind: &str| doc! { "$project": { "v": { "$_testApiVersion": { (kind): true } } } };
        let asked = |on: &str, pipeline: Vec<Doc>, flag: &str| {
            let pipeline: pando_doc::Array = pipeline.iter().collect();
            doc! { "aggregate": on, "pipeline": pipeline, "cursor": {}, "apiVersion": "1", (flag): true }
        };
        assert_eq!(node.code(asked("c", vec![of("unstable")], "apiStrict")).await, 323);
        assert_eq!(node.code(asked("c", vec![of("deprecated")], "apiDeprecationErrors")).await, 324);
        node.ok(asked("c", vec![of("deprecated")], "apiStrict")).await;
        node.ok(doc! { "create": "v", "viewOn": "c", "pipeline": [of("unstable")] }).await;
        assert_eq!(node.code(asked("v", vec![], "apiStrict")).await, 323, "a view's operators count");
        let validator = doc! { "$expr": { "$_testApiVersion": { "unstable": true } } };
        node.ok(doc! { "create": "w", "validator": validator }).await;
        let insert = doc! { "insert": "w", "documents": [{}], "apiVersion": "1", "apiStrict": true };
        assert_eq!(node.code(insert).await, 323);
    });
}
