//! One operation's view of storage: its snapshot, its unit of work, and what is to happen when that ends.
//!
//! A [`RecoveryUnit`] belongs to one operation at a time. It begins an engine transaction when something is first read or
//! written, not before, and reads as its [`ReadSource`] says at that moment. Outside a unit of work the transaction only
//! reads and is rolled back by [`RecoveryUnit::abandon_snapshot`]. Inside one (see
//! [`WriteUnitOfWork`](crate::WriteUnitOfWork)) all reads and writes share one transaction, which ends with the unit.
//!
//! A [`Change`] is registered inside a unit and runs after the engine has committed or rolled back: in the order of
//! registration on commit, in the reverse order on rollback. Pre-commit hooks run just before the engine's commit and may
//! still refuse it.
//!
//! Commit timestamps come in two ways that exclude each other: [`RecoveryUnit::set_timestamp`] inside a unit, also several
//! times with rising timestamps (vectored inserts), and [`RecoveryUnit::set_commit_timestamp`] before units, for all of
//! them until it is cleared (oplog application), or for a prepared unit. A primary preallocates its snapshot before it
//! reserves oplog slots: then everything that the snapshot sees has an earlier timestamp than what the unit writes.
//!
//! Invariants: writes happen in a unit of work only; a failed unit never commits; each registered change runs exactly one
//! of its two ends, also when the whole recovery unit is dropped.
//!
//! No locks are held here. This module must not know record stores, indexes or replication; what replication knows comes
//! through [`ReadTimestamps`].

use crate::engine::{BeginOptions, Engine, PrepareBehaviour, ReadAt, Slot, Table, TableSize, Transaction, Urgency};
use crate::{Result, StorageError};
use pando_base::{ResourceMeter, Timestamp};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

mod timestamps;
mod unit;

pub(crate) use unit::Unit;
pub use unit::{Change, PreCommitHook};

/// Which data an operation reads. Resolved each time a snapshot is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ReadSource {
    /// Everything committed.
    #[default]
    NoTimestamp,
    /// What the node serves by its state: a secondary as of the last applied entry, a primary everything committed. Asked anew for
    /// each snapshot, so that a read changes over when it yields while the node steps up or down.
    LastApplied,
    /// As of the newest majority-committed point.
    MajorityCommitted,
    /// As of a timestamp.
    Provided(Timestamp),
    /// As of the newest point without holes.
    AllDurable,
}

/// The points of time that replication knows and some read sources need. `NONE` where there is none yet.
pub trait ReadTimestamps: Send + Sync {
    /// The newest entry that was applied as a whole batch; `NONE` on a primary, which makes its entries itself.
    fn last_applied(&self) -> Timestamp;
    /// The newest entry that a majority has.
    fn majority_committed(&self) -> Timestamp;
}

/// Where there is no replication.
pub struct NoReplication;

impl ReadTimestamps for NoReplication {
    fn last_applied(&self) -> Timestamp {
        Timestamp::NONE
    }

    fn majority_committed(&self) -> Timestamp {
        Timestamp::NONE
    }
}

/// Names one opening of a snapshot; two openings anywhere in the process never share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SnapshotId(u64);

static SNAPSHOTS_OPENED: AtomicU64 = AtomicU64::new(0);

impl SnapshotId {
    fn next() -> SnapshotId {
        SnapshotId(SNAPSHOTS_OPENED.fetch_add(1, Ordering::Relaxed))
    }
}

/// The transaction of one operation, begun when first needed.
pub struct RecoveryUnit {
    engine: Arc<dyn Engine>,
    replication: Arc<dyn ReadTimestamps>,
    read_source: ReadSource,
    begin: BeginOptions,
    open: Option<(SnapshotId, Box<dyn Transaction>)>,
    pub(crate) unit: Option<Unit>,
    /// The commit timestamp of every unit until cleared.
    commit_timestamp: Timestamp,
    /// Who accounts for what is read and written, if anybody does.
    meter: Option<Arc<ResourceMeter>>,
}

impl RecoveryUnit {
    /// A recovery unit that reads without a timestamp.
    pub fn new(engine: Arc<dyn Engine>, replication: Arc<dyn ReadTimestamps>) -> RecoveryUnit {
        RecoveryUnit {
            engine,
            replication,
            read_source: ReadSource::NoTimestamp,
            begin: BeginOptions::default(),
            open: None,
            unit: None,
            commit_timestamp: Timestamp::NONE,
            meter: None,
        }
    }

    /// The engine below.
    pub fn engine(&self) -> &Arc<dyn Engine> {
        &self.engine
    }

    /// Has what is read and written measured, or not any more.
    pub fn set_meter(&mut self, meter: Option<Arc<ResourceMeter>>) {
        self.meter = meter;
    }

    /// Who accounts for what is read and written.
    #[inline]
    pub(crate) fn meter(&self) -> Option<&ResourceMeter> {
        self.meter.as_deref()
    }

    // ---- How snapshots are opened. None of this may change while one is open.

    /// Chooses which data is read.
    pub fn set_read_source(&mut self, source: ReadSource) -> Result<()> {
        if self.read_source != source {
            self.require_no_snapshot("the read source")?;
            self.read_source = source;
        }
        Ok(())
    }

    /// Which data is read.
    pub fn read_source(&self) -> ReadSource {
        self.read_source
    }

    /// Chooses what reads do about prepared data.
    pub fn set_prepare_behaviour(&mut self, behaviour: PrepareBehaviour) -> Result<()> {
        if self.begin.prepare != behaviour {
            self.require_no_snapshot("the prepare behaviour")?;
            self.begin.prepare = behaviour;
        }
        Ok(())
    }

    /// What reads do about prepared data.
    pub fn prepare_behaviour(&self) -> PrepareBehaviour {
        self.begin.prepare
    }

    /// Chooses whether memory limits apply.
    pub fn set_urgency(&mut self, urgency: Urgency) -> Result<()> {
        if self.begin.urgency != urgency {
            self.require_no_snapshot("the urgency")?;
            self.begin.urgency = urgency;
        }
        Ok(())
    }

    /// Chooses whether a provided timestamp below oldest is raised to it instead of refused.
    pub fn set_round_up_to_oldest(&mut self, round_up: bool) -> Result<()> {
        if self.begin.round_up_to_oldest != round_up {
            self.require_no_snapshot("rounding")?;
            self.begin.round_up_to_oldest = round_up;
        }
        Ok(())
    }

    /// Says that prepared transactions are being rebuilt: they may prepare at or before stable.
    pub fn set_recovering(&mut self, recovering: bool) -> Result<()> {
        if self.begin.recovering != recovering {
            self.require_no_snapshot("recovery")?;
            self.begin.recovering = recovering;
        }
        Ok(())
    }

    fn require_no_snapshot(&self, what: &str) -> Result<()> {
        match self.open {
            None => Ok(()),
            Some(_) => Err(StorageError::IllegalOperation(format!("{what} cannot change while a snapshot is open"))),
        }
    }

    // ---- Snapshots.

    /// Opens the snapshot now, if it is not open.
    pub fn preallocate_snapshot(&mut self) -> Result<()> {
        self.opened().map(|_| ())
    }

    /// Lets go of the snapshot, so that the next read sees newer data. Not inside a unit of work.
    pub fn abandon_snapshot(&mut self) -> Result<()> {
        if self.unit.is_some() {
            return Err(StorageError::IllegalOperation("a unit of work cannot abandon its snapshot".into()));
        }
        self.open = None;
        Ok(())
    }

    /// The open snapshot.
    pub fn snapshot_id(&self) -> Option<SnapshotId> {
        self.open.as_ref().map(|(id, _)| *id)
    }

    /// The timestamp that the open snapshot reads at, or that a provided one will.
    pub fn read_timestamp(&self) -> Option<Timestamp> {
        match (&self.open, self.read_source) {
            (Some((_, transaction)), _) => transaction.read_timestamp(),
            (None, ReadSource::Provided(timestamp)) => Some(timestamp),
            (None, _) => None,
        }
    }

    /// The transaction, to read with; begun if it was not.
    pub fn reader(&mut self) -> Result<&dyn Transaction> {
        Ok(&*self.opened()?.1)
    }

    /// As [`RecoveryUnit::reader`], with the snapshot's name.
    pub fn snapshot(&mut self) -> Result<(SnapshotId, &dyn Transaction)> {
        let (id, transaction) = self.opened()?;
        Ok((*id, &**transaction))
    }

    #[inline]
    fn opened(&mut self) -> Result<&mut (SnapshotId, Box<dyn Transaction>)> {
        if self.open.is_none() {
            let transaction = self.engine.begin(self.begin_options()?)?;
            self.open = Some((SnapshotId::next(), transaction));
        }
        // Cannot fail: it was opened above. An error keeps the house rule without a panic.
        self.open.as_mut().ok_or_else(|| StorageError::IllegalOperation("no snapshot is open".into()))
    }

    fn begin_options(&self) -> Result<BeginOptions> {
        // What replication names may fall behind oldest between asking and beginning; oldest is then as good.
        let (read, round_up) = match self.read_source {
            ReadSource::NoTimestamp => (ReadAt::Latest, false),
            ReadSource::AllDurable => (ReadAt::AllDurable, true),
            ReadSource::Provided(timestamp) => (ReadAt::Timestamp(timestamp), self.begin.round_up_to_oldest),
            ReadSource::LastApplied => match self.replication.last_applied() {
                Timestamp::NONE => (ReadAt::Latest, false),
                timestamp => (ReadAt::Timestamp(timestamp), true),
            },
            ReadSource::MajorityCommitted => match self.replication.majority_committed() {
                Timestamp::NONE => {
                    return Err(StorageError::IllegalOperation("no majority-committed snapshot is available".into()));
                }
                timestamp => (ReadAt::Timestamp(timestamp), true),
            },
        };
        Ok(BeginOptions { read, round_up_to_oldest: round_up, ..self.begin })
    }

    // ---- Writing.

    /// The transaction, to write with. Only inside a unit of work.
    pub fn writer(&mut self) -> Result<&mut dyn Transaction> {
        self.require_writable_unit()?;
        if self.open.is_none() {
            self.opened()?;
        }
        self.apply_timestamp()?;
        Ok(&mut *self.opened()?.1)
    }

    pub(crate) fn require_writable_unit(&self) -> Result<()> {
        match &self.unit {
            None => Err(StorageError::IllegalOperation("a write needs a unit of work".into())),
            Some(unit) if unit.failed => {
                Err(StorageError::IllegalOperation("the unit of work has failed and can only be rolled back".into()))
            }
            Some(_) => Ok(()),
        }
    }

    /// Adds to a table's size when the unit commits.
    pub fn adjust_size(&mut self, table: &Table, change: TableSize) -> Result<()> {
        self.writer()?.adjust_size(table, change)?;
        let Some(unit) = &mut self.unit else { return Ok(()) };
        match unit.sizes.iter_mut().find(|(id, _)| *id == table.id()) {
            Some((_, size)) => *size += change,
            None => unit.sizes.push((table.id(), change)),
        }
        Ok(())
    }

    /// What this unit has added to a table's size so far.
    pub fn uncommitted_size(&self, table: &Table) -> TableSize {
        let sizes = self.unit.as_ref().map_or(&[][..], |unit| &unit.sizes);
        sizes.iter().find(|(id, _)| *id == table.id()).map_or_else(TableSize::default, |(_, size)| *size)
    }

    /// Fills the slot, or gives it up, when the unit ends.
    pub fn hold_slot(&mut self, slot: Slot) -> Result<()> {
        self.require_writable_unit()?;
        self.opened()?.1.hold_slot(slot);
        Ok(())
    }
}

impl Drop for RecoveryUnit {
    fn drop(&mut self) {
        self.abort_unit_of_work();
    }
}
