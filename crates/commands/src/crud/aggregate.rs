//! `aggregate`.

use super::reading::{
    FirstBatch, begin_read_with, begin_whole_read, cursor_options, hint, reply_with_first_batch, shared,
    shared_or_empty,
};
use super::{stage_read_concern, transaction_stages};
use crate::arguments::{Argument, Place, PlainBool, SafeBool, SafeLong};
use crate::stages::{self, NodeStages};
use crate::table::run_boxed;
use crate::{Access, Admission, Class, CommandRow, Data, Invocation, NamespaceOf, SecondaryOk, arguments};
use pando_base::{Error, ErrorCode, Namespace, OperationKind, Result, Uuid, bail, ensure};
use pando_doc::{ArrayRef, Doc, DocBuilder, DocRef, Value, ValueType, doc};
use pando_operation::Operation;
use pando_query::executor::{BatchLimits, drive};
use pando_query::pipeline::is_change_stream;
use pando_query::request::AggregateRequest;

/// Stages that make documents without a collection.
const WITHOUT_COLLECTION: &[&str] = &[
    "$backupCursor",
    "$backupCursorExtend",
    "$changeStream",
    "$currentOp",
    "$operationMetrics",
    "$documents",
    "$listCatalog",
    "$listLocalSessions",
    "$listSampledQueries",
    "$queryStats",
    "$shardedDataDistribution",
];

pub(super) const ROW: CommandRow = CommandRow {
    name: "aggregate",
    help: "Runs the aggregation command. See https://dochub.mongodb.org/core/aggregation for more details.",
    run: |invocation, reply| run_boxed(run(invocation, reply)),
    class: Class::Read,
    secondary_ok: SecondaryOk::OptIn,
    is_allowed_in_transaction: true,
    is_in_api_version_1: true,
    takes_write_concern: true,
    takes_read_concern: true,
    is_stopped_when_abandoned: true,
    admission: Admission::Read,
    kind: OperationKind::Command,
    namespace: NamespaceOf::FirstFieldOrPipeline,
    privileges: Access::Checked(crate::access::may_aggregate),
    ..CommandRow::DEFAULT
};

/// `explain`: a boolean, and not even null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Explains(pub(super) bool);

impl<'a> Argument<'a> for Explains {
    const TYPES: &'static [ValueType] = &ValueType::ALL;

    fn read(_: &Place<'_>, value: Value<'a>) -> Result<Explains> {
        match value {
            Value::Bool(explains) => Ok(Explains(explains)),
            _ => bail!(ErrorCode::TypeMismatch, "explain must be a boolean"),
        }
    }
}

arguments! {
    pub(crate) struct AggregateArguments<'a> of "aggregate" {
        pipeline: ArrayRef<'a> = "pipeline",
        explain: Explains = "explain" or Explains(false),
        allow_disk_use: Option<PlainBool> = "allowDiskUse",
        cursor: Option<CursorArguments<'a>> = "cursor",
        hint: Option<Value<'a>> = "hint",
        collation: Option<DocRef<'a>> = "collation",
        variables: Option<DocRef<'a>> = "let",
        bypass_validation: SafeBool = "bypassDocumentValidation" or SafeBool(false),
        legacy_runtime_constants: Option<DocRef<'a>> = "runtimeConstants",
        needs_merge: Option<PlainBool> = "needsMerge",
        from_mongos: Option<PlainBool> = "fromMongos",
        exchange: Option<DocRef<'a>> = "exchange",
        is_map_reduce: Option<PlainBool> = "isMapReduceCommand",
        collection_uuid: Option<Uuid> = "collectionUUID",
        encryption: Option<DocRef<'a>> = "encryptionInformation",
        new_tokens: Option<PlainBool> = "$_generateV2ResumeTokens",
    }
}

arguments! {
    pub(crate) struct CursorArguments<'a> of "cursor" {
        batch_size: Option<SafeLong> = "batchSize",
    }
}

impl AggregateArguments<'_> {
    /// What is asked of the query engine.
    pub(super) fn request(&self, invocation: &Invocation, namespace: Namespace) -> Result<AggregateRequest> {
        let stage = |value: Value<'_>| match value {
            Value::Document(stage) => Ok(shared(invocation, stage)),
            _ => Err(Error::type_mismatch("Each element of the 'pipeline' array must be an object")),
        };
        let pipeline: Vec<Doc> = self.pipeline.values().map(stage).collect::<Result<_>>()?;
        let batch_size = self.cursor.as_ref().and_then(|cursor| cursor.batch_size).map(|size| size.0);
        Ok(AggregateRequest {
            batch_size: batch_size.map(|size| crate::arguments::at_least("batchSize", size, 0)).transpose()?,
            hint: hint(self.hint)?,
            collation: shared_or_empty(invocation, self.collation),
            variables: shared_or_empty(invocation, self.variables),
            allow_disk_use: self.allow_disk_use.map(|allowed| allowed.0),
            bypass_document_validation: self.bypass_validation.0,
            seen: invocation.seen_by_pipeline().cloned(),
            ..AggregateRequest::new(namespace, pipeline)
        })
    }
}

/// The collection, or the database if the pipeline needs none.
pub(super) fn namespace(invocation: &Invocation) -> Result<Namespace> {
    match invocation.target() {
        Value::String(_) | Value::Symbol(_) => invocation.collection(),
        number if number.is_number() => {
            ensure!(
                number.to_double() == Some(1.0),
                ErrorCode::BadValue,
                "Invalid command format: the 'aggregate' field must specify a collection name or 1"
            );
            Ok(Namespace::collectionless_aggregate(&invocation.database))
        }
        _ => bail!(
            ErrorCode::InvalidNamespace,
            "collection name has invalid type {}",
            invocation.target().value_type().name()
        ),
    }
}

fn check_collectionless(invocation: &Invocation, data: &Data, request: &AggregateRequest) -> Result<()> {
    let first = request.pipeline.first().and_then(|stage| stage.view().first().map(|stage| stage.name.to_string()));
    let name = first.unwrap_or_default();
    ensure!(
        name != "$documents" || request.namespace.is_collectionless_aggregate(),
        ErrorCode::InvalidNamespace,
        "{name} can only be run with {{aggregate: 1}}"
    );
    if WITHOUT_COLLECTION.contains(&name.as_str()) || !request.namespace.is_collectionless_aggregate() {
        return Ok(());
    }
    // What is wrong with the stages is told before.
    let operation = invocation.operation()?;
    data.query.check_pipeline(&operation, request, Some(NodeStages::of(invocation)))?;
    bail!(ErrorCode::InvalidNamespace, "{{aggregate: 1}} is not valid for '{name}'; a collection is required.")
}

/// What a change stream is read with: what a majority has. Another read concern is refused, also that it has none of its own
/// collection, and that it runs in a transaction. A default that was set for all is not for streams.
fn stream_read_concern(invocation: &Invocation, arguments: &AggregateArguments<'_>) -> Result<Doc> {
    ensure!(
        invocation.transaction().is_none(),
        ErrorCode::OperationNotSupportedInTransaction,
        "Operation not permitted in transaction :: caused by :: Aggregation stage $changeStream cannot run within a \
         multi-document transaction"
    );
    ensure!(
        arguments.new_tokens.is_none_or(|new| !new.0),
        ErrorCode::location(6528200),
        "Invalid request for v2 tokens"
    );
    let mut concern = DocBuilder::new();
    concern.append("level", "majority");
    if let Some(Value::Document(given)) = invocation.body().get("readConcern") {
        let level = given.get("level").and_then(|level| level.as_str());
        ensure!(
            level.is_none_or(|level| level == "majority"),
            ErrorCode::InvalidOptions,
            "Aggregation stage $changeStream cannot run with a readConcern other than 'majority'. Current readConcern: {}",
            level.unwrap_or_default()
        );
        let others = given.raw_elements().filter(|field| field.name != "level");
        others.for_each(|field| concern.append_raw(field));
    }
    Ok(concern.finish())
}

async fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    let arguments = AggregateArguments::parse(&invocation.request)?;
    let namespace = namespace(invocation)?;
    let mut request = arguments.request(invocation, namespace)?;
    ensure!(
        arguments.collection_uuid.is_none() || !is_change_stream(&request.pipeline),
        ErrorCode::location(4928900),
        "collectionUUID is not supported for a change stream"
    );
    ensure!(
        arguments.collection_uuid.is_none() || !request.namespace.is_collectionless_aggregate(),
        ErrorCode::location(4928901),
        "collectionUUID is not supported for a collectionless aggregation"
    );
    super::collections::check_uuid(data, &request.namespace, arguments.collection_uuid)?;
    ensure!(
        arguments.cursor.is_some() || arguments.explain.0,
        ErrorCode::FailedToParse,
        "The 'cursor' option is required, except for aggregate with the explain argument"
    );
    ensure!(
        !arguments.explain.0 || !invocation.body().contains("writeConcern"),
        ErrorCode::FailedToParse,
        "Aggregation explain does not support the'writeConcern' option"
    );
    data.query.counters.disk_use(request.allow_disk_use);
    check_collectionless(invocation, data, &request)?;
    let level = invocation.generic.read_concern_level();
    stage_read_concern::check(request.pipeline.iter().map(|stage| stage.view()), level, arguments.explain.0)?;
    if invocation.transaction().is_some() {
        transaction_stages::check(request.pipeline.iter().map(|stage| stage.view()))?;
    }
    crate::session::replace_stage(data, invocation.user_digest(), &mut request)?;
    if let Some((backup, time)) = stages::time_to_wait_for(&request.pipeline).filter(|_| !arguments.explain.0) {
        // Whoever has no backup to extend is told before, not after a wait.
        data.backups.find(backup)?;
        data.replication.wait_majority(&invocation.context, time).await?;
    }
    let mut operation = invocation.operation()?;
    let is_stream = is_change_stream(&request.pipeline);
    let concern = is_stream.then(|| stream_read_concern(invocation, &arguments)).transpose()?;
    match &concern {
        // Who looks for what holds others up must not be held up by it.
        _ if is_of_operations(&request.pipeline) => {}
        Some(concern) => begin_read_with(data, &mut operation, Some(concern)).await?,
        None => begin_whole_read(invocation, data, &mut operation).await?,
    }
    if arguments.explain.0 {
        super::output::check(invocation, data, &mut operation, &request)?;
        let verbosity = pando_query::explain::Verbosity::QueryPlanner;
        let explained = data
            .query
            .explaining()
            .explain_aggregate(&mut operation, &request, Some(NodeStages::of(invocation)), verbosity)
            .await?;
        super::explain::append(invocation, &explained, invocation.body(), reply);
        return Ok(());
    }
    let aggregation = data.query.aggregate(&mut operation, &request, Some(NodeStages::of(invocation)))?;
    if aggregation.output.is_some() {
        super::output::run(invocation, data, &mut operation, &request, aggregation).await?;
        reply.document("cursor", |cursor| {
            cursor.array("firstBatch", |_| {});
            cursor.append("id", 0_i64);
            cursor.append("ns", request.namespace.as_str());
        });
        return Ok(());
    }
    let mut options = cursor_options(invocation, &request.namespace);
    options.tailable = stages::stays_open(&request.pipeline);
    let executor = aggregation.executor.executor();
    options.collection = executor.and_then(|executor| executor.collection()).map(|collection| collection.uuid);
    if is_stream {
        (options.tailable, options.await_data, options.is_change_stream) = (true, true, true);
        options.read_concern = doc! { "level": "majority" };
    }
    let first = FirstBatch { limits: BatchLimits::first(request.batch_size), is_single: false, limit: None, options };
    reply_with_first_batch(invocation, data, &mut operation, Box::new(aggregation.executor), first, reply).await
}

/// Does it tell of operations, which are in memory and nowhere else?
fn is_of_operations(pipeline: &[Doc]) -> bool {
    pipeline.first().and_then(|stage| stage.view().first()).is_some_and(|stage| stage.name == "$currentOp")
        && pipeline.iter().skip(1).all(|stage| {
            // What reads collections behind it, reads as others do.
            !["$lookup", "$unionWith", "$graphLookup", "$facet", "$merge", "$out"]
                .iter()
                .any(|name| stage.get(name).is_some())
        })
}

/// Runs an aggregation and gives all of its results.
pub(super) async fn run_to_end(data: &Data, operation: &mut Operation, request: &AggregateRequest) -> Result<Vec<Doc>> {
    let mut aggregation = data.query.aggregate(operation, request, None)?;
    let mut found: Vec<Doc> = Vec::new();
    drive(&mut aggregation.executor, operation, data.collections(), &mut found).await?;
    Ok(found)
}
