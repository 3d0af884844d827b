//! What stands between writers and an index that is being built: its side-writes, duplicate-keys and skipped-records tables.
//!
//! A side write's key is a number that grows, big end first; its value is what is to be done, the entry (key and record id as an
//! index's table has them) and the type bits. A duplicate's key is the index key, its value the type bits. A skipped record's
//! key is its record id.
//!
//! Numbers that belong to units which rolled back are never seen. A unit that commits late may have a lower number than rows that
//! were drained already: a pass over the table therefore begins at its first row.

use crate::arrays::LearntArrays;
use crate::temporary::{Row, TemporaryTable};
use pando_base::record_id::suffix;
use pando_base::{Error, RecordId, RecordIdKind, Result};
use pando_catalog::{Catalog, Index};
use pando_index::{Arrays, IndexInterceptor, Key, SideWrite};
use pando_operation::Operation;
use pando_storage::{Engine, RecoveryUnit};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const INSERTED: u8 = b'i';
const REMOVED: u8 = b'd';

/// The tables' names, as they are kept over a restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InterceptorIdents {
    pub(crate) side_writes: String,
    /// Where keys must be unique.
    pub(crate) duplicates: Option<String>,
    pub(crate) skipped: String,
}

/// Takes what writers have for an index that is being built.
pub struct Interceptor {
    kind: RecordIdKind,
    side_writes: TemporaryTable,
    next_number: AtomicU64,
    /// How many side writes are in the index.
    drained: AtomicU64,
    duplicates: Option<TemporaryTable>,
    skipped: TemporaryTable,
    arrays: Mutex<LearntArrays>,
}

/// A side write, read.
pub(crate) struct ReadSideWrite<'a> {
    pub(crate) kind: SideWrite,
    pub(crate) key: Key<'a>,
    pub(crate) record_id: RecordId,
}

impl Interceptor {
    /// With new tables.
    pub(crate) fn create(
        engine: &Arc<dyn Engine>,
        catalog: &Catalog,
        index: &Index,
        kind: RecordIdKind,
        is_replicated: bool,
    ) -> Result<Interceptor> {
        let table = |purpose: &str| TemporaryTable::create(engine, catalog, purpose, is_replicated);
        let descriptor = &index.descriptor;
        Ok(Interceptor {
            kind,
            side_writes: table("side-writes")?,
            next_number: AtomicU64::new(0),
            drained: AtomicU64::new(0),
            duplicates: descriptor.unique.then(|| table("duplicate-keys")).transpose()?,
            skipped: table("skipped-records")?,
            arrays: Mutex::new(LearntArrays::new(descriptor.tracked_field_count())),
        })
    }

    /// With the tables that an earlier life of the server has left.
    pub(crate) fn open(
        engine: &Arc<dyn Engine>,
        idents: &InterceptorIdents,
        kind: RecordIdKind,
        tracked_field_count: usize,
    ) -> Result<Interceptor> {
        let side_writes = TemporaryTable::open(engine, &idents.side_writes)?;
        let last = side_writes.last_key()?.and_then(|key| <[u8; 8]>::try_from(key).ok()).map(u64::from_be_bytes);
        let duplicates = idents.duplicates.as_ref().map(|ident| TemporaryTable::open(engine, ident)).transpose()?;
        Ok(Interceptor {
            kind,
            side_writes,
            next_number: AtomicU64::new(last.map_or(0, |last| last.saturating_add(1))),
            drained: AtomicU64::new(0),
            duplicates,
            skipped: TemporaryTable::open(engine, &idents.skipped)?,
            arrays: Mutex::new(LearntArrays::new(tracked_field_count)),
        })
    }

    pub(crate) fn idents(&self) -> InterceptorIdents {
        InterceptorIdents {
            side_writes: self.side_writes.ident().to_owned(),
            duplicates: self.duplicates.as_ref().map(|table| table.ident().to_owned()),
            skipped: self.skipped.ident().to_owned(),
        }
    }

    /// What writers have taught of arrays.
    pub(crate) fn arrays(&self) -> LearntArrays {
        self.arrays.lock().clone()
    }

    pub(crate) fn side_writes(&self) -> &TemporaryTable {
        &self.side_writes
    }

    pub(crate) fn duplicates(&self) -> Option<&TemporaryTable> {
        self.duplicates.as_ref()
    }

    pub(crate) fn skipped(&self) -> &TemporaryTable {
        &self.skipped
    }

    /// Reads a row of the side-writes table.
    pub(crate) fn read<'a>(&self, row: &'a Row) -> Result<ReadSideWrite<'a>> {
        let parse = || {
            let (kind, rest) = row.1.split_first()?;
            let kind = match *kind {
                INSERTED => SideWrite::Insert,
                REMOVED => SideWrite::Remove,
                _ => return None,
            };
            let (length, rest) = rest.split_first_chunk::<4>()?;
            let (entry, type_bits) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            let (bytes, record_id) = suffix::split(self.kind, entry)?;
            Some(ReadSideWrite { kind, key: Key { bytes, type_bits }, record_id })
        };
        parse()
            .ok_or_else(|| Error::internal(format!("'{}' has a row that is no side write", self.side_writes.ident())))
    }

    /// Notes that two documents may share a key.
    pub(crate) fn note_duplicate(&self, unit: &mut RecoveryUnit, key: Key<'_>) -> Result<()> {
        match &self.duplicates {
            Some(duplicates) => duplicates.put(unit, key.bytes, key.type_bits),
            None => Ok(()),
        }
    }

    /// Notes that a document could not be indexed.
    pub(crate) fn note_skipped(&self, unit: &mut RecoveryUnit, record_id: &RecordId) -> Result<()> {
        let mut key = Vec::new();
        suffix::append(record_id, &mut |bytes| key.extend_from_slice(bytes));
        self.skipped.put(unit, &key, &[])
    }

    /// Reads a row of the skipped-records table.
    pub(crate) fn skipped_record(&self, row: &Row) -> Result<RecordId> {
        let read = suffix::split(self.kind, &row.0).map(|(_, record_id)| record_id);
        read.ok_or_else(|| Error::internal(format!("'{}' has a row that is no record id", self.skipped.ident())))
    }

    /// Drops the tables.
    pub(crate) fn drop_tables(&self) -> Result<()> {
        self.side_writes.drop_table()?;
        self.skipped.drop_table()?;
        self.duplicates.as_ref().map_or(Ok(()), TemporaryTable::drop_table)
    }
}

impl Interceptor {
    /// So many side writes are in the index now.
    pub(crate) fn note_drained(&self, count: u64) {
        self.drained.fetch_add(count, Ordering::Relaxed);
    }

    /// How many side writes were drained, and how many there were.
    pub(crate) fn drain_progress(&self) -> (u64, u64) {
        (self.drained.load(Ordering::Relaxed), self.next_number.load(Ordering::Relaxed))
    }
}

impl IndexInterceptor for Interceptor {
    fn side_write(
        &self,
        operation: &mut Operation,
        _index: &Index,
        kind: SideWrite,
        keys: &mut dyn Iterator<Item = Key<'_>>,
        record_id: &RecordId,
        arrays: Arrays<'_>,
    ) -> Result<u64> {
        let mut count = 0;
        let mut value = Vec::new();
        for key in keys {
            value.clear();
            value.push(if kind == SideWrite::Insert { INSERTED } else { REMOVED });
            value.extend_from_slice(&[0; 4]);
            value.extend_from_slice(key.bytes);
            suffix::append(record_id, &mut |bytes| value.extend_from_slice(bytes));
            let length = u32::try_from(value.len() - 5).map_err(|_| Error::internal("a key of four gigabytes"))?;
            if let Some(place) = value.get_mut(1..5) {
                place.copy_from_slice(&length.to_le_bytes());
            }
            value.extend_from_slice(key.type_bits);
            let number = self.next_number.fetch_add(1, Ordering::Relaxed);
            self.side_writes.put(&mut operation.recovery_unit, &number.to_be_bytes(), &value)?;
            count += 1;
        }
        if arrays.is_multikey {
            self.arrays.lock().take_in(arrays);
        }
        Ok(count)
    }

    fn skip(&self, operation: &mut Operation, _index: &Index, record_id: &RecordId) -> Result<()> {
        self.note_skipped(&mut operation.recovery_unit, record_id)
    }
}
