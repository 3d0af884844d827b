//! Index entries over a table: memcmp-ordered keys that lead to record ids.
//!
//! A key arrives as an opaque byte string and its type bits as another. Among the keys of one index none may be a proper
//! prefix of another (each ends with a terminator, as KeyStrings do); then `key ++ suffix` sorts by key first and record
//! id second. The formats, with suffix as in `pando_base::record_id::suffix`, id value as in `record_id_codec`:
//!
//! | [`IndexFormat`] | table key | table value |
//! | --- | --- | --- |
//! | `Id` | key | record id ++ type bits |
//! | `Standard` | key ++ suffix | type bits |
//! | `Unique` | key ++ suffix | type bits |
//!
//! `Standard` and `Unique` lie alike on disk, so that an index can be converted without a rebuild. Oplog application and
//! index builds insert with duplicates allowed even into unique indexes, because uniqueness may be broken for a while.
//!
//! **Uniqueness under concurrency.** With the record id in the table key, two transactions that insert the same key write
//! different table keys and would not conflict. An insert that must not make a duplicate therefore first deletes the bare
//! key, which is never there but conflicts like any write, then looks for an entry with the key as its prefix.
//!
//! A call that fails with `PrepareConflict` may be repeated in the same unit of work. Entries are not counted; the number
//! of an index's entries is found by a scan. This module must not know BSON or KeyString.

mod cursor;
mod loader;

use crate::record_id_codec::{append_value, split_value};
use crate::{Engine, KeyFilter, RecordIdKind, RecoveryUnit, Result, StorageError, Table, TableOptions};
use pando_base::RecordId;
use pando_base::record_id::suffix;
use std::sync::Arc;

pub use cursor::{IndexCursor, IndexEntry};
pub use loader::SortedDataLoader;

/// How entries lie in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum IndexFormat {
    /// The record id is in the value; every key is there once. For `_id`.
    Id,
    /// The record id is in the key.
    #[default]
    Standard,
    /// The record id is in the key, which the callers keep unique.
    Unique,
}

/// What became of an insert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Insertion {
    /// The entry is there.
    Done,
    /// The very same entry was there before.
    Present,
    /// Nothing was written: the key belongs to this other record.
    Duplicate(RecordId),
}

/// An index's entries.
pub struct SortedData {
    engine: Arc<dyn Engine>,
    table: Table,
    format: IndexFormat,
    kind: RecordIdKind,
}

impl SortedData {
    /// The entries in a table. All lead to record ids of one kind.
    pub fn new(engine: Arc<dyn Engine>, table: Table, format: IndexFormat, kind: RecordIdKind) -> SortedData {
        SortedData { engine, table, format, kind }
    }

    /// How an index's table is to be created: look-ups know the key, not the record id behind it.
    pub fn table_options(format: IndexFormat, kind: RecordIdKind, replicated: bool) -> TableOptions {
        let filter = match (format, kind) {
            (IndexFormat::Id, _) => KeyFilter::Whole,
            (_, RecordIdKind::Long) => KeyFilter::ExceptLast(suffix::LONG_LENGTH as u16),
            (_, RecordIdKind::Bytes) => KeyFilter::Nothing,
        };
        TableOptions { replicated, filter, ..TableOptions::default() }
    }

    /// The table below.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// How its entries lie.
    pub fn format(&self) -> IndexFormat {
        self.format
    }

    /// Adds an entry. In the `Id` format duplicates are never allowed.
    pub fn insert(
        &self,
        unit: &mut RecoveryUnit,
        key: &[u8],
        id: &RecordId,
        type_bits: &[u8],
        duplicates_allowed: bool,
    ) -> Result<Insertion> {
        self.require_kind(id)?;
        if self.format == IndexFormat::Id {
            return self.insert_id(unit, key, id, type_bits);
        }
        if !duplicates_allowed {
            unit.writer()?.delete(&self.table, key)?;
            if let Some(meter) = unit.meter() {
                meter.cursor_sought();
            }
            match self.look_up(unit, key)? {
                Some(found) if found != *id => return Ok(Insertion::Duplicate(found)),
                Some(_) => return Ok(Insertion::Present),
                None => {}
            }
        }
        let stored = stored_key(key, id);
        unit.writer()?.put(&self.table, &stored, type_bits)?;
        note_written(unit, stored.len());
        Ok(Insertion::Done)
    }

    fn insert_id(&self, unit: &mut RecoveryUnit, key: &[u8], id: &RecordId, type_bits: &[u8]) -> Result<Insertion> {
        unit.require_writable_unit()?;
        match self.look_up(unit, key)? {
            Some(found) if found != *id => return Ok(Insertion::Duplicate(found)),
            Some(_) => return Ok(Insertion::Present),
            None => {}
        }
        let mut value = Vec::with_capacity(2 * suffix::LONG_LENGTH + type_bits.len());
        append_value(&mut value, id, type_bits);
        unit.writer()?.put(&self.table, key, &value)?;
        note_written(unit, key.len());
        Ok(Insertion::Done)
    }

    /// Removes the entry; fine if it is not there.
    pub fn unindex(&self, unit: &mut RecoveryUnit, key: &[u8], id: &RecordId) -> Result<()> {
        self.require_kind(id)?;
        if self.format != IndexFormat::Id {
            let stored = stored_key(key, id);
            unit.writer()?.delete(&self.table, &stored)?;
            note_written(unit, stored.len());
            return Ok(());
        }
        unit.require_writable_unit()?;
        // The key may belong to another record by now.
        if self.look_up(unit, key)?.as_ref() == Some(id) {
            unit.writer()?.delete(&self.table, key)?;
            note_written(unit, key.len());
        }
        Ok(())
    }

    /// The first record that has the key.
    pub fn find_key(&self, unit: &mut RecoveryUnit, key: &[u8]) -> Result<Option<RecordId>> {
        let found = self.look_up(unit, key)?;
        if let (Some(meter), true) = (unit.meter(), found.is_some()) {
            meter.cursor_sought();
            meter.index_entry_read(key.len());
        }
        Ok(found)
    }

    /// The first record that has the key, not measured.
    fn look_up(&self, unit: &mut RecoveryUnit, key: &[u8]) -> Result<Option<RecordId>> {
        if self.format == IndexFormat::Id {
            let value = unit.reader()?.get(&self.table, key)?;
            return value.map(|value| Ok(self.split_value(&value)?.0)).transpose();
        }
        let mut cursor = unit.reader()?.cursor(&self.table)?;
        match cursor.seek(key)? {
            Some(entry) if entry.key.starts_with(key) => self.record_with_key(entry.key, key),
            _ => Ok(None),
        }
    }

    /// Another record that has the key too, beside the first: the key breaks uniqueness.
    pub fn dup_key_check(&self, unit: &mut RecoveryUnit, key: &[u8]) -> Result<Option<RecordId>> {
        if self.format == IndexFormat::Id {
            return Ok(None);
        }
        let mut cursor = unit.reader()?.cursor(&self.table)?;
        match cursor.seek(key)? {
            Some(entry) if entry.key.starts_with(key) && self.record_with_key(entry.key, key)?.is_some() => {}
            _ => return Ok(None),
        }
        match cursor.next()? {
            Some(entry) if entry.key.starts_with(key) => self.record_with_key(entry.key, key),
            _ => Ok(None),
        }
    }

    /// True if the index has no entry.
    pub fn is_empty(&self, unit: &mut RecoveryUnit) -> Result<bool> {
        Ok(unit.reader()?.cursor(&self.table)?.first()?.is_none())
    }

    /// Bytes that the entries take on disk.
    pub fn storage_size_bytes(&self) -> Result<u64> {
        self.engine.table_disk_bytes(&self.table)
    }

    /// Bytes on disk beside these which will be given back.
    pub fn free_size_bytes(&self) -> Result<u64> {
        self.engine.table_free_bytes(&self.table)
    }

    /// A cursor before the first entry of its direction.
    pub fn cursor(&self, direction: crate::Direction) -> IndexCursor {
        IndexCursor::new(self.table.clone(), self.format, self.kind, direction)
    }

    /// Loads entries in ascending order into the still empty index, past the log.
    pub fn bulk_load(&self, duplicates_allowed: bool) -> Result<SortedDataLoader> {
        let loader = self.engine.bulk_load(&self.table)?;
        Ok(SortedDataLoader::new(loader, self.format, self.kind, duplicates_allowed))
    }

    fn record_with_key(&self, stored: &[u8], key: &[u8]) -> Result<Option<RecordId>> {
        let (found, id) = suffix::split(self.kind, stored).ok_or_else(|| bad_entry(&self.table))?;
        Ok((found == key).then_some(id))
    }

    fn split_value<'a>(&self, value: &'a [u8]) -> Result<(RecordId, &'a [u8])> {
        split_value(self.kind, value).ok_or_else(|| bad_entry(&self.table))
    }

    fn require_kind(&self, id: &RecordId) -> Result<()> {
        if self.kind.fits(id) {
            return Ok(());
        }
        Err(StorageError::IllegalOperation(format!("{id:?} is not of the kind of '{}'", self.table.ident())))
    }
}

/// Tells the meter, if there is one, of an entry that was written or removed.
#[inline]
fn note_written(unit: &RecoveryUnit, size_bytes: usize) {
    if let Some(meter) = unit.meter() {
        meter.index_entry_written(size_bytes);
    }
}

fn stored_key(key: &[u8], id: &RecordId) -> Vec<u8> {
    let suffix_length = match id {
        RecordId::Long(_) => suffix::LONG_LENGTH,
        RecordId::Bytes(bytes) => bytes.len() + suffix::LONG_LENGTH,
    };
    let mut stored = Vec::with_capacity(key.len() + suffix_length);
    stored.extend_from_slice(key);
    suffix::append(id, &mut |bytes| stored.extend_from_slice(bytes));
    stored
}

fn bad_entry(table: &Table) -> StorageError {
    StorageError::Corruption {
        file: table.ident().to_owned(),
        offset: 0,
        detail: "an index entry has no record id of the index's kind".into(),
    }
}
