//! `delete`.

use super::batch::{BatchResult, check_count};
use super::collections::{check_can_write, lock_for_delete, lock_for_write, lock_if_capped};
use super::fail_points;
use super::reading::{hint, shared, shared_or_empty};
use super::retryable::{RetryableWrite, statement, with_entry};
use super::stored_functions;
use crate::arguments::{Place, SafeBool, SafeLong};
use crate::locking::unlock;
use crate::table::run_boxed;
use crate::timeseries::buckets_to_change;
use crate::{
    Access, Action, Admission, Class, CommandRow, Data, Invocation, NamespaceOf, OpCounter, SecondaryOk, arguments,
    watch,
};
use pando_base::{ErrorCode, Namespace, OperationKind, Result, Uuid, ensure};
use pando_doc::{ArrayRef, DocBuilder, DocRef, Value};
use pando_operation::Operation;
use pando_query::request::DeleteRequest;
use pando_query::write::UpdateResult;
use pando_session::retried_delete;
use pando_wire::Documents;

pub(super) const ROW: CommandRow = CommandRow {
    name: "delete",
    help: "delete documents",
    run: |invocation, reply| run_boxed(run(invocation, reply)),
    class: Class::Write,
    secondary_ok: SecondaryOk::Never,
    is_allowed_in_transaction: true,
    is_retryable_write: true,
    is_in_api_version_1: true,
    takes_write_concern: true,
    admission: Admission::Write,
    kind: OperationKind::Remove,
    op_counter: OpCounter::Own,
    namespace: NamespaceOf::FirstField,
    privileges: Access::Collection(&[Action::Remove]),
    ..CommandRow::DEFAULT
};

arguments! {
    pub(super) struct DeleteArguments<'a> of "delete" {
        deletes: Documents<'a> = "deletes",
        ordered: bool = "ordered" or true,
        bypass_validation: Option<SafeBool> = "bypassDocumentValidation",
        bypass_empty_timestamps: Option<SafeBool> = "bypassEmptyTsReplacement",
        statement_ids: Option<ArrayRef<'a>> = "stmtIds",
        variables: Option<DocRef<'a>> = "let",
        legacy_runtime_constants: Option<DocRef<'a>> = "legacyRuntimeConstants",
        is_timeseries: Option<SafeBool> = "isTimeseriesNamespace",
        collection_uuid: Option<Uuid> = "collectionUUID",
        encryption: Option<DocRef<'a>> = "encryptionInformation",
    }
}

arguments! {
    pub(super) struct DeleteStatement<'a> of "delete.deletes" {
        query: DocRef<'a> = "q",
        limit: SafeLong = "limit",
        hint: Option<Value<'a>> = "hint",
        collation: Option<DocRef<'a>> = "collation",
        sample_id: Option<Uuid> = "sampleId",
    }
}

impl DeleteStatement<'_> {
    /// The statement as it is told in the log and by the profiler.
    fn append_to(&self, out: &mut DocBuilder) {
        out.append("q", self.query);
        out.append("limit", i32::from(self.limit.0 != 0));
        out.append_some("hint", self.hint);
        out.append_some("collation", self.collation);
    }
}

impl<'a> DeleteArguments<'a> {
    /// The statements, read in full before the first is run.
    pub(super) fn statements(&self) -> Result<Vec<DeleteStatement<'a>>> {
        let place = Place::of_command("delete.deletes");
        let read = |statement| {
            let statement = DeleteStatement::parse_fields(statement, &place, false)?;
            let limit = statement.limit.0;
            ensure!(
                matches!(limit, 0 | 1),
                ErrorCode::FailedToParse,
                "The limit field in delete objects must be 0 or 1. Got {limit}"
            );
            Ok(statement)
        };
        self.deletes.iter().map(read).collect()
    }

    /// What is asked of the query engine.
    pub(super) fn request(
        &self,
        invocation: &Invocation,
        namespace: &Namespace,
        statement: &DeleteStatement<'_>,
    ) -> Result<DeleteRequest> {
        let filter = shared(invocation, statement.query);
        Ok(DeleteRequest {
            hint: hint(statement.hint)?,
            collation: shared_or_empty(invocation, statement.collation),
            variables: shared_or_empty(invocation, self.variables),
            ..DeleteRequest::new(namespace.clone(), filter, statement.limit.0 == 0)
        })
    }
}

async fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    let namespace = invocation.collection()?;
    let arguments = DeleteArguments::parse(&invocation.request)?;
    check_count(arguments.deletes.len())?;
    let statements = arguments.statements()?;
    check_can_write(invocation, data, &namespace, arguments.collection_uuid)?;
    let buckets = buckets_to_change(invocation, data, &namespace, arguments.is_timeseries)?;
    let is_timeseries = buckets.is_some();
    let namespace = buckets.unwrap_or(namespace);
    let mut operation = invocation.operation()?;
    if statements.iter().any(|delete| stored_functions::are_needed(delete.query)) {
        stored_functions::load(invocation, data, &mut operation).await?;
    }
    let retryable = RetryableWrite::begin(invocation, data, &mut operation, statements.len()).await?;
    data.query.fix_times(&mut operation);
    let mut result = BatchResult::new(invocation);
    for (index, delete) in statements.iter().enumerate() {
        invocation.node.counters.operations.delete.increment();
        let watched = watch::Statement::begin(invocation, index);
        let request = arguments.request(invocation, &namespace, delete);
        let outcome = one(data, &mut operation, is_timeseries, request, retryable.as_ref(), index, &mut result).await;
        unlock(&operation);
        watched.end(invocation, &mut operation, outcome.as_ref().err(), |out| delete.append_to(out)).await;
        if !result.take(index, outcome, arguments.ordered)? {
            break;
        }
    }
    result.append_to(invocation, data, false, reply);
    Ok(())
}

/// Runs one statement, unless it was carried out before.
async fn one(
    data: &Data,
    operation: &mut Operation,
    is_timeseries: bool,
    request: Result<DeleteRequest>,
    retryable: Option<&RetryableWrite>,
    index: usize,
    result: &mut BatchResult<'_>,
) -> Result<UpdateResult> {
    let mut request = request?;
    let (ids, executed) = statement(data, retryable, index)?;
    if let Some(entry) = executed {
        let before = with_entry(&entry, retried_delete)?;
        ids.as_slice().iter().for_each(|id| result.retried(*id));
        return Ok(UpdateResult { n: u64::try_from(before.n).unwrap_or(0), ..UpdateResult::default() });
    }
    ensure!(
        retryable.is_none() || !request.multi,
        ErrorCode::InvalidOptions,
        "Cannot use (or request) retryable writes with limit=0"
    );
    request.statement_ids = ids;
    fail_points::DELETE.before_lock(&operation.context, &request.namespace).await?;
    if is_timeseries {
        lock_for_write(data, operation, &request.namespace).await?;
        let n = data.query.delete_measurements(operation, &request).await?;
        return Ok(UpdateResult { n, ..UpdateResult::default() });
    }
    if let Some(collection) = lock_for_delete(data, operation, &request.namespace).await? {
        ensure!(
            !(collection.is_capped() && operation.in_multi_document_transaction()),
            ErrorCode::IllegalOperation,
            "Cannot remove from a capped collection in a multi-document transaction"
        );
        lock_if_capped(operation, &collection).await?;
    }
    fail_points::DELETE.with_lock(&operation.context, &request.namespace).await?;
    let n = data.query.delete(operation, &request).await?.n;
    Ok(UpdateResult { n, ..UpdateResult::default() })
}
