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
