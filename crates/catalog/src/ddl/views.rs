//! Views: documents of `system.views`, and the version of the database's views that follows from them.
//!
//! Documents are written through a [`SystemViewsWriter`], because keeping up their index and telling the oplog is done by
//! the layers that write documents.

use super::{Observers, require_unit};
use crate::catalog::Catalog;
use crate::load::read_views;
use crate::{Collection, CollectionOptions, ViewCatalog, ViewDefinition, uncommitted};
use pando_base::{DatabaseName, ErrorCode, Namespace, Result, ensure};
use pando_doc::DocRef;
use pando_operation::Operation;
use std::sync::Arc;

/// Writes documents of `system.views`, in the operation's unit of work.
pub trait SystemViewsWriter {
    /// Inserts the document, or replaces the one of the same `_id`.
    fn put(&self, operation: &mut Operation, system_views: &Arc<Collection>, document: DocRef<'_>) -> Result<()>;
    /// Deletes the document of this `_id`, if there is one.
    fn remove(&self, operation: &mut Operation, system_views: &Arc<Collection>, id: &str) -> Result<()>;
}

impl Catalog {
    /// Creates a view.
    pub fn create_view(
        self: &Arc<Self>,
        operation: &mut Operation,
        observers: &Observers,
        writer: &dyn SystemViewsWriter,
        view: ViewDefinition,
    ) -> Result<()> {
        require_unit(operation)?;
        ensure!(
            !view.namespace.is_system_views(),
            ErrorCode::InvalidNamespace,
            "Cannot create a view called '{}': this is a reserved system namespace",
            view.namespace.collection()
        );
        ensure!(
            !view.namespace.is_system() && Namespace::is_valid_collection_name(view.namespace.collection()),
            ErrorCode::InvalidNamespace,
            "invalid namespace name for a view: {}",
            view.namespace
        );
        self.require_free(operation, &view.namespace)?;
        self.check_database_case(&view.namespace.database_name())?;
        self.put_view(operation, observers, writer, view)
    }

    /// Changes what a view is.
    pub fn modify_view(
        self: &Arc<Self>,
        operation: &mut Operation,
        observers: &Observers,
        writer: &dyn SystemViewsWriter,
        view: ViewDefinition,
    ) -> Result<()> {
        require_unit(operation)?;
        ensure!(
            self.is_view(operation, &view.namespace)?,
            ErrorCode::NamespaceNotFound,
            "cannot modify missing view {}",
            view.namespace
        );
        self.put_view(operation, observers, writer, view)
    }

    fn put_view(
        self: &Arc<Self>,
        operation: &mut Operation,
        observers: &Observers,
        writer: &dyn SystemViewsWriter,
        view: ViewDefinition,
    ) -> Result<()> {
        ensure!(
            view.view_on.database_name() == view.namespace.database_name(),
            ErrorCode::BadValue,
            "View must be created on a view or collection in the same database"
        );
        ensure!(
            Namespace::is_valid_collection_name(view.view_on.collection()),
            ErrorCode::InvalidNamespace,
            "invalid name for 'viewOn': {}",
            view.view_on.collection()
        );
        let database = view.namespace.database_name();
        let document = view.to_doc();
        let views = self.views_for_write(operation, &database).with(view)?;
        let system_views = self.require_system_views(operation, observers, &database)?;
        writer.put(operation, &system_views, document.view())?;
        self.put_views_uncommitted(operation, &database, Arc::new(views))
    }

    /// Drops a view.
    pub fn drop_view(
        self: &Arc<Self>,
        operation: &mut Operation,
        writer: &dyn SystemViewsWriter,
        namespace: &Namespace,
    ) -> Result<()> {
        require_unit(operation)?;
        ensure!(
            self.is_view(operation, namespace)?,
            ErrorCode::NamespaceNotFound,
            "cannot drop missing view: {namespace}"
        );
        let database = namespace.database_name();
        let views = self.views_for_write(operation, &database).without(namespace);
        if let Some(system_views) = self.collection_for_write(operation, &Namespace::system_views(&database))? {
            writer.remove(operation, &system_views, namespace.as_str())?;
        }
        self.put_views_uncommitted(operation, &database, Arc::new(views))
    }

    /// Reads a database's views again, in the operation's unit of work: after documents of `system.views` were written by
    /// other ways than these.
    pub fn reload_views(self: &Arc<Self>, operation: &mut Operation, database: &DatabaseName) -> Result<()> {
        require_unit(operation)?;
        let views = match self.collection_for_write(operation, &Namespace::system_views(database))? {
            Some(system_views) => read_views(&mut operation.recovery_unit, &system_views)?,
            None => ViewCatalog::default(),
        };
        self.put_views_uncommitted(operation, database, Arc::new(views))
    }

    fn views_for_write(&self, operation: &Operation, database: &DatabaseName) -> Arc<ViewCatalog> {
        let own = uncommitted::views(operation, database);
        own.or_else(|| self.latest().views(database).cloned()).unwrap_or_default()
    }

    /// The database's `system.views`; made, if there is none.
    fn require_system_views(
        self: &Arc<Self>,
        operation: &mut Operation,
        observers: &Observers,
        database: &DatabaseName,
    ) -> Result<Arc<Collection>> {
        let namespace = Namespace::system_views(database);
        match self.collection_for_write(operation, &namespace)? {
            Some(system_views) => Ok(system_views),
            None => self.create_collection(operation, observers, &namespace, CollectionOptions::default()),
        }
    }
}
