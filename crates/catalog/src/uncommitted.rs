//! What an operation's unit of work has changed of the catalog and not committed yet.
//!
//! The operation itself sees it at once, everybody else when the unit commits. The commit has two phases. Just before the
//! engine's commit the names and ids that change are entered as pending: from then on readers look into the durable
//! catalog to learn which version their snapshot has. After the engine's commit the new versions replace the old ones and
//! the pending marks go, in one step. A rollback takes the marks back, and gives tables made in vain to the reaper.
//!
//! Why that is enough: a reader takes a version of the catalog, opens its snapshot and finds the version still current.
//! Without a mark on a name, a change of that name either was published before (and its commit came before the snapshot) or
//! had not entered its mark yet (and its commit comes after the snapshot).
//!
//! The changes are shared by the operation and the storage unit's `Change`; only one of them is at work at a time. Lock
//! order: theirs, then the catalog's.

use crate::catalog::Catalog;
use crate::fail_points::BEFORE_PUBLISHING;
use crate::memory::{CatalogVersions, Next};
use crate::{Collection, CollectionCatalog, ViewCatalog};
use pando_base::{DatabaseName, Namespace, RecordId, Result, Timestamp, Uuid};
use pando_operation::Operation;
use pando_storage::{Change, StorageError};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often a change that a test has stopped looks whether to go on.
const REST: Duration = Duration::from_millis(10);

/// A name that leads elsewhere.
#[derive(Clone)]
struct NameChange {
    namespace: Namespace,
    next: Next,
    /// The commit timestamp that was in force after the change, if one was.
    at: Option<Timestamp>,
}

/// A collection that is new, changed or gone.
#[derive(Clone)]
struct CollectionChange {
    uuid: Uuid,
    catalog_id: RecordId,
    next: Next,
}

/// All changes of a unit, each name and id once.
#[derive(Clone, Default)]
struct Changes {
    names: Vec<NameChange>,
    collections: Vec<CollectionChange>,
    views: Vec<(DatabaseName, Arc<ViewCatalog>)>,
    created_idents: Vec<String>,
    dropped_idents: Vec<String>,
    /// A `Change` was registered with the unit.
    registered: bool,
    /// The pending marks are set.
    marked: bool,
}

/// The operation's handle.
#[derive(Clone, Default)]
struct Uncommitted(Arc<Mutex<Changes>>);

/// What the operation's unit has made of a name, if it has.
pub(crate) fn name(operation: &Operation, namespace: &Namespace) -> Option<Next> {
    let changes = operation.extensions.get::<Uncommitted>()?.0.lock();
    changes.names.iter().find(|change| change.namespace == *namespace).map(|change| change.next.clone())
}

/// True if the operation's unit may have changed something.
pub(crate) fn has_any(operation: &Operation) -> bool {
    operation.extensions.get::<Uncommitted>().is_some()
}

/// What the operation's unit has made of an id, if it has.
pub(crate) fn uuid(operation: &Operation, uuid: &Uuid) -> Option<Next> {
    let changes = operation.extensions.get::<Uncommitted>()?.0.lock();
    changes.collections.iter().find(|change| change.uuid == *uuid).map(|change| change.next.clone())
}

/// What the operation's unit has made of a database's views, if it has.
pub(crate) fn views(operation: &Operation, database: &DatabaseName) -> Option<Arc<ViewCatalog>> {
    let changes = operation.extensions.get::<Uncommitted>()?.0.lock();
    changes.views.iter().find(|change| change.0 == *database).map(|change| Arc::clone(&change.1))
}

/// Names of a database that the operation's unit has changed.
pub(crate) fn names(operation: &Operation, database: &DatabaseName) -> Vec<(Namespace, Next)> {
    let Some(uncommitted) = operation.extensions.get::<Uncommitted>() else { return Vec::new() };
    let changes = uncommitted.0.lock();
    let of_database = changes.names.iter().filter(|change| change.namespace.database_name() == *database);
    of_database.map(|change| (change.namespace.clone(), change.next.clone())).collect()
}

impl Catalog {
    /// Has the operation's unit changed anything of the catalog?
    pub fn has_uncommitted(&self, operation: &Operation) -> bool {
        operation.extensions.get::<Uncommitted>().is_some_and(|uncommitted| uncommitted.0.lock().registered)
    }

    /// A collection is new or changed. A name that it had before leads nowhere now.
    pub(crate) fn put_uncommitted(
        self: &Arc<Self>,
        operation: &mut Operation,
        collection: &Arc<Collection>,
        before: Option<&Namespace>,
    ) -> Result<()> {
        let at = operation.recovery_unit.commit_timestamp();
        self.change(operation, |changes| {
            if let Some(before) = before.filter(|before| **before != collection.namespace) {
                changes.set_name(before.clone(), None, at);
            }
            changes.set_name(collection.namespace.clone(), Some(Arc::clone(collection)), at);
            changes.set_collection(collection.uuid, collection.catalog_id.clone(), Some(Arc::clone(collection)));
        })
    }

    /// A collection is gone, and with it its tables.
    pub(crate) fn remove_uncommitted(
        self: &Arc<Self>,
        operation: &mut Operation,
        collection: &Collection,
    ) -> Result<()> {
        let at = operation.recovery_unit.commit_timestamp();
        self.change(operation, |changes| {
            changes.set_name(collection.namespace.clone(), None, at);
            changes.set_collection(collection.uuid, collection.catalog_id.clone(), None);
            changes.dropped_idents.push(collection.ident().to_owned());
            changes.dropped_idents.extend(collection.indexes.iter().map(|index| index.ident().to_owned()));
        })
    }

    /// A table was made; it goes again if the unit rolls back.
    pub(crate) fn created_ident(self: &Arc<Self>, operation: &mut Operation, ident: &str) -> Result<()> {
        self.change(operation, |changes| changes.created_idents.push(ident.to_owned()))
    }

    /// A table is no longer in the catalog.
    pub(crate) fn dropped_ident(self: &Arc<Self>, operation: &mut Operation, ident: &str) -> Result<()> {
        self.change(operation, |changes| changes.dropped_idents.push(ident.to_owned()))
    }

    /// A database has other views.
    pub(crate) fn put_views_uncommitted(
        self: &Arc<Self>,
        operation: &mut Operation,
        database: &DatabaseName,
        views: Arc<ViewCatalog>,
    ) -> Result<()> {
        self.change(operation, |changes| {
            changes.views.retain(|change| change.0 != *database);
            changes.views.push((database.clone(), views));
        })
    }

    fn change(self: &Arc<Self>, operation: &mut Operation, change: impl FnOnce(&mut Changes)) -> Result<()> {
        let uncommitted = operation.extensions.get_or_default::<Uncommitted>().clone();
        let is_first = !std::mem::replace(&mut uncommitted.0.lock().registered, true);
        if is_first {
            let publish = Publish { catalog: Arc::clone(self), uncommitted: uncommitted.clone() };
            let mark = Publish { catalog: Arc::clone(self), uncommitted: uncommitted.clone() };
            let registered = operation
                .recovery_unit
                .register_change(Box::new(publish))
                .and_then(|()| operation.recovery_unit.register_pre_commit_hook(Box::new(move |_| mark.set_pending())));
            if let Err(error) = registered {
                *uncommitted.0.lock() = Changes::default();
                return Err(error.into());
            }
        }
        change(&mut uncommitted.0.lock());
        Ok(())
    }
}

impl Changes {
    fn set_name(&mut self, namespace: Namespace, next: Next, at: Option<Timestamp>) {
        match self.names.iter_mut().find(|change| change.namespace == namespace) {
            Some(change) => change.next = next,
            None => self.names.push(NameChange { namespace, next, at }),
        }
    }

    fn set_collection(&mut self, uuid: Uuid, catalog_id: RecordId, next: Next) {
        match self.collections.iter_mut().find(|change| change.uuid == uuid) {
            Some(change) => change.next = next,
            None => self.collections.push(CollectionChange { uuid, catalog_id, next }),
        }
    }

    /// True if the name of a collection that the unit has made is somebody else's by now.
    fn is_taken(&self, catalog: &CollectionCatalog) -> bool {
        let is_own = |uuid: &Uuid| self.collections.iter().any(|change| change.uuid == *uuid);
        let made = self
            .names
            .iter()
            .filter(|change| change.next.as_ref().is_some_and(|made| catalog.collection_by_uuid(&made.uuid).is_none()));
        made.map(|change| &change.namespace).any(|name| {
            catalog.collection(name).is_some_and(|existing| !is_own(&existing.uuid))
                || catalog.pending_name(name).is_some()
                || catalog.view(name).is_ok_and(|view| view.is_some())
        })
    }

    fn pending_names(&self) -> Vec<(Namespace, Next)> {
        self.names.iter().map(|change| (change.namespace.clone(), change.next.clone())).collect()
    }

    fn pending_uuids(&self) -> Vec<(Uuid, Next)> {
        self.collections.iter().map(|change| (change.uuid, change.next.clone())).collect()
    }

    /// Enters everything into a version of the catalog.
    fn apply(self, catalog: &mut CollectionCatalog, committed_at: Option<Timestamp>) {
        catalog.clear_pending(&self.pending_names(), &self.pending_uuids());
        let time = |namespace: &Namespace, at: Option<Timestamp>| {
            // What is not replicated has no past, whatever the unit's timestamp is for.
            if namespace.is_replicated() { at.or(committed_at).unwrap_or_default() } else { Timestamp::NONE }
        };
        let last = committed_at.unwrap_or_default();
        for change in &self.collections {
            match &change.next {
                Some(next) => {
                    let mut published = Collection::clone(next);
                    published.minimum_valid_snapshot = if next.is_replicated() { last } else { Timestamp::NONE };
                    catalog.put(Arc::new(published));
                }
                None => {
                    catalog.record_drop(change.uuid, change.catalog_id.clone(), last);
                    catalog.remove(&change.uuid);
                }
            }
        }
        for change in &self.names {
            let catalog_id = change.next.as_ref().map(|collection| collection.catalog_id.clone());
            catalog.record_name(&change.namespace, catalog_id, time(&change.namespace, change.at));
        }
        self.views.into_iter().for_each(|(database, views)| catalog.set_views(&database, views));
    }
}

impl Catalog {
    /// Blocks the thread while a test wants to see what readers find meanwhile.
    fn rest_before_publishing(&self, changes: &Changes) {
        let is_meant = |named: &Option<String>| {
            let mut names = changes.names.iter().map(|change| change.namespace.as_str());
            named.as_deref().is_none_or(|named| names.any(|name| name == named))
        };
        if BEFORE_PUBLISHING.hit_if(is_meant).is_some() {
            self.env.tasks().blocking(&mut || {
                while BEFORE_PUBLISHING.is_on() {
                    self.env.clock().pause(REST);
                }
            });
        }
    }
}

/// The end of the unit.
struct Publish {
    catalog: Arc<Catalog>,
    uncommitted: Uncommitted,
}

impl Publish {
    fn versions(&self) -> &CatalogVersions {
        &self.catalog.versions
    }

    /// Sets the marks, unless another has made a collection of the same name since, or is about to: whoever makes one does not
    /// keep others from it, so that the first to commit has the name.
    fn set_pending(&self) -> pando_storage::Result<()> {
        let mut changes = self.uncommitted.0.lock();
        let (wanted, is_taken) = (changes.clone(), Arc::new(AtomicBool::new(false)));
        let taken = Arc::clone(&is_taken);
        self.versions().write(move |catalog| match wanted.is_taken(catalog) {
            true => taken.store(true, Ordering::Release),
            false => catalog.set_pending(&wanted.pending_names(), &wanted.pending_uuids()),
        });
        changes.marked = !is_taken.load(Ordering::Acquire);
        if changes.marked { Ok(()) } else { Err(StorageError::WriteConflict) }
    }
}

impl Change for Publish {
    fn on_commit(self: Box<Self>, timestamp: Option<Timestamp>) {
        let changes = std::mem::take(&mut *self.uncommitted.0.lock());
        self.catalog.rest_before_publishing(&changes);
        let dropped = changes.dropped_idents.clone();
        self.versions().write(move |catalog| changes.apply(catalog, timestamp));
        dropped.into_iter().for_each(|ident| self.catalog.reaper.add(ident, timestamp));
    }

    fn on_rollback(self: Box<Self>) {
        let mut changes = std::mem::take(&mut *self.uncommitted.0.lock());
        let created = std::mem::take(&mut changes.created_idents);
        if changes.marked {
            let (names, uuids) = (changes.pending_names(), changes.pending_uuids());
            self.versions().write(move |catalog| catalog.clear_pending(&names, &uuids));
        }
        // Versions that hold these tables go first.
        drop(changes);
        created.into_iter().for_each(|ident| self.catalog.reaper.add_now(ident));
    }
}
