//! Flushes, checkpoints and rollback to stable.

use crate::data::{Data, Version, Writer};
use crate::engine::ModelEngine;
use crate::registry::id_of;
use crate::state::{State, illegal};
use crate::waiting::wait_until;
use pando_base::Timestamp;
use pando_storage::{
    CheckpointKind, CheckpointOutcome, Durability, LogPosition, Result, StorageError, Table, TableSize, Wait,
};

impl State {
    /// Flushes the log.
    pub fn flush(&self) {
        self.disk.flush(self.generation, self.all_durable);
    }

    /// The committed data; of replicated tables only what is stable, if a stable timestamp is given.
    fn committed_copy(&self, stable: Option<Timestamp>) -> Data {
        let mut copy = self.data.clone();
        copy.tables.retain(|_, table| !table.dropped);
        for (id, table) in &mut copy.tables {
            let cut = if self.is_logged(*id) { None } else { stable };
            table.retain(|stamp| {
                matches!(stamp.writer, Writer::Committed(_)) && !cut.is_some_and(|cut| stamp.is_after(cut))
            });
        }
        copy
    }

    /// Whether a checkpoint asked for now is a full one; none if it is not time yet.
    fn checkpoint_is_full(&self, kind: CheckpointKind) -> Option<bool> {
        if kind == CheckpointKind::Full || self.initial_data.is_none() {
            return Some(true);
        }
        let too_early = self.stable.is_none() || self.stable < self.initial_data;
        (!too_early).then_some(false)
    }

    /// Whether the rules ask for a checkpoint now; none if they leave it open.
    pub fn expects_checkpoint(&self, kind: CheckpointKind) -> Option<bool> {
        let Some(full) = self.checkpoint_is_full(kind) else { return Some(false) };
        // A full one would be the same at any stable timestamp.
        match (self.changed || (self.stable_moved && !full), self.touched || self.stable_moved) {
            (true, _) => Some(true),
            (false, true) => None,
            (false, false) => (kind == CheckpointKind::Automatic).then_some(false),
        }
    }

    /// Takes a checkpoint, changed or not, where one is possible.
    pub fn take_checkpoint(&mut self, kind: CheckpointKind) -> Result<CheckpointOutcome> {
        self.check_writable()?;
        let Some(full) = self.checkpoint_is_full(kind) else { return Ok(CheckpointOutcome::default()) };
        let stable = if full { Timestamp::NONE } else { self.stable };
        let copy = self.committed_copy((!full).then_some(self.stable));
        let written = copy.tables.values().flat_map(|table| table.points.values());
        let is_new = |versions: &&Vec<Version>| versions.iter().any(|version| version.order > self.checkpoint_order);
        let keys = written.filter(is_new).count() as u64;
        self.disk.write_checkpoint(self.generation, copy, stable, self.oldest, self.all_durable);
        self.checkpoint = stable;
        self.checkpoint_order = self.data.order;
        self.changed = false;
        self.touched = false;
        self.stable_moved = false;
        Ok(CheckpointOutcome { taken: true, timestamp: stable, keys, bytes: 0 })
    }

    /// Takes a checkpoint by the rules; where they leave it open, it is taken.
    pub fn checkpoint(&mut self, kind: CheckpointKind) -> Result<CheckpointOutcome> {
        match self.expects_checkpoint(kind) {
            Some(false) => Ok(CheckpointOutcome::default()),
            Some(true) | None => self.take_checkpoint(kind),
        }
    }

    fn roll_back_to_stable(&mut self) -> Result<()> {
        self.check_writable()?;
        if !self.open.is_empty() || self.attached_cursors > 0 {
            return Err(StorageError::Busy("transactions are open".into()));
        }
        if self.stable.is_none() {
            return illegal("stable is not set");
        }
        let stable = self.stable;
        // What the log has acknowledged stays: logged tables are not rolled back.
        let ids: Vec<u64> = self.data.tables.keys().copied().filter(|id| !self.is_logged(*id)).collect();
        for id in ids {
            if let Some(table) = self.data.tables.get_mut(&id) {
                table.retain(|stamp| !stamp.is_after(stable));
            }
        }
        self.touched = true;
        self.restart_latest();
        Ok(())
    }
}

impl Durability for ModelEngine {
    fn flush_log(&self) -> Result<LogPosition> {
        let state = self.shared.state.lock();
        state.check_writable()?;
        state.flush();
        Ok(state.log_end())
    }

    fn wait_durable(&self, position: LogPosition) -> Wait {
        if let Err(stopped) = self.shared.state.lock().check_writable() {
            return Wait::done(Err(stopped));
        }
        wait_until(&self.shared, move |state| {
            let no_hole_before = state.all_durable >= position.oplog;
            if no_hole_before {
                state.disk.promise(state.generation, &position);
            }
            no_hole_before
        })
    }

    fn log_end(&self) -> LogPosition {
        self.shared.state.lock().log_end()
    }

    fn checkpoint(&self, kind: CheckpointKind) -> Result<CheckpointOutcome> {
        self.shared.change(|state| state.checkpoint(kind))
    }

    fn roll_back_to_stable(&self) -> Result<()> {
        self.shared.change(State::roll_back_to_stable)
    }

    fn maintain(&self) -> Result<bool> {
        Ok(false)
    }

    fn stable_table_size(&self, table: &Table) -> Result<TableSize> {
        let state = self.shared.state.lock();
        let id = id_of(table)?;
        let stable = if state.is_logged(id) { Timestamp::MAX } else { state.stable };
        Ok(state.table(id)?.size(|stamp| !stamp.is_after(stable)))
    }
}
