//! `create`, `drop`, `dropDatabase`, `listCollections`.

use super::*;

#[test]
fn u9_collections_are_created_and_listed() {
    run(async {
        let mut node = node().await;
        assert!(node.collections().await.is_empty());
        let created = node.ok(doc! { "create": "plain" }).await;
        assert_eq!(created.elements().next().unwrap().name, "ok", "{created}");
        node.ok(doc! { "create": "log", "capped": true, "size": 4096, "max": 10 }).await;
        node.ok(doc! {
            "create": "checked", "validator": { "a": { "$gt": 1 } }, "validationLevel": "moderate",
            "validationAction": "warn", "changeStreamPreAndPostImages": { "enabled": true },
            "storageEngine": { "wiredTiger": {} }, "indexOptionDefaults": {},
        })
        .await;
        node.ok(doc! { "create": "clustered", "clusteredIndex": { "key": { "_id": 1 }, "unique": true } }).await;

        let rows = node.collections().await;
        assert_eq!(
            rows.iter().map(|row| text(row, "name")).collect::<Vec<_>>(),
            ["checked", "clustered", "log", "plain"]
        );
        let plain = rows.iter().find(|row| text(row, "name") == "plain").unwrap();
        let fields: Vec<String> = plain.elements().map(|element| element.name.to_string()).collect();
        assert_eq!(fields, ["name", "type", "options", "info", "idIndex"]);
        assert!(part(plain, "options").is_empty());
        let info = part(plain, "info");
        assert_eq!(info.get("readOnly"), Some(Value::Bool(false)));
        assert!(matches!(info.get("uuid"), Some(Value::Binary { subtype: 4, bytes }) if bytes.len() == 16));
        assert_eq!(part(plain, "idIndex"), doc! { "v": 2, "key": { "_id": 1 }, "name": "_id_" });
        let log = node.options_of("log").await;
        assert_eq!(log, doc! { "capped": true, "size": 4096, "max": 10 });
        let checked = node.options_of("checked").await;
        assert_eq!(
            (text(&checked, "validationLevel"), text(&checked, "validationAction")),
            ("moderate".into(), "warn".into())
        );
        let clustered = rows.iter().find(|row| text(row, "name") == "clustered").unwrap();
        assert!(clustered.get("idIndex").is_none());

        let named = node.ok(doc! { "listCollections": 1, "nameOnly": true, "authorizedCollections": true }).await;
        assert_eq!(batch(&named, "firstBatch")[0], doc! { "name": "checked", "type": "collection" });
        assert_eq!(text(&part(&named, "cursor"), "ns"), "d.$cmd.listCollections");
        assert_eq!(cursor_id(&named), 0);
    });
}

#[test]
fn u9_lists_are_filtered_and_come_in_batches() {
    run(async {
        let mut node = node().await;
        for name in ["a", "b", "c", "d", "e"] {
            node.ok(doc! { "create": name }).await;
        }
        let filter = doc! { "name": { "$in": ["b", "x"] } };
        let some = node.ok(doc! { "listCollections": 1, "filter": filter }).await;
        assert_eq!(batch(&some, "firstBatch").len(), 1);
        let none = node.ok(doc! { "listCollections": 1, "filter": { "name": "a", "type": "view" } }).await;
        assert!(batch(&none, "firstBatch").is_empty());
        let wrong = doc! { "listCollections": 1, "filter": { "name": { "$oops": 1 } } };
        assert_eq!(node.code(wrong).await, 2);

        let first = node.ok(doc! { "listCollections": 1, "cursor": { "batchSize": 2 } }).await;
        assert_eq!(batch(&first, "firstBatch").len(), 2);
        let more = doc! { "getMore": (cursor_id(&first)), "collection": "$cmd.listCollections" };
        let rest = node.ok(more).await;
        assert_eq!((batch(&rest, "nextBatch").len(), cursor_id(&rest)), (3, 0));
        let nothing = node.ok(doc! { "listCollections": 1, "cursor": { "batchSize": 0 } }).await;
        assert!(batch(&nothing, "firstBatch").is_empty() && cursor_id(&nothing) != 0);
        assert_eq!(node.code(doc! { "listCollections": 1, "cursor": { "batchSize": -1 } }).await, 51024);
        assert_eq!(node.code(doc! { "listCollections": 1, "cursors": {} }).await, 40415);
    });
}

#[test]
fn u9_creating_what_is_there_is_fine_if_it_is_the_same() {
    run(async {
        let mut node = node().await;
        let capped = doc! { "create": "c", "capped": true, "size": 8192 };
        node.ok(capped.clone()).await;
        let uuid = part(&node.collections().await[0], "info");
        node.ok(capped).await;
        assert_eq!(part(&node.collections().await[0], "info"), uuid);
        let reply = node.run(doc! { "create": "c" }).await;
        assert_eq!((number(&reply, "code"), text(&reply, "codeName")), (48.0, "NamespaceExists".into()));
        let start = "namespace d.c already exists, but with different options: { uuid: ";
        assert!(text(&reply, "errmsg").starts_with(start), "{reply}");
    });
}

#[test]
fn u9_what_cannot_be_created_is_refused_in_mongodbs_words() {
    run(async {
        let mut node = node().await;
        node.error(doc! { "create": "c", "colour": 1 }, 40415, "BSON field 'create.colour' is an unknown field.").await;
        let reason = "the 'size' field is required when 'capped' is true";
        node.error(doc! { "create": "c", "capped": true }, 72, reason).await;
        let reason = "the 'capped' field needs to be true when either the 'size' or 'max' fields are present";
        node.error(doc! { "create": "c", "size": 100 }, 72, reason).await;
        node.error(doc! { "create": "" }, 73, "Invalid namespace specified 'd'").await;
        node.error(doc! { "create": "a$b" }, 73, "Invalid collection name: a$b").await;
        for (body, code) in [
            (doc! { "create": 1 }, 73),
            (doc! { "create": "system.x" }, 73),
            (doc! { "create": "c", "validator": { "a": { "$oops": 1 } } }, 2),
            (doc! { "create": "c", "validator": 1 }, 14),
            (doc! { "create": "c", "temp": true }, 72),
            (doc! { "create": "c", "autoIndexId": false }, 50001),
            (doc! { "create": "c", "encryptedFields": {} }, 238),
            (doc! { "create": "c", "expireAfterSeconds": 5 }, 72),
            (doc! { "create": "c", "pipeline": [{}] }, 72),
            (doc! { "create": "c", "idIndex": { "key": { "a": 1 }, "name": "_id_" } }, 2),
        ] {
            assert_eq!(node.code(body.clone()).await, code, "{body}");
        }
        assert!(node.names().await.is_empty());
        let noted = node.ok(doc! { "create": "c", "autoIndexId": true }).await;
        assert!(text(&noted, "note").starts_with("The autoIndexId option is deprecated"));
        let differs = with_database(&doc! { "create": "c" }, "D");
        assert_eq!(number(&node.client.ask(differs).await, "code"), 13297.0);
    });
}

#[test]
fn u9_collections_are_dropped() {
    run(async {
        let mut node = node().await;
        node.insert_into("c", &numbered(3)).await;
        let uuid = part(&node.collections().await[0], "info").get("uuid").unwrap().to_owned();
        let other = Value::Binary { subtype: 4, bytes: &[7; 16] };
        let mismatch = node.run(doc! { "drop": "c", "collectionUUID": other }).await;
        assert_eq!((number(&mismatch, "code"), text(&mismatch, "expectedCollection")), (361.0, "c".into()));
        let dropped = node.ok(doc! { "drop": "c", "collectionUUID": (uuid.view()) }).await;
        assert_eq!((dropped.get("nIndexesWas"), text(&dropped, "ns")), (Some(Value::Int32(1)), "d.c".into()));
        let again = node.ok(doc! { "drop": "c" }).await;
        assert!(again.get("ns").is_none() && again.get("nIndexesWas").is_none());
        assert!(node.names().await.is_empty() && node.documents_of("c", doc! {}).await.is_empty());
        node.error(doc! { "drop": "system.users" }, 20, "cannot drop system collection d.system.users").await;
        assert_eq!(node.oplog_commands(), ["create c", "drop c"]);
    });
}

#[test]
fn u9_databases_are_dropped() {
    run(async {
        let mut node = node().await;
        for name in ["a", "b"] {
            node.insert_into(name, &numbered(2)).await;
        }
        node.ok(doc! { "create": "v", "viewOn": "a" }).await;
        node.ok_on("other", doc! { "create": "x" }).await;
        node.error(doc! { "dropDatabase": 2 }, 5255100, "Have to pass 1 as 'drop' parameter").await;
        node.ok(doc! { "dropDatabase": 1 }).await;
        node.ok(doc! { "dropDatabase": 1 }).await;
        assert!(node.names().await.is_empty());
        let list = node
            .client
            .admin(doc! { "listDatabases": 1, "nameOnly": true, "filter": { "name": { "$in": ["d", "other"] } } })
            .await;
        assert_eq!(list.get("databases").unwrap().to_string(), r#"[ { name: "other" } ]"#);
        let commands = node.oplog_commands();
        assert_eq!(commands[commands.len() - 4..], ["drop a", "drop b", "drop system.views", "dropDatabase 1"]);
        let local = node.client.ask(doc! { "dropDatabase": 1, "$db": "local" }).await;
        assert_eq!(text(&local, "errmsg"), "Cannot drop 'local' database while replication is active");
    });
}

#[test]
fn x9_readers_do_not_wait_for_ddl() {
    run(async {
        let mut node = node().await;
        node.insert_into("c", &numbered(5)).await;
        let data = node.fixture.server.node().data.clone().unwrap();
        let mut operation = data.services.internal_operation("ddl");
        let namespace = pando_base::Namespace::of("d", "c").unwrap();
        pando_commands::locking::lock_collection(&mut operation, &namespace, pando_locks::Mode::X).await.unwrap();
        assert_eq!(node.documents_of("c", doc! {}).await.len(), 5);
        assert_eq!(node.names().await, ["c"]);
        assert_eq!(node.index_names("c").await, ["_id_"]);
        assert_eq!(number(&node.ok(doc! { "collStats": "c" }).await, "count"), 5.0);
        // Another change does wait, and is ended by its deadline.
        assert_eq!(node.code(doc! { "drop": "c", "maxTimeMS": 20 }).await, 50);
        pando_commands::locking::unlock(&operation);
        node.ok(doc! { "drop": "c" }).await;
    });
}

#[test]
fn x3_the_log_says_when_a_dropped_table_goes() {
    run(async {
        let mut node = node_with(&[("minSnapshotHistoryWindowInSeconds", "0")]).await;
        let data = node.fixture.server.node().data.clone().unwrap();
        node.ok(doc! { "create": "c" }).await;
        let namespace = pando_base::Namespace::of("d", "c").unwrap();
        let ident = data.catalog.latest().collection(&namespace).unwrap().ident().to_owned();
        node.ok(doc! { "drop": "c" }).await;
        crate::background::reap(&data).unwrap();
        let told = || data.services.log.recent_lines().iter().filter(|line| line.contains("22237")).count();
        assert_eq!(told(), 0);
        node.fixture.simulation.clock().advance(std::time::Duration::from_secs(2));
        node.insert_into("other", &[doc! { "_id": 1 }]).await;
        data.services.engine.checkpoint(pando_storage::CheckpointKind::Automatic).unwrap();
        crate::background::reap(&data).unwrap();
        assert_eq!(told(), 2, "the collection's and that of its index");
        let lines = data.services.log.recent_lines();
        let line = lines.iter().find(|line| line.contains(&ident)).unwrap();
        assert!(
            line.contains("Completing drop for ident") && line.contains("\"dropTimestamp\":{\"$timestamp\""),
            "{line}"
        );
    });
}
