//! The documents: each is one, in its place, and has keys.

use super::conformance;
use super::{FAIL_RECORD_STORE_TRAVERSAL, Repair, ValidateNote, Validation, record_id_value};
use crate::cluster_key::cluster_key;
use pando_base::{LogValue, RecordId, Result, Severity};
use pando_catalog::{Collection, CollectionOptions, ValidationAction, ValidationLevel};
use pando_doc::{DocBuilder, DocRef, StringComparator};
use pando_index::KeySet;
use pando_operation::Operation;
use pando_storage::Direction;
use pando_timeseries::check_bucket;
use std::sync::Arc;

/// As many places of bad documents are told.
const CORRUPT_RECORDS_MAX: usize = 10_000;

const INVALID: &str = "Detected one or more invalid documents. See logs.";
const OUT_OF_ORDER: &str = "Detected out-of-order documents. See logs.";
const NOT_AS_VALIDATOR: &str =
    "Detected one or more documents not compliant with the collection's schema. Check logs for log id 5363500.";
const NOT_AS_BUCKET: &str = "Detected one or more documents in this collection incompatible with time-series specifications. \
                             For more info, see logs with log id 6698300.";
const NOT_CONFORMANT: &str = "Detected one or more documents in this collection not conformant to BSON specifications. \
                              For more info, see logs with log id 6825900";

impl Validation<'_> {
    /// Goes through all documents. The first time everything about them is looked at; the second time only their keys.
    pub(super) fn scan_records(&mut self, operation: &mut Operation, is_first: bool) -> Result<()> {
        let strict = self.strict_collection();
        let collection = self.collection;
        let mut cursor = collection.records.cursor(Direction::Forward);
        let (mut previous, mut keys): (Option<RecordId>, KeySet) = (None, KeySet::new());
        loop {
            self.step(operation)?;
            let Some(record) = cursor.next(&mut operation.recovery_unit)? else { break };
            self.note_read(operation, record.value.len())?;
            let id = record.id.clone();
            let parsed = DocRef::parse(record.value);
            if is_first {
                self.report.records += 1;
                if let Some(previous) = &previous
                    && (*previous >= id || FAIL_RECORD_STORE_TRAVERSAL.should_fail())
                {
                    self.error_once(OUT_OF_ORDER);
                    let attributes = vec![("prevRecordId", shown(previous).into()), ("recordId", shown(&id).into())];
                    let (severity, message) = (Severity::Error, "Documents out of order");
                    self.report.note(ValidateNote { severity, id: 20_404, message, attributes });
                }
                previous = Some(id.clone());
            }
            match parsed {
                Err(_) if is_first => self.note_invalid(id),
                Err(_) => {}
                Ok(document) => {
                    if is_first {
                        self.check_document(operation, strict.as_ref(), document, &id)?;
                    }
                    self.add_keys(document, &id, &mut keys, is_first);
                }
            }
        }
        Ok(())
    }

    fn error_once(&mut self, error: &str) {
        if !self.report.errors.iter().any(|known| known == error) {
            self.report.errors.push(error.to_owned());
        }
    }

    fn note_invalid(&mut self, id: RecordId) {
        self.report.invalid_documents += 1;
        self.error_once(INVALID);
        if self.report.corrupt_records.len() < CORRUPT_RECORDS_MAX {
            self.report.corrupt_records.push(id);
        } else {
            self.report.warn_once("Not all corrupted records are listed due to size limitations.");
        }
    }

    /// The collection with a validator that refuses: one that only warns would say nothing here.
    fn strict_collection(&self) -> Option<Collection> {
        let options = &self.collection.options;
        let is_off = options.validation_level == Some(ValidationLevel::Off);
        if options.validator.is_none() || is_off {
            return None;
        }
        let action = Some(ValidationAction::Error);
        let strict = CollectionOptions { validation_action: action, ..CollectionOptions::clone(options) };
        Some(Collection { options: Arc::new(strict), ..self.collection.clone() })
    }

    fn check_document(
        &mut self,
        operation: &Operation,
        strict: Option<&Collection>,
        document: DocRef<'_>,
        id: &RecordId,
    ) -> Result<()> {
        let mut is_compliant = true;
        if let Some(strict) = strict
            && let Err(error) = self.write_path.validator.validate(operation, strict, document)
        {
            is_compliant = false;
            let message = "Document is not compliant with the collection's schema";
            self.note_document(5_363_500, message, id, LogValue::from(&error));
            match self.buckets {
                Some(_) => self.error_once(NOT_AS_VALIDATOR),
                None => self.report.warn_once(NOT_AS_VALIDATOR),
            }
        }
        if is_compliant && let Some(fault) = self.bucket_fault(document)? {
            is_compliant = false;
            let message = "Document is not compliant with time-series specifications";
            self.note_document(6_698_300, message, id, fault.into());
            self.error_once(NOT_AS_BUCKET);
        }
        if self.options.checks_conformance
            && let Some(fault) = conformance::fault(document)
        {
            is_compliant = false;
            self.note_document(6_825_900, "Document is not conformant to BSON specifications", id, fault.into());
            self.report.warn_once(NOT_CONFORMANT);
        }
        self.report.non_compliant_documents += i64::from(!is_compliant);
        self.check_cluster_key(document, id)
    }

    fn note_document(&mut self, id: i32, message: &'static str, record_id: &RecordId, reason: LogValue) {
        let namespace = LogValue::from(&self.collection.namespace);
        let attributes = vec![("namespace", namespace), ("recordId", shown(record_id).into()), ("reason", reason)];
        self.report.note(ValidateNote { severity: Severity::Warning, id, message, attributes });
    }

    /// What is wrong with a document as a bucket of measurements, in collections of such.
    fn bucket_fault(&self, document: DocRef<'_>) -> Result<Option<String>> {
        let Some(options) = &self.buckets else { return Ok(None) };
        let collator = self.write_path.cluster_collator(self.collection)?;
        let strings = collator.as_deref().map(|collator| collator as &dyn StringComparator);
        Ok(check_bucket(&document.to_doc(), options, strings))
    }

    /// A clustered collection's document lies where its cluster key says.
    fn check_cluster_key(&mut self, document: DocRef<'_>, id: &RecordId) -> Result<()> {
        let Some(field) = self.collection.cluster_field() else { return Ok(()) };
        let collator = self.write_path.cluster_collator(self.collection)?;
        let expected =
            document.get(field).map(|key| cluster_key(key, collator.as_deref().map(|collator| collator as _)));
        match expected {
            Some(Ok(expected)) if expected == *id => {}
            _ => self.report.errors.push(format!("Document with {id:?} has a mismatched {field}")),
        }
        Ok(())
    }

    /// What the document should have in each index.
    fn add_keys(&mut self, document: DocRef<'_>, id: &RecordId, keys: &mut KeySet, is_first: bool) {
        let mut key_of_document = DocBuilder::new();
        key_of_document.append_some("_id", document.get("_id"));
        let key_of_document = key_of_document.finish();
        let mut notes = Vec::new();
        for (place, target) in self.targets.iter_mut().enumerate() {
            if let Err(error) = target.access.keys(document, keys) {
                if is_first && let Some(report) = self.report.indexes.get_mut(place) {
                    report.errors.push(format!("{id:?} cannot be indexed: {}", error.reason()));
                }
                continue;
            }
            if is_first && keys.is_multikey() {
                let report = self.report.indexes.get_mut(place).filter(|_| self.options.repair != Repair::Everything);
                notes.extend(target.learn(document, id, keys, report));
            }
            for key in keys.iter() {
                self.consistency.add_expected(place, key, id, key_of_document.bytes());
            }
        }
        notes.into_iter().for_each(|note| self.report.note(note));
    }

    /// Does the store's own count agree?
    pub(super) fn check_count(&mut self, operation: &mut Operation) -> Result<()> {
        let records = self.report.records;
        let collection = self.collection;
        let counted = collection.records.num_records()?;
        if counted == records || collection.namespace.is_oplog() {
            return Ok(());
        }
        if self.options.enforces_count {
            let namespace = &collection.namespace;
            self.report.errors.push(format!(
                "fast count ({counted}) does not match number of records ({records}) for collection '{namespace}'"
            ));
        } else if self.options.adjusts_count {
            let mut size_bytes = 0;
            let mut cursor = collection.records.cursor(Direction::Forward);
            while let Some(record) = cursor.next(&mut operation.recovery_unit)? {
                size_bytes += i64::try_from(record.value.len()).unwrap_or(i64::MAX);
            }
            drop(cursor);
            collection.records.set_size(pando_storage::TableSize::new(records, size_bytes))?;
        }
        Ok(())
    }
}

/// A record id as text of errors.
pub(super) fn shown(id: &RecordId) -> String {
    match record_id_value(id) {
        pando_doc::Value::Int64(number) => number.to_string(),
        _ => format!("{id:?}"),
    }
}
