//! The current version, and making the next.
//!
//! Lock order: `writing`, then `queue`. A change runs under `writing` and must not wait for anything.

use super::CollectionCatalog;
use arc_swap::{ArcSwap, Guard};
use parking_lot::Mutex;
use std::sync::Arc;

/// A change of the catalog. It cannot fail: what can go wrong was found before.
pub(crate) type CatalogChange = Box<dyn FnOnce(&mut CollectionCatalog) + Send>;

/// The current version of the catalog.
pub(crate) struct CatalogVersions {
    current: ArcSwap<CollectionCatalog>,
    queue: Mutex<Vec<CatalogChange>>,
    writing: Mutex<()>,
}

impl CatalogVersions {
    pub(crate) fn new(catalog: CollectionCatalog) -> CatalogVersions {
        CatalogVersions { current: ArcSwap::from_pointee(catalog), queue: Mutex::default(), writing: Mutex::default() }
    }

    pub(crate) fn current(&self) -> Arc<CollectionCatalog> {
        self.current.load_full()
    }

    /// The current version for a look that ends soon: it costs no shared count.
    pub(crate) fn peek(&self) -> Guard<Arc<CollectionCatalog>> {
        self.current.load()
    }

    /// Makes a change, together with those that were queued meanwhile. It is published when this returns.
    pub(crate) fn write(&self, change: impl FnOnce(&mut CollectionCatalog) + Send + 'static) {
        self.queue.lock().push(Box::new(change));
        let _writing = self.writing.lock();
        let changes = std::mem::take(&mut *self.queue.lock());
        // Whoever wrote before may have made this change too.
        if changes.is_empty() {
            return;
        }
        let mut copy = CollectionCatalog::clone(&self.current.load());
        copy.advance();
        changes.into_iter().for_each(|change| change(&mut copy));
        self.current.store(Arc::new(copy));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x2_queued_changes_are_made_on_one_copy() {
        let versions = CatalogVersions::new(CollectionCatalog::default());
        let before = versions.current();
        versions.queue.lock().push(Box::new(|_| {}));
        versions.queue.lock().push(Box::new(|_| {}));
        versions.write(|_| {});
        assert_eq!(versions.current().version(), before.version() + 1);
        assert!(versions.queue.lock().is_empty());
    }
}
