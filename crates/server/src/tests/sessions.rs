//! Logical sessions over the wire: use, refresh, reaping, killing, and what is left of retryable writes after a crash.

use super::node::{Node, node};
use super::*;
use pando_base::Uuid;
use pando_doc::Value;

fn session(byte: u8) -> Doc {
    let id = Uuid::from_random([byte; 16]);
    doc! { "id": (Value::Binary { subtype: 4, bytes: id.as_bytes() }) }
}

impl Node {
    async fn stored(&mut self) -> usize {
        let stage = doc! { "$listSessions": { "allUsers": true } };
        let list = doc! { "aggregate": "system.sessions", "pipeline": [stage], "cursor": {} };
        self.find_on("config", list).await.len()
    }
}

#[test]
fn s16_sessions_are_started_listed_and_written_down() {
    run(async {
        let mut node = node().await;
        let started = node.ok_on("admin", doc! { "startSession": 1 }).await;
        assert_eq!(started.get("timeoutMinutes"), Some(Value::Int32(30)));
        node.ok(doc! { "ping": 1, "lsid": (session(1)) }).await;
        node.ok_on("admin", doc! { "refreshSessions": [session(2)] }).await;
        let local = doc! { "aggregate": 1, "pipeline": [{ "$listLocalSessions": {} }], "cursor": {} };
        let listed = node.find_on("admin", local.clone()).await;
        assert_eq!(listed.len(), 3);
        let names: Vec<String> = listed[0].elements().map(|element| element.name.to_string()).collect();
        assert_eq!(names, ["_id", "lastUse"]);
        node.ok_on("admin", doc! { "refreshLogicalSessionCacheNow": 1 }).await;
        assert!(node.find_on("admin", local).await.is_empty(), "they are written down now");
        assert_eq!(node.stored().await, 3);
        let indexes = node.find_on("config", doc! { "listIndexes": "system.sessions" }).await;
        assert_eq!(
            (text(&indexes[1], "name"), number(&indexes[1], "expireAfterSeconds")),
            ("lsidTTLIndex".into(), 1800.0)
        );
        node.ok_on("admin", doc! { "endSessions": [session(1)] }).await;
        node.ok_on("admin", doc! { "refreshLogicalSessionCacheNow": 1 }).await;
        assert_eq!(node.stored().await, 2);
        // Sessions that nobody uses leave after half an hour.
        node.fixture.simulation.clock().advance(std::time::Duration::from_secs(31 * 60));
        node.ok_on("admin", doc! { "refreshSessions": [session(2)] }).await;
        node.ok_on("admin", doc! { "refreshLogicalSessionCacheNow": 1 }).await;
        super::ttl::pass(&node).await;
        assert_eq!(node.stored().await, 1);
        let status = node.ok_on("admin", doc! { "serverStatus": 1 }).await;
        let section = status.get("logicalSessionRecordCache").unwrap().as_document().unwrap().to_doc();
        assert_eq!(number(&section, "sessionsCollectionJobCount"), 3.0);
        let elsewhere = doc! { "aggregate": "c", "pipeline": [{ "$listSessions": {} }], "cursor": {} };
        assert_eq!(node.code(elsewhere).await, 73);
        assert_eq!(node.code_on("admin", doc! { "refreshSessions": [1] }).await, 14);
    });
}

#[test]
fn s16_cursors_of_ended_and_killed_sessions_are_closed() {
    run(async {
        let mut node = node().await;
        let documents = doc! { "insert": "c", "documents": [{ "_id": 1 }, { "_id": 2 }, { "_id": 3 }] };
        node.ok(documents).await;
        for kill in [
            doc! { "killSessions": [session(5)] },
            doc! { "killAllSessions": [] },
            doc! { "killAllSessionsByPattern": [] },
            doc! { "endSessions": [session(5)] },
        ] {
            let find = doc! { "find": "c", "batchSize": 1, "lsid": (session(5)) };
            let reply = node.ok(find).await;
            let cursor = reply.get("cursor").unwrap().as_document().unwrap();
            let Some(Value::Int64(id)) = cursor.get("id") else { panic!("{reply}") };
            node.ok_on("admin", kill).await;
            let more = doc! { "getMore": id, "collection": "c", "lsid": (session(5)) };
            assert_eq!(node.code(more).await, 43);
        }
        // Somebody else's session is left alone.
        let find = doc! { "find": "c", "batchSize": 1, "lsid": (session(5)) };
        let reply = node.ok(find).await;
        let Some(Value::Int64(id)) = reply.get("cursor").unwrap().as_document().unwrap().get("id") else { panic!() };
        node.ok_on("admin", doc! { "killSessions": [session(6)] }).await;
        node.ok_on("admin", doc! { "killAllSessions": [{ "user": "a", "db": "b" }] }).await;
        node.ok(doc! { "getMore": id, "collection": "c", "lsid": (session(5)) }).await;
        assert_eq!(node.code_on("admin", doc! { "killAllSessions": [{ "user": "a" }] }).await, 40414);
        assert_eq!(node.code_on("admin", doc! { "killSessions": 1 }).await, 14);
    });
}

#[test]
fn s16_records_of_old_sessions_are_reaped() {
    run(async {
        let mut node = node().await;
        for byte in [7, 8] {
            let insert = doc! {
                "insert": "c", "documents": [{ "_id": (i32::from(byte)) }], "lsid": (session(byte)), "txnNumber": 1_i64,
            };
            node.ok(insert).await;
        }
        node.ok_on("admin", doc! { "refreshLogicalSessionCacheNow": 1 }).await;
        let records = doc! { "find": "transactions" };
        node.ok_on("admin", doc! { "reapLogicalSessionCacheNow": 1 }).await;
        assert_eq!(node.find_on("config", records.clone()).await.len(), 2, "too young");
        node.fixture.simulation.clock().advance(std::time::Duration::from_secs(31 * 60));
        node.ok_on("admin", doc! { "refreshSessions": [session(8)] }).await;
        node.ok_on("admin", doc! { "refreshLogicalSessionCacheNow": 1 }).await;
        super::ttl::pass(&node).await;
        node.ok_on("admin", doc! { "reapLogicalSessionCacheNow": 1 }).await;
        let left = node.find_on("config", records).await;
        assert_eq!(left.len(), 1);
        let id = left[0].get("_id").unwrap().as_document().unwrap().get("id").map(|id| id.to_string());
        assert_eq!(id, session(8).get("id").map(|id| id.to_string()));
    });
}
