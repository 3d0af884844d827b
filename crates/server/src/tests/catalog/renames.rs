//! `renameCollection` and the copies into capped collections.

use super::*;

async fn rename(node: &mut Node, body: Doc) -> Doc {
    node.client.ask(with_database(&body, "admin")).await
}

#[test]
fn u9_collections_are_renamed() {
    run(async {
        let mut node = node().await;
        node.insert_into("a", &numbered(5)).await;
        node.insert_into("b", &numbered(2)).await;
        let ok = rename(&mut node, doc! { "renameCollection": "d.a", "to": "d.x" }).await;
        assert_eq!(number(&ok, "ok"), 1.0, "{ok}");
        assert_eq!(node.names().await, ["b", "x"]);
        for (body, code, reason) in [
            (doc! { "renameCollection": "d.x", "to": "d.b" }, 48.0, "target namespace exists"),
            (doc! { "renameCollection": "d.no", "to": "d.y" }, 26.0, "Source collection d.no does not exist"),
            (doc! { "renameCollection": "d.x", "to": "d.x" }, 20.0, "Can't rename a collection to itself"),
            (
                doc! { "renameCollection": "d.x" },
                40414.0,
                "BSON field 'renameCollection.to' is missing but a required field",
            ),
            (doc! { "renameCollection": "d", "to": "d.y" }, 73.0, "Invalid namespace specified 'd'"),
        ] {
            let reply = rename(&mut node, body).await;
            assert_eq!((number(&reply, "code"), text(&reply, "errmsg")), (code, reason.to_owned()), "{reply}");
        }
        rename(&mut node, doc! { "renameCollection": "d.x", "to": "d.b", "dropTarget": true }).await;
        assert_eq!(node.names().await, ["b"]);
        assert_eq!(node.documents_of("b", doc! {}).await.len(), 5);
        let on_other = node.run(doc! { "renameCollection": "d.b", "to": "d.c" }).await;
        assert_eq!(number(&on_other, "code"), 13.0);
    });
}

#[test]
fn u9_a_rename_to_another_database_copies_documents_and_indexes() {
    run(async {
        let mut node = node().await;
        node.insert_into("a", &numbered(300)).await;
        node.ok(doc! { "createIndexes": "a", "indexes": [{ "key": { "b": 1 }, "name": "b_1" }] }).await;
        node.ok_on("e", doc! { "create": "z" }).await;
        let taken = rename(&mut node, doc! { "renameCollection": "d.a", "to": "e.z" }).await;
        assert_eq!(number(&taken, "code"), 48.0, "{taken}");
        let reply = rename(&mut node, doc! { "renameCollection": "d.a", "to": "e.z", "dropTarget": true }).await;
        assert_eq!(number(&reply, "ok"), 1.0, "{reply}");
        assert!(node.names().await.is_empty());
        let rows = batch(&node.ok_on("e", doc! { "listCollections": 1 }).await, "firstBatch");
        assert_eq!((rows.len(), text(&rows[0], "name"), part(&rows[0], "options")), (1, "z".into(), Doc::new()));
        let validated = node.ok_on("e", doc! { "validate": "z" }).await;
        assert_eq!((number(&validated, "nrecords"), validated.get("valid")), (300.0, Some(Value::Bool(true))));
        assert_eq!(part(&validated, "keysPerIndex"), doc! { "_id_": 300_i64, "b_1": 600_i64 });
    });
}

#[test]
fn u9_collections_become_capped() {
    run(async {
        let mut node = node().await;
        node.insert_into("c", &numbered(100)).await;
        node.ok(doc! { "createIndexes": "c", "indexes": [{ "key": { "a": 1 }, "name": "a_1" }] }).await;
        node.ok(doc! { "cloneCollectionAsCapped": "c", "toCollection": "copy", "size": 1000 }).await;
        let copied = node.documents_of("copy", doc! {}).await;
        assert!(copied.len() > 5 && copied.len() < 50, "{}", copied.len());
        assert_eq!(number(copied.last().unwrap(), "_id"), 99.0);
        assert_eq!(node.code(doc! { "cloneCollectionAsCapped": "c", "toCollection": "copy", "size": 1000 }).await, 48);
        node.ok(doc! { "convertToCapped": "c", "size": 100_000 }).await;
        assert_eq!(node.options_of("c").await, doc! { "capped": true, "size": 100_000 });
        assert_eq!(
            (node.documents_of("c", doc! {}).await.len(), node.index_names("c").await),
            (100, vec!["_id_".to_owned()])
        );
        assert_eq!(node.names().await, ["c", "copy"]);
        node.valid("c").await;
        node.error(doc! { "convertToCapped": "c" }, 72, "invalid command spec").await;
        node.error(doc! { "convertToCapped": "x", "size": 10 }, 26, "source collection d.x does not exist").await;

        node.ok(doc! { "captrunc": "c", "n": 10 }).await;
        assert_eq!(number(node.documents_of("c", doc! {}).await.last().unwrap(), "_id"), 90.0);
        node.ok(doc! { "captrunc": "c", "n": 1, "inc": true }).await;
        assert_eq!(number(node.documents_of("c", doc! {}).await.last().unwrap(), "_id"), 89.0);
        node.ok(doc! { "emptycapped": "c" }).await;
        assert!(node.documents_of("c", doc! {}).await.is_empty());
        node.valid("c").await;
        node.ok(doc! { "create": "plain" }).await;
        node.ok(doc! { "emptycapped": "plain" }).await;
    });
}
