//! What requests are answered whose fields are of a wrong type: one mechanism for all commands, and what single ones declare.

use super::node::{Node, node, node_as};
use super::*;
use pando_doc::{Value, array};

async fn set() -> Node {
    node_as(ReplicationMode::OneMember("rs0".into())).await
}

/// The code of the answer; zero if it is no error.
async fn code_on(node: &mut Node, database: &str, body: Doc) -> i32 {
    let reply = node.run_on(database, body).await;
    reply.get("code").map_or(0, |code| i32::try_from(code.to_i64_or_zero()).unwrap_or(i32::MAX))
}

#[test]
fn u17_names_of_collections_are_strings() {
    run(async {
        let mut node = node().await;
        for command in [
            "find",
            "insert",
            "update",
            "delete",
            "count",
            "distinct",
            "create",
            "drop",
            "collMod",
            "listIndexes",
            "dropIndexes",
            "createIndexes",
            "planCacheClear",
            "convertToCapped",
            "validate",
            "collStats",
        ] {
            for wrong in [Value::Int32(1), Value::Bool(true), Value::Null] {
                let body = doc! {
                    (command): wrong, "documents": [{}], "updates": [], "deletes": [], "key": "a", "size": 1,
                    "indexes": [], "index": "a",
                };
                let found = code_on(&mut node, "d", body).await;
                // Some look at other fields before.
                assert!([73, 40415, 14].contains(&found), "{command}: {wrong} {found}");
            }
        }
        for command in ["find", "create", "drop", "collMod", "planCacheClear"] {
            assert_eq!(code_on(&mut node, "d", doc! { (command): 1 }).await, 73, "{command}");
        }
        assert_eq!(code_on(&mut node, "d", doc! { "aggregate": 2, "pipeline": [], "cursor": {} }).await, 2);
        assert_eq!(code_on(&mut node, "d", doc! { "aggregate": Value::Null, "pipeline": [], "cursor": {} }).await, 73);
        assert_eq!(code_on(&mut node, "d", doc! { "explain": { "find": true } }).await, 73);
    });
}

#[test]
fn u17_booleans_numbers_and_times_are_as_they_are_declared() {
    run(async {
        let mut node = node().await;
        node.insert(vec![doc! { "_id": 1 }, doc! { "_id": 2 }]).await;
        for (body, code) in [
            (doc! { "insert": "c", "documents": [{}], "ordered": 1 }, 14),
            (doc! { "update": "c", "updates": [], "ordered": 1 }, 14),
            (doc! { "delete": "c", "deletes": [], "ordered": 1 }, 14),
            (doc! { "listCollections": 1, "authorizedCollections": 1 }, 14),
            (doc! { "count": "c", "limit": "x" }, 2),
            (doc! { "count": "c", "limit": 1.5 }, 9),
            (doc! { "count": "c", "limit": (i64::MIN) }, 2),
            (doc! { "count": "c", "limit": -1 }, 0),
            (doc! { "aggregate": "c", "pipeline": [], "cursor": {}, "maxTimeMS": "x" }, 14),
            (doc! { "aggregate": "c", "pipeline": [], "cursor": {}, "maxTimeMS": Value::Null }, 0),
            (doc! { "aggregate": "c", "pipeline": [], "cursor": {}, "explain": 1 }, 14),
            (doc! { "aggregate": "c", "pipeline": [], "cursor": {}, "explain": Value::Null }, 14),
            (doc! { "aggregate": "c", "pipeline": [], "explain": true, "writeConcern": { "w": 1 } }, 9),
            (doc! { "find": "c", "maxTimeMS": "x" }, 2),
            (doc! { "dropDatabase": "x" }, 14),
            (doc! { "dropDatabase": 2 }, 5255100),
            (doc! { "create": "k", "capped": true, "size": 0 }, 51024),
            (doc! { "create": "k", "clusteredIndex": { "key": { "_id": 1 }, "unique": "x" } }, 14),
            (doc! { "create": "k", "clusteredIndex": 0 }, 0),
            (doc! { "create": "l", "clusteredIndex": 1 }, 5979703),
            (doc! { "validate": "c", "full": "yes" }, 0),
            (doc! { "convertToCapped": "c", "size": "x", "other": 1 }, 72),
            (doc! { "cloneCollectionAsCapped": 1, "toCollection": "d", "size": 4096 }, 14),
            (doc! { "cloneCollectionAsCapped": "c", "toCollection": 1, "size": 4096 }, 14),
            (doc! { "planCacheClear": "nothing", "collation": {} }, 0),
            (doc! { "planCacheClear": "c", "collation": {} }, 2),
            (doc! { "planCacheClearFilters": "nothing", "query": 1 }, 0),
            (doc! { "planCacheClearFilters": "c", "query": 1 }, 2),
        ] {
            assert_eq!(code_on(&mut node, "d", body.clone()).await, code, "{body}");
        }
        assert_eq!(code_on(&mut node, "admin", doc! { "listDatabases": 1, "authorizedDatabases": 1 }).await, 14);
        assert_eq!(code_on(&mut node, "admin", doc! { "killCursors": "c", "cursors": [Value::Null] }).await, 0);
        assert_eq!(code_on(&mut node, "admin", doc! { "killOp": 1, "op": 1.5 }).await, 2);
        let current = |options: Value<'_>| {
            doc! { "aggregate": 1, "pipeline": [{ "$currentOp": options }], "cursor": {} }
        };
        assert_eq!(code_on(&mut node, "admin", current(Value::Int32(1))).await, 14);
        let flag = |name: &str| doc! { (name): Value::Null };
        assert_eq!(code_on(&mut node, "admin", current(Value::Document(flag("allUsers").view()))).await, 14);
        assert_eq!(code_on(&mut node, "admin", current(Value::Document(flag("idleCursors").view()))).await, 9);
    });
}

#[test]
fn u17_concerns_tell_where_they_come_from() {
    run(async {
        let mut node = set().await;
        node.insert(vec![doc! { "_id": 1 }]).await;
        let read = |provenance: Value<'_>| doc! { "find": "c", "readConcern": { "provenance": provenance } };
        assert_eq!(code_on(&mut node, "d", read(Value::Int32(1))).await, 14);
        assert_eq!(code_on(&mut node, "d", read(Value::String("nobody".into()))).await, 2);
        assert_eq!(code_on(&mut node, "d", read(Value::String("clientSupplied".into()))).await, 0);
        assert_eq!(code_on(&mut node, "d", read(Value::Null)).await, 0);
        let write = |name: &str, value: Value<'_>| {
            doc! { "delete": "c", "deletes": [], "writeConcern": { "w": 1, (name): value } }
        };
        for (name, value, code) in [
            ("provenance", Value::Int32(1), 14),
            ("provenance", Value::String("nobody".into()), 2),
            ("provenance", Value::Null, 0),
            ("wtimeout", Value::String("x".into()), 0),
            ("wtimeout", Value::Int64(1 << 31), 9),
            ("wtimeout", Value::Double(f64::INFINITY), 9),
        ] {
            let body = doc! { "insert": "c", "documents": [{}], "writeConcern": { "w": 1, (name): value } };
            assert_eq!(code_on(&mut node, "d", body).await, code, "{}", write(name, value));
        }
        for (w, code) in [(0.5, 0), (1.9, 0), (f64::NAN, 9), (51.0, 9), (-1.0, 9)] {
            let body = doc! { "insert": "c", "documents": [{}], "writeConcern": { "w": w } };
            assert_eq!(code_on(&mut node, "d", body).await, code, "{w}");
        }
    });
}

#[test]
fn u17_a_get_more_with_a_time_of_zero_is_refused_where_nothing_is_awaited() {
    run(async {
        let mut node = node().await;
        node.insert((0..5).map(|id| doc! { "_id": id }).collect()).await;
        let first = node.ok(doc! { "find": "c", "batchSize": 1 }).await;
        let id = first.get("cursor").unwrap().as_document().unwrap().get("id").unwrap().to_i64_or_zero();
        let more = |time: Value<'_>| doc! { "getMore": id, "collection": "c", "batchSize": 1, "maxTimeMS": time };
        assert_eq!(code_on(&mut node, "d", more(Value::Int32(0))).await, 2);
        assert_eq!(code_on(&mut node, "d", more(Value::String("x".into()))).await, 14);
        assert_eq!(code_on(&mut node, "d", more(Value::Null)).await, 0);
    });
}

#[test]
fn u17_lists_of_collections_and_indexes_have_the_types_that_replies_declare() {
    run(async {
        let mut node = node().await;
        node.ok(doc! { "create": "k", "capped": true, "size": 4096, "max": 10 }).await;
        let listed = node.find(doc! { "listCollections": 1, "filter": { "name": "k" } }).await;
        let options = listed.first().unwrap().get("options").unwrap().as_document().unwrap();
        assert_eq!((options.get("size"), options.get("max")), (Some(Value::Int32(4096)), Some(Value::Int32(10))));
        node.insert(vec![doc! { "_id": 1 }]).await;
        let indexes = array![
            { "key": { "t": 1 }, "name": "t", "expireAfterSeconds": 7.9, "sparse": 1 },
            { "key": { "p": "2d" }, "name": "p", "bits": 20.0, "min": -10, "max": 10 },
            { "key": { "w": "text" }, "name": "w", "expireAfterSeconds": 5 },
        ];
        node.ok(doc! { "createIndexes": "c", "indexes": (&indexes) }).await;
        let rows = node.find(doc! { "listIndexes": "c" }).await;
        let row = |name: &str| rows.iter().find(|row| row.get("name") == Some(Value::String(name.into()))).unwrap();
        assert_eq!(row("t").get("expireAfterSeconds"), Some(Value::Int32(7)));
        assert_eq!(row("t").get("sparse"), Some(Value::Bool(true)));
        assert_eq!(row("p").get("bits"), Some(Value::Int32(20)));
        assert_eq!((row("p").get("min"), row("p").get("max")), (Some(Value::Double(-10.0)), Some(Value::Double(10.0))));
        assert_eq!(row("w").get("expireAfterSeconds"), Some(Value::Int32(5)));
    });
}

#[test]
fn u17_connections_to_others_are_dropped_by_their_addresses() {
    run(async {
        let mut node = node().await;
        let drop = |hosts: Value<'_>| doc! { "dropConnections": 1, "hostAndPort": hosts };
        for (hosts, code) in [
            (Value::Array(array!["a:1", "b"].view()), 0),
            (Value::Array(array![].view()), 0),
            (Value::Array(array![null, "a:1"].view()), 0),
            (Value::Array(array![1].view()), 14),
            (Value::Array(array![":1"].view()), 9),
            (Value::Array(array!["a:0"].view()), 9),
            (Value::Int32(1), 14),
        ] {
            assert_eq!(code_on(&mut node, "admin", drop(hosts)).await, code, "{hosts}");
        }
        assert_eq!(code_on(&mut node, "admin", doc! { "dropConnections": 1 }).await, 40414);
        assert_eq!(code_on(&mut node, "d", drop(Value::Array(array![].view()))).await, 13);
    });
}

#[test]
fn u17_the_hash_of_a_value_is_that_of_hashed_indexes() {
    run(async {
        let mut node = node().await;
        let hashed = node.ok(doc! { "_hashBSONElement": 42, "seed": 0 }).await;
        let stages = doc! {
            "aggregate": 1,
            "pipeline": [{ "$documents": [{ "h": { "$toHashedIndexKey": 42 } }] }],
            "cursor": {},
        };
        let reckoned = node.find(stages).await;
        assert_eq!(hashed.get("out"), reckoned.first().unwrap().get("h"));
        assert_eq!((hashed.get("key"), hashed.get("seed")), (Some(Value::Int32(42)), Some(Value::Int32(0))));
        assert_eq!(code_on(&mut node, "d", doc! { "_hashBSONElement": 42, "seed": "x" }).await, 2);
    });
}
