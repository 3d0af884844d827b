//! What is open, counted, so that the end of all of it can be waited for.

use crate::counters::ConnectionCounters;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use tokio::sync::Notify;

/// What accepting keeps.
#[derive(Default)]
pub(crate) struct Books {
    last_connection_id: AtomicI64,
    /// Listeners that have not ended, and answers that are worked on away from their connections.
    others: AtomicUsize,
    ended: Notify,
}

impl Books {
    /// The number of the next connection.
    pub(crate) fn next_connection_id(&self) -> i64 {
        self.last_connection_id.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// True if there is nothing but connections.
    pub(crate) fn has_only_connections(&self) -> bool {
        self.others.load(Ordering::SeqCst) == 0
    }

    /// Ends when something has ended after this was called.
    pub(crate) fn ended(&self) -> impl Future<Output = ()> {
        self.ended.notified()
    }
}

/// Counts a listener, whose socket in the file system is removed before it goes, or an answer.
pub(crate) struct Entered(Arc<Books>);

impl Entered {
    pub(crate) fn new(books: &Arc<Books>) -> Entered {
        books.others.fetch_add(1, Ordering::SeqCst);
        Entered(Arc::clone(books))
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.0.others.fetch_sub(1, Ordering::SeqCst);
        self.0.ended.notify_waiters();
    }
}

/// Counts a connection, whatever way it ends.
pub(crate) struct Counted {
    connections: Arc<ConnectionCounters>,
    books: Arc<Books>,
}

impl Counted {
    /// A connection that has been counted among those that are there.
    pub(crate) fn new(connections: &Arc<ConnectionCounters>, books: &Arc<Books>) -> Counted {
        Counted { connections: Arc::clone(connections), books: Arc::clone(books) }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.connections.current.add(-1);
        self.books.ended.notify_waiters();
    }
}
