//! Where executors find collections.

use pando_base::{Namespace, Result, Uuid};
use pando_catalog::{Catalog, Collection, ResolvedView};
use pando_doc::Doc;
use pando_operation::Operation;
use std::sync::Arc;

/// Finds collections as an operation's snapshot has them.
pub trait Collections: Send + Sync {
    /// The collection of this name. Opens the operation's snapshot, together with the version of the catalog that belongs to
    /// it.
    fn open(&self, operation: &mut Operation, namespace: &Namespace) -> Result<Option<Arc<Collection>>>;

    /// The collection of this id, which had this name; for after a yield.
    fn reopen(&self, operation: &mut Operation, namespace: &Namespace, uuid: &Uuid) -> Result<Option<Arc<Collection>>>;

    /// The collection of this name for a write, whose lock the operation holds. Opens the operation's snapshot.
    fn open_for_write(&self, operation: &mut Operation, namespace: &Namespace) -> Result<Option<Arc<Collection>>>;

    /// Fails if a pipeline on this collection refers to views that are too deep.
    fn check_pipeline(&self, namespace: &Namespace, pipeline: &[Doc]) -> Result<()>;

    /// What a view of this name stands for.
    fn view(&self, namespace: &Namespace) -> Result<Option<ResolvedView>>;
}

/// The collections of a node's catalog.
pub struct CatalogCollections(pub Arc<Catalog>);

impl Collections for CatalogCollections {
    fn open(&self, operation: &mut Operation, namespace: &Namespace) -> Result<Option<Arc<Collection>>> {
        let mut view = self.0.establish(operation)?;
        view.collection(&self.0, operation, namespace)
    }

    fn reopen(&self, operation: &mut Operation, namespace: &Namespace, uuid: &Uuid) -> Result<Option<Arc<Collection>>> {
        let mut view = self.0.establish(operation)?;
        match view.collection(&self.0, operation, namespace)? {
            Some(found) if found.uuid == *uuid => Ok(Some(found)),
            _ => view.collection_by_uuid(&self.0, operation, uuid),
        }
    }

    fn open_for_write(&self, operation: &mut Operation, namespace: &Namespace) -> Result<Option<Arc<Collection>>> {
        // Before the planner asks which indexes are multikey: what it learns then covers what the snapshot sees.
        operation.recovery_unit.preallocate_snapshot()?;
        self.0.collection_for_write(operation, namespace)
    }

    fn check_pipeline(&self, namespace: &Namespace, pipeline: &[Doc]) -> Result<()> {
        self.0.latest().check_pipeline(namespace, pipeline.iter().map(Doc::view))
    }

    fn view(&self, namespace: &Namespace) -> Result<Option<ResolvedView>> {
        self.0.latest().resolve_view(namespace)
    }
}
