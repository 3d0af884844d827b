//! `update`.

use super::batch::{BatchResult, check_count};
use super::collections::{check_can_write, collection_for_insert, lock_for_write};
use super::fail_points;
use super::reading::{hint, shared, shared_or_empty};
use super::retryable::{RetryableWrite, statement, with_entry};
use super::stored_functions;
use crate::arguments::{Place, SafeBool};
use crate::locking::unlock;
use crate::table::run_boxed;
use crate::timeseries::{buckets_to_change, check_bypass};
use crate::{
    Access, Admission, Class, CommandRow, Data, Invocation, NamespaceOf, OpCounter, SecondaryOk, arguments, watch,
};
use pando_base::{Error, ErrorCode, Namespace, OperationKind, Result, Uuid, ensure};
use pando_doc::{ArrayRef, Doc, DocBuilder, DocRef, OwnedValue, Value};
use pando_expr::Update;
use pando_operation::Operation;
use pando_query::request::UpdateRequest;
use pando_query::write::UpdateResult;
use pando_session::retried_update;
use pando_wire::Documents;

pub(super) const ROW: CommandRow = CommandRow {
    name: "update",
    help: "update documents",
    run: |invocation, reply| run_boxed(run(invocation, reply)),
    class: Class::Write,
    secondary_ok: SecondaryOk::Never,
    is_allowed_in_transaction: true,
    is_retryable_write: true,
    is_in_api_version_1: true,
    takes_write_concern: true,
    admission: Admission::Write,
    kind: OperationKind::Update,
    op_counter: OpCounter::Own,
    namespace: NamespaceOf::FirstField,
    privileges: Access::Checked(crate::access::may_update),
    ..CommandRow::DEFAULT
};

arguments! {
    pub(super) struct UpdateArguments<'a> of "update" {
        updates: Documents<'a> = "updates",
        ordered: bool = "ordered" or true,
        bypass_validation: SafeBool = "bypassDocumentValidation" or SafeBool(false),
        bypass_empty_timestamps: SafeBool = "bypassEmptyTsReplacement" or SafeBool(false),
        statement_ids: Option<ArrayRef<'a>> = "stmtIds",
        variables: Option<DocRef<'a>> = "let",
        runtime_constants: Option<DocRef<'a>> = "runtimeConstants",
        legacy_runtime_constants: Option<DocRef<'a>> = "legacyRuntimeConstants",
        is_timeseries: Option<SafeBool> = "isTimeseriesNamespace",
        collection_uuid: Option<Uuid> = "collectionUUID",
        encryption: Option<DocRef<'a>> = "encryptionInformation",
    }
}

arguments! {
    pub(super) struct UpdateStatement<'a> of "update.updates" {
        query: DocRef<'a> = "q",
        update: Value<'a> = "u",
        constants: Option<DocRef<'a>> = "c",
        multi: bool = "multi" or false,
        upsert: bool = "upsert" or false,
        upsert_supplied: bool = "upsertSupplied" or false,
        array_filters: Option<Vec<DocRef<'a>>> = "arrayFilters",
        hint: Option<Value<'a>> = "hint",
        collation: Option<DocRef<'a>> = "collation",
        sample_id: Option<Uuid> = "sampleId",
        allow_shard_key_updates: Option<bool> = "allowShardKeyUpdatesWithoutFullShardKeyInQuery",
    }
}

impl UpdateStatement<'_> {
    /// The statement as it is told in the log and by the profiler.
    fn append_to(&self, out: &mut DocBuilder) {
        out.append("q", self.query);
        out.append("u", self.update);
        out.append_some("c", self.constants);
        if let Some(filters) = &self.array_filters {
            out.array("arrayFilters", |array| filters.iter().for_each(|filter| array.push(*filter)));
        }
        out.append_some("hint", self.hint);
        out.append("multi", self.multi);
        out.append("upsert", self.upsert);
        out.append_some("collation", self.collation);
    }
}

impl<'a> UpdateArguments<'a> {
    /// The statements, read in full before the first is run.
    pub(super) fn statements(&self) -> Result<Vec<UpdateStatement<'a>>> {
        let place = Place::of_command("update.updates");
        self.updates.iter().map(|statement| UpdateStatement::parse_fields(statement, &place, false)).collect()
    }

    /// What is asked of the query engine.
    pub(super) fn request(
        &self,
        invocation: &Invocation,
        namespace: &Namespace,
        statement: &UpdateStatement<'_>,
    ) -> Result<UpdateRequest> {
        let array_filters = statement.array_filters.as_deref().unwrap_or_default();
        ensure!(
            statement.constants.is_none() || matches!(statement.update, Value::Array(_)),
            ErrorCode::location(51198),
            "Constant values may only be specified for pipeline updates"
        );
        Ok(UpdateRequest {
            constants: shared_or_empty(invocation, statement.constants),
            multi: statement.multi,
            upsert: statement.upsert,
            upsert_supplied: statement.upsert_supplied,
            array_filters: array_filters.iter().map(|filter| shared(invocation, *filter)).collect(),
            hint: hint(statement.hint)?,
            collation: shared_or_empty(invocation, statement.collation),
            variables: shared_or_empty(invocation, self.variables),
            bypass_document_validation: self.bypass_validation.0,
            bypass_empty_timestamp_replacement: self.bypass_empty_timestamps.0,
            ..UpdateRequest::new(
                namespace.clone(),
                shared(invocation, statement.query),
                update_value(invocation, statement.update)?,
            )
        })
    }
}

/// A document or a pipeline.
pub(super) fn update_value(invocation: &Invocation, update: Value<'_>) -> Result<OwnedValue> {
    match update {
        Value::Document(update) => Ok(OwnedValue::Document(shared(invocation, update))),
        Value::Array(_) => Ok(update.to_shared(&Doc::trusted(invocation.request.body_bytes()))),
        _ => Err(Error::failed_to_parse("Update argument must be either an object or an array")),
    }
}

async fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    let namespace = invocation.collection()?;
    let arguments = UpdateArguments::parse(&invocation.request)?;
    check_count(arguments.updates.len())?;
    let statements = arguments.statements()?;
    statements.iter().try_for_each(|statement| Update::check_stage_names(statement.update))?;
    check_can_write(invocation, data, &namespace, arguments.collection_uuid)?;
    check_bypass(data, &namespace, arguments.bypass_validation.0)?;
    let buckets = buckets_to_change(invocation, data, &namespace, arguments.is_timeseries)?;
    let is_timeseries = buckets.is_some();
    let namespace = buckets.unwrap_or(namespace);
    let mut operation = invocation.operation()?;
    if statements.iter().any(|update| stored_functions::are_needed(update.query)) {
        Box::pin(stored_functions::load(invocation, data, &mut operation)).await?;
    }
    let retryable = RetryableWrite::begin(invocation, data, &mut operation, statements.len()).await?;
    data.query.fix_times(&mut operation);
    let mut result = BatchResult::new(invocation);
    for (index, update) in statements.iter().enumerate() {
        let counters = &invocation.node.counters;
        counters.operations.update.increment();
        counters.updates.count(matches!(update.update, Value::Array(_)), update.array_filters.is_some());
        let watched = watch::Statement::begin(invocation, index);
        let request = arguments.request(invocation, &namespace, update);
        let outcome = one(data, &mut operation, is_timeseries, request, retryable.as_ref(), index, &mut result).await;
        unlock(&operation);
        watched.end(invocation, &mut operation, outcome.as_ref().err(), |out| update.append_to(out)).await;
        if !result.take(index, outcome, arguments.ordered)? {
            break;
        }
    }
    result.append_to(invocation, data, true, reply);
    Ok(())
}

/// True in a transaction that reads already: what it has found is what it will find.
fn has_snapshot(operation: &Operation) -> bool {
    operation.in_multi_document_transaction() && operation.recovery_unit.snapshot_id().is_some()
}

/// Runs one statement, unless it was carried out before.
async fn one(
    data: &Data,
    operation: &mut Operation,
    is_timeseries: bool,
    request: Result<UpdateRequest>,
    retryable: Option<&RetryableWrite>,
    index: usize,
    result: &mut BatchResult<'_>,
) -> Result<UpdateResult> {
    let mut request = request?;
    let (ids, executed) = statement(data, retryable, index)?;
    if let Some(entry) = executed {
        let before = with_entry(&entry, retried_update)?;
        ids.as_slice().iter().for_each(|id| result.retried(*id));
        let (n, modified) = (u64::try_from(before.n).unwrap_or(0), u64::try_from(before.n_modified).unwrap_or(0));
        return Ok(UpdateResult { n, modified, upserted: before.upserted, returned: None });
    }
    ensure!(
        retryable.is_none() || !request.multi,
        ErrorCode::InvalidOptions,
        "Cannot use (or request) retryable writes with multi=true"
    );
    request.statement_ids = ids;
    fail_points::UPDATE.before_lock(&operation.context, &request.namespace).await?;
    if is_timeseries {
        lock_for_write(data, operation, &request.namespace).await?;
        return Box::pin(data.query.update_meta(operation, &request)).await;
    }
    request.validate()?;
    if request.upsert {
        collection_for_insert(data, operation, &request.namespace).await?;
    } else {
        // Without a collection the statement still has to make sense, which the engine says.
        let found = lock_for_write(data, operation, &request.namespace).await?;
        if let Some(collection) = found.filter(|_| has_snapshot(operation)) {
            fail_points::UPDATE.with_lock(&operation.context, &request.namespace).await?;
            return data.query.update_in(operation, &request, &collection).await;
        }
    }
    fail_points::UPDATE.with_lock(&operation.context, &request.namespace).await?;
    let written = data.query.update(operation, &request).await?;
    fail_points::after_update(&operation.context, &request.namespace).await?;
    Ok(written)
}
