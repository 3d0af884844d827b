//! What the write path of a node is made of.

use crate::capped::CappedPlaces;
use crate::validation::DocumentValidator;
use pando_base::{Result, Uuid};
use pando_catalog::Collection;
use pando_index::{Indexing, KeyCounts};
use pando_operation::Operation;
use pando_oplog::OpObserver;
use std::sync::Arc;

/// Is told, after the commit, that a capped collection has new documents: its tailing cursors may go on.
pub trait InsertWatcher: Send + Sync {
    /// The collection has new documents.
    fn inserted(&self, collection: Uuid);
}

/// Writes documents, their keys and what observers make of them.
pub struct WritePath {
    pub(crate) observers: Arc<dyn OpObserver<Operation>>,
    pub(crate) indexing: Arc<Indexing>,
    pub(crate) validator: Arc<dyn DocumentValidator>,
    pub(crate) watcher: Option<Arc<dyn InsertWatcher>>,
    pub(crate) capped_places: Arc<CappedPlaces>,
}

impl WritePath {
    /// A write path. Observers are called in their registry's order.
    pub fn new(
        observers: Arc<dyn OpObserver<Operation>>,
        indexing: Arc<Indexing>,
        validator: Arc<dyn DocumentValidator>,
    ) -> WritePath {
        WritePath { observers, indexing, validator, watcher: None, capped_places: Arc::default() }
    }

    /// With somebody who is told of inserts into capped collections.
    #[must_use]
    pub fn with_watcher(mut self, watcher: Arc<dyn InsertWatcher>) -> WritePath {
        self.watcher = Some(watcher);
        self
    }

    /// The indexes.
    pub fn indexing(&self) -> &Arc<Indexing> {
        &self.indexing
    }

    /// Has `body` write in one unit of work, of which observers make one entry. If it fails, nothing has happened.
    pub fn in_group<T>(&self, operation: &mut Operation, body: impl FnOnce(&mut Operation) -> Result<T>) -> Result<T> {
        let mut unit = operation.unit_of_work();
        self.observers.on_batched_write_start(&mut unit)?;
        let written = body(&mut unit).and_then(|value| {
            self.observers.on_batched_write_commit(&mut unit, &[])?;
            Ok(value)
        });
        match written {
            Ok(value) => unit.commit().map(|_| value),
            Err(error) => {
                self.observers.on_batched_write_abort(&mut unit)?;
                Err(error)
            }
        }
    }

    /// Forgets where capped collections begin, after data went back in time (rollback) or came from elsewhere.
    pub fn forget_capped_places(&self) {
        self.capped_places.clear();
    }

    /// Whether observers are told: what the oplog writer writes by itself would have it write again.
    pub(crate) fn is_observed(collection: &Collection) -> bool {
        !collection.namespace.is_implicitly_replicated()
    }

    /// Has the watcher told once the unit of work commits.
    pub(crate) fn tell_watcher(&self, operation: &mut Operation, collection: &Collection) -> Result<()> {
        let Some(watcher) = self.watcher.as_ref().filter(|_| collection.is_capped()) else { return Ok(()) };
        let (watcher, uuid) = (Arc::clone(watcher), collection.uuid);
        Ok(operation.recovery_unit.on_commit(move |_| watcher.inserted(uuid))?)
    }
}

/// Adds up the keys that a write has cost. Counted before the commit: a unit that is rolled back has cost them all the same.
pub(crate) fn count_keys(operation: &Operation, counts: KeyCounts) {
    let statistics = operation.context.statistics();
    statistics.keys_inserted.add(counts.inserted);
    statistics.keys_deleted.add(counts.deleted);
}
