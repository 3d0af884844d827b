//! Dropping collections and databases: the first phase. The second is the reaper's.

use super::{Observers, require_unit};
use crate::catalog::Catalog;
use crate::{Collection, ViewCatalog, uncommitted};
use pando_base::{DatabaseName, ErrorCode, Namespace, Result, ensure};
use pando_operation::Operation;
use pando_oplog::observer::DropCollection;
use std::collections::BTreeSet;
use std::sync::Arc;

impl Catalog {
    /// Drops a collection.
    pub fn drop_collection(
        self: &Arc<Self>,
        operation: &mut Operation,
        observers: &Observers,
        namespace: &Namespace,
    ) -> Result<Arc<Collection>> {
        require_unit(operation)?;
        let collection = self.collection_for_ddl(operation, namespace)?;
        let record_count = u64::try_from(collection.records.num_records()?).unwrap_or(0);
        require_no_builds(&collection)?;
        let drop = DropCollection { collection: collection.observed(), record_count, from_migrate: false };
        observers.on_drop_collection(operation, &drop)?;
        self.remove_entry(operation, &collection)?;
        Ok(collection)
    }

    /// Takes a collection out of the catalog.
    pub(crate) fn remove_entry(
        self: &Arc<Self>,
        operation: &mut Operation,
        collection: &Arc<Collection>,
    ) -> Result<()> {
        self.durable.remove(&mut operation.recovery_unit, &collection.catalog_id)?;
        self.remove_uncommitted(operation, collection)?;
        let (catalog, database) = (Arc::clone(self), collection.namespace.database_name());
        operation.recovery_unit.on_commit(move |_| {
            catalog.thinned.lock().insert(database);
        })?;
        if collection.namespace.is_system_views() {
            let database = collection.namespace.database_name();
            self.put_views_uncommitted(operation, &database, Arc::new(ViewCatalog::default()))?;
        }
        Ok(())
    }

    /// Drops a database: all of its collections, its views' last.
    pub fn drop_database(
        self: &Arc<Self>,
        operation: &mut Operation,
        observers: &Observers,
        database: &DatabaseName,
    ) -> Result<()> {
        require_unit(operation)?;
        let latest = self.latest();
        let mut names: BTreeSet<Namespace> =
            latest.collections(database).map(|collection| collection.namespace.clone()).collect();
        names.extend(uncommitted::names(operation, database).into_iter().map(|(name, _)| name));
        let (views, others): (Vec<_>, Vec<_>) = names.into_iter().partition(Namespace::is_system_views);
        for name in others.iter().chain(&views) {
            if self.collection_for_write(operation, name)?.is_some() {
                self.drop_collection(operation, observers, name)?;
            }
        }
        observers.on_drop_database(operation, database)?;
        let (catalog, database) = (Arc::clone(self), database.clone());
        operation.recovery_unit.on_commit(move |_| {
            catalog.thinned.lock().remove(&database);
        })?;
        Ok(())
    }
}

/// A collection with index builds under way cannot go.
pub(super) fn require_no_builds(collection: &Collection) -> Result<()> {
    let builds = collection.indexes.iter().filter(|index| !index.ready).count();
    ensure!(
        builds == 0,
        ErrorCode::BackgroundOperationInProgressForNamespace,
        "cannot perform operation: an index build is currently running for collection {} with {builds} index builds",
        collection.namespace
    );
    Ok(())
}
