//! Filling a new table.

use crate::record::Record;
use crate::state::{Shared, illegal};
use bytes::Bytes;
use pando_storage::{BulkLoader, KEY_LENGTH_MAX, Result, StorageError, TableSize, VALUE_LENGTH_MAX};
use std::sync::Arc;

/// Collects pairs until `finish`.
pub struct ModelBulkLoader {
    shared: Arc<Shared>,
    table: u64,
    pairs: Vec<(Vec<u8>, Bytes)>,
}

impl ModelBulkLoader {
    /// A loader with nothing in it.
    pub fn new(shared: &Arc<Shared>, table: u64) -> ModelBulkLoader {
        ModelBulkLoader { shared: shared.clone(), table, pairs: Vec::new() }
    }
}

impl BulkLoader for ModelBulkLoader {
    fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if key.len() > KEY_LENGTH_MAX {
            return Err(StorageError::TooLarge("key", key.len(), KEY_LENGTH_MAX));
        }
        if value.len() > VALUE_LENGTH_MAX {
            return Err(StorageError::TooLarge("value", value.len(), VALUE_LENGTH_MAX));
        }
        if self.pairs.last().is_some_and(|(last, _)| last.as_slice() >= key) {
            return illegal("keys must ascend");
        }
        self.pairs.push((key.to_vec(), Bytes::copy_from_slice(value)));
        Ok(())
    }

    fn finish(self: Box<Self>, size: TableSize) -> Result<()> {
        let ModelBulkLoader { shared, table, pairs } = *self;
        shared.change(|state| {
            state.check_writable()?;
            if !state.table(table)?.is_untouched() {
                return Err(StorageError::WriteConflict);
            }
            let ident = state.table(table)?.ident.clone();
            let record = Record::BulkLoad { table, pairs, size };
            record.replay_tables(&mut state.data);
            state.log(record);
            state.disk.pin(state.generation, &ident);
            state.changed = true;
            Ok(())
        })
    }
}
