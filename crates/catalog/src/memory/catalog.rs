//! One version of the catalog.

use super::history::{History, PastName};
use super::known::Known;
use crate::views::{ViewCatalog, ViewDefinition};
use crate::{Collection, ResolvedView};
use imbl::OrdMap;
use pando_base::{DatabaseName, Namespace, RecordId, Result, TenantId, Timestamp, Uuid};
use pando_doc::DocRef;
use std::sync::Arc;

/// What a name or an id will lead to when a change that is about to commit has done so.
pub(crate) type Next = Option<Arc<Collection>>;

/// One version of everything. Cloning is cheap: versions share structure.
#[derive(Clone, Default)]
pub struct CollectionCatalog {
    version: u64,
    by_name: OrdMap<Namespace, Arc<Collection>>,
    /// What was looked up there.
    known: Known,
    by_uuid: OrdMap<Uuid, Arc<Collection>>,
    databases: OrdMap<DatabaseName, Database>,
    /// Names of databases in lower case, because two must not differ in case alone.
    cases: OrdMap<(Option<TenantId>, Arc<str>), DatabaseName>,
    pending_names: OrdMap<Namespace, Next>,
    pending_uuids: OrdMap<Uuid, Next>,
    history: History,
}

/// A database: it is there as long as it has a collection.
#[derive(Clone, Default)]
struct Database {
    collections: usize,
    views: Arc<ViewCatalog>,
    /// The last change of what collections it has.
    changed_at: Timestamp,
}

impl CollectionCatalog {
    pub(crate) fn starting_at(floor: Timestamp) -> CollectionCatalog {
        CollectionCatalog { history: History::starting_at(floor), ..CollectionCatalog::default() }
    }

    /// Which version it is; later ones are greater.
    pub fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn advance(&mut self) {
        self.version += 1;
    }

    pub(crate) fn set_version(&mut self, version: u64) {
        self.version = version;
    }

    // ---- Looking up the newest. Whether that fits a snapshot is for a `CatalogView` to say.

    /// The collection of this name.
    pub fn collection(&self, namespace: &Namespace) -> Option<&Arc<Collection>> {
        self.known.get_or(namespace, || self.by_name.get(namespace))
    }

    /// The collection of this id.
    pub fn collection_by_uuid(&self, uuid: &Uuid) -> Option<&Arc<Collection>> {
        self.by_uuid.get(uuid)
    }

    /// The name of the collection of this id.
    pub fn namespace_of(&self, uuid: &Uuid) -> Option<&Namespace> {
        self.by_uuid.get(uuid).map(|collection| &collection.namespace)
    }

    /// The collections of a database, by name.
    pub fn collections(&self, database: &DatabaseName) -> impl Iterator<Item = &Arc<Collection>> {
        // The first name that a collection could have: names are not empty and have no zero byte.
        let first = Namespace::new(database, "\u{1}").ok();
        let range = first.map(|first| self.by_name.range(first..));
        range.into_iter().flatten().map(|(_, collection)| collection).take_while(move |collection| {
            collection.namespace.database() == database.as_str() && collection.namespace.tenant() == database.tenant()
        })
    }

    /// Every collection, by name.
    pub fn all_collections(&self) -> impl Iterator<Item = &Arc<Collection>> {
        self.by_name.values()
    }

    /// How many collections there are.
    pub fn collection_count(&self) -> usize {
        self.by_name.len()
    }

    /// Every database, by name.
    pub fn databases(&self) -> impl Iterator<Item = &DatabaseName> {
        self.databases.keys()
    }

    /// True if the database has a collection.
    pub fn has_database(&self, database: &DatabaseName) -> bool {
        self.databases.contains_key(database)
    }

    /// The database whose name differs from this one in case at most.
    pub fn database_ignoring_case(&self, database: &DatabaseName) -> Option<&DatabaseName> {
        self.cases.get(&lower_case(database))
    }

    /// The views of a database.
    pub fn views(&self, database: &DatabaseName) -> Option<&Arc<ViewCatalog>> {
        self.databases.get(database).map(|database| &database.views)
    }

    /// The view of this name. Fails if the database's definitions are damaged.
    pub fn view(&self, namespace: &Namespace) -> Result<Option<&Arc<ViewDefinition>>> {
        match self.databases.get(&namespace.database_name()) {
            Some(database) if !database.views.is_empty() => database.views.get(namespace),
            _ => Ok(None),
        }
    }

    /// Fails if a pipeline in this database refers to a view that is as deep as views may be.
    pub fn check_pipeline<'a>(
        &self,
        namespace: &Namespace,
        pipeline: impl IntoIterator<Item = DocRef<'a>>,
    ) -> Result<()> {
        match self.databases.get(&namespace.database_name()) {
            Some(database) if !database.views.is_empty() => database.views.check_pipeline(namespace, pipeline),
            _ => Ok(()),
        }
    }

    /// Follows a view down to its collection; none if the name is not a view's.
    pub fn resolve_view(&self, namespace: &Namespace) -> Result<Option<ResolvedView>> {
        match self.databases.get(&namespace.database_name()) {
            Some(database) if !database.views.is_empty() => database.views.resolve(namespace),
            _ => Ok(None),
        }
    }

    // ---- What fits which snapshot.

    pub(crate) fn pending_name(&self, namespace: &Namespace) -> Option<&Next> {
        self.pending_names.get(namespace)
    }

    pub(crate) fn pending_uuid(&self, uuid: &Uuid) -> Option<&Next> {
        self.pending_uuids.get(uuid)
    }

    /// Names of a database that are about to change.
    pub(crate) fn has_pending(&self, database: &DatabaseName) -> bool {
        self.pending_names.keys().any(|name| name.database() == database.as_str() && name.tenant() == database.tenant())
    }

    pub(crate) fn is_anything_pending(&self) -> bool {
        !self.pending_names.is_empty()
    }

    pub(crate) fn past_name(&self, namespace: &Namespace, at: Timestamp) -> PastName {
        self.history.name(namespace, at)
    }

    pub(crate) fn past_uuid(&self, uuid: &Uuid, at: Timestamp) -> PastName {
        self.history.id(uuid, at)
    }

    /// The last change of what collections a database has; none while it has none.
    pub(crate) fn changed_at(&self, database: &DatabaseName) -> Option<Timestamp> {
        self.databases.get(database).map(|database| database.changed_at)
    }

    /// True if the name led anywhere, now or in the past that is remembered.
    pub(crate) fn knows_name(&self, namespace: &Namespace) -> bool {
        self.history.knows(namespace)
    }

    pub(crate) fn can_prune_history(&self, oldest: Timestamp) -> bool {
        self.history.can_prune(oldest)
    }

    /// How much is remembered of the past.
    pub fn history_len(&self) -> usize {
        self.history.len()
    }

    // ---- Changes, made on a copy.

    /// Enters a collection under its name and id; what had either gives way.
    pub(crate) fn put(&mut self, collection: Arc<Collection>) {
        let (namespace, uuid) = (collection.namespace.clone(), collection.uuid);
        self.known = Known::default();
        // The new name first: a database that has no collection for a moment would be forgotten.
        if self.by_name.insert(namespace.clone(), Arc::clone(&collection)).is_none() {
            self.count_collection(&namespace.database_name(), true);
        }
        if let Some(before) = self.by_uuid.insert(uuid, collection)
            && before.namespace != namespace
            && self.by_name.get(&before.namespace).is_some_and(|named| named.uuid == uuid)
        {
            self.by_name.remove(&before.namespace);
            self.count_collection(&before.namespace.database_name(), false);
        }
    }

    /// Takes a collection out.
    pub(crate) fn remove(&mut self, uuid: &Uuid) {
        let Some(before) = self.by_uuid.remove(uuid) else { return };
        self.known = Known::default();
        if self.by_name.get(&before.namespace).is_some_and(|named| named.uuid == *uuid) {
            self.by_name.remove(&before.namespace);
            self.count_collection(&before.namespace.database_name(), false);
        }
    }

    fn count_collection(&mut self, database: &DatabaseName, added: bool) {
        let mut known = self.databases.get(database).cloned().unwrap_or_default();
        known.collections = if added { known.collections + 1 } else { known.collections.saturating_sub(1) };
        if known.collections > 0 {
            if added && known.collections == 1 {
                self.cases.insert(lower_case(database), database.clone());
            }
            self.databases.insert(database.clone(), known);
        } else {
            self.databases.remove(database);
            self.cases.remove(&lower_case(database));
        }
    }

    pub(crate) fn set_views(&mut self, database: &DatabaseName, views: Arc<ViewCatalog>) {
        if let Some(known) = self.databases.get(database).cloned() {
            self.databases.insert(database.clone(), Database { views, ..known });
        }
    }

    /// Remembers where a name leads from some time on.
    pub(crate) fn record_name(&mut self, namespace: &Namespace, catalog_id: Option<RecordId>, at: Timestamp) {
        if !self.history.record(namespace, catalog_id, at) {
            return;
        }
        let database = namespace.database_name();
        if let Some(known) = self.databases.get(&database).cloned() {
            let changed_at = known.changed_at.max(at);
            self.databases.insert(database, Database { changed_at, ..known });
        }
    }

    pub(crate) fn record_drop(&mut self, uuid: Uuid, catalog_id: RecordId, at: Timestamp) {
        self.history.record_drop(uuid, catalog_id, at);
    }

    pub(crate) fn prune_history(&mut self, oldest: Timestamp) {
        self.history.prune(oldest);
    }

    pub(crate) fn set_pending(&mut self, names: &[(Namespace, Next)], uuids: &[(Uuid, Next)]) {
        names.iter().for_each(|(name, next)| {
            self.pending_names.insert(name.clone(), next.clone());
        });
        uuids.iter().for_each(|(uuid, next)| {
            self.pending_uuids.insert(*uuid, next.clone());
        });
    }

    pub(crate) fn clear_pending(&mut self, names: &[(Namespace, Next)], uuids: &[(Uuid, Next)]) {
        names.iter().for_each(|(name, _)| {
            self.pending_names.remove(name);
        });
        uuids.iter().for_each(|(uuid, _)| {
            self.pending_uuids.remove(uuid);
        });
    }
}

fn lower_case(database: &DatabaseName) -> (Option<TenantId>, Arc<str>) {
    (database.tenant(), Arc::from(database.as_str().to_ascii_lowercase()))
}
