//! What changes the catalog.
//!
//! Every function runs inside a unit of work of the operation, under locks that the caller holds: X on the collections
//! concerned, IX or X on the database. It changes the durable catalog, makes the new version of the collection, which the
//! operation itself sees at once, and tells the observers, in this order; a drop tells them first, so that it carries the
//! time of its oplog entry. The version is published when the unit commits (see `uncommitted`); an error rolls everything
//! back with the unit.
//!
//! Names are checked as far as the catalog must know them; who may create what is for the commands.

mod coll_mod;
mod create;
mod drop;
mod indexes;
mod multikey;
mod rename;
mod views;

pub use coll_mod::{CollModChange, CollModOutcome, IndexChange};
pub use create::requires_id_index;
pub use indexes::PreparedIndex;
pub use rename::RenameOptions;
pub use views::SystemViewsWriter;

use crate::catalog::Catalog;
use crate::{CatalogEntry, Collection, uncommitted};
use pando_base::{DatabaseName, Error, ErrorCode, Namespace, Result, ensure};
use pando_operation::Operation;
use pando_oplog::OpObserver;
use std::sync::Arc;

/// Who is told of changes.
pub type Observers = dyn OpObserver<Operation>;

impl Catalog {
    /// Changes a collection's entry and makes the version that follows from it.
    pub(crate) fn modify(
        self: &Arc<Self>,
        operation: &mut Operation,
        collection: &Arc<Collection>,
        change: impl FnOnce(&mut CatalogEntry) -> Result<()>,
    ) -> Result<Arc<Collection>> {
        require_unit(operation)?;
        let id = &collection.catalog_id;
        let entry = self.durable.get(&mut operation.recovery_unit, id)?;
        let mut entry = entry.ok_or_else(|| not_found(&collection.namespace))?;
        let before = entry.namespace.clone();
        change(&mut entry)?;
        self.durable.update(&mut operation.recovery_unit, id, &entry)?;
        let next = self.instantiate(id.clone(), &entry, collection.minimum_valid_snapshot, Some(collection))?;
        let next = Arc::new(next);
        self.put_uncommitted(operation, &next, Some(&before))?;
        Ok(next)
    }

    /// The collection to be changed: fails if there is none, or a view in its place.
    pub fn collection_for_ddl(&self, operation: &mut Operation, namespace: &Namespace) -> Result<Arc<Collection>> {
        if let Some(collection) = self.collection_for_write(operation, namespace)? {
            return Ok(collection);
        }
        ensure!(
            !self.is_view(operation, namespace)?,
            ErrorCode::CommandNotSupportedOnView,
            "Namespace {namespace} is a view, not a collection"
        );
        Err(not_found(namespace))
    }

    /// True if the name is a view's, for an operation that has locked it.
    pub(crate) fn is_view(&self, operation: &Operation, namespace: &Namespace) -> Result<bool> {
        match uncommitted::views(operation, &namespace.database_name()) {
            Some(views) => Ok(views.get(namespace)?.is_some()),
            None => Ok(self.latest().view(namespace)?.is_some()),
        }
    }

    /// Fails if a collection or a view has the name.
    pub(crate) fn require_free(&self, operation: &mut Operation, namespace: &Namespace) -> Result<()> {
        ensure!(
            self.collection_for_write(operation, namespace)?.is_none(),
            ErrorCode::NamespaceExists,
            "Collection {namespace} already exists."
        );
        ensure!(
            !self.is_view(operation, namespace)?,
            ErrorCode::NamespaceExists,
            "A view already exists. NS: {namespace}"
        );
        Ok(())
    }

    /// Fails if there is a database whose name differs from this in case alone.
    pub fn check_database_case(&self, database: &DatabaseName) -> Result<()> {
        self.latest().database_ignoring_case(database).map_or(Ok(()), |existing| database.check_case(existing))
    }
}

pub(crate) fn require_unit(operation: &Operation) -> Result<()> {
    debug_assert!(operation.recovery_unit.in_unit_of_work(), "DDL needs a unit of work");
    ensure!(
        operation.recovery_unit.in_unit_of_work(),
        ErrorCode::IllegalOperation,
        "the catalog is changed in a unit of work only"
    );
    Ok(())
}

pub(crate) fn not_found(namespace: &Namespace) -> Error {
    Error::new(ErrorCode::NamespaceNotFound, format!("ns does not exist: {namespace}"))
}
