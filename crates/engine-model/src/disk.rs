//! The oracle's disk: what is left of an engine when it is gone.
//!
//! A list of log records, of which a prefix is flushed, and the last checkpoint as a full copy. A power loss keeps the
//! flushed records and perhaps some of those after them, in order; the oplog is cut at a point without holes that was known
//! by then. An engine that was opened before the last crash or opening has lost its grip: its writing calls fail.

use crate::data::{Data, TableData};
use crate::engine::Mode;
use crate::record::{Change, Entries, Record};
use pando_base::Timestamp;
use pando_storage::LogPosition;
use parking_lot::Mutex;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A disk. It outlives engines.
#[derive(Default)]
pub struct ModelDisk {
    inner: Mutex<Inner>,
}

#[derive(Clone, Default)]
struct Inner {
    /// Counts openings and crashes: who writes must have the present number.
    generation: u64,
    mode: Option<Mode>,
    log: Vec<Logged>,
    /// This many records survive for certain.
    flushed: usize,
    /// The point without holes that the last flush recorded.
    no_holes: Timestamp,
    /// Every point without holes since then.
    no_holes_seen: BTreeSet<Timestamp>,
    checkpoint: Option<Checkpoint>,
}

#[derive(Clone)]
struct Logged {
    record: Record,
    /// Survives whether flushed or not.
    pinned: bool,
    /// The point without holes right after it.
    no_holes: Timestamp,
}

/// A full copy of the tables, with what goes with it.
#[derive(Clone)]
pub struct Checkpoint {
    /// What a crash leaves.
    pub data: Data,
    /// Log records before this one are in it.
    pub log_start: usize,
    /// Its stable timestamp; none for a full one.
    pub stable: Timestamp,
    /// The oldest timestamp then.
    pub oldest: Timestamp,
}

/// What an engine finds when it is opened.
pub struct Recovered {
    /// The writer's number.
    pub generation: u64,
    /// The mode of the engine before, if there was one.
    pub mode: Option<Mode>,
    /// The tables.
    pub data: Data,
    /// The oplog.
    pub entries: Entries,
    /// The checkpoint's stable timestamp.
    pub stable: Timestamp,
    /// The oldest timestamp at the checkpoint.
    pub oldest: Timestamp,
}

/// What a log record touched, for people who look for a lost or half-done commit.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct RecordSummary {
    /// Idents of tables created, dropped, filled or written.
    pub tables: BTreeSet<String>,
    /// Keys written, by ident.
    pub keys: BTreeSet<(String, Vec<u8>)>,
    /// Oplog entries appended.
    pub oplog: Vec<Timestamp>,
}

impl ModelDisk {
    /// An empty disk.
    pub fn new() -> Arc<ModelDisk> {
        Arc::default()
    }

    /// Another disk with the same content.
    pub fn copy(&self) -> Arc<ModelDisk> {
        Arc::new(ModelDisk { inner: Mutex::new(self.inner.lock().clone()) })
    }

    /// Takes the power away: from now on, until the crash is done and an engine opened, nothing is written.
    pub fn cut_power(&self) {
        self.inner.lock().generation += 1;
    }

    /// Power loss: only what was flushed is left.
    pub fn crash(&self) {
        let no_holes = self.inner.lock().no_holes;
        self.crash_keeping_at(0, no_holes);
    }

    /// Power loss that happens to leave the first `records` log records after the flushed ones.
    pub fn crash_keeping(&self, records: usize) {
        let inner = self.inner.lock();
        let kept = inner.log.get(inner.flushed..).unwrap_or_default().iter().take(records);
        // A wait may have promised a later point than any record knew.
        let no_holes = kept.map(|logged| logged.no_holes).next_back().unwrap_or_default().max(inner.no_holes);
        drop(inner);
        self.crash_keeping_at(records, no_holes);
    }

    /// The same where the last known point without holes was `no_holes`.
    pub fn crash_keeping_at(&self, records: usize, no_holes: Timestamp) {
        let mut inner = self.inner.lock();
        let keep = inner.flushed + records;
        let mut place = 0;
        inner.log.retain(|logged| {
            place += 1;
            place <= keep || logged.pinned
        });
        // From now on the entries past the hole have never been.
        inner.log.push(Logged { record: Record::TruncateOplog { after: no_holes }, pinned: false, no_holes });
        inner.generation += 1;
        inner.flush(no_holes);
    }

    /// How many log records are not flushed.
    pub fn unflushed_count(&self) -> usize {
        let inner = self.inner.lock();
        inner.log.len() - inner.flushed
    }

    /// The log records that are not flushed.
    pub fn unflushed(&self) -> Vec<RecordSummary> {
        let inner = self.inner.lock();
        let names = inner.everything();
        inner.log.iter().skip(inner.flushed).map(|logged| summary(&logged.record, &names)).collect()
    }

    /// Every point without holes that an engine may have recorded at or after the last flush, lowest first.
    pub fn no_holes_candidates(&self) -> Vec<Timestamp> {
        let inner = self.inner.lock();
        let mut points = inner.no_holes_seen.clone();
        points.insert(inner.no_holes);
        points.into_iter().collect()
    }

    /// True if the last checkpoint has replicated versions that are not stable at `stable`.
    pub fn checkpoint_goes_past(&self, stable: Timestamp) -> bool {
        let inner = self.inner.lock();
        let Some(checkpoint) = &inner.checkpoint else { return false };
        let is_past = |table: &TableData| {
            table.points.values().flatten().any(|version| version.stamp.is_after(stable))
                || table.truncations.iter().any(|truncation| truncation.stamp.is_after(stable))
                || table.sizes.iter().any(|change| change.stamp.is_after(stable))
        };
        checkpoint.data.tables.values().any(|table| table.options.replicated && is_past(table))
    }

    /// For an engine that opens: what is there.
    pub(crate) fn recover(&self, mode: Mode) -> Recovered {
        let mut inner = self.inner.lock();
        inner.generation += 1;
        let earlier_mode = inner.mode.replace(mode);
        let mut entries = Entries::new();
        inner.log.iter().for_each(|logged| logged.record.replay_oplog(&mut entries));
        let (mut data, stable, oldest, log_start) = match inner.checkpoint.clone() {
            Some(checkpoint) => (checkpoint.data, checkpoint.stable, checkpoint.oldest, checkpoint.log_start),
            None => (Data::default(), Timestamp::NONE, Timestamp::NONE, 0),
        };
        inner.log.iter().skip(log_start).for_each(|logged| logged.record.replay_tables(&mut data));
        Recovered { generation: inner.generation, mode: earlier_mode, data, entries, stable, oldest }
    }

    /// Whether the engine of this number can write.
    pub(crate) fn serves(&self, generation: u64) -> bool {
        self.inner.lock().generation == generation
    }

    /// Appends a record.
    pub(crate) fn append(&self, generation: u64, record: Record, no_holes: Timestamp) {
        let mut inner = self.inner.lock();
        if inner.generation == generation {
            inner.log.push(Logged { record, pinned: false, no_holes });
        }
    }

    /// Makes everything about one ident, and the last record, survive any crash.
    pub(crate) fn pin(&self, generation: u64, ident: &str) {
        let mut inner = self.inner.lock();
        if inner.generation != generation {
            return;
        }
        let names = inner.everything();
        for logged in &mut inner.log {
            logged.pinned |= logged.record.ident(&names) == Some(ident);
        }
    }

    /// How many records there are.
    pub(crate) fn log_length(&self) -> usize {
        self.inner.lock().log.len()
    }

    /// Remembers that this was a point without holes.
    pub(crate) fn saw_no_holes(&self, generation: u64, no_holes: Timestamp) {
        let mut inner = self.inner.lock();
        if inner.generation == generation {
            inner.no_holes_seen.insert(no_holes);
        }
    }

    /// Flushes the whole log.
    pub(crate) fn flush(&self, generation: u64, no_holes: Timestamp) {
        let mut inner = self.inner.lock();
        if inner.generation == generation {
            inner.flush(no_holes);
        }
    }

    /// Makes the log durable up to a position, as far as a wait promises; an engine may do more. The flush that did it came
    /// after the record, so it knew of a point without holes at least as late as that record.
    pub(crate) fn promise(&self, generation: u64, position: &LogPosition) {
        let mut inner = self.inner.lock();
        if inner.generation != generation {
            return;
        }
        let records = (position.offset as usize).min(inner.log.len());
        let known = match records > inner.flushed {
            true => inner.log[records - 1].no_holes,
            false => inner.no_holes,
        };
        inner.flushed = inner.flushed.max(records);
        inner.no_holes = known.max(position.oplog);
        let floor = inner.no_holes;
        inner.no_holes_seen.retain(|point| *point >= floor);
    }

    /// Replaces the checkpoint, after flushing the log.
    pub(crate) fn write_checkpoint(
        &self,
        generation: u64,
        data: Data,
        stable: Timestamp,
        oldest: Timestamp,
        no_holes: Timestamp,
    ) {
        let mut inner = self.inner.lock();
        if inner.generation == generation {
            inner.flush(no_holes);
            inner.checkpoint = Some(Checkpoint { data, log_start: inner.log.len(), stable, oldest });
        }
    }
}

impl Inner {
    fn flush(&mut self, no_holes: Timestamp) {
        self.flushed = self.log.len();
        self.no_holes = no_holes;
        self.no_holes_seen.clear();
    }

    /// The tables as if nothing were lost, dropped ones too.
    fn everything(&self) -> Data {
        let mut data = self.checkpoint.as_ref().map_or_else(Data::default, |checkpoint| checkpoint.data.clone());
        self.log.iter().for_each(|logged| {
            if let Record::Create { .. } = logged.record {
                logged.record.replay_tables(&mut data);
            }
        });
        data
    }
}

fn summary(record: &Record, names: &Data) -> RecordSummary {
    let name = |id: &u64| names.tables.get(id).map_or_else(|| format!("#{id}"), |table| table.ident.clone());
    let mut summary = RecordSummary::default();
    match record {
        Record::Create { table, .. } | Record::Drop { table, .. } => {
            summary.tables.insert(name(table));
        }
        Record::BulkLoad { table, pairs, .. } => {
            summary.tables.insert(name(table));
            summary.keys.extend(pairs.iter().map(|(key, _)| (name(table), key.clone())));
        }
        Record::Commit { redo, oplog } => {
            summary.oplog.extend(oplog.iter().map(|entry| entry.timestamp));
            for redo in redo {
                summary.tables.insert(name(&redo.table));
                if let Change::Point(key, _) = &redo.change {
                    summary.keys.insert((name(&redo.table), key.clone()));
                }
            }
        }
        Record::TruncateOplog { .. } | Record::DropOldOplog { .. } => {}
    }
    summary
}

/// Power losses that break a promise: for tests of tests.
#[cfg(test)]
impl ModelDisk {
    /// The last flushed records are lost too, as far as no checkpoint has them.
    pub(crate) fn crash_losing(&self, records: usize) {
        let mut inner = self.inner.lock();
        let in_checkpoint = inner.checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.log_start);
        inner.flushed = inner.flushed.saturating_sub(records).max(in_checkpoint);
        drop(inner);
        self.crash();
    }

    /// Of what was not flushed, oplog entries are kept and redo is lost.
    pub(crate) fn crash_tearing(&self) {
        let mut inner = self.inner.lock();
        let flushed = inner.flushed;
        for logged in inner.log.iter_mut().skip(flushed) {
            if let Record::Commit { redo, .. } = &mut logged.record {
                redo.clear();
            }
        }
        drop(inner);
        self.crash_keeping(self.unflushed_count());
    }

    /// What should survive by itself does not.
    pub(crate) fn crash_forgetting_pins(&self) {
        self.inner.lock().log.iter_mut().for_each(|logged| logged.pinned = false);
        self.crash();
    }
}
