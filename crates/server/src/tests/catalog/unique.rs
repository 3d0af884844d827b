//! Making an index unique that was not.

use super::*;

fn modify(index: Doc) -> Doc {
    doc! { "collMod": "c", "index": index }
}

#[test]
fn x10_an_index_becomes_unique_in_two_steps() {
    run(async {
        let mut node = node().await;
        node.ok(doc! { "createIndexes": "c", "indexes": [{ "key": { "a": 1 }, "name": "a" }] }).await;
        node.insert(vec![
            doc! { "_id": 1, "a": 1 },
            doc! { "_id": 2, "a": 1 },
            doc! { "_id": 3, "a": 2 },
            doc! { "_id": 4, "a": 3 },
            doc! { "_id": 5, "a": 3 },
            doc! { "_id": 6, "a": 3 },
        ])
        .await;
        assert_eq!(node.code(modify(doc! { "name": "a", "unique": true })).await, 72);
        let reply = node.ok(modify(doc! { "name": "a", "prepareUnique": true })).await;
        assert!(reply.get("prepareUnique_new").unwrap().is_true());
        let reply = node.ok(doc! { "insert": "c", "documents": [{ "_id": 7, "a": 2 }] }).await;
        assert!(reply.view().contains("writeErrors"), "{reply}");

        let dry = doc! { "collMod": "c", "index": { "name": "a", "unique": true }, "dryRun": true };
        let violations = doc! { "v": [{ "ids": [1, 2] }, { "ids": [4, 5, 6] }] };
        for command in [modify(doc! { "name": "a", "unique": true }), dry.clone()] {
            let reply = node.run(command).await;
            assert_eq!(number(&reply, "code"), 359.0);
            assert_eq!(reply.get("violations"), violations.get("v"));
        }
        node.ok(doc! { "delete": "c", "deletes": [{ "q": { "_id": { "$in": [1, 4, 5] } }, "limit": 0 }] }).await;
        node.ok(dry).await;
        let unique = |indexes: Vec<Doc>| indexes[1].get("unique").is_some_and(|unique| unique.is_true());
        assert!(!unique(node.find(doc! { "listIndexes": "c" }).await));
        let reply = node.ok(modify(doc! { "name": "a", "unique": true })).await;
        assert!(reply.get("unique_new").unwrap().is_true());
        let indexes = node.find(doc! { "listIndexes": "c" }).await;
        assert!(!indexes[1].view().contains("prepareUnique") && unique(indexes));
        let reply = node.ok(doc! { "insert": "c", "documents": [{ "_id": 7, "a": 2 }] }).await;
        assert!(reply.view().contains("writeErrors"), "{reply}");

        let reply = node.ok(modify(doc! { "name": "a", "forceNonUnique": true })).await;
        assert!(reply.get("forceNonUnique_new").unwrap().is_true());
        assert!(!unique(node.find(doc! { "listIndexes": "c" }).await));
        node.insert(vec![doc! { "_id": 7, "a": 2 }]).await;
    });
}

#[test]
fn x10_what_cannot_be_asked_for_is_refused() {
    run(async {
        let mut node = node().await;
        node.ok(doc! { "createIndexes": "c", "indexes": [{ "key": { "a": 1 }, "name": "a", "prepareUnique": true }] })
            .await;
        for (index, code) in [
            (doc! { "name": "a", "unique": false }, 2),
            (doc! { "name": "a", "unique": "x" }, 14),
            (doc! { "name": "a", "forceNonUnique": false }, 2),
            (doc! { "name": "a", "unique": true, "forceNonUnique": true }, 72),
            (doc! { "name": "a" }, 72),
            (doc! { "name": "b", "unique": true }, 27),
        ] {
            assert_eq!(node.code(modify(index.clone())).await, code, "{index}");
        }
        for command in [
            doc! { "collMod": "c", "validationLevel": "off", "dryRun": true },
            doc! { "collMod": "c", "index": { "name": "a", "hidden": true }, "dryRun": true },
            doc! { "collMod": "c", "index": { "name": "a", "hidden": true, "unique": true }, "dryRun": true },
            doc! { "collMod": "c", "timeseriesBucketsMayHaveMixedSchemaData": true },
        ] {
            assert_eq!(node.code(command.clone()).await, 72, "{command}");
        }
    });
}
