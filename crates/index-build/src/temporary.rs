//! Tables that belong to a build and go with it.
//!
//! The catalog does not know them: they are found at start by the beginning of their names, and dropped unless a build that is
//! taken up needs them.

use pando_base::Result;
use pando_catalog::Catalog;
use pando_storage::{Engine, RecoveryUnit, StorageError, Table, TableOptions};
use std::sync::Arc;

/// A row: its key and its value.
pub(crate) type Row = (Vec<u8>, Vec<u8>);

/// A table of a build.
#[derive(Clone)]
pub(crate) struct TemporaryTable {
    engine: Arc<dyn Engine>,
    table: Table,
}

impl TemporaryTable {
    /// A new one. If the collection is replicated, so is it: then nothing of it is redone after a crash, and nothing need be.
    pub(crate) fn create(
        engine: &Arc<dyn Engine>,
        catalog: &Catalog,
        purpose: &str,
        is_replicated: bool,
    ) -> Result<TemporaryTable> {
        let options = TableOptions { replicated: is_replicated, ..TableOptions::default() };
        let table = engine.create_table(&catalog.new_internal_ident(purpose), &options)?;
        Ok(TemporaryTable { engine: Arc::clone(engine), table })
    }

    /// One that was left by an earlier life of the server.
    pub(crate) fn open(engine: &Arc<dyn Engine>, ident: &str) -> Result<TemporaryTable> {
        Ok(TemporaryTable { engine: Arc::clone(engine), table: engine.open_table(ident)? })
    }

    pub(crate) fn ident(&self) -> &str {
        self.table.ident()
    }

    pub(crate) fn put(&self, unit: &mut RecoveryUnit, key: &[u8], value: &[u8]) -> Result<()> {
        Ok(unit.writer()?.put(&self.table, key, value)?)
    }

    pub(crate) fn delete(&self, unit: &mut RecoveryUnit, key: &[u8]) -> Result<()> {
        Ok(unit.writer()?.delete(&self.table, key)?)
    }

    /// Rows after this key, as many as this, or as come to so many bytes.
    pub(crate) fn rows_after(
        &self,
        unit: &mut RecoveryUnit,
        after: Option<&[u8]>,
        count_max: usize,
        bytes_max: usize,
    ) -> Result<Vec<Row>> {
        let (mut rows, mut size_bytes) = (Vec::new(), 0);
        let mut cursor = unit.reader()?.cursor(&self.table)?;
        let mut entry = match after {
            Some(after) => cursor.seek(after)?,
            None => cursor.first()?,
        };
        while let Some(found) = entry.filter(|_| rows.len() < count_max && size_bytes < bytes_max) {
            if Some(found.key) != after {
                size_bytes += found.key.len() + found.value.len();
                rows.push((found.key.to_vec(), found.value.to_vec()));
            }
            entry = cursor.next()?;
        }
        Ok(rows)
    }

    /// The last key, committed by anybody.
    pub(crate) fn last_key(&self) -> Result<Option<Vec<u8>>> {
        let mut cursor = self.engine.committed_cursor(&self.table)?;
        Ok(cursor.last()?.map(|entry| entry.key.to_vec()))
    }

    /// Drops it; fine if it is gone.
    pub(crate) fn drop_table(&self) -> Result<()> {
        match self.engine.drop_table(self.table.ident()) {
            Ok(()) | Err(StorageError::IdentNotFound(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
