//! Reading and writing documents, over the wire.

use super::node::{batch, cursor_id, node, node_as, node_on, part, with_database};
use super::*;
use pando_doc::{DocBuilder, Value};
use pando_engine_model::ModelDisk;

fn write_error(reply: &Doc, place: usize) -> Doc {
    let errors = reply.get("writeErrors").and_then(|errors| errors.as_array()).unwrap_or_else(|| panic!("{reply}"));
    let error = errors.values().nth(place).and_then(|error| error.as_document());
    error.unwrap_or_else(|| panic!("{reply}")).to_doc()
}

pub(super) fn numbered(count: i32) -> Vec<Doc> {
    (0..count).map(|number| doc! { "_id": number, "a": (number % 10) }).collect()
}

#[test]
fn u2_documents_are_inserted_found_updated_and_deleted() {
    run(async {
        let mut node = node().await;
        let reply = node.insert(vec![doc! { "x": 1, "_id": 1 }, doc! { "x": 2 }]).await;
        assert_eq!(reply.get("n"), Some(Value::Int32(2)));
        assert!(reply.get("electionId").is_some() && reply.get("operationTime").is_some(), "{reply}");
        let found = node.find(doc! { "find": "c", "filter": { "_id": 1 } }).await;
        assert_eq!(found, [doc! { "_id": 1, "x": 1 }], "_id has moved to the front");
        let update = doc! { "update": "c", "updates": [
            { "q": { "_id": 1 }, "u": { "$set": { "y": 5 } } },
            { "q": { "_id": 9 }, "u": { "$set": { "y": 6 } }, "upsert": true },
        ] };
        let reply = node.ok(update).await;
        assert_eq!((reply.get("n"), reply.get("nModified")), (Some(Value::Int32(2)), Some(Value::Int32(1))));
        let upserted = reply.get("upserted").unwrap().as_array().unwrap().to_array();
        assert_eq!(upserted.values().next().unwrap().as_document().unwrap().to_doc(), doc! { "index": 1, "_id": 9 });
        let reply = node.ok(doc! { "delete": "c", "deletes": [{ "q": { "y": { "$gt": 0 } }, "limit": 0 }] }).await;
        assert_eq!(reply.get("n"), Some(Value::Int32(2)));
        let reply = node.ok(doc! { "count": "c" }).await;
        assert_eq!(reply.get("n"), Some(Value::Int32(1)));
    });
}

#[test]
fn u2_errors_of_statements_are_told_by_their_place() {
    run(async {
        let mut node = node().await;
        node.insert(vec![doc! { "_id": 1 }]).await;
        let documents =
            doc! { "insert": "c", "ordered": false, "documents": [{ "_id": 0 }, { "_id": 1 }, { "_id": 2 }] };
        let reply = node.ok(documents).await;
        assert_eq!(reply.get("n"), Some(Value::Int32(2)));
        let error = write_error(&reply, 0);
        assert_eq!((number(&error, "index"), number(&error, "code")), (1.0, 11000.0));
        assert_eq!(error.get("keyPattern").unwrap().as_document().unwrap().to_doc(), doc! { "_id": 1 });
        assert_eq!(error.get("keyValue").unwrap().as_document().unwrap().to_doc(), doc! { "_id": 1 });
        let reply = node.ok(doc! { "insert": "c", "documents": [{ "_id": 3 }, { "_id": 1 }, { "_id": 4 }] }).await;
        assert_eq!(number(&reply, "n"), 1.0, "an ordered batch ends at the first error");
        assert_eq!(node.code(doc! { "insert": "c", "documents": [] }).await, 16);
        assert_eq!(node.code(doc! { "insert": "c", "documents": [{}], "foo": 1 }).await, 40415);
        assert_eq!(node.code(doc! { "insert": "c" }).await, 40414);
        assert_eq!(node.code(doc! { "delete": "c", "deletes": [{ "q": {}, "limit": 3 }] }).await, 9);
    });
}

#[test]
fn u6_one_command_tells_one_time() {
    run(async {
        let mut node = node().await;
        node.insert((0..4).map(|number| doc! { "_id": number }).collect()).await;
        let times = |filter: Doc| doc! { "q": filter, "u": [{ "$set": { "t": "$$CLUSTER_TIME" } }], "multi": true };
        let updates = doc! { "update": "c", "updates": [times(doc! { "_id": { "$lt": 2 } }), times(doc! { "_id": { "$gte": 2 } })] };
        node.ok(updates).await;
        let told = |node: &Doc| node.get("t").map(Value::to_owned).expect("the time is told");
        let found = node.find(doc! { "find": "c" }).await;
        assert!(found.iter().all(|document| told(document) == told(&found[0])), "{found:?}");
        let merge = doc! { "aggregate": "c", "cursor": {}, "pipeline": [
            { "$merge": { "into": "c", "on": "_id", "whenMatched": [{ "$set": { "t": "$$CLUSTER_TIME" } }] } },
        ] };
        node.ok(merge).await;
        let merged = node.find(doc! { "find": "c" }).await;
        assert!(merged.iter().all(|document| told(document) == told(&merged[0])), "{merged:?}");
        assert!(told(&merged[0]) != told(&found[0]), "the results were written later");
    });
}

#[test]
fn u6_counting_has_no_clock() {
    run(async {
        let mut node = node().await;
        let filter = doc! { "$expr": { "$lt": ["$d", "$$NOW"] } };
        let count = doc! { "count": "c", "query": filter.view() };
        let distinct = doc! { "distinct": "c", "key": "d", "query": filter.view() };
        let lists = doc! { "listCollections": 1, "filter": { "$expr": { "$ne": ["$name", "$$CLUSTER_TIME"] } } };
        node.ok(doc! { "create": "c" }).await;
        // Without a document nobody asks.
        assert_eq!(number(&node.ok(count.clone()).await, "n"), 0.0);
        node.insert(vec![doc! { "d": 1 }]).await;
        for command in [count, distinct, lists] {
            assert_eq!(node.code(command.clone()).await, 51144, "{command}");
        }
        node.ok(doc! { "find": "c", "filter": filter }).await;
    });
}

#[test]
fn u3_cursors_give_batches_and_end() {
    run(async {
        let mut node = node().await;
        node.insert(numbered(250)).await;
        let first = node.ok(doc! { "find": "c", "sort": { "_id": 1 } }).await;
        assert_eq!(batch(&first, "firstBatch").len(), 101);
        let id = cursor_id(&first);
        assert!(id > 0);
        let second = node.ok(doc! { "getMore": id, "collection": "c", "batchSize": 100 }).await;
        assert_eq!((batch(&second, "nextBatch").len(), cursor_id(&second)), (100, id));
        let third = node.ok(doc! { "getMore": id, "collection": "c" }).await;
        assert_eq!((batch(&third, "nextBatch").len(), cursor_id(&third)), (49, 0));
        assert_eq!(node.code(doc! { "getMore": id, "collection": "c" }).await, 43);
        // Nothing yet, only a cursor.
        let empty = node.ok(doc! { "find": "c", "batchSize": 0 }).await;
        assert_eq!(batch(&empty, "firstBatch").len(), 0);
        let id = cursor_id(&empty);
        assert_eq!(node.code(doc! { "getMore": id, "collection": "other" }).await, 13);
        let killed = node.ok(doc! { "killCursors": "c", "cursors": [id, 5_i64] }).await;
        assert_eq!(killed.get("cursorsKilled").unwrap().as_array().unwrap().values().count(), 1);
        assert_eq!(killed.get("cursorsNotFound").unwrap().as_array().unwrap().values().count(), 1);
        // A limit that is reached, and a single batch, leave no cursor.
        let limited = node.ok(doc! { "find": "c", "limit": 3, "batchSize": 3 }).await;
        assert_eq!((batch(&limited, "firstBatch").len(), cursor_id(&limited)), (3, 0));
        let single = node.ok(doc! { "find": "c", "batchSize": 3, "singleBatch": true }).await;
        assert_eq!((batch(&single, "firstBatch").len(), cursor_id(&single)), (3, 0));
    });
}

#[test]
fn u3_find_checks_its_arguments() {
    run(async {
        let mut node = node().await;
        assert_eq!(node.code(doc! { "find": "c", "filter": 1 }).await, 14);
        assert_eq!(node.code(doc! { "find": "c", "skip": (-1) }).await, 51024);
        assert_eq!(node.code(doc! { "find": "c", "nothing": 1 }).await, 40415);
        assert_eq!(node.code(doc! { "find": "c", "filter": { "a": { "$no": 1 } } }).await, 2);
        assert_eq!(node.code(doc! { "find": "" }).await, 73);
        assert_eq!(node.code(doc! { "getMore": 5, "collection": "c" }).await, 14);
        assert_eq!(node.code(doc! { "getMore": 5_i64, "collection": "c" }).await, 43);
        assert_eq!(node.find(doc! { "find": "missing" }).await, Vec::<Doc>::new());
    });
}

#[test]
fn u2_find_and_modify_returns_the_document() {
    run(async {
        let mut node = node().await;
        node.insert(numbered(3)).await;
        let reply =
            node.ok(doc! { "findAndModify": "c", "query": { "_id": 1 }, "update": { "$inc": { "a": 5 } } }).await;
        assert_eq!(reply.get("value").unwrap().as_document().unwrap().to_doc(), doc! { "_id": 1, "a": 1 });
        let body = doc! {
            "findandmodify": "c", "query": { "_id": 7 }, "update": { "$set": { "a": 1 } }, "upsert": true, "new": true,
        };
        let reply = node.ok(body).await;
        assert_eq!(reply.get("value").unwrap().as_document().unwrap().to_doc(), doc! { "_id": 7, "a": 1 });
        let last = reply.get("lastErrorObject").unwrap().as_document().unwrap().to_doc();
        assert_eq!(last, doc! { "n": 1, "updatedExisting": false, "upserted": 7 });
        let reply = node.ok(doc! { "findAndModify": "c", "query": { "_id": 7 }, "remove": true }).await;
        assert_eq!(reply.get("lastErrorObject").unwrap().as_document().unwrap().to_doc(), doc! { "n": 1 });
        let reply = node.ok(doc! { "findAndModify": "c", "query": { "_id": 7 }, "remove": true }).await;
        assert_eq!(reply.get("value"), Some(Value::Null));
        assert_eq!(node.code(doc! { "findAndModify": "c", "remove": true, "new": true }).await, 9);
        assert_eq!(node.code(doc! { "findAndModify": "c" }).await, 9);
    });
}

#[test]
fn u3_aggregate_count_and_distinct() {
    run(async {
        let mut node = node().await;
        node.insert(numbered(30)).await;
        let pipeline = doc! { "aggregate": "c", "cursor": {}, "pipeline": [
            { "$match": { "a": { "$lt": 2 } } }, { "$group": { "_id": "$a", "n": { "$sum": 1 } } }, { "$sort": { "_id": 1 } },
        ] };
        assert_eq!(node.find(pipeline).await, [doc! { "_id": 0, "n": 3 }, doc! { "_id": 1, "n": 3 }]);
        assert_eq!(node.code(doc! { "aggregate": "c", "pipeline": [] }).await, 9);
        assert_eq!(node.code(doc! { "aggregate": 1, "pipeline": [{ "$match": {} }], "cursor": {} }).await, 73);
        let reply = node.ok(doc! { "count": "c", "query": { "a": 3 }, "limit": 2 }).await;
        assert_eq!(reply.get("n"), Some(Value::Int32(2)));
        let reply = node.ok(doc! { "distinct": "c", "key": "a", "query": { "a": { "$gte": 8 } } }).await;
        let values: Vec<i64> = reply
            .get("values")
            .unwrap()
            .as_array()
            .unwrap()
            .values()
            .filter_map(|value| value.to_i64_exact())
            .collect();
        assert_eq!(values, [8, 9]);
    });
}

#[test]
fn u3_explain_tells_the_plan() {
    run(async {
        let mut node = node().await;
        node.insert(numbered(30)).await;
        let stage = |reply: &Doc| {
            let planner = reply.get("queryPlanner").and_then(|planner| planner.as_document()).unwrap();
            let plan = planner.get("winningPlan").and_then(|plan| plan.as_document()).unwrap();
            plan.get("stage").and_then(|stage| stage.as_str()).map(str::to_owned).unwrap()
        };
        let find = doc! { "explain": { "find": "c", "filter": { "_id": 3 } }, "verbosity": "executionStats" };
        let reply = node.ok(find).await;
        assert_eq!(stage(&reply), "IDHACK");
        assert!(reply.get("executionStats").is_some() && reply.get("serverInfo").is_some());
        let update =
            doc! { "update": "c", "updates": [{ "q": { "a": 3 }, "u": { "$set": { "a": 4 } }, "multi": true }] };
        let reply = node.ok(doc! { "explain": update }).await;
        assert_eq!(stage(&reply), "UPDATE");
        assert_eq!(number(&node.ok(doc! { "count": "c", "query": { "a": 3 } }).await, "n"), 3.0, "nothing was written");
        assert_eq!(node.code(doc! { "explain": { "nothing": 1 } }).await, 59);
        assert_eq!(node.code(doc! { "explain": { "ping": 1 } }).await, 20);
        assert_eq!(node.code(doc! { "explain": { "find": "c" }, "verbosity": "x" }).await, 2);
    });
}

fn session_fields(number: i64) -> Doc {
    doc! { "lsid": { "id": Value::Binary { subtype: 4, bytes: &[7; 16] } }, "txnNumber": number }
}

fn with(body: Doc, more: Doc) -> Doc {
    let mut builder = DocBuilder::new();
    builder.append_all(body.view());
    builder.append_all(more.view());
    builder.finish()
}

#[test]
fn s17_a_retried_write_is_carried_out_once() {
    run(async {
        let mut node = node().await;
        let insert = doc! { "insert": "c", "documents": [{ "_id": 1, "a": 0 }, { "_id": 2, "a": 0 }] };
        for retried in [false, true] {
            let reply = node.ok(with(insert.clone(), session_fields(1))).await;
            assert_eq!(number(&reply, "n"), 2.0);
            assert_eq!((reply.get("retriedStmtIds").is_some(), reply.get("writeErrors")), (retried, None), "{reply}");
        }
        let update = doc! { "update": "c", "updates": [{ "q": { "_id": 1 }, "u": { "$inc": { "a": 1 } } }] };
        for _ in 0..3 {
            let reply = node.ok(with(update.clone(), session_fields(2))).await;
            assert_eq!((number(&reply, "n"), number(&reply, "nModified")), (1.0, 1.0));
        }
        assert_eq!(node.find(doc! { "find": "c", "filter": { "_id": 1 } }).await, [doc! { "_id": 1, "a": 1 }]);
        let modify = doc! { "findAndModify": "c", "query": { "_id": 2 }, "update": { "$inc": { "a": 1 } } };
        for _ in 0..2 {
            let reply = node.ok(with(modify.clone(), session_fields(3))).await;
            assert_eq!(reply.get("value").unwrap().as_document().unwrap().to_doc(), doc! { "_id": 2, "a": 0 });
        }
        let delete = doc! { "delete": "c", "deletes": [{ "q": {}, "limit": 1 }] };
        for _ in 0..2 {
            assert_eq!(number(&node.ok(with(delete.clone(), session_fields(4))).await, "n"), 1.0);
        }
        assert_eq!(number(&node.ok(doc! { "count": "c" }).await, "n"), 1.0);
        assert_eq!(node.code(with(insert, session_fields(1))).await, 225, "an older number is refused");
        let multi = doc! { "delete": "c", "deletes": [{ "q": {}, "limit": 0 }] };
        let reply = node.ok(with(multi, session_fields(5))).await;
        assert_eq!(number(&write_error(&reply, 0), "code"), 72.0);
        assert_eq!(node.code(with(doc! { "find": "c" }, session_fields(6))).await, 50768);
    });
}

#[test]
fn r18_acknowledged_writes_survive_a_crash() {
    run(async {
        let disk = ModelDisk::new();
        let mut node = node_on(&disk, ReplicationMode::OneMember("rs0".into())).await;
        node.insert(numbered(20)).await;
        node.ok(doc! { "update": "c", "updates": [{ "q": { "_id": 3 }, "u": { "$set": { "a": "new" } } }] }).await;
        let j = doc! { "delete": "c", "deletes": [{ "q": { "_id": 4 }, "limit": 1 }], "writeConcern": { "w": 1, "j": true } };
        node.ok(j).await;
        disk.crash();
        let mut again = node_on(&disk, ReplicationMode::OneMember("rs0".into())).await;
        assert_eq!(number(&again.ok(doc! { "count": "c" }).await, "n"), 19.0);
        assert_eq!(again.find(doc! { "find": "c", "filter": { "_id": 3 } }).await, [doc! { "_id": 3, "a": "new" }]);
        drop(node.fixture);
    });
}

#[test]
fn r1_an_id_index_of_version_1_is_not_told_and_comes_back() {
    run(async {
        let disk = ModelDisk::new();
        let mut node = node_on(&disk, ReplicationMode::OneMember("rs0".into())).await;
        node.ok(doc! { "create": "old", "idIndex": { "v": 1, "key": { "_id": 1 }, "name": "_id_" } }).await;
        node.ok(doc! { "create": "new" }).await;
        let told = doc! { "find": "oplog.rs", "filter": { "op": "c", "ns": "d.$cmd" }, "sort": { "$natural": 1 } };
        let told = node.find_on("local", told).await;
        let with_index: Vec<bool> = told.iter().map(|entry| part(entry, "o").get("idIndex").is_some()).collect();
        assert_eq!(with_index, [false, true]);
        disk.crash();
        let mut again = node_on(&disk, ReplicationMode::OneMember("rs0".into())).await;
        for (name, version) in [("old", 1.0), ("new", 2.0)] {
            assert_eq!(number(&again.find(doc! { "listIndexes": name }).await[0], "v"), version);
        }
        drop(node.fixture);
    });
}

#[test]
fn r2_write_concerns_are_checked() {
    run(async {
        let mut node = node().await;
        let insert = |concern: Doc| doc! { "insert": "c", "documents": [{}], "writeConcern": concern };
        let reply = node.ok(insert(doc! { "w": 3 })).await;
        let error = reply.get("writeConcernError").unwrap().as_document().unwrap().to_doc();
        assert_eq!((number(&error, "code"), number(&reply, "n")), (100.0, 1.0), "the write is done");
        assert_eq!(node.code(insert(doc! { "w": (-1) })).await, 9);
        assert_eq!(node.code(insert(doc! { "x": 1 })).await, 40415);
        assert!(node.ok(insert(doc! { "w": "majority", "wtimeout": 1000 })).await.get("writeConcernError").is_none());
        let mut alone = node_as(ReplicationMode::StandAlone).await;
        assert_eq!(alone.code(insert(doc! { "w": 2 })).await, 2);
        let reply = alone.ok(insert(doc! { "w": 1 })).await;
        assert!(reply.get("electionId").is_none() && reply.get("$clusterTime").is_none());
        assert_eq!(alone.code(with(doc! { "insert": "c", "documents": [{}] }, session_fields(1))).await, 20);
    });
}

#[test]
fn u9_a_tailing_cursor_waits_for_inserts() {
    run(async {
        let mut node = node().await;
        node.ok(doc! { "insert": "plain", "documents": [{}] }).await;
        assert_eq!(node.code(doc! { "find": "plain", "tailable": true }).await, 2);
        assert_eq!(node.code(doc! { "find": "c", "awaitData": true }).await, 9);
        node.ok(doc! { "create": "c", "capped": true, "size": 10_000 }).await;
        node.insert(numbered(2)).await;
        let reply = node.ok(doc! { "find": "c", "tailable": true, "awaitData": true }).await;
        let id = cursor_id(&reply);
        assert_eq!(batch(&reply, "firstBatch").len(), 2);
        // On the simulated clock the wait is over at once.
        let reply = node.ok(doc! { "getMore": id, "collection": "c", "maxTimeMS": 50 }).await;
        assert_eq!((batch(&reply, "nextBatch").len(), cursor_id(&reply)), (0, id));
        node.insert(vec![doc! { "_id": 9 }]).await;
        let reply = node.ok(doc! { "getMore": id, "collection": "c" }).await;
        assert_eq!((batch(&reply, "nextBatch"), cursor_id(&reply)), (vec![doc! { "_id": 9 }], id));
        node.ok(doc! { "drop": "c" }).await;
        assert_eq!(node.code(doc! { "getMore": id, "collection": "c" }).await, 175);
        assert_eq!(node.code(doc! { "getMore": id, "collection": "c" }).await, 43);
    });
}

#[test]
fn u3_views_are_read_and_not_written() {
    run(async {
        let mut node = node().await;
        node.insert(numbered(30)).await;
        node.ok(doc! { "create": "v", "viewOn": "c", "pipeline": [{ "$match": { "a": { "$lt": 2 } } }] }).await;
        let found = node.find(doc! { "find": "v", "filter": { "a": 1 }, "sort": { "_id": 1 }, "limit": 2 }).await;
        assert_eq!(found, [doc! { "_id": 1, "a": 1 }, doc! { "_id": 11, "a": 1 }]);
        let reply = node.ok(doc! { "count": "v" }).await;
        assert_eq!((number(&reply, "n"), reply.get("ok")), (6.0, Some(Value::Int32(1))));
        assert_eq!(node.code(doc! { "count": "v", "limit": 0 }).await, 15958, "it becomes a stage");
        assert_eq!(node.ok(doc! { "count": "c", "limit": 0 }).await.get("ok"), Some(Value::Double(1.0)));
        let reply = node.ok(doc! { "distinct": "v", "key": "a" }).await;
        assert_eq!(reply.get("ok"), Some(Value::Int32(1)));
        assert_eq!(reply.get("values").unwrap().as_array().unwrap().values().count(), 2);
        let reply = node.ok(doc! { "insert": "v", "documents": [{}] }).await;
        assert_eq!(number(&write_error(&reply, 0), "code"), 166.0);
        assert_eq!(node.code(doc! { "findAndModify": "v", "remove": true }).await, 166);
    });
}

#[test]
fn u3_results_go_into_collections() {
    run(async {
        let mut node = node().await;
        node.insert(numbered(30)).await;
        let into = |stage: Doc| {
            doc! { "aggregate": "c", "cursor": {}, "pipeline": [
                { "$group": { "_id": "$a", "n": { "$sum": 1 } } }, stage,
            ] }
        };
        let reply = node.ok(into(doc! { "$out": "sums" })).await;
        assert_eq!((batch(&reply, "firstBatch").len(), cursor_id(&reply)), (0, 0));
        assert_eq!(number(&node.ok(doc! { "count": "sums" }).await, "n"), 10.0);
        node.ok(doc! { "insert": "sums", "documents": [{ "_id": "old" }] }).await;
        node.ok(into(doc! { "$out": "sums" })).await;
        assert_eq!(number(&node.ok(doc! { "count": "sums" }).await, "n"), 10.0, "the old collection is replaced");

        node.ok(doc! { "insert": "m", "documents": [{ "_id": 1, "x": 7 }, { "_id": 2, "n": 9 }] }).await;
        node.ok(into(doc! { "$merge": { "into": "m" } })).await;
        let found = node.find(doc! { "find": "m", "filter": { "_id": { "$lt": 3 } }, "sort": { "_id": 1 } }).await;
        assert_eq!(found, [doc! { "_id": 0, "n": 3 }, doc! { "_id": 1, "x": 7, "n": 3 }, doc! { "_id": 2, "n": 3 }]);
        let keep = doc! { "$merge": { "into": "m", "whenMatched": "replace", "whenNotMatched": "discard" } };
        node.ok(into(keep)).await;
        assert_eq!(node.find(doc! { "find": "m", "filter": { "_id": 1 } }).await, [doc! { "_id": 1, "n": 3 }]);
        assert_eq!(node.code(into(doc! { "$merge": { "into": "m", "whenMatched": "fail" } })).await, 11000);
        assert_eq!(node.code(into(doc! { "$merge": { "into": "m", "on": "n" } })).await, 51183);
        assert_eq!(number(&node.ok(doc! { "count": "m" }).await, "n"), 10.0);

        // Every result of a batch is tried before the error is told; the fields are checked before there are results.
        node.ok(doc! { "insert": "f", "documents": [{ "_id": 4, "old": true }] }).await;
        let failing = into(doc! { "$merge": { "into": "f", "whenMatched": "fail" } });
        let reply = node.client.ask(with_database(&failing, "d")).await;
        assert_eq!(number(&reply, "code"), 11000.0);
        assert!(reply.to_string().contains("whenMatched: fail found an existing document"), "{reply}");
        assert_eq!(number(&node.ok(doc! { "count": "f" }).await, "n"), 10.0);
        let none = doc! { "$merge": { "into": "nowhere", "on": "x" } };
        let nothing = doc! { "aggregate": "c", "cursor": {}, "pipeline": [{ "$match": { "_id": "none" } }, none] };
        assert_eq!(node.code(nothing).await, 51183);
        // A view is read when it is made.
        let lookup = doc! { "$lookup": { "from": "c", "as": "x", "pipeline": [{ "$merge": "f" }] } };
        assert_eq!(node.code(doc! { "create": "v", "viewOn": "c", "pipeline": [lookup] }).await, 51047);
    });
}

#[test]
fn u1_a_merge_that_changes_nothing_goes_on_to_its_end() {
    run(async {
        let mut node = node().await;
        let merge = doc! { "aggregate": 1, "cursor": {}, "pipeline": [
            { "$documents": [{ "n": { "$range": [0, 1200] } }] }, { "$unwind": "$n" }, { "$project": { "_id": "$n" } },
            { "$merge": "m" },
        ] };
        for _ in 0..3 {
            node.ok(merge.clone()).await;
            assert_eq!(number(&node.ok(doc! { "count": "m" }).await, "n"), 1200.0);
        }
    });
}

#[test]
fn u1_exhaust_streams_the_batches_of_a_cursor() {
    run(async {
        let mut node = node().await;
        node.insert((0..5).map(|id| doc! { "_id": id }).collect()).await;
        let first = node.ok(doc! { "find": "c", "batchSize": 1 }).await;
        let id = first.get("cursor").unwrap().as_document().unwrap().get("id").unwrap();
        let more = with_database(&doc! { "getMore": id, "collection": "c", "batchSize": 2 }, "d");
        node.client.send(MsgFlags::EXHAUST_ALLOWED, &more).await;
        let mut found = Vec::new();
        loop {
            let reply = node.client.read().await.unwrap();
            found.extend(batch(&reply.body().to_doc(), "nextBatch"));
            if !reply.more_to_come() {
                break;
            }
        }
        assert_eq!(found, (1..5).map(|id| doc! { "_id": id }).collect::<Vec<_>>());
        assert_eq!(number(&node.ok(doc! { "ping": 1 }).await, "ok"), 1.0, "the stream is over");
    });
}

#[test]
fn r8_snapshot_reads_tell_their_time_and_keep_it() {
    run(async {
        let mut node = node().await;
        node.insert((0..3).map(|id| doc! { "_id": id }).collect()).await;
        let concern = doc! { "level": "snapshot" };
        let first = node.ok(doc! { "find": "c", "sort": { "_id": 1 }, "batchSize": 1, "readConcern": &concern }).await;
        let cursor = first.get("cursor").unwrap().as_document().unwrap().to_doc();
        let time = cursor.get("atClusterTime").expect("the time that was chosen");
        node.ok(doc! { "delete": "c", "deletes": [{ "q": {}, "limit": 0 }] }).await;
        let id = cursor.get("id").unwrap();
        let more = node.ok(doc! { "getMore": id, "collection": "c", "readConcern": &concern }).await;
        assert_eq!(batch(&more, "nextBatch").len(), 2, "deleted after that time");
        let told = more.get("cursor").unwrap().as_document().unwrap().get("atClusterTime");
        assert_eq!(told, Some(time));
        let again = doc! { "level": "snapshot", "atClusterTime": time };
        let distinct = node.ok(doc! { "distinct": "c", "key": "_id", "readConcern": again }).await;
        assert_eq!(distinct.get("values").unwrap().as_array().unwrap().len(), 3);
        assert_eq!(distinct.get("atClusterTime"), Some(time));
        // Neither count nor writes read so.
        for refused in [
            doc! { "count": "c", "readConcern": &concern },
            doc! { "insert": "c", "documents": [{}], "readConcern": &concern },
            doc! { "findAndModify": "c", "remove": true, "readConcern": &concern },
        ] {
            assert_eq!(node.code(refused).await, 72);
        }
    });
}

#[test]
fn r8_linearizable_reads_are_confirmed_and_end_in_no_write() {
    run(async {
        let mut node = node().await;
        node.insert(vec![doc! { "_id": 1 }]).await;
        let concern = doc! { "level": "linearizable" };
        let before = node.ok(doc! { "ping": 1 }).await.get("operationTime").unwrap().to_owned();
        assert_eq!(node.find(doc! { "find": "c", "readConcern": &concern }).await.len(), 1);
        let after = node.ok(doc! { "ping": 1 }).await.get("operationTime").unwrap().to_owned();
        assert_ne!(before, after, "an entry of ours was taken by the majority");
        for stage in [doc! { "$out": "o" }, doc! { "$merge": "o" }] {
            let body = doc! { "aggregate": "c", "pipeline": [stage], "cursor": {}, "readConcern": &concern };
            assert_eq!(node.code(body).await, 72);
        }
    });
}

#[test]
fn r2_a_command_that_fails_tells_of_its_write_concern_too() {
    run(async {
        let mut node = node().await;
        node.ok(doc! { "create": "a" }).await;
        node.ok(doc! { "create": "b" }).await;
        let mut rename = DocBuilder::new();
        rename.append_all(
            doc! { "renameCollection": "d.a", "to": "d.b", "writeConcern": { "w": 2, "wtimeout": 1 } }.view(),
        );
        rename.append("$db", "admin");
        let reply = node.client.ask(rename.finish()).await;
        assert_eq!(number(&reply, "code"), 48.0, "{reply}");
        let error = reply.get("writeConcernError").unwrap().as_document().unwrap().to_doc();
        assert_eq!(number(&error, "code"), 100.0, "{reply}");
    });
}

#[test]
fn b2_a_node_has_its_compatibility_version_from_the_start() {
    run(async {
        for replication in [ReplicationMode::StandAlone, ReplicationMode::OneMember("rs0".into())] {
            let disk = ModelDisk::new();
            for _ in 0..2 {
                let mut node = node_on(&disk, replication.clone()).await;
                let find = doc! { "find": "system.version", "$db": "admin" };
                let found = batch(&node.client.ask(find).await, "firstBatch");
                assert_eq!(found, vec![doc! { "_id": "featureCompatibilityVersion", "version": "7.0" }]);
                node.fixture.server.shut_down().await.unwrap();
            }
        }
    });
}

#[test]
fn u3_the_keys_of_an_index_come_without_record_ids() {
    run(async {
        let mut node = node().await;
        node.insert(vec![doc! { "_id": 1, "a": 2 }]).await;
        let body = doc! { "find": "c", "sort": { "_id": 1 }, "returnKey": true, "showRecordId": true };
        assert_eq!(node.find(body).await, vec![doc! { "_id": 1 }]);
    });
}

#[test]
fn u2_empty_timestamps_of_whole_documents_become_the_present_one() {
    run(async {
        let mut node = node().await;
        let empty = pando_base::Timestamp::NONE;
        for (keeps, first) in [(false, 0), (true, 100)] {
            let keep = |body: Doc| {
                let mut with_option = DocBuilder::new();
                with_option.append_all(body.view());
                with_option.append("bypassEmptyTsReplacement", keeps);
                with_option.finish()
            };
            let id = |place: i32| first + place;
            let documents = doc! { "insert": "c", "documents": [
                { "_id": (id(0)), "t": empty }, { "_id": (id(1)) }, { "_id": (id(2)) }, { "_id": (id(3)) },
            ] };
            node.ok(keep(documents)).await;
            let replace = |place: i32| doc! { "q": { "_id": (id(place)) }, "u": { "t": empty }, "upsert": true };
            let operators = |place: i32| {
                doc! { "q": { "_id": (id(place)) }, "u": { "$set": { "t": empty } }, "upsert": true }
            };
            let updates = [replace(1), replace(4), operators(3), operators(6)];
            for update in updates {
                node.ok(keep(doc! { "update": "c", "updates": [update] })).await;
            }
            for place in [2, 5] {
                let body = doc! { "findAndModify": "c", "query": { "_id": (id(place)) }, "update": { "t": empty }, "upsert": true };
                node.ok(keep(body)).await;
            }
            for place in 0..7 {
                let found = node.find(doc! { "find": "c", "filter": { "_id": (id(place)) } }).await;
                let is_filled = found[0].get("t") != Some(Value::Timestamp(empty));
                assert_eq!(is_filled, !keeps && ![3, 6].contains(&place), "{}", found[0]);
            }
        }
        // An `_id` is what the client chose.
        node.ok(doc! { "insert": "c", "documents": [{ "_id": empty }] }).await;
        node.ok(doc! { "update": "c", "updates": [{ "q": { "_id": empty }, "u": { "_id": empty, "t": empty } }] })
            .await;
        let found = node.find(doc! { "find": "c", "filter": { "_id": empty } }).await;
        assert!(found.len() == 1 && found[0].get("t") != Some(Value::Timestamp(empty)));
    });
}

#[test]
fn u7_a_pipeline_of_no_stages_refuses_the_whole_update() {
    run(async {
        let mut node = node().await;
        node.insert(vec![doc! { "_id": 1 }]).await;
        let update = |stage: Doc| {
            doc! { "update": "c", "updates": [{ "q": {}, "u": { "$set": { "a": 1 } } }, { "q": {}, "u": [stage] }] }
        };
        assert_eq!(node.code(update(doc! { "$nonsense": true })).await, 40324);
        assert_eq!(node.code(update(doc! { "$set": {}, "$unset": "a" })).await, 40323);
        assert_eq!(node.find(doc! { "find": "c" }).await, [doc! { "_id": 1 }], "nothing was run");
        let reply = node.ok(update(doc! { "$lookup": {} })).await;
        assert_eq!(number(&write_error(&reply, 0), "code"), 72.0, "a stage, but not one of updates");
    });
}

#[test]
fn files_in_chunks_have_their_md5() {
    run(async {
        let mut node = node().await;
        let chunk =
            |n: i32, data: &[u8]| doc! { "files_id": 1, "n": n, "data": (Value::Binary { subtype: 0, bytes: data }) };
        node.insert_into("fs.chunks", &[chunk(0, b"abc"), chunk(1, b"def")]).await;
        assert_eq!(node.code(doc! { "filemd5": 1, "root": "fs" }).await, 291, "it reads no collection from end to end");
        let index = doc! { "key": { "files_id": 1, "n": 1 }, "name": "files_id_1_n_1" };
        node.ok(doc! { "createIndexes": "fs.chunks", "indexes": [index] }).await;
        let whole = node.ok(doc! { "filemd5": 1, "root": "fs" }).await;
        assert_eq!(
            (number(&whole, "numChunks"), text(&whole, "md5").as_str()),
            (2.0, "e80b5017098950fc58aad83c8c14978e")
        );
        let none = node.ok(doc! { "filemd5": 7, "root": "fs" }).await;
        assert_eq!(
            (number(&none, "numChunks"), text(&none, "md5").as_str()),
            (0.0, "d41d8cd98f00b204e9800998ecf8427e")
        );
        // In two parts: the second begins where the first has ended.
        node.insert_into(
            "fs.chunks",
            &[doc! { "files_id": 2, "n": 0, "data": (Value::Binary { subtype: 0, bytes: b"abc" }) }],
        )
        .await;
        let first = node.ok(doc! { "filemd5": 2, "root": "fs", "partialOk": true }).await;
        node.insert_into(
            "fs.chunks",
            &[doc! { "files_id": 2, "n": 1, "data": (Value::Binary { subtype: 0, bytes: b"def" }) }],
        )
        .await;
        let state = first.get("md5state").unwrap();
        let rest = doc! { "filemd5": 2, "root": "fs", "partialOk": true, "md5state": state, "startAt": 1 };
        assert_eq!(text(&node.ok(rest).await, "md5"), text(&whole, "md5"));
        node.insert_into("fs.chunks", &[doc! { "files_id": 3, "n": 1 }, doc! { "files_id": 4, "n": 0 }]).await;
        assert_eq!(node.code(doc! { "filemd5": 3, "root": "fs" }).await, 10040);
        assert_eq!(node.code(doc! { "filemd5": 4, "root": "fs" }).await, 50848);
    });
}

#[test]
fn u3_requests_are_read_as_they_are_declared() {
    run(async {
        let mut node = node().await;
        node.insert(numbered(30)).await;
        for field in ["filter", "projection", "sort", "min", "collation", "singleBatch", "allowDiskUse", "tailable"] {
            assert_eq!(node.code(doc! { "find": "c", (field): (Value::Null) }).await, 14, "{field}");
        }
        assert_eq!(node.code(doc! { "find": "c", "singleBatch": 1 }).await, 14);
        let explained =
            doc! { "aggregate": "c", "pipeline": [], "explain": true, "readConcern": { "level": "majority" } };
        assert_eq!(node.code(explained).await, 72);
        let cached = doc! { "aggregate": "c", "pipeline": [{ "$planCacheStats": {} }], "cursor": {}, "readConcern": { "level": "majority" } };
        assert_eq!(node.code(cached).await, 72);
        assert_eq!(node.code(doc! { "getMore": (Value::Null), "collection": "c" }).await, 40414);
        let stats = |options: Doc| doc! { "aggregate": "c", "pipeline": [{ "$collStats": options }], "cursor": {} };
        assert_eq!(node.code(stats(doc! { "latencyStats": { "x": 1 }, "count": { "x": 1 } })).await, 40415);
        assert_eq!(node.code(stats(doc! { "queryExecStats": { "x": 1 } })).await, 31170);
        assert_eq!(node.code(stats(doc! { "latencyStats": { "histograms": (Value::Null) } })).await, 14);
        node.ok(stats(doc! { "count": (Value::Null), "count": {}, "storageStats": { "other": 1 } })).await;
        assert_eq!(node.code(stats(doc! { "count": {}, "count": {} })).await, 40413);
        // A cursor is known by its number.
        let first = node.ok(doc! { "find": "c", "batchSize": 2 }).await;
        let killed = node.ok(doc! { "killCursors": "other", "cursors": [(cursor_id(&first))] }).await;
        assert_eq!(killed.get("cursorsKilled").and_then(|list| list.as_array()).unwrap().len(), 1);
        // Nobody is told of writes without a write concern.
        let silent = doc! { "update": "c", "updates": [{ "q": {}, "u": { "a": 2 }, "multi": true }], "writeConcern": { "w": 0 } };
        let reply = node.ok(silent).await;
        assert_eq!((reply.get("writeErrors"), number(&reply, "n")), (None, 0.0));
    });
}

#[test]
fn u3_outputs_are_checked_by_name_and_see_the_command_s_variables() {
    run(async {
        let mut node = node().await;
        node.insert(vec![doc! { "_id": 1 }]).await;
        let into = |stage: Doc| doc! { "aggregate": "c", "pipeline": [stage], "cursor": {} };
        assert_eq!(node.code(into(doc! { "$out": "$name" })).await, 20);
        assert_eq!(node.code(into(doc! { "$out": ("x".repeat(254)) })).await, 20);
        assert_eq!(node.code(into(doc! { "$out": { "db": "a b", "coll": "x" } })).await, 73);
        let explained =
            doc! { "aggregate": "c", "pipeline": [{ "$merge": { "into": "m", "on": "other" } }], "explain": true };
        assert_eq!(node.code(explained).await, 51183);
        node.ok(doc! { "insert": "m", "documents": [{ "_id": 1 }] }).await;
        let merged = doc! { "aggregate": "c", "cursor": {}, "let": { "mine": 7 }, "pipeline": [
            { "$merge": { "into": "m", "whenMatched": [{ "$set": { "x": "$$mine" } }] } },
        ] };
        node.ok(merged).await;
        assert_eq!(node.find(doc! { "find": "m" }).await, [doc! { "_id": 1, "x": 7 }]);
    });
}

#[test]
fn u3_an_index_with_the_simple_collation_does_not_inherit() {
    run(async {
        let mut node = node().await;
        node.ok(doc! { "create": "t", "collation": { "locale": "en", "strength": 2 } }).await;
        let index = doc! { "key": { "x": 1 }, "name": "x", "unique": true, "collation": { "locale": "simple" } };
        node.ok(doc! { "createIndexes": "t", "indexes": [index] }).await;
        let reply = node.ok(doc! { "insert": "t", "documents": [{ "x": "a" }, { "x": "A" }] }).await;
        assert_eq!(number(&reply, "n"), 2.0, "{reply}");
        assert_eq!(
            node.code(doc! { "createIndexes": "t", "indexes": [{ "key": { "y": "text" }, "name": "y" }] }).await,
            67
        );
    });
}
