//! The engine as the interface knows it: each call a few lines over the core.

use crate::background::Background;
use crate::bulk::EngineBulkLoader;
use crate::core::{Core, point_of, position_of};
use crate::cursor::EngineCursor;
use crate::failure::{of_log, of_runs};
use crate::ledger::Book;
use crate::oplog::EngineOplog;
use crate::options::EngineOptions;
use crate::redo::{TableDescription, encode_table_id, kind};
use crate::registry::disk_bytes;
use crate::table::EngineTable;
use crate::transaction::EngineTransaction;
use pando_base::Timestamp;
use pando_engine_log::PreparedRecord;
use pando_env::Env;
use pando_storage::{
    BeginOptions, BulkLoader, CheckpointKind, CheckpointOutcome, Cursor, Durability, Engine, EngineEvent, Estimate,
    LogPosition, Oplog, OplogSource, PrepareBehaviour, Result, Slot, StorageError, Table, TableBody, TableOptions,
    TableRegistry, TableSize, TimestampControl, Timestamps, Transaction, TransactionSource, Wait,
};
use std::path::Path;
use std::sync::Arc;

/// The durable engine.
pub struct DurableEngine {
    pub(crate) core: Arc<Core>,
    oplog: Option<EngineOplog>,
    background: Background,
}

impl DurableEngine {
    /// Opens the engine of a data directory, or makes a new one.
    pub fn open(env: &Env, directory: &Path, options: EngineOptions) -> Result<Arc<DurableEngine>> {
        let core = crate::open::open(env, directory, options)?;
        let oplog = core.has_oplog().then(|| EngineOplog::new(core.clone()));
        let engine = DurableEngine { core, oplog, background: Background::default() };
        if engine.core.options.background {
            engine.background.start(&engine.core)?;
        }
        Ok(Arc::new(engine))
    }
}

impl Drop for DurableEngine {
    /// Ends the threads. Nothing is flushed: whoever wants that shuts down.
    fn drop(&mut self) {
        self.background.stop(&self.core);
    }
}

impl Engine for DurableEngine {
    fn name(&self) -> &'static str {
        "pando"
    }

    fn shut_down(&self) -> Result<()> {
        if self.core.check_running().is_err() {
            self.background.stop(&self.core);
            return Ok(());
        }
        let core = &self.core;
        let started_ns = core.env.clock().monotonic_ns();
        self.background.stop(core);
        core.take_checkpoint(CheckpointKind::Automatic, false)?;
        core.end_writes("it was shut down");
        core.log.close().map_err(|error| core.noted(of_log(error)))?;
        core.runs.close().map_err(|error| core.of_base(error))?;
        let elapsed_ms = core.env.clock().monotonic_ns().saturating_sub(started_ns) / 1_000_000;
        core.tell(&EngineEvent::ShutDown { elapsed_ms });
        Ok(())
    }
}

impl TableRegistry for DurableEngine {
    fn create_table(&self, ident: &str, options: &TableOptions) -> Result<Table> {
        let core = &self.core;
        core.check_running()?;
        let _one_at_a_time = core.creating.lock();
        if core.registry.by_ident(ident).is_some() {
            return Err(StorageError::IdentExists(ident.to_owned()));
        }
        let id = core.registry.next_id();
        let description = TableDescription { id, ident: ident.to_owned(), options: options.clone() };
        let record = core.prepare_record(kind::CREATE_TABLE, PreparedRecord::default(), &[&description.encode()])?;
        let table = core.registry.make(&core.runs, description, Book::default());
        core.change_in_sequence(Some(record), |_| core.registry.insert(table.clone()))?;
        Ok(table)
    }

    fn open_table(&self, ident: &str) -> Result<Table> {
        let table = self.core.registry.by_ident(ident);
        table.map(|table| table as Table).ok_or_else(|| StorageError::IdentNotFound(ident.to_owned()))
    }

    fn drop_table(&self, ident: &str) -> Result<()> {
        let core = &self.core;
        core.check_running()?;
        let _one_at_a_time = core.creating.lock();
        let table = core.registry.by_ident(ident).ok_or_else(|| StorageError::IdentNotFound(ident.to_owned()))?;
        let prepare =
            || core.prepare_record(kind::DROP_TABLE, PreparedRecord::default(), &[&encode_table_id(table.id())]);
        // What makes room on a full disk may use the reserve.
        let record = match prepare() {
            Err(StorageError::OutOfDiskSpace(_)) if core.runs.release_ballast().map_err(of_runs)? => prepare(),
            prepared => prepared,
        }?;
        core.change_in_sequence(Some(record), |_| core.registry.remove(table.id()))?;
        core.merge_alarm.ring();
        Ok(())
    }

    fn idents(&self) -> Vec<String> {
        self.core.registry.idents()
    }

    fn table_size(&self, table: &Table) -> Result<TableSize> {
        Ok(EngineTable::of(table, self.core.id)?.ledger.lock().latest())
    }

    fn set_table_size(&self, table: &Table, size: TableSize) -> Result<()> {
        let now = self.table_size(table)?;
        let mut transaction = self.begin(BeginOptions::default())?;
        transaction.adjust_size(table, TableSize::new(size.records - now.records, size.bytes - now.bytes))?;
        transaction.commit().map(drop)
    }

    fn table_disk_bytes(&self, table: &Table) -> Result<u64> {
        Ok(disk_bytes(EngineTable::of(table, self.core.id)?))
    }

    fn table_free_bytes(&self, table: &Table) -> Result<u64> {
        Ok(EngineTable::of(table, self.core.id)?.slot.load().history_bytes())
    }

    fn estimate(&self, table: &Table, start: &[u8], end: Option<&[u8]>) -> Result<Estimate> {
        let body = EngineTable::of(table, self.core.id)?;
        let base = body.slot.load().estimate(Some(start), end).map_err(|error| self.core.of_base(error))?;
        let mut estimate = Estimate { records: base.records, bytes: base.bytes };
        crate::overlay::for_each_dirty(&body.overlay, start, end, |key, newest| {
            if let Some(value) = newest.value() {
                estimate.records += 1;
                estimate.bytes += (key.len() + value.len()) as u64;
            }
        });
        Ok(estimate)
    }

    fn bulk_load(&self, table: &Table) -> Result<Box<dyn BulkLoader>> {
        Ok(Box::new(EngineBulkLoader::new(self.core.clone(), table)?))
    }

    fn committed_cursor(&self, table: &Table) -> Result<Box<dyn Cursor>> {
        EngineTable::of(table, self.core.id)?;
        let options = BeginOptions { prepare: PrepareBehaviour::Ignore, ..BeginOptions::default() };
        let view = Arc::new(self.core.open_view(&options)?);
        Ok(Box::new(EngineCursor::new(self.core.clone(), table.clone(), view)))
    }
}

impl TransactionSource for DurableEngine {
    fn begin(&self, options: BeginOptions) -> Result<Box<dyn Transaction>> {
        Ok(Box::new(EngineTransaction::begin(&self.core, options)?))
    }

    fn prepare_epoch(&self) -> u64 {
        self.core.prepared.now()
    }

    fn prepare_wait(&self, epoch: u64) -> Wait {
        self.core.prepared.wait_past(epoch)
    }
}

impl TimestampControl for DurableEngine {
    fn timestamps(&self) -> Timestamps {
        self.core.keeper.all()
    }

    fn set_oldest(&self, timestamp: Timestamp, force: bool) -> Result<()> {
        self.core.keeper.set_oldest(timestamp, force)
    }

    fn set_stable(&self, timestamp: Timestamp) -> Result<()> {
        self.core.keeper.set_stable(timestamp)?;
        self.core.no_holes_moved();
        Ok(())
    }

    fn set_initial_data(&self, timestamp: Timestamp) {
        self.core.keeper.set_initial_data(timestamp);
    }

    fn newest_stored(&self) -> Timestamp {
        let tables = self.core.registry.all().into_iter();
        tables.map(|table| table.slot.load().max_durable()).max().unwrap_or(Timestamp::NONE)
    }

    fn reserve_slot(&self, timestamp: Timestamp) -> Result<Slot> {
        self.core.keeper.reserve(timestamp)?;
        Ok(Slot::new(timestamp, self.core.slots.clone()))
    }
}

impl Durability for DurableEngine {
    fn flush_log(&self) -> Result<LogPosition> {
        self.core.check_running()?;
        let flushed = self.core.log.flush().map_err(|error| self.core.noted(of_log(error)))?;
        Ok(position_of(flushed.into()))
    }

    fn wait_durable(&self, position: LogPosition) -> Wait {
        let point = point_of(position);
        let (core, blocking) = (self.core.clone(), self.core.clone());
        Wait::new(
            async move { core.log.wait_durable_async(point).await.map_err(|error| core.noted(of_log(error))) },
            move || blocking.log.wait_durable(point).map_err(|error| blocking.noted(of_log(error))),
        )
    }

    fn log_end(&self) -> LogPosition {
        self.core.log_end()
    }

    fn checkpoint(&self, kind: CheckpointKind) -> Result<CheckpointOutcome> {
        self.core.take_checkpoint(kind, false)
    }

    fn roll_back_to_stable(&self) -> Result<()> {
        self.core.roll_back_to_stable()
    }

    fn maintain(&self) -> Result<bool> {
        self.core.maintain_step()
    }

    fn stable_table_size(&self, table: &Table) -> Result<TableSize> {
        let body = EngineTable::of(table, self.core.id)?;
        let stable = if body.logged { Timestamp::MAX } else { self.core.keeper.stable() };
        Ok(body.ledger.lock().at(stable))
    }
}

impl OplogSource for DurableEngine {
    fn oplog(&self) -> Option<&dyn Oplog> {
        self.oplog.as_ref().map(|oplog| oplog as &dyn Oplog)
    }
}
