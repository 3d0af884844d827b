//! Records by id over a table: where a collection's documents lie.
//!
//! The key is the record id (see [`RecordIdKind`]), the value is opaque. Records and bytes are counted with the
//! transaction that changes them, so the counts are exact after a crash or a rollback. A call that fails with
//! `PrepareConflict` has changed nothing and may be repeated in the same unit of work.
//!
//! Ids given out by the store are greater than every id it has met: the largest key is looked up at first use. That holds
//! as long as there is one [`RecordStore`] for a table at a time, shared by all operations.
//!
//! Cursors find the operation's snapshot by themselves: each move takes the recovery unit, and a cursor that meets another
//! snapshot than before goes on from its place under the new one.
//!
//! A store can also stand over the oplog ([`RecordStore::over_oplog`]): then it is read-only, and its table is empty.
//!
//! Capped collections and their deletions are the business of the layers above. This module must not know BSON.

mod cursor;
mod oplog;
mod oplog_walk;

use crate::record_id_codec::{EncodedKey, decode_key};
use crate::{BulkLoader, Engine, Oplog, RecordIdKind, RecoveryUnit, Result, StorageError, Table, TableSize};
use bytes::Bytes;
use pando_base::{AnyFailPoint, FailPoint, RecordId, Timestamp};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

pub(crate) use cursor::FollowingCursor;
pub use cursor::{Direction, Record, RecordCursor};
pub use oplog::{OplogRecordCursor, OplogRecordStore};

/// Writes of records meet another writer's.
static WRITE_CONFLICT: FailPoint = FailPoint::new("WTWriteConflictException");

/// The fail points of this crate.
pub const FAIL_POINTS: &[&dyn AnyFailPoint] = &[&WRITE_CONFLICT, &crate::PAUSE_CHECKPOINT_THREAD];

/// Fails as if another writer had been met, if a test wants that.
#[inline]
fn meet_no_other() -> Result<()> {
    if WRITE_CONFLICT.should_fail() { Err(StorageError::WriteConflict) } else { Ok(()) }
}

/// The smallest id that a store gives out.
const RECORD_ID_FIRST: i64 = 1;
/// Says that the next id is not known yet.
const NEXT_ID_UNKNOWN: i64 = 0;

/// A record to be inserted.
#[derive(Clone, Debug)]
pub struct NewRecord<'a> {
    /// Its id; none to be given one.
    pub id: Option<RecordId>,
    /// Its value.
    pub value: &'a [u8],
    /// Its own commit timestamp, or `NONE` for the unit's.
    pub timestamp: Timestamp,
}

/// A collection's records.
pub struct RecordStore {
    engine: Arc<dyn Engine>,
    table: Table,
    kind: RecordIdKind,
    /// Ids from here on are free; `NEXT_ID_UNKNOWN` before the first use.
    next_id: AtomicI64,
    /// The records are the oplog's entries, as long as the engine has an oplog.
    is_oplog: bool,
}

impl RecordStore {
    /// The records in a table, whose ids are of this kind.
    pub fn new(engine: Arc<dyn Engine>, table: Table, kind: RecordIdKind) -> RecordStore {
        RecordStore { engine, table, kind, next_id: AtomicI64::new(NEXT_ID_UNKNOWN), is_oplog: false }
    }

    /// The oplog's entries as records, under the name of a table that stays empty. On an engine without an oplog the records
    /// are those of the table.
    pub fn over_oplog(engine: Arc<dyn Engine>, table: Table) -> RecordStore {
        let is_oplog = engine.oplog().is_some();
        RecordStore { is_oplog, ..RecordStore::new(engine, table, RecordIdKind::Long) }
    }

    /// The oplog, if the records are its entries.
    pub fn oplog(&self) -> Option<&dyn Oplog> {
        self.engine.oplog().filter(|_| self.is_oplog)
    }

    /// The table below.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// The kind of its ids.
    pub fn kind(&self) -> RecordIdKind {
        self.kind
    }

    // ---- Reading.

    /// The record's value.
    pub fn get(&self, unit: &mut RecoveryUnit, id: &RecordId) -> Result<Option<Bytes>> {
        self.require_kind(id)?;
        let found = self.look_up(unit, id)?;
        if let (Some(meter), Some(value)) = (unit.meter(), &found) {
            meter.cursor_sought();
            meter.document_read(measured_bytes(id, value.len()));
        }
        Ok(found)
    }

    /// The values of records, until they are `bytes_max` together: as many as came before that, in the order of the ids. Faster
    /// than one by one where the records lie far apart.
    pub fn get_each(&self, unit: &mut RecoveryUnit, ids: &[RecordId], bytes_max: usize) -> Result<Vec<Option<Bytes>>> {
        if self.is_oplog {
            return ids.iter().take(1).map(|id| self.get(unit, id)).collect();
        }
        ids.iter().try_for_each(|id| self.require_kind(id))?;
        let keys: Vec<EncodedKey<'_>> = ids.iter().map(EncodedKey::new).collect();
        let keys: Vec<&[u8]> = keys.iter().map(EncodedKey::as_slice).collect();
        let mut found = Vec::with_capacity(ids.len());
        unit.reader()?.get_each(&self.table, &keys, bytes_max, &mut |value| found.push(value))?;
        if let Some(meter) = unit.meter() {
            for (id, value) in ids.iter().zip(&found).filter_map(|(id, value)| Some((id, value.as_ref()?))) {
                meter.cursor_sought();
                meter.document_read(measured_bytes(id, value.len()));
            }
        }
        Ok(found)
    }

    /// The record's value, not measured.
    fn look_up(&self, unit: &mut RecoveryUnit, id: &RecordId) -> Result<Option<Bytes>> {
        if self.is_oplog {
            let found = self
                .cursor(Direction::Reverse)
                .seek_exact(unit, id)?
                .map(|record| Bytes::copy_from_slice(record.value));
            return Ok(found);
        }
        unit.reader()?.get(&self.table, EncodedKey::new(id).as_slice())
    }

    /// A cursor that stands before the first record of its direction.
    pub fn cursor(&self, direction: Direction) -> RecordCursor {
        if self.is_oplog {
            return RecordCursor::over_oplog(&self.engine, direction);
        }
        RecordCursor::new(self.table.clone(), self.kind, direction)
    }

    /// Committed records.
    pub fn num_records(&self) -> Result<i64> {
        self.size().map(|size| size.records)
    }

    /// Bytes of all committed records.
    pub fn data_size_bytes(&self) -> Result<i64> {
        self.size().map(|size| size.bytes)
    }

    fn size(&self) -> Result<TableSize> {
        match self.oplog() {
            Some(oplog) => Ok(oplog.size()),
            None => self.engine.table_size(&self.table),
        }
    }

    /// Bytes that the records take on disk.
    pub fn storage_size_bytes(&self) -> Result<u64> {
        match self.oplog() {
            // The log is not compressed.
            Some(oplog) => Ok(u64::try_from(oplog.size().bytes).unwrap_or(0)),
            None => self.engine.table_disk_bytes(&self.table),
        }
    }

    /// Bytes on disk beside these which will be given back.
    pub fn free_size_bytes(&self) -> Result<u64> {
        self.engine.table_free_bytes(&self.table)
    }

    /// Sets the counts outright, after a full count.
    pub fn set_size(&self, size: TableSize) -> Result<()> {
        if self.is_oplog {
            return Ok(());
        }
        self.engine.set_table_size(&self.table, size)
    }

    // ---- Writing.

    /// Adds a record under the next free id.
    pub fn insert(&self, unit: &mut RecoveryUnit, value: &[u8]) -> Result<RecordId> {
        let id = RecordId::Long(self.reserve_record_ids(1)?.start);
        self.put_new(unit, &id, value)?;
        Ok(id)
    }

    /// The same of a value that need not be copied: see [`Transaction::put_shared`](crate::Transaction::put_shared).
    pub fn insert_shared(&self, unit: &mut RecoveryUnit, value: Bytes) -> Result<RecordId> {
        let id = RecordId::Long(self.reserve_record_ids(1)?.start);
        meet_no_other()?;
        self.require_writable(&id)?;
        let length = value.len();
        unit.writer()?.put_shared(&self.table, EncodedKey::new(&id).as_slice(), value)?;
        self.note_new(unit, &id, length)?;
        Ok(id)
    }

    /// Adds a record under a given id; `DuplicateKey` if there is one.
    pub fn insert_at(&self, unit: &mut RecoveryUnit, id: &RecordId, value: &[u8]) -> Result<()> {
        self.require_kind(id)?;
        if self.look_up(unit, id)?.is_some() {
            return Err(StorageError::DuplicateKey);
        }
        self.put_new(unit, id, value)?;
        self.pass_record_id(id)
    }

    /// Adds many records, each at its own commit timestamp if it has one. Returns their ids.
    pub fn insert_records(&self, unit: &mut RecoveryUnit, records: &[NewRecord<'_>]) -> Result<Vec<RecordId>> {
        let wanted = records.iter().filter(|record| record.id.is_none()).count();
        let mut reserved = if wanted == 0 { 0..0 } else { self.reserve_record_ids(wanted)? };
        let mut ids = Vec::with_capacity(records.len());
        for record in records {
            if record.timestamp.is_some() {
                unit.set_timestamp(record.timestamp)?;
            }
            let id = match &record.id {
                Some(id) => {
                    self.insert_at(unit, id, record.value)?;
                    id.clone()
                }
                None => {
                    let number = reserved.next().ok_or_else(|| self.out_of_ids())?;
                    let id = RecordId::Long(number);
                    self.put_new(unit, &id, record.value)?;
                    id
                }
            };
            ids.push(id);
        }
        Ok(ids)
    }

    /// Writes a record that is known to be absent.
    fn put_new(&self, unit: &mut RecoveryUnit, id: &RecordId, value: &[u8]) -> Result<()> {
        meet_no_other()?;
        self.require_writable(id)?;
        unit.writer()?.put(&self.table, EncodedKey::new(id).as_slice(), value)?;
        self.note_new(unit, id, value.len())
    }

    fn note_new(&self, unit: &mut RecoveryUnit, id: &RecordId, length: usize) -> Result<()> {
        if let Some(meter) = unit.meter() {
            meter.document_written(measured_bytes(id, length));
        }
        unit.adjust_size(&self.table, TableSize::new(1, signed(length)))
    }

    /// Replaces a record; false if there is none.
    pub fn update(&self, unit: &mut RecoveryUnit, id: &RecordId, value: &[u8]) -> Result<bool> {
        self.require_kind(id)?;
        let Some(old) = self.look_up(unit, id)? else { return Ok(false) };
        self.update_known(unit, id, old.len(), value)?;
        Ok(true)
    }

    /// Replaces a record that the caller has read in this snapshot, and whose length it knows.
    pub fn update_known(&self, unit: &mut RecoveryUnit, id: &RecordId, old_length: usize, value: &[u8]) -> Result<()> {
        meet_no_other()?;
        self.require_writable(id)?;
        unit.writer()?.put(&self.table, EncodedKey::new(id).as_slice(), value)?;
        self.note_changed(unit, id, value.len());
        match signed(value.len()) - signed(old_length) {
            0 => Ok(()),
            growth => unit.adjust_size(&self.table, TableSize::new(0, growth)),
        }
    }

    /// Removes a record; false if there is none.
    pub fn delete(&self, unit: &mut RecoveryUnit, id: &RecordId) -> Result<bool> {
        self.require_kind(id)?;
        let Some(old) = self.look_up(unit, id)? else { return Ok(false) };
        self.delete_known(unit, id, old.len())?;
        Ok(true)
    }

    /// Removes a record that the caller has read in this snapshot, and whose length it knows.
    pub fn delete_known(&self, unit: &mut RecoveryUnit, id: &RecordId, old_length: usize) -> Result<()> {
        meet_no_other()?;
        self.require_writable(id)?;
        unit.writer()?.delete(&self.table, EncodedKey::new(id).as_slice())?;
        self.note_changed(unit, id, old_length);
        unit.adjust_size(&self.table, TableSize::new(-1, -signed(old_length)))
    }

    /// A record was replaced or removed: it was looked up, and so much was written.
    fn note_changed(&self, unit: &RecoveryUnit, id: &RecordId, length: usize) {
        if let Some(meter) = unit.meter() {
            meter.cursor_sought();
            meter.document_written(measured_bytes(id, length));
        }
    }

    /// Removes every record.
    pub fn truncate(&self, unit: &mut RecoveryUnit) -> Result<()> {
        unit.writer()?.truncate(&self.table, &[], None)?;
        // After the truncation nobody else can change the table, and all that was committed before was visible to it:
        // what is counted now is just what has gone.
        let mut gone = self.engine.table_size(&self.table)?;
        gone += unit.uncommitted_size(&self.table);
        unit.adjust_size(&self.table, TableSize::new(-gone.records, -gone.bytes))
    }

    /// Removes the records from `first` to `last`, both included; none stands for the very first or last. The caller may
    /// say how much that is; otherwise it is counted. How much it was.
    pub fn range_truncate(
        &self,
        unit: &mut RecoveryUnit,
        first: Option<&RecordId>,
        last: Option<&RecordId>,
        removed: Option<TableSize>,
    ) -> Result<TableSize> {
        [first, last].into_iter().flatten().try_for_each(|id| self.require_kind(id))?;
        unit.require_writable_unit()?;
        let removed = match removed {
            Some(removed) => removed,
            None => self.count_range(unit, first, last)?,
        };
        let start = first.map(EncodedKey::new);
        let start = start.as_ref().map_or(&[][..], EncodedKey::as_slice);
        // The next key after a byte string is the same with a zero byte.
        let end = last.map(|id| [EncodedKey::new(id).as_slice(), &[0]].concat());
        unit.writer()?.truncate(&self.table, start, end.as_deref())?;
        unit.adjust_size(&self.table, TableSize::new(-removed.records, -removed.bytes))?;
        Ok(removed)
    }

    fn count_range(
        &self,
        unit: &mut RecoveryUnit,
        first: Option<&RecordId>,
        last: Option<&RecordId>,
    ) -> Result<TableSize> {
        let mut size = TableSize::default();
        let mut cursor = self.cursor(Direction::Forward);
        let mut record = match first {
            Some(first) => cursor.seek(unit, first)?,
            None => cursor.next(unit)?,
        };
        while let Some(found) = record.filter(|record| last.is_none_or(|last| record.id <= *last)) {
            size += TableSize::new(1, signed(found.value.len()));
            record = cursor.next(unit)?;
        }
        Ok(size)
    }

    /// Loads records in ascending order of id into the still empty store, past the log.
    pub fn bulk_load(&self) -> Result<RecordLoader> {
        let loader = self.engine.bulk_load(&self.table)?;
        self.next_id.store(NEXT_ID_UNKNOWN, Ordering::Release);
        Ok(RecordLoader { loader, kind: self.kind, size: TableSize::default() })
    }

    // ---- Ids.

    /// Gives out the next ids, as many as asked for. They are not used again, whatever becomes of them.
    pub fn reserve_record_ids(&self, count: usize) -> Result<Range<i64>> {
        self.learn_next_id()?;
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        self.next_id
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |next| next.checked_add(count))
            .map(|next| next..next + count)
            .map_err(|_| self.out_of_ids())
    }

    fn out_of_ids(&self) -> StorageError {
        StorageError::IllegalOperation(format!("'{}' has no record ids left", self.table.ident()))
    }

    /// Sees to it that ids given out are greater than this one.
    fn pass_record_id(&self, id: &RecordId) -> Result<()> {
        let RecordId::Long(number) = id else { return Ok(()) };
        self.learn_next_id()?;
        self.next_id.fetch_max(number.saturating_add(1), Ordering::AcqRel);
        Ok(())
    }

    fn learn_next_id(&self) -> Result<()> {
        if self.kind != RecordIdKind::Long {
            return Err(StorageError::IllegalOperation("a clustered store gives out no record ids".into()));
        }
        if self.next_id.load(Ordering::Acquire) != NEXT_ID_UNKNOWN {
            return Ok(());
        }
        let mut cursor = self.engine.committed_cursor(&self.table)?;
        let next = match cursor.last()? {
            None => RECORD_ID_FIRST,
            Some(entry) => match decode_key(self.kind, entry.key) {
                Some(RecordId::Long(number)) => number.saturating_add(1).max(RECORD_ID_FIRST),
                _ => return Err(bad_key(&self.table)),
            },
        };
        // Of two that look at the same time, the first wins; the second's knowledge is not newer.
        let _ = self.next_id.compare_exchange(NEXT_ID_UNKNOWN, next, Ordering::AcqRel, Ordering::Acquire);
        Ok(())
    }

    /// The oplog is written with transactions and cut at its ends, not through this.
    fn require_writable(&self, id: &RecordId) -> Result<()> {
        if self.is_oplog {
            return Err(StorageError::IllegalOperation("the oplog is not written as a record store".into()));
        }
        self.require_kind(id)
    }

    fn require_kind(&self, id: &RecordId) -> Result<()> {
        if self.kind.fits(id) {
            return Ok(());
        }
        Err(StorageError::IllegalOperation(format!("{id:?} is not of the kind of '{}'", self.table.ident())))
    }
}

/// Takes records in ascending order of id for a new store.
pub struct RecordLoader {
    loader: Box<dyn BulkLoader>,
    kind: RecordIdKind,
    size: TableSize,
}

impl RecordLoader {
    /// Adds a record.
    pub fn add(&mut self, id: &RecordId, value: &[u8]) -> Result<()> {
        if !self.kind.fits(id) {
            return Err(StorageError::IllegalOperation(format!("{id:?} is not of the store's kind")));
        }
        self.loader.add(EncodedKey::new(id).as_slice(), value)?;
        self.size += TableSize::new(1, signed(value.len()));
        Ok(())
    }

    /// Makes all of it durable and visible.
    pub fn finish(self) -> Result<()> {
        self.loader.finish(self.size)
    }
}

/// What a record counts for: its value, and its id where that is data of the client's.
fn measured_bytes(id: &RecordId, value_length: usize) -> usize {
    match id {
        RecordId::Long(_) => value_length,
        RecordId::Bytes(bytes) => value_length + bytes.len(),
    }
}

/// Lengths are far below the limit of a signed number; a table's size is signed because it is also a change.
fn signed(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

fn bad_key(table: &Table) -> StorageError {
    StorageError::Corruption {
        file: table.ident().to_owned(),
        offset: 0,
        detail: "a key is not a record id of the store's kind".into(),
    }
}
