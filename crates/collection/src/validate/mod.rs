//! `validate`: do the indexes say what the documents say, and is what is known of them true?
//!
//! The memory does not grow with the collection. In the **first pass** every key that a document should have adds one to a bucket,
//! chosen by a hash of index, key and record id, and every key that an index has takes one away. If all buckets are zero at the end,
//! the indexes are right. If not, the **second pass** goes through everything again and remembers the keys of those buckets alone:
//! what a document should have and no index has is *missing*, what an index has and no document should is *extra*.
//!
//! On the way: documents are documents, in the order of their record ids, as the collection's validator and the specification of BSON
//! want them; indexes are in order, unique ones without duplicates; multikey states cover the documents; counts are right; the
//! catalog on disk and in memory agree.
//!
//! **Repair** removes documents that are none, removes extra keys, inserts missing ones, and widens multikey states. It comes
//! after both passes, in units of work, and only what was found is touched: whoever wants to be sure validates again.
//!
//! The caller holds the collection in X, or has a snapshot that nobody changes; everything is read in one snapshot.

mod arrays;
mod conformance;
mod consistency;
mod entries;
mod lost_and_found;
mod records;
mod repair;
mod throttle;

use crate::write_path::WritePath;
use arrays::Arrays;
use consistency::Consistency;
use pando_base::operation::slice;
use pando_base::{FailPoint, LogValue, RecordId, Result, Severity};
use pando_catalog::{Catalog, Collection, Index, MultikeyComponents, known_fields_of_index};
use pando_doc::{Doc, DocBuilder, DocRef, JsonFormat, Value, doc_to_json};
use pando_index::IndexAccess;
use pando_operation::Operation;
use pando_storage::Damage;
use pando_timeseries::TimeseriesOptions;
use std::sync::Arc;
use std::time::Duration;
use throttle::Throttle;

pub use lost_and_found::move_to_lost_and_found;

/// Has validation take the documents for out of order.
pub(crate) static FAIL_RECORD_STORE_TRAVERSAL: FailPoint = FailPoint::new("failRecordStoreTraversal");
/// Has validation take the entries of indexes for out of order.
pub(crate) static FAIL_INDEX_KEY_ORDERING: FailPoint = FailPoint::new("failIndexKeyOrdering");

/// As many lines are kept for the log.
const NOTES_MAX: usize = 1000;

/// Documents and entries between two looks at whether to stop.
const CHECK_INTERVAL: u64 = 128;

/// A throttled validation waits no longer than this between two looks at whether to stop.
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// What may be changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Repair {
    /// Nothing.
    #[default]
    Nothing,
    /// Multikey states that say more than the documents do are narrowed.
    Multikey,
    /// Everything that can be put right is.
    Everything,
}

/// How to validate.
#[derive(Clone, Copy, Debug, Default)]
pub struct ValidateOptions {
    /// Documents are held against the whole specification of BSON.
    pub checks_conformance: bool,
    /// The engine reads what it has of the collection's tables on disk, first of all.
    pub verifies_tables: bool,
    /// A count that is wrong is an error.
    pub enforces_count: bool,
    /// A count that is wrong is put right.
    pub adjusts_count: bool,
    /// Only what the catalog says is looked at.
    pub metadata_only: bool,
    /// What may be changed.
    pub repair: Repair,
    /// How much memory the second pass may take for what it finds.
    pub details_bytes_max: usize,
    /// How much is read in a second at most; 0 for no limit.
    pub bytes_per_second_max: u64,
}

/// A line for the log: validation itself has none.
#[derive(Clone, Debug)]
pub struct ValidateNote {
    /// How bad it is.
    pub severity: Severity,
    /// The line's id.
    pub id: i32,
    /// What is said.
    pub message: &'static str,
    /// The values.
    pub attributes: Vec<(&'static str, LogValue)>,
}

/// What was found of one index.
#[derive(Clone, Debug, Default)]
pub struct IndexReport {
    /// Its name.
    pub name: String,
    /// Its entries.
    pub keys: i64,
    /// What is odd.
    pub warnings: Vec<String>,
    /// What is wrong.
    pub errors: Vec<String>,
}

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct ValidateReport {
    /// Documents.
    pub records: i64,
    /// Those that are none.
    pub invalid_documents: i64,
    /// Those that are not as the validator, or BSON, wants them.
    pub non_compliant_documents: i64,
    /// Where those lie that are none; not all, if they are many.
    pub corrupt_records: Vec<RecordId>,
    /// The indexes that are ready.
    pub indexes: Vec<IndexReport>,
    /// What is odd.
    pub warnings: Vec<String>,
    /// What is wrong.
    pub errors: Vec<String>,
    /// What the log is to say of it; not everything, if it is much.
    pub notes: Vec<ValidateNote>,
    /// Keys that an index lacks; not all, if they are many.
    pub missing_entries: Vec<Doc>,
    /// Keys that an index has too much; not all, if they are many.
    pub extra_entries: Vec<Doc>,
    /// Something was put right.
    pub is_repaired: bool,
    /// Documents removed.
    pub removed_records: i64,
    /// Keys removed.
    pub removed_entries: i64,
    /// Keys inserted.
    pub inserted_entries: i64,
    /// Documents that stood in the way of a unique index.
    pub moved_documents: i64,
}

impl ValidateReport {
    /// True if nothing is wrong.
    pub fn is_valid(&self) -> bool {
        self.errors.is_empty() && self.indexes.iter().all(|index| index.errors.is_empty())
    }

    fn note(&mut self, note: ValidateNote) {
        if self.notes.len() < NOTES_MAX {
            self.notes.push(note);
        }
    }

    fn warn_once(&mut self, warning: &str) {
        if !self.warnings.iter().any(|known| known == warning) {
            self.warnings.push(warning.to_owned());
        }
    }
}

/// One index under validation.
struct Target {
    index: Arc<Index>,
    access: Arc<IndexAccess>,
    arrays: Arrays,
}

/// A validation in progress: first the documents, then the indexes.
pub struct Validation<'a> {
    write_path: &'a WritePath,
    catalog: &'a Arc<Catalog>,
    collection: &'a Collection,
    options: ValidateOptions,
    targets: Vec<Target>,
    /// Of the buckets, if the documents are such.
    buckets: Option<TimeseriesOptions>,
    consistency: Consistency,
    report: ValidateReport,
    steps: u64,
    throttle: Option<Throttle>,
    /// Nothing further can be looked at, or is to be.
    is_over: bool,
}

/// Validates a collection.
pub fn validate_collection(
    operation: &mut Operation,
    write_path: &WritePath,
    catalog: &Arc<Catalog>,
    collection: &Collection,
    options: ValidateOptions,
) -> Result<ValidateReport> {
    let mut validation = Validation::new(write_path, catalog, collection, options)?;
    validation.scan_documents(operation)?;
    validation.finish(operation)
}

impl<'a> Validation<'a> {
    /// A validation that has looked at nothing.
    pub fn new(
        write_path: &'a WritePath,
        catalog: &'a Arc<Catalog>,
        collection: &'a Collection,
        options: ValidateOptions,
    ) -> Result<Validation<'a>> {
        let mut targets = Vec::new();
        for index in collection.ready_indexes() {
            let paths = vec![MultikeyComponents::NONE; index.descriptor.tracked_field_count()];
            let arrays = Arrays { paths, ..Arrays::default() };
            targets.push(Target { index: Arc::clone(index), access: write_path.indexing().access(index)?, arrays });
        }
        let stored = collection.options.timeseries.as_ref().filter(|_| collection.namespace.is_timeseries_buckets());
        let buckets = stored.map(|stored| TimeseriesOptions::parse(stored.view())).transpose()?;
        let consistency = Consistency::new(options.details_bytes_max);
        let report = ValidateReport::default();
        Ok(Validation {
            write_path,
            catalog,
            collection,
            options,
            targets,
            buckets,
            consistency,
            report,
            steps: 0,
            throttle: None,
            is_over: false,
        })
    }

    /// Looks at what the catalog says, and goes through all documents.
    pub fn scan_documents(&mut self, operation: &mut Operation) -> Result<()> {
        let now_ns = operation.env.clock().monotonic_ns();
        self.throttle = Throttle::new(self.options.bytes_per_second_max, now_ns);
        self.report.errors = self.catalog.metadata_faults(operation, self.collection)?;
        self.start_indexes();
        self.check_specifications();
        self.is_over = match self.options {
            ValidateOptions { metadata_only: true, .. } => true,
            ValidateOptions { verifies_tables: true, .. } => !self.are_tables_sound(operation)?,
            _ => false,
        };
        if self.is_over { Ok(()) } else { self.scan_records(operation, true) }
    }

    /// Goes through all indexes and tells what was found. Documents were gone through before.
    pub fn finish(mut self, operation: &mut Operation) -> Result<ValidateReport> {
        if !self.is_over {
            self.check_indexes(operation)?;
        }
        Ok(self.report)
    }
}

impl Validation<'_> {
    fn start_indexes(&mut self) {
        let started = |target: &Target| IndexReport { name: target.index.name().to_owned(), ..IndexReport::default() };
        self.report.indexes = self.targets.iter().map(started).collect();
    }

    /// Specifications of older versions may have fields that no index has.
    fn check_specifications(&mut self) {
        for index in &self.collection.indexes {
            let specification = index.descriptor.specification.view();
            let known = known_fields_of_index(specification);
            if known.view().field_count() == specification.field_count() {
                continue;
            }
            let name = index.name();
            self.report.warnings.push(format!(
                "The index specification for index '{name}' contains invalid fields. Run the 'collMod' command on the \
                 collection without any arguments to remove the invalid index options"
            ));
            let attributes = vec![
                ("collectionNs", LogValue::from(&self.collection.namespace)),
                ("indexName", name.into()),
                ("spec", json(specification)),
            ];
            let message = "Index specification contains invalid fields. Run the 'collMod' command on the collection \
                           without any arguments to remove the invalid index options";
            self.report.note(ValidateNote { severity: Severity::Warning, id: 5_980_500, message, attributes });
        }
    }

    /// Has the engine read the tables. What is damaged there cannot be read any further.
    fn are_tables_sound(&mut self, operation: &Operation) -> Result<bool> {
        let engine = operation.recovery_unit.engine();
        let told = |damage: &Damage| {
            let Damage { file, offset, detail, .. } = damage;
            format!(
                "verify() found damage in {file} at offset {offset}: {detail}. This indicates structural damage. Not \
                 examining individual documents."
            )
        };
        let mut goes_on = || {
            slice::pause_if_over(&operation.context);
            operation.context.check().is_ok()
        };
        let found = engine.verify_table(self.collection.records.table(), &mut goes_on)?.damage;
        self.report.errors.extend(found.iter().map(told));
        let mut is_sound = found.is_empty();
        for (target, report) in self.targets.iter().zip(&mut self.report.indexes) {
            let found = engine.verify_table(target.index.data.table(), &mut goes_on)?.damage;
            report.errors.extend(found.iter().map(told));
            is_sound &= found.is_empty();
        }
        operation.context.check()?;
        Ok(is_sound)
    }

    fn check_indexes(&mut self, operation: &mut Operation) -> Result<()> {
        self.scan_entries(operation, true)?;
        self.check_key_counts();
        if self.consistency.has_differences() {
            self.consistency.begin_details();
            self.scan_records(operation, false)?;
            self.scan_entries(operation, false)?;
        }
        self.check_count(operation)?;
        operation.recovery_unit.abandon_snapshot()?;
        self.adjust_multikey(operation)?;
        self.tell_differences(operation)
    }

    /// Lets others stop a long validation.
    fn step(&mut self, operation: &Operation) -> Result<()> {
        self.steps += 1;
        if !self.steps.is_multiple_of(CHECK_INTERVAL) {
            return Ok(());
        }
        slice::pause_if_over(&operation.context);
        operation.context.check()
    }

    /// So much was read: waits as long as that takes at the speed that is allowed.
    fn note_read(&mut self, operation: &Operation, bytes: usize) -> Result<()> {
        let Some(throttle) = &mut self.throttle else { return Ok(()) };
        let clock = operation.env.clock();
        let mut wait = throttle.take(bytes as u64, clock.monotonic_ns());
        while !wait.is_zero() {
            operation.context.check()?;
            let pause = wait.min(PAUSE_MAX);
            clock.pause(pause);
            wait -= pause;
        }
        Ok(())
    }

    /// How many entries an index may have.
    fn check_key_counts(&mut self) {
        let documents = self.report.records - self.report.invalid_documents;
        for (target, report) in self.targets.iter().zip(&mut self.report.indexes) {
            let (descriptor, keys) = (&target.index.descriptor, report.keys);
            if descriptor.is_id_index() && keys != documents {
                report.errors.push(format!(
                    "number of _id index entries ({keys}) does not match the number of documents in the index ({documents})"
                ));
            }
            let has_arrays = target.index.multikey.is_multikey() || target.arrays.is_uncovered;
            let is_one_each = !matches!(
                descriptor.kind,
                pando_catalog::IndexKind::Wildcard
                    | pando_catalog::IndexKind::Text
                    | pando_catalog::IndexKind::TwoD
                    | pando_catalog::IndexKind::TwoDSphere
                    | pando_catalog::IndexKind::TwoDSphereBucket
            );
            if is_one_each && !has_arrays && keys > documents {
                report.errors.push(format!(
                    "index {} is not multi-key, but has more entries ({keys}) than documents in the index ({documents})",
                    report.name
                ));
            }
            let leaves_out = descriptor.sparse || descriptor.partial_filter.is_some();
            if is_one_each && !leaves_out && keys < documents {
                report.errors.push(format!(
                    "index {} is not sparse or partial, but has fewer entries ({keys}) than documents in the index \
                     ({documents})",
                    report.name
                ));
            }
        }
    }
}

/// A document for the log.
fn json(document: DocRef<'_>) -> LogValue {
    LogValue::Json(doc_to_json(document, JsonFormat::Relaxed))
}

/// A record id as replies have it.
pub fn record_id_value(id: &RecordId) -> Value<'_> {
    match id {
        RecordId::Long(number) => Value::Int64(*number),
        RecordId::Bytes(bytes) => Value::Binary { subtype: 0, bytes },
    }
}

fn append_record_id(out: &mut DocBuilder, id: &RecordId) {
    out.append("recordId", record_id_value(id));
}
