//! `createIndexes`, `dropIndexes`, `listIndexes`, `reIndex`.

use super::*;

fn create(indexes: &[Doc]) -> Doc {
    let mut body = DocBuilder::new();
    body.append("createIndexes", "c");
    body.array("indexes", |array| indexes.iter().for_each(|index| array.push(index)));
    body.finish()
}

fn on(field: &str) -> Doc {
    let mut key = DocBuilder::new();
    key.append(field, 1);
    doc! { "key": (key.finish()), "name": (format!("{field}_1")) }
}

fn counts(reply: &Doc) -> (f64, f64, Option<bool>, String) {
    let created = reply.get("createdCollectionAutomatically").and_then(|created| created.as_bool());
    (number(reply, "numIndexesBefore"), number(reply, "numIndexesAfter"), created, text(reply, "note"))
}

#[test]
fn u7_indexes_are_created_with_their_collection() {
    run(async {
        let mut node = node().await;
        let reply = node.ok(create(&[on("a"), on("b")])).await;
        assert_eq!(counts(&reply), (1.0, 3.0, Some(true), String::new()), "{reply}");
        assert_eq!(text(&reply, "commitQuorum"), "votingMembers");
        let again = node.ok(create(&[on("a"), on("b")])).await;
        assert_eq!(counts(&again), (3.0, 3.0, None, "all indexes already exist".into()), "{again}");
        let some = node.ok(create(&[on("a"), on("x")])).await;
        assert_eq!(counts(&some), (3.0, 4.0, Some(false), "index already exists".into()), "{some}");
        let one = doc! { "v": 2, "key": { "a": 1 }, "name": "a_1" };
        assert_eq!(node.indexes("c").await[1], one);
        assert_eq!(node.oplog_commands(), ["create c", "createIndexes c", "createIndexes c", "createIndexes c"]);
    });
}

#[test]
fn u7_indexes_of_documents_are_built() {
    run(async {
        let mut node = node().await;
        node.insert_into("c", &numbered(1000)).await;
        let sparse = doc! { "key": { "missing": 1 }, "name": "m", "sparse": true };
        let partial = doc! { "key": { "a": 1 }, "name": "p", "partialFilterExpression": { "a": { "$gt": 7 } } };
        let hashed = doc! { "key": { "a": "hashed" }, "name": "h" };
        let compound = doc! { "key": { "a": 1, "b": -1 }, "name": "ab", "unique": true };
        let reply = node.ok(create(&[on("b"), sparse, partial, hashed, compound])).await;
        assert_eq!(counts(&reply), (1.0, 6.0, Some(false), String::new()), "{reply}");
        let validated = node.valid("c").await;
        let keys = doc! { "_id_": 1000_i64, "b_1": 2000_i64, "m": 0_i64, "p": 200_i64, "h": 1000_i64, "ab": 2000_i64 };
        assert_eq!(part(&validated, "keysPerIndex"), keys);
        assert_eq!(node.oplog_commands(), ["create c", "startIndexBuild c", "commitIndexBuild c"]);
        // They are kept up, and used.
        node.insert_into("c", &[doc! { "_id": 5000, "a": 9, "b": 77_777 }]).await;
        assert_eq!(node.documents_of("c", doc! { "b": 77_777 }).await.len(), 1);
        node.valid("c").await;
    });
}

#[test]
fn u7_a_build_that_finds_duplicates_leaves_nothing() {
    run(async {
        let mut node = node().await;
        node.insert_into("c", &numbered(100)).await;
        let unique = doc! { "key": { "a": 1 }, "name": "a_1", "unique": true };
        let reply = node.run(create(&[on("b"), unique.clone()])).await;
        assert_eq!(number(&reply, "code"), 11000.0, "{reply}");
        let reason = text(&reply, "errmsg");
        assert!(reason.starts_with("Index build failed: "), "{reason}");
        assert!(
            reason.ends_with("E11000 duplicate key error collection: d.c index: a_1 dup key: { a: 0 }"),
            "{reason}"
        );
        assert_eq!(part(&reply, "keyValue"), doc! { "a": 0 });
        assert_eq!(node.index_names("c").await, ["_id_"]);
        assert_eq!(node.oplog_commands(), ["create c", "startIndexBuild c", "abortIndexBuild c"]);
        node.valid("c").await;
        // When the duplicates are gone it works.
        node.ok(doc! { "delete": "c", "deletes": [{ "q": { "_id": { "$gte": 10 } }, "limit": 0 }] }).await;
        node.ok(create(&[unique])).await;
        node.valid("c").await;
        let twice = node.run(doc! { "insert": "c", "documents": [{ "a": 3 }] }).await;
        assert!(twice.get("writeErrors").is_some(), "{twice}");
    });
}

#[test]
fn u7_specifications_that_conflict_are_refused() {
    run(async {
        let mut node = node().await;
        node.ok(create(&[on("a")])).await;
        for (index, code) in [
            (doc! { "key": { "a": 1 }, "name": "other" }, 85),
            (doc! { "key": { "b": 1 }, "name": "a_1" }, 86),
            (doc! { "key": { "a": 1 }, "name": "a_1", "unique": true }, 86),
            (doc! { "key": { "a": 1 }, "name": "a_1", "expireAfterSeconds": 5 }, 85),
            (doc! { "key": { "b": 1 } }, 9),
            (doc! { "name": "b_1" }, 9),
            (doc! { "key": {}, "name": "b_1" }, 67),
            (doc! { "key": { "b": 0 }, "name": "b_1" }, 67),
            (doc! { "key": { "b": 1 }, "name": "b_1", "colour": 1 }, 197),
            (doc! { "key": { "b": 1 }, "name": "b_1", "partialFilterExpression": { "b": { "$ne": 1 } } }, 67),
        ] {
            let reply = node.run(create(std::slice::from_ref(&index))).await;
            assert_eq!(number(&reply, "code") as i32, code, "{index}: {reply}");
        }
        node.error(create(&[]), 2, "Must specify at least one index to create").await;
        let missing = "BSON field 'createIndexes.indexes' is missing but a required field";
        node.error(doc! { "createIndexes": "c" }, 40414, missing).await;
        assert_eq!(node.index_names("c").await, ["_id_", "a_1"]);
        // A conflict inside one request leaves neither the collection nor an index behind.
        let both = doc! { "createIndexes": "n", "indexes": [(on("a")), { "key": { "a": 1 }, "name": "x" }] };
        assert_eq!(node.code(both).await, 85);
        assert_eq!(node.names().await, ["c"]);
    });
}

#[test]
fn u7_indexes_are_dropped_by_name_by_key_and_all() {
    run(async {
        let mut node = node().await;
        node.ok(create(&[on("a"), on("b"), on("x"), on("y"), on("z")])).await;
        let dropped = node.ok(doc! { "dropIndexes": "c", "index": "a_1" }).await;
        assert_eq!(dropped.get("nIndexesWas"), Some(Value::Int32(6)));
        node.ok(doc! { "deleteIndexes": "c", "index": { "b": 1 } }).await;
        for (body, code, reason) in [
            (doc! { "dropIndexes": "c", "index": ["x_1", "no"] }, 27, "index not found with name [no]"),
            (doc! { "dropIndexes": "c", "index": { "no": 1 } }, 27, "can't find index with key: { no: 1 }"),
            (doc! { "dropIndexes": "c", "index": "_id_" }, 72, "cannot drop _id index"),
            (doc! { "dropIndexes": "c", "index": { "_id": 1 } }, 72, "cannot drop _id index"),
            (doc! { "dropIndexes": "no", "index": "*" }, 26, "ns not found d.no"),
            (doc! { "dropIndexes": "c" }, 40414, "BSON field 'dropIndexes.index' is missing but a required field"),
        ] {
            node.error(body, code, reason).await;
        }
        assert_eq!(node.code(doc! { "dropIndexes": "c", "index": 1 }).await, 14);
        node.ok(doc! { "dropIndexes": "c", "index": ["x_1", "y_1"] }).await;
        assert_eq!(node.index_names("c").await, ["_id_", "z_1"]);
        let all = node.ok(doc! { "dropIndexes": "c", "index": "*" }).await;
        assert_eq!(text(&all, "msg"), "non-_id indexes dropped for collection");
        assert_eq!(node.index_names("c").await, ["_id_"]);
    });
}

#[test]
fn u7_indexes_are_listed_in_batches() {
    run(async {
        let mut node = node().await;
        node.error(doc! { "listIndexes": "c" }, 26, "ns does not exist: d.c").await;
        node.ok(create(&[on("a"), on("b")])).await;
        let first = node.ok(doc! { "listIndexes": "c", "cursor": { "batchSize": 1 } }).await;
        assert_eq!((batch(&first, "firstBatch").len(), text(&part(&first, "cursor"), "ns")), (1, "d.c".into()));
        let rest = node.ok(doc! { "getMore": (cursor_id(&first)), "collection": "c" }).await;
        assert_eq!((batch(&rest, "nextBatch").len(), cursor_id(&rest)), (2, 0));
        node.ok(doc! { "create": "k", "clusteredIndex": { "key": { "_id": 1 }, "unique": true, "name": "mine" } })
            .await;
        let expected = doc! { "v": 2, "key": { "_id": 1 }, "name": "mine", "unique": true, "clustered": true };
        assert_eq!(node.indexes("k").await, [expected]);
        assert_eq!(node.code(doc! { "dropIndexes": "k", "index": "mine" }).await, 5979800);
    });
}

#[test]
fn u7_a_node_that_stands_alone_makes_its_indexes_anew() {
    run(async {
        let mut node = node_as(ReplicationMode::StandAlone).await;
        node.insert_into("c", &numbered(50)).await;
        let reply = node.ok(create(&[on("b")])).await;
        assert!(reply.get("commitQuorum").is_none(), "{reply}");
        let reply = node.ok(doc! { "reIndex": "c" }).await;
        assert_eq!((number(&reply, "nIndexesWas"), number(&reply, "nIndexes")), (2.0, 2.0), "{reply}");
        assert_eq!(node.index_names("c").await, ["_id_", "b_1"]);
        node.valid("c").await;
        assert_eq!(node.documents_of("c", doc! { "_id": 7 }).await.len(), 1);
        let mut member = super::node().await;
        let reason = "reIndex is only allowed on a standalone mongod instance.";
        member.error(doc! { "reIndex": "c" }, 20, reason).await;
    });
}

#[test]
fn u7_a_build_that_is_killed_leaves_nothing() {
    run(async {
        let mut node = node().await;
        node.insert_into("c", &numbered(1000)).await;
        // A task takes turns with the build; the test itself is looked at more rarely.
        let data = node.fixture.server.node().data.clone().unwrap();
        let killer = async move {
            let namespace = pando_base::Namespace::of("d", "c").unwrap();
            let is_building = |index: &Arc<pando_catalog::Index>| !index.ready;
            while !data.catalog.latest().collection(&namespace).unwrap().indexes.iter().any(is_building) {
                pando_query::executor::yield_now().await;
            }
            data.services.operations.kill_where(pando_base::ErrorCode::Interrupted, |_| true);
        };
        node.fixture.env.tasks().spawn(Box::pin(killer)).unwrap();
        node.client.send(MsgFlags::NONE, &with_database(&create(&[on("b")]), "d")).await;
        let reply = node.client.read().await.unwrap().body().to_doc();
        assert_eq!(number(&reply, "code"), 11601.0, "{reply}");
        assert_eq!(node.index_names("c").await, ["_id_"]);
        assert_eq!(node.oplog_commands(), ["create c", "startIndexBuild c", "abortIndexBuild c"]);
        node.ok(create(&[on("b")])).await;
        node.valid("c").await;
    });
}

#[test]
fn i1_indexes_of_version_1_have_all_numbers_but_decimals() {
    run(async {
        let mut node = node_as(ReplicationMode::StandAlone).await;
        let index = doc! { "key": { "x": 1 }, "name": "x_1", "v": 1 };
        node.ok(doc! { "createIndexes": "c", "indexes": [index] }).await;
        let numbers = [1.5, 0.1, -2.25, 1e300, 3.0];
        node.insert(numbers.iter().map(|number| doc! { "x": *number }).collect()).await;
        for number in numbers {
            let found = node.find(doc! { "find": "c", "filter": { "x": number }, "hint": "x_1" }).await;
            assert_eq!(found.len(), 1, "{number}");
            let above = doc! { "x": { "$gte": number } };
            let by_index = node.find(doc! { "find": "c", "filter": &above, "hint": "x_1" }).await;
            let by_scan = node.find(doc! { "find": "c", "filter": &above, "hint": { "$natural": 1 } }).await;
            assert_eq!(by_index.len(), by_scan.len(), "{number}");
        }
        let decimal: pando_doc::Decimal128 = "42".parse().unwrap();
        let reply = node.ok(doc! { "insert": "c", "documents": [{ "x": decimal }] }).await;
        assert!(reply.to_string().contains("NumberDecimal"), "{reply}");
        node.ok(doc! { "insert": "c", "documents": [{ "y": decimal }] }).await;
        // What is made anew is made in the latest version.
        node.ok(doc! { "reIndex": "c" }).await;
        let indexes = batch(&node.ok(doc! { "listIndexes": "c" }).await, "firstBatch");
        assert!(indexes.iter().all(|index| number(index, "v") == 2.0), "{indexes:?}");
        node.ok(doc! { "insert": "c", "documents": [{ "x": decimal }] }).await;
    });
}

#[test]
fn u7_a_hint_may_name_an_index_of_words() {
    run(async {
        let mut node = node().await;
        node.insert(vec![doc! { "_id": 1, "a": "red green" }, doc! { "_id": 2, "a": "blue" }, doc! { "_id": 3 }]).await;
        let index = doc! { "key": { "a": "text" }, "name": "words" };
        node.ok(doc! { "createIndexes": "c", "indexes": [index] }).await;
        let found = node.find(doc! { "find": "c", "hint": "words", "sort": { "_id": 1 } }).await;
        let ids: Vec<f64> = found.iter().map(|document| number(document, "_id")).collect();
        assert_eq!(ids, [1.0, 2.0]);
        let explained = node.ok(doc! { "explain": { "find": "c", "hint": "words" } }).await;
        assert!(explained.to_string().contains("IXSCAN"), "{explained}");
        let wrong = doc! { "find": "c", "hint": "no such" };
        assert_eq!(node.code(wrong).await, 2);
    });
}

#[test]
fn u7_capped_collections_are_not_read_as_they_were() {
    run(async {
        let mut node = node().await;
        node.ok(doc! { "create": "k", "capped": true, "size": 4096 }).await;
        node.insert_into("k", &[doc! { "a": 1 }]).await;
        let find = |level: &str| doc! { "find": "k", "readConcern": { "level": level } };
        assert_eq!(node.code(find("snapshot")).await, 246);
        assert_eq!(node.find(find("majority")).await.len(), 1);
    });
}
