//! Multikey states: they cover what the documents have, and say no more than that where they may be changed.

use super::records::shown;
use super::{IndexReport, Repair, Target, ValidateNote, Validation, json};
use pando_base::{LogValue, RecordId, Result, Severity};
use pando_catalog::MultikeyComponents;
use pando_doc::{Doc, DocBuilder, DocRef};
use pando_index::KeySet;
use pando_keystring::{Version, to_doc};
use pando_operation::{Operation, write_conflict_retry_blocking};

/// As many documents are told of one index.
const ERRORS_MAX: usize = 100;

/// What documents teach of an index's arrays.
#[derive(Clone, Default)]
pub(super) struct Arrays {
    /// Some document has several keys.
    pub(super) is_multikey: bool,
    /// Some document has arrays where the catalog knows of none.
    pub(super) is_uncovered: bool,
    pub(super) paths: Vec<MultikeyComponents>,
}

impl Target {
    /// Takes in that a document has several keys. If there is a report, a state that does not cover it is told there, and
    /// in lines for the log.
    pub(super) fn learn(
        &mut self,
        document: DocRef<'_>,
        id: &RecordId,
        keys: &KeySet,
        report: Option<&mut IndexReport>,
    ) -> Vec<ValidateNote> {
        self.arrays.is_multikey = true;
        self.arrays.paths.iter_mut().zip(keys.multikey_paths()).for_each(|(known, new)| known.union(new));
        if self.index.multikey.covers(keys.multikey_paths()) {
            return Vec::new();
        }
        self.arrays.is_uncovered = true;
        match report.filter(|report| report.errors.len() < ERRORS_MAX) {
            Some(report) => self.tell_uncovered(document, id, keys, report),
            None => Vec::new(),
        }
    }

    fn tell_uncovered(
        &self,
        document: DocRef<'_>,
        id: &RecordId,
        keys: &KeySet,
        report: &mut IndexReport,
    ) -> Vec<ValidateNote> {
        let (name, pattern, id_shown) = (self.index.name(), &self.index.descriptor.key_pattern, shown(id));
        let note = |id: i32, message: &'static str, named: &'static str, value: (&'static str, LogValue)| {
            let attributes = vec![(named, LogValue::from(name)), ("recordId", id_shown.as_str().into()), value];
            ValidateNote { severity: Severity::Error, id, message, attributes }
        };
        let record = || ("record", json(document));
        let mut notes = Vec::new();
        if self.index.multikey.is_multikey() {
            report.errors.push(format!(
                "Index {name} multikey paths do not cover a document: RecordId {id_shown}, key pattern {pattern}"
            ));
            notes.push(note(5_367_500, "Multikey paths of an index do not cover a document", "index", record()));
        } else {
            let count = keys.iter().count();
            report.errors.push(format!(
                "Index {name} is not multikey but the document with RecordId {id_shown} has {count} key(s) for {pattern}"
            ));
        }
        let message = "Index is not multikey where a document has arrays";
        notes.push(note(7_556_100, message, "indexName", record()));
        let ordering = self.access.generator().ordering();
        for key in keys.iter() {
            let values = to_doc(key.bytes, ordering, key.type_bits, Version::V1).unwrap_or_default();
            let value = ("indexKey", json(named(pattern, &values).view()));
            notes.push(note(7_556_101, "Key of a document with such arrays", "indexName", value));
        }
        notes
    }
}

impl Validation<'_> {
    /// Puts multikey states right as far as that is asked for: those that do not cover all documents are widened, those
    /// that say more than the documents do are narrowed.
    pub(super) fn adjust_multikey(&mut self, operation: &mut Operation) -> Result<()> {
        let (catalog, collection) = (self.catalog, self.collection);
        let observers = &*self.write_path.observers;
        for (target, report) in self.targets.iter().zip(&mut self.report.indexes) {
            let (index, arrays) = (&target.index, &target.arrays);
            let knows_too_much = index.multikey.is_multikey()
                && !(arrays.is_multikey && index.multikey.paths().as_slice() == arrays.paths.as_slice());
            let (widens, narrows) = match self.options.repair {
                Repair::Nothing => (false, false),
                Repair::Multikey => (false, knows_too_much && !arrays.is_uncovered),
                Repair::Everything => (arrays.is_uncovered, knows_too_much && !arrays.is_uncovered),
            };
            if !widens && !narrows {
                continue;
            }
            write_conflict_retry_blocking(operation, "validate", &collection.namespace, |operation| {
                operation.in_unit_of_work(|operation| match widens {
                    true => catalog.set_multikey(operation, observers, collection, index, &arrays.paths),
                    false => catalog.narrow_multikey(operation, collection, index, arrays.is_multikey, &arrays.paths),
                })
            })?;
            report.warnings.push(format!("Updated index {} multikey metadata.", index.name()));
            self.report.is_repaired = true;
        }
        Ok(())
    }
}

/// The values of a key with the names of its fields.
fn named(pattern: &Doc, values: &Doc) -> Doc {
    let mut out = DocBuilder::new();
    for (field, value) in pattern.elements().zip(values.elements()) {
        out.append(field.name, value.value);
    }
    out.finish()
}
