//! `validate`: does every index say what the documents say, and are the counts right?

use crate::arguments::SafeBool;
use crate::locking::{lock_collection, lock_for_read};
use crate::timeseries::on_buckets;
use crate::{Access, Action, CommandRow, Data, Invocation, NamespaceOf, SecondaryOk, arguments, run_boxed};
use pando_base::{ErrorCode, Namespace, Result, bail, ensure};
use pando_catalog::{Collection, Index};
use pando_collection::check_indexes;
use pando_doc::DocBuilder;
use pando_locks::Mode;
use pando_operation::Operation;
use pando_storage::Direction;
use std::sync::Arc;

pub(super) const ROW: CommandRow = CommandRow {
    name: "validate",
    help: "Validate contents of a namespace by scanning its data structures for correctness.",
    run: |invocation, reply| run_boxed(run(invocation, reply)),
    secondary_ok: SecondaryOk::Always,
    is_stopped_when_abandoned: true,
    namespace: NamespaceOf::FirstField,
    privileges: Access::Collection(&[Action::Validate]),
    ..CommandRow::DEFAULT
};

arguments! {
    struct ValidateArguments<'a> of "validate" lenient {
        background: SafeBool = "background" or SafeBool(false),
        full: SafeBool = "full" or SafeBool(false),
        repair: SafeBool = "repair" or SafeBool(false),
        metadata: SafeBool = "metadata" or SafeBool(false),
        enforce_fast_count: SafeBool = "enforceFastCount" or SafeBool(false),
    }
}

/// What was found.
struct Findings {
    documents: i64,
    keys: Vec<(Arc<Index>, i64)>,
    faults: Vec<String>,
}

async fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    let arguments = ValidateArguments::parse(&invocation.request)?;
    check_arguments(&arguments)?;
    let namespace = on_buckets(data, &invocation.collection()?)?;
    let mut operation = invocation.operation()?;
    // In the background nobody is kept out; what is found is of one snapshot.
    let is_exclusive = !arguments.background.0;
    match is_exclusive {
        true => lock_collection(&mut operation, &namespace, Mode::X).await?,
        false => lock_for_read(&mut operation).await?,
    }
    let collection = find(data, &mut operation, &namespace)?;
    let mut found = None;
    invocation.node.env.tasks().blocking(&mut || found = Some(examine(data, &mut operation, &collection)));
    let Some(found) = found else { bail!(ErrorCode::InternalError, "validation was not run") };
    append(&collection, &found?, reply);
    Ok(())
}

fn check_arguments(arguments: &ValidateArguments<'_>) -> Result<()> {
    let with_background = [
        (arguments.full.0, "{ full: true }"),
        (arguments.enforce_fast_count.0, "{ enforceFastCount: true }"),
        (arguments.repair.0, "{ repair: true }"),
    ];
    for (is_set, option) in with_background {
        ensure!(
            !(arguments.background.0 && is_set),
            ErrorCode::InvalidOptions,
            "Running the validate command with both {{ background: true }} and {option} is not supported."
        );
    }
    ensure!(
        !arguments.repair.0,
        ErrorCode::InvalidOptions,
        "Running the validate command with {{ repair: true }} can only be performed in standalone mode."
    );
    Ok(())
}

fn find(data: &Data, operation: &mut Operation, namespace: &Namespace) -> Result<Arc<Collection>> {
    let mut view = data.catalog.establish(operation)?;
    if let Some(collection) = view.collection(&data.catalog, operation, namespace)? {
        return Ok(collection);
    }
    let is_view = view.latest().view(namespace)?.is_some();
    ensure!(!is_view, ErrorCode::CommandNotSupportedOnView, "Cannot validate a view");
    bail!(ErrorCode::NamespaceNotFound, "Collection '{namespace}' does not exist to validate.")
}

fn examine(data: &Data, operation: &mut Operation, collection: &Collection) -> Result<Findings> {
    let faults = check_indexes(operation, data.write_path().indexing(), collection)?;
    let mut documents = 0;
    let mut cursor = collection.records.cursor(Direction::Forward);
    while cursor.next(&mut operation.recovery_unit)?.is_some() {
        documents += 1;
    }
    let mut keys = Vec::with_capacity(collection.indexes.len());
    for index in collection.ready_indexes() {
        let (mut cursor, mut count) = (index.data.cursor(Direction::Forward), 0);
        while cursor.next(&mut operation.recovery_unit)?.is_some() {
            count += 1;
        }
        keys.push((Arc::clone(index), count));
    }
    Ok(Findings { documents, keys, faults })
}

fn append(collection: &Collection, findings: &Findings, reply: &mut DocBuilder) {
    let is_valid = findings.faults.is_empty();
    let is_of =
        |fault: &String, index: &Index| fault.strip_prefix(index.name()).is_some_and(|rest| rest.starts_with(':'));
    reply.append("ns", collection.namespace.as_str());
    reply.append("nInvalidDocuments", 0_i64);
    reply.append("nNonCompliantDocuments", 0_i64);
    reply.append("nrecords", findings.documents);
    reply.append("nIndexes", i32::try_from(findings.keys.len()).unwrap_or(i32::MAX));
    reply.document("keysPerIndex", |each| {
        findings.keys.iter().for_each(|(index, count)| each.append(index.name(), *count));
    });
    reply.document("indexDetails", |details| {
        for (index, _) in &findings.keys {
            let is_index_valid = !findings.faults.iter().any(|fault| is_of(fault, index));
            details.document(index.name(), |detail| detail.append("valid", is_index_valid));
        }
    });
    reply.append("valid", is_valid);
    reply.append("repaired", false);
    reply.array("warnings", |_| {});
    reply.array("errors", |errors| findings.faults.iter().for_each(|fault| errors.push(fault.as_str())));
    for name in ["extraIndexEntries", "missingIndexEntries", "corruptRecords"] {
        reply.array(name, |_| {});
    }
}
