//! Change streams over the wire.

use super::node::{Node, batch, cursor_id, durable_node, node, node_as, part};
use super::*;
use pando_base::Uuid;
use pando_doc::{DocBuilder, Value};

/// A stream that a client has open.
struct Stream {
    database: &'static str,
    collection: &'static str,
    id: i64,
    /// `postBatchResumeToken` of the last reply.
    token: Doc,
    /// Events that were not taken yet.
    events: Vec<Doc>,
    is_invalidated: bool,
}

/// How a stream is opened.
fn watching(collection: Value<'_>, options: &Doc, stages: &[Doc]) -> Doc {
    let mut body = DocBuilder::new();
    body.append("aggregate", collection);
    body.array("pipeline", |pipeline| {
        pipeline.document(|stage| stage.append("$changeStream", options));
        stages.iter().for_each(|stage| pipeline.push(stage));
    });
    body.append("cursor", Doc::new());
    body.finish()
}

impl Stream {
    async fn open(node: &mut Node, options: Doc, stages: &[Doc]) -> Stream {
        let body = watching(Value::String("c".into()), &options, stages);
        let reply = node.ok(body).await;
        Stream::of("d", "c", &reply, "firstBatch")
    }

    async fn open_whole(node: &mut Node, database: &'static str, options: Doc) -> Stream {
        let body = watching(Value::Int32(1), &options, &[]);
        let reply = node.ok_on(database, body).await;
        Stream::of(database, "$cmd.aggregate", &reply, "firstBatch")
    }

    fn of(database: &'static str, collection: &'static str, reply: &Doc, name: &str) -> Stream {
        let cursor = part(reply, "cursor");
        Stream {
            database,
            collection,
            id: cursor_id(reply),
            token: part(&cursor, "postBatchResumeToken"),
            events: batch(reply, name),
            is_invalidated: cursor.get("invalidated").is_some(),
        }
    }

    async fn get_more(&mut self, node: &mut Node) -> Doc {
        let body = doc! { "getMore": (self.id), "collection": (self.collection), "maxTimeMS": 1 };
        node.run_on(self.database, body).await
    }

    /// The next so many events.
    async fn take(&mut self, node: &mut Node, count: usize) -> Vec<Doc> {
        for _ in 0..50 {
            if self.events.len() >= count {
                break;
            }
            let reply = self.get_more(node).await;
            assert_eq!(number(&reply, "ok"), 1.0, "{reply}");
            let next = Stream::of(self.database, self.collection, &reply, "nextBatch");
            let before = std::mem::take(&mut self.events);
            *self = Stream { events: before.into_iter().chain(next.events).collect(), ..next };
        }
        assert_eq!(self.events.len(), count, "{:?}", self.events);
        std::mem::take(&mut self.events)
    }

    async fn one(&mut self, node: &mut Node) -> Doc {
        self.take(node, 1).await.remove(0)
    }
}

fn kind(event: &Doc) -> String {
    event.get("operationType").and_then(|kind| kind.as_str()).unwrap_or_default().to_owned()
}

fn kinds(events: &[Doc]) -> Vec<String> {
    events.iter().map(kind).collect()
}

fn token(event: &Doc) -> Doc {
    part(event, "_id")
}

/// An event without what depends on the moment.
fn content(event: &Doc) -> Doc {
    let mut builder = DocBuilder::new();
    let changing = ["_id", "clusterTime", "wallTime", "collectionUUID", "lsid"];
    let kept = event.view().raw_elements().filter(|field| changing.iter().all(|name| field.name != *name));
    kept.for_each(|field| builder.append_raw(field));
    builder.finish()
}

fn update(filter: Doc, update: Doc) -> Doc {
    doc! { "update": "c", "updates": [{ "q": filter, "u": update }] }
}

fn delete(filter: Doc) -> Doc {
    doc! { "delete": "c", "deletes": [{ "q": filter, "limit": 1 }] }
}

#[test]
fn u13_documents_that_are_inserted_updated_replaced_and_deleted() {
    run(async {
        let mut node = node().await;
        let mut stream = Stream::open(&mut node, doc! {}, &[]).await;
        assert!(stream.events.is_empty() && stream.id != 0);
        node.insert(vec![doc! { "_id": 1, "a": 1 }]).await;
        node.ok(update(doc! { "_id": 1 }, doc! { "$set": { "a": 2, "b": [1, 2] } })).await;
        node.ok(update(doc! { "_id": 1 }, doc! { "$push": { "b": 3 }, "$unset": { "a": 1 } })).await;
        node.ok(update(doc! { "_id": 1 }, doc! { "x": 1 })).await;
        node.ok(delete(doc! { "_id": 1 })).await;
        let ns = doc! { "db": "d", "coll": "c" };
        let key = doc! { "_id": 1 };
        let events = stream.take(&mut node, 5).await;
        let expected = [
            doc! { "operationType": "insert", "fullDocument": { "_id": 1, "a": 1 }, "ns": (&ns), "documentKey": (&key) },
            doc! {
                "operationType": "update", "ns": (&ns), "documentKey": (&key),
                "updateDescription": { "updatedFields": { "a": 2, "b": [1, 2] }, "removedFields": [], "truncatedArrays": [] },
            },
            doc! {
                "operationType": "update", "ns": (&ns), "documentKey": (&key),
                "updateDescription": { "updatedFields": { "b.2": 3 }, "removedFields": ["a"], "truncatedArrays": [] },
            },
            doc! { "operationType": "replace", "fullDocument": { "_id": 1, "x": 1 }, "ns": (&ns), "documentKey": (&key) },
            doc! { "operationType": "delete", "ns": (&ns), "documentKey": (&key) },
        ];
        assert_eq!(events.iter().map(content).collect::<Vec<_>>(), expected);
        assert_eq!(stream.token, token(&events[4]), "the reply's token is that of its last event");
        let data = |event: &Doc| token(event).get("_data").unwrap().as_str().unwrap().to_owned();
        assert!(events.iter().map(data).is_sorted() && data(&events[0]).starts_with("82"));
        // Another collection's events move the token on.
        node.insert_into("other", &[doc! {}]).await;
        let before = stream.token.clone();
        stream.take(&mut node, 0).await;
        let reply = stream.get_more(&mut node).await;
        let after = part(&part(&reply, "cursor"), "postBatchResumeToken");
        assert!(after.to_string() > before.to_string(), "{before} {after}");
        // From every place it goes on right behind it.
        for (place, event) in events.iter().enumerate() {
            let left = 4 - place;
            for name in ["resumeAfter", "startAfter"] {
                let mut options = DocBuilder::new();
                options.append(name, token(event));
                let mut again = Stream::open(&mut node, options.finish(), &[]).await;
                assert_eq!(again.take(&mut node, left).await, events[place + 1..]);
            }
        }
        let time = events[2].get("clusterTime").unwrap();
        let mut again = Stream::open(&mut node, doc! { "startAtOperationTime": time }, &[]).await;
        assert_eq!(again.take(&mut node, 3).await, events[2..]);
    });
}

#[test]
fn u13_a_database_that_lost_its_collections_is_dropped_all_the_same() {
    run(async {
        let mut node = node().await;
        node.insert(vec![doc! { "_id": 1 }]).await;
        let mut database = Stream::open_whole(&mut node, "d", doc! {}).await;
        node.ok(doc! { "drop": "c" }).await;
        node.ok(doc! { "dropDatabase": 1 }).await;
        let events = database.take(&mut node, 3).await;
        assert_eq!(kinds(&events), ["drop", "dropDatabase", "invalidate"]);
        // Now there is nothing left to drop.
        node.ok(doc! { "dropDatabase": 1 }).await;
        let told = doc! { "find": "oplog.rs", "filter": { "o.dropDatabase": 1, "ns": "d.$cmd" } };
        assert_eq!(node.find_on("local", told).await.len(), 1);
    });
}

#[test]
fn u13_whole_databases_and_the_whole_cluster() {
    run(async {
        let mut node = node().await;
        let mut database = Stream::open_whole(&mut node, "d", doc! {}).await;
        let mut cluster = Stream::open_whole(&mut node, "admin", doc! { "allChangesForCluster": true }).await;
        node.insert(vec![doc! { "_id": 1 }]).await;
        node.ok_on("e", doc! { "insert": "x", "documents": [{ "_id": 2 }] }).await;
        node.ok_on("config", doc! { "insert": "x", "documents": [{ "_id": 3 }] }).await;
        node.ok(doc! { "dropDatabase": 1 }).await;
        let events = database.take(&mut node, 4).await;
        assert_eq!(kinds(&events), ["insert", "drop", "dropDatabase", "invalidate"]);
        assert_eq!(part(&events[2], "ns"), doc! { "db": "d" });
        assert!(database.is_invalidated && database.id == 0);
        let events = cluster.take(&mut node, 4).await;
        assert_eq!(kinds(&events), ["insert", "insert", "drop", "dropDatabase"]);
        assert_eq!(part(&events[1], "ns"), doc! { "db": "e", "coll": "x" });
        assert!(!cluster.is_invalidated);
    });
}

#[test]
fn u13_a_stream_ends_with_its_collection() {
    run(async {
        let mut node = node().await;
        node.insert(vec![doc! { "_id": 1 }]).await;
        let mut stream = Stream::open(&mut node, doc! {}, &[]).await;
        // A filter does not keep it from ending.
        let mut filtered = Stream::open(&mut node, doc! {}, &[doc! { "$match": { "operationType": "insert" } }]).await;
        node.ok(doc! { "drop": "c" }).await;
        node.insert(vec![doc! { "_id": 2 }]).await;
        let events = stream.take(&mut node, 2).await;
        assert_eq!(kinds(&events), ["drop", "invalidate"]);
        assert_eq!((stream.id, stream.is_invalidated, &stream.token), (0, true, &token(&events[1])));
        let reply = filtered.get_more(&mut node).await;
        let end = Stream::of("d", "c", &reply, "nextBatch");
        assert_eq!((end.id, end.is_invalidated, end.events, end.token), (0, true, vec![], token(&events[1])));
        let resume = doc! { "resumeAfter": (token(&events[1])) };
        assert_eq!(node.code(watching(Value::String("c".into()), &resume, &[])).await, 260);
        let mut again = Stream::open(&mut node, doc! { "startAfter": (token(&events[1])) }, &[]).await;
        assert_eq!(kind(&again.one(&mut node).await), "insert");
        // From the drop on, it is told of the end once more.
        let mut again = Stream::open(&mut node, doc! { "resumeAfter": (token(&events[0])) }, &[]).await;
        assert_eq!(kind(&again.one(&mut node).await), "invalidate");
        let mut renamed = Stream::open(&mut node, doc! {}, &[]).await;
        node.ok_on("admin", doc! { "renameCollection": "d.c", "to": "d.z" }).await;
        let events = renamed.take(&mut node, 2).await;
        assert_eq!(kinds(&events), ["rename", "invalidate"]);
        assert_eq!(part(&events[0], "to"), doc! { "db": "d", "coll": "z" });
    });
}

#[test]
fn u13_transactions_are_told_operation_by_operation() {
    run(async {
        let mut node = node().await;
        node.insert(vec![doc! { "_id": 0 }]).await;
        node.insert_into("other", &[doc! { "_id": 0 }]).await;
        let mut stream = Stream::open(&mut node, doc! {}, &[]).await;
        let id = Uuid::from_random([3; 16]);
        let session = doc! { "id": (Value::Binary { subtype: 4, bytes: id.as_bytes() }) };
        let statement = |body: Doc, start: bool| {
            let mut builder = DocBuilder::new();
            builder.append_all(body.view());
            builder.append("lsid", &session);
            builder.append("txnNumber", 5_i64);
            builder.append("autocommit", false);
            builder.append_some("startTransaction", start.then_some(true));
            builder.finish()
        };
        let insert = |name: &str, id: i32| doc! { "insert": name, "documents": [{ "_id": id }] };
        node.ok(statement(insert("other", 1), true)).await;
        node.ok(statement(insert("c", 1), false)).await;
        node.ok(statement(insert("other", 2), false)).await;
        node.ok(statement(update(doc! { "_id": 0 }, doc! { "$set": { "x": 1 } }), false)).await;
        node.ok(statement(insert("c", 2), false)).await;
        node.ok_on("admin", statement(doc! { "commitTransaction": 1 }, false)).await;
        node.insert(vec![doc! { "_id": 9 }]).await;
        let events = stream.take(&mut node, 4).await;
        assert_eq!(kinds(&events), ["insert", "update", "insert", "insert"]);
        for event in &events[..3] {
            assert_eq!(event.get("txnNumber"), Some(Value::Int64(5)));
            assert_eq!(part(event, "lsid").get("id"), session.get("id"));
            assert_eq!(event.get("clusterTime"), events[0].get("clusterTime"));
        }
        assert_eq!(events[3].get("txnNumber"), None);
        for place in 0..4 {
            let mut again = Stream::open(&mut node, doc! { "resumeAfter": (token(&events[place])) }, &[]).await;
            assert_eq!(again.take(&mut node, 3 - place).await, events[place + 1..]);
        }
    });
}

#[test]
fn u13_expanded_events() {
    run(async {
        let mut node = node().await;
        let mut stream = Stream::open_whole(&mut node, "d", doc! { "showExpandedEvents": true }).await;
        let mut classic = Stream::open_whole(&mut node, "d", doc! {}).await;
        node.ok(doc! { "create": "c" }).await;
        node.ok(doc! { "createIndexes": "c", "indexes": [{ "key": { "a": 1 }, "name": "a_1" }] }).await;
        node.ok(doc! { "collMod": "c", "index": { "name": "a_1", "hidden": true } }).await;
        node.ok(doc! { "dropIndexes": "c", "index": "a_1" }).await;
        node.insert(vec![doc! { "_id": 1, "a": { "0": 1 } }]).await;
        node.ok(update(doc! { "_id": 1 }, doc! { "$set": { "a.0": 2 } })).await;
        node.ok(doc! { "create": "v", "viewOn": "c", "pipeline": [] }).await;
        node.ok(doc! { "drop": "v" }).await;
        let events = stream.take(&mut node, 8).await;
        let expected = ["create", "createIndexes", "modify", "dropIndexes", "insert", "update", "create", "drop"];
        assert_eq!(kinds(&events), expected);
        let specification = doc! { "v": 2, "key": { "a": 1 }, "name": "a_1" };
        assert_eq!(part(&events[1], "operationDescription"), doc! { "indexes": [(&specification)] });
        assert_eq!(part(&events[2], "operationDescription"), doc! { "index": { "name": "a_1", "hidden": true } });
        assert_eq!(part(&part(&events[2], "stateBeforeChange"), "indexOptions"), doc! { "hidden": false });
        assert_eq!(part(&part(&events[5], "updateDescription"), "disambiguatedPaths"), doc! { "a.0": ["a", "0"] });
        assert!(events[..6].iter().all(|event| event.get("collectionUUID").is_some()));
        assert_eq!(part(&events[6], "ns"), doc! { "db": "d", "coll": "v" });
        assert_eq!(part(&events[6], "operationDescription").get("viewOn"), Some(Value::String("c".into())));
        let events = classic.take(&mut node, 2).await;
        assert_eq!(kinds(&events), ["insert", "update"]);
        assert!(events[0].get("collectionUUID").is_none());
    });
}

#[test]
fn u13_documents_are_looked_up() {
    run(async {
        let mut node = node().await;
        node.insert(vec![doc! { "_id": 1, "a": 1 }, doc! { "_id": 2, "a": 1 }]).await;
        let mut stream = Stream::open(&mut node, doc! { "fullDocument": "updateLookup" }, &[]).await;
        node.ok(update(doc! { "_id": 1 }, doc! { "$set": { "a": 2 } })).await;
        node.ok(update(doc! { "_id": 2 }, doc! { "$set": { "a": 2 } })).await;
        node.ok(update(doc! { "_id": 1 }, doc! { "$set": { "b": 3 } })).await;
        node.ok(delete(doc! { "_id": 2 })).await;
        let events = stream.take(&mut node, 4).await;
        assert_eq!(part(&events[0], "fullDocument"), doc! { "_id": 1, "a": 2, "b": 3 });
        assert_eq!(events[1].get("fullDocument"), Some(Value::Null), "it is gone by now");
        assert_eq!(part(&events[2], "fullDocument"), doc! { "_id": 1, "a": 2, "b": 3 });
    });
}

#[test]
fn u13_what_a_stream_may_not_be() {
    run(async {
        let mut node = node().await;
        node.insert(vec![doc! { "_id": 1 }]).await;
        node.ok(doc! { "create": "v", "viewOn": "c", "pipeline": [] }).await;
        let stream = |options: Doc, stages: &[Doc]| watching(Value::String("c".into()), &options, stages);
        let with_concern = |level: &str| {
            let mut body = DocBuilder::new();
            body.append_all(stream(doc! {}, &[]).view());
            body.append("readConcern", doc! { "level": level });
            body.finish()
        };
        assert_eq!(node.code(with_concern("local")).await, 72);
        node.ok(with_concern("majority")).await;
        assert_eq!(node.code(stream(doc! {}, &[doc! { "$group": { "_id": 1 } }])).await, 20);
        assert_eq!(node.code(stream(doc! {}, &[doc! { "$sort": { "_id": 1 } }])).await, 20);
        let in_facet =
            doc! { "aggregate": "c", "pipeline": [{ "$facet": { "a": [{ "$changeStream": {} }] } }], "cursor": {} };
        assert_eq!(node.code(in_facet).await, 40600);
        let later = doc! { "aggregate": "c", "pipeline": [{ "$match": {} }, { "$changeStream": {} }], "cursor": {} };
        assert_eq!(node.code(later).await, 40602);
        assert_eq!(node.code(watching(Value::String("v".into()), &doc! {}, &[])).await, 166);
        assert_eq!(node.code(watching(Value::String("system.js".into()), &doc! {}, &[])).await, 73);
        for database in ["admin", "config", "local"] {
            assert_eq!(node.code_on(database, watching(Value::Int32(1), &doc! {}, &[])).await, 73, "{database}");
        }
        assert_eq!(node.code(watching(Value::Int32(1), &doc! { "allChangesForCluster": true }, &[])).await, 72);
        assert_eq!(node.code(stream(doc! { "x": 1 }, &[])).await, 40415);
        assert_eq!(node.code(stream(doc! { "fullDocument": "x" }, &[])).await, 2);
        assert_eq!(node.code(stream(doc! { "resumeAfter": {} }, &[])).await, 40647);
        assert_eq!(
            node.code(stream(doc! {}, &[doc! { "$changeStreamSplitLargeEvent": {} }, doc! { "$match": {} }])).await,
            7182802
        );
        let split = doc! { "aggregate": "c", "pipeline": [{ "$changeStreamSplitLargeEvent": {} }], "cursor": {} };
        assert_eq!(node.code(split).await, 20);
        node.ok(stream(doc! {}, &[doc! { "$match": { "a": 1 } }, doc! { "$changeStreamSplitLargeEvent": {} }])).await;
        let mut alone = node_as(ReplicationMode::StandAlone).await;
        assert_eq!(alone.code(stream(doc! {}, &[])).await, 40573);
    });
}

#[test]
fn u13_the_token_of_an_event_may_not_be_changed() {
    run(async {
        let mut node = node().await;
        let mut stream = Stream::open(&mut node, doc! {}, &[doc! { "$project": { "_id": 0 } }]).await;
        node.insert(vec![doc! { "_id": 1 }]).await;
        let mut reply = stream.get_more(&mut node).await;
        while number(&reply, "ok") == 1.0 {
            reply = stream.get_more(&mut node).await;
        }
        assert_eq!(number(&reply, "code"), 280.0, "{reply}");
        let labels = reply.get("errorLabels").and_then(|labels| labels.as_array()).unwrap();
        assert!(labels.values().any(|label| label.as_str() == Some("NonResumableChangeStreamError")), "{reply}");
    });
}

#[test]
fn u13_filters_and_projections_behind_a_stream() {
    run(async {
        let mut node = node().await;
        let stages = [
            doc! { "$match": { "fullDocument.a": { "$gte": 2 }, "operationType": "insert" } },
            doc! { "$project": { "fullDocument.a": 1 } },
            doc! { "$addFields": { "twice": { "$multiply": ["$fullDocument.a", 2] } } },
        ];
        let mut stream = Stream::open(&mut node, doc! {}, &stages).await;
        node.insert((0..4).map(|a| doc! { "_id": a, "a": a }).collect()).await;
        let events = stream.take(&mut node, 2).await;
        assert_eq!(content(&events[0]), doc! { "fullDocument": { "a": 2 }, "twice": 4 });
        // A token that the filter leaves out is not found again.
        let mut all = Stream::open(&mut node, doc! { "resumeAfter": (token(&events[0])) }, &[]).await;
        let last = all.one(&mut node).await;
        assert_eq!(token(&last), token(&events[1]));
        let resume = doc! { "resumeAfter": (token(&events[0])) };
        let filter = doc! { "$match": { "fullDocument.a": 3 } };
        assert_eq!(node.code(watching(Value::String("c".into()), &resume, &[filter])).await, 280);
    });
}

/// How many documents are kept for change streams.
async fn kept_count(node: &mut Node) -> usize {
    node.find_on("config", doc! { "find": "system.preimages" }).await.len()
}

#[test]
fn u13_documents_before_and_after_changes() {
    run(async {
        let mut node = node().await;
        node.ok(doc! { "create": "c", "changeStreamPreAndPostImages": { "enabled": true } }).await;
        node.insert(vec![doc! { "_id": 1, "a": 1 }]).await;
        let both = doc! { "fullDocument": "required", "fullDocumentBeforeChange": "required" };
        let mut stream = Stream::open(&mut node, both, &[]).await;
        let mut after = Stream::open(&mut node, doc! { "fullDocument": "whenAvailable" }, &[]).await;
        node.ok(update(doc! { "_id": 1 }, doc! { "$set": { "a": 2 } })).await;
        node.ok(update(doc! { "_id": 1 }, doc! { "a": 3 })).await;
        node.ok(delete(doc! { "_id": 1 })).await;
        assert_eq!(kept_count(&mut node).await, 3);
        let events = stream.take(&mut node, 3).await;
        let before = |event: &Doc| part(event, "fullDocumentBeforeChange");
        assert_eq!(
            (before(&events[0]), part(&events[0], "fullDocument")),
            (doc! { "_id": 1, "a": 1 }, doc! { "_id": 1, "a": 2 })
        );
        assert_eq!(
            (before(&events[1]), part(&events[1], "fullDocument")),
            (doc! { "_id": 1, "a": 2 }, doc! { "_id": 1, "a": 3 })
        );
        assert_eq!(before(&events[2]), doc! { "_id": 1, "a": 3 });
        let events = after.take(&mut node, 3).await;
        assert_eq!(part(&events[0], "fullDocument"), doc! { "_id": 1, "a": 2 });
        assert!(events.iter().all(|event| event.get("fullDocumentBeforeChange").is_none()));
        // Where they are not kept any more, they are null, or an error that names the event.
        node.ok(doc! { "collMod": "c", "changeStreamPreAndPostImages": { "enabled": false } }).await;
        node.insert(vec![doc! { "_id": 2 }]).await;
        let when = doc! { "fullDocument": "whenAvailable", "fullDocumentBeforeChange": "whenAvailable" };
        let mut stream = Stream::open(&mut node, when, &[]).await;
        let required = Stream::open(&mut node, doc! { "fullDocumentBeforeChange": "required" }, &[]).await;
        // A filter that leaves the event out needs no document.
        let filter = doc! { "$match": { "operationType": "insert" } };
        let mut filtered = Stream::open(&mut node, doc! { "fullDocumentBeforeChange": "required" }, &[filter]).await;
        node.ok(update(doc! { "_id": 2 }, doc! { "$set": { "a": 2 } })).await;
        node.insert(vec![doc! { "_id": 3 }]).await;
        let event = stream.take(&mut node, 2).await.remove(0);
        assert_eq!(
            (event.get("fullDocument"), event.get("fullDocumentBeforeChange")),
            (Some(Value::Null), Some(Value::Null))
        );
        let body = doc! { "getMore": (required.id), "collection": "c" };
        assert_eq!(node.code(body).await, 47);
        assert_eq!(kind(&filtered.one(&mut node).await), "insert");
        assert_eq!(kept_count(&mut node).await, 3);
    });
}

#[test]
fn u13_documents_before_the_changes_of_a_transaction() {
    run(async {
        let mut node = node().await;
        node.ok(doc! { "create": "c", "changeStreamPreAndPostImages": { "enabled": true } }).await;
        node.insert(vec![doc! { "_id": 1, "a": 1 }, doc! { "_id": 2 }]).await;
        let both = doc! { "fullDocument": "required", "fullDocumentBeforeChange": "required" };
        let mut stream = Stream::open(&mut node, both, &[]).await;
        let id = Uuid::from_random([4; 16]);
        let session = doc! { "id": (Value::Binary { subtype: 4, bytes: id.as_bytes() }) };
        let statement = |body: Doc, start: bool| {
            let mut builder = DocBuilder::new();
            builder.append_all(body.view());
            builder.append("lsid", &session);
            builder.append("txnNumber", 1_i64);
            builder.append("autocommit", false);
            builder.append_some("startTransaction", start.then_some(true));
            builder.finish()
        };
        node.ok(statement(doc! { "insert": "other", "documents": [{ "_id": 1 }] }, true)).await;
        node.ok(statement(update(doc! { "_id": 1 }, doc! { "$set": { "a": 2 } }), false)).await;
        node.ok(statement(update(doc! { "_id": 1 }, doc! { "$set": { "a": 3 } }), false)).await;
        node.ok(statement(delete(doc! { "_id": 2 }), false)).await;
        node.ok_on("admin", statement(doc! { "commitTransaction": 1 }, false)).await;
        let events = stream.take(&mut node, 3).await;
        let before: Vec<Doc> = events.iter().map(|event| part(event, "fullDocumentBeforeChange")).collect();
        assert_eq!(before, [doc! { "_id": 1, "a": 1 }, doc! { "_id": 1, "a": 2 }, doc! { "_id": 2 }]);
        assert_eq!(part(&events[1], "fullDocument"), doc! { "_id": 1, "a": 3 });
    });
}

#[test]
fn u13_kept_documents_expire() {
    run(async {
        let mut node = node().await;
        for name in ["c", "other"] {
            node.ok(doc! { "create": name, "changeStreamPreAndPostImages": { "enabled": true } }).await;
            node.insert_into(name, &[doc! { "_id": 1 }]).await;
            for a in 0..3 {
                let statement = doc! { "q": { "_id": 1 }, "u": { "$set": { "a": a } } };
                node.ok(doc! { "update": name, "updates": [statement] }).await;
            }
        }
        let data = node.fixture.server.node().data.clone().unwrap();
        assert_eq!(pando_commands::pre_images::remove_expired(&data).await.unwrap(), 0);
        assert_eq!(kept_count(&mut node).await, 6);
        let options = doc! { "changeStreamOptions": { "preAndPostImages": { "expireAfterSeconds": 100 } } };
        node.ok_on("admin", doc! { "setClusterParameter": options }).await;
        assert_eq!(pando_commands::pre_images::remove_expired(&data).await.unwrap(), 0);
        node.fixture.env.clock().sleep(std::time::Duration::from_secs(200)).await;
        node.ok(update(doc! { "_id": 1 }, doc! { "$set": { "a": 9 } })).await;
        assert_eq!(pando_commands::pre_images::remove_expired(&data).await.unwrap(), 6);
        assert_eq!(kept_count(&mut node).await, 1, "the young one stays");
    });
}

/// Keeps six documents that have expired, and one that has not.
async fn keep_and_wait(node: &mut Node) {
    node.ok(doc! { "create": "c", "changeStreamPreAndPostImages": { "enabled": true } }).await;
    node.insert(vec![doc! { "_id": 1 }]).await;
    for a in 0..6 {
        node.ok(update(doc! { "_id": 1 }, doc! { "$set": { "a": a } })).await;
    }
    let options = doc! { "changeStreamOptions": { "preAndPostImages": { "expireAfterSeconds": 100 } } };
    node.ok_on("admin", doc! { "setClusterParameter": options }).await;
    node.fixture.env.clock().sleep(std::time::Duration::from_secs(200)).await;
    node.ok(update(doc! { "_id": 1 }, doc! { "$set": { "a": 9 } })).await;
}

async fn oplog_length(node: &mut Node) -> usize {
    node.find_on("local", doc! { "find": "oplog.rs", "batchSize": 10_000 }).await.len()
}

#[test]
fn u13_every_node_removes_its_own_and_says_nothing_in_the_oplog() {
    run(async {
        let mut node = node().await;
        keep_and_wait(&mut node).await;
        let before = oplog_length(&mut node).await;
        let data = node.fixture.server.node().data.clone().unwrap();
        node.ok_on("admin", doc! { "replSetStepDown": 1000, "force": true }).await;
        assert_eq!(pando_commands::pre_images::remove_expired(&data).await.unwrap(), 6, "also while it is no primary");
        node.ok_on("admin", doc! { "replSetFreeze": 0 }).await;
        node.ok_on("admin", doc! { "replSetTest": 1, "waitForMemberState": 1, "timeoutMillis": 10 }).await;
        assert_eq!(kept_count(&mut node).await, 1);
        assert!(oplog_length(&mut node).await <= before + 1, "no more than that it is primary again");
    });
}

#[test]
fn u13_what_comes_back_after_a_crash_is_removed_again() {
    run(async {
        let simulation = Simulation::new(9);
        let env = simulation.env();
        let options = || pando_engine::EngineOptions::stepped(pando_engine::Mode::ReplicaSet);
        let mut node = durable_node(simulation, env, options(), &[]).await;
        keep_and_wait(&mut node).await;
        let data = node.fixture.server.node().data.clone().unwrap();
        assert_eq!(pando_commands::pre_images::remove_expired(&data).await.unwrap(), 6);
        assert_eq!(kept_count(&mut node).await, 1);
        node.ok(doc! { "insert": "c", "documents": [{ "_id": 2 }], "writeConcern": { "w": 1, "j": true } }).await;
        // Another machine goes on with the files as they are.
        let machine = node.fixture.simulation.fork(10);
        let env = machine.env();
        let mut node = durable_node(machine, env, options(), &[]).await;
        assert_eq!(kept_count(&mut node).await, 7, "recovery makes them anew");
        let data = node.fixture.server.node().data.clone().unwrap();
        assert_eq!(pando_commands::pre_images::remove_expired(&data).await.unwrap(), 6);
        assert_eq!(kept_count(&mut node).await, 1);
    });
}

/// Numbers without rhyme.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// One reader: what it has seen, and its stream, if it has one.
#[derive(Default)]
struct Reader {
    stream: Option<Stream>,
    seen: Vec<Doc>,
    place: Option<Doc>,
}

impl Reader {
    async fn read(&mut self, node: &mut Node) {
        let options = match &self.place {
            Some(token) => doc! { "resumeAfter": token, "fullDocumentBeforeChange": "required" },
            None => {
                doc! { "startAtOperationTime": (pando_base::Timestamp::new(1, 1)), "fullDocumentBeforeChange": "required" }
            }
        };
        let mut stream = match self.stream.take() {
            Some(mut stream) => {
                let reply = stream.get_more(node).await;
                assert_eq!(number(&reply, "ok"), 1.0, "{reply}");
                Stream::of("d", "c", &reply, "nextBatch")
            }
            None => Stream::open(node, options, &[]).await,
        };
        self.seen.append(&mut stream.events);
        self.place = Some(stream.token.clone());
        self.stream = Some(stream);
    }
}

/// A write of one of several writers, sometimes a transaction.
async fn write_something(node: &mut Node, numbers: &mut Numbers, writer: u64) {
    let id = i32::try_from(writer * 10 + numbers.below(3)).unwrap();
    let value = i32::try_from(numbers.below(1000)).unwrap();
    let upsert = doc! { "q": { "_id": id }, "u": { "$set": { "a": value }, "$inc": { "n": 1 } }, "upsert": true };
    match numbers.below(6) {
        0 => node.ok(delete(doc! { "_id": id })).await,
        1 => node.ok(update(doc! { "_id": id }, doc! { "a": value })).await,
        2 => node.insert_into("other", &[doc! { "a": value }]).await,
        _ => node.ok(doc! { "update": "c", "updates": [upsert] }).await,
    };
}

#[test]
fn u13_readers_that_are_killed_and_come_back_see_everything_once() {
    run(async {
        for seed in 0..20 {
            let mut numbers = Numbers(seed);
            let mut node = node().await;
            node.ok(doc! { "create": "c", "changeStreamPreAndPostImages": { "enabled": true } }).await;
            let mut readers: Vec<Reader> = (0..4).map(|_| Reader::default()).collect();
            for _ in 0..300 {
                let writer = numbers.below(8);
                write_something(&mut node, &mut numbers, writer).await;
                let place = usize::try_from(numbers.below(4)).unwrap();
                match numbers.below(4) {
                    0 => readers[place].stream = None,
                    1 => readers[place].read(&mut node).await,
                    _ => {}
                }
            }
            // What the oplog says, in the words of events.
            let entries = node
                .find_on("local", doc! { "find": "oplog.rs", "filter": { "ns": "d.c" }, "batchSize": 10_000 })
                .await;
            let told = |entry: &Doc| {
                let op = entry.get("op").and_then(|op| op.as_str()).unwrap_or_default().to_owned();
                let object = part(entry, "o");
                let is_diff = object.get("$v").is_some();
                let key = if op == "u" { part(entry, "o2") } else { object.clone() };
                let kind = match (op.as_str(), is_diff) {
                    ("i", _) => "insert",
                    ("u", true) => "update",
                    ("u", false) => "replace",
                    _ => "delete",
                };
                (kind.to_owned(), number(&key, "_id") as i32, entry.get("ts").and_then(|ts| ts.as_timestamp()))
            };
            let expected: Vec<_> = entries.iter().map(told).collect();
            for reader in &mut readers {
                for _ in 0..3 {
                    reader.read(&mut node).await;
                }
                let seen: Vec<_> = reader
                    .seen
                    .iter()
                    .map(|event| {
                        let id = number(&part(event, "documentKey"), "_id") as i32;
                        (kind(event), id, event.get("clusterTime").and_then(|time| time.as_timestamp()))
                    })
                    .collect();
                assert_eq!(seen, expected, "seed {seed}");
                check_chain(&reader.seen);
            }
        }
    });
}

/// Every document is before a change what it was after the one before.
fn check_chain(events: &[Doc]) {
    let mut known: std::collections::BTreeMap<i32, Option<Doc>> = Default::default();
    for event in events {
        let id = number(&part(event, "documentKey"), "_id") as i32;
        let before = event.get("fullDocumentBeforeChange").and_then(|before| before.as_document());
        if let (Some(Some(known)), Some(before)) = (known.get(&id), before) {
            assert_eq!(*known, before.to_doc(), "{event}");
        }
        let after = event.get("fullDocument").and_then(|after| after.as_document()).map(|after| after.to_doc());
        known.insert(id, after);
    }
}
