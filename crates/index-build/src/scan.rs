//! The collection scan: from documents to sorters.

use crate::builder::{BatchLimits, Builder, Building, Phase, TypeBits};
use pando_base::record_id::suffix;
use pando_base::{Error, ErrorCode, RecordId, Result};
use pando_catalog::Collection;
use pando_doc::{Doc, DocRef};
use pando_index::{Arrays, KeySet};
use pando_operation::{Operation, write_conflict_retry_blocking};
use pando_sorter::{Sorter, SorterOptions};
use pando_storage::Direction;

impl Builder {
    /// Reads some documents in one snapshot, which is let go of; how many, or none at the end. The caller holds the collection in
    /// IX or more.
    pub fn scan_batch(
        &mut self,
        operation: &mut Operation,
        collection: &Collection,
        limits: BatchLimits,
    ) -> Result<Option<u64>> {
        self.phase = Phase::CollectionScan;
        let (mut count, mut size_bytes, mut skipped) = (0, 0, Vec::new());
        let mut cursor = collection.records.cursor(Direction::Forward).passing_by();
        let unit = &mut operation.recovery_unit;
        let mut record = match &self.position {
            Some(position) => cursor.seek(unit, position)?,
            None => cursor.next(unit)?,
        };
        // New documents push old ones out: what was read last is gone, and others may be that were not read.
        if collection.is_capped()
            && let Some(position) = &self.position
            && record.as_ref().is_none_or(|found| found.id != *position)
        {
            return Err(Error::new(
                ErrorCode::CappedPositionLost,
                format!(
                    "CollectionScan died due to position in capped collection being deleted. Last seen record id: {position:?}"
                ),
            ));
        }
        while let Some(found) = record.take() {
            if self.position.as_ref() != Some(&found.id) {
                let document = DocRef::trusted(found.value);
                for (place, building) in self.indexes.iter_mut().enumerate() {
                    if !building.take_in(document, &found.id, &mut self.keys)? {
                        skipped.push((place, found.id.clone()));
                    }
                }
                count += 1;
                size_bytes += found.value.len();
                self.position = Some(found.id);
            }
            if count >= limits.count_max || size_bytes >= limits.bytes_max {
                break;
            }
            record = cursor.next(unit)?;
        }
        drop(cursor);
        operation.recovery_unit.abandon_snapshot()?;
        self.note_read(&**operation.recovery_unit.engine());
        self.note_skipped(operation, &skipped)?;
        self.documents_read += count as u64;
        Ok((count > 0).then_some(count as u64))
    }

    /// The document that would be read next.
    pub(crate) fn peek(&self, operation: &mut Operation, collection: &Collection) -> Result<Option<Doc>> {
        let mut cursor = collection.records.cursor(Direction::Forward);
        let unit = &mut operation.recovery_unit;
        let mut id = match &self.position {
            Some(position) => cursor.seek(unit, position)?.map(|record| record.id),
            None => cursor.next(unit)?.map(|record| record.id),
        };
        if id.is_some() && id == self.position {
            id = cursor.next(unit)?.map(|record| record.id);
        }
        let document = id.and_then(|_| cursor.value_bytes()).map(Doc::trusted);
        drop(cursor);
        operation.recovery_unit.abandon_snapshot()?;
        Ok(document)
    }

    /// Begins the scan anew.
    pub(crate) fn restart_scan(&mut self, sorting: &SorterOptions) {
        for building in &mut self.indexes {
            building.sorter = Some(Sorter::new(sorting.clone()));
        }
        self.position = None;
        self.documents_read = 0;
    }

    /// What the sorters have in memory.
    pub(crate) fn sorting_bytes(&self) -> u64 {
        let sorters = self.indexes.iter().filter_map(|building| building.sorter.as_ref()).map(Sorter::statistics);
        sorters.map(|done| done.data_bytes.saturating_sub(done.spilled_memory_bytes)).sum()
    }

    /// The scan is over.
    pub fn end_scan(&mut self) {
        self.phase = Phase::BulkLoad;
    }

    fn note_skipped(&self, operation: &mut Operation, skipped: &[(usize, RecordId)]) -> Result<()> {
        if skipped.is_empty() {
            return Ok(());
        }
        write_conflict_retry_blocking(operation, "createIndexes", &self.namespace, |operation| {
            operation.in_unit_of_work(|operation| {
                for (place, record_id) in skipped {
                    let interceptor = self.indexes.get(*place).and_then(|building| building.interceptor.as_ref());
                    if let Some(interceptor) = interceptor {
                        interceptor.note_skipped(&mut operation.recovery_unit, record_id)?;
                    }
                }
                Ok(())
            })
        })
    }
}

impl Building {
    /// Takes the keys of a document; false if it cannot be indexed, which may change before the end. Without an interceptor it is an
    /// error: nobody can change the document.
    fn take_in(&mut self, document: DocRef<'_>, record_id: &RecordId, keys: &mut KeySet) -> Result<bool> {
        match self.access.keys(document, keys) {
            Ok(()) => {}
            Err(_) if self.interceptor.is_some() => return Ok(false),
            Err(error) => return Err(error),
        }
        self.arrays.take_in(Arrays { is_multikey: keys.is_multikey(), paths: keys.multikey_paths() });
        let Some(sorter) = &mut self.sorter else { return Ok(true) };
        for key in keys.iter() {
            self.entry.clear();
            self.entry.extend_from_slice(key.bytes);
            suffix::append(record_id, &mut |bytes| self.entry.extend_from_slice(bytes));
            sorter.add(&self.entry, TypeBits(Box::from(key.type_bits)))?;
        }
        Ok(true)
    }
}
