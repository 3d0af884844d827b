//! `find`.

use super::reading::{
    FirstBatch, begin_read, begin_whole_read, cursor_options, hint, reply_with_first_batch, reply_with_one,
    shared_or_empty,
};
use crate::arguments::{PlainBool, PlainDoc, SafeBool, SafeLong};
use crate::data::CommandOperation;
use crate::table::run_boxed;
use crate::{Access, Admission, Class, CommandRow, Data, Invocation, NamespaceOf, OpCounter, SecondaryOk, arguments};
use pando_base::{Error, ErrorCode, FailPoint, Namespace, OperationKind, Result, Uuid, bail, ensure};
use pando_catalog::Collection;
use pando_doc::{DocBuilder, DocRef, Value};
use pando_query::executor::BatchLimits;
use pando_query::request::{FindRequest, ResumePoint};
use pando_query::{FindPlan, id_of};
use pando_storage::Direction;

pub(super) const ROW: CommandRow = CommandRow {
    name: "find",
    help: "query for documents",
    run: |invocation, reply| run_boxed(run(invocation, reply)),
    class: Class::Read,
    secondary_ok: SecondaryOk::OptIn,
    is_allowed_in_transaction: true,
    is_in_api_version_1: true,
    takes_read_concern: true,
    is_stopped_when_abandoned: true,
    admission: Admission::Read,
    kind: OperationKind::Query,
    op_counter: OpCounter::Query,
    namespace: NamespaceOf::FirstField,
    privileges: Access::Checked(crate::access::may_read),
    ..CommandRow::DEFAULT
};

arguments! {
    pub(super) struct FindArguments<'a> of "find" {
        filter: Option<PlainDoc<'a>> = "filter",
        projection: Option<PlainDoc<'a>> = "projection",
        sort: Option<PlainDoc<'a>> = "sort",
        hint: Option<Value<'a>> = "hint",
        skip: Option<SafeLong> = "skip",
        limit: Option<SafeLong> = "limit",
        batch_size: Option<SafeLong> = "batchSize",
        single_batch: PlainBool = "singleBatch" or PlainBool(false),
        min: Option<PlainDoc<'a>> = "min",
        max: Option<PlainDoc<'a>> = "max",
        return_key: PlainBool = "returnKey" or PlainBool(false),
        show_record_id: PlainBool = "showRecordId" or PlainBool(false),
        tailable: PlainBool = "tailable" or PlainBool(false),
        oplog_replay: Option<SafeBool> = "oplogReplay",
        no_cursor_timeout: PlainBool = "noCursorTimeout" or PlainBool(false),
        await_data: PlainBool = "awaitData" or PlainBool(false),
        allow_partial_results: PlainBool = "allowPartialResults" or PlainBool(false),
        collation: Option<PlainDoc<'a>> = "collation",
        allow_disk_use: Option<PlainBool> = "allowDiskUse",
        variables: Option<DocRef<'a>> = "let",
        runtime_constants: Option<DocRef<'a>> = "runtimeConstants",
        legacy_runtime_constants: Option<DocRef<'a>> = "legacyRuntimeConstants",
        read_once: Option<PlainBool> = "readOnce",
        allow_speculative_majority_read: Option<PlainBool> = "allowSpeculativeMajorityRead",
        term: Option<i64> = "term",
        resume_after: Option<PlainDoc<'a>> = "$_resumeAfter",
        start_at: Option<DocRef<'a>> = "$_startAt",
        request_resume_token: Option<PlainBool> = "$_requestResumeToken",
        collection_uuid: Option<Uuid> = "collectionUUID",
    }
}

impl<'a> FindArguments<'a> {
    /// The filter, if the documents that it matches are wanted as they are and nothing could be wrong about the rest.
    fn filter_alone(&self) -> Option<DocRef<'a>> {
        let is_positive = |number: &Option<SafeLong>| number.as_ref().is_none_or(|number| number.0 > 0);
        let has_documents = self.projection.is_some()
            || self.sort.is_some()
            || self.min.is_some()
            || self.max.is_some()
            || self.collation.is_some()
            || self.variables.is_some()
            || self.resume_after.is_some()
            || self.start_at.is_some();
        let has_others = self.hint.is_some() || self.skip.is_some() || self.request_resume_token.is_some();
        let has_wishes = self.return_key.0 || self.show_record_id.0 || self.tailable.0 || self.await_data.0;
        let is_alone =
            !(has_documents || has_others || has_wishes) && is_positive(&self.limit) && is_positive(&self.batch_size);
        self.filter.filter(|_| is_alone).map(|filter| filter.0)
    }

    /// What is asked of the query engine.
    pub(super) fn request(&self, invocation: &Invocation, namespace: Namespace) -> Result<FindRequest> {
        let point = |field: &str, token: Option<DocRef<'_>>, may_be_gone: bool| {
            let token = token.filter(|token| !token.is_empty());
            token.map(|token| ResumePoint::parse(field, token, may_be_gone)).transpose()
        };
        let document = |given: Option<PlainDoc<'_>>| shared_or_empty(invocation, given.map(|given| given.0));
        let after = point("$_resumeAfter", self.resume_after.map(|token| token.0), false)?;
        let at = point("$_startAt", self.start_at, true)?;
        ensure!(
            after.is_none() || at.is_none(),
            ErrorCode::BadValue,
            "Cannot set both '$_resumeAfter' and '$_startAt'"
        );
        Ok(FindRequest {
            filter: document(self.filter),
            projection: document(self.projection),
            sort: document(self.sort),
            skip: self.skip.map(|skip| skip.0),
            limit: self.limit.map(|limit| limit.0),
            batch_size: self.batch_size.map(|size| size.0),
            single_batch: self.single_batch.0,
            hint: hint(self.hint)?,
            min: document(self.min),
            max: document(self.max),
            return_key: self.return_key.0,
            show_record_id: self.show_record_id.0,
            tailable: self.tailable.0,
            await_data: self.await_data.0,
            no_cursor_timeout: self.no_cursor_timeout.0,
            allow_partial_results: self.allow_partial_results.0,
            allow_disk_use: self.allow_disk_use.map(|allowed| allowed.0),
            collation: document(self.collation),
            variables: shared_or_empty(invocation, self.variables),
            resume: after.or(at),
            wants_resume_token: self.request_resume_token.is_some_and(|wanted| wanted.0),
            ..FindRequest::new(namespace)
        })
    }
}

/// The collection by its name, which is neither a command's nor has a dollar.
fn named(invocation: &Invocation) -> Result<Namespace> {
    let namespace = invocation.collection()?;
    ensure!(
        !namespace.collection().contains('$') || namespace.as_str() == "local.oplog.$main",
        ErrorCode::InvalidNamespace,
        "Invalid collection name specified '{namespace}'"
    );
    Ok(namespace)
}

/// The collection by its name, or by its id as servers among themselves name it.
pub(super) fn namespace_or_uuid(invocation: &Invocation, data: &Data) -> Result<Namespace> {
    let Value::Binary { subtype: 4, bytes } = invocation.target() else { return named(invocation) };
    let uuid = bytes.try_into().map(Uuid::from_bytes).ok();
    let latest = data.catalog.latest();
    let found = uuid.as_ref().and_then(|uuid| latest.namespace_of(uuid)).cloned();
    ensure!(
        invocation.transaction().is_none() || !found.as_ref().is_some_and(|found| found.is_system_views()),
        ErrorCode::location(51070),
        "If performing a multi-document transaction, cannot read system.views by its UUID"
    );
    found.filter(|found| found.database() == invocation.database.as_str()).ok_or_else(|| {
        let id = uuid.map(|uuid| uuid.to_string()).unwrap_or_default();
        Error::new(ErrorCode::NamespaceNotFound, format!("Unable to resolve {id}"))
    })
}

/// A query is about to be planned with the indexes that there are.
pub(crate) static BEFORE_PLANNING: FailPoint = FailPoint::new("pauseAfterFillingOutIndexEntries");

/// Documents of a clustered collection do not become visible in the order of their keys: who follows them must not see what may be
/// taken back, or others are passed by.
fn check_tail(invocation: &Invocation, collection: &Collection) -> Result<()> {
    let is_ordered = !collection.is_clustered() || !collection.is_replicated();
    let is_certain = invocation.generic.read_concern_level() == Some("majority");
    ensure!(
        is_ordered || !invocation.node.replication.is_replica_set() || is_certain,
        ErrorCode::location(6049203),
        "Tailable cursors on clustered capped collections need the read concern 'majority'"
    );
    Ok(())
}

async fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    let arguments = FindArguments::parse(&invocation.request)?;
    let namespace = namespace_or_uuid(invocation, data)?;
    super::collections::check_uuid(data, &namespace, arguments.collection_uuid)?;
    ensure!(
        invocation.transaction().is_none() || !arguments.read_once.is_some_and(|once| once.0),
        ErrorCode::OperationNotSupportedInTransaction,
        "The 'readOnce' option is not supported within a transaction."
    );
    if let Some(filter) = arguments.filter_alone().filter(|filter| id_of(*filter).is_some()) {
        let mut operation = invocation.operation()?;
        begin_whole_read(invocation, data, &mut operation).await?;
        if let Some(found) = data.query.find_document(&mut operation, &namespace, filter)? {
            reply_with_one(invocation, &operation, &namespace, found.as_ref(), reply);
            return Ok(());
        }
        let request = arguments.request(invocation, namespace)?;
        return Box::pin(planned(invocation, data, operation, &arguments, request, reply)).await;
    }
    let request = arguments.request(invocation, namespace)?;
    request.validate()?;
    data.query.counters.disk_use(request.allow_disk_use);
    let mut operation = invocation.operation()?;
    match request.tailable || request.natural()? == Some(Direction::Reverse) {
        true => begin_read(invocation, data, &mut operation).await?,
        false => begin_whole_read(invocation, data, &mut operation).await?,
    }
    if let Some(found) = data.query.find_at_once(&mut operation, &request)? {
        reply_with_one(invocation, &operation, &request.namespace, found.as_ref(), reply);
        return Ok(());
    }
    Box::pin(planned(invocation, data, operation, &arguments, request, reply)).await
}

/// Runs a find that has begun to read, and needs a plan.
async fn planned(
    invocation: &Invocation,
    data: &Data,
    mut operation: CommandOperation<'_>,
    arguments: &FindArguments<'_>,
    request: FindRequest,
    reply: &mut DocBuilder,
) -> Result<()> {
    BEFORE_PLANNING.rest(&operation.context).await?;
    let source = match data.query.find(&mut operation, &request)? {
        FindPlan::Executor(executor) => executor,
        FindPlan::View(_) if arguments.read_once.is_some_and(|once| once.0) => {
            bail!(ErrorCode::InvalidPipelineOperator, "Option readOnce not supported in aggregation.")
        }
        FindPlan::View(_) => {
            return Box::pin(super::views::find(invocation, data, &mut operation, &request, reply)).await;
        }
    };
    if let Some(collection) = source.collection().filter(|_| request.tailable) {
        check_tail(invocation, collection)?;
    }
    let mut options = cursor_options(invocation, &request.namespace);
    options.collection = source.collection().map(|collection| collection.uuid);
    options.no_timeout = request.no_cursor_timeout;
    options.tailable = request.tailable && options.collection.is_some();
    options.await_data = request.await_data;
    let first = FirstBatch {
        limits: BatchLimits::first(request.batch_size),
        is_single: request.single_batch,
        limit: request.limit.and_then(|limit| u64::try_from(limit).ok()).filter(|limit| *limit > 0),
        options,
    };
    Box::pin(reply_with_first_batch(invocation, data, &mut operation, source, first, reply)).await
}
