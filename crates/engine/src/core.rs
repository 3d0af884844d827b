//! What everything in the engine shares: log, base, tables, timestamps, snapshots, memory.
//!
//! Lock order, outermost first: whether files are frozen; the checkpoint's lock; a leaf; the directory's growth; the log's
//! lock; the registry of tables; then the leaves of the order (ledgers, ranges, the timestamp keeper, snapshot shards). The
//! log's lock orders commits: under it a commit gets its sequence, enters the log, stores its outcome and is published; tables are created and
//! dropped under it too.

use crate::checkpoint::{CheckpointState, Haste};
use crate::counters::Counters;
use crate::epoch::Epoch;
use crate::failure::{of_log, of_runs};
use crate::health::Health;
use crate::memory::Memory;
use crate::options::{EngineOptions, Mode};
use crate::registry::Registry;
use crate::timestamps::{Retained, Slots, TimestampKeeper};
use crate::visibility::{ReadView, Snapshots, Watermark};
use arc_swap::ArcSwap;
use pando_base::Timestamp;
use pando_engine_log::{Log, PreparedRecord};
use pando_engine_runs::{BackupList, ReadPoint, RetentionPoint, RetentionSource, Runs, RunsError};
use pando_env::{Alarm, DirectoryLock, Env};
use pando_storage::{BeginOptions, EngineEvent, LogPosition, ReadAt, Result, StorageError};
use parking_lot::{Mutex, RwLock};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The cached retention point is renewed after so many uses.
const RETENTION_USES: u64 = 256;

/// The engine's shared state.
pub struct Core {
    /// Tells opened engines apart, so that a stale handle is not taken for one of this engine's.
    pub id: u64,
    /// The outside world.
    pub env: Env,
    /// Where the data lies.
    pub directory: PathBuf,
    /// How it was opened.
    pub options: EngineOptions,
    /// The log.
    pub log: Log,
    /// The base.
    pub runs: Runs,
    /// The tables.
    pub registry: Registry,
    /// The timestamps.
    pub keeper: Arc<TimestampKeeper>,
    /// Gives out slots.
    pub slots: Arc<Slots>,
    /// What snapshots may see.
    pub watermark: Arc<Watermark>,
    /// The open ones.
    pub snapshots: Arc<Snapshots>,
    /// The budget.
    pub memory: Arc<Memory>,
    /// What happened.
    pub counters: Counters,
    /// How the engine's own work fares.
    pub health: Health,
    /// Commits, creations and drops so far: whether a checkpoint would have anything to do.
    pub changes: AtomicU64,
    /// Grows when a prepared transaction ends.
    pub prepared: Epoch,
    /// One checkpoint, rollback or other change of the base's mark at a time.
    pub checkpoint: Mutex<CheckpointState>,
    /// Who waits for the one under way.
    pub haste: Arc<Haste>,
    /// Asks the checkpoint thread to work.
    pub checkpoint_alarm: Alarm,
    /// Asks the merge thread to work.
    pub merge_alarm: Alarm,
    /// Ends the wait of whoever asks for large pages.
    pub pages_alarm: Alarm,
    /// How many want the files to stay as they are; checkpoints and merges work under its reading side.
    pub frozen: RwLock<usize>,
    /// What named backups had, for incremental ones.
    pub backups: Mutex<BTreeMap<String, BackupList>>,
    /// One creation or drop of a table at a time.
    pub creating: Mutex<()>,
    /// While recovery applies the log: the first record that it has not applied.
    pub replaying: Mutex<Option<pando_engine_log::LogPosition>>,
    /// Ends the threads.
    pub stopping: AtomicBool,
    /// Why writes are refused, once they are.
    pub stopped: Mutex<Option<String>>,
    stopped_flag: AtomicBool,
    recent_retention: ArcSwap<RetentionPoint>,
    retention_uses: AtomicU64,
    _directory_lock: Box<dyn DirectoryLock>,
}

/// What `Core` is made from.
pub struct CoreParts {
    /// The outside world.
    pub env: Env,
    /// Where the data lies.
    pub directory: PathBuf,
    /// How it is opened.
    pub options: EngineOptions,
    /// The log.
    pub log: Log,
    /// The base.
    pub runs: Runs,
    /// The tables.
    pub registry: Registry,
    /// The timestamps.
    pub keeper: Arc<TimestampKeeper>,
    /// The last sequence of earlier lives.
    pub sequence: u64,
    /// The budget.
    pub memory: Arc<Memory>,
    /// Which engine.
    pub id: u64,
    /// What the last checkpoint left.
    pub checkpoint: CheckpointState,
    /// The data directory's lock.
    pub directory_lock: Box<dyn DirectoryLock>,
}

/// A record with room in the log.
pub struct PendingRecord {
    record: PreparedRecord,
    /// Given back when the record is in the log.
    _reservation: pando_engine_log::Reservation,
}

impl Core {
    /// Puts the parts together.
    pub fn new(parts: CoreParts) -> Core {
        let watermark = Arc::new(Watermark::new(parts.sequence));
        let log = parts.log.clone();
        let slots = Slots { keeper: parts.keeper.clone(), moved: Box::new(move || log.no_holes_advanced()) };
        Core {
            id: parts.id,
            env: parts.env,
            directory: parts.directory,
            options: parts.options,
            log: parts.log,
            runs: parts.runs,
            registry: parts.registry,
            keeper: parts.keeper,
            slots: Arc::new(slots),
            snapshots: Arc::new(Snapshots::new(watermark.clone())),
            watermark,
            memory: parts.memory,
            counters: Counters::default(),
            health: Health::default(),
            changes: AtomicU64::new(0),
            prepared: Epoch::default(),
            checkpoint: Mutex::new(parts.checkpoint),
            haste: Arc::default(),
            checkpoint_alarm: Alarm::new(),
            merge_alarm: Alarm::new(),
            pages_alarm: Alarm::new(),
            frozen: RwLock::new(0),
            backups: Mutex::default(),
            creating: Mutex::new(()),
            replaying: Mutex::new(None),
            stopping: AtomicBool::new(false),
            stopped: Mutex::new(None),
            stopped_flag: AtomicBool::new(false),
            recent_retention: ArcSwap::from_pointee(RetentionPoint::KEEP_ALL),
            retention_uses: AtomicU64::new(0),
            _directory_lock: parts.directory_lock,
        }
    }

    /// True if the log is an oplog.
    pub fn has_oplog(&self) -> bool {
        self.options.mode == Mode::ReplicaSet
    }

    /// Refuses writes after a stop.
    pub fn check_running(&self) -> Result<()> {
        match self.stopped_flag.load(Ordering::Acquire) {
            true if self.options.read_only => Err(StorageError::IllegalOperation(crate::read_only::REASON.into())),
            true => Err(StorageError::Stopped(self.stopped.lock().clone().unwrap_or_default())),
            false => Ok(()),
        }
    }

    /// Refuses writes from now on, as something went wrong.
    pub fn stop(&self, reason: &str) {
        if self.end_writes(reason) {
            self.tell(&EngineEvent::Stopped { reason: reason.to_owned() });
        }
    }

    /// Refuses writes from now on; true if they were not refused before.
    pub fn end_writes(&self, reason: &str) -> bool {
        self.stopped.lock().get_or_insert_with(|| reason.to_owned());
        !self.stopped_flag.swap(true, Ordering::AcqRel)
    }

    /// Passes an error on; one that says that the disk's state is unknown stops the engine, and damage is told.
    pub fn noted(&self, error: StorageError) -> StorageError {
        match &error {
            StorageError::Stopped(reason) => self.stop(reason),
            StorageError::Corruption { file, offset, detail } => self.met_damage(file, *offset, detail),
            _ => {}
        }
        error
    }

    /// An error of the base, noted.
    pub fn of_base(&self, error: RunsError) -> StorageError {
        self.noted(of_runs(error))
    }

    /// Takes a snapshot.
    pub fn open_view(&self, options: &BeginOptions) -> Result<ReadView> {
        let mut timestamp = match options.read {
            ReadAt::Latest => Timestamp::MAX,
            ReadAt::AllDurable => Some(self.keeper.all_durable()).filter(|now| now.is_some()).unwrap_or(Timestamp::MAX),
            ReadAt::Timestamp(timestamp) if timestamp.is_none() => {
                return Err(StorageError::TimestampRule("a read timestamp must be a timestamp".into()));
            }
            ReadAt::Timestamp(timestamp) => timestamp,
        };
        // Registered first and compared afterwards: history that was there at the comparison stays.
        let ticket = self.snapshots.open(timestamp);
        let oldest = self.keeper.oldest();
        if timestamp < oldest {
            if !options.round_up_to_oldest {
                return Err(StorageError::SnapshotTooOld { requested: timestamp, oldest });
            }
            timestamp = oldest;
            ticket.set_timestamp(timestamp);
        }
        Ok(ReadView::new(ReadPoint { sequence: ticket.sequence(), timestamp }, options.prepare, ticket))
    }

    /// Completes a record, which may have oplog entries, and reserves room for it.
    pub fn prepare_record(&self, kind: u8, mut record: PreparedRecord, payload: &[&[u8]]) -> Result<PendingRecord> {
        record.complete(kind, payload).map_err(of_log)?;
        let reserved = self.log.reserve(record.reserved_bytes()).map_err(of_log);
        let reservation = reserved.map_err(|error| self.noted(error))?;
        Ok(PendingRecord { record, _reservation: reservation })
    }

    /// Gives the next sequence to `store`, with the record in the log before it, and publishes it.
    pub fn in_sequence(&self, record: Option<PendingRecord>, store: impl FnOnce(u64)) -> Result<LogPosition> {
        let mut guard = self.log.lock();
        let sequence = self.watermark.published() + 1;
        let (position, appended) = match record {
            None => (None, None),
            Some(mut pending) => (Some(guard.append_taking(&mut pending.record, sequence)), Some(pending)),
        };
        store(sequence);
        self.watermark.publish(sequence);
        drop(guard);
        drop(appended);
        Ok(position.map_or_else(|| self.log_end(), position_of))
    }

    /// Like `in_sequence`, for something that a checkpoint must know of.
    pub fn change_in_sequence(&self, record: Option<PendingRecord>, store: impl FnOnce(u64)) -> Result<LogPosition> {
        self.in_sequence(record, |sequence| {
            store(sequence);
            self.changes.fetch_add(1, Ordering::Relaxed);
        })
    }

    /// The end of the log, and with it the newest entry of the oplog.
    pub fn log_end(&self) -> LogPosition {
        let newest = if self.has_oplog() { self.log.oplog().last() } else { None };
        LogPosition { oplog: newest.unwrap_or(Timestamp::NONE), ..position_of(self.log.position().into()) }
    }

    /// Tells the log that the point without holes may have moved.
    pub fn no_holes_moved(&self) {
        self.log.no_holes_advanced();
    }

    /// A prepared transaction has ended.
    pub fn prepared_ended(&self) {
        self.prepared.advance();
    }

    /// True if a committed oplog entry has this timestamp.
    pub fn oplog_contains(&self, timestamp: Timestamp) -> Result<bool> {
        self.log.oplog().contains(timestamp).map_err(|error| self.noted(of_log(error)))
    }

    /// What readers, rollback and the checkpoint under way may still need, as of now.
    pub fn retention_now(&self) -> RetentionPoint {
        self.retention_for(self.keeper.retained())
    }

    fn retention_for(&self, Retained { stable, oldest }: Retained) -> RetentionPoint {
        let collected = self.snapshots.collect();
        let ranges = self.registry.range_sequence_min();
        RetentionPoint {
            oldest,
            stable,
            read_timestamp_min: collected.read_timestamp_min,
            snapshots: collected.sequences,
            // Versions newer than a range in the overlay must keep their sequence, or they would look deleted by it.
            horizon: collected.horizon.min(ranges.map_or(u64::MAX, |sequence| sequence.saturating_sub(1))),
        }
    }

    /// A retention point that may be a little old, which only keeps more.
    pub fn recent_retention(&self) -> arc_swap::Guard<Arc<RetentionPoint>> {
        if self.retention_uses.fetch_add(1, Ordering::Relaxed).is_multiple_of(RETENTION_USES) {
            self.recent_retention.store(Arc::new(self.retention_now()));
        }
        self.recent_retention.load()
    }

    /// Wakes the checkpoint thread.
    pub fn ask_for_checkpoint(&self) {
        self.checkpoint_alarm.ring();
    }

    /// Flushes the log.
    pub fn flush(&self) -> Result<()> {
        self.log.flush().map(drop).map_err(|error| self.noted(of_log(error)))
    }

    /// True if a flush would make something durable.
    pub fn has_unflushed(&self) -> bool {
        let log = &self.log;
        log.position() > log.durable_position()
            || (self.has_oplog() && self.keeper.all_durable() > log.durable_no_holes())
    }

    /// Changes the base, and stops if it stopped.
    pub fn install(&self, edit: pando_engine_runs::Edit) -> Result<()> {
        self.runs.install(edit).map_err(|error| self.of_base(error))
    }
}

impl RetentionSource for Core {
    fn retention(&self) -> RetentionPoint {
        self.retention_for(self.keeper.retained_in_base())
    }
}

/// A durable point of the log as the interface tells it.
pub fn position_of(point: pando_engine_log::DurablePoint) -> LogPosition {
    LogPosition {
        segment: u64::from(point.position.segment),
        offset: u64::from(point.position.offset),
        oplog: point.timestamp,
    }
}

/// The other way around.
pub fn point_of(position: LogPosition) -> pando_engine_log::DurablePoint {
    let clamp = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    let place = pando_engine_log::LogPosition::new(clamp(position.segment), clamp(position.offset));
    pando_engine_log::DurablePoint { position: place, timestamp: position.oplog }
}
