//! Who may run what, where it depends on the arguments.

use super::*;

/// A node with data in two databases, and a user who may read the collection "c" of the first and nothing else.
async fn with_reader() -> (Fixture, Client, Client) {
    let (fixture, mut root) = with_root().await;
    for database in ["d", "e"] {
        for name in ["c", "secret"] {
            root.ok(database, doc! { "insert": name, "documents": [{ "_id": 1 }, { "_id": 2 }, { "_id": 3 }] }).await;
        }
    }
    let privilege = doc! { "resource": { "db": "d", "collection": "c" }, "actions": ["find"] };
    root.ok("d", doc! { "createRole": "one", "privileges": [privilege], "roles": [] }).await;
    root.make_user("reader", roles(&[("one", "d")])).await;
    let reader = fixture.connect_as("reader").await;
    (fixture, root, reader)
}

fn aggregate(stages: &[Doc]) -> Doc {
    let mut body = DocBuilder::new();
    body.append("aggregate", "c");
    body.array("pipeline", |array| stages.iter().for_each(|stage| array.push(stage)));
    body.document("cursor", |_| {});
    body.finish()
}

#[test]
fn u10_every_collection_of_a_pipeline_is_looked_at() {
    run(async {
        let (_fixture, mut root, mut reader) = with_reader().await;
        reader.ok("d", aggregate(&[doc! { "$match": {} }])).await;
        reader
            .ok(
                "d",
                aggregate(&[
                    doc! { "$lookup": { "from": "c", "localField": "_id", "foreignField": "_id", "as": "x" } },
                ]),
            )
            .await;
        let inner = doc! { "$lookup": { "from": "secret", "localField": "_id", "foreignField": "_id", "as": "x" } };
        for stage in [
            inner.clone(),
            doc! { "$lookup": { "from": "secret", "pipeline": [], "as": "x" } },
            doc! { "$lookup": { "from": "c", "pipeline": [(inner.clone())], "as": "x" } },
            doc! { "$graphLookup": { "from": "secret", "startWith": "$_id", "connectFromField": "a", "connectToField": "b", "as": "x" } },
            doc! { "$unionWith": "secret" },
            doc! { "$unionWith": { "coll": "c", "pipeline": [(inner.clone())] } },
            doc! { "$facet": { "f": [(inner)] } },
            doc! { "$out": "c" },
            doc! { "$out": { "db": "e", "coll": "x" } },
            doc! { "$merge": "c" },
            doc! { "$merge": { "into": { "db": "e", "coll": "x" } } },
            doc! { "$collStats": { "count": {} } },
            doc! { "$indexStats": {} },
            doc! { "$_internalInhibitOptimization": {} },
        ] {
            let reply = reader.on("d", aggregate(std::slice::from_ref(&stage))).await;
            assert_eq!(number(&reply, "code"), 13.0, "{stage}: {reply}");
        }
        assert_eq!(reader.code("e", aggregate(&[])).await, 13);
        let current = |options: Doc| doc! { "aggregate": 1, "pipeline": [{ "$currentOp": (options) }], "cursor": {} };
        assert_eq!(batch(&reader.ok("admin", current(doc! {})).await).len(), 1);
        assert_eq!(reader.code("admin", current(doc! { "allUsers": true })).await, 13);
        root.ok("admin", current(doc! { "allUsers": true })).await;
        let sessions =
            |options: Doc| doc! { "aggregate": 1, "pipeline": [{ "$listLocalSessions": (options) }], "cursor": {} };
        reader.ok("admin", sessions(doc! {})).await;
        reader.ok("admin", sessions(doc! { "users": [{ "user": "reader", "db": "admin" }] })).await;
        assert_eq!(reader.code("admin", sessions(doc! { "allUsers": true })).await, 13);
        assert_eq!(reader.code("admin", sessions(doc! { "users": [{ "user": "root", "db": "admin" }] })).await, 13);
    });
}

#[test]
fn u10_a_view_shows_what_its_maker_could_see_and_needs_rights_on_itself_only() {
    run(async {
        let (fixture, mut root, mut reader) = with_reader().await;
        root.ok("d", doc! { "create": "v", "viewOn": "secret", "pipeline": [] }).await;
        assert_eq!(reader.code("d", doc! { "find": "v" }).await, 13);
        let privilege = doc! { "resource": { "db": "d", "collection": "v" }, "actions": ["find"] };
        root.ok("d", doc! { "grantPrivilegesToRole": "one", "privileges": [privilege] }).await;
        assert_eq!(batch(&reader.ok("d", doc! { "find": "v" }).await).len(), 3);
        assert_eq!(reader.code("d", doc! { "find": "secret" }).await, 13);
        // One who may make views cannot look through them at what they may not read.
        let make =
            doc! { "resource": { "db": "d", "collection": "w" }, "actions": ["createCollection", "collMod", "find"] };
        root.ok("d", doc! { "createRole": "maker", "privileges": [make], "roles": ["one"] }).await;
        root.make_user("maker", roles(&[("maker", "d")])).await;
        let mut maker = fixture.connect_as("maker").await;
        assert_eq!(maker.code("d", doc! { "create": "w", "viewOn": "secret" }).await, 13);
        let through = doc! { "$unionWith": "secret" };
        assert_eq!(maker.code("d", doc! { "create": "w", "viewOn": "c", "pipeline": [(through.clone())] }).await, 13);
        maker.ok("d", doc! { "create": "w", "viewOn": "c", "pipeline": [] }).await;
        assert_eq!(maker.code("d", doc! { "collMod": "w", "viewOn": "secret", "pipeline": [] }).await, 13);
        assert_eq!(maker.code("d", doc! { "collMod": "w", "viewOn": "c", "pipeline": [through] }).await, 13);
        assert_eq!(maker.code("d", doc! { "collMod": "w", "viewOn": "secret" }).await, 72);
    });
}

#[test]
fn u10_names_of_others_are_not_shown() {
    run(async {
        let (_fixture, mut root, mut reader) = with_reader().await;
        let names = |reply: &Doc| {
            let databases = reply.get("databases").unwrap().as_array().unwrap();
            databases
                .values()
                .map(|one| one.as_document().unwrap().get("name").unwrap().as_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(names(&reader.ok("admin", doc! { "listDatabases": 1 }).await), ["d"]);
        assert_eq!(
            names(
                &reader.ok("admin", doc! { "listDatabases": 1, "nameOnly": true, "authorizedDatabases": true }).await
            ),
            ["d"]
        );
        assert_eq!(reader.code("admin", doc! { "listDatabases": 1, "authorizedDatabases": false }).await, 13);
        assert!(names(&root.ok("admin", doc! { "listDatabases": 1 }).await).contains(&"e".to_owned()));
        assert_eq!(reader.code("d", doc! { "listCollections": 1 }).await, 13);
        assert_eq!(reader.code("d", doc! { "listCollections": 1, "nameOnly": true }).await, 13);
        let own = doc! { "listCollections": 1, "nameOnly": true, "authorizedCollections": true };
        let shown = batch(&reader.ok("d", own.clone()).await);
        assert_eq!(shown.iter().map(|row| text(row, "name")).collect::<Vec<_>>(), ["c"]);
        assert_eq!(reader.code("e", own.clone()).await, 13);
        assert_eq!(batch(&root.ok("d", own).await).len(), 2);
        assert_eq!(reader.code("d", doc! { "listIndexes": "c" }).await, 13);
        assert_eq!(reader.code("d", doc! { "count": "secret" }).await, 13);
        assert_eq!(reader.code("d", doc! { "explain": { "find": "secret" } }).await, 13);
        reader.ok("d", doc! { "explain": { "find": "c" } }).await;
        // By its id a collection is found only by those who may ask so.
        let all = batch(&root.ok("d", doc! { "listCollections": 1, "filter": { "name": "secret" } }).await);
        let info = all[0].get("info").unwrap().as_document().unwrap().to_doc();
        let uuid = info.get("uuid").unwrap();
        assert_eq!(reader.code("d", doc! { "find": (uuid) }).await, 13);
        assert_eq!(batch(&root.ok("d", doc! { "find": (uuid) }).await).len(), 3);
    });
}

#[test]
fn u10_writes_need_what_they_do() {
    run(async {
        let (fixture, mut root, mut reader) = with_reader().await;
        let privilege = doc! { "resource": { "db": "d", "collection": "c" }, "actions": ["update"] };
        root.ok("d", doc! { "createRole": "changer", "privileges": [privilege], "roles": [] }).await;
        root.make_user("changer", roles(&[("changer", "d")])).await;
        let mut changer = fixture.connect_as("changer").await;
        let update = |upsert: bool| {
            doc! { "update": "c", "updates": [{ "q": { "_id": 1 }, "u": { "$set": { "x": 1 } }, "upsert": upsert }] }
        };
        changer.ok("d", update(false)).await;
        assert_eq!(changer.code("d", update(true)).await, 13);
        let bypass = doc! { "update": "c", "bypassDocumentValidation": true, "updates": [{ "q": {}, "u": { "$set": { "x": 1 } } }] };
        assert_eq!(changer.code("d", bypass).await, 13);
        // Also when the statements come beside the document.
        let message = RequestBuilder::new(MsgFlags::NONE, Vec::new())
            .body(doc! { "update": "c", "$db": "d" }.view())
            .sequence("updates", [doc! { "q": { "_id": 1 }, "u": { "$set": { "x": 1 } }, "upsert": true }.view()])
            .finish(99, None)
            .unwrap();
        changer.send_bytes(&message).await;
        let reply = changer.read().await.unwrap().body().to_doc();
        assert_eq!(number(&reply, "code"), 13.0, "{reply}");
        assert_eq!(changer.code("d", doc! { "find": "c" }).await, 13);
        assert_eq!(changer.code("d", doc! { "findAndModify": "c", "update": { "$set": { "x": 1 } } }).await, 13);
        assert_eq!(changer.code("d", doc! { "delete": "c", "deletes": [{ "q": {}, "limit": 0 }] }).await, 13);
        assert_eq!(reader.code("d", doc! { "findAndModify": "c", "remove": true }).await, 13);
        root.make_user("writer", roles(&[("readWrite", "d")])).await;
        let mut writer = fixture.connect_as("writer").await;
        writer.ok("admin", doc! { "renameCollection": "d.c", "to": "d.c2" }).await;
        assert_eq!(writer.code("admin", doc! { "renameCollection": "d.c2", "to": "e.c2" }).await, 13);
        assert_eq!(writer.code("d", doc! { "find": "system.profile" }).await, 13);
        writer.ok("d", doc! { "find": "system.js" }).await;
        assert_eq!(writer.code("admin", doc! { "find": "system.users" }).await, 13);
    });
}

#[test]
fn u10_cursors_and_operations_belong_to_their_users() {
    run(async {
        let (fixture, mut root, mut reader) = with_reader().await;
        let opened = reader.ok("d", doc! { "find": "c", "batchSize": 1 }).await;
        let id = opened
            .get("cursor")
            .unwrap()
            .as_document()
            .unwrap()
            .get("id")
            .unwrap()
            .as_number()
            .unwrap()
            .truncated_i64();
        root.make_user("other", roles(&[("readAnyDatabase", "admin")])).await;
        let mut other = fixture.connect_as("other").await;
        let more = doc! { "getMore": id, "collection": "c", "batchSize": 1 };
        assert_eq!(other.code("d", more.clone()).await, 13);
        assert_eq!(other.code("d", doc! { "killCursors": "c", "cursors": [id] }).await, 13);
        reader.ok("d", more.clone()).await;
        // The right to kill any cursor is enough.
        root.ok("d", doc! { "killCursors": "c", "cursors": [id] }).await;
        assert_eq!(reader.code("d", more).await, 43);
        assert_eq!(reader.code("admin", doc! { "killOp": 1, "op": 1 }).await, 13);
        assert_eq!(reader.code("admin", doc! { "currentOp": 1 }).await, 13);
        let own = reader.ok("admin", doc! { "currentOp": 1, "$ownOps": true }).await;
        assert_eq!(own.get("inprog").unwrap().as_array().unwrap().len(), 1);
        // The sessions of others are theirs.
        let uid = [7; 32];
        let foreign = doc! { "id": (Value::Binary { subtype: 4, bytes: &[1; 16] }), "uid": (binary(&uid)) };
        assert_eq!(reader.code("d", doc! { "find": "c", "lsid": foreign }).await, 13);
    });
}

#[test]
fn u10_nobody_speaks_for_others_without_the_privilege() {
    run(async {
        let (_fixture, mut root, mut reader) = with_reader().await;
        let others = doc! { "$impersonatedUsers": [{ "user": "root", "db": "admin" }], "$impersonatedRoles": [] };
        let find = |audit: Doc| doc! { "find": "c", "$audit": audit };
        for client in [&mut reader, &mut root] {
            assert_eq!(number(&client.on("d", find(others.clone())).await, "code"), 13.0);
            client.ok("d", find(doc! {})).await;
        }
    });
}

#[test]
fn u10_a_role_goes_together_with_what_refers_to_it() {
    run(async {
        let (_fixture, mut root, _reader) = with_reader().await;
        root.ok("d", doc! { "createRole": "two", "privileges": [], "roles": ["one"] }).await;
        let before = root.ok("local", doc! { "find": "oplog.rs", "sort": { "$natural": (-1) }, "limit": 1 }).await;
        root.ok("d", doc! { "dropRole": "one" }).await;
        let users = root.ok("admin", doc! { "usersInfo": "reader" }).await;
        assert!(users.to_string().contains("roles: []"), "{users}");
        let roles = root.ok("d", doc! { "rolesInfo": "two" }).await;
        assert!(!roles.to_string().contains("\"one\""), "{roles}");
        let after = root.ok("local", doc! { "find": "oplog.rs", "sort": { "$natural": (-1) }, "limit": 3 }).await;
        assert_ne!(before, after);
    });
}
