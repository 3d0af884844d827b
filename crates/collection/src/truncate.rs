//! Emptying a collection at once (`emptycapped`).

use crate::write_path::WritePath;
use pando_base::{ErrorCode, Result, ensure};
use pando_catalog::Collection;
use pando_operation::Operation;
use std::sync::Arc;

impl WritePath {
    /// Removes every document and every key, whatever their number, at the cost of one. The caller holds the collection in
    /// X.
    pub fn truncate(&self, operation: &mut Operation, collection: &Collection) -> Result<()> {
        ensure!(
            collection.indexes.iter().all(|index| index.ready),
            ErrorCode::BackgroundOperationInProgressForNamespace,
            "cannot perform operation: an index build is currently running for collection '{}'",
            collection.namespace
        );
        let mut unit = operation.unit_of_work();
        for index in &collection.indexes {
            unit.recovery_unit.writer()?.truncate(index.data.table(), &[], None)?;
        }
        collection.records.truncate(&mut unit.recovery_unit)?;
        self.observers.on_empty_capped(&mut unit, &collection.observed())?;
        let (places, uuid) = (Arc::clone(&self.capped_places), collection.uuid);
        unit.recovery_unit.on_commit(move |_| places.forget(uuid))?;
        unit.commit()?;
        Ok(())
    }
}
