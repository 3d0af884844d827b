//! Transactions: what one has written so far, and how it ends.
//!
//! A write goes at once into the overlay, where it points at the transaction's state; for a logged table it is also encoded
//! as redo. Commit puts redo and oplog entries into one log record and, under the log's lock, gives the commit its
//! sequence, stores its outcome and publishes it; so log order, sequence order and the order of visibility are one.
//! Rollback stores the outcome and then tidies up.
//!
//! Rules asserted here: a prepared transaction does nothing but end; a transaction that met a write conflict only rolls
//! back; commit timestamps obey stable, oldest and the key's earlier versions.

mod end;
mod read;
mod truncate;
mod write;

pub(crate) use read::{get, read_range};
pub(crate) use write::check_lengths;

use crate::core::Core;
use crate::overlay::NewValue;
use crate::table::EngineTable;
use crate::visibility::ReadView;
use bytes::Bytes;
use pando_base::Timestamp;
use pando_engine_log::PreparedRecord;
use pando_storage::{
    BeginOptions, Committed, Cursor, PrepareBehaviour, ReadAt, Result, Slot, StorageError, Table, TableSize,
    Transaction,
};
use smallvec::SmallVec;
use std::any::Any;
use std::sync::Arc;

/// What leads to so many keys has room in the processor's nearest caches.
const ANNOUNCED_KEYS: usize = 128;

/// Where a transaction stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Active,
    /// Met a write conflict: reads may go on, anything else must roll back.
    MustRollBack,
    Prepared(Timestamp),
    Ended,
}

/// A key that was written: which table, and where its bytes lie in `keys`.
struct Written {
    table: usize,
    start: usize,
    end: usize,
}

/// A change of a table's size; `own` as in a version.
struct Resized {
    table: usize,
    own: Timestamp,
    change: TableSize,
}

/// A transaction of this engine.
pub struct EngineTransaction {
    core: Arc<Core>,
    view: Arc<ReadView>,
    options: BeginOptions,
    phase: Phase,
    /// Tables that were written, each once.
    tables: SmallVec<[Table; 4]>,
    keys: SmallVec<[u8; 96]>,
    written: SmallVec<[Written; 4]>,
    /// Tables with deleted ranges.
    truncated: Vec<usize>,
    resized: SmallVec<[Resized; 2]>,
    redo: Vec<u8>,
    /// The log's record so far: the oplog entries.
    record: PreparedRecord,
    /// Timestamps of its oplog entries, which hold back all_durable.
    oplog_holds: SmallVec<[Timestamp; 2]>,
    /// The newest oplog entry's timestamp.
    oplog_newest: Timestamp,
    wrote_logged: bool,
    /// A prepared transaction holds no timestamp back.
    was_prepared: bool,
    first_commit: Timestamp,
    commit: Timestamp,
    durable: Timestamp,
    /// The newest durable timestamp below a write that has no commit timestamp yet.
    predecessor_max: Timestamp,
    slots: SmallVec<[Slot; 1]>,
    dirty_bytes: u64,
    /// As much of it as the memory was told of.
    told_bytes: u64,
}

impl EngineTransaction {
    /// Takes a snapshot.
    pub fn begin(core: &Arc<Core>, options: BeginOptions) -> Result<EngineTransaction> {
        let view = Arc::new(core.open_view(&options)?);
        core.counters.begun.increment();
        Ok(EngineTransaction {
            core: core.clone(),
            view,
            options,
            phase: Phase::Active,
            tables: SmallVec::new(),
            keys: SmallVec::new(),
            written: SmallVec::new(),
            truncated: Vec::new(),
            resized: SmallVec::new(),
            redo: Vec::new(),
            record: PreparedRecord::default(),
            oplog_holds: SmallVec::new(),
            oplog_newest: Timestamp::NONE,
            wrote_logged: false,
            was_prepared: false,
            first_commit: Timestamp::NONE,
            commit: Timestamp::NONE,
            durable: Timestamp::NONE,
            predecessor_max: Timestamp::NONE,
            slots: SmallVec::new(),
            dirty_bytes: 0,
            told_bytes: 0,
        })
    }

    /// What it sees.
    pub fn view(&self) -> &Arc<ReadView> {
        &self.view
    }

    /// Which engine it belongs to.
    pub fn core(&self) -> &Arc<Core> {
        &self.core
    }

    fn body<'a>(&self, table: &'a Table) -> Result<&'a EngineTable> {
        EngineTable::of(table, self.core.id)
    }

    fn check_readable(&self) -> Result<()> {
        match self.phase {
            Phase::Prepared(_) => Err(illegal("a prepared transaction can only commit or roll back")),
            Phase::Ended => Err(illegal("the transaction has ended")),
            Phase::Active | Phase::MustRollBack => Ok(()),
        }
    }

    fn check_writable(&self) -> Result<()> {
        self.check_readable()?;
        if self.phase == Phase::MustRollBack {
            return Err(StorageError::WriteConflict);
        }
        if self.options.prepare == PrepareBehaviour::Ignore {
            return Err(illegal("a transaction that ignores prepared data must not write"));
        }
        self.core.check_running()
    }

    /// The table's place in `tables`.
    fn enlist(&mut self, table: &Table) -> usize {
        let known = self.tables.iter().position(|known| known.id() == table.id());
        known.unwrap_or_else(|| {
            self.tables.push(table.clone());
            self.tables.len() - 1
        })
    }

    /// The commit timestamp that a write made now carries itself: none before the first was set.
    fn own_timestamp(&self) -> Timestamp {
        if self.first_commit == self.commit { Timestamp::NONE } else { self.commit }
    }

    fn conflict(&mut self) -> StorageError {
        self.core.counters.write_conflicts.increment();
        self.phase = Phase::MustRollBack;
        StorageError::WriteConflict
    }
}

fn illegal(text: &str) -> StorageError {
    StorageError::IllegalOperation(text.to_owned())
}

impl Transaction for EngineTransaction {
    fn get(&self, table: &Table, key: &[u8]) -> Result<Option<Bytes>> {
        self.check_readable()?;
        self.core.counters.gets.increment();
        read::get(&self.core, &self.view, self.body(table)?, key)
    }

    fn get_each(
        &self,
        table: &Table,
        keys: &[&[u8]],
        bytes_max: usize,
        take: &mut dyn FnMut(Option<Bytes>),
    ) -> Result<()> {
        self.check_readable()?;
        let table = self.body(table)?;
        let mut room_bytes = bytes_max;
        for keys in keys.chunks(ANNOUNCED_KEYS) {
            if room_bytes == 0 {
                break;
            }
            room_bytes = read::get_each(&self.core, &self.view, table, keys, room_bytes, take)?;
        }
        Ok(())
    }

    fn put(&mut self, table: &Table, key: &[u8], value: &[u8]) -> Result<()> {
        self.write_key(table, key, Some(value), None)
    }

    fn put_shared(&mut self, table: &Table, key: &[u8], value: Bytes) -> Result<()> {
        let kept = NewValue { bytes: value.clone(), is_part: true };
        self.write_key(table, key, Some(&value), Some(kept))
    }

    fn delete(&mut self, table: &Table, key: &[u8]) -> Result<()> {
        self.write_key(table, key, None, None)
    }

    fn truncate(&mut self, table: &Table, start: &[u8], end: Option<&[u8]>) -> Result<()> {
        self.truncate_range(table, start, end)
    }

    fn adjust_size(&mut self, table: &Table, change: TableSize) -> Result<()> {
        self.resize(table, change)
    }

    fn append_oplog(&mut self, timestamp: Timestamp, entry: &[u8]) -> Result<()> {
        let append = |mut record: Vec<u8>| {
            record.extend_from_slice(entry);
            record
        };
        self.add_oplog_entry(timestamp, append).map(|_| ())
    }

    fn build_oplog(&mut self, timestamp: Timestamp, build: &mut dyn FnMut(Vec<u8>) -> Vec<u8>) -> Result<usize> {
        self.add_oplog_entry(timestamp, build)
    }

    fn expect_oplog(&mut self, entries: usize, bytes: usize) {
        self.core.log.make_room_in(&mut self.record, entries, bytes);
    }

    fn cursor(&self, table: &Table) -> Result<Box<dyn Cursor>> {
        self.check_readable()?;
        self.body(table)?;
        Ok(Box::new(crate::cursor::EngineCursor::new(self.core.clone(), table.clone(), self.view.clone())))
    }

    fn set_commit_timestamp(&mut self, timestamp: Timestamp) -> Result<()> {
        self.choose_commit_timestamp(timestamp)
    }

    fn set_durable_timestamp(&mut self, timestamp: Timestamp) -> Result<()> {
        self.choose_durable_timestamp(timestamp)
    }

    fn hold_slot(&mut self, slot: Slot) {
        self.slots.push(slot);
    }

    fn prepare(&mut self, timestamp: Timestamp) -> Result<()> {
        self.make_prepared(timestamp)
    }

    fn commit(mut self: Box<Self>) -> Result<Committed> {
        self.finish()
    }

    fn roll_back(mut self: Box<Self>) {
        self.undo();
    }

    fn read_timestamp(&self) -> Option<Timestamp> {
        let timestamp = self.view.point().timestamp;
        (self.options.read != ReadAt::Latest && timestamp != Timestamp::MAX).then_some(timestamp)
    }

    fn dirty_bytes(&self) -> u64 {
        self.dirty_bytes
    }

    fn is_prepared(&self) -> bool {
        matches!(self.phase, Phase::Prepared(_))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for EngineTransaction {
    fn drop(&mut self) {
        self.undo();
    }
}
