//! One version of a collection: immutable, shared, replaced as a whole by every DDL.
//!
//! What all versions of a collection share (the records, the entries of indexes, multikey states, usage) is behind `Arc`s
//! of its own. Those of the tables are also what keeps the tables: the reaper drops one only when nobody holds it.

use crate::CollectionOptions;
use crate::index::Index;
use crate::options::ClusteredIndex;
use pando_base::{Namespace, RecordId, Timestamp, Uuid};
use pando_storage::RecordStore;
use std::fmt;
use std::sync::Arc;

/// One version of a collection.
#[derive(Clone)]
pub struct Collection {
    /// Its name.
    pub namespace: Namespace,
    /// Its id, the same through renames and on every node.
    pub uuid: Uuid,
    /// Its options.
    pub options: Arc<CollectionOptions>,
    /// Its record in the durable catalog.
    pub catalog_id: RecordId,
    /// Its documents. As long as anybody holds this, the table is not dropped.
    pub records: Arc<RecordStore>,
    /// Its indexes, in the order of their creation; those being built too.
    pub indexes: Vec<Arc<Index>>,
    /// Reads before this time need another version.
    pub minimum_valid_snapshot: Timestamp,
    /// A time-series collection's buckets may mix schemas.
    pub timeseries_mixed_schema: Option<bool>,
}

impl Collection {
    /// The name of the engine's table.
    pub fn ident(&self) -> &str {
        self.records.table().ident()
    }

    /// True if writes go to the oplog and have timestamps.
    pub fn is_replicated(&self) -> bool {
        self.namespace.is_replicated()
    }

    /// True if documents are stored by the value of a field, their `_id` but for tests.
    pub fn is_clustered(&self) -> bool {
        self.options.is_clustered()
    }

    /// True if documents are stored by their `_id`.
    pub fn is_clustered_by_id(&self) -> bool {
        self.options.clustered_index.as_ref().is_some_and(ClusteredIndex::is_by_id)
    }

    /// True if a document is found by its `_id` without looking at others.
    pub fn knows_ids(&self) -> bool {
        self.is_clustered_by_id() || self.id_index().is_some()
    }

    /// The field that documents are stored by.
    pub fn cluster_field(&self) -> Option<&str> {
        self.options.clustered_index.as_ref().map(ClusteredIndex::field)
    }

    /// True if old documents give way to new ones.
    pub fn is_capped(&self) -> bool {
        self.options.capped
    }

    /// The index of this name, ready or not.
    pub fn index(&self, name: &str) -> Option<&Arc<Index>> {
        self.indexes.iter().find(|index| index.name() == name)
    }

    /// The index on `_id`, unless the collection is clustered or has none.
    pub fn id_index(&self) -> Option<&Arc<Index>> {
        self.indexes.iter().find(|index| index.descriptor.is_id_index())
    }

    /// The indexes that reads may use.
    pub fn ready_indexes(&self) -> impl Iterator<Item = &Arc<Index>> {
        self.indexes.iter().filter(|index| index.ready)
    }

    /// What observers are told of it.
    pub fn observed(&self) -> pando_oplog::observer::Collection<'_> {
        pando_oplog::observer::Collection {
            namespace: &self.namespace,
            uuid: self.uuid,
            records_pre_images: self.options.pre_and_post_images,
        }
    }
}

impl fmt::Debug for Collection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Collection")
            .field("namespace", &self.namespace)
            .field("uuid", &self.uuid)
            .field("ident", &self.ident())
            .field("indexes", &self.indexes)
            .field("minimum_valid_snapshot", &self.minimum_valid_snapshot)
            .finish()
    }
}
