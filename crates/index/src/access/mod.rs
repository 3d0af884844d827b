//! Keeping the entries of a collection's indexes in step with its documents.
//!
//! [`Indexing`] belongs to the node. Its calls write inside the operation's unit of work; the collection's write path makes
//! them after the document itself was written. For every index of the collection, built or being built:
//!
//! * an insert adds the document's keys, a delete removes them, an update writes only what differs between the two key
//!   sets;
//! * where two documents may not share a key, the second gets `DuplicateKey`;
//! * a document with arrays makes its index multikey, which is written down once, through [`IndexHooks::set_multikey`];
//! * keys for an index that is being built go to its [`IndexInterceptor`], if it has one.
//!
//! **Constraints.** An operation of a client enforces them. Applying what another node has done relaxes them: a unique
//! index may hold duplicates for a while, because entries of a batch are applied out of order, and a document that cannot
//! be indexed (yet) is left out, because a later entry will mend it. The index on `_id` is never relaxed.
//!
//! Nothing here waits; no lock is held over a call.

mod cache;
mod duplicate;
mod hooks;
mod index_access;
mod presence;
#[cfg(test)]
mod tests;
mod write;

pub use duplicate::{duplicate_cluster_key_error, duplicate_key_error};
pub use hooks::{Arrays, DocumentFilter, IndexHooks, IndexInterceptor, Interceptors, SideWrite};
pub use index_access::IndexAccess;
pub use write::{Constraints, Duplicates, FAIL_POINTS, KeyCounts, KeyScratch};

use cache::AccessCache;
use pando_base::Result;
use pando_catalog::Index;
use std::sync::Arc;

/// The indexes of a node, as their collections' write paths see them.
pub struct Indexing {
    hooks: Arc<dyn IndexHooks>,
    cache: AccessCache,
}

impl Indexing {
    /// With what the layers above can do.
    pub fn new(hooks: Arc<dyn IndexHooks>) -> Indexing {
        Indexing { hooks, cache: AccessCache::default() }
    }

    /// What the layers above can do.
    pub fn hooks(&self) -> &Arc<dyn IndexHooks> {
        &self.hooks
    }

    /// The index's way from documents to keys, made at first use.
    pub fn access(&self, index: &Index) -> Result<Arc<IndexAccess>> {
        if let Some(access) = self.cache.get(&index.descriptor) {
            return Ok(access);
        }
        let access = Arc::new(IndexAccess::new(&index.descriptor, &*self.hooks)?);
        self.cache.insert(&index.descriptor, &access);
        Ok(access)
    }
}
