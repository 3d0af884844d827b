//! Creating collections.

use super::{Observers, require_unit};
use crate::catalog::{Catalog, record_id_kind};
use crate::fail_points::SKIP_ID_INDEX;
use crate::index::Index;
use crate::{
    CatalogEntry, Collection, CollectionOptions, IndexDescriptor, IndexEntry, MultikeyComponents, complete_index_spec,
    default_id_index_spec, uncommitted, validate_id_index_spec, validate_index_spec,
};
use pando_base::{ErrorCode, Namespace, Result, Uuid, ensure};
use pando_doc::Doc;
use pando_operation::Operation;
use pando_oplog::observer::CreateCollection;
use pando_storage::{RecordIdKind, TableOptions};
use std::sync::Arc;

impl Catalog {
    /// Creates a collection with its tables and its index on `_id`. Without an id in the options it gets one.
    pub fn create_collection(
        self: &Arc<Self>,
        operation: &mut Operation,
        observers: &Observers,
        namespace: &Namespace,
        mut options: CollectionOptions,
    ) -> Result<Arc<Collection>> {
        require_unit(operation)?;
        ensure!(namespace.is_valid(), ErrorCode::InvalidNamespace, "Invalid namespace specified '{namespace}'");
        ensure!(!options.is_view(), ErrorCode::InvalidOptions, "a view is not created as a collection");
        self.require_free(operation, namespace)?;
        self.check_database_case(&namespace.database_name())?;
        let uuid = options.uuid.unwrap_or_else(|| self.new_uuid());
        self.require_free_uuid(operation, &uuid)?;
        options.uuid = Some(uuid);
        let id_index = id_index_spec(namespace, &mut options)?;

        let entry = self.make_tables(operation, namespace, options, id_index.as_ref())?;
        let catalog_id = self.durable.insert(&mut operation.recovery_unit, &entry)?;
        let collection = self.instantiate(catalog_id, &entry, pando_base::Timestamp::NONE, None)?;
        let collection = Arc::new(collection);
        self.put_uncommitted(operation, &collection, None)?;
        observers.on_create_collection(
            operation,
            &CreateCollection {
                collection: collection.observed(),
                options: entry.options.to_doc_without_uuid().view(),
                id_index: id_index.as_ref().map(Doc::view),
                slot: None,
                from_migrate: false,
            },
        )?;
        Ok(collection)
    }

    fn require_free_uuid(&self, operation: &Operation, uuid: &Uuid) -> Result<()> {
        let taken = match uncommitted::uuid(operation, uuid) {
            Some(next) => next.is_some(),
            None => self.latest().collection_by_uuid(uuid).is_some(),
        };
        ensure!(!taken, ErrorCode::NamespaceExists, "a collection with the uuid {uuid} exists");
        Ok(())
    }

    fn make_tables(
        self: &Arc<Self>,
        operation: &mut Operation,
        namespace: &Namespace,
        options: CollectionOptions,
        id_index: Option<&Doc>,
    ) -> Result<CatalogEntry> {
        let mut entry = CatalogEntry {
            namespace: namespace.clone(),
            options,
            indexes: Vec::new(),
            ident: self.names.collection(),
            timeseries_mixed_schema: None,
        };
        if entry.options.timeseries.is_some() && namespace.is_timeseries_buckets() {
            entry.timeseries_mixed_schema = Some(false);
        }
        let table = TableOptions { replicated: namespace.is_replicated(), ..TableOptions::default() };
        let kind = record_id_kind(&entry);
        self.created_ident(operation, &entry.ident)?;
        self.tables.create_records(&entry.ident, &table, kind, namespace == Namespace::oplog())?;
        if let Some(specification) = id_index {
            let index = self.make_index(operation, namespace, kind, specification, None)?;
            entry.indexes.push(IndexEntry { ready: true, ..index });
        }
        Ok(entry)
    }

    /// Makes the table of a new index and the entry for it, not ready.
    pub(crate) fn make_index(
        self: &Arc<Self>,
        operation: &mut Operation,
        namespace: &Namespace,
        kind: RecordIdKind,
        specification: &Doc,
        build_uuid: Option<Uuid>,
    ) -> Result<IndexEntry> {
        let descriptor = IndexDescriptor::parse(specification.view())?;
        let ident = self.names.index();
        let table = Index::table_options(&descriptor, kind, namespace.is_replicated());
        self.created_ident(operation, &ident)?;
        self.tables.create_index(&ident, &table, Index::format(&descriptor), kind)?;
        Ok(IndexEntry {
            specification: specification.clone(),
            ready: false,
            multikey: false,
            multikey_paths: vec![MultikeyComponents::NONE; descriptor.tracked_field_count()].into(),
            background_secondary: false,
            build_uuid,
            ident,
        })
    }
}

/// The specification of the index on `_id`, or none for a collection without one.
fn id_index_spec(namespace: &Namespace, options: &mut CollectionOptions) -> Result<Option<Doc>> {
    let given = options.id_index.take();
    if !requires_id_index(namespace, options) || SKIP_ID_INDEX.should_fail() {
        return Ok(None);
    }
    let Some(given) = given else { return Ok(Some(default_id_index_spec(options))) };
    let validated = validate_index_spec(given.view())?;
    validate_id_index_spec(validated.view())?;
    let completed = complete_index_spec(validated.view(), options)?;
    let default = default_id_index_spec(options);
    ensure!(
        completed.get("collation") == default.get("collation"),
        ErrorCode::BadValue,
        "'idIndex' must have the same collation as the collection"
    );
    Ok(Some(completed))
}

/// The oplog and the profiler's collection have none, a clustered collection needs none.
pub fn requires_id_index(namespace: &Namespace, options: &CollectionOptions) -> bool {
    !options.is_clustered()
        && options.auto_index_id != Some(false)
        && !namespace.is_oplog()
        && !namespace.is_system_profile()
}
