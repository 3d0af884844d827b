//! The set of one member over the wire: its commands, its oplog as a collection, and what acknowledgements wait for.

use super::node::{Node, batch, cursor_id, node, node_as};
use super::*;
use pando_base::Timestamp;
use pando_doc::{DocBuilder, Value};

impl Node {
    async fn oplog(&mut self, body: Doc) -> Vec<Doc> {
        self.find_on("local", body).await
    }
}

fn timestamp(entry: &Doc) -> Timestamp {
    entry.get("ts").and_then(|ts| ts.as_timestamp()).unwrap_or_else(|| panic!("{entry}"))
}

#[test]
fn r18_a_set_is_initiated_and_told_of() {
    run(async {
        let mut node = node_as(ReplicationMode::ReplicaSet("prod".into())).await;
        for name in ["replSetGetStatus", "replSetGetConfig", "replSetGetRBID", "replSetFreeze", "replSetStepDown"] {
            let mut body = DocBuilder::new();
            body.append(name, 1);
            assert_eq!(node.code_on("admin", body.finish()).await, 94, "{name}");
        }
        assert_eq!(node.code(doc! { "insert": "c", "documents": [{}] }).await, 10107);
        assert_eq!(node.code(doc! { "replSetInitiate": {} }).await, 13, "on admin only");
        let misnamed = doc! { "_id": "test", "members": [{ "_id": 0, "host": "node1:27017" }] };
        assert_eq!(node.code_on("admin", doc! { "replSetInitiate": misnamed }).await, 93);
        let elsewhere = doc! { "_id": "prod", "members": [{ "_id": 0, "host": "other:1" }] };
        assert_eq!(node.code_on("admin", doc! { "replSetInitiate": elsewhere }).await, 93);
        let reply = node.ok_on("admin", doc! { "replSetInitiate": {} }).await;
        assert_eq!(text(&reply, "me"), "node1:27017");
        assert_eq!(node.code_on("admin", doc! { "replSetInitiate": {} }).await, 23);
        let status = node.ok_on("admin", doc! { "replSetGetStatus": 1 }).await;
        assert_eq!((text(&status, "set"), number(&status, "myState")), ("prod".into(), 1.0));
        let config = node.ok_on("admin", doc! { "replSetGetConfig": 1, "commitmentStatus": true }).await;
        assert_eq!(config.get("commitmentStatus"), Some(Value::Bool(true)));
        assert_eq!(number(&node.ok_on("admin", doc! { "replSetGetRBID": 1 }).await, "rbid"), 1.0);
        let hello = node.ok_on("admin", doc! { "hello": 1 }).await;
        assert_eq!((text(&hello, "setName"), text(&hello, "primary")), ("prod".into(), "node1:27017".into()));
        node.ok(doc! { "insert": "c", "documents": [{}] }).await;
    });
}

#[test]
fn r18_reconfiguration_follows_the_rules() {
    run(async {
        let mut node = node().await;
        let reply = node.ok_on("admin", doc! { "replSetGetConfig": 1 }).await;
        let config = reply.get("config").unwrap().as_document().unwrap().to_doc();
        let with = |changes: Doc| {
            let mut changed = DocBuilder::new();
            for element in config.elements() {
                match changes.get(element.name) {
                    Some(value) => changed.append(element.name, value),
                    None => changed.append(element.name, element.value),
                }
            }
            changed.finish()
        };
        assert_eq!(node.code_on("admin", doc! { "replSetReconfig": 1 }).await, 8);
        assert_eq!(node.code_on("admin", doc! { "replSetReconfig": &config }).await, 103, "the version must grow");
        let renamed = with(doc! { "version": 2, "_id": "other" });
        assert_eq!(node.code_on("admin", doc! { "replSetReconfig": renamed }).await, 103);
        let bad = with(doc! { "version": 2, "members": [] });
        assert_eq!(node.code_on("admin", doc! { "replSetReconfig": bad }).await, 93);
        node.ok_on("admin", doc! { "replSetReconfig": with(doc! { "version": 2 }) }).await;
        let stored = node.oplog(doc! { "find": "system.replset" }).await;
        assert_eq!(number(&stored[0], "version"), 2.0);
        node.ok_on("admin", doc! { "replSetReconfig": &config, "force": true }).await;
    });
}

#[test]
fn r18_a_primary_steps_down_and_comes_back() {
    run(async {
        let mut node = node().await;
        node.ok(doc! { "insert": "c", "documents": [{ "_id": 1 }] }).await;
        assert_eq!(node.code_on("admin", doc! { "replSetStepDown": -1 }).await, 2);
        assert_eq!(node.code_on("admin", doc! { "replSetStepDown": 5 }).await, 2, "shorter than the time to catch up");
        assert_eq!(node.code_on("admin", doc! { "replSetStepDown": 60 }).await, 262, "nobody could take over");
        assert_eq!(node.code_on("admin", doc! { "replSetFreeze": 10 }).await, 95);
        assert_eq!(node.code_on("admin", doc! { "replSetMaintenance": true }).await, 95);
        assert_eq!(node.code_on("admin", doc! { "replSetSyncFrom": "a:1" }).await, 95);
        node.ok_on("admin", doc! { "replSetStepDown": 60, "force": true }).await;
        let hello = node.ok_on("admin", doc! { "hello": 1 }).await;
        assert_eq!(hello.get("isWritablePrimary"), Some(Value::Bool(false)));
        assert_eq!(hello.get("secondary"), Some(Value::Bool(true)));
        assert_eq!(node.code(doc! { "insert": "c", "documents": [{ "_id": 2 }] }).await, 10107);
        assert_eq!(node.code(doc! { "find": "c" }).await, 13435);
        node.ok(doc! { "find": "c", "$readPreference": { "mode": "nearest" } }).await;
        assert_eq!(node.code_on("admin", doc! { "replSetSyncFrom": "a:1" }).await, 74);
        node.ok_on("admin", doc! { "replSetMaintenance": true }).await;
        assert_eq!(number(&node.ok_on("admin", doc! { "replSetGetStatus": 1 }).await, "myState"), 3.0);
        node.ok_on("admin", doc! { "replSetMaintenance": false }).await;
        assert_eq!(node.code_on("admin", doc! { "replSetMaintenance": false }).await, 96);
        let wait = doc! { "replSetTest": 1, "waitForMemberState": 1, "timeoutMillis": 10 };
        assert_eq!(node.code_on("admin", wait.clone()).await, 262);
        let reply = node.ok_on("admin", doc! { "replSetFreeze": 0 }).await;
        assert_eq!(text(&reply, "info"), "unfreezing");
        node.ok_on("admin", wait).await;
        node.ok(doc! { "insert": "c", "documents": [{ "_id": 2 }] }).await;
        node.ok_on("admin", doc! { "replSetStepDown": 60, "force": true }).await;
        node.ok_on("admin", doc! { "replSetStepUp": 1 }).await;
        node.ok(doc! { "insert": "c", "documents": [{ "_id": 3 }] }).await;
        assert_eq!(node.code_on("admin", doc! { "replSetAbortPrimaryCatchUp": 1 }).await, 20);
    });
}

#[test]
fn r8_a_read_changes_over_at_a_yield_when_the_node_steps_down_or_up() {
    run(async {
        let mut node = node().await;
        node.ok(doc! { "insert": "c", "documents": [{ "_id": 1 }] }).await;
        let data = node.fixture.server.node().data.clone().unwrap();
        let mut operation = data.services.internal_operation("test");
        let concern = pando_repl::read_concern::ReadConcern::default();
        data.replication.prepare_read(&mut operation, &concern, None).await.unwrap();
        let unit = &mut operation.recovery_unit;
        unit.preallocate_snapshot().unwrap();
        assert_eq!(unit.read_timestamp(), None, "a primary serves its newest data");
        node.ok_on("admin", doc! { "replSetStepDown": 60, "force": true }).await;
        assert_eq!(unit.read_timestamp(), None, "what is open stays");
        unit.abandon_snapshot().unwrap();
        unit.preallocate_snapshot().unwrap();
        assert_eq!(unit.read_timestamp(), Some(data.replication.points().applied.0.timestamp));
        node.ok_on("admin", doc! { "replSetStepUp": 1 }).await;
        unit.abandon_snapshot().unwrap();
        unit.preallocate_snapshot().unwrap();
        assert_eq!(unit.read_timestamp(), None);
    });
}

#[test]
fn r18_another_member_is_answered() {
    run(async {
        let mut node = node().await;
        let heartbeat =
            doc! { "replSetHeartbeat": "rs0", "configVersion": -2, "hbv": 1, "from": "", "fromId": -1, "term": 0 };
        let reply = node.ok_on("admin", heartbeat).await;
        assert_eq!((number(&reply, "state"), number(&reply, "v"), number(&reply, "term")), (1.0, 1.0, 1.0));
        assert!(reply.get("config").is_some(), "the other's is older");
        let other = doc! { "replSetHeartbeat": "rs1", "configVersion": 1, "from": "", "term": 0 };
        assert_eq!(node.code_on("admin", other).await, 108);
        let vote = |term: i64, version: i64| {
            doc! {
                "replSetRequestVotes": 1, "setName": "rs0", "dryRun": true, "term": term, "candidateIndex": 0,
                "configVersion": version, "configTerm": 1,
                "lastAppliedOpTime": { "ts": Timestamp::new(u32::MAX >> 1, 1), "t": 9_i64 },
            }
        };
        let refused = node.ok_on("admin", vote(0, 1)).await;
        assert_eq!(text(&refused, "reason"), "candidate's term (0) is lower than mine (1)");
        assert_eq!(node.ok_on("admin", vote(2, 1)).await.get("voteGranted"), Some(Value::Bool(true)));
        assert!(text(&node.ok_on("admin", vote(2, 0)).await, "reason").contains("is older than mine"));
        assert_eq!(number(&node.ok_on("admin", doc! { "replSetGetStatus": 1 }).await, "myState"), 1.0);
    });
}

#[test]
fn r18_without_a_set_its_commands_say_so() {
    run(async {
        let mut node = node_as(ReplicationMode::StandAlone).await;
        for name in ["replSetGetStatus", "replSetGetConfig", "replSetInitiate", "replSetReconfig", "replSetStepDown"] {
            let mut body = DocBuilder::new();
            body.append(name, doc! {});
            assert_eq!(node.code_on("admin", body.finish()).await, 76, "{name}");
        }
        assert_eq!(node.code_on("admin", doc! { "appendOplogNote": 1, "data": {} }).await, 76);
        assert_eq!(node.code_on("admin", doc! { "replSetResizeOplog": 1, "size": 1000 }).await, 26);
    });
}

#[test]
fn r2_the_oplog_is_read_as_a_collection() {
    run(async {
        let mut node = node().await;
        for id in 0..20 {
            node.ok(doc! { "insert": "c", "documents": [{ "_id": id }] }).await;
        }
        let inserts = doc! { "find": "oplog.rs", "filter": { "ns": "d.c", "op": "i" } };
        let entries = node.oplog(inserts.clone()).await;
        assert_eq!(entries.len(), 20);
        let names: Vec<String> = entries[0].elements().map(|element| element.name.to_string()).collect();
        assert_eq!(names, ["op", "ns", "ui", "o", "o2", "ts", "t", "v", "wall"]);
        // A condition on ts is a seek.
        let from = timestamp(&entries[17]);
        let find = doc! { "find": "oplog.rs", "filter": { "ts": { "$gte": from } } };
        assert_eq!(node.oplog(find.clone()).await.len(), 3);
        let explained = node.ok_on("local", doc! { "explain": find, "verbosity": "executionStats" }).await;
        let executed = explained.get("executionStats").unwrap().as_document().unwrap().to_doc();
        assert_eq!(number(&executed, "totalDocsExamined"), 3.0, "{executed}");
        let backward = doc! { "find": "oplog.rs", "sort": { "$natural": -1 }, "limit": 1 };
        let last = node.oplog(backward).await;
        assert_eq!(timestamp(&last[0]), timestamp(&entries[19]));
        let between = doc! {
            "find": "oplog.rs", "filter": { "ts": { "$gt": from, "$lt": (timestamp(&entries[19])) } },
            "sort": { "$natural": -1 },
        };
        assert_eq!(node.oplog(between).await.len(), 1);
        let count = node.ok_on("local", doc! { "count": "oplog.rs" }).await;
        let all = node.oplog(doc! { "find": "oplog.rs", "batchSize": 1000 }).await;
        assert_eq!(number(&count, "n"), all.len() as f64);
        let pipeline = doc! { "aggregate": "oplog.rs", "cursor": {}, "pipeline": [
            { "$match": { "op": "i" } }, { "$group": { "_id": "$ns", "n": { "$sum": 1 } } }, { "$match": { "_id": "d.c" } },
        ] };
        assert_eq!(number(&node.oplog(pipeline).await[0], "n"), 20.0);
        let stats = node.ok_on("local", doc! { "collStats": "oplog.rs" }).await;
        assert_eq!((stats.get("capped"), number(&stats, "nindexes")), (Some(Value::Bool(true)), 0.0));
        assert!(number(&stats, "maxSize") > 0.0 && number(&stats, "size") > 0.0, "{stats}");
        let listed = node.oplog(doc! { "listCollections": 1, "filter": { "name": "oplog.rs" } }).await;
        assert_eq!(listed.len(), 1);
        assert!(node.oplog(doc! { "listIndexes": "oplog.rs" }).await.is_empty());
    });
}

#[test]
fn r2_the_oplog_is_closed_to_writers() {
    run(async {
        let mut node = node().await;
        assert_eq!(node.code_on("local", doc! { "insert": "oplog.rs", "documents": [{}] }).await, 73);
        let update = doc! { "update": "oplog.rs", "updates": [{ "q": {}, "u": { "$set": { "a": 1 } } }] };
        assert_eq!(node.code_on("local", update).await, 73);
        let delete = doc! { "delete": "oplog.rs", "deletes": [{ "q": {}, "limit": 0 }] };
        assert_eq!(node.code_on("local", delete).await, 73);
        assert_eq!(node.code_on("local", doc! { "drop": "oplog.rs" }).await, 5255000);
        let index = doc! { "createIndexes": "oplog.rs", "indexes": [{ "key": { "ts": 1 }, "name": "ts_1" }] };
        assert_eq!(node.code_on("local", index).await, 73);
    });
}

#[test]
fn r2_a_tailing_reader_waits_for_entries() {
    run(async {
        let mut node = node().await;
        node.ok(doc! { "insert": "c", "documents": [{ "_id": 1 }] }).await;
        let tail = doc! {
            "find": "oplog.rs", "filter": { "ns": "d.c", "op": "i" }, "tailable": true, "awaitData": true,
        };
        let first = node.ok_on("local", tail).await;
        assert_eq!(batch(&first, "firstBatch").len(), 1);
        let id = cursor_id(&first);
        assert!(id != 0, "it stays open at the end");
        let more = doc! { "getMore": id, "collection": "oplog.rs", "maxTimeMS": 5 };
        assert!(batch(&node.ok_on("local", more.clone()).await, "nextBatch").is_empty());
        node.ok(doc! { "insert": "c", "documents": [{ "_id": 2 }] }).await;
        let heard = batch(&node.ok_on("local", more).await, "nextBatch");
        assert_eq!(heard.len(), 1);
        assert_eq!(heard[0].get("o").unwrap().as_document().unwrap().to_doc(), doc! { "_id": 2 });
    });
}

#[test]
fn r2_the_oplog_is_resized_and_takes_notes() {
    run(async {
        let mut node = node().await;
        assert_eq!(node.code_on("admin", doc! { "replSetResizeOplog": 1, "size": 10 }).await, 51024);
        node.ok_on("admin", doc! { "replSetResizeOplog": 1, "size": 1000.0, "minRetentionHours": 1.5 }).await;
        let stats = node.ok_on("local", doc! { "collStats": "oplog.rs" }).await;
        assert_eq!(number(&stats, "maxSize"), f64::from(1000 << 20));
        assert_eq!(node.code_on("admin", doc! { "appendOplogNote": 1 }).await, 4);
        node.ok_on("admin", doc! { "appendOplogNote": 1, "data": { "note": "hello" } }).await;
        let old = doc! { "appendOplogNote": 1, "data": {}, "maxClusterTime": (Timestamp::new(1, 1)) };
        assert_eq!(node.code_on("admin", old).await, 209);
        let found = node.oplog(doc! { "find": "oplog.rs", "filter": { "o.note": "hello", "op": "n" } }).await;
        assert_eq!(found.len(), 1);
    });
}

#[test]
fn b2_each_start_is_noted() {
    run(async {
        let mut node = node().await;
        let noted = node.oplog(doc! { "find": "startup_log" }).await;
        let names: Vec<String> = noted[0].elements().map(|element| element.name.to_string()).collect();
        assert_eq!(names, ["_id", "hostname", "startTime", "startTimeLocal", "cmdLine", "pid", "buildinfo"]);
    });
}

#[test]
fn r8_a_write_waits_for_its_own_commit() {
    run(async {
        let mut node = node().await;
        let journaled = doc! { "insert": "c", "documents": [{ "_id": 1 }], "writeConcern": { "w": 1, "j": true } };
        let reply = node.ok(journaled).await;
        assert!(reply.get("writeConcernError").is_none(), "{reply}");
        let replication = &node.fixture.server.node().data.as_ref().unwrap().replication;
        let points = replication.points();
        assert_eq!(points.durable, points.applied);
        // A write that finds nothing to do waits for what it found.
        node.ok(doc! { "insert": "c", "documents": [{ "_id": 2 }], "writeConcern": { "w": 1 } }).await;
        let nothing = doc! {
            "update": "c", "updates": [{ "q": { "_id": 2 }, "u": { "$set": { "_id": 2 } } }],
            "writeConcern": { "w": "majority" },
        };
        assert_eq!(number(&node.ok(nothing).await, "nModified"), 0.0);
        let replication = &node.fixture.server.node().data.as_ref().unwrap().replication;
        let points = replication.points();
        assert_eq!(points.committed, points.applied);
    });
}
