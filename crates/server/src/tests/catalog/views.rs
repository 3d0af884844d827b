//! Views: `create`, `collMod`, `drop`, and what is refused on them.

use super::*;

#[test]
fn u9_views_are_created_changed_and_dropped() {
    run(async {
        let mut node = node().await;
        node.insert_into("c", &numbered(10)).await;
        node.ok(doc! { "create": "v", "viewOn": "c", "pipeline": [{ "$match": { "a": 1 } }] }).await;
        node.ok(doc! { "create": "v", "viewOn": "c", "pipeline": [{ "$match": { "a": 1 } }] }).await;
        assert_eq!(node.names().await, ["c", "system.views", "v"]);
        let row = node.collections().await.pop().unwrap();
        let expected = doc! {
            "name": "v", "type": "view",
            "options": { "viewOn": "c", "pipeline": [{ "$match": { "a": 1 } }] }, "info": { "readOnly": true },
        };
        assert_eq!(row, expected);
        let reason = "namespace d.v already exists, but is a view on d.c rather than d.x";
        node.error(doc! { "create": "v", "viewOn": "x", "pipeline": [{ "$match": { "a": 1 } }] }, 48, reason).await;
        assert_eq!(node.code(doc! { "create": "v", "viewOn": "c" }).await, 48);

        node.ok(doc! { "collMod": "v", "pipeline": [{ "$match": { "a": 2 } }] }).await;
        let options = node.options_of("v").await;
        assert_eq!(options, doc! { "viewOn": "c", "pipeline": [{ "$match": { "a": 2 } }] });
        node.error(doc! { "collMod": "v", "validator": {} }, 72, "option not supported on a view: validator").await;

        let dropped = node.ok(doc! { "drop": "v" }).await;
        assert!(text(&dropped, "ns") == "d.v" && dropped.get("nIndexesWas").is_none());
        assert_eq!(node.names().await, ["c", "system.views"]);
        assert!(node.documents_of("system.views", doc! {}).await.is_empty());
        node.valid("system.views").await;
    });
}

#[test]
fn u9_what_views_cannot_do_is_refused() {
    run(async {
        let mut node = node().await;
        node.ok(doc! { "create": "v", "viewOn": "c" }).await;
        for (body, code) in [
            (doc! { "listIndexes": "v" }, 166),
            (doc! { "createIndexes": "v", "indexes": [{ "key": { "a": 1 }, "name": "a_1" }] }, 166),
            (doc! { "dropIndexes": "v", "index": "*" }, 166),
            (doc! { "collStats": "v" }, 166),
            (doc! { "validate": "v" }, 166),
            (doc! { "convertToCapped": "v", "size": 100 }, 166),
            (doc! { "create": "w", "viewOn": "c", "capped": true, "size": 1 }, 72),
            (doc! { "create": "w", "viewOn": "c", "pipeline": [{ "$out": "x" }] }, 167),
            (doc! { "create": "w", "viewOn": "c", "pipeline": [{ "match": {} }] }, 40324),
            (doc! { "create": "w", "viewOn": "w" }, 5),
        ] {
            let reply = node.run(body.clone()).await;
            assert_eq!(number(&reply, "code") as i32, code, "{body}: {reply}");
        }
        let rename = doc! { "renameCollection": "d.v", "to": "d.w", "$db": "admin" };
        assert_eq!(number(&node.client.ask(rename).await, "code"), 166.0);
    });
}
