//! Walking a record store in one direction.
//!
//! A cursor belongs to no transaction for longer than a snapshot lasts: each move attaches it to the recovery unit's
//! present snapshot if that is another one. [`RecordCursor::save`] lets go of the snapshot, so that a yield frees it; the
//! place is kept, also if the record there is deleted meanwhile.
//!
//! The oplog's records lie in the log, not in a table; a cursor over them is of the same shape (`oplog_walk`).

use super::oplog_walk::OplogWalk;
use super::{bad_key, measured_bytes};
use crate::record_id_codec::{EncodedKey, decode_key};
use crate::recovery_unit::SnapshotId;
use crate::{Cursor, Engine, Entry, RecordIdKind, RecoveryUnit, Result, Table, Transaction};
use bytes::Bytes;
use pando_base::RecordId;
use pando_env::Random;
use std::sync::Arc;

/// Which way a cursor walks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Direction {
    /// Ascending.
    #[default]
    Forward,
    /// Descending.
    Reverse,
}

impl Direction {
    /// The other way.
    pub fn reversed(self) -> Direction {
        match self {
            Direction::Forward => Direction::Reverse,
            Direction::Reverse => Direction::Forward,
        }
    }
}

/// A record that a cursor stands on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its id.
    pub id: RecordId,
    /// Its value.
    pub value: &'a [u8],
}

/// A table cursor that follows a recovery unit from snapshot to snapshot.
pub(crate) struct FollowingCursor {
    table: Table,
    cursor: Option<Box<dyn Cursor>>,
    /// The snapshot it is attached to.
    snapshot: Option<SnapshotId>,
    passes_by: bool,
}

impl FollowingCursor {
    pub(crate) fn new(table: Table) -> FollowingCursor {
        FollowingCursor { table, cursor: None, snapshot: None, passes_by: false }
    }

    /// The cursor, attached to the recovery unit's snapshot.
    pub(crate) fn under(&mut self, unit: &mut RecoveryUnit) -> Result<&mut dyn Cursor> {
        let (id, transaction) = unit.snapshot()?;
        if self.snapshot != Some(id) {
            self.attach(transaction)?;
            self.snapshot = Some(id);
        }
        match &mut self.cursor {
            Some(cursor) => Ok(&mut **cursor),
            slot @ None => {
                let cursor = slot.insert(transaction.cursor(&self.table)?);
                if self.passes_by {
                    cursor.pass_by();
                }
                Ok(&mut **cursor)
            }
        }
    }

    fn attach(&mut self, transaction: &dyn Transaction) -> Result<()> {
        let Some(cursor) = &mut self.cursor else { return Ok(()) };
        cursor.detach();
        cursor.attach(transaction)
    }

    pub(crate) fn save(&mut self) {
        self.snapshot = None;
        if let Some(cursor) = &mut self.cursor {
            cursor.detach();
        }
    }

    pub(crate) fn value_bytes(&self) -> Option<Bytes> {
        self.cursor.as_ref().and_then(|cursor| cursor.value_bytes())
    }

    pub(crate) fn value(&self) -> Option<&[u8]> {
        self.cursor.as_ref().and_then(|cursor| cursor.entry()).map(|entry| entry.value)
    }
}

/// Walks the records in one direction.
pub struct RecordCursor {
    walk: Walk,
    direction: Direction,
}

/// What is walked.
enum Walk {
    Table(TableWalk),
    Oplog(OplogWalk),
}

impl RecordCursor {
    pub(crate) fn new(table: Table, kind: RecordIdKind, direction: Direction) -> RecordCursor {
        let walk = TableWalk { cursor: FollowingCursor::new(table.clone()), table, kind };
        RecordCursor { walk: Walk::Table(walk), direction }
    }

    pub(crate) fn over_oplog(engine: &Arc<dyn Engine>, direction: Direction) -> RecordCursor {
        RecordCursor { walk: Walk::Oplog(OplogWalk::new(engine, direction)), direction }
    }

    /// The same cursor, which has not moved yet, but what has to be read for it does not stay in memory: for scans of whole collections
    /// that nobody waits for.
    pub fn passing_by(mut self) -> RecordCursor {
        if let Walk::Table(walk) = &mut self.walk {
            walk.cursor.passes_by = true;
        }
        self
    }

    /// To the next record in the cursor's direction; at first to the first.
    pub fn next(&mut self, unit: &mut RecoveryUnit) -> Result<Option<Record<'_>>> {
        let direction = self.direction;
        let found = match &mut self.walk {
            Walk::Table(walk) => walk.move_with(unit, |cursor| match direction {
                Direction::Forward => cursor.next(),
                Direction::Reverse => cursor.previous(),
            }),
            Walk::Oplog(walk) => walk.next(unit),
        }?;
        Ok(measured(unit, found, false))
    }

    /// To this very record.
    pub fn seek_exact(&mut self, unit: &mut RecoveryUnit, id: &RecordId) -> Result<Option<Record<'_>>> {
        let found = match &mut self.walk {
            Walk::Table(walk) => walk.move_with(unit, |cursor| cursor.seek_exact(EncodedKey::new(id).as_slice())),
            Walk::Oplog(walk) => walk.seek_exact(unit, id),
        }?;
        Ok(measured(unit, found, true))
    }

    /// To the first record at or past `id` in the cursor's direction.
    pub fn seek(&mut self, unit: &mut RecoveryUnit, id: &RecordId) -> Result<Option<Record<'_>>> {
        let direction = self.direction;
        let found = match &mut self.walk {
            Walk::Table(walk) => walk.move_with(unit, |cursor| match direction {
                Direction::Forward => cursor.seek(EncodedKey::new(id).as_slice()),
                Direction::Reverse => cursor.seek_back(EncodedKey::new(id).as_slice()),
            }),
            Walk::Oplog(walk) => walk.seek(unit, id),
        }?;
        Ok(measured(unit, found, true))
    }

    /// To a record chosen about uniformly.
    pub fn random(&mut self, unit: &mut RecoveryUnit, random: &dyn Random) -> Result<Option<Record<'_>>> {
        let found = match &mut self.walk {
            Walk::Table(walk) => walk.move_with(unit, |cursor| cursor.random(random)),
            Walk::Oplog(walk) => walk.random(unit, random),
        }?;
        Ok(measured(unit, found, false))
    }

    /// The value stood on, for a look at it; none where it has to be taken.
    pub fn value(&self) -> Option<&[u8]> {
        match &self.walk {
            Walk::Table(walk) => walk.cursor.value(),
            Walk::Oplog(_) => None,
        }
    }

    /// The value stood on, without a copy.
    pub fn value_bytes(&self) -> Option<Bytes> {
        match &self.walk {
            Walk::Table(walk) => walk.cursor.value_bytes(),
            Walk::Oplog(walk) => walk.value_bytes(),
        }
    }

    /// Lets go of the snapshot and keeps the place.
    pub fn save(&mut self) {
        if let Walk::Table(walk) = &mut self.walk {
            walk.cursor.save();
        }
    }

    /// Takes the present snapshot at once; the next move would do it too. The place need not be there any more: the next
    /// move goes past it.
    pub fn restore(&mut self, unit: &mut RecoveryUnit) -> Result<()> {
        match &mut self.walk {
            Walk::Table(walk) => walk.cursor.under(unit).map(|_| ()),
            Walk::Oplog(_) => Ok(()),
        }
    }
}

/// Tells the meter, if there is one, of a record that was read.
#[inline]
fn measured<'a>(unit: &RecoveryUnit, found: Option<Record<'a>>, is_seek: bool) -> Option<Record<'a>> {
    if let (Some(meter), Some(record)) = (unit.meter(), &found) {
        if is_seek {
            meter.cursor_sought();
        }
        meter.document_read(measured_bytes(&record.id, record.value.len()));
    }
    found
}

/// A walk through a table.
struct TableWalk {
    cursor: FollowingCursor,
    table: Table,
    kind: RecordIdKind,
}

impl TableWalk {
    fn move_with<'a>(
        &'a mut self,
        unit: &mut RecoveryUnit,
        step: impl FnOnce(&'a mut dyn Cursor) -> Result<Option<Entry<'a>>>,
    ) -> Result<Option<Record<'a>>> {
        let Some(entry) = step(self.cursor.under(unit)?)? else { return Ok(None) };
        let id = decode_key(self.kind, entry.key).ok_or_else(|| bad_key(&self.table))?;
        Ok(Some(Record { id, value: entry.value }))
    }
}
