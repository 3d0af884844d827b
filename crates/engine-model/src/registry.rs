//! Tables by ident.

use crate::bulk::ModelBulkLoader;
use crate::cursor::ModelCursor;
use crate::data::{SizeChange, Stamp, View, Writer, is_in_range};
use crate::engine::ModelEngine;
use crate::record::{Change, Record, Redo};
use crate::state::{State, illegal};
use bytes::Bytes;
use pando_base::Timestamp;
use pando_storage::{
    BulkLoader, Cursor, Estimate, PrepareBehaviour, Result, StorageError, Table, TableBody, TableOptions,
    TableRegistry, TableSize,
};
use std::any::Any;
use std::sync::Arc;

struct ModelTable {
    id: u64,
    ident: String,
    options: TableOptions,
}

impl TableBody for ModelTable {
    fn ident(&self) -> &str {
        &self.ident
    }

    fn id(&self) -> u64 {
        self.id
    }

    fn options(&self) -> &TableOptions {
        &self.options
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The id behind a handle.
pub fn id_of(table: &Table) -> Result<u64> {
    match table.as_any().downcast_ref::<ModelTable>() {
        Some(table) => Ok(table.id),
        None => illegal("a table of another engine"),
    }
}

/// Sees everything committed and nothing else.
fn committed_view() -> View {
    View { transaction: None, sequence: u64::MAX, timestamp: None, prepare: PrepareBehaviour::Ignore }
}

impl State {
    fn create_table(&mut self, ident: &str, options: &TableOptions) -> Result<u64> {
        self.check_writable()?;
        if self.data.id_of(ident).is_some() {
            return Err(StorageError::IdentExists(ident.to_owned()));
        }
        let id = self.data.last_table + 1;
        let record = Record::Create { table: id, ident: ident.to_owned(), options: options.clone() };
        record.replay_tables(&mut self.data);
        self.log(record);
        self.changed = true;
        Ok(id)
    }

    fn drop_table(&mut self, ident: &str) -> Result<()> {
        self.check_writable()?;
        let id = self.data.id_of(ident).ok_or_else(|| StorageError::IdentNotFound(ident.to_owned()))?;
        if let Some(table) = self.data.tables.get_mut(&id) {
            table.dropped = true;
        }
        self.log(Record::Drop { table: id, ident: ident.to_owned() });
        self.changed = true;
        Ok(())
    }

    fn set_table_size(&mut self, id: u64, size: TableSize) -> Result<()> {
        self.check_writable()?;
        let now = self.table(id)?.size(|_| true);
        let change = TableSize::new(size.records - now.records, size.bytes - now.bytes);
        let writer = Writer::Committed(self.data.next_sequence());
        let stamp = Stamp { writer, commit: Timestamp::NONE, durable: Timestamp::NONE };
        if let Some(table) = self.data.tables.get_mut(&id) {
            table.sizes.push(SizeChange { stamp, change });
        }
        if self.is_logged(id) {
            let redo = Redo { table: id, commit: stamp.commit, durable: stamp.durable, change: Change::Size(change) };
            self.log(Record::Commit { redo: vec![redo], oplog: Vec::new() });
        }
        self.changed = true;
        Ok(())
    }

    /// Every committed pair of a range.
    fn pairs(&self, id: u64, start: &[u8], end: Option<&[u8]>) -> Result<Vec<(Vec<u8>, Bytes)>> {
        let mut pairs = Vec::new();
        for key in self.table(id)?.points.keys().filter(|key| is_in_range(key, start, end)) {
            if let Some(value) = self.read(id, key, &committed_view())? {
                pairs.push((key.clone(), value));
            }
        }
        Ok(pairs)
    }
}

impl TableRegistry for ModelEngine {
    fn create_table(&self, ident: &str, options: &TableOptions) -> Result<Table> {
        let id = self.shared.change(|state| state.create_table(ident, options))?;
        Ok(Arc::new(ModelTable { id, ident: ident.to_owned(), options: options.clone() }))
    }

    fn open_table(&self, ident: &str) -> Result<Table> {
        let state = self.shared.state.lock();
        let id = state.data.id_of(ident).ok_or_else(|| StorageError::IdentNotFound(ident.to_owned()))?;
        let options = state.table(id)?.options.clone();
        Ok(Arc::new(ModelTable { id, ident: ident.to_owned(), options }))
    }

    fn drop_table(&self, ident: &str) -> Result<()> {
        self.shared.change(|state| state.drop_table(ident))
    }

    fn idents(&self) -> Vec<String> {
        let state = self.shared.state.lock();
        let live = state.data.tables.values().filter(|table| !table.dropped);
        let mut idents: Vec<String> = live.map(|table| table.ident.clone()).collect();
        idents.sort();
        idents
    }

    fn table_size(&self, table: &Table) -> Result<TableSize> {
        Ok(self.shared.state.lock().table(id_of(table)?)?.size(|_| true))
    }

    fn set_table_size(&self, table: &Table, size: TableSize) -> Result<()> {
        let id = id_of(table)?;
        self.shared.change(|state| state.set_table_size(id, size))
    }

    fn table_disk_bytes(&self, table: &Table) -> Result<u64> {
        Ok(self.estimate(table, b"", None)?.bytes)
    }

    fn table_free_bytes(&self, table: &Table) -> Result<u64> {
        // A map has nothing but what is there.
        id_of(table).map(|_| 0)
    }

    fn estimate(&self, table: &Table, start: &[u8], end: Option<&[u8]>) -> Result<Estimate> {
        let pairs = self.shared.state.lock().pairs(id_of(table)?, start, end)?;
        let bytes = pairs.iter().map(|(key, value)| (key.len() + value.len()) as u64).sum();
        Ok(Estimate { records: pairs.len() as u64, bytes })
    }

    fn bulk_load(&self, table: &Table) -> Result<Box<dyn BulkLoader>> {
        let id = id_of(table)?;
        let state = self.shared.state.lock();
        state.check_writable()?;
        match state.table(id)?.is_untouched() {
            true => Ok(Box::new(ModelBulkLoader::new(&self.shared, id))),
            false => illegal("the table is not empty"),
        }
    }

    fn committed_cursor(&self, table: &Table) -> Result<Box<dyn Cursor>> {
        let id = id_of(table)?;
        self.shared.state.lock().table(id)?;
        Ok(Box::new(ModelCursor::free(&self.shared, id, committed_view())))
    }
}
