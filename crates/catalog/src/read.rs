//! A version of the catalog together with the snapshot that it belongs to: what a lock-free read starts with.
//!
//! [`Catalog::establish`] takes the current version, opens the operation's snapshot and looks whether the version is still
//! current; if not, it tries again. Nobody waits for anybody. What is found through the [`CatalogView`] then is what the
//! snapshot has, whatever happens meanwhile, also if it reads at an earlier time:
//!
//! - a collection that has not changed since that time is the newest version itself;
//! - one that changed, was renamed or dropped since is made from its entry in the durable catalog, seen through the
//!   snapshot, over the same tables;
//! - one with a change about to commit is looked up in the durable catalog too, to learn which version the snapshot has.
//!
//! Nested reads of an operation share the view. After a yield, when the snapshot was let go of, it is established anew. A
//! transaction has one snapshot for all its statements: it keeps the version that the snapshot was opened with.

use crate::catalog::Catalog;
use crate::load::read_views;
use crate::memory::{Next, PastName};
use crate::{CatalogEntry, Collection, CollectionCatalog, list_catalog_row, list_catalog_view_row, uncommitted};
use pando_base::{DatabaseName, Error, ErrorCode, Namespace, RecordId, Result, Timestamp, Uuid};
use pando_doc::Doc;
use pando_operation::Operation;
use pando_storage::{SnapshotId, StorageError};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A version of the catalog that fits the operation's snapshot.
pub struct CatalogView {
    latest: Arc<CollectionCatalog>,
    snapshot: SnapshotId,
    read_timestamp: Option<Timestamp>,
    /// The snapshot is older than the version, so that everything is to be looked up in the durable catalog.
    is_older: bool,
    /// What was looked up there, so that it is made once.
    opened: Vec<(Key, Next)>,
}

/// The version that a transaction's snapshot was opened with.
struct Kept {
    latest: Arc<CollectionCatalog>,
    snapshot: SnapshotId,
}

/// The version that belongs to the operation's snapshot, if it keeps one.
fn kept(operation: &Operation) -> Option<&Kept> {
    let kept = operation.extensions.get::<Kept>()?;
    (operation.recovery_unit.snapshot_id() == Some(kept.snapshot)).then_some(kept)
}

/// True if the operation's snapshot is known to have this version of the collection of this name, which the newest version of the
/// catalog has.
pub(crate) fn is_kept(
    operation: &Operation,
    newest: &Arc<CollectionCatalog>,
    namespace: &Namespace,
    collection: &Arc<Collection>,
) -> bool {
    kept(operation).is_some_and(|kept| {
        // Mostly nothing has changed since.
        if Arc::ptr_eq(&kept.latest, newest) && !kept.latest.is_anything_pending() {
            return true;
        }
        let seen = kept.latest.collection(namespace).filter(|_| kept.latest.pending_name(namespace).is_none());
        seen.is_some_and(|seen| Arc::ptr_eq(seen, collection))
    })
}

#[derive(Clone, PartialEq, Eq)]
enum Key {
    Name(Namespace),
    Uuid(Uuid),
}

impl Key {
    fn is_of(&self, entry: &CatalogEntry) -> bool {
        match self {
            Key::Name(namespace) => entry.namespace == *namespace,
            Key::Uuid(uuid) => entry.uuid() == Some(*uuid),
        }
    }

    fn latest<'a>(&self, catalog: &'a CollectionCatalog) -> Option<&'a Arc<Collection>> {
        match self {
            Key::Name(namespace) => catalog.collection(namespace),
            Key::Uuid(uuid) => catalog.collection_by_uuid(uuid),
        }
    }

    fn pending<'a>(&self, catalog: &'a CollectionCatalog) -> Option<&'a Next> {
        match self {
            Key::Name(namespace) => catalog.pending_name(namespace),
            Key::Uuid(uuid) => catalog.pending_uuid(uuid),
        }
    }

    fn past(&self, catalog: &CollectionCatalog, at: Timestamp) -> PastName {
        match self {
            Key::Name(namespace) => catalog.past_name(namespace, at),
            Key::Uuid(uuid) => catalog.past_uuid(uuid, at),
        }
    }

    fn uncommitted(&self, operation: &Operation) -> Option<Next> {
        match self {
            Key::Name(namespace) => uncommitted::name(operation, namespace),
            Key::Uuid(uuid) => uncommitted::uuid(operation, uuid),
        }
    }
}

impl Catalog {
    /// Opens the operation's snapshot together with the version of the catalog that belongs to it. A snapshot that is open
    /// stays: then everything is looked up in the durable catalog, which is slower, unless the operation keeps the version
    /// that belongs to it; so keep the view as long as the snapshot.
    pub fn establish(&self, operation: &mut Operation) -> Result<CatalogView> {
        if let Some(Kept { latest, snapshot }) = kept(operation) {
            let (latest, snapshot) = (Arc::clone(latest), *snapshot);
            let read_timestamp = operation.recovery_unit.read_timestamp();
            return Ok(CatalogView { latest, snapshot, read_timestamp, is_older: false, opened: Vec::new() });
        }
        let was_open = operation.recovery_unit.snapshot_id().is_some();
        loop {
            let latest = self.latest();
            operation.recovery_unit.preallocate_snapshot()?;
            let is_older = was_open || !Arc::ptr_eq(&latest, &self.versions.peek());
            if is_older && !was_open && !operation.recovery_unit.in_unit_of_work() {
                operation.recovery_unit.abandon_snapshot()?;
                continue;
            }
            let snapshot = operation.recovery_unit.snapshot_id();
            let snapshot = snapshot.ok_or_else(|| Error::internal("a snapshot was opened and is not open"))?;
            let read_timestamp = operation.recovery_unit.read_timestamp();
            return Ok(CatalogView { latest, snapshot, read_timestamp, is_older, opened: Vec::new() });
        }
    }

    /// Opens the snapshot of a transaction that begins, and keeps the version of the catalog that belongs to it for the views
    /// of all its statements. Tables that are dropped meanwhile stay until the transaction ends.
    pub fn establish_for_transaction(&self, operation: &mut Operation) -> Result<()> {
        let view = self.establish(operation)?;
        if !view.is_older {
            operation.extensions.insert(Kept { latest: view.latest, snapshot: view.snapshot });
        }
        Ok(())
    }
}

impl CatalogView {
    /// The version of the catalog. Its collections may be newer than the snapshot; views have no past, so they are looked up
    /// here.
    pub fn latest(&self) -> &Arc<CollectionCatalog> {
        &self.latest
    }

    /// True if the view still belongs to the operation's snapshot: not after a yield.
    pub fn is_current(&self, operation: &Operation) -> bool {
        operation.recovery_unit.snapshot_id() == Some(self.snapshot)
    }

    /// The collection of this name, as the snapshot has it.
    pub fn collection(&mut self, catalog: &Catalog, operation: &mut Operation, namespace: &Namespace) -> Result<Next> {
        debug_assert!(self.is_current(operation), "the view is of another snapshot");
        // What nearly every read meets: nothing has happened to the collection.
        let is_plain = !self.is_older && !self.latest.is_anything_pending();
        if is_plain && (!operation.recovery_unit.in_unit_of_work() || !uncommitted::has_any(operation)) {
            let found = self.latest.collection(namespace);
            if self.read_timestamp.is_none() || found.is_some_and(|found| self.is_old_enough(found)) {
                return Ok(found.cloned());
            }
        }
        self.find(catalog, operation, Key::Name(namespace.clone()))
    }

    /// The collection of this id, as the snapshot has it.
    pub fn collection_by_uuid(&mut self, catalog: &Catalog, operation: &mut Operation, uuid: &Uuid) -> Result<Next> {
        debug_assert!(self.is_current(operation), "the view is of another snapshot");
        self.find(catalog, operation, Key::Uuid(*uuid))
    }

    /// The collection of this name, to be written by a transaction that has locked it: a write conflict if it was changed
    /// since the snapshot was opened.
    pub fn collection_for_write(
        &mut self,
        catalog: &Catalog,
        operation: &mut Operation,
        namespace: &Namespace,
    ) -> Result<Next> {
        if let Some(own) = uncommitted::name(operation, namespace) {
            return Ok(own);
        }
        let seen = self.collection(catalog, operation, namespace)?;
        let is_unchanged = match (&seen, catalog.versions.peek().collection(namespace)) {
            (Some(seen), Some(latest)) => Arc::ptr_eq(seen, latest),
            (None, None) => true,
            _ => false,
        };
        if is_unchanged { Ok(seen) } else { Err(StorageError::WriteConflict.into()) }
    }

    /// The collections of a database, as the snapshot has them, by name.
    pub fn collections(
        &mut self,
        catalog: &Catalog,
        operation: &mut Operation,
        database: &DatabaseName,
    ) -> Result<Vec<Arc<Collection>>> {
        let names = self.names(catalog, operation, database)?;
        let mut found = Vec::with_capacity(names.len());
        for name in names {
            found.extend(self.collection(catalog, operation, &name)?);
        }
        Ok(found)
    }

    /// The databases, as the snapshot has them, by name.
    pub fn databases(&mut self, catalog: &Catalog, operation: &mut Operation) -> Result<Vec<DatabaseName>> {
        let is_plain = !self.is_older && self.read_timestamp.is_none() && !self.latest.is_anything_pending();
        if is_plain && !operation.recovery_unit.in_unit_of_work() {
            return Ok(self.latest.databases().cloned().collect());
        }
        let mut found = BTreeSet::new();
        catalog.durable.for_each(&mut operation.recovery_unit, |_, document| {
            found.insert(CatalogEntry::parse(document)?.namespace.database_name());
            Ok(())
        })?;
        Ok(found.into_iter().collect())
    }

    /// Names of collections that the database has or may have in the snapshot.
    fn names(
        &self,
        catalog: &Catalog,
        operation: &mut Operation,
        database: &DatabaseName,
    ) -> Result<BTreeSet<Namespace>> {
        let is_unchanged = match (self.read_timestamp, self.latest.changed_at(database)) {
            (None, _) => true,
            (Some(at), Some(changed_at)) => changed_at <= at,
            (Some(_), None) => false,
        };
        if is_unchanged && !self.is_older && !self.latest.has_pending(database) {
            let latest = self.latest.collections(database).map(|collection| collection.namespace.clone());
            let own = uncommitted::names(operation, database).into_iter().map(|(name, _)| name);
            return Ok(latest.chain(own).collect());
        }
        let mut names = BTreeSet::new();
        catalog.durable.for_each(&mut operation.recovery_unit, |_, document| {
            let entry = CatalogEntry::parse(document)?;
            if entry.namespace.database_name() == *database {
                names.insert(entry.namespace);
            }
            Ok(())
        })?;
        Ok(names)
    }

    /// True if the newest version is also that of the snapshot's time.
    fn is_old_enough(&self, collection: &Collection) -> bool {
        self.read_timestamp.is_none_or(|at| collection.minimum_valid_snapshot <= at)
    }

    fn find(&mut self, catalog: &Catalog, operation: &mut Operation, key: Key) -> Result<Next> {
        if let Some(own) = key.uncommitted(operation) {
            return Ok(own);
        }
        let latest = key.latest(&self.latest);
        if !self.is_older && key.pending(&self.latest).is_none() {
            match (latest, self.read_timestamp) {
                (found, None) => return Ok(found.cloned()),
                (Some(found), Some(_)) if self.is_old_enough(found) => return Ok(Some(Arc::clone(found))),
                (None, Some(at)) if key.past(&self.latest, at) == PastName::Nothing => return Ok(None),
                _ => {}
            }
        }
        if let Some((_, opened)) = self.opened.iter().find(|(opened, _)| *opened == key) {
            return Ok(opened.clone());
        }
        let opened = self.open(catalog, operation, &key)?;
        self.opened.push((key, opened.clone()));
        Ok(opened)
    }

    /// Looks into the durable catalog for what the snapshot has.
    fn open(&self, catalog: &Catalog, operation: &mut Operation, key: &Key) -> Result<Next> {
        let known = key.latest(&self.latest).into_iter().chain(key.pending(&self.latest).into_iter().flatten());
        let known: Vec<&Arc<Collection>> = known.collect();
        let past = self.read_timestamp.map(|at| key.past(&self.latest, at));
        let mut candidates: Vec<RecordId> = known.iter().map(|collection| collection.catalog_id.clone()).collect();
        if let Some(PastName::Collection(id)) = &past {
            candidates.push(id.clone());
        }
        candidates.dedup();
        for id in candidates {
            if let Some(entry) =
                catalog.durable.get(&mut operation.recovery_unit, &id)?.filter(|entry| key.is_of(entry))
            {
                return self.version_of(catalog, id, &entry, &known).map(Some);
            }
        }
        if !self.is_older && past != Some(PastName::Unknown) {
            return Ok(None);
        }
        match catalog.find_durable(operation, |entry| key.is_of(entry))? {
            Some((id, entry)) => self.version_of(catalog, id, &entry, &known).map(Some),
            None => Ok(None),
        }
    }

    /// The version that the entry describes: one that is known, or one made for this view.
    fn version_of(
        &self,
        catalog: &Catalog,
        id: RecordId,
        entry: &CatalogEntry,
        known: &[&Arc<Collection>],
    ) -> Result<Arc<Collection>> {
        let described = known.iter().find(|known| known.catalog_id == id && known.is_described_by(entry));
        if let Some(described) = described {
            return Ok(Arc::clone(described));
        }
        let made = catalog.instantiate(id, entry, self.read_timestamp.unwrap_or_default(), None);
        let unavailable = |error: Error| match error.code() {
            // The table is gone: the read is older than what is kept.
            ErrorCode::NamespaceNotFound => error.with_code(ErrorCode::SnapshotUnavailable),
            _ => error,
        };
        made.map(Arc::new).map_err(unavailable)
    }
}

impl Catalog {
    /// The rows of `$listCatalog`, of all collections and views or of one, as the operation's snapshot has them.
    pub fn list_catalog(&self, operation: &mut Operation, only: Option<&Namespace>) -> Result<Vec<Doc>> {
        let mut view = self.establish(operation)?;
        let (mut rows, mut with_views) = (Vec::new(), Vec::new());
        match only {
            Some(only) => {
                if let Some(collection) = view.collection(self, operation, only)? {
                    let entry = self.durable.get_doc(&mut operation.recovery_unit, &collection.catalog_id)?;
                    rows.extend(entry.map(|entry| list_catalog_row(entry.view())).transpose()?);
                }
                with_views.push(Namespace::system_views(&only.database_name()));
            }
            None => self.durable.for_each(&mut operation.recovery_unit, |_, document| {
                let entry = CatalogEntry::parse(document)?;
                rows.push(list_catalog_row(document)?);
                if entry.namespace.is_system_views() {
                    with_views.push(entry.namespace);
                }
                Ok::<(), Error>(())
            })?,
        }
        for system_views in with_views {
            let Some(collection) = view.collection(self, operation, &system_views)? else { continue };
            let views = read_views(&mut operation.recovery_unit, &collection)?;
            let wanted = views.iter().filter(|view| only.is_none_or(|only| *only == view.namespace));
            rows.extend(wanted.map(list_catalog_view_row));
        }
        Ok(rows)
    }
}
