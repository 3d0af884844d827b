//! Engines that are wrong in one way each, to see that the histories notice.
//!
//! A broken engine is the oracle behind a thin shell that lies at one place.

use crate::{Mode, ModelDisk, ModelEngine};
use bytes::Bytes;
use pando_base::Timestamp;
use pando_env::Random;
use pando_storage::*;
use parking_lot::Mutex;
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing: the shell alone changes nothing.
    Nothing,
    /// A write conflict is hidden, and the write forgotten.
    HidesWriteConflicts,
    /// A conflicting write is reported at commit only.
    ConflictsAtCommit,
    /// A deleted key still has its last value.
    ReturnsDeletedKeys,
    /// Reads at a timestamp see everything.
    IgnoresReadTimestamps,
    /// Prepared data is not in the way.
    IgnoresPrepared,
    /// The second commit timestamp of a transaction is forgotten.
    OneCommitTimestamp,
    /// The durable timestamp is forgotten.
    ForgetsDurableTimestamps,
    /// Changes of size are there before the commit, and stay after a rollback.
    SizesAtOnce,
    /// A truncation leaves the first key.
    TruncatesTooLittle,
    /// Changing direction returns the same key again.
    TurnsOnTheSpot,
    /// After attach the key stood on comes again.
    RepeatsAfterAttach,
    /// Slots hold nothing.
    IgnoresSlots,
    /// Forward readers of the oplog go past holes.
    ReadsPastHoles,
    /// Rollback to stable does nothing.
    KeepsUnstable,
    /// Checkpoints are said to be taken.
    FakesCheckpoints,
    /// Flushes are said to be done.
    FakesFlushes,
    /// A power loss takes one acknowledged record.
    LosesFlushed,
    /// A power loss takes redo but leaves the oplog entries of the same records.
    TearsRecords,
    /// A power loss leaves entries after a hole.
    KeepsEntriesPastHoles,
    /// Reads may go below oldest.
    ServesTooOld,
    /// Bulk loads are lost by a power loss.
    LosesBulkLoads,
}

/// A broken store.
pub struct Sabotaged {
    fault: Fault,
    mode: Mode,
    disk: Arc<ModelDisk>,
    engine: Arc<Shell>,
}

impl Sabotaged {
    /// An empty one.
    pub fn new(fault: Fault, mode: Mode) -> Sabotaged {
        let disk = ModelDisk::new();
        let engine = Shell::open(fault, &disk, mode);
        Sabotaged { fault, mode, disk, engine }
    }
}

impl super::Subject for Sabotaged {
    fn engine(&self) -> Arc<dyn Engine> {
        self.engine.clone()
    }

    fn restart_clean(&mut self) {
        self.engine.shut_down().unwrap();
        self.engine = Shell::open(self.fault, &self.disk, self.mode);
    }

    fn crash(&mut self) {
        match self.fault {
            Fault::LosesFlushed => self.disk.crash_losing(1),
            Fault::TearsRecords => self.disk.crash_tearing(),
            Fault::KeepsEntriesPastHoles => self.disk.crash_keeping_at(0, Timestamp::MAX),
            Fault::LosesBulkLoads => self.disk.crash_forgetting_pins(),
            _ => self.disk.crash(),
        }
        self.engine = Shell::open(self.fault, &self.disk, self.mode);
    }

    fn lose_power_after(&mut self, _changes: u64) -> bool {
        true
    }
}

type Written = Arc<Mutex<BTreeMap<(u64, Vec<u8>), Bytes>>>;

struct Shell {
    fault: Fault,
    inner: Arc<ModelEngine>,
    written: Written,
}

impl Shell {
    fn open(fault: Fault, disk: &Arc<ModelDisk>, mode: Mode) -> Arc<Shell> {
        let inner = ModelEngine::open(disk, mode).unwrap();
        Arc::new(Shell { fault, inner, written: Written::default() })
    }
}

struct ShellTransaction {
    fault: Fault,
    inner: Box<dyn Transaction>,
    engine: Arc<ModelEngine>,
    written: Written,
    conflicted: bool,
    stamped: bool,
}

impl ShellTransaction {
    /// What becomes of a write's result.
    fn written(&mut self, result: Result<()>) -> Result<()> {
        match (self.fault, result) {
            (Fault::HidesWriteConflicts, Err(StorageError::WriteConflict)) => Ok(()),
            (Fault::ConflictsAtCommit, Err(StorageError::WriteConflict)) => {
                self.conflicted = true;
                Ok(())
            }
            (_, result) => result,
        }
    }
}

impl Transaction for ShellTransaction {
    fn get(&self, table: &Table, key: &[u8]) -> Result<Option<Bytes>> {
        let value = self.inner.get(table, key)?;
        match self.fault {
            Fault::ReturnsDeletedKeys => {
                Ok(value.or_else(|| self.written.lock().get(&(table.id(), key.to_vec())).cloned()))
            }
            _ => Ok(value),
        }
    }

    fn put(&mut self, table: &Table, key: &[u8], value: &[u8]) -> Result<()> {
        self.written.lock().insert((table.id(), key.to_vec()), Bytes::copy_from_slice(value));
        let result = self.inner.put(table, key, value);
        self.written(result)
    }

    fn delete(&mut self, table: &Table, key: &[u8]) -> Result<()> {
        let result = self.inner.delete(table, key);
        self.written(result)
    }

    fn truncate(&mut self, table: &Table, start: &[u8], end: Option<&[u8]>) -> Result<()> {
        let mut start = start.to_vec();
        if self.fault == Fault::TruncatesTooLittle {
            start.push(0);
        }
        self.inner.truncate(table, &start, end)
    }

    fn adjust_size(&mut self, table: &Table, change: TableSize) -> Result<()> {
        if self.fault == Fault::SizesAtOnce && self.inner.adjust_size(table, TableSize::default()).is_ok() {
            let mut size = self.engine.table_size(table)?;
            size += change;
            return self.engine.set_table_size(table, size);
        }
        self.inner.adjust_size(table, change)
    }

    fn append_oplog(&mut self, timestamp: Timestamp, entry: &[u8]) -> Result<()> {
        self.inner.append_oplog(timestamp, entry)
    }

    fn cursor(&self, table: &Table) -> Result<Box<dyn Cursor>> {
        let inner = self.inner.cursor(table)?;
        Ok(Box::new(ShellCursor { fault: self.fault, inner, forward: true, attached: false }))
    }

    fn set_commit_timestamp(&mut self, timestamp: Timestamp) -> Result<()> {
        if self.fault == Fault::OneCommitTimestamp && self.stamped {
            return Ok(());
        }
        self.stamped = true;
        self.inner.set_commit_timestamp(timestamp)
    }

    fn set_durable_timestamp(&mut self, timestamp: Timestamp) -> Result<()> {
        match self.fault == Fault::ForgetsDurableTimestamps && self.is_prepared() {
            true => Ok(()),
            false => self.inner.set_durable_timestamp(timestamp),
        }
    }

    fn hold_slot(&mut self, slot: Slot) {
        match self.fault {
            Fault::IgnoresSlots => drop(slot),
            _ => self.inner.hold_slot(slot),
        }
    }

    fn prepare(&mut self, timestamp: Timestamp) -> Result<()> {
        self.inner.prepare(timestamp)
    }

    fn commit(self: Box<Self>) -> Result<Committed> {
        match (self.fault, self.conflicted) {
            (Fault::ConflictsAtCommit, true) => Err(StorageError::WriteConflict),
            _ => self.inner.commit(),
        }
    }

    fn roll_back(self: Box<Self>) {
        self.inner.roll_back();
    }

    fn read_timestamp(&self) -> Option<Timestamp> {
        self.inner.read_timestamp()
    }

    fn dirty_bytes(&self) -> u64 {
        self.inner.dirty_bytes()
    }

    fn is_prepared(&self) -> bool {
        self.inner.is_prepared()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

struct ShellCursor {
    fault: Fault,
    inner: Box<dyn Cursor>,
    forward: bool,
    /// Just attached.
    attached: bool,
}

impl ShellCursor {
    /// True if this move is to be left out.
    fn stays(&mut self, forward: bool) -> bool {
        let turned = std::mem::replace(&mut self.forward, forward) != forward;
        let attached = std::mem::take(&mut self.attached);
        let standing = self.inner.entry().is_some();
        standing
            && match self.fault {
                Fault::TurnsOnTheSpot => turned,
                Fault::RepeatsAfterAttach => attached,
                _ => false,
            }
    }
}

impl Cursor for ShellCursor {
    fn first(&mut self) -> Result<Option<Entry<'_>>> {
        self.forward = true;
        self.inner.first()
    }

    fn last(&mut self) -> Result<Option<Entry<'_>>> {
        self.forward = false;
        self.inner.last()
    }

    fn seek(&mut self, key: &[u8]) -> Result<Option<Entry<'_>>> {
        self.forward = true;
        self.inner.seek(key)
    }

    fn seek_back(&mut self, key: &[u8]) -> Result<Option<Entry<'_>>> {
        self.forward = false;
        self.inner.seek_back(key)
    }

    fn seek_exact(&mut self, key: &[u8]) -> Result<Option<Entry<'_>>> {
        self.inner.seek_exact(key)
    }

    fn next(&mut self) -> Result<Option<Entry<'_>>> {
        match self.stays(true) {
            true => Ok(self.inner.entry()),
            false => self.inner.next(),
        }
    }

    fn previous(&mut self) -> Result<Option<Entry<'_>>> {
        match self.stays(false) {
            true => Ok(self.inner.entry()),
            false => self.inner.previous(),
        }
    }

    fn random(&mut self, random: &dyn Random) -> Result<Option<Entry<'_>>> {
        self.inner.random(random)
    }

    fn entry(&self) -> Option<Entry<'_>> {
        self.inner.entry()
    }

    fn value_bytes(&self) -> Option<Bytes> {
        self.inner.value_bytes()
    }

    fn detach(&mut self) {
        self.inner.detach();
    }

    fn attach(&mut self, transaction: &dyn Transaction) -> Result<()> {
        self.attached = true;
        match transaction.as_any().downcast_ref::<ShellTransaction>() {
            Some(transaction) => self.inner.attach(&*transaction.inner),
            None => Err(StorageError::IllegalOperation("not mine".into())),
        }
    }
}

impl TransactionSource for Shell {
    fn begin(&self, options: BeginOptions) -> Result<Box<dyn Transaction>> {
        let mut options = options;
        match self.fault {
            Fault::IgnoresReadTimestamps => options.read = ReadAt::Latest,
            Fault::IgnoresPrepared if options.prepare == PrepareBehaviour::Enforce => {
                options.prepare = PrepareBehaviour::IgnoreAndWrite;
            }
            Fault::ServesTooOld => options.round_up_to_oldest = true,
            _ => {}
        }
        let inner = self.inner.begin(options)?;
        let (engine, written) = (self.inner.clone(), self.written.clone());
        Ok(Box::new(ShellTransaction { fault: self.fault, inner, engine, written, conflicted: false, stamped: false }))
    }

    fn prepare_epoch(&self) -> u64 {
        self.inner.prepare_epoch()
    }

    fn prepare_wait(&self, epoch: u64) -> Wait {
        self.inner.prepare_wait(epoch)
    }
}

impl TableRegistry for Shell {
    fn create_table(&self, ident: &str, options: &TableOptions) -> Result<Table> {
        self.inner.create_table(ident, options)
    }

    fn open_table(&self, ident: &str) -> Result<Table> {
        self.inner.open_table(ident)
    }

    fn drop_table(&self, ident: &str) -> Result<()> {
        self.inner.drop_table(ident)
    }

    fn idents(&self) -> Vec<String> {
        self.inner.idents()
    }

    fn table_size(&self, table: &Table) -> Result<TableSize> {
        self.inner.table_size(table)
    }

    fn set_table_size(&self, table: &Table, size: TableSize) -> Result<()> {
        self.inner.set_table_size(table, size)
    }

    fn table_disk_bytes(&self, table: &Table) -> Result<u64> {
        self.inner.table_disk_bytes(table)
    }

    fn table_free_bytes(&self, table: &Table) -> Result<u64> {
        self.inner.table_free_bytes(table)
    }

    fn estimate(&self, table: &Table, start: &[u8], end: Option<&[u8]>) -> Result<Estimate> {
        self.inner.estimate(table, start, end)
    }

    fn bulk_load(&self, table: &Table) -> Result<Box<dyn BulkLoader>> {
        self.inner.bulk_load(table)
    }

    fn committed_cursor(&self, table: &Table) -> Result<Box<dyn Cursor>> {
        self.inner.committed_cursor(table)
    }
}

impl TimestampControl for Shell {
    fn timestamps(&self) -> Timestamps {
        self.inner.timestamps()
    }

    fn set_oldest(&self, timestamp: Timestamp, force: bool) -> Result<()> {
        self.inner.set_oldest(timestamp, force)
    }

    fn set_stable(&self, timestamp: Timestamp) -> Result<()> {
        self.inner.set_stable(timestamp)
    }

    fn set_initial_data(&self, timestamp: Timestamp) {
        self.inner.set_initial_data(timestamp);
    }

    fn newest_stored(&self) -> Timestamp {
        self.inner.newest_stored()
    }

    fn reserve_slot(&self, timestamp: Timestamp) -> Result<Slot> {
        self.inner.reserve_slot(timestamp)
    }
}

impl Durability for Shell {
    fn flush_log(&self) -> Result<LogPosition> {
        match self.fault {
            Fault::FakesFlushes => Ok(self.inner.log_end()),
            _ => self.inner.flush_log(),
        }
    }

    fn wait_durable(&self, position: LogPosition) -> Wait {
        match self.fault {
            Fault::FakesFlushes => Wait::done(Ok(())),
            _ => self.inner.wait_durable(position),
        }
    }

    fn log_end(&self) -> LogPosition {
        self.inner.log_end()
    }

    fn checkpoint(&self, kind: CheckpointKind) -> Result<CheckpointOutcome> {
        if self.fault != Fault::FakesCheckpoints || self.inner.expects_checkpoint(kind) != Some(true) {
            return self.inner.checkpoint(kind);
        }
        self.inner.flush_log()?;
        let now = self.inner.timestamps();
        let timestamp = if now.initial_data.is_none() { Timestamp::NONE } else { now.stable };
        Ok(CheckpointOutcome { taken: true, timestamp, keys: 0, bytes: 0 })
    }

    fn roll_back_to_stable(&self) -> Result<()> {
        if self.fault != Fault::KeepsUnstable || self.inner.statistics().value("transactions.open") > 0 {
            return self.inner.roll_back_to_stable();
        }
        match self.inner.timestamps().stable.is_some() {
            true => Ok(()),
            false => self.inner.roll_back_to_stable(),
        }
    }

    fn maintain(&self) -> Result<bool> {
        self.inner.maintain()
    }

    fn stable_table_size(&self, table: &Table) -> Result<TableSize> {
        self.inner.stable_table_size(table)
    }
}

/// Reads backward from the end, then gives that in order.
struct PastHoles {
    entries: Vec<OplogEntry>,
}

impl OplogCursor for PastHoles {
    fn seek(&mut self, timestamp: Timestamp) -> Result<Option<OplogEntry>> {
        self.entries.retain(|entry| entry.timestamp >= timestamp);
        self.next()
    }

    fn next(&mut self) -> Result<Option<OplogEntry>> {
        Ok((!self.entries.is_empty()).then(|| self.entries.remove(0)))
    }
}

impl Oplog for Shell {
    fn forward(&self) -> Result<Box<dyn OplogCursor>> {
        let mut backward = self.inner.backward()?;
        let mut entries = Vec::new();
        while let Some(entry) = backward.next()? {
            entries.insert(0, entry);
        }
        Ok(Box::new(PastHoles { entries }))
    }

    fn backward(&self) -> Result<Box<dyn OplogCursor>> {
        self.inner.backward()
    }

    fn first(&self) -> Option<Timestamp> {
        self.inner.first()
    }

    fn last(&self) -> Option<Timestamp> {
        self.inner.last()
    }

    fn visible(&self) -> Timestamp {
        self.inner.visible()
    }

    fn wait_visible(&self, timestamp: Timestamp) -> Wait {
        self.inner.wait_visible(timestamp)
    }

    fn size(&self) -> TableSize {
        self.inner.size()
    }

    fn truncate_after(&self, timestamp: Timestamp, inclusive: bool) -> Result<()> {
        self.inner.truncate_after(timestamp, inclusive)
    }

    fn reset(&self) -> Result<()> {
        self.inner.reset()
    }

    fn truncate_old(&self) -> Result<usize> {
        self.inner.truncate_old()
    }

    fn set_size_max(&self, bytes: u64) -> Result<()> {
        self.inner.set_size_max(bytes)
    }

    fn size_max(&self) -> u64 {
        self.inner.size_max()
    }

    fn set_retention_min(&self, milliseconds: u64) -> Result<()> {
        self.inner.set_retention_min(milliseconds)
    }

    fn markers(&self) -> Vec<TruncateMarker> {
        self.inner.markers()
    }

    fn pin(&self, name: &str, timestamp: Timestamp) -> Result<Arc<dyn OplogPin>> {
        self.inner.pin(name, timestamp)
    }
}

impl OplogSource for Shell {
    fn oplog(&self) -> Option<&dyn Oplog> {
        let inner = self.inner.oplog()?;
        match self.fault {
            Fault::ReadsPastHoles => Some(self),
            _ => Some(inner),
        }
    }
}

impl BackupSource for Shell {
    fn freeze(&self) -> Result<Box<dyn pando_storage::Freeze>> {
        self.inner.freeze()
    }

    fn begin_backup(&self, options: &BackupOptions) -> Result<Box<dyn Backup>> {
        self.inner.begin_backup(options)
    }

    fn import(&self, directory: &Path, rename: &dyn Fn(&str) -> Option<String>) -> Result<Vec<ImportedTable>> {
        self.inner.import(directory, rename)
    }
}

impl Maintenance for Shell {
    fn verify_table(&self, table: &Table, goes_on: &mut dyn FnMut() -> bool) -> Result<VerifyReport> {
        self.inner.verify_table(table, goes_on)
    }

    fn compact_table(&self, table: &Table, goes_on: &mut dyn FnMut() -> bool) -> Result<()> {
        self.inner.compact_table(table, goes_on)
    }

    fn verify(&self) -> Result<VerifyReport> {
        self.inner.verify()
    }

    fn statistics(&self) -> Statistics {
        self.inner.statistics()
    }

    fn describe(&self, out: &mut dyn Write) -> Result<()> {
        self.inner.describe(out)
    }

    fn set_memory_bytes(&self, bytes: u64) {
        self.inner.set_memory_bytes(bytes);
    }

    fn set_transaction_too_large_threshold(&self, share: f64) {
        self.inner.set_transaction_too_large_threshold(share);
    }
}

impl Engine for Shell {
    fn name(&self) -> &'static str {
        "sabotaged"
    }

    fn shut_down(&self) -> Result<()> {
        self.inner.shut_down()
    }
}
