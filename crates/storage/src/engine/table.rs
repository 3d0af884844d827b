//! Tables: ordered maps of byte strings, known by ident.

use crate::{Cursor, Result};
use std::any::Any;
use std::sync::Arc;

/// The longest key: a document's size limit with room for what an index adds.
pub const KEY_LENGTH_MAX: usize = 17 * 1024 * 1024;
/// The longest value: a document's size limit with the server's own head room.
pub const VALUE_LENGTH_MAX: usize = 17 * 1024 * 1024;

/// What part of a key a table's filter knows, so that a look-up of a missing key need not read a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum KeyFilter {
    /// The whole key.
    #[default]
    Whole,
    /// All but the last bytes: a unique index leaves out the record id.
    ExceptLast(u16),
    /// No filter.
    Nothing,
}

/// How a table is made. Kept for the table's life.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct TableOptions {
    /// The table's writes are covered by oplog entries, so that they need no redo under a replica set.
    pub replicated: bool,
    /// What the table's filter knows.
    pub filter: KeyFilter,
    /// Opaque to the engine, returned as given: the upper layers' format version and the like.
    pub note: String,
}

/// Records and bytes, as committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TableSize {
    /// How many records.
    pub records: i64,
    /// The sum of their values' lengths.
    pub bytes: i64,
}

impl TableSize {
    /// A size or a change of one.
    pub const fn new(records: i64, bytes: i64) -> TableSize {
        TableSize { records, bytes }
    }
}

impl std::ops::AddAssign for TableSize {
    fn add_assign(&mut self, other: TableSize) {
        self.records += other.records;
        self.bytes += other.bytes;
    }
}

/// A guess, made from block boundaries, about a range of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Estimate {
    /// About how many keys.
    pub records: u64,
    /// About how many bytes, uncompressed.
    pub bytes: u64,
}

/// An engine's own table object. Engines find theirs again by downcast.
pub trait TableBody: Any + Send + Sync {
    /// The name that the table was created with.
    fn ident(&self) -> &str;
    /// The engine's number for the table; never used twice in a store.
    fn id(&self) -> u64;
    /// As given at creation.
    fn options(&self) -> &TableOptions;
    /// For the engine's downcast.
    fn as_any(&self) -> &dyn Any;
}

/// A handle to a table. Calls through the handle of a dropped table fail with `IdentNotFound`.
pub type Table = Arc<dyn TableBody>;

/// Creating, finding and dropping tables. None of it is transactional: the catalog above makes it so.
pub trait TableRegistry {
    /// Makes a table, durable once the log is flushed.
    fn create_table(&self, ident: &str, options: &TableOptions) -> Result<Table>;
    /// Finds a table.
    fn open_table(&self, ident: &str) -> Result<Table>;
    /// Forgets a table at once and gives its space back in the background. Open cursors may go on.
    fn drop_table(&self, ident: &str) -> Result<()>;
    /// Every ident, sorted.
    fn idents(&self) -> Vec<String>;
    /// Records and bytes as of the newest commit.
    fn table_size(&self, table: &Table) -> Result<TableSize>;
    /// Sets records and bytes outright: what validate and repair do when they have counted.
    fn set_table_size(&self, table: &Table, size: TableSize) -> Result<()>;
    /// Bytes that the table takes on disk, without the versions that are kept for readers in the past.
    fn table_disk_bytes(&self, table: &Table) -> Result<u64>;
    /// Bytes on disk beside these which merges give back: versions that newer ones have taken the place of.
    fn table_free_bytes(&self, table: &Table) -> Result<u64>;
    /// A guess about `start <= key < end`; no end means to the last key.
    fn estimate(&self, table: &Table, start: &[u8], end: Option<&[u8]>) -> Result<Estimate>;
    /// Loads sorted input into a new, still empty table.
    fn bulk_load(&self, table: &Table) -> Result<Box<dyn crate::BulkLoader>>;
    /// A cursor over the newest committed data that belongs to no transaction; for tools.
    fn committed_cursor(&self, table: &Table) -> Result<Box<dyn Cursor>>;
}
