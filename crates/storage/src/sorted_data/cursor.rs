//! Walking an index in one direction.
//!
//! Like a record cursor, it follows the recovery unit from snapshot to snapshot. Two kinds of seek: by raw bytes, which
//! need not be a whole key (the layers above put discriminators there), and by a whole key, including or excluding all
//! of its entries. The second is made of several moves; after a `PrepareConflict` it starts anew when repeated.

use super::{IndexFormat, bad_entry};
use crate::record_id_codec::split_value;
use crate::record_store::FollowingCursor;
use crate::{Cursor, Direction, Entry, RecordIdKind, RecoveryUnit, Result, Table, prefix_successor};
use pando_base::RecordId;
use pando_base::record_id::suffix;

/// An entry that a cursor stands on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexEntry<'a> {
    /// The key, without the record id.
    pub key: &'a [u8],
    /// The record it leads to.
    pub record_id: RecordId,
    /// The key's type bits.
    pub type_bits: &'a [u8],
}

/// Walks the entries in one direction.
pub struct IndexCursor {
    cursor: FollowingCursor,
    table: Table,
    format: IndexFormat,
    kind: RecordIdKind,
    direction: Direction,
}

impl IndexCursor {
    pub(super) fn new(table: Table, format: IndexFormat, kind: RecordIdKind, direction: Direction) -> IndexCursor {
        IndexCursor { cursor: FollowingCursor::new(table.clone()), table, format, kind, direction }
    }

    /// To the next entry in the cursor's direction; at first to the first.
    pub fn next(&mut self, unit: &mut RecoveryUnit) -> Result<Option<IndexEntry<'_>>> {
        let direction = self.direction;
        self.move_with(unit, false, |cursor| forward(cursor, direction).map(|entry| entry.is_some()))
    }

    /// One against the cursor's direction; at first to the last.
    pub fn previous(&mut self, unit: &mut RecoveryUnit) -> Result<Option<IndexEntry<'_>>> {
        let direction = self.direction.reversed();
        self.move_with(unit, false, |cursor| forward(cursor, direction).map(|entry| entry.is_some()))
    }

    /// To the first entry whose bytes, record id included, are at or past `bytes` in the cursor's direction.
    pub fn seek(&mut self, unit: &mut RecoveryUnit, bytes: &[u8]) -> Result<Option<IndexEntry<'_>>> {
        let direction = self.direction;
        self.move_with(unit, true, |cursor| {
            let found = match direction {
                Direction::Forward => cursor.seek(bytes),
                Direction::Reverse => cursor.seek_back(bytes),
            };
            found.map(|entry| entry.is_some())
        })
    }

    /// To the first entry, in the cursor's direction, of this whole key or past it; past all of its entries if it is not
    /// included.
    pub fn seek_key(&mut self, unit: &mut RecoveryUnit, key: &[u8], included: bool) -> Result<Option<IndexEntry<'_>>> {
        let direction = self.direction;
        self.move_with(unit, true, |cursor| match (direction, included) {
            (Direction::Forward, true) => cursor.seek(key).map(|entry| entry.is_some()),
            (Direction::Forward, false) => match prefix_successor(key) {
                Some(successor) => cursor.seek(&successor).map(|entry| entry.is_some()),
                None => past_the_last(cursor),
            },
            (Direction::Reverse, true) => match prefix_successor(key) {
                Some(successor) => seek_before(cursor, &successor),
                None => cursor.last().map(|entry| entry.is_some()),
            },
            (Direction::Reverse, false) => seek_before(cursor, key),
        })
    }

    /// To the first entry of this very key, if it has one.
    pub fn seek_exact(&mut self, unit: &mut RecoveryUnit, key: &[u8]) -> Result<Option<IndexEntry<'_>>> {
        Ok(self.seek_key(unit, key, true)?.filter(|entry| entry.key == key))
    }

    /// Lets go of the snapshot and keeps the place.
    pub fn save(&mut self) {
        self.cursor.save();
    }

    /// Takes the present snapshot at once; the next move would do it too.
    pub fn restore(&mut self, unit: &mut RecoveryUnit) -> Result<()> {
        self.cursor.under(unit).map(|_| ())
    }

    fn move_with(
        &mut self,
        unit: &mut RecoveryUnit,
        is_seek: bool,
        step: impl FnOnce(&mut dyn Cursor) -> Result<bool>,
    ) -> Result<Option<IndexEntry<'_>>> {
        let cursor = self.cursor.under(unit)?;
        if !step(cursor)? {
            return Ok(None);
        }
        let Some(Entry { key, value }) = cursor.entry() else { return Ok(None) };
        if let Some(meter) = unit.meter() {
            if is_seek {
                meter.cursor_sought();
            }
            meter.index_entry_read(key.len());
        }
        let entry = match self.format {
            IndexFormat::Id => {
                split_value(self.kind, value).map(|(record_id, type_bits)| IndexEntry { key, record_id, type_bits })
            }
            IndexFormat::Standard | IndexFormat::Unique => {
                suffix::split(self.kind, key).map(|(key, record_id)| IndexEntry { key, record_id, type_bits: value })
            }
        };
        entry.map(Some).ok_or_else(|| bad_entry(&self.table))
    }
}

fn forward(cursor: &mut dyn Cursor, direction: Direction) -> Result<Option<Entry<'_>>> {
    match direction {
        Direction::Forward => cursor.next(),
        Direction::Reverse => cursor.previous(),
    }
}

/// To the last entry before `bytes`.
fn seek_before(cursor: &mut dyn Cursor, bytes: &[u8]) -> Result<bool> {
    match cursor.seek_back(bytes)? {
        None => Ok(false),
        Some(entry) if entry.key < bytes => Ok(true),
        Some(_) => cursor.previous().map(|entry| entry.is_some()),
    }
}

fn past_the_last(cursor: &mut dyn Cursor) -> Result<bool> {
    cursor.last()?;
    cursor.next().map(|entry| entry.is_some())
}
