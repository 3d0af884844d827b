//! JavaScript of clients, over the wire.

use super::*;
use pando_doc::{DocBuilder, Value};
use pando_engine_model::{Mode, ModelDisk, ModelEngine};

#[test]
fn u5_where_filters_every_kind_of_request() {
    run(async {
        let mut node = super::node::node().await;
        node.insert(super::crud::numbered(10)).await;
        let even = doc! { "$where": "function() { return this._id % 2 == 0 }" };
        let found = node.find(doc! { "find": "c", "filter": (&even) }).await;
        assert_eq!(found.len(), 5);
        assert_eq!(node.ok(doc! { "count": "c", "query": (&even) }).await.get("n"), Some(Value::Int32(5)));
        let updated = node
            .ok(doc! { "update": "c", "updates": [{ "q": (&even), "u": { "$set": { "even": true } }, "multi": true }] })
            .await;
        assert_eq!(updated.get("nModified"), Some(Value::Int32(5)));
        let deleted =
            node.ok(doc! { "delete": "c", "deletes": [{ "q": { "$where": "obj._id > 7" }, "limit": 0 }] }).await;
        assert_eq!(deleted.get("n"), Some(Value::Int32(2)));
        assert_eq!(node.code(doc! { "find": "c", "filter": { "$where": "this.absent.b" } }).await, 139);
        assert_eq!(node.code(doc! { "find": "c", "filter": { "$where": "this is wrong" } }).await, 139);
        assert_eq!(
            node.code(doc! { "aggregate": "c", "pipeline": [{ "$match": (&even) }], "cursor": {} }).await,
            2,
            "not in a pipeline"
        );
        let computed = doc! { "find": "c", "filter": { "_id": 3 }, "projection": {
        "twice": { "$function": { "body": "function(n) { return n * 2 }", "args": ["$_id"], "lang": "js" } } } };
        assert_eq!(node.find(computed).await[0].get("twice"), Some(Value::Double(6.0)));
    });
}

#[test]
fn u5_where_sees_stored_functions() {
    run(async {
        let mut node = super::node::node().await;
        node.insert(super::crud::numbered(3)).await;
        let mut stored = DocBuilder::new();
        stored.append("_id", "isTwo");
        stored.append("value", Value::Code("function(n) { return n == 2 }".into()));
        node.ok(doc! { "insert": "system.js", "documents": [(stored.finish())] }).await;
        let found = node.find(doc! { "find": "c", "filter": { "$where": "isTwo(this._id)" } }).await;
        assert_eq!(found.len(), 1);
        let body = doc! { "body": "isTwo(2)", "args": [], "lang": "js" };
        let pipeline =
            doc! { "aggregate": "c", "pipeline": [{ "$project": { "x": { "$function": body } } }], "cursor": {} };
        assert_eq!(node.code(pipeline).await, 139, "$function sees none");
    });
}

#[test]
fn u6_map_reduce_gives_its_results_in_every_way() {
    run(async {
        let mut node = super::node::node().await;
        let tags = [("x", "a"), ("x", "b"), ("y", "a"), ("z", "c")];
        node.insert(
            tags.iter()
                .enumerate()
                .map(|(id, (tag, kind))| doc! { "_id": id as i32, "tag": *tag, "kind": *kind })
                .collect(),
        )
        .await;
        let request = |out: Doc, finalize: Value<'_>| {
            doc! { "mapReduce": "c", "map": "function() { emit(this.tag, {n: factor}) }",
            "reduce": "function(key, values) { return {n: Array.sum(values.map(v => v.n))} }",
            "query": { "kind": { "$ne": "c" } }, "scope": { "factor": 10 }, "finalize": finalize, "out": (out.get("out").unwrap()) }
        };
        let inline = node.ok(request(doc! { "out": { "inline": 1 } }, Value::Null)).await;
        let shown = inline.get("results").unwrap().to_string();
        let wanted = doc! { "r": [{ "_id": "x", "value": { "n": 20.0 } }, { "_id": "y", "value": { "n": 10.0 } }] };
        assert_eq!(shown, wanted.get("r").unwrap().to_string());
        let reply = node.ok(request(doc! { "out": "o" }, Value::Null)).await;
        assert_eq!(text(&reply, "result"), "o");
        let again = node.ok(request(doc! { "out": { "reduce": "o", "db": "d" } }, Value::Null)).await;
        assert_eq!(again.get("result").unwrap().to_string(), doc! { "db": "d", "collection": "o" }.to_string());
        let found = node.find(doc! { "find": "o", "filter": { "_id": "x" } }).await;
        assert_eq!(found[0].to_string(), doc! { "_id": "x", "value": { "n": 40.0 } }.to_string());
        let finalize = Value::String("function(key, value) { return key + value.n }".into());
        node.ok(request(doc! { "out": { "merge": "o" } }, finalize)).await;
        let found = node.find(doc! { "find": "o", "filter": { "_id": "x" } }).await;
        assert_eq!(text(&found[0], "value"), "x20");
        assert_eq!(node.code(request(doc! { "out": 5 }, Value::Null)).await, 2);
        assert_eq!(node.code(request(doc! { "out": { "inline": 1 } }, Value::String("wrong wrong".into()))).await, 139);
    });
}

#[test]
fn u12_without_scripting_there_is_no_javascript() {
    run(async {
        let engine: Arc<dyn Engine> = ModelEngine::open(&ModelDisk::new(), Mode::StandAlone).unwrap();
        let options = ServerOptions { is_scripting: false, ..options(ReplicationMode::StandAlone) };
        let fixture = start_on(Some(engine), options).await;
        let mut client = fixture.connect().await;
        let refused = client.ask(doc! { "find": "c", "filter": { "$where": "true" }, "$db": "d" }).await;
        assert_eq!(number(&refused, "code"), 6_108_304.0, "{refused}");
    });
}
