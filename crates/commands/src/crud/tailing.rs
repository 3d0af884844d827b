//! News of capped collections, for cursors that wait at their end. The oplog's come from the engine, which knows when an
//! entry has no hole before it any more; those of change streams from the node, which knows what a majority has.

use crate::Data;
use pando_base::{Namespace, Timestamp, Uuid};
use pando_collection::InsertWatcher;
use pando_query::cursor::CursorOptions;
use pando_repl::ReplicationNode;
use pando_storage::Wait;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::watch;

/// Tells listeners of inserts. Only collections that somebody listens to are kept.
#[derive(Default)]
pub struct InsertNews {
    listened: Mutex<HashMap<Uuid, watch::Sender<u64>>>,
}

/// Somebody who listens.
pub struct Listener {
    news: Arc<InsertNews>,
    collection: Uuid,
    receiver: Option<watch::Receiver<u64>>,
}

impl InsertNews {
    /// Listens to a collection from now on.
    pub fn listen(self: &Arc<Self>, collection: Uuid) -> Listener {
        let receiver = self.listened.lock().entry(collection).or_default().subscribe();
        Listener { news: Arc::clone(self), collection, receiver: Some(receiver) }
    }
}

impl InsertWatcher for InsertNews {
    fn inserted(&self, collection: Uuid) {
        if let Some(sender) = self.listened.lock().get(&collection) {
            sender.send_modify(|count| *count += 1);
        }
    }
}

impl Listener {
    /// Ends when something was inserted since the listening began or since the last time.
    pub async fn heard(&mut self) {
        if let Some(receiver) = &mut self.receiver {
            // The sender is there as long as somebody listens.
            let _ = receiver.changed().await;
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.receiver = None;
        let mut listened = self.news.listened.lock();
        if listened.get(&self.collection).is_some_and(|sender| sender.receiver_count() == 0) {
            listened.remove(&self.collection);
        }
    }
}

/// What a cursor at the end of its collection waits for.
pub(super) enum News {
    /// Inserts.
    Inserts(Listener),
    /// Entries that forward readers of the oplog may see.
    Oplog(Wait),
    /// Entries that majority reads see, beyond a time.
    Majority(Arc<ReplicationNode>, Timestamp),
}

impl News {
    /// News for a cursor, from now on; none if there is nothing that it could wait for.
    pub(super) fn of(data: &Data, cursor: &CursorOptions) -> Option<News> {
        if cursor.is_change_stream {
            let replication = Arc::clone(&data.replication);
            let seen = replication.majority_snapshot();
            return Some(News::Majority(replication, seen));
        }
        let uuid = cursor.collection?;
        Some(match data.services.engine.oplog().filter(|_| cursor.namespace == *Namespace::oplog()) {
            Some(oplog) => News::Oplog(oplog.wait_visible(oplog.visible())),
            None => News::Inserts(data.inserts.listen(uuid)),
        })
    }

    /// Ends when there is something new. An oplog that fails says so to the next read.
    pub(super) async fn heard(self) {
        match self {
            News::Inserts(mut listener) => listener.heard().await,
            News::Oplog(wait) => drop(wait.await),
            News::Majority(replication, seen) => drop(replication.wait_majority_beyond(seen).await),
        }
    }
}
