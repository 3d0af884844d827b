//! Stages whose documents come from the node, over the wire.

use super::*;
use pando_doc::Value;

#[test]
fn x12_list_catalog_shows_the_durable_entries() {
    run(async {
        let mut node = super::node::node().await;
        node.ok(doc! { "create": "c", "capped": true, "size": 4096 }).await;
        node.ok(doc! { "createIndexes": "c", "indexes": [{ "key": { "a": 1 }, "name": "a_1" }] }).await;
        node.ok(doc! { "create": "v", "viewOn": "c", "pipeline": [{ "$match": { "a": 1 } }] }).await;
        let list = |name: Value<'_>| doc! { "aggregate": name, "pipeline": [{ "$listCatalog": {} }], "cursor": {} };
        let found = super::node::batch(&node.ok(list(Value::String("c".into()))).await, "firstBatch");
        let [row] = &found[..] else { panic!("{found:?}") };
        assert_eq!(
            (text(row, "db"), text(row, "name"), text(row, "type")),
            ("d".into(), "c".into(), "collection".into())
        );
        assert_eq!(text(row, "ns"), "d.c");
        assert!(text(row, "ident").starts_with("collection-"), "{row}");
        let idents = row.get("idxIdent").and_then(|idents| idents.as_document()).unwrap();
        assert_eq!(idents.elements().map(|ident| ident.name.to_string()).collect::<Vec<_>>(), ["_id_", "a_1"]);
        let options = row.get("md").and_then(|md| md.as_document()?.get("options")?.as_document()).unwrap();
        assert_eq!(options.get("capped"), Some(Value::Bool(true)));
        assert_eq!(node.code(list(Value::String("v".into()))).await, 40602, "a view is its pipeline");
        assert_eq!(node.code(list(Value::Int32(1))).await, 73, "all collections are the admin's to see");
        let all = node.client.admin(list(Value::Int32(1))).await;
        let names: Vec<_> = super::node::batch(&all, "firstBatch").iter().map(|row| text(row, "ns")).collect();
        assert!(
            ["d.c", "d.v", "d.system.views"].iter().all(|name| names.iter().any(|found| found == name)),
            "{names:?}"
        );
    });
}

#[test]
fn u11_coll_stats_and_current_op_are_stages_too() {
    run(async {
        let mut node = super::node::node().await;
        node.insert(super::crud::numbered(7)).await;
        let stage = doc! { "$collStats": { "storageStats": { "scale": 2 }, "count": {} } };
        let reply = node.ok(doc! { "aggregate": "c", "pipeline": [(&stage)], "cursor": {} }).await;
        let found = super::node::batch(&reply, "firstBatch");
        assert_eq!((found.len(), found[0].get("count")), (1, Some(Value::Int32(7))));
        let storage = found[0].get("storageStats").and_then(|stats| stats.as_document()).unwrap();
        assert_eq!(storage.get("scaleFactor"), Some(Value::Int32(2)));
        assert_eq!(node.code(doc! { "aggregate": "none", "pipeline": [(&stage)], "cursor": {} }).await, 26);
        let stages = doc! { "aggregate": 1, "cursor": {}, "pipeline": [
            { "$currentOp": { "idleCursors": true } }, { "$match": { "command.aggregate": 1 } },
        ] };
        let reply = node.client.admin(stages).await;
        assert_eq!(super::node::batch(&reply, "firstBatch").len(), 1, "the aggregation itself: {reply}");
        let filtered =
            node.client.admin(doc! { "currentOp": 1, "microsecs_running": { "$gte": 0 }, "op": "command" }).await;
        assert_eq!(filtered.get("inprog").and_then(|list| list.as_array()).unwrap().len(), 1);
        let none = node.client.admin(doc! { "currentOp": 1, "$or": [{ "op": "insert" }, { "op": "none" }] }).await;
        assert_eq!(none.get("inprog").and_then(|list| list.as_array()).unwrap().len(), 0);
    });
}

#[test]
fn u11_a_get_more_shows_its_cursor() {
    run(async {
        let mut node = super::node::node().await;
        node.insert_into("shown", &super::crud::numbered(3)).await;
        let cursor =
            super::node::part(&node.ok(doc! { "find": "shown", "batchSize": 2, "comment": "mine" }).await, "cursor");
        let id = cursor.get("id").unwrap();
        let rest = |mode: &str| {
            let data = doc! { "ns": "d.shown", "commands": ["getMore"] };
            doc! { "configureFailPoint": "waitAfterCommandFinishesExecution", "mode": mode, "data": data }
        };
        node.client.admin(rest("alwaysOn")).await;
        let mut more = node.begin(&doc! { "getMore": id, "collection": "shown" }).await;
        assert!(super::concurrency::is_waiting(&mut more).await);
        let mine = doc! { "currentOp": 1, "op": "getmore", "cursor.originatingCommand.comment": "mine" };
        let shown = node.client.admin(mine).await;
        let shown = shown.get("inprog").and_then(|array| array.as_array()).and_then(|array| array.get(0)).unwrap();
        let shown = shown.as_document().unwrap().to_doc();
        node.client.admin(rest("off")).await;
        let facts = super::node::part(&shown, "cursor");
        assert_eq!((facts.get("cursorId"), facts.get("tailable")), (Some(id), Some(Value::Bool(false))));
        assert_eq!((number(&facts, "nDocsReturned"), number(&facts, "nBatchesReturned")), (2.0, 1.0));
        assert_eq!(number(&facts, "operationUsingCursorId"), number(&shown, "opid"));
        assert_eq!(super::node::batch(&more.await, "nextBatch").len(), 1);
    });
}

#[test]
fn u11_current_op_shows_connections_that_do_nothing_and_parts_of_large_commands() {
    run(async {
        let mut node = super::node::node().await;
        let ask = |options: Doc| doc! { "aggregate": 1, "cursor": {}, "pipeline": [{ "$currentOp": options }] };
        let idle = |reply: &Doc| {
            let found = super::node::batch(reply, "firstBatch");
            found.iter().filter(|op| op.get("active") == Some(Value::Bool(false))).count()
        };
        let other = node.fixture.connect().await;
        let reply = node.client.admin(ask(doc! { "idleConnections": true })).await;
        assert!(idle(&reply) >= 1, "{reply}");
        let reply = node.client.admin(ask(doc! {})).await;
        assert_eq!(idle(&reply), 0);
        drop(other);
        let mut large = ask(doc! { "truncateOps": true });
        let mut builder = pando_doc::DocBuilder::new();
        builder.append_all(large.view());
        builder.document("let", |all| all.array("numbers", |numbers| (0..400).for_each(|number| numbers.push(number))));
        builder.append("comment", "kept");
        large = builder.finish();
        let reply = node.client.admin(large).await;
        let found = super::node::batch(&reply, "firstBatch");
        let command = found[0].get("command").and_then(|command| command.as_document()).unwrap();
        let part = command.get("$truncated").and_then(|part| part.as_str()).unwrap();
        assert_eq!(
            (part.len(), part.ends_with("..."), text(&command.to_doc(), "comment")),
            (1000, true, "kept".into())
        );
        assert_eq!(node.code_on("admin", ask(doc! { "targetAllNodes": true })).await, 9);
    });
}
