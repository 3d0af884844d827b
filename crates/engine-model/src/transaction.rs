//! Transactions as the interface has them: a number, and the state behind the mutex.

use crate::cursor::ModelCursor;
use crate::engine::ModelEngine;
use crate::registry::id_of;
use crate::state::Shared;
use crate::waiting::wait_until;
use bytes::Bytes;
use pando_base::Timestamp;
use pando_storage::{
    BeginOptions, Committed, Cursor, Result, Slot, Table, TableSize, Transaction, TransactionSource, Wait,
};
use std::any::Any;
use std::sync::Arc;

/// A transaction of the model.
pub struct ModelTransaction {
    /// Its engine.
    pub shared: Arc<Shared>,
    /// Its number there.
    pub number: u64,
    /// Given back after its end.
    slots: Vec<Slot>,
}

impl Transaction for ModelTransaction {
    fn get(&self, table: &Table, key: &[u8]) -> Result<Option<Bytes>> {
        let state = self.shared.state.lock();
        let view = state.view_of(self.number)?;
        let id = id_of(table)?;
        state.table(id)?;
        state.read(id, key, &view)
    }

    fn put(&mut self, table: &Table, key: &[u8], value: &[u8]) -> Result<()> {
        let id = id_of(table)?;
        self.shared.change(|state| state.write(self.number, id, key, Some(value)))
    }

    fn delete(&mut self, table: &Table, key: &[u8]) -> Result<()> {
        let id = id_of(table)?;
        self.shared.change(|state| state.write(self.number, id, key, None))
    }

    fn truncate(&mut self, table: &Table, start: &[u8], end: Option<&[u8]>) -> Result<()> {
        let id = id_of(table)?;
        self.shared.change(|state| state.truncate(self.number, id, start, end))
    }

    fn adjust_size(&mut self, table: &Table, change: TableSize) -> Result<()> {
        let id = id_of(table)?;
        self.shared.change(|state| state.adjust_size(self.number, id, change))
    }

    fn append_oplog(&mut self, timestamp: Timestamp, entry: &[u8]) -> Result<()> {
        self.shared.change(|state| state.append_oplog(self.number, timestamp, entry))
    }

    fn cursor(&self, table: &Table) -> Result<Box<dyn Cursor>> {
        let id = id_of(table)?;
        let view = {
            let state = self.shared.state.lock();
            let view = state.view_of(self.number)?;
            state.table(id)?;
            view
        };
        Ok(Box::new(ModelCursor::attached(&self.shared, id, view)))
    }

    fn set_commit_timestamp(&mut self, timestamp: Timestamp) -> Result<()> {
        self.shared.change(|state| state.set_commit_timestamp(self.number, timestamp))
    }

    fn set_durable_timestamp(&mut self, timestamp: Timestamp) -> Result<()> {
        self.shared.change(|state| state.set_durable_timestamp(self.number, timestamp))
    }

    fn hold_slot(&mut self, slot: Slot) {
        self.slots.push(slot);
    }

    fn prepare(&mut self, timestamp: Timestamp) -> Result<()> {
        self.shared.change(|state| state.prepare(self.number, timestamp))
    }

    fn commit(self: Box<Self>) -> Result<Committed> {
        // On an error, dropping rolls back.
        self.shared.change(|state| {
            state.check_commit(self.number)?;
            Ok(Committed { position: state.commit(self.number)? })
        })
    }

    fn roll_back(self: Box<Self>) {}

    fn read_timestamp(&self) -> Option<Timestamp> {
        self.shared.state.lock().open.get(&self.number).and_then(|open| open.view.timestamp)
    }

    fn dirty_bytes(&self) -> u64 {
        self.shared.state.lock().open.get(&self.number).map_or(0, |open| open.dirty_bytes)
    }

    fn is_prepared(&self) -> bool {
        self.shared.state.lock().prepared(self.number).is_some()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for ModelTransaction {
    fn drop(&mut self) {
        // Does nothing to a transaction that has committed. The slots go after this.
        self.shared.change(|state| state.roll_back(self.number));
    }
}

impl TransactionSource for ModelEngine {
    fn begin(&self, options: BeginOptions) -> Result<Box<dyn Transaction>> {
        let number = self.shared.change(|state| state.begin(&options))?;
        Ok(Box::new(ModelTransaction { shared: self.shared.clone(), number, slots: Vec::new() }))
    }

    fn prepare_epoch(&self) -> u64 {
        self.shared.state.lock().prepare_epoch
    }

    fn prepare_wait(&self, epoch: u64) -> Wait {
        wait_until(&self.shared, move |state| state.prepare_epoch > epoch)
    }
}
