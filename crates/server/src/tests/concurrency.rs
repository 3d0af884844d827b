//! What waits for what: reads beside DDL, writes behind it, everybody at the door of the engine.

use super::crud::numbered;
use super::node::{Node, node};
use super::transactions::ONE;
use super::*;
use pando_doc::{DocRef, Value};
use pando_locks::{GlobalLockOptions, Locker, Mode, ResourceId, Wait};
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

pub(super) type Answer = Pin<Box<dyn Future<Output = Doc>>>;

pub(super) async fn is_waiting(answer: &mut Answer) -> bool {
    poll_fn(|context| Poll::Ready(answer.as_mut().poll(context).is_pending())).await
}

impl Node {
    fn locker(&self) -> Locker {
        self.fixture.server.node().data.as_ref().unwrap().services.locks.locker()
    }

    /// A request on the database "d" over a connection of its own, whose answer may wait.
    pub(super) async fn begin(&self, body: &Doc) -> Answer {
        self.begin_on("d", body).await
    }

    pub(super) async fn begin_on(&self, database: &str, body: &Doc) -> Answer {
        let mut client = self.fixture.connect().await;
        client.send(MsgFlags::NONE, &super::node::with_database(body, database)).await;
        settle().await;
        Box::pin(async move { client.read().await.unwrap().body().to_doc() })
    }

    async fn section(&mut self, name: &str) -> Doc {
        let status = self.client.admin(doc! { "serverStatus": 1 }).await;
        status.get(name).and_then(|section| section.as_document()).unwrap_or_else(|| panic!("no {name}")).to_doc()
    }
}

/// Lets every task get as far as it can.
pub(super) async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

fn nested<'a>(document: &'a Doc, path: &[&str]) -> Value<'a> {
    let (last, path) = path.split_last().unwrap();
    let mut at: DocRef<'a> = document.view();
    for name in path {
        at = at.get(name).and_then(|value| value.as_document()).unwrap_or_else(|| panic!("no {name}: {document}"));
    }
    at.get(last).unwrap_or_else(|| panic!("no {last}: {document}"))
}

#[test]
fn x9_reads_do_not_wait_for_a_ddl_on_their_collection_and_writes_do() {
    run(async {
        let mut node = node().await;
        node.insert(numbered(10)).await;
        let ddl = node.locker();
        let (database, collection) = (ResourceId::database(None, b"d"), ResourceId::collection(None, b"d.c"));
        ddl.hold_collection(None, database, collection, Mode::X, &Wait::FOREVER).await.unwrap();
        assert_eq!(node.find(doc! { "find": "c", "filter": { "a": 3 } }).await.len(), 1);
        let counted = node.ok(doc! { "aggregate": "c", "pipeline": [{ "$count": "n" }], "cursor": {} }).await;
        assert_eq!(super::node::batch(&counted, "firstBatch"), [doc! { "n": 10 }]);
        let mut write = node.begin(&doc! { "insert": "c", "documents": [{ "_id": 10 }] }).await;
        assert!(is_waiting(&mut write).await, "it needs the collection");
        ddl.unlock_everything();
        assert_eq!(number(&write.await, "n"), 1.0);
        assert_eq!(nested(&node.section("locks").await, &["Collection", "acquireWaitCount", "w"]), Value::Int64(1));
    });
}

#[test]
fn x22_without_tickets_reads_queue_and_are_counted() {
    run(async {
        let mut node = node().await;
        node.insert(numbered(3)).await;
        let ticketed = |name: &'static str| ["concurrentTransactions", "read", name];
        let total = match nested(&node.section("wiredTiger").await, &ticketed("totalTickets")) {
            Value::Int32(total) => total,
            other => panic!("{other:?}"),
        };
        let mut holders = Vec::new();
        for _ in 0..total {
            let locker = node.locker();
            let options = GlobalLockOptions::default();
            locker.hold_global(Mode::IS, options, &Wait::FOREVER).await.unwrap();
            holders.push(locker);
        }
        let mut read = node.begin(&doc! { "find": "c" }).await;
        assert!(is_waiting(&mut read).await, "all tickets are out");
        // What asks for nothing in the engine is answered all the same, and tells.
        let engine = node.section("wiredTiger").await;
        assert_eq!(nested(&engine, &ticketed("out")), Value::Int32(total));
        assert_eq!(nested(&engine, &ticketed("available")), Value::Int32(0));
        assert_eq!(
            nested(&engine, &["concurrentTransactions", "read", "normalPriority", "queueLength"]),
            Value::Int64(1)
        );
        assert_eq!(nested(&node.section("globalLock").await, &["currentQueue", "readers"]), Value::Int32(1));
        holders.pop().unwrap().unlock_everything();
        assert_eq!(super::node::batch(&read.await, "firstBatch").len(), 3);
        holders.iter().for_each(Locker::unlock_everything);
        let latencies = node.section("opLatencies").await;
        assert_eq!(nested(&latencies, &["reads", "ops"]), Value::Int64(1));
        assert_eq!(nested(&latencies, &["writes", "ops"]), Value::Int64(1));
    });
}

#[test]
fn x12_a_read_in_the_past_finds_a_collection_renamed_or_dropped_since() {
    run(async {
        let mut node = node().await;
        let reply = node.insert(numbered(4)).await;
        let Some(Value::Timestamp(then)) = reply.get("operationTime") else { panic!("{reply}") };
        node.client.admin(doc! { "renameCollection": "d.c", "to": "d.other" }).await;
        let reply = node.ok(doc! { "insert": "other", "documents": [{ "_id": 99 }] }).await;
        let Some(Value::Timestamp(renamed)) = reply.get("operationTime") else { panic!("{reply}") };
        node.ok(doc! { "drop": "other" }).await;
        let at = |name: &str, time| {
            doc! { "find": name, "readConcern": { "level": "snapshot", "atClusterTime": Value::Timestamp(time) } }
        };
        assert_eq!(node.find(at("c", then)).await.len(), 4);
        assert_eq!(node.find(at("other", then)).await.len(), 0);
        assert_eq!(node.find(at("c", renamed)).await.len(), 0);
        assert_eq!(node.find(at("other", renamed)).await.len(), 5);
        assert_eq!(node.find(doc! { "find": "other" }).await.len(), 0);
    });
}

#[test]
fn x9_who_holds_and_who_waits_is_shown_by_lock_info_current_op_and_the_queues() {
    run(async {
        let mut node = node().await;
        node.insert(numbered(10)).await;
        let ddl = node.locker();
        let (database, collection) = (ResourceId::database(None, b"d"), ResourceId::collection(None, b"d.c"));
        ddl.hold_collection(None, database, collection, Mode::X, &Wait::FOREVER).await.unwrap();
        let mut write = node.begin(&doc! { "insert": "c", "documents": [{ "_id": 10 }] }).await;
        assert!(is_waiting(&mut write).await);

        let shown = node.client.admin(doc! { "lockInfo": 1 }).await;
        let resources: Vec<Doc> = documents(shown.get("lockInfo"));
        let on = |name: &str| {
            let found = resources.iter().find(|resource| text(resource, "resourceId").ends_with(name));
            found.unwrap_or_else(|| panic!("no {name}: {shown}"))
        };
        let of_collection = on(", d.c}");
        let (granted, pending) = (documents(of_collection.get("granted")), documents(of_collection.get("pending")));
        assert_eq!((text(&granted[0], "mode"), text(&granted[0], "convertMode")), ("X".to_owned(), "NONE".to_owned()));
        assert_eq!((granted.len(), pending.len(), text(&pending[0], "mode")), (1, 1, "IX".to_owned()));
        assert_eq!(documents(on(", d}").get("granted")).len(), 2);
        assert!(on("Global, 3}").view().contains("granted"));

        let waiting = node.client.admin(doc! { "currentOp": 1, "waitingForLock": true }).await;
        let waiting = documents(waiting.get("inprog"));
        assert_eq!(waiting.len(), 1);
        assert_eq!(nested(&waiting[0], &["locks", "Database"]), Value::String(b"w".as_slice().into()));
        assert_eq!(nested(&waiting[0], &["lockStats", "Collection", "acquireWaitCount", "w"]), Value::Int64(1));
        assert_eq!(waiting[0].get("opid"), Some(nested(&pending[0], &["clientInfo", "opid"])));
        let queues = node.section("globalLock").await;
        assert_eq!(nested(&queues, &["currentQueue", "writers"]), Value::Int32(1));
        assert_eq!(nested(&queues, &["currentQueue", "total"]), Value::Int32(1));

        ddl.unlock_everything();
        assert_eq!(number(&write.await, "n"), 1.0);
        let queues = node.section("globalLock").await;
        assert_eq!(nested(&queues, &["currentQueue", "total"]), Value::Int32(0));
        assert_eq!(documents(node.client.admin(doc! { "lockInfo": 1 }).await.get("lockInfo")), Vec::<Doc>::new());
    });
}

fn documents(array: Option<Value<'_>>) -> Vec<Doc> {
    let array = array.and_then(|array| array.as_array()).unwrap_or_else(|| panic!("no array"));
    array.values().map(|value| value.as_document().unwrap().to_doc()).collect()
}

#[test]
fn whoever_sleeps_has_its_lock_first() {
    run(async {
        let mut node = node().await;
        node.insert(vec![doc! { "_id": 1 }]).await;
        ONE.start(&mut node, doc! { "insert": "c", "documents": [{ "_id": 2 }] }).await;
        let sleep = |target: &str, lock: &str| doc! { "sleep": 1, "lock": lock, "lockTarget": target, "millis": 5 };
        for (target, lock) in [("d", "iw"), ("e", "w"), ("d.other", "w"), ("d.c", "ir")] {
            node.ok_on("admin", sleep(target, lock)).await;
        }
        let mut waiting = Vec::new();
        for (target, lock) in [("d", "w"), ("d.c", "r"), ("", "w")] {
            waiting.push(node.begin_on("admin", &sleep(target, lock)).await);
        }
        for sleeper in &mut waiting {
            assert!(is_waiting(sleeper).await);
        }
        assert_eq!(number(&ONE.commit(&mut node).await, "ok"), 1.0);
        for sleeper in waiting {
            assert_eq!(number(&sleeper.await, "ok"), 1.0);
        }
        assert_eq!(node.code_on("admin", doc! { "sleep": 1, "lock": "x" }).await, 51123);
    });
}
