//! The drain: from side tables to the indexes, and the last look at what was put off.

use crate::builder::{BatchLimits, Builder, Building};
use crate::interceptor::Interceptor;
use crate::temporary::Row;
use pando_base::{Result, ensure};
use pando_catalog::Collection;
use pando_doc::DocRef;
use pando_index::{Arrays, Duplicates, Key, KeySet, SideWrite, duplicate_key_error};
use pando_operation::{Operation, write_conflict_retry_blocking};
use std::sync::Arc;

/// Rows of skipped records and duplicate keys that are looked at together.
const RECHECK_LIMITS: BatchLimits = BatchLimits { count_max: 1000, bytes_max: 16 * 1024 * 1024 };

impl Builder {
    /// Applies some side writes in one unit of work; how many, or none when the pass over all indexes is over. The next call begins
    /// a pass anew. The caller holds the collection in IX; in X, a pass leaves nothing.
    pub fn drain_batch(
        &mut self,
        operation: &mut Operation,
        collection: &Collection,
        limits: BatchLimits,
    ) -> Result<Option<u64>> {
        while let Some(building) = self.indexes.get(self.drained.0) {
            let mut drained = building.drained;
            let Some(interceptor) = &building.interceptor else {
                self.drained = (self.drained.0 + 1, None);
                continue;
            };
            let after = self.drained.1.as_deref();
            let rows = write_conflict_retry_blocking(operation, "createIndexes", &self.namespace, |operation| {
                operation.in_unit_of_work(|operation| {
                    let BatchLimits { count_max, bytes_max } = limits;
                    let unit = &mut operation.recovery_unit;
                    let rows = interceptor.side_writes().rows_after(unit, after, count_max, bytes_max)?;
                    let (inserted, deleted) = self.apply(operation, collection, building, interceptor, &rows)?;
                    Ok((rows, inserted, deleted))
                })
            })?;
            operation.recovery_unit.abandon_snapshot()?;
            let (rows, inserted, deleted) = rows;
            match rows.last() {
                Some((last, _)) => {
                    interceptor.note_drained(rows.len() as u64);
                    self.note_read(&**operation.recovery_unit.engine());
                    let count = rows.len() as u64;
                    drained.applied += count;
                    drained.inserted += inserted;
                    drained.deleted += deleted;
                    if let Some(building) = self.indexes.get_mut(self.drained.0) {
                        building.drained = drained;
                    }
                    self.drained.1 = Some(last.clone());
                    return Ok(Some(count));
                }
                None => self.drained = (self.drained.0 + 1, None),
            }
        }
        self.drained = (0, None);
        Ok(None)
    }

    /// How many side writes were drained, and how many there were, in all indexes.
    pub(crate) fn drain_progress(&self) -> (u64, u64) {
        let interceptors = self.indexes.iter().filter_map(|building| building.interceptor.as_ref());
        interceptors
            .map(|interceptor| interceptor.drain_progress())
            .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }

    fn apply(
        &self,
        operation: &mut Operation,
        collection: &Collection,
        building: &Building,
        interceptor: &Arc<Interceptor>,
        rows: &[Row],
    ) -> Result<(u64, u64)> {
        let (mut inserted, mut deleted) = (0, 0);
        let indexing = self.write_path.indexing();
        let index = &building.index;
        for row in rows {
            let side_write = interceptor.read(row)?;
            match side_write.kind {
                SideWrite::Insert => {
                    inserted += 1;
                    building.insert(self, operation, collection, [side_write.key], &side_write.record_id)?;
                }
                SideWrite::Remove => {
                    deleted += 1;
                    indexing.remove_keys(operation, index, [side_write.key], &side_write.record_id)?;
                }
            }
            interceptor.side_writes().delete(&mut operation.recovery_unit, &row.0)?;
        }
        Ok((inserted, deleted))
    }

    /// Looks again at documents that could not be indexed: those that are there must be by now. The caller holds the collection
    /// in X, and has drained it.
    pub fn retry_skipped(&mut self, operation: &mut Operation, collection: &Collection) -> Result<()> {
        self.note_read(&**operation.recovery_unit.engine());
        let mut keys = std::mem::take(&mut self.keys);
        for place in 0..self.indexes.len() {
            let mut after: Option<Vec<u8>> = None;
            loop {
                operation.context.check()?;
                let (rows, learnt) = self.retry_rows(operation, collection, place, after.as_deref(), &mut keys)?;
                if let Some(building) = self.indexes.get_mut(place) {
                    building.arrays.join(&learnt);
                }
                let Some((last, _)) = rows.into_iter().next_back() else { break };
                after = Some(last);
            }
        }
        self.keys = keys;
        Ok(())
    }

    fn retry_rows(
        &self,
        operation: &mut Operation,
        collection: &Collection,
        place: usize,
        after: Option<&[u8]>,
        keys: &mut KeySet,
    ) -> Result<(Vec<Row>, crate::arrays::LearntArrays)> {
        let Some(building) = self.indexes.get(place) else { return Ok(Default::default()) };
        let Some(interceptor) = &building.interceptor else { return Ok(Default::default()) };
        write_conflict_retry_blocking(operation, "createIndexes", &self.namespace, |operation| {
            operation.in_unit_of_work(|operation| {
                let mut learnt = building.arrays.clone();
                let BatchLimits { count_max, bytes_max } = RECHECK_LIMITS;
                let unit = &mut operation.recovery_unit;
                let rows = interceptor.skipped().rows_after(unit, after, count_max, bytes_max)?;
                for row in &rows {
                    let record_id = interceptor.skipped_record(row)?;
                    let found = collection.records.get(&mut operation.recovery_unit, &record_id)?;
                    let Some(document) = found else { continue };
                    building.access.keys(DocRef::trusted(&document), keys)?;
                    learnt.take_in(Arrays { is_multikey: keys.is_multikey(), paths: keys.multikey_paths() });
                    building.insert(self, operation, collection, keys.iter(), &record_id)?;
                }
                Ok((rows, learnt))
            })
        })
    }

    /// Looks again at keys that two documents have shared: none may be shared by now. The caller holds the collection in X, and has
    /// drained it.
    pub fn check_duplicates(&self, operation: &mut Operation) -> Result<()> {
        for building in &self.indexes {
            let duplicates = building.interceptor.as_ref().and_then(|interceptor| interceptor.duplicates());
            let Some(duplicates) = duplicates else { continue };
            let mut after: Option<Vec<u8>> = None;
            loop {
                operation.context.check()?;
                let BatchLimits { count_max, bytes_max } = RECHECK_LIMITS;
                let unit = &mut operation.recovery_unit;
                let rows = duplicates.rows_after(unit, after.as_deref(), count_max, bytes_max)?;
                for (bytes, type_bits) in &rows {
                    if building.index.data.dup_key_check(unit, bytes)?.is_some() {
                        let (key, ordering) = (Key { bytes, type_bits }, building.access.generator().ordering());
                        return Err(duplicate_key_error(&self.namespace, &building.index.descriptor, key, ordering));
                    }
                }
                let Some((last, _)) = rows.into_iter().next_back() else { break };
                after = Some(last);
            }
        }
        operation.recovery_unit.abandon_snapshot()?;
        Ok(())
    }

    /// Fails if a side table has rows: then the index must not become ready.
    pub(crate) fn require_drained(&self, operation: &mut Operation) -> Result<()> {
        for interceptor in self.indexes.iter().filter_map(|building| building.interceptor.as_ref()) {
            let rows = interceptor.side_writes().rows_after(&mut operation.recovery_unit, None, 1, 1)?;
            let is_drained = rows.is_empty();
            debug_assert!(is_drained, "a pass under X leaves nothing");
            ensure!(is_drained, pando_base::ErrorCode::InternalError, "an index build has left side writes behind");
        }
        Ok(())
    }
}

impl Building {
    /// Puts keys into the index. Where they must be unique and are not, that is noted.
    fn insert<'k>(
        &self,
        builder: &Builder,
        operation: &mut Operation,
        collection: &Collection,
        keys: impl IntoIterator<Item = Key<'k>>,
        record_id: &pando_base::RecordId,
    ) -> Result<()> {
        let indexing = builder.write_path.indexing();
        let mut note = |operation: &mut Operation, key: Key<'_>| match &self.interceptor {
            Some(interceptor) => interceptor.note_duplicate(&mut operation.recovery_unit, key),
            None => Ok(()),
        };
        let mut duplicates = match self.index.descriptor.unique {
            true => Duplicates::Told(&mut note),
            false => Duplicates::Allowed,
        };
        indexing.insert_keys(operation, collection, &self.index, keys, record_id, &mut duplicates)?;
        Ok(())
    }
}
