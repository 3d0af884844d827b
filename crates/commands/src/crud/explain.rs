//! `explain`: what plan a command would get, and what running it costs.
//!
//! The inner command is read by its own parser. Writes do everything but write.

use super::aggregate::AggregateArguments;
use super::count::CountArguments;
use super::delete::DeleteArguments;
use super::distinct::DistinctArguments;
use super::find::FindArguments;
use super::find_and_modify::FindAndModifyArguments;
use super::map_reduce::{MapReduceArguments, Output};
use super::reading::begin_read;
use super::stage_read_concern;
use super::update::UpdateArguments;
use super::views::{count_as_pipeline, distinct_as_pipeline, is_view};
use crate::stages::NodeStages;
use crate::table::run_boxed;
use crate::timeseries::timeseries;
use crate::{
    Access, Admission, CommandRow, Data, GIT_VERSION, Invocation, NamespaceOf, SecondaryOk, VERSION, arguments,
};
use pando_base::{Error, ErrorCode, Namespace, OperationKind, ParameterValue, Result, bail, ensure};
use pando_doc::{Doc, DocBuilder, DocRef, Value};
use pando_operation::Operation;
use pando_query::QueryEngine;
use pando_query::explain::Verbosity;
use pando_query::request::{DeleteRequest, FindAndModifyChange, FindAndModifyRequest, UpdateRequest};

pub(super) const ROW: CommandRow = CommandRow {
    name: "explain",
    help: "explain database reads and writes",
    run: |invocation, reply| run_boxed(run(invocation, reply)),
    secondary_ok: SecondaryOk::OptIn,
    is_in_api_version_1: true,
    takes_read_concern: true,
    is_stopped_when_abandoned: true,
    admission: Admission::Read,
    kind: OperationKind::Command,
    namespace: NamespaceOf::InnerCommand,
    privileges: Access::Checked(crate::access::may_explain),
    ..CommandRow::DEFAULT
};

arguments! {
    struct ExplainArguments<'a> of "explain" {
        verbosity: Option<Value<'a>> = "verbosity",
    }
}

async fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    let arguments = ExplainArguments::parse(&invocation.request)?;
    let verbosity = Verbosity::parse(arguments.verbosity)?;
    let Value::Document(inner) = invocation.target() else {
        bail!(
            ErrorCode::TypeMismatch,
            "BSON field 'explain.explain' is the wrong type '{}', expected type 'object'",
            invocation.target().value_type().name()
        );
    };
    if let Some(database) = inner.get("$db") {
        ensure!(
            database.as_str() == Some(invocation.database.as_str()),
            ErrorCode::InvalidNamespace,
            "Mismatched $db in explain command. Expected {} but got {}",
            invocation.database,
            database.as_str().unwrap_or_default()
        );
    }
    let mut operation = invocation.operation()?;
    begin_read(invocation, data, &mut operation).await?;
    let explained = inner_command(invocation, data, &mut operation, inner, verbosity).await?;
    append(invocation, &explained, inner, reply);
    Ok(())
}

/// Whether servers in front of shards may merge what has to wait for all of it.
const PROHIBITS_MERGE: &str = "internalQueryProhibitBlockingMergeOnMongoS";

/// The parameters that every explanation shows.
const SHOWN_PARAMETERS: [&str; 8] = [
    "internalQueryFacetBufferSizeBytes",
    "internalQueryFacetMaxOutputDocSizeBytes",
    "internalLookupStageIntermediateDocumentMaxSizeBytes",
    "internalDocumentSourceGroupMaxMemoryBytes",
    "internalQueryMaxBlockingSortMemoryUsageBytes",
    PROHIBITS_MERGE,
    "internalQueryMaxAddToSetBytes",
    "internalQueryFrameworkControl",
];

/// Writes an explanation with what surrounds every one.
pub(super) fn append(invocation: &Invocation, explained: &Doc, command: DocRef<'_>, reply: &mut DocBuilder) {
    for element in explained.view().elements() {
        match (element.value, crate::watch::of_operation(invocation, true)) {
            (Value::Document(stats), Some(used)) if element.name == "executionStats" => {
                reply.document("executionStats", |out| {
                    out.append_all(stats);
                    out.append("operationMetrics", used);
                });
            }
            _ => reply.append_element(element),
        }
    }
    reply.document("command", |shown| {
        shown.append_all(command);
        if !command.contains("$db") {
            shown.append("$db", invocation.database.as_str());
        }
    });
    reply.document("serverInfo", |info| {
        let (host, port) = invocation.node.options.host.rsplit_once(':').unwrap_or((&invocation.node.options.host, ""));
        info.append("host", host);
        info.append("port", port.parse::<i32>().unwrap_or(27017));
        info.append("version", VERSION);
        info.append("gitVersion", GIT_VERSION);
    });
    reply.document("serverParameters", |parameters| {
        for name in SHOWN_PARAMETERS {
            match invocation.node.parameters.show(name) {
                Some(ParameterValue::Int(value)) => parameters.append(name, value),
                Some(ParameterValue::Long(value)) => parameters.append(name, value),
                Some(ParameterValue::Bool(value)) => parameters.append(name, value),
                Some(ParameterValue::String(value)) => parameters.append(name, value.as_str()),
                // It is about servers in front of shards, and has the value that it has at all others.
                None if name == PROHIBITS_MERGE => parameters.append(name, false),
                _ => {}
            }
        }
    });
}

async fn inner_command(
    invocation: &Invocation,
    data: &Data,
    operation: &mut Operation,
    inner: DocRef<'_>,
    verbosity: Verbosity,
) -> Result<Doc> {
    let query = &data.query.explaining();
    let name = inner.first().map(|first| first.name.to_string()).unwrap_or_default();
    let namespace = || namespace(invocation, inner);
    match name.as_str() {
        "find" => {
            let request = FindArguments::parse_document(inner)?.request(invocation, namespace()?)?;
            query.explain_find(operation, &request, verbosity).await
        }
        "aggregate" => {
            let request = AggregateArguments::parse_document(inner)?.request(invocation, namespace()?)?;
            let level = invocation.generic.read_concern_level();
            stage_read_concern::check(request.pipeline.iter().map(|stage| stage.view()), level, true)?;
            super::output::check(invocation, data, operation, &request)?;
            query.explain_aggregate(operation, &request, Some(NodeStages::of(invocation)), verbosity).await
        }
        "mapReduce" | "mapreduce" => {
            let arguments = MapReduceArguments::parse_document(inner)?;
            let output = Output::parse(arguments.out)?;
            let request = arguments.request(invocation, namespace()?, &output)?;
            query.explain_aggregate(operation, &request, None, verbosity).await
        }
        "count" => {
            let request = CountArguments::parse_document(inner)?.request(invocation, namespace()?)?;
            if is_view(data, &request.namespace)? {
                return query.explain_aggregate(operation, &count_as_pipeline(&request), None, verbosity).await;
            }
            query.explain_count(operation, &request, verbosity).await
        }
        "distinct" => {
            let request = DistinctArguments::parse_document(inner)?.request(invocation, namespace()?)?;
            if is_view(data, &request.namespace)? {
                return query.explain_aggregate(operation, &distinct_as_pipeline(&request)?, None, verbosity).await;
            }
            query.explain_distinct(operation, &request, verbosity).await
        }
        "update" => {
            let arguments = UpdateArguments::parse_document(inner)?;
            let statements = arguments.statements()?;
            let [only] = statements.as_slice() else { return Err(one_statement()) };
            let request = arguments.request(invocation, &namespace()?, only)?;
            query.explain_update(operation, &request, verbosity).await
        }
        "delete" => {
            let arguments = DeleteArguments::parse_document(inner)?;
            let statements = arguments.statements()?;
            let [only] = statements.as_slice() else { return Err(one_statement()) };
            let namespace = namespace()?;
            if let Some(found) = timeseries(data, &namespace)? {
                let request = arguments.request(invocation, &found.buckets.namespace, only)?;
                return query.explain_delete_measurements(operation, &request, verbosity).await;
            }
            let request = arguments.request(invocation, &namespace, only)?;
            query.explain_delete(operation, &request, verbosity).await
        }
        "findAndModify" | "findandmodify" => {
            let request = FindAndModifyArguments::parse_document(inner)?.request(invocation, namespace()?)?;
            let database = request.namespace.database_name();
            ensure!(
                data.catalog.latest().has_database(&database),
                ErrorCode::NamespaceNotFound,
                "database {database} does not exist"
            );
            explain_find_and_modify(query, operation, request, verbosity).await
        }
        other => {
            let is_known = invocation.node.table.find(other.as_bytes()).is_some();
            ensure!(is_known, ErrorCode::CommandNotFound, "Explain failed due to unknown command: {other}");
            bail!(ErrorCode::IllegalOperation, "Cannot explain cmd: {other}");
        }
    }
}

fn one_statement() -> Error {
    Error::new(ErrorCode::InvalidLength, "explained write batches must be of size 1")
}

/// What the update or the removal of a findAndModify would cost.
async fn explain_find_and_modify(
    query: &QueryEngine,
    operation: &mut Operation,
    request: FindAndModifyRequest,
    verbosity: Verbosity,
) -> Result<Doc> {
    match request.change {
        FindAndModifyChange::Remove => {
            let delete = DeleteRequest {
                hint: request.hint,
                collation: request.collation,
                variables: request.variables,
                sort: request.sort,
                ..DeleteRequest::new(request.namespace, request.filter, false)
            };
            query.explain_delete(operation, &delete, verbosity).await
        }
        FindAndModifyChange::Update { update, upsert, array_filters, .. } => {
            let update = UpdateRequest {
                upsert,
                array_filters,
                hint: request.hint,
                collation: request.collation,
                variables: request.variables,
                sort: request.sort,
                ..UpdateRequest::new(request.namespace, request.filter, update)
            };
            query.explain_update(operation, &update, verbosity).await
        }
    }
}

/// The collection that the inner command is about.
fn namespace(invocation: &Invocation, inner: DocRef<'_>) -> Result<Namespace> {
    match inner.first().map(|first| first.value) {
        Some(Value::String(name)) => {
            let namespace = Namespace::new(&invocation.database, &name.to_string())?;
            namespace.validate()?;
            Ok(namespace)
        }
        Some(number) if number.is_number() => Ok(Namespace::collectionless_aggregate(&invocation.database)),
        other => {
            let found = other.map_or("missing", |value| value.value_type().name());
            let reason = format!("collection name has invalid type {found}");
            Err(Error::new(ErrorCode::InvalidNamespace, reason))
        }
    }
}
