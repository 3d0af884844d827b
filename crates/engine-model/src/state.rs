//! The whole state of an open engine.
//!
//! Every call of the interface takes the one mutex and does its work here, in full, before it lets go.
//!
//! Where the interface's rules leave a case open, the call sets `unspecified`, and a comparison with another engine knows
//! not to look.

use crate::data::{Data, Prepared, TableData, View};
use crate::disk::ModelDisk;
use crate::engine::Mode;
use crate::record::{Entries, Record};
use bytes::Bytes;
use pando_base::Timestamp;
use pando_storage::{BeginOptions, LogPosition, OplogEntry, ReadAt, Result, StorageError};
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
    /// The order of writes at the last checkpoint.
    pub checkpoint_order: u64,
    /// Something was committed, created or dropped since the last checkpoint.
    pub changed: bool,
    /// Stable moved since then.
    pub stable_moved: bool,
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

    /// Fails once the engine has stopped or lost its disk.
    pub fn check_writable(&self) -> Result<()> {
        match (self.stopped, self.disk.serves(self.generation)) {
            (true, _) => Err(StorageError::Stopped("shut down".into())),
            (false, false) => Err(StorageError::Io("no power".into())),
            (false, true) => Ok(()),
        }
    }

    /// What others know of a prepared transaction.
    pub fn prepared(&self, number: u64) -> Option<Prepared> {
        self.open.get(&number).and_then(|open| open.prepared)
    }

    /// An open transaction.
    pub fn open(&self, number: u64) -> Result<&Open> {
        self.open.get(&number).ok_or_else(|| StorageError::IllegalOperation("the transaction has ended".into()))
    }

    /// The same, to be changed.
    pub fn open_mut(&mut self, number: u64) -> Result<&mut Open> {
        self.open.get_mut(&number).ok_or_else(|| StorageError::IllegalOperation("the transaction has ended".into()))
    }

    /// The end of the log, and with it the newest entry of the oplog.
    pub fn log_end(&self) -> LogPosition {
        self.position(self.entries.last_key_value().map_or(Timestamp::NONE, |(timestamp, _)| *timestamp))
    }

    /// The end of the log, after a record with this newest oplog entry.
    pub fn position(&self, oplog: Timestamp) -> LogPosition {
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
}
