//! Idents: the names of tables, and which tables are in use.
//!
//! New idents are `collection-<n>-<random>` and `index-<n>-<random>`: a counter of this life of the server, and a number
//! that no earlier life had.
//!
//! [`IdentTables`] sees to it that there is one record store and one index object a table, whoever opens it and for
//! whichever point in time: they are kept as weak references here and strong ones by the versions of collections. A table
//! may be dropped when its weak reference is dead. A table that is being dropped can no longer be opened, so nobody opens
//! one between the look and the drop.
//!
//! Lock order: the map's lock is innermost; no table is dropped under it.

use pando_base::{Error, ErrorCode, Result, bail};
use pando_env::Random;
use pando_storage::{Engine, IndexFormat, RecordIdKind, RecordStore, SortedData, StorageError, TableOptions};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

const COLLECTION_PREFIX: &str = "collection-";
const INDEX_PREFIX: &str = "index-";

/// With what the names of tables begin that belong to no collection: those of index builds.
pub const INTERNAL_PREFIX: &str = "internal-";

/// True if the catalog gave this name, so that the table must be in the catalog or go.
pub(crate) fn is_of_catalog(ident: &str) -> bool {
    ident.starts_with(COLLECTION_PREFIX) || ident.starts_with(INDEX_PREFIX)
}

/// True if the catalog gave this name to the table of a collection.
pub(crate) fn is_collection(ident: &str) -> bool {
    ident.starts_with(COLLECTION_PREFIX)
}

/// A name for the table of an index where no names are given out yet.
pub(crate) fn new_index_ident(random: &dyn Random) -> String {
    format!("{INDEX_PREFIX}{}-{}", random.next_u64(), random.next_u64() as i64)
}

/// Gives out idents.
pub(crate) struct IdentNames {
    next: AtomicU64,
    suffix: i64,
}

impl IdentNames {
    /// Names that none of the idents has.
    pub(crate) fn new(random: &dyn Random, taken: &[String]) -> IdentNames {
        loop {
            let suffix = random.next_u64() as i64;
            let ending = format!("-{suffix}");
            if !taken.iter().any(|ident| ident.ends_with(&ending)) {
                return IdentNames { next: AtomicU64::new(0), suffix };
            }
        }
    }

    pub(crate) fn collection(&self) -> String {
        self.name(COLLECTION_PREFIX)
    }

    pub(crate) fn index(&self) -> String {
        self.name(INDEX_PREFIX)
    }

    pub(crate) fn internal(&self, purpose: &str) -> String {
        self.name(&format!("{INTERNAL_PREFIX}{purpose}-"))
    }

    fn name(&self, prefix: &str) -> String {
        format!("{prefix}{}-{}", self.next.fetch_add(1, Ordering::Relaxed), self.suffix)
    }
}

/// A table that was opened.
enum Opened {
    Records(Weak<RecordStore>),
    /// One for each format in which it is held: an index that became unique has two as long as somebody reads the past.
    Index(Vec<Weak<SortedData>>),
    /// Nobody may open it any more.
    BeingDropped,
}

impl Opened {
    fn is_in_use(&self) -> bool {
        match self {
            Opened::Records(records) => records.strong_count() > 0,
            Opened::Index(held) => held.iter().any(|index| index.strong_count() > 0),
            Opened::BeingDropped => true,
        }
    }
}

/// The tables of the catalog.
pub(crate) struct IdentTables {
    engine: Arc<dyn Engine>,
    opened: Mutex<HashMap<String, Opened>>,
}

impl IdentTables {
    pub(crate) fn new(engine: Arc<dyn Engine>) -> IdentTables {
        IdentTables { engine, opened: Mutex::default() }
    }

    /// Makes a table for records.
    pub(crate) fn create_records(
        &self,
        ident: &str,
        options: &TableOptions,
        kind: RecordIdKind,
        is_oplog: bool,
    ) -> Result<Arc<RecordStore>> {
        self.engine.create_table(ident, options)?;
        self.open_records(ident, kind, is_oplog)
    }

    /// Makes a table for an index.
    pub(crate) fn create_index(
        &self,
        ident: &str,
        options: &TableOptions,
        format: IndexFormat,
        kind: RecordIdKind,
    ) -> Result<Arc<SortedData>> {
        self.engine.create_table(ident, options)?;
        self.open_index(ident, format, kind)
    }

    /// The records of a table, the same object for everybody. Those of the oplog's collection are the log's entries.
    pub(crate) fn open_records(&self, ident: &str, kind: RecordIdKind, is_oplog: bool) -> Result<Arc<RecordStore>> {
        let mut opened = self.opened.lock();
        match opened.get(ident) {
            Some(Opened::BeingDropped) => return Err(gone(ident)),
            Some(Opened::Records(records)) => {
                if let Some(records) = records.upgrade() {
                    return Ok(records);
                }
            }
            Some(Opened::Index(_)) => bail!(ErrorCode::DataCorruptionDetected, "'{ident}' is an index's table"),
            None => {}
        }
        let (engine, table) = (Arc::clone(&self.engine), self.engine.open_table(ident)?);
        let records = Arc::new(match is_oplog {
            true => RecordStore::over_oplog(engine, table),
            false => RecordStore::new(engine, table, kind),
        });
        opened.insert(ident.to_owned(), Opened::Records(Arc::downgrade(&records)));
        Ok(records)
    }

    /// The entries of an index's table, the same object for everybody who wants the same format.
    pub(crate) fn open_index(&self, ident: &str, format: IndexFormat, kind: RecordIdKind) -> Result<Arc<SortedData>> {
        let mut opened = self.opened.lock();
        let mut held = match opened.get(ident) {
            Some(Opened::BeingDropped) => return Err(gone(ident)),
            Some(Opened::Index(held)) => {
                if let Some(index) = held.iter().filter_map(Weak::upgrade).find(|index| index.format() == format) {
                    return Ok(index);
                }
                held.clone()
            }
            Some(Opened::Records(_)) => bail!(ErrorCode::DataCorruptionDetected, "'{ident}' is a collection's table"),
            None => Vec::new(),
        };
        let table = self.engine.open_table(ident)?;
        let index = Arc::new(SortedData::new(Arc::clone(&self.engine), table, format, kind));
        held.retain(|other| other.strong_count() > 0);
        held.push(Arc::downgrade(&index));
        opened.insert(ident.to_owned(), Opened::Index(held));
        Ok(index)
    }

    /// Drops a table that nobody uses; false if somebody does.
    pub(crate) fn drop_unused(&self, ident: &str) -> Result<bool> {
        match self.opened.lock().entry(ident.to_owned()) {
            Entry::Occupied(entry) if entry.get().is_in_use() => return Ok(false),
            Entry::Occupied(mut entry) => {
                entry.insert(Opened::BeingDropped);
            }
            Entry::Vacant(entry) => {
                entry.insert(Opened::BeingDropped);
            }
        }
        let dropped = self.engine.drop_table(ident);
        self.opened.lock().remove(ident);
        match dropped {
            Ok(()) | Err(StorageError::IdentNotFound(_)) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }
}

fn gone(ident: &str) -> Error {
    Error::new(ErrorCode::SnapshotUnavailable, format!("the table '{ident}' is being dropped"))
}
