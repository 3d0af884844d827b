//! One table: its overlay, its deleted ranges, its book of sizes and its place in the base.

use crate::ledger::{Book, Ledger};
use crate::memory::Memory;
use crate::overlay::{Overlay, Ranges};
use crate::redo::TableDescription;
use pando_engine_runs::TableSlot;
use pando_storage::{Result, StorageError, Table, TableBody, TableOptions};
use parking_lot::Mutex;
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A table of this engine.
pub struct EngineTable {
    description: TableDescription,
    /// Which opened engine it belongs to.
    engine: u64,
    /// Its writes are in the log as redo.
    pub logged: bool,
    /// What the base does not have yet.
    pub overlay: Overlay,
    /// Deleted ranges that the base does not have yet.
    pub ranges: Ranges,
    /// Records and bytes.
    pub ledger: Mutex<Ledger>,
    /// What the base has.
    pub slot: Arc<TableSlot>,
    /// The sequence of the bulk load; its pairs carry none themselves, so older snapshots must not look at the base.
    loaded: AtomicU64,
    dropped: AtomicBool,
    in_manifest: AtomicBool,
    memory: Arc<Memory>,
    /// Records and bytes as the manifest has them; changed under the checkpoint lock.
    pub checkpointed: Mutex<Book>,
}

impl EngineTable {
    /// A table as described, with the size that the manifest has.
    pub fn new(
        description: TableDescription,
        engine: u64,
        logged: bool,
        slot: Arc<TableSlot>,
        book: Book,
        memory: Arc<Memory>,
    ) -> EngineTable {
        EngineTable {
            description,
            engine,
            logged,
            overlay: Overlay::default(),
            ranges: Ranges::default(),
            ledger: Mutex::new(Ledger::new(book.clone())),
            slot,
            loaded: AtomicU64::new(0),
            dropped: AtomicBool::new(false),
            in_manifest: AtomicBool::new(false),
            memory,
            checkpointed: Mutex::new(book),
        }
    }

    /// The engine's table behind a handle.
    pub fn of(table: &Table, engine: u64) -> Result<&EngineTable> {
        let body = table.as_any().downcast_ref::<EngineTable>().filter(|body| body.engine == engine);
        let body = body.ok_or_else(|| {
            StorageError::IllegalOperation(format!("table '{}' belongs to another engine", table.ident()))
        })?;
        match body.is_dropped() {
            true => Err(StorageError::IdentNotFound(body.description.ident.clone())),
            false => Ok(body),
        }
    }

    /// Its description.
    pub fn description(&self) -> &TableDescription {
        &self.description
    }

    /// True once dropped.
    pub fn is_dropped(&self) -> bool {
        self.dropped.load(Ordering::Acquire)
    }

    /// True if the base was loaded after this snapshot was taken.
    pub fn base_is_hidden(&self, sequence: u64) -> bool {
        self.loaded.load(Ordering::Acquire) > sequence
    }

    /// The base is loaded at this sequence; `MAX` while it is not known yet.
    pub fn set_loaded(&self, sequence: u64) {
        self.loaded.store(sequence, Ordering::Release);
    }

    /// True once a manifest has it.
    pub fn is_in_manifest(&self) -> bool {
        self.in_manifest.load(Ordering::Acquire)
    }

    /// A manifest has it.
    pub fn set_in_manifest(&self) {
        self.in_manifest.store(true, Ordering::Release);
    }

    /// Forgets it.
    pub fn set_dropped(&self) {
        self.dropped.store(true, Ordering::Release);
    }
}

impl TableBody for EngineTable {
    fn ident(&self) -> &str {
        &self.description.ident
    }

    fn id(&self) -> u64 {
        self.description.id
    }

    fn options(&self) -> &TableOptions {
        &self.description.options
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for EngineTable {
    /// The overlay of a dropped table lives as long as its last reader; then its memory is given back.
    fn drop(&mut self) {
        self.overlay.for_each_leaf(|leaf| {
            for entry in leaf.entries() {
                self.memory.free(entry.freed());
            }
        });
    }
}
