//! What was found is told, and put right where that is asked for.

use super::consistency::Difference;
use super::lost_and_found::move_to_lost_and_found;
use super::{Repair, ValidateNote, Validation, append_record_id, json};
use pando_base::{ErrorCode, RecordId, Result, Severity};
use pando_doc::{Doc, DocBuilder, DocRef};
use pando_index::{Duplicates, Key};
use pando_keystring::{Version, to_doc};
use pando_operation::{Operation, write_conflict_retry_blocking};

/// Entries that are written in one unit of work.
const UNIT_ENTRIES: usize = 500;
/// So many bytes of entries are told.
const TOLD_BYTES_MAX: usize = 1024 * 1024;

impl Validation<'_> {
    /// Missing and extra entries, and documents that are none.
    pub(super) fn tell_differences(&mut self, operation: &mut Operation) -> Result<()> {
        let repairs = self.options.repair == Repair::Everything;
        if repairs {
            self.remove_corrupt(operation)?;
        }
        let missing: Vec<(Difference, Vec<u8>)> = std::mem::take(&mut self.consistency.missing).into_iter().collect();
        let extra = std::mem::take(&mut self.consistency.extra);
        if self.consistency.is_cut_off {
            let told = "Not all index entry inconsistencies are reported due to memory limitations.";
            self.report.errors.push(told.to_owned());
        }
        if missing.is_empty() && extra.is_empty() {
            return Ok(());
        }
        if repairs {
            self.put_right(operation, &missing, &extra)?;
            return Ok(());
        }
        if !missing.is_empty() {
            self.report.warnings.push(format!("Detected {} missing index entries.", missing.len()));
        }
        if !extra.is_empty() {
            self.report.warnings.push(format!("Detected {} extra index entries.", extra.len()));
        }
        let mut told_bytes = 0;
        for (entry, id) in &missing {
            let told = self.told(entry, Some(id));
            self.blame(entry.index);
            told_bytes += told.size_bytes();
            if told_bytes <= TOLD_BYTES_MAX {
                self.report.missing_entries.push(told);
            }
        }
        for entry in &extra {
            let told = self.told(entry, None);
            self.blame(entry.index);
            told_bytes += told.size_bytes();
            if told_bytes <= TOLD_BYTES_MAX {
                self.report.extra_entries.push(told);
            }
        }
        if told_bytes > TOLD_BYTES_MAX {
            let told = "Not all index entry inconsistencies are listed due to size limitations.";
            self.report.errors.push(told.to_owned());
        }
        Ok(())
    }

    fn blame(&mut self, index: usize) {
        if let Some(report) = self.report.indexes.get_mut(index) {
            let error = format!("Index with name '{}' has inconsistencies.", report.name);
            if !report.errors.contains(&error) {
                report.errors.push(error);
                if let Some(target) = self.targets.get(index) {
                    let attributes = vec![("spec", json(target.index.descriptor.specification.view()))];
                    let message = "Index with inconsistencies";
                    self.report.note(ValidateNote { severity: Severity::Error, id: 7_463_100, message, attributes });
                }
            }
        }
    }

    fn told(&self, entry: &Difference, id: Option<&[u8]>) -> Doc {
        let mut out = DocBuilder::new();
        let target = self.targets.get(entry.index);
        out.append("indexName", target.map_or("", |target| target.index.name()));
        append_record_id(&mut out, &entry.record_id);
        let id = id.and_then(|id| DocRef::trusted(id).get("_id"));
        out.append_some("idKey", id);
        if let Some(target) = target {
            let ordering = target.access.generator().ordering();
            let values = to_doc(&entry.key, ordering, &entry.type_bits, Version::V1).unwrap_or_default();
            out.append("indexKey", values);
        }
        out.finish()
    }

    fn remove_corrupt(&mut self, operation: &mut Operation) -> Result<()> {
        let collection = self.collection;
        let corrupt = std::mem::take(&mut self.report.corrupt_records);
        for ids in corrupt.chunks(UNIT_ENTRIES) {
            write_conflict_retry_blocking(operation, "validate", &collection.namespace, |operation| {
                operation.in_unit_of_work(|operation| {
                    for id in ids {
                        collection.records.delete(&mut operation.recovery_unit, id)?;
                    }
                    Ok(())
                })
            })?;
        }
        if !corrupt.is_empty() {
            self.report.removed_records = i64::try_from(corrupt.len()).unwrap_or(i64::MAX);
            self.report.records -= self.report.removed_records;
            self.report.invalid_documents -= self.report.removed_records;
            self.report.errors.retain(|error| !error.starts_with("Detected one or more invalid documents"));
            self.report.warnings.push(format!("Removed {} invalid documents.", corrupt.len()));
            self.report.is_repaired = true;
        }
        self.report.corrupt_records = corrupt;
        Ok(())
    }

    fn put_right(
        &mut self,
        operation: &mut Operation,
        missing: &[(Difference, Vec<u8>)],
        extra: &[Difference],
    ) -> Result<()> {
        let (collection, indexing) = (self.collection, self.write_path.indexing());
        for entries in extra.chunks(UNIT_ENTRIES) {
            write_conflict_retry_blocking(operation, "validate", &collection.namespace, |operation| {
                operation.in_unit_of_work(|operation| {
                    for entry in entries {
                        let Some(target) = self.targets.get(entry.index) else { continue };
                        let key = Key { bytes: &entry.key, type_bits: &entry.type_bits };
                        indexing.remove_keys(operation, &target.index, [key], &entry.record_id)?;
                    }
                    Ok(())
                })
            })?;
        }
        let mut inserted = 0;
        for entries in missing.chunks(UNIT_ENTRIES) {
            let in_the_way =
                write_conflict_retry_blocking(operation, "validate", &collection.namespace, |operation| {
                    operation.in_unit_of_work(|operation| self.insert_missing(operation, entries))
                })?;
            inserted += entries.len() - in_the_way.len();
            for id in &in_the_way {
                self.move_away(operation, id)?;
            }
        }
        self.report.is_repaired = true;
        self.report.removed_entries = i64::try_from(extra.len()).unwrap_or(i64::MAX);
        self.report.inserted_entries = i64::try_from(inserted).unwrap_or(i64::MAX);
        if !extra.is_empty() {
            self.report.warnings.push(format!("Removed {} extra index entries.", extra.len()));
        }
        if !missing.is_empty() {
            self.report.warnings.push(format!("Inserted {inserted} missing index entries."));
        }
        let touched = |entry: &Difference, by: i64| (entry.index, by);
        let changes = extra.iter().map(|entry| touched(entry, -1));
        let changes: Vec<_> = changes.chain(missing.iter().map(|(entry, _)| touched(entry, 1))).collect();
        for (index, by) in changes {
            if let Some(report) = self.report.indexes.get_mut(index) {
                report.keys += by;
                // What the counts said is true no more.
                report.errors.retain(|error| !error.contains(" entries ("));
            }
        }
        Ok(())
    }

    /// Inserts entries; gives the documents whose keys others have in a unique index.
    fn insert_missing(&self, operation: &mut Operation, entries: &[(Difference, Vec<u8>)]) -> Result<Vec<RecordId>> {
        let (collection, indexing) = (self.collection, self.write_path.indexing());
        let mut in_the_way = Vec::new();
        for (entry, _) in entries {
            let Some(target) = self.targets.get(entry.index) else { continue };
            let key = Key { bytes: &entry.key, type_bits: &entry.type_bits };
            let unique = target.index.descriptor.unique || target.index.descriptor.is_id_index();
            let mut duplicates = if unique { Duplicates::Refused } else { Duplicates::Allowed };
            let (index, id) = (&target.index, &entry.record_id);
            match indexing.insert_keys(operation, collection, index, [key], id, &mut duplicates) {
                Err(error) if error.code() == ErrorCode::DuplicateKey => in_the_way.push(id.clone()),
                outcome => drop(outcome?),
            }
        }
        in_the_way.sort_unstable();
        in_the_way.dedup();
        Ok(in_the_way)
    }

    /// A document goes where others cannot be in its way; its keys in other indexes go with it.
    fn move_away(&mut self, operation: &mut Operation, id: &RecordId) -> Result<()> {
        let (catalog, write_path, collection) = (self.catalog, self.write_path, self.collection);
        let moved = move_to_lost_and_found(operation, catalog, write_path, collection, id)?;
        if moved {
            self.report.moved_documents += 1;
            self.report.records -= 1;
            let told =
                "Removed documents that have duplicate keys in unique indexes, see the lost and found collection";
            self.report.warn_once(told);
        }
        Ok(())
    }
}
