//! `collStats`, `dbStats`, `dataSize`, `listDatabases`, `validate`, `fsync`.

use super::*;

#[test]
fn u11_compact_says_what_it_freed() {
    run(async {
        let mut node = node().await;
        node.insert(vec![doc! { "_id": 1 }]).await;
        assert_eq!(node.code(doc! { "compact": "c" }).await, 20);
        let reply = node.ok(doc! { "compact": "c", "force": true }).await;
        assert!(number(&reply, "bytesFreed") >= 0.0);
        assert_eq!(node.find(doc! { "find": "c" }).await, [doc! { "_id": 1 }]);
        assert_eq!(node.code(doc! { "compact": "nothing", "force": true }).await, 26);
        node.ok(doc! { "create": "v", "viewOn": "c", "pipeline": [] }).await;
        assert_eq!(node.code(doc! { "compact": "v", "force": true }).await, 166);
    });
}

#[test]
fn u18_sizes_are_told() {
    run(async {
        let mut node = node().await;
        let documents = numbered(20);
        let bytes: usize = documents.iter().map(Doc::size_bytes).sum();
        node.insert_into("c", &documents).await;
        node.ok(doc! { "createIndexes": "c", "indexes": [{ "key": { "a": 1 }, "name": "a_1" }] }).await;
        node.ok(doc! { "create": "v", "viewOn": "c" }).await;
        let stats = node.ok(doc! { "collStats": "c" }).await;
        assert_eq!(
            (text(&stats, "ns"), number(&stats, "count"), number(&stats, "size")),
            ("d.c".into(), 20.0, bytes as f64)
        );
        assert_eq!((stats.get("nindexes"), stats.get("capped")), (Some(Value::Int32(2)), Some(Value::Bool(false))));
        let names: Vec<String> = part(&stats, "indexSizes").elements().map(|size| size.name.to_string()).collect();
        assert_eq!(names, ["_id_", "a_1"]);
        let none = node.ok(doc! { "collstats": "no" }).await;
        assert_eq!((number(&none, "count"), number(&none, "nindexes")), (0.0, 0.0));
        assert_eq!(node.code(doc! { "collStats": "c", "scale": 0 }).await, 51024);

        let stats = node.ok(doc! { "dbStats": 1, "scale": 2, "freeStorage": 1 }).await;
        assert_eq!(stats.get("collections"), Some(Value::Int64(2)), "{stats}");
        assert_eq!((stats.get("views"), stats.get("objects")), (Some(Value::Int64(1)), Some(Value::Int64(21))));
        assert_eq!(stats.get("indexes"), Some(Value::Int64(3)));
        assert!(matches!(stats.get("dataSize"), Some(Value::Double(size)) if size > bytes as f64 / 2.0), "{stats}");
        assert!(stats.get("totalFreeStorageSize").is_some() && stats.get("scaleFactor") == Some(Value::Int64(2)));
        node.error(doc! { "dbStats": 1, "scale": 0 }, 2, "Scale factor must be greater than zero").await;

        let size = node.ok(doc! { "dataSize": "d.c" }).await;
        assert_eq!(
            (size.get("size"), size.get("numObjects")),
            (Some(Value::Int64(bytes as i64)), Some(Value::Int64(20)))
        );
        let estimate = node.ok(doc! { "dataSize": "d.c", "estimate": true }).await;
        assert_eq!(number(&estimate, "numObjects"), 20.0);
        let some = node.ok(doc! { "dataSize": "d.c", "maxObjects": 5 }).await;
        assert_eq!(some.get("maxReached"), Some(Value::Bool(true)), "{some}");
        let range = doc! { "dataSize": "d.c", "keyPattern": { "_id": 1 }, "min": { "_id": 5 }, "max": { "_id": 8 } };
        assert_eq!(number(&node.ok(range).await, "numObjects"), 3.0);
        assert_eq!(node.code(doc! { "dataSize": "d.c", "min": { "_id": 1 } }).await, 2);
    });
}

#[test]
fn u18_stages_tell_of_collections_and_indexes() {
    run(async {
        let mut node = node().await;
        node.insert_into("c", &numbered(20)).await;
        node.ok(doc! { "createIndexes": "c", "indexes": [{ "key": { "a": 1 }, "name": "a_1" }] }).await;
        node.ok(doc! { "create": "v", "viewOn": "c" }).await;
        let ask = |target: &str, stage: Doc| doc! { "aggregate": target, "pipeline": [stage], "cursor": {} };
        assert_eq!(node.code(ask("v", doc! { "$collStats": { "storageStats": {} } })).await, 166);

        node.documents_of("c", doc! { "a": 3 }).await;
        let reply = node.ok(ask("c", doc! { "$indexStats": {} })).await;
        let indexes = batch(&reply, "firstBatch");
        assert_eq!(indexes.iter().map(|index| text(index, "name")).collect::<Vec<_>>(), ["_id_", "a_1"]);
        assert_eq!(part(&indexes[1], "accesses").get("ops"), Some(Value::Int64(1)));
    });
}

#[test]
fn u18_databases_are_listed() {
    run(async {
        let mut node = node().await;
        node.ok(doc! { "create": "c" }).await;
        node.ok_on("e", doc! { "create": "c" }).await;
        let list = node.client.admin(doc! { "listDatabases": 1, "filter": { "name": { "$in": ["d", "e"] } } }).await;
        let databases = list.get("databases").unwrap().as_array().unwrap();
        let names: Vec<&str> =
            databases.values().map(|row| row.as_document().unwrap().get("name").unwrap().as_str().unwrap()).collect();
        assert_eq!(names, ["d", "e"]);
        let first = databases.get(0).unwrap().as_document().unwrap();
        assert!(
            matches!(first.get("sizeOnDisk"), Some(Value::Int64(_))) && first.get("empty") == Some(Value::Bool(false))
        );
        assert!(matches!(list.get("totalSize"), Some(Value::Int64(_))));
        let elsewhere = node.run(doc! { "listDatabases": 1 }).await;
        assert_eq!(number(&elsewhere, "code"), 13.0);
        node.client.admin(doc! { "fsync": 1 }).await;
        let unlock = node.client.ask(doc! { "fsyncUnlock": 1, "$db": "admin" }).await;
        assert_eq!(text(&unlock, "errmsg"), "fsyncUnlock called when not locked");
    });
}

#[test]
fn u18_validate_tells_what_it_has_seen() {
    run(async {
        let mut node = node().await;
        node.insert_into("c", &numbered(7)).await;
        let reply = node.valid("c").await;
        assert_eq!((text(&reply, "ns"), reply.get("nrecords")), ("d.c".into(), Some(Value::Int32(7))));
        assert_eq!(part(&reply, "indexDetails"), doc! { "_id_": { "valid": true } });
        node.ok(doc! { "validate": "c", "background": true }).await;
        node.error(doc! { "validate": "x" }, 26, "Collection 'd.x' does not exist to validate.").await;
        assert_eq!(node.code(doc! { "validate": "c", "background": true, "full": true }).await, 72);
        // A key that leads to no document is found.
        let data = node.fixture.server.node().data.clone().unwrap();
        let mut operation = data.services.internal_operation("damage");
        let namespace = pando_base::Namespace::of("d", "c").unwrap();
        let collection = data.catalog.latest().collection(&namespace).cloned().unwrap();
        let record = pando_base::RecordId::Long(3);
        operation
            .in_unit_of_work(|operation| Ok(collection.records.delete(&mut operation.recovery_unit, &record)?))
            .unwrap();
        let reply = node.ok(doc! { "validate": "c" }).await;
        assert_eq!(reply.get("valid"), Some(Value::Bool(false)), "{reply}");
        let detail = part(&part(&reply, "indexDetails"), "_id_");
        assert_eq!(detail.get("valid"), Some(Value::Bool(false)), "{reply}");
        let told = "number of _id index entries (7) does not match the number of documents in the index (6)";
        assert!(detail.to_string().contains(told), "{reply}");
    });
}
