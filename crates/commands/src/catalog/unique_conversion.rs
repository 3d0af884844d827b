//! Whether an index can become a unique one: no two of its records have the same key.
//!
//! Equal keys lie beside each other, so one walk finds them. The collection is locked by the caller, and the index refuses new
//! duplicates already (`prepareUnique`): what the walk finds stays so.

use pando_base::{Error, ErrorCode, RecordId, Result};
use pando_catalog::{Collection, Index};
use pando_doc::{DocBuilder, DocRef, OwnedValue};
use pando_operation::Operation;
use pando_storage::Direction;

/// So many documents of one key are kept in mind; there would be no room to tell of more.
const RECORDS_MAX: usize = 1 << 20;

/// So many bytes of ids are told.
const TOLD_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Refuses an index with duplicates, with the ids of the documents that share a key.
pub(super) fn check_unique(operation: &mut Operation, collection: &Collection, index: &Index) -> Result<()> {
    let mut violations = Violations { collection, groups: Vec::new(), size_bytes: 0, is_full: false };
    let mut cursor = index.data.cursor(Direction::Forward);
    let (mut key, mut records): (Vec<u8>, Vec<RecordId>) = (Vec::new(), Vec::new());
    loop {
        operation.context.check()?;
        let Some(entry) = cursor.next(&mut operation.recovery_unit)? else { break };
        if records.is_empty() || entry.key != key {
            key.clear();
            key.extend_from_slice(entry.key);
            let id = entry.record_id;
            violations.add(operation, &records)?;
            records.clear();
            records.push(id);
        } else {
            records.push(entry.record_id);
            if records.len() >= RECORDS_MAX {
                violations.add(operation, &records)?;
                violations.is_full = true;
            }
        }
        if violations.is_full {
            break;
        }
    }
    if !violations.is_full {
        violations.add(operation, &records)?;
    }
    operation.recovery_unit.abandon_snapshot()?;
    violations.told()
}

struct Violations<'a> {
    collection: &'a Collection,
    groups: Vec<Vec<OwnedValue>>,
    size_bytes: usize,
    is_full: bool,
}

impl Violations<'_> {
    /// Adds the documents that share a key, if there are several.
    fn add(&mut self, operation: &mut Operation, records: &[RecordId]) -> Result<()> {
        if records.len() < 2 {
            return Ok(());
        }
        let mut group = Vec::with_capacity(records.len().min(1024));
        for record in records {
            operation.context.check()?;
            let Some(bytes) = self.collection.records.get(&mut operation.recovery_unit, record)? else { continue };
            let id = DocRef::trusted(&bytes).get("_id").map_or(OwnedValue::Null, |id| id.to_owned());
            let mut told = DocBuilder::new();
            told.append("_id", &id);
            self.size_bytes += told.size_bytes();
            // At least one is told.
            self.is_full = self.size_bytes > TOLD_BYTES_MAX;
            if self.is_full && !(self.groups.is_empty() && group.is_empty()) {
                break;
            }
            group.push(id);
            if self.is_full {
                break;
            }
        }
        if !group.is_empty() {
            self.groups.push(group);
        }
        Ok(())
    }

    fn told(self) -> Result<()> {
        if self.groups.is_empty() {
            return Ok(());
        }
        let reason = match self.is_full {
            true => {
                "Cannot convert the index to unique. Too many conflicting documents were detected. Please resolve them and \
                 rerun collMod."
            }
            false => {
                "Cannot convert the index to unique. Please resolve conflicting documents before running collMod again."
            }
        };
        let mut details = DocBuilder::new();
        details.array("violations", |violations| {
            for group in &self.groups {
                violations.document(|violation| {
                    violation.array("ids", |ids| group.iter().for_each(|id| ids.push(id)));
                });
            }
        });
        let error = Error::new(ErrorCode::CannotConvertIndexToUnique, reason);
        Err(error.with_details(details.finish().bytes().to_vec()))
    }
}
