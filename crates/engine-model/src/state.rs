//! The whole state of an open engine, and the rules of transactions on it.
//!
//! Every call of the interface takes the one mutex and does its work here, in full, before it lets go.
//!
//! Where the interface's rules leave a case open, the call sets `unspecified`, and a comparison with another engine knows
//! not to look.

use crate::data::{Data, Link, Prepared, Stamp, TableData, Truncation, Version, View, Writer, is_in_range};
use crate::disk::ModelDisk;
use crate::engine::Mode;
use crate::record::{Change, Entries, Record, Redo};
use bytes::Bytes;
use pando_base::Timestamp;
use pando_storage::{
    BeginOptions, KEY_LENGTH_MAX, LogPosition, OplogEntry, PrepareBehaviour, ReadAt, Result, StorageError, TableSize,
    VALUE_LENGTH_MAX,
};
use parking_lot::{Condvar, Mutex};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::task::Waker;

/// What every handle of an engine shares.
pub struct Shared {
    /// The one mutex.
    pub state: Mutex<State>,
    /// Told of every change that somebody could wait for.
    pub changed: Condvar,
}

/// An open transaction.
#[derive(Debug)]
pub struct Open {
    /// What it reads.
    pub view: View,
    /// It rebuilds a prepared transaction after a restart.
    pub recovering: bool,
    /// Set by prepare.
    pub prepared: Option<Prepared>,
    /// The first commit timestamp.
    pub first_commit: Timestamp,
    /// The commit timestamp of the writes that follow.
    pub commit: Timestamp,
    /// The newest timestamp set.
    pub newest: Timestamp,
    /// Set on prepared ones only.
    pub durable: Timestamp,
    /// It met a write conflict and can only be rolled back.
    pub doomed: bool,
    /// Keys written.
    pub keys: BTreeSet<(u64, Vec<u8>)>,
    /// Tables written, truncated or resized.
    pub tables: BTreeSet<u64>,
    /// Oplog entries to be.
    pub oplog: Vec<OplogEntry>,
    /// What its writes weigh.
    pub dirty_bytes: u64,
}

/// An engine's state.
pub struct State {
    /// Stand-alone or replica set.
    pub mode: Mode,
    /// Where it lasts.
    pub disk: Arc<ModelDisk>,
    /// This engine's number on the disk.
    pub generation: u64,
    /// No more writes.
    pub stopped: bool,
    /// The tables.
    pub data: Data,
    /// The oplog.
    pub entries: Entries,
    /// Open transactions by number.
    pub open: BTreeMap<u64, Open>,
    /// The number given last.
    pub last_number: u64,
    /// Cursors that are attached to a transaction.
    pub attached_cursors: usize,
    /// Reserved slots, with how many there are of each.
    pub slots: BTreeMap<Timestamp, usize>,
    /// See [`pando_storage::Timestamps`].
    pub oldest: Timestamp,
    /// See there.
    pub stable: Timestamp,
    /// See there.
    pub initial_data: Timestamp,
    /// See there.
    pub recovery: Timestamp,
    /// See there.
    pub checkpoint: Timestamp,
    /// The newest timestamp that anything committed with.
    pub latest: Timestamp,
    /// See [`pando_storage::Timestamps`].
    pub all_durable: Timestamp,
    /// Ends of prepared transactions.
    pub prepare_epoch: u64,
    /// Something was committed, created or dropped, or stable moved, since the last checkpoint.
    pub changed: bool,
    /// Something else happened since then, so that another checkpoint may make sense or not.
    pub touched: bool,
    /// The rules leave open what the last call should have done.
    pub unspecified: bool,
    /// Futures to be woken.
    pub wakers: Vec<Waker>,
    /// The oplog's own settings.
    pub oplog_settings: crate::oplog::Settings,
}

/// A broken timestamp rule.
pub fn rule<T>(text: impl Into<String>) -> Result<T> {
    Err(StorageError::TimestampRule(text.into()))
}

/// A call that does not fit.
pub fn illegal<T>(text: impl Into<String>) -> Result<T> {
    Err(StorageError::IllegalOperation(text.into()))
}

impl State {
    /// The table, unless it was dropped.
    pub fn table(&self, id: u64) -> Result<&TableData> {
        match self.data.tables.get(&id) {
            Some(table) if !table.dropped => Ok(table),
            Some(table) => Err(StorageError::IdentNotFound(table.ident.clone())),
            None => Err(StorageError::IdentNotFound(format!("#{id}"))),
        }
    }

    /// Whether the table's writes have redo in the log.
    pub fn is_logged(&self, id: u64) -> bool {
        self.mode == Mode::StandAlone || self.data.tables.get(&id).is_some_and(|table| !table.options.replicated)
    }

    /// Fails once the engine has stopped.
    pub fn check_writable(&self) -> Result<()> {
        match self.stopped {
            true => Err(StorageError::Stopped("shut down".into())),
            false => Ok(()),
        }
    }

    /// What others know of a prepared transaction.
    pub fn prepared(&self, number: u64) -> Option<Prepared> {
        self.open.get(&number).and_then(|open| open.prepared)
    }

    fn open(&self, number: u64) -> Result<&Open> {
        self.open.get(&number).ok_or_else(|| StorageError::IllegalOperation("the transaction has ended".into()))
    }

    fn open_mut(&mut self, number: u64) -> Result<&mut Open> {
        self.open.get_mut(&number).ok_or_else(|| StorageError::IllegalOperation("the transaction has ended".into()))
    }

    /// The end of the log, and with it the newest entry of the oplog.
    pub fn log_end(&self) -> LogPosition {
        self.position(self.entries.last_key_value().map_or(Timestamp::NONE, |(timestamp, _)| *timestamp))
    }

    /// The end of the log, after a record with this newest oplog entry.
    fn position(&self, oplog: Timestamp) -> LogPosition {
        LogPosition { segment: 1, offset: self.disk.log_length() as u64, oplog }
    }

    /// Appends to the log.
    pub fn log(&self, record: Record) {
        self.disk.append(self.generation, record, self.all_durable);
    }

    /// Begins a transaction and returns its number.
    pub fn begin(&mut self, options: &BeginOptions) -> Result<u64> {
        let timestamp = match options.read {
            ReadAt::Latest => None,
            ReadAt::AllDurable if self.all_durable.is_none() => None,
            ReadAt::AllDurable => Some(self.all_durable),
            ReadAt::Timestamp(Timestamp::NONE) => return rule("a read timestamp must be a timestamp"),
            ReadAt::Timestamp(requested) if requested >= self.oldest => Some(requested),
            ReadAt::Timestamp(_) if options.round_up_to_oldest => Some(self.oldest),
            ReadAt::Timestamp(requested) => {
                return Err(StorageError::SnapshotTooOld { requested, oldest: self.oldest });
            }
        };
        self.last_number += 1;
        let number = self.last_number;
        let view =
            View { transaction: Some(number), sequence: self.data.sequence, timestamp, prepare: options.prepare };
        let open = Open {
            view,
            recovering: options.recovering,
            prepared: None,
            first_commit: Timestamp::NONE,
            commit: Timestamp::NONE,
            newest: Timestamp::NONE,
            durable: Timestamp::NONE,
            doomed: false,
            keys: BTreeSet::new(),
            tables: BTreeSet::new(),
            oplog: Vec::new(),
            dirty_bytes: 0,
        };
        self.open.insert(number, open);
        Ok(number)
    }

    /// What a transaction that is not prepared sees; an error for a prepared one.
    pub fn view_of(&self, number: u64) -> Result<View> {
        let open = self.open(number)?;
        match open.prepared {
            Some(_) => illegal("the transaction is prepared"),
            None => Ok(open.view),
        }
    }

    /// Reads a key of a table, dropped or not.
    pub fn read(&self, id: u64, key: &[u8], view: &View) -> Result<Option<Bytes>> {
        let Some(table) = self.data.tables.get(&id) else { return Ok(None) };
        view.read(&table.chain(key), |number| self.prepared(number))
    }

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

    /// A timestamped write must not be before the durable timestamp of the newest committed version of its key.
    fn check_predecessor(&mut self, number: u64, commit: Timestamp, chain: &[Link]) -> Result<()> {
        if commit.is_none() {
            return Ok(());
        }
        let below = chain.iter().filter(|link| link.stamp.writer != Writer::Open(number) || link.is_truncation);
        let mut truncated = false;
        for link in below {
            if link.is_truncation {
                truncated = true;
                continue;
            }
            if link.stamp.commit.is_some() && link.stamp.durable > commit {
                // Truncations are exempt; whether they also shield what lies below them is not said.
                self.unspecified |= truncated;
                return rule(format!("{commit} is before the key's newest version at {}", link.stamp.durable));
            }
            return Ok(());
        }
        Ok(())
    }

    /// Changes a table's size when the transaction commits.
    pub fn adjust_size(&mut self, number: u64, id: u64, change: TableSize) -> Result<()> {
        self.check_may_write(number, id)?;
        let stamp = self.new_stamp(number)?;
        if let Some(table) = self.data.tables.get_mut(&id) {
            table.sizes.push(crate::data::SizeChange { stamp, change });
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
        let entry = OplogEntry { timestamp, entry: Bytes::copy_from_slice(entry) };
        self.open_mut(number)?.oplog.push(entry);
        Ok(())
    }

    /// Sets the commit timestamp of what has none yet and of what follows.
    pub fn set_commit_timestamp(&mut self, number: u64, timestamp: Timestamp) -> Result<()> {
        let open = self.open(number)?;
        let (first, prepared) = (open.first_commit, open.prepared);
        if timestamp.is_none() || timestamp < first {
            return rule(format!("commit timestamp {timestamp} is before the first one {first}"));
        }
        match prepared {
            Some(prepared) if timestamp < prepared.timestamp => return rule("commit before prepare"),
            None if timestamp <= self.stable || timestamp < self.oldest => {
                return rule(format!("commit timestamp {timestamp} must be after stable and not before oldest"));
            }
            _ => {}
        }
        for (id, key) in self.open(number)?.keys.clone() {
            let Some(table) = self.data.tables.get(&id) else { continue };
            let is_own_without = |link: &Link| {
                link.stamp.writer == Writer::Open(number) && !link.is_truncation && link.stamp.commit.is_none()
            };
            let chain = table.chain(&key);
            if let Some(place) = chain.iter().position(is_own_without) {
                self.check_predecessor(number, timestamp, &chain[place..])?;
            }
        }
        self.stamp_writes(number, |stamp| {
            if stamp.commit.is_none() {
                (stamp.commit, stamp.durable) = (timestamp, timestamp);
            }
        });
        let open = self.open_mut(number)?;
        open.commit = timestamp;
        open.newest = open.newest.max(timestamp);
        if first.is_none() {
            open.first_commit = timestamp;
        }
        self.settle_all_durable();
        Ok(())
    }

    /// Sets when a prepared transaction's commit becomes stable.
    pub fn set_durable_timestamp(&mut self, number: u64, timestamp: Timestamp) -> Result<()> {
        let stable = self.stable;
        let open = self.open_mut(number)?;
        if open.prepared.is_none() {
            return illegal("only prepared transactions have a durable timestamp");
        }
        if open.first_commit.is_none() || timestamp < open.first_commit || timestamp <= stable {
            return rule(format!("durable timestamp {timestamp} must be after stable and not before commit"));
        }
        open.durable = timestamp;
        Ok(())
    }

    /// Makes the transaction prepared.
    pub fn prepare(&mut self, number: u64, timestamp: Timestamp) -> Result<()> {
        self.check_writable()?;
        self.view_of(number)?;
        let open = self.open(number)?;
        if open.doomed {
            return Err(StorageError::WriteConflict);
        }
        let writes_log = open.tables.iter().any(|id| self.is_logged(*id));
        if self.mode == Mode::StandAlone || open.first_commit.is_some() || writes_log || !open.oplog.is_empty() {
            return illegal("this transaction cannot be prepared");
        }
        if timestamp.is_none() || (timestamp <= self.stable && !open.recovering) {
            return rule(format!("prepare timestamp {timestamp} must be after stable {}", self.stable));
        }
        let sequence = self.data.next_sequence();
        self.open_mut(number)?.prepared = Some(Prepared { sequence, timestamp });
        Ok(())
    }

    /// Whether the transaction may commit now.
    pub fn check_commit(&self, number: u64) -> Result<()> {
        let open = self.open(number)?;
        if open.doomed {
            return Err(StorageError::WriteConflict);
        }
        if open.prepared.is_some() {
            if open.first_commit.is_none() {
                return rule("a prepared transaction needs a commit timestamp");
            }
            if open.durable.max(open.first_commit) <= self.stable {
                return rule("the durable timestamp must be after stable");
            }
        } else if open.first_commit.is_some() && open.first_commit <= self.stable {
            return rule("stable has passed the commit timestamp");
        }
        if !open.tables.is_empty() || !open.oplog.is_empty() {
            self.check_writable()?;
        }
        Ok(())
    }

    /// Commits. [`check_commit`](Self::check_commit) has said that it may.
    pub fn commit(&mut self, number: u64) -> Result<LogPosition> {
        let open = self.open(number)?;
        let sequence = match open.prepared {
            Some(prepared) => prepared.sequence,
            None => self.data.sequence + 1,
        };
        let durable = open.durable;
        let redo = self.redo_of(number);
        self.stamp_writes(number, |stamp| {
            stamp.writer = Writer::Committed(sequence);
            stamp.durable = stamp.durable.max(durable);
        });
        self.data.sequence = self.data.sequence.max(sequence);
        let Some(open) = self.open.remove(&number) else { return illegal("the transaction has ended") };
        self.changed |= !open.tables.is_empty() || !open.oplog.is_empty();
        self.latest = self.latest.max(open.newest).max(open.durable);
        for entry in &open.oplog {
            self.entries.insert(entry.timestamp, entry.entry.clone());
            self.latest = self.latest.max(entry.timestamp);
        }
        self.prepare_epoch += u64::from(open.prepared.is_some());
        self.settle_all_durable();
        if redo.is_empty() && open.oplog.is_empty() {
            return Ok(self.log_end());
        }
        let newest = open.oplog.iter().map(|entry| entry.timestamp).max().unwrap_or_default();
        self.log(Record::Commit { redo, oplog: open.oplog });
        Ok(self.position(newest))
    }

    /// Rolls back.
    pub fn roll_back(&mut self, number: u64) {
        let Some(open) = self.open.remove(&number) else { return };
        for id in &open.tables {
            if let Some(table) = self.data.tables.get_mut(id) {
                table.retain(|stamp| stamp.writer != Writer::Open(number));
            }
        }
        self.prepare_epoch += u64::from(open.prepared.is_some());
        self.settle_all_durable();
    }

    /// Changes the stamp of everything that an open transaction wrote.
    fn stamp_writes(&mut self, number: u64, change: impl Fn(&mut Stamp)) {
        let Some(open) = self.open.get(&number) else { return };
        for id in &open.tables {
            let Some(table) = self.data.tables.get_mut(id) else { continue };
            let keys = open.keys.iter().filter(|(of, _)| of == id);
            let mut stamps: Vec<&mut Stamp> = Vec::new();
            for (_, key) in keys {
                if let Some(versions) = table.points.get_mut(key) {
                    versions.iter_mut().for_each(|version| {
                        if version.stamp.writer == Writer::Open(number) {
                            change(&mut version.stamp);
                        }
                    });
                }
            }
            stamps.extend(table.truncations.iter_mut().map(|truncation| &mut truncation.stamp));
            stamps.extend(table.sizes.iter_mut().map(|size| &mut size.stamp));
            stamps.into_iter().filter(|stamp| stamp.writer == Writer::Open(number)).for_each(&change);
        }
    }

    /// The redo of an open transaction, in write order.
    fn redo_of(&self, number: u64) -> Vec<Redo> {
        let Some(open) = self.open.get(&number) else { return Vec::new() };
        let mut found = Vec::new();
        for id in open.tables.iter().filter(|id| self.is_logged(**id)) {
            let Some(table) = self.data.tables.get(id) else { continue };
            let redo =
                |stamp: &Stamp, change| Redo { table: *id, commit: stamp.commit, durable: stamp.durable, change };
            let own = |stamp: &Stamp| stamp.writer == Writer::Open(number);
            for (_, key) in open.keys.iter().filter(|(of, _)| of == id) {
                for version in table.points.get(key).into_iter().flatten().filter(|version| own(&version.stamp)) {
                    let change = Change::Point(key.clone(), version.value.clone());
                    found.push((version.order, redo(&version.stamp, change)));
                }
            }
            for truncation in table.truncations.iter().filter(|truncation| own(&truncation.stamp)) {
                let change = Change::Truncate(truncation.start.clone(), truncation.end.clone());
                found.push((truncation.order, redo(&truncation.stamp, change)));
            }
            for size in table.sizes.iter().filter(|size| own(&size.stamp)) {
                found.push((0, redo(&size.stamp, Change::Size(size.change))));
            }
        }
        found.sort_by_key(|(order, _)| *order);
        found.into_iter().map(|(_, redo)| redo).collect()
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
