//! Storage transactions: snapshot isolation with caller-chosen timestamps.

use crate::{Cursor, LogPosition, Result, Slot, StorageError, Table, TableSize, Wait};
use bytes::Bytes;
use pando_base::Timestamp;
use std::any::Any;

/// Which data a transaction reads. Its snapshot also hides what commits after it began, whatever the timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ReadAt {
    /// Everything committed, timestamped or not.
    #[default]
    Latest,
    /// What was committed at or before a timestamp, and everything untimestamped.
    Timestamp(Timestamp),
    /// As of the all-durable timestamp at begin.
    AllDurable,
}

/// What a read does about a key that a prepared transaction wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum PrepareBehaviour {
    /// `PrepareConflict`.
    #[default]
    Enforce,
    /// Reads what was before; writes are refused.
    Ignore,
    /// Reads what was before; may write.
    IgnoreAndWrite,
}

/// Whether memory limits may slow or refuse a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Urgency {
    /// They may.
    #[default]
    Normal,
    /// They may not: oplog application, recovery, the end of prepared transactions.
    Exempt,
}

/// How a transaction begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct BeginOptions {
    /// Which data it reads.
    pub read: ReadAt,
    /// A read timestamp below oldest is raised to it instead of refused.
    pub round_up_to_oldest: bool,
    /// What it does about prepared data.
    pub prepare: PrepareBehaviour,
    /// Whether memory limits apply.
    pub urgency: Urgency,
    /// Recovery rebuilds prepared transactions: the prepare timestamp may be at or before stable.
    pub recovering: bool,
}

/// What a commit leaves behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// Wait for this in the log to know the commit durable. For replicated tables that is its oplog entry.
    pub position: LogPosition,
}

/// A transaction. Dropped without commit, it is rolled back. Used by one thread at a time.
pub trait Transaction: Send {
    /// The visible value.
    fn get(&self, table: &Table, key: &[u8]) -> Result<Option<Bytes>>;
    /// The visible values of keys, one after the other until they are `bytes_max` together: `take` gets them in the order of the
    /// keys. As `get` for each; an engine can do better where the keys lie far apart.
    fn get_each(
        &self,
        table: &Table,
        keys: &[&[u8]],
        bytes_max: usize,
        take: &mut dyn FnMut(Option<Bytes>),
    ) -> Result<()> {
        give_each(keys, bytes_max, take, |key| self.get(table, key)).map(|_| ())
    }
    /// Writes a value, new or over another. A `WriteConflict` here or in `delete` and `truncate` leaves the
    /// transaction usable only for rollback.
    fn put(&mut self, table: &Table, key: &[u8], value: &[u8]) -> Result<()>;
    /// As `put`, of a value that need not be copied: the engine may keep these very bytes until the value is written elsewhere. They
    /// count as if they had memory of their own, so they should be most of the memory that they are a part of.
    fn put_shared(&mut self, table: &Table, key: &[u8], value: Bytes) -> Result<()> {
        self.put(table, key, &value)
    }
    /// Removes a key; fine if it is not there.
    fn delete(&mut self, table: &Table, key: &[u8]) -> Result<()>;
    /// Removes all of `start <= key < end`; no end means to the last key. Costs the same for any number of keys.
    fn truncate(&mut self, table: &Table, start: &[u8], end: Option<&[u8]>) -> Result<()>;
    /// Adds to the table's records and bytes when this commits, at the current commit timestamp.
    fn adjust_size(&mut self, table: &Table, change: TableSize) -> Result<()>;
    /// Writes an oplog entry, keyed by its timestamp, which need not be the commit timestamp. It must be after
    /// all_durable, which stays below it until this transaction ends.
    fn append_oplog(&mut self, timestamp: Timestamp, entry: &[u8]) -> Result<()>;
    /// As `append_oplog`, of the entry that `build` puts behind the bytes that it gets; how long it is. Spares a copy.
    fn build_oplog(&mut self, timestamp: Timestamp, build: &mut dyn FnMut(Vec<u8>) -> Vec<u8>) -> Result<usize> {
        let entry = build(Vec::new());
        self.append_oplog(timestamp, &entry)?;
        Ok(entry.len())
    }
    /// Says that so many oplog entries will come, of about so many bytes together. Only a hint.
    fn expect_oplog(&mut self, _entries: usize, _bytes: usize) {}
    /// A cursor that sees this transaction's snapshot and its writes, also later ones.
    fn cursor(&self, table: &Table) -> Result<Box<dyn Cursor>>;

    /// The commit timestamp of the writes that follow, and of earlier ones that have none. May be called again with a
    /// later one (vectored inserts). Must be after stable and not before oldest.
    fn set_commit_timestamp(&mut self, timestamp: Timestamp) -> Result<()>;
    /// When a prepared transaction's commit becomes stable-able; at or after its commit timestamp.
    fn set_durable_timestamp(&mut self, timestamp: Timestamp) -> Result<()>;
    /// Resolves the slot when this transaction ends, either way.
    fn hold_slot(&mut self, slot: Slot);
    /// Makes the transaction prepared: it can only commit or roll back, and its writes conflict with readers.
    fn prepare(&mut self, timestamp: Timestamp) -> Result<()>;
    /// Commits. On an error everything is rolled back.
    fn commit(self: Box<Self>) -> Result<Committed>;
    /// Rolls back.
    fn roll_back(self: Box<Self>);

    /// The timestamp it reads at, if any.
    fn read_timestamp(&self) -> Option<Timestamp>;
    /// Bytes it holds uncommitted in the cache.
    fn dirty_bytes(&self) -> u64;
    /// True once prepared.
    fn is_prepared(&self) -> bool;
    /// For the engine's downcast when a cursor is attached.
    fn as_any(&self) -> &dyn Any;
}

/// Gets keys one by one and gives the values away, until they are `bytes_max` together; what is left of that.
pub fn give_each(
    keys: &[&[u8]],
    bytes_max: usize,
    take: &mut dyn FnMut(Option<Bytes>),
    get: impl Fn(&[u8]) -> Result<Option<Bytes>>,
) -> Result<usize> {
    let mut room_bytes = bytes_max;
    for key in keys {
        if room_bytes == 0 {
            break;
        }
        let value = get(key)?;
        room_bytes = room_bytes.saturating_sub(value.as_ref().map_or(0, Bytes::len));
        take(value);
    }
    Ok(room_bytes)
}

/// Where transactions come from.
pub trait TransactionSource {
    /// Takes a snapshot. Fails with `SnapshotTooOld` for a read timestamp below oldest.
    fn begin(&self, options: BeginOptions) -> Result<Box<dyn Transaction>>;
    /// A counter that grows whenever a prepared transaction ends. Read it before the call that may conflict.
    fn prepare_epoch(&self) -> u64;
    /// Completes once the counter is past `epoch`.
    fn prepare_wait(&self, epoch: u64) -> Wait;
}

/// Repeats a call until it no longer meets prepared data, blocking this thread between the attempts.
pub fn retry_prepare_conflicts<T>(source: &dyn TransactionSource, mut call: impl FnMut() -> Result<T>) -> Result<T> {
    loop {
        let epoch = source.prepare_epoch();
        match call() {
            Err(StorageError::PrepareConflict) => source.prepare_wait(epoch).block()?,
            other => return other,
        }
    }
}
