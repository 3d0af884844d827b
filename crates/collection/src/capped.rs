//! Capped collections: when a new document makes one too large, its oldest documents go.
//!
//! The deletions happen in the unit of work of the insert, so the collection is never seen above its limits by more than
//! one insert. The new document itself stays, also if it alone is larger than the limit. Only a primary deletes by itself;
//! others do what the oplog says.
//!
//! Insertion order is the order of record ids. Two inserts at a time would commit out of that order, and would both delete
//! the same oldest document; so inserts into a replicated capped collection are made one at a time, under the mutex that
//! [`capped_lock_resource`] names, held until the unit of work has ended.
//!
//! Where a collection begins is remembered: the records deleted before would otherwise be stepped over by each insert. It is
//! a hint that is set at commit; nothing is ever inserted before it.

use crate::arguments::DeleteArguments;
use crate::write_path::WritePath;
use pando_base::{RecordId, Result, Uuid};
use pando_catalog::Collection;
use pando_doc::Doc;
use pando_locks::ResourceId;
use pando_operation::Operation;
use pando_storage::{Direction, RecordCursor, TableSize};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// The mutex (to be held in X until the unit of work has ended) under which inserts into, and deletes from, this
/// collection are made; none if they need none.
pub fn capped_lock_resource(collection: &Collection) -> Option<ResourceId> {
    let is_ordered = collection.is_capped() && !collection.is_clustered() && collection.is_replicated();
    is_ordered.then(|| ResourceId::mutex(&format!("capped.{}", collection.uuid)))
}

/// False if documents must be inserted one by one: each may have to push out the one before.
pub fn can_batch_inserts(collection: &Collection) -> bool {
    !collection.is_capped() || collection.is_clustered()
}

/// Where collections begin, as far as known.
#[derive(Default)]
pub(crate) struct CappedPlaces {
    first: Mutex<HashMap<Uuid, RecordId>>,
}

impl CappedPlaces {
    fn get(&self, collection: Uuid) -> Option<RecordId> {
        self.first.lock().get(&collection).cloned()
    }

    fn set(&self, collection: Uuid, first: RecordId) {
        self.first.lock().insert(collection, first);
    }

    pub(crate) fn forget(&self, collection: Uuid) {
        self.first.lock().remove(&collection);
    }

    pub(crate) fn clear(&self) {
        self.first.lock().clear();
    }
}

impl WritePath {
    /// Deletes the oldest documents until the collection is within its limits, or only what was just inserted is left.
    pub(crate) fn delete_past_cap(
        &self,
        operation: &mut Operation,
        collection: &Collection,
        just_inserted: &RecordId,
    ) -> Result<()> {
        if !collection.is_capped() || collection.is_clustered() {
            return Ok(());
        }
        let mut excess = excess(operation, collection)?;
        if !is_over(excess) {
            return Ok(());
        }
        let mut cursor = collection.records.cursor(Direction::Forward);
        let mut oldest = match self.capped_places.get(collection.uuid) {
            Some(first) => read(&mut cursor, operation, Some(&first))?,
            None => read(&mut cursor, operation, None)?,
        };
        while let Some((record_id, document)) = oldest.take_if(|(record_id, _)| record_id != just_inserted) {
            if !is_over(excess) {
                oldest = Some((record_id, document));
                break;
            }
            excess.records -= 1;
            excess.bytes -= i64::try_from(document.size_bytes()).unwrap_or(i64::MAX);
            oldest = read(&mut cursor, operation, None)?;
            self.delete_oldest(operation, collection, &DeleteArguments::new(record_id, document.view()))?;
        }
        if let Some((first, _)) = oldest {
            let (places, uuid) = (Arc::clone(&self.capped_places), collection.uuid);
            operation.recovery_unit.on_commit(move |_| places.set(uuid, first))?;
        }
        Ok(())
    }

    /// The observers come first: the one that writes the oplog sets the timestamp under which the rest is written, and the
    /// insert before had another.
    fn delete_oldest(
        &self,
        operation: &mut Operation,
        collection: &Collection,
        arguments: &DeleteArguments<'_>,
    ) -> Result<()> {
        if WritePath::is_observed(collection) {
            self.observers.about_to_delete(operation, &collection.observed(), arguments.document)?;
            self.observe_delete(operation, collection, arguments)?;
        }
        self.remove_record(operation, collection, arguments)
    }
}

/// By how much the collection, with what this unit has written, is over its limits.
fn excess(operation: &Operation, collection: &Collection) -> Result<TableSize> {
    let (records, options) = (&collection.records, &collection.options);
    let uncommitted = operation.recovery_unit.uncommitted_size(records.table());
    let documents_max = if options.capped_documents_max > 0 { options.capped_documents_max } else { i64::MAX };
    Ok(TableSize {
        records: (records.num_records()? + uncommitted.records).saturating_sub(documents_max),
        bytes: (records.data_size_bytes()? + uncommitted.bytes).saturating_sub(options.capped_size_bytes),
    })
}

fn is_over(excess: TableSize) -> bool {
    excess.records > 0 || excess.bytes > 0
}

/// The record at or after a place, or the next one.
fn read(
    cursor: &mut RecordCursor,
    operation: &mut Operation,
    place: Option<&RecordId>,
) -> Result<Option<(RecordId, Doc)>> {
    let unit = &mut operation.recovery_unit;
    let record = match place {
        Some(place) => cursor.seek(unit, place)?,
        None => cursor.next(unit)?,
    };
    let Some(record_id) = record.map(|record| record.id) else { return Ok(None) };
    Ok(cursor.value_bytes().map(|bytes| (record_id, Doc::trusted(bytes))))
}
