//! How large a collection is: in documents, in bytes, on disk. For `collStats`, `dbStats`, `listDatabases` and stages that
//! ask the same.

use super::list_indexes::clustered_specification;
use pando_base::Result;
use pando_catalog::Collection;
use pando_doc::{DocBuilder, Value};
use pando_storage::RecordStore;

/// Sizes of a collection and of its indexes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sizes {
    pub(super) documents: i64,
    pub(super) data_bytes: i64,
    pub(super) disk_bytes: i64,
    /// On disk, and to be given back.
    pub(super) free_bytes: i64,
    pub(super) indexes_free_bytes: i64,
    /// Of each index, by name.
    pub(super) index_disk_bytes: Vec<(String, i64)>,
}

impl Sizes {
    pub(super) fn of(collection: &Collection) -> Result<Sizes> {
        let records: &RecordStore = &collection.records;
        let mut index_disk_bytes = Vec::with_capacity(collection.indexes.len());
        let mut indexes_free_bytes = 0_i64;
        for index in &collection.indexes {
            index_disk_bytes.push((index.name().to_owned(), signed(index.data.storage_size_bytes()?)));
            indexes_free_bytes = indexes_free_bytes.saturating_add(signed(index.data.free_size_bytes()?));
        }
        Ok(Sizes {
            documents: records.num_records()?.max(0),
            data_bytes: records.data_size_bytes()?.max(0),
            disk_bytes: signed(records.storage_size_bytes()?),
            free_bytes: signed(records.free_size_bytes()?),
            indexes_free_bytes,
            index_disk_bytes,
        })
    }

    /// Of all indexes.
    pub(super) fn indexes_bytes(&self) -> i64 {
        self.index_disk_bytes.iter().fold(0, |sum, (_, size_bytes)| sum.saturating_add(*size_bytes))
    }
}

/// Bytes that a collection takes on disk with its indexes.
pub(super) fn collection_disk_bytes(collection: &Collection) -> Result<u64> {
    let sizes = Sizes::of(collection)?;
    Ok(sizes.disk_bytes.saturating_add(sizes.indexes_bytes()).unsigned_abs())
}

/// Appends what `collStats` and `$collStats` say of a collection, or of one that is not there.
pub(crate) fn append_storage_stats(collection: Option<&Collection>, scale: i64, stats: &mut DocBuilder) -> Result<()> {
    debug_assert!(scale > 0);
    let mut number = |name: &str, value: i64| stats.append(name, narrow(value));
    let Some(collection) = collection else {
        for name in ["size", "count", "storageSize", "totalSize", "nindexes", "totalIndexSize"] {
            number(name, 0);
        }
        stats.document("indexDetails", |_| {});
        stats.document("indexSizes", |_| {});
        stats.append("scaleFactor", narrow(scale));
        return Ok(());
    };
    let sizes = Sizes::of(collection)?;
    number("size", sizes.data_bytes / scale);
    number("count", sizes.documents);
    if sizes.documents > 0 {
        number("avgObjSize", sizes.data_bytes / sizes.documents);
    }
    number("storageSize", sizes.disk_bytes / scale);
    number("freeStorageSize", sizes.free_bytes / scale);
    stats.append("capped", collection.is_capped());
    if collection.is_capped() {
        let options = &collection.options;
        stats.append("max", narrow(options.capped_documents_max));
        stats.append("maxSize", narrow(options.capped_size_bytes / scale));
    }
    let uri = table_uri(collection.ident());
    stats.document("wiredTiger", |engine| engine.append("uri", uri.as_str()));
    append_indexes(collection, &sizes, scale, stats);
    Ok(())
}

fn append_indexes(collection: &Collection, sizes: &Sizes, scale: i64, stats: &mut DocBuilder) {
    let clustered = clustered_specification(collection);
    let count = collection.indexes.len() + usize::from(clustered.is_some());
    stats.append("nindexes", i32::try_from(count).unwrap_or(i32::MAX));
    stats.document("indexDetails", |details| {
        if let (Some(specification), Some(index)) = (&clustered, &collection.options.clustered_index) {
            details.append(index.name(), specification);
        }
        for index in &collection.indexes {
            let uri = table_uri(index.ident());
            details.document(index.name(), |detail| detail.append("uri", uri.as_str()));
        }
    });
    stats.array("indexBuilds", |builds| {
        collection.indexes.iter().filter(|index| !index.ready).for_each(|index| builds.push(index.name()));
    });
    let indexes_bytes = sizes.indexes_bytes();
    stats.append("totalIndexSize", narrow(indexes_bytes / scale));
    stats.document("indexSizes", |each| {
        for (name, size_bytes) in &sizes.index_disk_bytes {
            each.append(name, narrow(size_bytes / scale));
        }
    });
    let total = sizes.disk_bytes.saturating_add(indexes_bytes) / scale;
    stats.append("totalSize", narrow(total));
    stats.append("scaleFactor", narrow(scale));
}

/// Which table of the engine it is, in the words that tools look for.
fn table_uri(ident: &str) -> String {
    format!("statistics:table:{ident}")
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// A number in the smallest type that holds it, as shells like it.
fn narrow(number: i64) -> Value<'static> {
    i32::try_from(number).map_or(Value::Int64(number), Value::Int32)
}
