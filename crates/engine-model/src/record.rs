//! Log records, and what replaying one does.

use crate::data::{Data, SizeChange, Stamp, TableData, Truncation, Version, Writer};
use bytes::Bytes;
use pando_base::Timestamp;
use pando_storage::{OplogEntry, TableOptions, TableSize};
use std::collections::BTreeMap;

/// The entries of the oplog.
pub type Entries = BTreeMap<Timestamp, Bytes>;

/// One atomic piece of the log.
#[derive(Clone, Debug)]
pub enum Record {
    /// A table was made.
    Create {
        /// Its id.
        table: u64,
        /// Its name.
        ident: String,
        /// As given.
        options: TableOptions,
    },
    /// A table was dropped.
    Drop {
        /// Its id.
        table: u64,
        /// Its name.
        ident: String,
    },
    /// A transaction committed.
    Commit {
        /// Its changes of logged tables, in write order.
        redo: Vec<Redo>,
        /// Its oplog entries.
        oplog: Vec<OplogEntry>,
    },
    /// A table was filled; this record is durable by itself.
    BulkLoad {
        /// Which.
        table: u64,
        /// With what.
        pairs: Vec<(Vec<u8>, Bytes)>,
        /// Records and bytes.
        size: TableSize,
    },
    /// The oplog's new end was cut off.
    TruncateOplog {
        /// Entries after this go.
        after: Timestamp,
    },
    /// The oplog's old end was dropped.
    DropOldOplog {
        /// Entries up to this go.
        through: Timestamp,
    },
}

/// One change of a logged table.
#[derive(Clone, Debug)]
pub struct Redo {
    /// Which table.
    pub table: u64,
    /// Its commit timestamp.
    pub commit: Timestamp,
    /// Its durable timestamp.
    pub durable: Timestamp,
    /// What was done.
    pub change: Change,
}

/// What was done to a table.
#[derive(Clone, Debug)]
pub enum Change {
    /// A key was written or deleted.
    Point(Vec<u8>, Option<Bytes>),
    /// A range was deleted.
    Truncate(Vec<u8>, Option<Vec<u8>>),
    /// The size changed.
    Size(TableSize),
}

impl Record {
    /// The table that this record creates, drops or fills.
    pub fn ident<'a>(&'a self, data: &'a Data) -> Option<&'a str> {
        match self {
            Record::Create { ident, .. } | Record::Drop { ident, .. } => Some(ident),
            Record::BulkLoad { table, .. } => data.tables.get(table).map(|table| table.ident.as_str()),
            Record::Commit { .. } | Record::TruncateOplog { .. } | Record::DropOldOplog { .. } => None,
        }
    }

    /// Does to the oplog what this record tells.
    pub fn replay_oplog(&self, entries: &mut Entries) {
        match self {
            Record::Commit { oplog, .. } => {
                entries.extend(oplog.iter().map(|entry| (entry.timestamp, entry.entry.clone())));
            }
            Record::TruncateOplog { after } => entries.retain(|timestamp, _| timestamp <= after),
            Record::DropOldOplog { through } => entries.retain(|timestamp, _| timestamp > through),
            Record::Create { .. } | Record::Drop { .. } | Record::BulkLoad { .. } => {}
        }
    }

    /// Does to the tables what this record tells.
    pub fn replay_tables(&self, data: &mut Data) {
        match self {
            Record::Create { table, ident, options } => {
                data.tables.insert(*table, TableData::new(ident, options));
                data.last_table = data.last_table.max(*table);
            }
            Record::Drop { table, .. } => {
                if let Some(table) = data.tables.get_mut(table) {
                    table.dropped = true;
                }
            }
            Record::Commit { redo, .. } => {
                let sequence = data.next_sequence();
                redo.iter().for_each(|redo| redo.replay(data, sequence));
            }
            Record::BulkLoad { table, pairs, size } => fill(data, *table, pairs, *size),
            Record::TruncateOplog { .. } | Record::DropOldOplog { .. } => {}
        }
    }
}

impl Redo {
    fn replay(&self, data: &mut Data, sequence: u64) {
        let order = data.next_order();
        let stamp = Stamp { writer: Writer::Committed(sequence), commit: self.commit, durable: self.durable };
        let Some(table) = data.tables.get_mut(&self.table) else { return };
        match &self.change {
            Change::Point(key, value) => {
                table.points.entry(key.clone()).or_default().push(Version { order, stamp, value: value.clone() });
            }
            Change::Truncate(start, end) => {
                table.truncations.push(Truncation { order, stamp, start: start.clone(), end: end.clone() });
            }
            Change::Size(change) => table.sizes.push(SizeChange { stamp, change: *change }),
        }
    }
}

/// Puts loaded pairs into a table, untimestamped, as one commit.
fn fill(data: &mut Data, table: u64, pairs: &[(Vec<u8>, Bytes)], size: TableSize) {
    let sequence = data.next_sequence();
    let stamp = Stamp { writer: Writer::Committed(sequence), commit: Timestamp::NONE, durable: Timestamp::NONE };
    let order = data.next_order();
    let Some(table) = data.tables.get_mut(&table) else { return };
    for (key, value) in pairs {
        table.points.entry(key.clone()).or_default().push(Version { order, stamp, value: Some(value.clone()) });
    }
    table.sizes.push(SizeChange { stamp, change: size });
}
