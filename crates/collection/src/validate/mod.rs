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

mod conformance;
mod consistency;
mod entries;
mod lost_and_found;
mod records;
mod repair;

use crate::write_path::WritePath;
use consistency::Consistency;
use pando_base::{RecordId, Result};
use pando_catalog::{Catalog, Collection, Index, MultikeyComponents};
use pando_doc::{Doc, DocBuilder, Value};
use pando_index::IndexAccess;
use pando_operation::Operation;
use pando_storage::Damage;
use pando_timeseries::TimeseriesOptions;
use std::sync::Arc;

pub use lost_and_found::move_to_lost_and_found;

/// Documents and entries between two looks at whether to stop.
const CHECK_INTERVAL: u64 = 1024;

/// What may be changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Repair {
    /// Nothing.
    #[default]
    Nothing,
    /// Multikey states are widened.
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

    fn warn_once(&mut self, warning: &str) {
        if !self.warnings.iter().any(|known| known == warning) {
            self.warnings.push(warning.to_owned());
        }
    }
}

/// What documents teach of an index's arrays, where the catalog does not know it.
#[derive(Clone, Default)]
struct Uncovered {
    is_found: bool,
    paths: Vec<MultikeyComponents>,
}

/// One index under validation.
struct Target {
    index: Arc<Index>,
    access: Arc<IndexAccess>,
    uncovered: Uncovered,
}

/// A validation in progress.
struct Validation<'a> {
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
}

/// Validates a collection.
pub fn validate_collection(
    operation: &mut Operation,
    write_path: &WritePath,
    catalog: &Arc<Catalog>,
    collection: &Collection,
    options: ValidateOptions,
) -> Result<ValidateReport> {
    let mut targets = Vec::new();
    for index in collection.ready_indexes() {
        let paths = vec![MultikeyComponents::NONE; index.descriptor.tracked_field_count()];
        let uncovered = Uncovered { is_found: false, paths };
        targets.push(Target { index: Arc::clone(index), access: write_path.indexing().access(index)?, uncovered });
    }
    let stored = collection.options.timeseries.as_ref().filter(|_| collection.namespace.is_timeseries_buckets());
    let buckets = stored.map(|stored| TimeseriesOptions::parse(stored.view())).transpose()?;
    let consistency = Consistency::new(options.details_bytes_max);
    let mut validation = Validation {
        write_path,
        catalog,
        collection,
        options,
        targets,
        buckets,
        consistency,
        report: ValidateReport::default(),
        steps: 0,
    };
    validation.report.errors = catalog.metadata_faults(operation, collection)?;
    validation.start_indexes();
    if options.metadata_only {
        return Ok(validation.report);
    }
    if options.verifies_tables && !validation.are_tables_sound(operation)? {
        return Ok(validation.report);
    }
    validation.run(operation)?;
    Ok(validation.report)
}

impl Validation<'_> {
    fn start_indexes(&mut self) {
        let started = |target: &Target| IndexReport { name: target.index.name().to_owned(), ..IndexReport::default() };
        self.report.indexes = self.targets.iter().map(started).collect();
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
        let found = engine.verify_table(self.collection.records.table())?.damage;
        self.report.errors.extend(found.iter().map(told));
        let mut is_sound = found.is_empty();
        for (target, report) in self.targets.iter().zip(&mut self.report.indexes) {
            let found = engine.verify_table(target.index.data.table())?.damage;
            report.errors.extend(found.iter().map(told));
            is_sound &= found.is_empty();
        }
        Ok(is_sound)
    }

    fn run(&mut self, operation: &mut Operation) -> Result<()> {
        self.scan_records(operation, true)?;
        self.scan_entries(operation, true)?;
        self.check_key_counts();
        if self.consistency.has_differences() {
            self.consistency.begin_details();
            self.scan_records(operation, false)?;
            self.scan_entries(operation, false)?;
        }
        self.check_count(operation)?;
        operation.recovery_unit.abandon_snapshot()?;
        self.tell_multikey(operation)?;
        self.tell_differences(operation)
    }

    /// Lets others stop a long validation.
    fn step(&mut self, operation: &Operation) -> Result<()> {
        self.steps += 1;
        if self.steps.is_multiple_of(CHECK_INTERVAL) { operation.context.check() } else { Ok(()) }
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
            let has_arrays = target.index.multikey.is_multikey() || target.uncovered.is_found;
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
