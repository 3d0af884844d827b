//! Writing: conflicts with other transactions, the order of timestamps on a key, and the write itself.

use crate::data::{Link, SizeChange, Stamp, TableData, Truncation, Version, View, Writer, is_in_range};
use crate::engine::Mode;
use crate::state::{State, illegal, rule};
use bytes::Bytes;
use pando_base::Timestamp;
use pando_storage::{KEY_LENGTH_MAX, OplogEntry, PrepareBehaviour, Result, StorageError, TableSize, VALUE_LENGTH_MAX};
use std::collections::BTreeSet;

impl State {
    /// What must hold before a transaction writes anything at all to a table.
    fn check_may_write(&self, number: u64, id: u64) -> Result<View> {
        self.check_writable()?;
        let view = self.view_of(number)?;
        if view.prepare == PrepareBehaviour::Ignore {
            return illegal("a transaction that ignores prepared data must not write");
        }
        if self.open(number)?.doomed {
            return Err(StorageError::WriteConflict);
        }
        self.table(id)?;
        Ok(view)
    }

    /// Passes the result on; after a write conflict the transaction can only be rolled back.
    fn dooming<T>(&mut self, number: u64, result: Result<T>) -> Result<T> {
        if matches!(result, Err(StorageError::WriteConflict)) {
            self.open_mut(number)?.doomed = true;
        }
        result
    }

    fn new_stamp(&self, number: u64) -> Result<Stamp> {
        let commit = self.open(number)?.commit;
        Ok(Stamp { writer: Writer::Open(number), commit, durable: commit })
    }

    /// Writes or deletes a key.
    pub fn write(&mut self, number: u64, id: u64, key: &[u8], value: Option<&[u8]>) -> Result<()> {
        let view = self.check_may_write(number, id)?;
        check_length("key", key, KEY_LENGTH_MAX)?;
        check_length("value", value.unwrap_or_default(), VALUE_LENGTH_MAX)?;
        let chain = self.table(id)?.chain(key);
        let checked = view.check_write(&chain, |number| self.prepared(number));
        self.dooming(number, checked)?;
        let stamp = self.new_stamp(number)?;
        self.check_predecessor(number, stamp.commit, &chain)?;
        let version = Version { order: self.data.next_order(), stamp, value: value.map(Bytes::copy_from_slice) };
        if let Some(table) = self.data.tables.get_mut(&id) {
            table.points.entry(key.to_vec()).or_default().push(version);
        }
        let open = self.open_mut(number)?;
        open.keys.insert((id, key.to_vec()));
        open.tables.insert(id);
        open.dirty_bytes += (key.len() + value.unwrap_or_default().len()) as u64;
        Ok(())
    }

    /// Deletes a range.
    pub fn truncate(&mut self, number: u64, id: u64, start: &[u8], end: Option<&[u8]>) -> Result<()> {
        let view = self.check_may_write(number, id)?;
        check_length("key", start, KEY_LENGTH_MAX)?;
        check_length("key", end.unwrap_or_default(), KEY_LENGTH_MAX)?;
        if end.is_some_and(|end| end <= start) {
            return Ok(());
        }
        let (checked, unspecified) = self.check_truncate(&view, id, start, end)?;
        self.unspecified |= unspecified;
        self.dooming(number, checked)?;
        let stamp = self.new_stamp(number)?;
        let order = self.data.next_order();
        if let Some(table) = self.data.tables.get_mut(&id) {
            table.truncations.push(Truncation { order, stamp, start: start.to_vec(), end: end.map(<[u8]>::to_vec) });
        }
        self.open_mut(number)?.tables.insert(id);
        Ok(())
    }

    /// Whether every key of a range may be written, and whether the rules say so clearly.
    fn check_truncate(&self, view: &View, id: u64, start: &[u8], end: Option<&[u8]>) -> Result<(Result<()>, bool)> {
        let table = self.table(id)?;
        let mut errors = Vec::new();
        for key in representative_keys(table, start, end) {
            if let Err(error) = view.check_write(&table.chain(&key), |number| self.prepared(number)) {
                errors.push(error);
            }
        }
        let has_write = errors.contains(&StorageError::WriteConflict);
        let has_prepare = errors.contains(&StorageError::PrepareConflict);
        // Which of two errors comes first is not said; nor is what a hidden truncation under a visible one does.
        let covered_conflict = errors.is_empty()
            && table.truncations.iter().any(|truncation| {
                let link = Link { order: 0, stamp: truncation.stamp, value: None, is_truncation: true };
                truncation.overlaps(start, end) && view.check_write(&[link], |number| self.prepared(number)).is_err()
            });
        let result = match (has_write, has_prepare) {
            (true, _) => Err(StorageError::WriteConflict),
            (false, true) => Err(StorageError::PrepareConflict),
            (false, false) => Ok(()),
        };
        Ok((result, (has_write && has_prepare) || covered_conflict))
    }

    /// A timestamped write must not be before the durable timestamp of what it is written over: the newest committed version
    /// of its key, or a truncation that is newer.
    pub fn check_predecessor(&mut self, number: u64, commit: Timestamp, chain: &[Link]) -> Result<()> {
        let mut below = chain.iter().filter(|link| link.stamp.writer != Writer::Open(number) || link.is_truncation);
        let Some(newest) = below.next().filter(|_| commit.is_some()) else { return Ok(()) };
        let is_own = newest.stamp.writer == Writer::Open(number);
        if !is_own && newest.stamp.commit.is_some() && newest.stamp.durable > commit {
            return rule(format!("{commit} is before what it is written over, at {}", newest.stamp.durable));
        }
        Ok(())
    }

    /// Changes a table's size when the transaction commits.
    pub fn adjust_size(&mut self, number: u64, id: u64, change: TableSize) -> Result<()> {
        self.check_may_write(number, id)?;
        let stamp = self.new_stamp(number)?;
        if let Some(table) = self.data.tables.get_mut(&id) {
            table.sizes.push(SizeChange { stamp, change });
        }
        self.open_mut(number)?.tables.insert(id);
        Ok(())
    }

    /// Adds an oplog entry to the transaction.
    pub fn append_oplog(&mut self, number: u64, timestamp: Timestamp, entry: &[u8]) -> Result<()> {
        self.check_writable()?;
        let view = self.view_of(number)?;
        if self.mode == Mode::StandAlone {
            return illegal("there is no oplog");
        }
        if view.prepare == PrepareBehaviour::Ignore {
            return illegal("a transaction that ignores prepared data must not write");
        }
        if self.open(number)?.doomed {
            return Err(StorageError::WriteConflict);
        }
        if timestamp.is_none() {
            return rule("an oplog entry needs a timestamp");
        }
        if self.entries.contains_key(&timestamp) {
            return Err(StorageError::DuplicateKey);
        }
        if timestamp <= self.all_durable {
            return rule("an oplog entry must be after all_durable, where readers may have been");
        }
        let entry = OplogEntry { timestamp, entry: Bytes::copy_from_slice(entry) };
        self.open_mut(number)?.oplog.push(entry);
        self.settle_all_durable();
        Ok(())
    }
}

fn check_length(what: &'static str, bytes: &[u8], max: usize) -> Result<()> {
    match bytes.len() > max {
        true => Err(StorageError::TooLarge(what, bytes.len(), max)),
        false => Ok(()),
    }
}

/// Keys of a range that stand for all of its keys, written or not: each written key, and one key of every piece into which
/// the truncations cut the range.
fn representative_keys(table: &TableData, start: &[u8], end: Option<&[u8]>) -> BTreeSet<Vec<u8>> {
    let mut keys: BTreeSet<Vec<u8>> = table.points.keys().cloned().collect();
    let mut boundaries = vec![start.to_vec()];
    for truncation in &table.truncations {
        boundaries.push(truncation.start.clone());
        boundaries.extend(truncation.end.clone());
    }
    for boundary in boundaries {
        let mut successor = boundary.clone();
        successor.push(0);
        keys.extend([boundary, successor]);
    }
    keys.retain(|key| is_in_range(key, start, end));
    keys
}
