//! The catalog of a node: durable table, versions in memory, tables in use and tables to be dropped, behind one handle.

use crate::ident::{IdentNames, IdentTables};
use crate::index::{Index, MultikeyState};
use crate::memory::CatalogVersions;
use crate::{CatalogEntry, Collection, CollectionCatalog, DurableCatalog, IndexEntry, Reaper};
use pando_base::{DatabaseName, Error, Namespace, RecordId, Result, Timestamp, Uuid};
use pando_env::Env;
use pando_operation::Operation;
use pando_storage::{Engine, RecordIdKind};
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::Arc;

/// The catalog of a node.
pub struct Catalog {
    pub(crate) env: Env,
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) durable: DurableCatalog,
    pub(crate) versions: CatalogVersions,
    pub(crate) tables: IdentTables,
    pub(crate) names: IdentNames,
    pub(crate) reaper: Reaper,
    /// Databases that have lost collections and were not dropped themselves.
    pub(crate) thinned: Mutex<BTreeSet<DatabaseName>>,
}

impl Catalog {
    /// The newest version. Whoever reads data with it wants [`Catalog::establish`], or a lock.
    pub fn latest(&self) -> Arc<CollectionCatalog> {
        self.versions.current()
    }

    /// The same for a look that ends soon: it costs no shared count.
    pub fn peek(&self) -> impl Deref<Target = Arc<CollectionCatalog>> {
        self.versions.peek()
    }

    /// True if there is something of the database to drop: a collection, or, as in MongoDB, that it was there since the start
    /// and has lost its collections one by one.
    pub fn is_open(&self, database: &DatabaseName) -> bool {
        self.latest().has_database(database) || self.thinned.lock().contains(database)
    }

    /// The durable catalog.
    pub fn durable(&self) -> &DurableCatalog {
        &self.durable
    }

    /// Tables that wait to be dropped.
    pub fn reaper(&self) -> &Reaper {
        &self.reaper
    }

    /// A name for a table that the catalog does not keep: `internal-<purpose>-...`. Whoever makes it drops it, and finds out at
    /// start which of those are there nobody needs.
    pub fn new_internal_ident(&self, purpose: &str) -> String {
        self.names.internal(purpose)
    }

    /// Drops tables whose time has come and forgets names that nobody can read any more; how many tables. To be called when
    /// oldest or the checkpoint has moved.
    pub fn reap(&self) -> Result<usize> {
        self.reap_telling(&mut |_, _| {})
    }

    /// The same, and tells of each table that went, and when its entry had, if that has a time.
    pub fn reap_telling(&self, tell: &mut dyn FnMut(&str, Timestamp)) -> Result<usize> {
        let oldest = self.engine.timestamps().oldest;
        // A new version makes readers that are just starting try again, so none is made for nothing.
        if self.versions.peek().can_prune_history(oldest) {
            self.versions.write(move |catalog| catalog.prune_history(oldest));
        }
        self.reaper.reap(&self.tables, tell)
    }

    /// The collection of this name for an operation that has locked it: with what the operation itself has changed, else the
    /// newest. In a transaction the snapshot is older than the lock: if the collection was changed in between, that is a
    /// write conflict. One that is newer than the snapshot is not there: who makes it anew meets the conflict at the commit.
    pub fn collection_for_write(
        &self,
        operation: &mut Operation,
        namespace: &Namespace,
    ) -> Result<Option<Arc<Collection>>> {
        if let Some(uncommitted) = crate::uncommitted::name(operation, namespace) {
            return Ok(uncommitted);
        }
        let latest = self.versions.peek();
        let collection = latest.collection(namespace);
        if operation.in_multi_document_transaction() && operation.recovery_unit.snapshot_id().is_some() {
            return self.unchanged(operation, &latest, namespace, collection);
        }
        Ok(collection.cloned())
    }

    /// The same by id.
    pub fn collection_for_write_by_uuid(
        &self,
        operation: &mut Operation,
        uuid: &Uuid,
    ) -> Result<Option<Arc<Collection>>> {
        if let Some(uncommitted) = crate::uncommitted::uuid(operation, uuid) {
            return Ok(uncommitted);
        }
        match self.latest().namespace_of(uuid) {
            Some(namespace) => self.collection_for_write(operation, namespace),
            None => Ok(None),
        }
    }

    /// The collection, if the operation's snapshot has this version of it too; a write conflict if it has another, none if it has
    /// none.
    fn unchanged(
        &self,
        operation: &mut Operation,
        newest: &Arc<CollectionCatalog>,
        namespace: &Namespace,
        collection: Option<&Arc<Collection>>,
    ) -> Result<Option<Arc<Collection>>> {
        if collection.is_some_and(|collection| crate::read::is_kept(operation, newest, namespace, collection)) {
            return Ok(collection.cloned());
        }
        let read_timestamp = operation.recovery_unit.read_timestamp();
        let is_older =
            |collection: &Arc<Collection>| read_timestamp.is_some_and(|at| collection.minimum_valid_snapshot <= at);
        if collection.map_or(!self.versions.peek().knows_name(namespace), is_older) {
            return Ok(collection.cloned());
        }
        let known = match collection {
            Some(collection) => self.durable.get(&mut operation.recovery_unit, &collection.catalog_id)?,
            None => None,
        };
        // The name may have led elsewhere in the snapshot; then somebody dropped or renamed that since.
        let seen = match known {
            Some(entry) => Some(entry),
            None => self.find_durable(operation, |entry| entry.namespace == *namespace)?.map(|(_, entry)| entry),
        };
        match (collection, &seen) {
            (_, None) => Ok(None),
            (Some(collection), Some(entry)) if collection.is_described_by(entry) => Ok(Some(Arc::clone(collection))),
            _ => Err(pando_storage::StorageError::WriteConflict.into()),
        }
    }

    /// Searches the durable catalog in the operation's snapshot.
    pub(crate) fn find_durable(
        &self,
        operation: &mut Operation,
        mut is_wanted: impl FnMut(&CatalogEntry) -> bool,
    ) -> Result<Option<(RecordId, CatalogEntry)>> {
        let mut found = None;
        self.durable.for_each(&mut operation.recovery_unit, |id, document| {
            if found.is_none() {
                found = Some((id, CatalogEntry::parse(document)?)).filter(|(_, entry)| is_wanted(entry));
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// A random id.
    pub(crate) fn new_uuid(&self) -> Uuid {
        Uuid::from_random(self.env.random().id_bytes())
    }

    /// Makes a collection of its entry, sharing with an earlier version what versions share.
    pub(crate) fn instantiate(
        &self,
        catalog_id: RecordId,
        entry: &CatalogEntry,
        minimum_valid_snapshot: Timestamp,
        earlier: Option<&Collection>,
    ) -> Result<Collection> {
        let missing = || Error::failed_to_parse(format!("the catalog entry of {} has no uuid", entry.namespace));
        let kind = record_id_kind(entry);
        let records = self.tables.open_records(&entry.ident, kind, entry.namespace == *Namespace::oplog())?;
        let indexes = entry.indexes.iter().map(|index| self.instantiate_index(index, kind, earlier));
        Ok(Collection {
            namespace: entry.namespace.clone(),
            uuid: entry.uuid().ok_or_else(missing)?,
            options: Arc::new(entry.options.clone()),
            catalog_id,
            records,
            indexes: indexes.collect::<Result<_>>()?,
            minimum_valid_snapshot,
            timeseries_mixed_schema: entry.timeseries_mixed_schema,
        })
    }

    fn instantiate_index(
        &self,
        entry: &IndexEntry,
        kind: RecordIdKind,
        earlier: Option<&Collection>,
    ) -> Result<Arc<Index>> {
        let descriptor = entry.descriptor()?;
        let data = self.tables.open_index(&entry.ident, Index::format(&descriptor), kind)?;
        let before = earlier.and_then(|earlier| earlier.indexes.iter().find(|index| index.ident() == entry.ident));
        let (multikey, usage) = match before {
            Some(before) => {
                if entry.multikey {
                    before.multikey.raise(&entry.multikey_paths);
                }
                (Arc::clone(&before.multikey), Arc::clone(&before.usage))
            }
            None => {
                let tracked = descriptor.tracked_field_count();
                let state = MultikeyState::restored(tracked, entry.multikey, &entry.multikey_paths);
                (Arc::new(state), Arc::default())
            }
        };
        let descriptor = Arc::new(descriptor);
        Ok(Arc::new(Index { descriptor, data, ready: entry.ready, build_uuid: entry.build_uuid, multikey, usage }))
    }
}

impl Collection {
    /// True if the entry says of the collection what this version does. Multikey states are left out: they change without a
    /// new version.
    pub(crate) fn is_described_by(&self, entry: &CatalogEntry) -> bool {
        let same_index = |(index, entry): (&Arc<Index>, &IndexEntry)| {
            index.ident() == entry.ident
                && index.ready == entry.ready
                && index.build_uuid == entry.build_uuid
                && index.descriptor.specification == entry.specification
        };
        self.namespace == entry.namespace
            && self.ident() == entry.ident
            && *self.options == entry.options
            && self.timeseries_mixed_schema == entry.timeseries_mixed_schema
            && self.indexes.len() == entry.indexes.len()
            && self.indexes.iter().zip(&entry.indexes).all(same_index)
    }
}

/// How a collection's records are named.
pub(crate) fn record_id_kind(entry: &CatalogEntry) -> RecordIdKind {
    if entry.options.is_clustered() { RecordIdKind::Bytes } else { RecordIdKind::Long }
}
