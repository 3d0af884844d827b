//! `validate`: does every index say what the documents say, are the counts right, is what the catalog says true?

use super::fail_points;
use crate::arguments::Truth;
use crate::locking::{lock_collection, lock_for_read};
use crate::timeseries::on_buckets;
use crate::{Access, Action, CommandRow, Data, Invocation, NamespaceOf, SecondaryOk, arguments, run_boxed};
use pando_base::{AnyParameter, Component, ErrorCode, Namespace, Parameter, Result, Severity, bail, ensure, log};
use pando_catalog::Collection;
use pando_collection::{IndexReport, Repair, ValidateOptions, ValidateReport, Validation, record_id_value};
use pando_doc::{DocBuilder, Number, Value};
use pando_env::Place;
use pando_locks::Mode;
use pando_operation::Operation;
use pando_storage::ReadSource;
use std::sync::Arc;

pub(super) const ROW: CommandRow = CommandRow {
    name: "validate",
    help: "Validate contents of a namespace by scanning its data structures for correctness.",
    run: |invocation, reply| run_boxed(run(invocation, reply)),
    secondary_ok: SecondaryOk::Always,
    is_stopped_when_abandoned: true,
    namespace: NamespaceOf::FirstField,
    privileges: Access::Collection(&[Action::Validate]),
    place: Place::Lanes,
    ..CommandRow::DEFAULT
};

/// How much of what is wrong is remembered.
pub static MAX_VALIDATE_MEMORY_MB: Parameter<i32> = Parameter::new(
    "maxValidateMemoryUsageMB",
    200,
    "How many megabytes of memory validate may take for the inconsistencies that it finds.",
)
.at_least(1);

/// How fast it reads beside clients.
pub static MAX_VALIDATE_MEGABYTES_PER_SECOND: Parameter<i32> = Parameter::new(
    "maxValidateMBperSec",
    0,
    "How many megabytes validate in the background reads in a second; 0 for as many as it can.",
)
.at_least(0);

/// The parameters of this command.
pub const VALIDATE_PARAMETERS: &[&dyn AnyParameter] = &[&MAX_VALIDATE_MEMORY_MB, &MAX_VALIDATE_MEGABYTES_PER_SECOND];

const MEGABYTE: usize = 1024 * 1024;

/// As many bytes of warnings, and of errors, are in a reply.
const TEXTS_BYTES_MAX: usize = 2 * 1024 * 1024;

arguments! {
    struct ValidateArguments<'a> of "validate" lenient {
        background: Truth = "background" or Truth(false),
        full: Truth = "full" or Truth(false),
        repair: Truth = "repair" or Truth(false),
        metadata: Truth = "metadata" or Truth(false),
        enforce_fast_count: Truth = "enforceFastCount" or Truth(false),
        check_conformance: Option<Truth> = "checkBSONConformance",
    }
}

async fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    let arguments = ValidateArguments::parse(&invocation.request)?;
    let is_replicated = invocation.node.replication.is_replica_set();
    let is_read_only = invocation.node.options.is_read_only;
    check_arguments(&arguments, is_replicated, is_read_only)?;
    let namespace = on_buckets(data, &invocation.collection()?)?;
    let mut operation = invocation.operation()?;
    // In the background nobody is kept out; what is found is of one snapshot.
    let is_exclusive = !arguments.background.0;
    match is_exclusive {
        true => lock_collection(&mut operation, &namespace, Mode::X).await?,
        false => lock_for_read(&mut operation).await?,
    }
    if !is_exclusive {
        read_from_checkpoint(&mut operation)?;
    }
    let Some(collection) = find(data, &mut operation, &namespace)? else {
        return skip(invocation, data, &namespace, reply);
    };
    let may_change = is_exclusive && !is_read_only;
    let number = |parameter| usize::try_from(data.services.parameters.get(parameter)).unwrap_or(0);
    let options = ValidateOptions {
        checks_conformance: arguments.full.0
            || arguments.enforce_fast_count.0
            || arguments.check_conformance.is_some_and(|checks| checks.0),
        verifies_tables: arguments.full.0,
        enforces_count: arguments.enforce_fast_count.0,
        adjusts_count: may_change,
        metadata_only: arguments.metadata.0,
        repair: match (arguments.repair.0, may_change && !is_replicated && !arguments.metadata.0) {
            (true, _) => Repair::Everything,
            (false, true) => Repair::Multikey,
            (false, false) => Repair::Nothing,
        },
        details_bytes_max: number(&MAX_VALIDATE_MEMORY_MB).saturating_mul(MEGABYTE),
        bytes_per_second_max: match is_exclusive {
            true => 0,
            false => number(&MAX_VALIDATE_MEGABYTES_PER_SECOND).saturating_mul(MEGABYTE) as u64,
        },
    };
    let report = validate(invocation, data, &mut operation, &collection, options).await?;
    for note in &report.notes {
        let attributes = note.attributes.clone();
        invocation.node.log.write(note.severity, Component::Command, note.id, note.message, attributes);
    }
    append(&collection, &report, arguments.metadata.0, reply);
    Ok(())
}

async fn validate(
    invocation: &Invocation,
    data: &Data,
    operation: &mut Operation,
    collection: &Collection,
    options: ValidateOptions,
) -> Result<ValidateReport> {
    let tasks = invocation.node.env.tasks();
    let mut validation = Validation::new(data.write_path(), &data.catalog, collection, options)?;
    let mut scanned = Ok(());
    tasks.blocking(&mut || scanned = validation.scan_documents(operation));
    scanned?;
    if !options.metadata_only {
        fail_points::DURING_VALIDATION.rest(&invocation.context).await?;
    }
    let (mut validation, mut outcome) = (Some(validation), None);
    tasks.blocking(&mut || outcome = validation.take().map(|validation| validation.finish(operation)));
    match outcome {
        Some(report) => report,
        None => bail!(ErrorCode::InternalError, "validation was not run"),
    }
}

fn check_arguments(arguments: &ValidateArguments<'_>, is_replicated: bool, is_read_only: bool) -> Result<()> {
    let checks_conformance = arguments.check_conformance.is_some_and(|checks| checks.0);
    let refuse_both = |is_refused: bool, one: &str, other: &str| -> Result<()> {
        ensure!(
            !is_refused,
            ErrorCode::InvalidOptions,
            "Running the validate command with both {{ {one}: true }} and {{ {other}: true }} is not supported."
        );
        Ok(())
    };
    let (background, repair) = (arguments.background.0, arguments.repair.0);
    refuse_both(background && arguments.full.0, "background", "full")?;
    refuse_both(background && arguments.enforce_fast_count.0, "background", "enforceFastCount")?;
    ensure!(
        arguments.check_conformance.is_none_or(|checks| checks.0)
            || !(arguments.full.0 || arguments.enforce_fast_count.0),
        ErrorCode::InvalidOptions,
        "Cannot explicitly set 'checkBSONConformance: false' with full validation set."
    );
    ensure!(
        !(repair && is_read_only),
        ErrorCode::InvalidOptions,
        "Running the validate command with {{ repair: true }} in read-only mode is not supported."
    );
    refuse_both(background && repair, "background", "repair")?;
    refuse_both(arguments.enforce_fast_count.0 && repair, "enforceFastCount", "repair")?;
    refuse_both(checks_conformance && repair, "checkBSONConformance", "repair")?;
    ensure!(
        !(repair && is_replicated),
        ErrorCode::InvalidOptions,
        "Running the validate command with {{ repair: true }} can only be performed in standalone mode."
    );
    let others = background || arguments.full.0 || arguments.enforce_fast_count.0 || checks_conformance || repair;
    ensure!(
        !(arguments.metadata.0 && others),
        ErrorCode::InvalidOptions,
        "Running the validate command with {{ metadata: true }} is not supported with any other options"
    );
    Ok(())
}

/// What is read is as of the last checkpoint, or of the oldest time that can be read if that is later: it stays as it is while
/// others write. A node without times reads what is newest when it begins.
fn read_from_checkpoint(operation: &mut Operation) -> Result<()> {
    let checkpoint = operation.recovery_unit.engine().timestamps().checkpoint;
    if checkpoint.is_some() {
        operation.recovery_unit.set_round_up_to_oldest(true)?;
        operation.recovery_unit.set_read_source(ReadSource::Provided(checkpoint))?;
    }
    Ok(())
}

/// The collection; none if it is younger than what is read.
fn find(data: &Data, operation: &mut Operation, namespace: &Namespace) -> Result<Option<Arc<Collection>>> {
    let mut view = data.catalog.establish(operation)?;
    if let Some(collection) = view.collection(&data.catalog, operation, namespace)? {
        return Ok(Some(collection));
    }
    if view.latest().collection(namespace).is_some() {
        return Ok(None);
    }
    let is_view = view.latest().view(namespace)?.is_some();
    ensure!(!is_view, ErrorCode::CommandNotSupportedOnView, "Cannot validate a view");
    bail!(ErrorCode::NamespaceNotFound, "Collection '{namespace}' does not exist to validate.")
}

/// There is nothing yet to look at, and nothing is wrong with it.
fn skip(invocation: &Invocation, data: &Data, namespace: &Namespace, reply: &mut DocBuilder) -> Result<()> {
    let message = "Skipping background validation because the collection is not yet in a checkpoint";
    let log = &invocation.node.log;
    log!(log, Severity::Info, Component::Command, 6868900, message, "nss" = namespace);
    let latest = data.catalog.latest();
    let Some(collection) = latest.collection(namespace) else {
        bail!(ErrorCode::NamespaceNotFound, "Collection '{namespace}' does not exist to validate.")
    };
    append(collection, &ValidateReport::default(), true, reply);
    Ok(())
}

fn append(collection: &Collection, report: &ValidateReport, metadata_only: bool, reply: &mut DocBuilder) {
    reply.append("ns", collection.namespace.as_str());
    reply.append("uuid", Value::Binary { subtype: 4, bytes: collection.uuid.as_bytes() });
    if !metadata_only {
        reply.append("nInvalidDocuments", report.invalid_documents);
        reply.append("nNonCompliantDocuments", report.non_compliant_documents);
        reply.append("nrecords", Number::narrowest(report.records));
        reply.append("nIndexes", i32::try_from(report.indexes.len()).unwrap_or(i32::MAX));
        reply.document("keysPerIndex", |each| {
            report.indexes.iter().for_each(|index| each.append(index.name.as_str(), index.keys));
        });
        reply.document("indexDetails", |details| {
            for index in &report.indexes {
                details.document(index.name.as_str(), |detail| append_index(index, detail));
            }
        });
    }
    reply.append("valid", report.is_valid());
    reply.append("repaired", report.is_repaired);
    // What is said of an index is said of the collection too.
    append_texts("warnings", &all_of(&report.warnings, report, |index| &index.warnings), reply);
    append_texts("errors", &all_of(&report.errors, report, |index| &index.errors), reply);
    reply.array("extraIndexEntries", |array| report.extra_entries.iter().for_each(|entry| array.push(entry)));
    reply.array("missingIndexEntries", |array| report.missing_entries.iter().for_each(|entry| array.push(entry)));
    reply.array("corruptRecords", |array| {
        report.corrupt_records.iter().for_each(|id| array.push(record_id_value(id)));
    });
    if report.is_repaired {
        reply.append("numRemovedCorruptRecords", report.removed_records);
        reply.append("numRemovedExtraIndexEntries", report.removed_entries);
        reply.append("numInsertedMissingIndexEntries", report.inserted_entries);
        reply.append("numDocumentsMovedToLostAndFound", report.moved_documents);
        reply.append("numOutdatedMissingIndexEntry", 0_i64);
    }
}

fn all_of<'a>(
    own: &'a [String],
    report: &'a ValidateReport,
    of_index: impl Fn(&'a IndexReport) -> &'a Vec<String>,
) -> Vec<&'a String> {
    own.iter().chain(report.indexes.iter().flat_map(of_index)).collect()
}

fn append_index(index: &IndexReport, detail: &mut DocBuilder) {
    detail.append("valid", index.errors.is_empty());
    if !index.warnings.is_empty() {
        append_texts("warnings", &index.warnings, detail);
    }
    if !index.errors.is_empty() {
        append_texts("errors", &index.errors, detail);
    }
}

fn append_texts(name: &str, texts: &[impl AsRef<str>], out: &mut DocBuilder) {
    out.array(name, |array| {
        let mut size_bytes = 0;
        for text in texts {
            if size_bytes >= TEXTS_BYTES_MAX {
                break;
            }
            size_bytes += text.as_ref().len();
            array.push(text.as_ref());
        }
    });
}
