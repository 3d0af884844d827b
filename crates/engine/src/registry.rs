//! The tables, by ident and by number.

use crate::ledger::Book;
use crate::memory::Memory;
use crate::options::Mode;
use crate::redo::{TableDescription, decode_configuration, encode_configuration};
use crate::table::EngineTable;
use bytes::Bytes;
use pando_engine_runs::{Runs, TableRecord};
use pando_storage::{Result, StorageError, TableSize};
use parking_lot::RwLock;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// About what a table takes in the two maps and in the heads of its allocations.
const ENTRY_BYTES: usize = 128;

/// All tables of an engine.
pub struct Registry {
    inner: RwLock<Inner>,
    mode: Mode,
    engine: u64,
    memory: Arc<Memory>,
}

#[derive(Default)]
struct Inner {
    by_ident: BTreeMap<String, Arc<EngineTable>>,
    by_id: BTreeMap<u64, Arc<EngineTable>>,
    last_id: u64,
    /// Dropped, but the manifest still has them.
    dropped: Vec<u64>,
}

impl Registry {
    /// No tables yet.
    pub fn new(mode: Mode, engine: u64, memory: Arc<Memory>) -> Registry {
        Registry { inner: RwLock::default(), mode, engine, memory }
    }

    /// The tables that a manifest has.
    pub fn load(&self, runs: &Runs, records: &[TableRecord]) -> Result<()> {
        for record in records {
            let (options, pending) = decode_configuration(&record.configuration).map_err(StorageError::from)?;
            let description = TableDescription { id: record.id, ident: record.ident.clone(), options };
            let mut book = Book { settled: TableSize::new(record.records, record.bytes), pending };
            for change in book.pending.values() {
                book.settled += TableSize::new(-change.records, -change.bytes);
            }
            let table = self.make(runs, description, book);
            table.set_in_manifest();
            self.insert(table);
        }
        Ok(())
    }

    /// A table object that is not in the registry yet.
    pub fn make(&self, runs: &Runs, description: TableDescription, book: Book) -> Arc<EngineTable> {
        let logged = self.mode == Mode::StandAlone || !description.options.replicated;
        let slot = runs.slot(description.id);
        Arc::new(EngineTable::new(description, self.engine, logged, slot, book, self.memory.clone()))
    }

    /// Enters a table.
    pub fn insert(&self, table: Arc<EngineTable>) {
        let mut inner = self.inner.write();
        let description = table.description();
        inner.last_id = inner.last_id.max(description.id);
        inner.by_id.insert(description.id, table.clone());
        inner.by_ident.insert(description.ident.clone(), table.clone());
    }

    /// Forgets a table; its space is given back later.
    pub fn remove(&self, id: u64) {
        let mut inner = self.inner.write();
        let Some(table) = inner.by_id.remove(&id) else { return };
        table.set_dropped();
        let same = |other: &Arc<EngineTable>| other.description().id == id;
        if inner.by_ident.get(&table.description().ident).is_some_and(same) {
            inner.by_ident.remove(&table.description().ident);
        }
        if table.is_in_manifest() {
            inner.dropped.push(id);
        }
    }

    /// Numbers below this were given to tables; the next one is.
    pub fn next_id(&self) -> u64 {
        let mut inner = self.inner.write();
        inner.last_id += 1;
        inner.last_id
    }

    /// The last number given.
    pub fn last_id(&self) -> u64 {
        self.inner.read().last_id
    }

    /// No number at or below this is given again.
    pub fn reserve_ids(&self, last: u64) {
        let mut inner = self.inner.write();
        inner.last_id = inner.last_id.max(last);
    }

    /// By ident.
    pub fn by_ident(&self, ident: &str) -> Option<Arc<EngineTable>> {
        self.inner.read().by_ident.get(ident).cloned()
    }

    /// By number.
    pub fn by_id(&self, id: u64) -> Option<Arc<EngineTable>> {
        self.inner.read().by_id.get(&id).cloned()
    }

    /// All of them, by number.
    pub fn all(&self) -> Vec<Arc<EngineTable>> {
        self.inner.read().by_id.values().cloned().collect()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.inner.read().by_id.len()
    }

    /// What they take in memory beside what the overlay and the base count: those that were dropped
    /// but may still be read at earlier times, too.
    pub fn memory_bytes(&self) -> usize {
        let bytes =
            |table: &Arc<EngineTable>| size_of::<EngineTable>() + ENTRY_BYTES + 2 * table.description().ident.len();
        self.inner.read().by_id.values().map(bytes).sum()
    }

    /// Every ident, sorted.
    pub fn idents(&self) -> Vec<String> {
        self.inner.read().by_ident.keys().cloned().collect()
    }

    /// Dropped tables that the manifest still has.
    pub fn dropped(&self) -> Vec<u64> {
        self.inner.read().dropped.clone()
    }

    /// The manifest no longer has these.
    pub fn forget_dropped(&self, ids: &[u64]) {
        let forgotten: BTreeSet<u64> = ids.iter().copied().collect();
        self.inner.write().dropped.retain(|id| !forgotten.contains(id));
    }

    /// The oldest deleted range that is only in an overlay.
    pub fn range_sequence_min(&self) -> Option<u64> {
        self.inner.read().by_id.values().filter_map(|table| table.ranges.sequence_min()).min()
    }
}

/// The manifest's record of a table with this size.
pub fn record_of(table: &EngineTable, book: &Book) -> TableRecord {
    let description = table.description();
    let mut size = book.settled;
    book.pending.values().for_each(|change| size += *change);
    TableRecord {
        id: description.id,
        ident: description.ident.clone(),
        configuration: Bytes::from(encode_configuration(&description.options, &book.pending)),
        records: size.records,
        bytes: size.bytes,
        unfenced: table.logged,
    }
}

/// Space that the base uses for a table, older versions of its keys apart: they go with the history window.
pub fn disk_bytes(table: &EngineTable) -> u64 {
    let base = table.slot.load();
    base.bytes_on_disk().saturating_sub(base.history_bytes())
}
