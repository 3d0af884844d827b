//! The Stable API: what clients get that declare a version, and what those do not get that keep to it.

use super::node::{Node, batch, cursor_id, node, with_database};
use super::*;
use pando_doc::{DocBuilder, Value};

const STRICT: i32 = 323;

/// The request of a client that keeps to the first version.
fn strict(body: Doc) -> Doc {
    with(&body, &doc! { "apiVersion": "1", "apiStrict": true })
}

fn with(body: &Doc, more: &Doc) -> Doc {
    let mut all = DocBuilder::new();
    all.append_all(body.view());
    all.append_all(more.view());
    all.finish()
}

fn on_stage(stage: Doc) -> Doc {
    doc! { "aggregate": "c", "pipeline": [stage], "cursor": {} }
}

#[test]
fn u16_strict_clients_get_only_commands_of_the_api() {
    run(async {
        let mut node = node().await;
        node.insert(vec![doc! { "_id": 1 }]).await;
        let inside = [
            doc! { "ping": 1 },
            doc! { "hello": 1 },
            doc! { "find": "c" },
            doc! { "count": "c" },
            doc! { "listCollections": 1 },
            doc! { "explain": { "find": "c" } },
            doc! { "findAndModify": "c", "query": {}, "update": { "$set": { "a": 1 } } },
            doc! { "create": "made" },
            doc! { "createIndexes": "c", "indexes": [{ "key": { "a": 1 }, "name": "a_1" }] },
        ];
        for body in inside {
            node.ok(strict(body)).await;
        }
        let outside = [
            doc! { "isMaster": 1 },
            doc! { "buildInfo": 1 },
            doc! { "connectionStatus": 1 },
            doc! { "distinct": "c", "key": "a" },
            doc! { "collStats": "c" },
            doc! { "findandmodify": "c", "query": {}, "update": { "$set": { "a": 1 } } },
            doc! { "insert": "system.js", "documents": [{ "_id": "x" }] },
        ];
        for body in outside {
            assert_eq!(node.code(strict(body.clone())).await, STRICT, "{body}");
        }
        let reply = node.run(strict(doc! { "buildInfo": 1 })).await;
        assert!(text(&reply, "errmsg").contains("buildInfo") && text(&reply, "errmsg").contains("dochub.mongodb.org"));
    });
}

#[test]
fn u16_strict_clients_get_only_fields_of_the_api() {
    run(async {
        let mut node = node().await;
        node.insert(vec![doc! { "_id": 1, "a": 1 }]).await;
        for field in
            ["min", "returnKey", "showRecordId", "tailable", "noCursorTimeout", "readOnce", "$_requestResumeToken"]
        {
            let mut body = DocBuilder::new();
            body.append("find", "c");
            body.append(field, false);
            assert_eq!(node.code(strict(body.finish())).await, STRICT, "{field}");
        }
        let shown = with_database(&strict(doc! { "find": "c", "showRecordId": false }), "d");
        let reason = "BSON field 'find.showRecordId' is not allowed with apiStrict:true.";
        node.client.expect_error(shown, STRICT, reason).await;
        for body in [
            doc! { "aggregate": "c", "pipeline": [], "cursor": {}, "explain": true },
            doc! { "explain": { "find": "c", "returnKey": false } },
            doc! { "createIndexes": "c", "indexes": [{ "key": { "a": "text" }, "name": "a_text" }] },
            doc! { "createIndexes": "c", "indexes": [{ "key": { "a": 1 }, "name": "a_1", "sparse": true }] },
            doc! { "collMod": "c", "index": { "name": "a_1", "prepareUnique": true } },
            doc! { "create": "capped", "capped": true, "size": 1000 },
            doc! { "create": "view", "viewOn": "c", "pipeline": [{ "$indexStats": {} }] },
            doc! { "insert": "c", "documents": [{ "_id": 2 }], "isTimeseriesNamespace": false },
        ] {
            assert_eq!(node.code(strict(body.clone())).await, STRICT, "{body}");
        }
        assert_eq!(node.code(strict(doc! { "create": "capped", "capped": true })).await, 72);
        // What looks like a stage is data here.
        node.ok(strict(doc! { "insert": "c", "documents": [{ "_id": 3, "filter": { "$indexStats": 1 } }] })).await;
    });
}

#[test]
fn u16_strict_clients_get_only_stages_and_operators_of_the_api() {
    run(async {
        let mut node = node().await;
        node.insert(vec![doc! { "_id": 1, "a": 1 }]).await;
        let inner = |stage: Doc| doc! { "$lookup": { "from": "c", "as": "x", "pipeline": [stage] } };
        for stage in [
            doc! { "$listCatalog": {} },
            doc! { "$indexStats": {} },
            doc! { "$collStats": { "storageStats": {} } },
            inner(doc! { "$indexStats": {} }),
            doc! { "$facet": { "a": [], "b": [{ "$indexStats": {} }] } },
            doc! { "$unionWith": { "coll": "c", "pipeline": [{ "$collStats": { "latencyStats": {} } }] } },
            doc! { "$group": { "_id": 1, "x": { "$median": { "input": "$a", "method": "approximate" } } } },
        ] {
            assert_eq!(node.code(strict(on_stage(stage.clone()))).await, STRICT, "{stage}");
        }
        assert_eq!(node.find(strict(on_stage(doc! { "$collStats": { "count": {} } }))).await.len(), 1);
        let operations = doc! { "aggregate": 1, "pipeline": [{ "$currentOp": {} }], "cursor": {} };
        let found = batch(&node.client.admin(operations).await, "firstBatch");
        assert!(found.iter().any(|operation| text(operation, "ns") == "admin.$cmd.aggregate"), "{found:?}");
    });
}

#[test]
fn u16_a_cursor_goes_on_under_the_api_that_it_was_made_with() {
    run(async {
        let mut node: Node = node().await;
        node.insert(vec![doc! { "_id": 1 }, doc! { "_id": 2 }]).await;
        let combinations = [
            doc! {},
            doc! { "apiVersion": "1" },
            doc! { "apiVersion": "1", "apiStrict": true },
            doc! { "apiVersion": "1", "apiStrict": false },
            doc! { "apiVersion": "1", "apiDeprecationErrors": true },
        ];
        for made_with in &combinations {
            for goes_on_with in &combinations {
                let made = node.ok(with(&doc! { "find": "c", "batchSize": 1 }, made_with)).await;
                let more = doc! { "getMore": (Value::Int64(cursor_id(&made))), "collection": "c" };
                let reply = node.run(with(&more, goes_on_with)).await;
                match made_with == goes_on_with {
                    true => assert_eq!(number(&reply, "ok"), 1.0, "{reply}"),
                    false => assert_eq!(number(&reply, "code"), 347.0, "{made_with} {goes_on_with}: {reply}"),
                }
            }
        }
    });
}

#[test]
fn u16_versions_can_be_required_and_are_checked() {
    run(async {
        let mut node = node().await;
        for (parameters, code) in [
            (doc! { "apiStrict": true }, 4886600),
            (doc! { "apiDeprecationErrors": false }, 4886600),
            (doc! { "apiVersion": 1 }, 14),
            (doc! { "apiVersion": "2" }, 322),
            (doc! { "apiVersion": "1", "apiStrict": "true" }, 14),
            (doc! { "apiVersion": "1", "apiDeprecationErrors": "false" }, 14),
        ] {
            assert_eq!(node.code(with(&doc! { "ping": 1 }, &parameters)).await, code, "{parameters}");
        }
        let deprecated = doc! { "testDeprecation": 1, "apiVersion": "1", "apiDeprecationErrors": true };
        assert_eq!(node.code(deprecated).await, 324);
        node.ok_on("admin", doc! { "setParameter": 1, "requireApiVersion": true }).await;
        assert_eq!(node.code(doc! { "ping": 1 }).await, 498870);
        node.ok(doc! { "ping": 1, "apiVersion": "1" }).await;
        let off = doc! { "setParameter": 1, "requireApiVersion": false, "apiVersion": "1" };
        node.ok_on("admin", off).await;
        node.ok(doc! { "ping": 1 }).await;
    });
}
