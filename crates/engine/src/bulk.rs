//! Bulk load: sorted input becomes the first run of a new table, past overlay and log.

use crate::checkpoint::table_write_options;
use crate::core::Core;
use crate::failure::of_runs;
use crate::registry::record_of;
use crate::table::EngineTable;
use pando_base::Timestamp;
use pando_engine_runs::{Edit, RunWriter, Stamp, Version, WriterOptions};
use pando_storage::{BulkLoader, Result, StorageError, Table, TableBody, TableSize};
use std::sync::Arc;

/// Loads one table.
pub struct EngineBulkLoader {
    core: Arc<Core>,
    table: Table,
    writer: Option<RunWriter>,
    has_keys: bool,
}

impl EngineBulkLoader {
    /// Starts a load. The table must be empty.
    pub fn new(core: Arc<Core>, table: &Table) -> Result<EngineBulkLoader> {
        core.check_running()?;
        let body = EngineTable::of(table, core.id)?;
        check_empty(body)?;
        let mut writer = core.runs.writer(WriterOptions::default()).map_err(of_runs)?;
        writer.begin_table(body.id(), table_write_options(body)).map_err(of_runs)?;
        Ok(EngineBulkLoader { core, table: table.clone(), writer: Some(writer), has_keys: false })
    }
}

fn check_empty(body: &EngineTable) -> Result<()> {
    match body.overlay.is_empty() && body.ranges.is_empty() && body.slot.load().is_empty() {
        true => Ok(()),
        false => Err(StorageError::WriteConflict),
    }
}

impl BulkLoader for EngineBulkLoader {
    fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        crate::transaction::check_lengths(key, value)?;
        let Some(writer) = &mut self.writer else { return Ok(()) };
        let version = Version { stamp: Stamp::SETTLED, value: Some(value) };
        writer.add_key(key, version).map_err(of_runs)?;
        self.has_keys = true;
        Ok(())
    }

    fn finish(mut self: Box<Self>, size: TableSize) -> Result<()> {
        let Some(mut writer) = self.writer.take() else { return Ok(()) };
        let core = &self.core;
        let body = EngineTable::of(&self.table, core.id)?;
        let runs = match self.has_keys {
            false => None,
            true => {
                writer.finish_table().map_err(of_runs)?;
                Some(writer.finish().map_err(|error| core.noted(of_runs(core.runs.note_failure(error))))?)
            }
        };
        // The manifest may only know the table once the log does: numbers of tables come from both.
        core.flush()?;
        let _checkpoint = core.lock_checkpoint();
        check_empty(body)?;
        let mut recorded = body.checkpointed.lock().clone();
        recorded.settled += size;
        let record = record_of(body, &recorded);
        let mut edit = Edit { add: runs, ..Edit::default() };
        match body.is_in_manifest() {
            true => edit.update.push(record),
            false => edit.create.push(record),
        }
        body.set_loaded(u64::MAX);
        if let Err(error) = core.install(edit) {
            body.set_loaded(0);
            return Err(error);
        }
        body.set_in_manifest();
        *body.checkpointed.lock() = recorded;
        let stable = core.keeper.stable();
        core.change_in_sequence(None, |sequence| {
            body.set_loaded(sequence);
            body.ledger.lock().enter(Timestamp::NONE, size, stable);
        })?;
        Ok(())
    }
}
