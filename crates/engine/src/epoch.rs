//! A counter that threads and tasks can wait on.

use pando_storage::Wait;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use tokio::sync::watch;

/// Only grows.
pub struct Epoch {
    shared: Arc<Shared>,
}

struct Shared {
    count: Mutex<u64>,
    advanced: Condvar,
    told: watch::Sender<u64>,
}

impl Default for Epoch {
    fn default() -> Self {
        let told = watch::Sender::new(0);
        Epoch { shared: Arc::new(Shared { count: Mutex::new(0), advanced: Condvar::new(), told }) }
    }
}

impl Epoch {
    /// The count.
    pub fn now(&self) -> u64 {
        *self.shared.count.lock()
    }

    /// One more; wakes who waits.
    pub fn advance(&self) {
        let mut count = self.shared.count.lock();
        *count += 1;
        self.shared.told.send_replace(*count);
        self.shared.advanced.notify_all();
    }

    /// Completes once the count is past `seen`.
    pub fn wait_past(&self, seen: u64) -> Wait {
        let mut told = self.shared.told.subscribe();
        let shared = self.shared.clone();
        let future = async move {
            // The sender lives as long as the engine; if it is gone, there is nothing left to wait for.
            let _ = told.wait_for(|count| *count > seen).await;
            Ok(())
        };
        Wait::new(future, move || {
            let mut count = shared.count.lock();
            while *count <= seen {
                shared.advanced.wait(&mut count);
            }
            Ok(())
        })
    }
}
