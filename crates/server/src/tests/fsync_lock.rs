//! `fsync` with lock: who waits, who does not, and how it ends.

use super::node::{node, with_database};
use super::*;

async fn lock(client: &mut Client) -> f64 {
    number(&client.admin(doc! { "fsync": 1, "lock": true }).await, "lockCount")
}

async fn unlock(client: &mut Client) -> f64 {
    number(&client.admin(doc! { "fsyncUnlock": 1 }).await, "lockCount")
}

#[test]
fn u11_fsync_lock_keeps_writers_out_until_the_last_unlock() {
    run(async {
        let mut node = node().await;
        node.insert(vec![doc! { "_id": 1 }]).await;
        assert_eq!(lock(&mut node.client).await, 1.0);
        assert_eq!(lock(&mut node.client).await, 2.0);
        let shown = node.client.admin(doc! { "currentOp": 1 }).await;
        assert!(shown.get("fsyncLock").is_some_and(|locked| locked.is_true()), "{shown}");
        let mut writer = node.fixture.connect().await;
        let insert = doc! { "insert": "c", "documents": [{ "_id": 2 }] };
        writer.send(MsgFlags::NONE, &with_database(&insert, "d")).await;
        let waiting = doc! { "currentOp": 1, "waitingForLock": true, "op": "insert", "locks.Global": "w" };
        loop {
            let shown = node.client.admin(waiting.clone()).await;
            if shown.get("inprog").and_then(|found| found.as_array()).is_some_and(|found| !found.is_empty()) {
                break;
            }
            tokio::task::yield_now().await;
        }
        let count = doc! { "count": "c", "$db": "d" };
        assert_eq!(number(&node.client.ask(count.clone()).await, "n"), 1.0, "reads go on");
        // Without a lock it does not wait for the lock.
        assert_eq!(number(&node.client.admin(doc! { "fsync": 1 }).await, "numFiles"), 1.0);
        assert_eq!(unlock(&mut node.client).await, 1.0);
        assert_eq!(number(&node.client.ask(count.clone()).await, "n"), 1.0);
        assert_eq!(unlock(&mut node.client).await, 0.0);
        assert_eq!(number(&writer.read().await.unwrap().body().to_doc(), "n"), 1.0);
        assert_eq!(number(&node.client.ask(count).await, "n"), 2.0);
        assert!(node.client.admin(doc! { "currentOp": 1 }).await.get("fsyncLock").is_none());
        let refused = node.client.ask(doc! { "fsyncUnlock": 1, "$db": "admin" }).await;
        assert_eq!(number(&refused, "code"), 20.0, "{refused}");
    });
}

#[test]
fn u11_a_lock_that_is_not_got_is_not_held() {
    run(async {
        let mut node = node().await;
        node.insert(vec![doc! { "_id": 1 }]).await;
        let services = &node.fixture.server.node().data.as_ref().unwrap().services;
        let writer = services.locks.locker();
        let options = pando_locks::GlobalLockOptions::default();
        writer.hold_global(pando_locks::Mode::IX, options, &pando_locks::Wait::FOREVER).await.unwrap();
        let lock_for_backup = doc! {
            "fsync": 1, "lock": true, "forBackup": true, "fsyncLockAcquisitionTimeoutMillis": 5, "$db": "admin"
        };
        let refused = node.client.ask(lock_for_backup).await;
        assert_eq!(number(&refused, "code"), 24.0, "{refused}");
        let refused = node.client.ask(doc! { "fsync": 1, "lock": true, "maxTimeMS": 5, "$db": "admin" }).await;
        assert_eq!(number(&refused, "code"), 50.0, "{refused}");
        writer.unlock_everything();
        let elsewhere = node.client.ask(doc! { "fsync": 1, "lock": true, "$db": "d" }).await;
        assert_eq!(number(&elsewhere, "code"), 13.0, "{elsewhere}");
        assert_eq!(lock(&mut node.client).await, 1.0);
        assert_eq!(unlock(&mut node.client).await, 0.0);
    });
}

#[test]
fn u11_a_shutdown_ends_an_fsync_lock() {
    run(async {
        let mut node = node().await;
        lock(&mut node.client).await;
        lock(&mut node.client).await;
        node.fixture.server.shut_down().await.unwrap();
        assert_eq!(node.fixture.server.node().data.as_ref().unwrap().backups.lock_count(), 0);
    });
}
