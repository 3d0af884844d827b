//! The engine itself: opening, stopping, and what the model leaves out.

use crate::disk::ModelDisk;
use crate::state::{Shared, State, illegal};
use pando_base::Timestamp;
use pando_storage::{
    Backup, BackupOptions, BackupSource, CheckpointKind, CheckpointOutcome, Engine, Freeze, ImportedTable, Maintenance,
    Result, Statistics, StorageError, VerifyReport,
};
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

/// What the log is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Redo for every table; there is no oplog.
    StandAlone,
    /// The log is the oplog; only tables that are not replicated have redo.
    ReplicaSet,
}

/// The oracle.
pub struct ModelEngine {
    pub(crate) shared: Arc<Shared>,
}

impl ModelEngine {
    /// Opens what is on the disk. An engine that was opened on it before can no longer write.
    pub fn open(disk: &Arc<ModelDisk>, mode: Mode) -> Result<Arc<ModelEngine>> {
        let recovered = disk.recover(mode);
        let switched = recovered.mode.is_some_and(|earlier| earlier != mode);
        let mut state = State {
            mode,
            disk: disk.clone(),
            generation: recovered.generation,
            stopped: false,
            checkpoint_order: recovered.data.order,
            data: recovered.data,
            entries: recovered.entries,
            open: BTreeMap::new(),
            last_number: 0,
            attached_cursors: 0,
            slots: BTreeMap::new(),
            oldest: recovered.oldest,
            stable: recovered.stable,
            initial_data: recovered.stable,
            recovery: recovered.stable,
            checkpoint: recovered.stable,
            latest: Timestamp::NONE,
            all_durable: Timestamp::NONE,
            prepare_epoch: 0,
            changed: false,
            stable_moved: false,
            touched: true,
            unspecified: false,
            wakers: Vec::new(),
            oplog_settings: crate::oplog::Settings::default(),
        };
        state.restart_latest();
        if switched {
            state.take_checkpoint(CheckpointKind::Full)?;
        }
        Ok(Arc::new(ModelEngine { shared: Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() }) }))
    }

    /// Where it lasts.
    pub fn disk(&self) -> Arc<ModelDisk> {
        self.shared.state.lock().disk.clone()
    }

    /// True if the rules leave open what the last changing call should have done.
    pub fn is_unspecified(&self) -> bool {
        self.shared.state.lock().unspecified
    }

    /// True if the oplog has an entry at this timestamp.
    pub fn has_entry(&self, timestamp: Timestamp) -> bool {
        self.shared.state.lock().entries.contains_key(&timestamp)
    }

    /// The lowest timestamp that a slot or a running transaction holds.
    pub fn lowest_hold(&self) -> Option<Timestamp> {
        self.shared.state.lock().lowest_hold()
    }

    /// Whether a checkpoint asked for now would be taken; none where the rules leave it open.
    pub fn expects_checkpoint(&self, kind: CheckpointKind) -> Option<bool> {
        self.shared.state.lock().expects_checkpoint(kind)
    }

    /// Takes a checkpoint although nothing may have changed: to follow an engine that did.
    pub fn take_checkpoint(&self, kind: CheckpointKind) -> Result<CheckpointOutcome> {
        self.shared.change(|state| state.take_checkpoint(kind))
    }
}

impl Engine for ModelEngine {
    fn name(&self) -> &'static str {
        "model"
    }

    fn shut_down(&self) -> Result<()> {
        self.shared.change(|state| {
            if !state.stopped {
                state.check_writable()?;
                state.flush();
                state.checkpoint(CheckpointKind::Automatic)?;
                state.stopped = true;
            }
            Ok(())
        })
    }
}

/// Nothing happens by itself here.
struct Still;

impl Freeze for Still {}

impl BackupSource for ModelEngine {
    fn freeze(&self) -> Result<Box<dyn Freeze>> {
        Ok(Box::new(Still))
    }

    fn begin_backup(&self, _options: &BackupOptions) -> Result<Box<dyn Backup>> {
        illegal("not supported")
    }

    fn import(&self, _directory: &Path, _rename: &dyn Fn(&str) -> Option<String>) -> Result<Vec<ImportedTable>> {
        illegal("not supported")
    }
}

impl Maintenance for ModelEngine {
    fn verify(&self) -> Result<VerifyReport> {
        let log_records = self.shared.state.lock().disk.log_length() as u64;
        Ok(VerifyReport { log_records, ..VerifyReport::default() })
    }

    fn verify_table(&self, _table: &pando_storage::Table, _goes_on: &mut dyn FnMut() -> bool) -> Result<VerifyReport> {
        Ok(VerifyReport::default())
    }

    fn compact_table(&self, _table: &pando_storage::Table, _goes_on: &mut dyn FnMut() -> bool) -> Result<()> {
        Ok(())
    }

    fn statistics(&self) -> Statistics {
        let state = self.shared.state.lock();
        let mut statistics = Statistics::default();
        statistics.gauge("tables.open", state.data.tables.values().filter(|table| !table.dropped).count() as i64);
        statistics.gauge("transactions.open", state.open.len() as i64);
        statistics.counter("log.records", state.disk.log_length() as u64);
        statistics
    }

    fn describe(&self, out: &mut dyn Write) -> Result<()> {
        let state = self.shared.state.lock();
        for (id, table) in state.data.tables.iter().filter(|(_, table)| !table.dropped) {
            writeln!(out, "table {id} '{}': {} keys", table.ident, table.points.len())
                .map_err(|error| StorageError::Io(error.to_string()))?;
        }
        Ok(())
    }

    fn set_memory_bytes(&self, _bytes: u64) {}

    // It refuses nobody for want of memory.
    fn set_transaction_too_large_threshold(&self, _share: f64) {}
}
