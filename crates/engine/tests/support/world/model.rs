//! What a store was told, in the order of its log, and what its checkpoints hold.
//!
//! The log is a list of events. After a crash some prefix of it is there, at least what was acknowledged. Tables with redo
//! follow from that prefix; replicated tables are as of a checkpoint; the oplog is what the prefix says, up to a point below
//! which there was no hole.

use bytes::Bytes;
use pando_base::Timestamp;
use pando_storage::TableSize;
use std::collections::{BTreeMap, BTreeSet};

/// A table of this world; never used twice.
pub type Uid = u64;

/// Rows of one table.
pub type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

/// What a write does.
#[derive(Clone, Debug)]
pub enum Deed {
    Put(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
    Truncate(Vec<u8>, Vec<u8>),
}

/// A committed write with the change of its table's size.
#[derive(Clone, Debug)]
pub struct Write {
    pub table: Uid,
    pub deed: Deed,
    pub commit: Timestamp,
    pub durable: Timestamp,
    pub size: TableSize,
    /// Which write of the world it is.
    pub number: u64,
}

/// One record of the log.
#[derive(Clone, Debug)]
pub enum Event {
    Commit {
        writes: Vec<Write>,
        oplog: Vec<(Timestamp, Bytes)>,
    },
    Create {
        uid: Uid,
        ident: String,
        replicated: bool,
    },
    Drop {
        ident: String,
    },
    /// The oplog's new end was cut: this is the last timestamp that stayed.
    Cut(Timestamp),
}

/// A table as the log knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableInfo {
    pub uid: Uid,
    pub replicated: bool,
}

/// A checkpoint that a crash may bring back.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// The writes to replicated tables that it holds.
    pub writes: Vec<Write>,
    pub stable: Timestamp,
    pub oldest: Timestamp,
    /// Where in the log it stands.
    pub events: usize,
}

/// All that is known.
#[derive(Default)]
pub struct Model {
    pub events: Vec<Event>,
    /// So many events were acknowledged as durable.
    pub acknowledged: usize,
    /// Oplog entries up to here were acknowledged.
    pub no_holes: Timestamp,
    /// Writes to replicated tables, in commit order, as the running engine has them.
    pub replicated: Vec<Write>,
    /// What replicated tables may be after a crash.
    pub checkpoints: Vec<Checkpoint>,
    /// Oplog entries below this were dropped from the old end.
    pub oplog_start: Timestamp,
    /// The newest stable timestamp that any life was told.
    pub stable_max: Timestamp,
    uids: Uid,
}

impl Model {
    pub fn new() -> Model {
        let empty = Checkpoint { writes: Vec::new(), stable: Timestamp::NONE, oldest: Timestamp::NONE, events: 0 };
        Model { checkpoints: vec![empty], ..Model::default() }
    }

    pub fn next_uid(&mut self) -> Uid {
        self.uids += 1;
        self.uids
    }

    /// The tables after the first `count` events.
    pub fn tables(&self, count: usize) -> BTreeMap<String, TableInfo> {
        let mut tables = BTreeMap::new();
        for event in &self.events[..count] {
            match event {
                Event::Create { uid, ident, replicated } => {
                    tables.insert(ident.clone(), TableInfo { uid: *uid, replicated: *replicated });
                }
                Event::Drop { ident } => _ = tables.remove(ident),
                Event::Commit { .. } | Event::Cut(_) => {}
            }
        }
        tables
    }

    fn replicated_uids(&self) -> BTreeSet<Uid> {
        let uids = self.events.iter().filter_map(|event| match event {
            Event::Create { uid, replicated: true, .. } => Some(*uid),
            _ => None,
        });
        uids.collect()
    }

    /// Writes of tables with redo after the first `count` events.
    pub fn logged_writes(&self, count: usize) -> Vec<&Write> {
        let replicated = self.replicated_uids();
        let commits = self.events[..count].iter().filter_map(|event| match event {
            Event::Commit { writes, .. } => Some(writes),
            _ => None,
        });
        commits.flatten().filter(|write| !replicated.contains(&write.table)).collect()
    }

    /// Enters a commit.
    pub fn commit(&mut self, writes: Vec<Write>, oplog: Vec<(Timestamp, Bytes)>) {
        let replicated = self.replicated_uids();
        self.replicated.extend(writes.iter().filter(|write| replicated.contains(&write.table)).cloned());
        self.events.push(Event::Commit { writes, oplog });
    }

    /// The oplog after the first `count` events, holes or not.
    pub fn oplog(&self, count: usize) -> BTreeMap<Timestamp, Bytes> {
        let mut entries = BTreeMap::new();
        for event in &self.events[..count] {
            match event {
                Event::Commit { oplog, .. } => entries.extend(oplog.iter().cloned()),
                Event::Cut(kept) => _ = entries.split_off(&kept.next()),
                Event::Create { .. } | Event::Drop { .. } => {}
            }
        }
        entries.split_off(&self.oplog_start)
    }

    /// The checkpoint that is taken now: everything, or what is durable at the stable timestamp.
    pub fn checkpoint(&self, stable: Option<Timestamp>, oldest: Timestamp) -> Checkpoint {
        let taken = |write: &&Write| stable.is_none_or(|stable| write.durable <= stable);
        self.checkpoint_with(stable, oldest, taken)
    }

    /// What a spill leaves while stable has not reached the data: the last checkpoint, with what is untimestamped; or
    /// everything, if that one was of everything.
    pub fn spill(&self, oldest: Timestamp) -> Checkpoint {
        let before = &self.checkpoints[0];
        let full = before.stable.is_none();
        let held: BTreeSet<u64> = before.writes.iter().map(|write| write.number).collect();
        let taken = |write: &&Write| full || write.durable <= before.stable || held.contains(&write.number);
        self.checkpoint_with(Some(before.stable), oldest, taken)
    }

    fn checkpoint_with(
        &self,
        stable: Option<Timestamp>,
        oldest: Timestamp,
        taken: impl Fn(&&Write) -> bool,
    ) -> Checkpoint {
        Checkpoint {
            writes: self.replicated.iter().filter(taken).cloned().collect(),
            stable: stable.unwrap_or(Timestamp::NONE),
            oldest,
            events: self.events.len(),
        }
    }

    /// What is durable only after this timestamp never happened, in the running engine.
    pub fn roll_back(&mut self, stable: Timestamp) {
        self.replicated.retain(|write| write.durable <= stable);
    }

    /// The log after a crash is this long, the oplog ends here, and the checkpoint is this one.
    pub fn adopt(&mut self, count: usize, oplog_last: Timestamp, checkpoint: Checkpoint) {
        self.events.truncate(count);
        if self.oplog(count).keys().next_back().is_some_and(|last| *last > oplog_last) {
            self.events.push(Event::Cut(oplog_last));
        }
        self.acknowledged = self.events.len();
        self.no_holes = oplog_last;
        self.replicated = checkpoint.writes.clone();
        self.checkpoints = vec![Checkpoint { events: count, ..checkpoint }];
    }
}

/// The rows that these writes leave in a table, seen at a timestamp.
pub fn rows<'a>(writes: impl IntoIterator<Item = &'a Write>, table: Uid, at: Timestamp) -> Rows {
    let mut rows = Rows::new();
    for write in writes.into_iter().filter(|write| write.table == table && write.commit <= at) {
        match &write.deed {
            Deed::Put(key, value) => _ = rows.insert(key.clone(), value.clone()),
            Deed::Delete(key) => _ = rows.remove(key),
            Deed::Truncate(start, end) => rows.retain(|key, _| key < start || key >= end),
        }
    }
    rows
}

/// The size that these writes leave.
pub fn size<'a>(writes: impl IntoIterator<Item = &'a Write>, table: Uid) -> TableSize {
    let mut size = TableSize::default();
    for write in writes.into_iter().filter(|write| write.table == table) {
        size += write.size;
    }
    size
}
