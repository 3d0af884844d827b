//! Ways that have led somewhere once, each in both orders.

use super::*;

/// A user with these privileges and no others.
async fn user(root: &mut Client, fixture: &Fixture, name: &str, privileges: Vec<Doc>) -> Client {
    let mut array = pando_doc::ArrayBuilder::new();
    privileges.iter().for_each(|privilege| array.push(privilege));
    root.ok("admin", doc! { "createRole": name, "privileges": (array.finish()), "roles": [] }).await;
    root.make_user(name, roles(&[(name, "admin")])).await;
    fixture.connect_as(name).await
}

fn finds(database: &str, collection: &str) -> Doc {
    doc! { "resource": { "db": database, "collection": collection }, "actions": ["find"] }
}

async fn with_two_collections() -> (Fixture, Client, Client) {
    let (fixture, mut root) = with_root().await;
    root.ok("a", doc! { "insert": "c1", "documents": [{ "_id": 1 }] }).await;
    root.ok("a", doc! { "insert": "c2", "documents": [{ "_id": CLASSIFIED }] }).await;
    let reader = user(&mut root, &fixture, "reader", vec![finds("a", "c1")]).await;
    (fixture, root, reader)
}

#[test]
fn u10_stages_that_name_two_collections_are_refused() {
    run(async {
        let (_fixture, _root, mut reader) = with_two_collections().await;
        let graph = |first: &str, second: &str| {
            doc! { "$graphLookup": {
                "from": first, "from": second, "startWith": 1, "connectFromField": "x", "connectToField": "y", "as": "o",
            } }
        };
        let union_of_all = doc! { "$unionWith": "c2" };
        for (first, second) in [("c1", "c2"), ("c2", "c1")] {
            let stages = [
                (doc! { "$lookup": { "from": first, "from": second, "pipeline": [], "as": "o" } }, 40413),
                (
                    doc! { "$lookup": { "from": first, "from": second, "localField": "x", "foreignField": "y", "as": "o" } },
                    40413,
                ),
                (doc! { "$unionWith": { "coll": first, "coll": second } }, 40413),
                (doc! { "$unionWith": { "coll": first, "pipeline": [], "coll": second } }, 40413),
                (graph(first, second), 12_735_700),
                (
                    doc! { "$facet": { "f": [{ "$lookup": { "from": first, "from": second, "pipeline": [], "as": "o" } }] } },
                    40413,
                ),
                (
                    doc! { "$lookup": { "from": "c1", "pipeline": [], "pipeline": [(union_of_all.clone())], "as": "o" } },
                    40413,
                ),
                (
                    doc! { "$lookup": { "from": "c1", "pipeline": [(union_of_all.clone())], "pipeline": [], "as": "o" } },
                    40413,
                ),
                (doc! { "$unionWith": { "coll": "c1", "pipeline": [], "pipeline": [(union_of_all.clone())] } }, 40413),
            ];
            for (stage, code) in stages {
                let aggregate = doc! { "aggregate": "c1", "pipeline": [(stage.clone())], "cursor": {} };
                assert_eq!(reader.code("a", aggregate.clone()).await, code, "{stage}");
                let explain = doc! { "explain": aggregate, "verbosity": "executionStats" };
                assert_eq!(reader.code("a", explain).await, code, "{stage}");
            }
        }
        // Said once it is allowed, or not.
        let lookup = |from: &str| {
            let stage = doc! { "$lookup": { "from": from, "pipeline": [], "as": "o" } };
            doc! { "aggregate": "c1", "pipeline": [stage], "cursor": {} }
        };
        reader.ok("a", lookup("c1")).await;
        assert_eq!(reader.code("a", lookup("c2")).await, 13);
        let pipelines = doc! { "aggregate": "c1", "pipeline": [], "pipeline": [(union_of_all)], "cursor": {} };
        assert_eq!(reader.code("a", pipelines).await, 40413);
    });
}

#[test]
fn u10_views_do_not_name_two_collections() {
    run(async {
        let (fixture, mut root, _reader) = with_two_collections().await;
        let own = doc! { "resource": { "db": "a", "collection": "v" }, "actions": ["anyAction"] };
        let mut definer = user(&mut root, &fixture, "definer", vec![finds("a", "c1"), own]).await;
        for (first, second) in [("c1", "c2"), ("c2", "c1")] {
            let stage = doc! { "$lookup": { "from": first, "from": second, "pipeline": [], "as": "o" } };
            let create = doc! { "create": "v", "viewOn": "c1", "pipeline": [(stage.clone())] };
            assert_eq!(definer.code("a", create).await, 40413);
            let create = doc! { "create": "v", "viewOn": first, "viewOn": second, "pipeline": [] };
            assert_eq!(definer.code("a", create).await, 40413);
            definer.ok("a", doc! { "create": "v", "viewOn": "c1", "pipeline": [] }).await;
            let change = doc! { "collMod": "v", "viewOn": "c1", "pipeline": [(stage.clone())] };
            assert_eq!(definer.code("a", change).await, 40413);
            definer.ok("a", doc! { "drop": "v" }).await;
            // Nobody defines such a view, not even by its document.
            assert_eq!(root.code("a", doc! { "create": "w", "viewOn": "c1", "pipeline": [stage] }).await, 40413);
        }
    });
}

#[test]
fn u10_operations_of_apply_ops_do_not_say_two_things() {
    run(async {
        let (fixture, mut root) = with_root().await;
        root.make_user("keeper", roles(&[("dbAdminAnyDatabase", "admin")])).await;
        let mut keeper = fixture.connect_as("keeper").await;
        root.ok("d", doc! { "create": "c" }).await;
        let harmless = doc! { "collMod": "c" };
        let keys = doc! { "drop": "system.keys" };
        let command = |ns: &str, first: &Doc, second: &Doc| {
            doc! { "applyOps": [{ "op": "c", "ns": ns, "o": (first.clone()), "o": (second.clone()) }] }
        };
        for request in [
            command("admin.$cmd", &harmless, &keys),
            command("admin.$cmd", &keys, &harmless),
            doc! { "applyOps": [{ "op": "c", "ns": "d.$cmd", "ns": "admin.$cmd", "o": (keys.clone()) }] },
            doc! { "applyOps": [{ "op": "n", "op": "i", "ns": "admin.system.users", "o": { "_id": "x" } }] },
            doc! { "applyOps": [{ "op": "i", "op": "n", "ns": "local.x", "o": { "_id": "x" } }] },
            doc! { "applyOps": [{ "op": "c", "ns": "d.$cmd", "o": { "collMod": "c", "viewOn": "c", "viewOn": "x", "pipeline": [] } }] },
            doc! { "applyOps": [{ "op": "c", "ns": "d.$cmd", "o": { "applyOps": [
                { "op": "c", "ns": "admin.$cmd", "o": (harmless.clone()), "o": (keys.clone()) },
            ] } }] },
        ] {
            assert_eq!(keeper.code("admin", request.clone()).await, 40413, "{request}");
        }
        // Said once: what the role does not allow elsewhere it does not allow here.
        let inserts = |ns: &str| doc! { "applyOps": [{ "op": "i", "ns": ns, "o": { "_id": "x" } }] };
        for refused in [
            inserts("admin.system.users"),
            inserts("admin.system.version"),
            inserts("local.x"),
            inserts("config.x"),
            inserts("d.c"),
            doc! { "applyOps": [{ "op": "c", "ns": "admin.$cmd", "o": (keys.clone()) }] },
            doc! { "applyOps": [{ "op": "n", "ns": "", "o": { "msg": "x" } }] },
            doc! { "applyOps": [] },
        ] {
            assert_eq!(keeper.code("admin", refused.clone()).await, 13, "{refused}");
        }
        let own = doc! { "applyOps": [{ "op": "c", "ns": "d.$cmd", "o": (harmless) }] };
        keeper.ok("admin", own).await;
        // Without tenants nobody writes for one.
        let tenant = Value::ObjectId(pando_doc::ObjectId::from_bytes([7; 12]));
        let of_tenant = doc! { "applyOps": [{ "op": "i", "tid": tenant, "ns": "d.c", "o": { "_id": "x" } }] };
        assert_eq!(root.code("admin", of_tenant).await, 6_972_102);
    });
}

#[test]
fn u10_a_collection_that_an_operation_names_by_its_id_is_the_one_that_counts() {
    run(async {
        let (fixture, mut root) = with_root().await;
        for database in ["a", "b"] {
            root.ok(database, doc! { "insert": "c", "documents": [{ "_id": 1 }] }).await;
        }
        let listed = root.ok("b", doc! { "listCollections": 1 }).await;
        let info = batch(&listed)[0].get("info").unwrap().as_document().unwrap().to_doc();
        let uuid = info.get("uuid").unwrap();
        let cluster = doc! { "resource": { "cluster": true }, "actions": ["applyOps", "useUUID", "forceUUID"] };
        let all = |database: &str| doc! { "resource": { "db": database, "collection": "" }, "actions": ["anyAction"] };
        let mut of_a = user(&mut root, &fixture, "of-a", vec![cluster.clone(), all("a")]).await;
        let mut of_b = user(&mut root, &fixture, "of-b", vec![cluster, all("b")]).await;
        // The collection would go from b to a: that takes rights in both.
        let create = doc! { "applyOps": [{ "op": "c", "ns": "a.$cmd", "ui": uuid, "o": { "create": "taken" } }] };
        assert_eq!(of_a.code("admin", create.clone()).await, 13);
        assert_eq!(of_b.code("admin", create).await, 13);
        let drop = doc! { "applyOps": [{ "op": "c", "ns": "a.$cmd", "ui": uuid, "o": { "drop": "c" } }] };
        assert_eq!(of_a.code("admin", drop).await, 13);
        let database = doc! { "applyOps": [{ "op": "c", "ns": "a.$cmd", "ui": uuid, "o": { "dropDatabase": 1 } }] };
        assert_eq!(of_b.code("admin", database).await, 13);
        for (database, client) in [("a", &mut of_a), ("b", &mut of_b)] {
            assert_eq!(batch(&client.ok(database, doc! { "find": "c" }).await).len(), 1);
        }
    });
}

#[test]
fn u10_a_reader_of_admin_does_not_follow_the_cluster() {
    run(async {
        let (fixture, mut root) = with_root().await;
        let admin = doc! { "resource": { "db": "admin", "collection": "" }, "actions": ["find", "changeStream"] };
        let mut reader = user(&mut root, &fixture, "reader", vec![admin]).await;
        let stream = |options: Doc| doc! { "aggregate": 1, "pipeline": [{ "$changeStream": options }], "cursor": {} };
        for first in [true, false] {
            let twice = doc! { "allChangesForCluster": first, "allChangesForCluster": (!first) };
            assert_eq!(reader.code("admin", stream(twice)).await, 40413);
        }
        assert_eq!(reader.code("admin", stream(doc! { "allChangesForCluster": true })).await, 13);
        assert_eq!(reader.code("admin", stream(doc! { "allChangesForCluster": 1 })).await, 13);
        assert_eq!(reader.code("admin", stream(doc! {})).await, 73, "and of admin alone there is no stream");
        root.ok("admin", stream(doc! { "allChangesForCluster": true })).await;
    });
}

#[test]
fn u10_a_collection_that_is_named_by_a_symbol_is_that_collection() {
    run(async {
        let (fixture, mut root) = with_root().await;
        let database = doc! { "resource": { "db": "admin", "collection": "" }, "actions": ["find"] };
        let mut reader = user(&mut root, &fixture, "reader", vec![database]).await;
        let users = || Value::Symbol("system.users".into());
        for request in [
            doc! { "find": (users()) },
            doc! { "count": (users()) },
            doc! { "distinct": (users()), "key": "credentials" },
            doc! { "aggregate": (users()), "pipeline": [], "cursor": {} },
            doc! { "explain": { "find": (users()) } },
        ] {
            assert_eq!(reader.code("admin", request.clone()).await, 13, "{request}");
        }
    });
}

#[test]
fn u10_users_are_told_apart_by_name_and_database() {
    run(async {
        let (fixture, mut root) = with_root().await;
        root.ok("d", doc! { "insert": "c", "documents": [{ "_id": 1 }, { "_id": 2 }, { "_id": 3 }] }).await;
        let mut clients = Vec::new();
        for (name, database) in [("a@b", "c"), ("a", "b@c")] {
            let create = doc! { "createUser": name, "pwd": name, "roles": (roles(&[("read", "d")])) };
            root.ok(database, create).await;
            let mut client = fixture.connect().await;
            let answer = Login { database, ..Login::new(name, name) }.run(&mut client).await;
            assert_eq!(number(&answer, "ok"), 1.0, "{answer}");
            clients.push(client);
        }
        let [first, second] = &mut clients[..] else { panic!("there are two") };
        let session = doc! { "id": (Value::Binary { subtype: 4, bytes: &[7; 16] }) };
        let find = doc! { "find": "c", "batchSize": 1, "lsid": (session.clone()) };
        let opened = first.ok("d", find).await;
        let cursor = opened.get("cursor").unwrap().as_document().unwrap().get("id").unwrap().to_i64_exact().unwrap();
        let more = doc! { "getMore": cursor, "collection": "c", "lsid": (session.clone()) };
        assert_eq!(second.code("d", more.clone()).await, 13);
        assert_eq!(second.code("d", doc! { "killCursors": "c", "cursors": [cursor] }).await, 13);
        let shown = doc! { "aggregate": 1, "pipeline": [{ "$currentOp": { "idleCursors": true } }], "cursor": {} };
        let cursors = |reply: &Doc| batch(reply).iter().filter(|one| text(one, "type") == "idleCursor").count();
        assert_eq!(cursors(&second.ok("admin", shown.clone()).await), 0);
        assert_eq!(cursors(&first.ok("admin", shown).await), 1);
        first.ok("d", more).await;
    });
}

#[test]
fn u10_databases_of_the_system_are_not_dropped() {
    run(async {
        let (fixture, mut root) = with_root().await;
        let all = |database: &str| doc! { "resource": { "db": database, "collection": "" }, "actions": ["anyAction"] };
        let applying = doc! { "resource": { "cluster": true }, "actions": ["applyOps"] };
        let mut keeper =
            user(&mut root, &fixture, "keeper", vec![all("admin"), all("local"), all("config"), applying]).await;
        for database in ["admin", "local"] {
            assert_eq!(keeper.code(database, doc! { "dropDatabase": 1 }).await, 20);
            let operation = doc! { "op": "c", "ns": (format!("{database}.$cmd")), "o": { "dropDatabase": 1 } };
            assert_eq!(keeper.code("admin", doc! { "applyOps": [operation] }).await, 20);
        }
        // As in MongoDB, config goes with who may drop it where it is no configuration of a
        // cluster.
        keeper.ok("config", doc! { "dropDatabase": 1 }).await;
        assert_eq!(root.code("config", doc! { "dropDatabase": 1 }).await, 13);
        assert_eq!(root.who().await, ["root"]);
    });
}

#[test]
fn u10_what_a_view_names_is_not_asked_of_who_reads_it() {
    run(async {
        let (fixture, mut root, _reader) = with_two_collections().await;
        let join = doc! { "$lookup": { "from": "c2", "pipeline": [{ "$unionWith": "c2" }], "as": "o" } };
        root.ok("a", doc! { "create": "below", "viewOn": "c2", "pipeline": [(join)] }).await;
        let union = doc! { "$unionWith": { "coll": "c2", "pipeline": [] } };
        root.ok("a", doc! { "create": "shown", "viewOn": "below", "pipeline": [(union)] }).await;
        let mut reader = user(&mut root, &fixture, "viewer", vec![finds("a", "c1"), finds("a", "shown")]).await;
        let lookup = |from: &str| doc! { "$lookup": { "from": from, "pipeline": [{ "$match": {} }], "as": "o" } };
        let aggregate = |on: &str, stage: Doc| doc! { "aggregate": on, "pipeline": [stage], "cursor": {} };
        for request in [
            doc! { "find": "shown" },
            aggregate("shown", lookup("c1")),
            aggregate("c1", lookup("shown")),
            aggregate("c1", doc! { "$unionWith": { "coll": "shown", "pipeline": [(lookup("shown"))] } }),
            aggregate("shown", doc! { "$unionWith": "shown" }),
        ] {
            let shown = reader.ok("a", request.clone()).await;
            assert!(shown.to_string().contains(CLASSIFIED), "{request}: {shown}");
            reader.ok("a", doc! { "explain": request, "verbosity": "queryPlanner" }).await;
        }
        assert_eq!(reader.code("a", aggregate("shown", lookup("below"))).await, 13);
        assert_eq!(reader.code("a", aggregate("shown", lookup("c2"))).await, 13);
    });
}
