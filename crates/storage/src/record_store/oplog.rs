//! The oplog in the shape of a record store: the record id is the entry's timestamp.
//!
//! The entries lie in the engine's log, not in a table. Forward cursors see entries up to the newest point without
//! holes, also ones that become visible later; backward cursors see everything committed. Neither needs a snapshot. There
//! is no update and no delete; the oplog is cut at its ends only.

use crate::{Direction, Engine, Oplog, OplogCursor, OplogEntry, RecoveryUnit, Result, StorageError, TableSize};
use pando_base::{RecordId, Timestamp};
use std::sync::Arc;

/// The oplog as a record store.
pub struct OplogRecordStore {
    engine: Arc<dyn Engine>,
}

impl OplogRecordStore {
    /// The engine's oplog; fails in stand-alone mode.
    pub fn new(engine: Arc<dyn Engine>) -> Result<OplogRecordStore> {
        let store = OplogRecordStore { engine };
        store.oplog()?;
        Ok(store)
    }

    /// The oplog below.
    pub fn oplog(&self) -> Result<&dyn Oplog> {
        self.engine.oplog().ok_or_else(|| StorageError::IllegalOperation("a stand-alone store has no oplog".into()))
    }

    /// The record id of an entry.
    pub fn record_id(timestamp: Timestamp) -> Result<RecordId> {
        match i64::try_from(timestamp.0) {
            Ok(number) => Ok(RecordId::Long(number)),
            Err(_) => Err(StorageError::IllegalOperation(format!("{timestamp} cannot be an oplog record id"))),
        }
    }

    /// The timestamp that a record id stands for.
    pub fn timestamp(id: &RecordId) -> Result<Timestamp> {
        match id.as_long().map(u64::try_from) {
            Some(Ok(number)) => Ok(Timestamp(number)),
            _ => Err(StorageError::IllegalOperation(format!("{id:?} is not an oplog record id"))),
        }
    }

    /// Adds an entry with the unit of work.
    pub fn insert(&self, unit: &mut RecoveryUnit, timestamp: Timestamp, entry: &[u8]) -> Result<RecordId> {
        let id = Self::record_id(timestamp)?;
        unit.writer()?.append_oplog(timestamp, entry)?;
        Ok(id)
    }

    /// The entry of an id, past holes too.
    pub fn get(&self, id: &RecordId) -> Result<Option<OplogEntry>> {
        let timestamp = Self::timestamp(id)?;
        let found = self.oplog()?.backward()?.seek(timestamp)?;
        Ok(found.filter(|entry| entry.timestamp == timestamp))
    }

    /// A cursor before the first entry of its direction.
    pub fn cursor(&self, direction: Direction) -> Result<OplogRecordCursor> {
        let cursor = match direction {
            Direction::Forward => self.oplog()?.forward()?,
            Direction::Reverse => self.oplog()?.backward()?,
        };
        Ok(OplogRecordCursor { cursor, place: None })
    }

    /// Entries.
    pub fn num_records(&self) -> Result<i64> {
        self.size().map(|size| size.records)
    }

    /// Bytes of all entries.
    pub fn data_size_bytes(&self) -> Result<i64> {
        self.size().map(|size| size.bytes)
    }

    fn size(&self) -> Result<TableSize> {
        Ok(self.oplog()?.size())
    }

    /// Removes every entry.
    pub fn truncate(&self) -> Result<()> {
        self.oplog()?.reset()
    }

    /// Removes the entries after an id, or from it on.
    pub fn truncate_after(&self, id: &RecordId, inclusive: bool) -> Result<()> {
        self.oplog()?.truncate_after(Self::timestamp(id)?, inclusive)
    }
}

/// Walks the oplog in one direction.
pub struct OplogRecordCursor {
    cursor: Box<dyn OplogCursor>,
    place: Option<Timestamp>,
}

impl OplogRecordCursor {
    /// The next entry. At the end none, until there is more.
    #[allow(clippy::should_implement_trait, reason = "an iterator would end at the first none")]
    pub fn next(&mut self) -> Result<Option<OplogEntry>> {
        let entry = self.cursor.next()?;
        Ok(self.stand_on(entry))
    }

    /// To the first entry at or past the timestamp in the cursor's direction.
    pub fn seek(&mut self, timestamp: Timestamp) -> Result<Option<OplogEntry>> {
        let entry = self.cursor.seek(timestamp)?;
        Ok(self.stand_on(entry))
    }

    /// To this very entry, or to the one past it, which is then not returned.
    pub fn seek_exact(&mut self, timestamp: Timestamp) -> Result<Option<OplogEntry>> {
        Ok(self.seek(timestamp)?.filter(|entry| entry.timestamp == timestamp))
    }

    fn stand_on(&mut self, entry: Option<OplogEntry>) -> Option<OplogEntry> {
        if let Some(entry) = &entry {
            self.place = Some(entry.timestamp);
        }
        entry
    }

    /// Lets go of nothing: the oplog has no snapshots. Here for the shape of a record cursor.
    pub fn save(&mut self) {}

    /// Goes on after a yield; `PositionLost` if the entry stood on was truncated meanwhile.
    pub fn restore(&mut self) -> Result<()> {
        let Some(place) = self.place else { return Ok(()) };
        match self.cursor.seek(place)? {
            Some(entry) if entry.timestamp == place => Ok(()),
            _ => Err(StorageError::PositionLost),
        }
    }
}
