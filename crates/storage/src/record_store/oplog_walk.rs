//! A record cursor's walk through the oplog.
//!
//! There is no snapshot: forward it never passes a hole, and backward it begins at the very end. A reader with a time of its
//! own sees nothing after that time, in either direction.

use super::{Direction, OplogRecordCursor, OplogRecordStore, Record};
use crate::{Engine, OplogEntry, RecoveryUnit, Result};
use bytes::Bytes;
use pando_base::{RecordId, Timestamp};
use pando_env::Random;
use std::sync::Arc;

/// Stands on an entry, or nowhere yet.
pub(super) struct OplogWalk {
    engine: Arc<dyn Engine>,
    direction: Direction,
    cursor: Option<OplogRecordCursor>,
    entry: Option<OplogEntry>,
}

impl OplogWalk {
    pub(super) fn new(engine: &Arc<dyn Engine>, direction: Direction) -> OplogWalk {
        OplogWalk { engine: Arc::clone(engine), direction, cursor: None, entry: None }
    }

    fn cursor(&mut self) -> Result<&mut OplogRecordCursor> {
        match &mut self.cursor {
            Some(cursor) => Ok(cursor),
            slot @ None => {
                let store = OplogRecordStore::new(Arc::clone(&self.engine))?;
                Ok(slot.insert(store.cursor(self.direction)?))
            }
        }
    }

    pub(super) fn next(&mut self, unit: &mut RecoveryUnit) -> Result<Option<Record<'_>>> {
        let limit = read_limit(unit)?;
        let is_first = self.entry.is_none() && self.cursor.is_none();
        let direction = self.direction;
        let cursor = self.cursor()?;
        let entry = match limit.filter(|_| is_first && direction == Direction::Reverse) {
            Some(limit) => cursor.seek(limit)?,
            None => cursor.next()?,
        };
        self.stand_on(entry, limit)
    }

    pub(super) fn seek(&mut self, unit: &mut RecoveryUnit, id: &RecordId) -> Result<Option<Record<'_>>> {
        let limit = read_limit(unit)?;
        let timestamp = OplogRecordStore::timestamp(id)?;
        let start = match (self.direction, limit) {
            (Direction::Reverse, Some(limit)) => timestamp.min(limit),
            _ => timestamp,
        };
        let entry = self.cursor()?.seek(start)?;
        self.stand_on(entry, limit)
    }

    pub(super) fn seek_exact(&mut self, unit: &mut RecoveryUnit, id: &RecordId) -> Result<Option<Record<'_>>> {
        let limit = read_limit(unit)?;
        let timestamp = OplogRecordStore::timestamp(id)?;
        let entry = self.cursor()?.seek_exact(timestamp)?;
        self.stand_on(entry, limit)
    }

    /// An entry near a time between the first and the last, chosen uniformly: bursts are met more seldom than their share.
    pub(super) fn random(&mut self, unit: &mut RecoveryUnit, random: &dyn Random) -> Result<Option<Record<'_>>> {
        let Some(oplog) = self.engine.oplog() else { return Ok(None) };
        let (Some(first), Some(last)) = (oplog.first(), oplog.last()) else { return Ok(None) };
        let span = last.0.saturating_sub(first.0).saturating_add(1);
        let id = OplogRecordStore::record_id(Timestamp(first.0.saturating_add(random.below(span))))?;
        self.seek(unit, &id)
    }

    pub(super) fn value_bytes(&self) -> Option<Bytes> {
        self.entry.as_ref().map(|entry| entry.entry.clone())
    }

    fn stand_on(&mut self, entry: Option<OplogEntry>, limit: Option<Timestamp>) -> Result<Option<Record<'_>>> {
        self.entry = entry.filter(|entry| limit.is_none_or(|limit| entry.timestamp <= limit));
        let Some(entry) = &self.entry else { return Ok(None) };
        let id = OplogRecordStore::record_id(entry.timestamp)?;
        Ok(Some(Record { id, value: &entry.entry }))
    }
}

/// The time that the operation reads at, if it has one.
fn read_limit(unit: &mut RecoveryUnit) -> Result<Option<Timestamp>> {
    unit.preallocate_snapshot()?;
    Ok(unit.read_timestamp())
}
