//! `findAndModify`.

use super::batch::as_int;
use super::collections::{check_can_write, collection_for_insert, lock_for_write, lock_if_capped};
use super::reading::{hint, shared, shared_or_empty};
use super::retryable::{RetryableWrite, statement, with_entry};
use super::update::update_value;
use crate::arguments::SafeBool;
use crate::table::run_boxed;
use crate::{Access, Admission, Class, CommandRow, Data, Invocation, NamespaceOf, OpCounter, SecondaryOk, arguments};
use pando_base::{Error, ErrorCode, Namespace, OperationKind, Result, Uuid, ensure};
use pando_doc::{Doc, DocBuilder, DocRef, OwnedValue, Value};
use pando_operation::Operation;
use pando_query::request::{FindAndModifyChange, FindAndModifyRequest};
use pando_session::{FindAndModifyShape, RetriedValue, retried_find_and_modify};

pub(super) const ROW: CommandRow = CommandRow {
    name: "findAndModify",
    aliases: &["findandmodify"],
    help: "{ findAndModify: \"collection\", query: {processed:false}, update: {$set: {processed:true}}, new: true}",
    run: |invocation, reply| run_boxed(run(invocation, reply)),
    class: Class::Write,
    secondary_ok: SecondaryOk::Never,
    is_allowed_in_transaction: true,
    is_retryable_write: true,
    is_in_api_version_1: true,
    takes_write_concern: true,
    admission: Admission::Write,
    kind: OperationKind::Command,
    op_counter: OpCounter::Command,
    namespace: NamespaceOf::FirstField,
    privileges: Access::Checked(crate::access::may_modify),
    ..CommandRow::DEFAULT
};

arguments! {
    pub(super) struct FindAndModifyArguments<'a> of "findAndModify" {
        query: Option<DocRef<'a>> = "query",
        fields: Option<DocRef<'a>> = "fields",
        sort: Option<DocRef<'a>> = "sort",
        hint: Option<Value<'a>> = "hint",
        collation: Option<DocRef<'a>> = "collation",
        array_filters: Option<Vec<DocRef<'a>>> = "arrayFilters",
        remove: SafeBool = "remove" or SafeBool(false),
        update: Option<Value<'a>> = "update",
        upsert: SafeBool = "upsert" or SafeBool(false),
        returns_new: SafeBool = "new" or SafeBool(false),
        bypass_validation: SafeBool = "bypassDocumentValidation" or SafeBool(false),
        bypass_empty_timestamps: SafeBool = "bypassEmptyTsReplacement" or SafeBool(false),
        variables: Option<DocRef<'a>> = "let",
        runtime_constants: Option<DocRef<'a>> = "runtimeConstants",
        legacy_runtime_constants: Option<DocRef<'a>> = "legacyRuntimeConstants",
        is_timeseries: Option<SafeBool> = "isTimeseriesNamespace",
        collection_uuid: Option<Uuid> = "collectionUUID",
        encryption: Option<DocRef<'a>> = "encryptionInformation",
        sample_id: Option<Uuid> = "sampleId",
    }
}

impl FindAndModifyArguments<'_> {
    fn check(&self) -> Result<()> {
        let (remove, update) = (self.remove.0, self.update);
        let is_pipeline = matches!(update, Some(Value::Array(_)));
        let refusals = [
            (remove && update.is_some(), "Cannot specify both an 'update' and 'remove'=true"),
            (remove && self.upsert.0, "Cannot specify both 'upsert'=true and 'remove'=true "),
            (
                remove && self.returns_new.0,
                "Cannot specify both 'new'=true and 'remove'=true; 'remove' always returns the deleted document",
            ),
            (remove && self.array_filters.is_some(), "Cannot specify 'arrayFilters' and 'remove'=true"),
            (is_pipeline && self.array_filters.is_some(), "Cannot specify 'arrayFilters' and a pipeline update"),
            (!remove && update.is_none(), "Either an update or 'remove'=true must be specified"),
        ];
        match refusals.into_iter().find(|(is_refused, _)| *is_refused) {
            Some((_, reason)) => Err(Error::failed_to_parse(reason)),
            None => Ok(()),
        }
    }

    /// What is asked of the query engine.
    pub(super) fn request(&self, invocation: &Invocation, namespace: Namespace) -> Result<FindAndModifyRequest> {
        self.check()?;
        let array_filters = self.array_filters.as_deref().unwrap_or_default();
        let change = match self.update {
            None => FindAndModifyChange::Remove,
            Some(update) => FindAndModifyChange::Update {
                update: update_value(invocation, update)?,
                upsert: self.upsert.0,
                returns_new: self.returns_new.0,
                array_filters: array_filters.iter().map(|filter| shared(invocation, *filter)).collect(),
            },
        };
        Ok(FindAndModifyRequest {
            namespace,
            filter: shared_or_empty(invocation, self.query),
            sort: shared_or_empty(invocation, self.sort),
            fields: shared_or_empty(invocation, self.fields),
            change,
            hint: hint(self.hint)?,
            collation: shared_or_empty(invocation, self.collation),
            variables: shared_or_empty(invocation, self.variables),
            bypass_document_validation: self.bypass_validation.0,
            bypass_empty_timestamp_replacement: self.bypass_empty_timestamps.0,
            statement_ids: pando_oplog::StatementIds::None,
        })
    }
}

/// What the reply tells.
struct Told {
    n: u64,
    updated_existing: Option<bool>,
    upserted: Option<OwnedValue>,
    value: Option<Doc>,
    retried: Option<i32>,
}

async fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    let namespace = invocation.collection()?;
    let arguments = FindAndModifyArguments::parse(&invocation.request)?;
    let mut request = arguments.request(invocation, namespace)?;
    check_can_write(invocation, data, &request.namespace, arguments.collection_uuid)?;
    let is_pipeline = matches!(arguments.update, Some(Value::Array(_)));
    invocation.node.counters.find_and_modify.count(is_pipeline, arguments.array_filters.is_some());
    let mut operation = invocation.operation()?;
    if super::stored_functions::are_needed(invocation.body()) {
        super::stored_functions::load(invocation, data, &mut operation).await?;
    }
    let retryable = RetryableWrite::begin(invocation, data, &mut operation, 1).await?;
    let (ids, executed) = statement(data, retryable.as_ref(), 0)?;
    let told = match (executed, &retryable) {
        (Some(entry), Some(retryable)) => {
            let id = ids.as_slice().first().copied();
            Told { retried: id, ..again(data, &mut operation, retryable, &arguments, &entry)? }
        }
        _ => {
            request.statement_ids = ids;
            modify(data, &mut operation, &request).await?
        }
    };
    if let (Some(meter), Some(value)) = (invocation.context.meter(), &told.value) {
        meter.document_returned(value.size_bytes());
    }
    append(told, reply);
    Ok(())
}

async fn modify(data: &Data, operation: &mut Operation, request: &FindAndModifyRequest) -> Result<Told> {
    let is_upsert = matches!(request.change, FindAndModifyChange::Update { upsert: true, .. });
    if is_upsert {
        collection_for_insert(data, operation, &request.namespace).await?;
    } else if let Some(collection) = lock_for_write(data, operation, &request.namespace).await?
        && matches!(request.change, FindAndModifyChange::Remove)
    {
        lock_if_capped(operation, &collection).await?;
    }
    let modified = data.query.find_and_modify(operation, request).await?;
    Ok(Told {
        n: modified.n,
        updated_existing: (!modified.is_remove).then_some(modified.updated_existing),
        upserted: modified.upserted,
        value: modified.value,
        retried: None,
    })
}

/// The answer to a statement that was carried out before.
fn again(
    data: &Data,
    operation: &mut Operation,
    retryable: &RetryableWrite,
    arguments: &FindAndModifyArguments<'_>,
    entry: &Doc,
) -> Result<Told> {
    let shape = FindAndModifyShape {
        remove: arguments.remove.0,
        returns_new: arguments.returns_new.0,
        upsert: arguments.upsert.0,
    };
    let (before, timestamp) =
        with_entry(entry, |entry| Ok((retried_find_and_modify(shape, entry)?, entry.op_time.timestamp)))?;
    let value = match before.value {
        RetriedValue::Null => None,
        RetriedValue::Inserted(document) => Some(document),
        RetriedValue::Image => {
            let image = data.session_table.load_image(operation, &retryable.session_of(retryable.statement_id(0))?)?;
            let image = image.filter(|image| image.timestamp == timestamp && !image.is_invalidated);
            ensure!(
                image.is_some(),
                ErrorCode::IncompleteTransactionHistory,
                "image collection no longer contains the complete write history of this transaction, record with \
                 oplogTs {timestamp} cannot be found"
            );
            image.map(|image| image.image)
        }
    };
    Ok(Told {
        n: u64::try_from(before.n).unwrap_or(0),
        updated_existing: before.updated_existing,
        upserted: before.upserted,
        value,
        retried: None,
    })
}

fn append(told: Told, reply: &mut DocBuilder) {
    reply.document("lastErrorObject", |last| {
        last.append("n", as_int(told.n));
        last.append_some("updatedExisting", told.updated_existing);
        last.append_some("upserted", told.upserted.as_ref());
    });
    match &told.value {
        Some(value) => reply.append("value", value),
        None => reply.append("value", Value::Null),
    }
    reply.append_some("retriedStmtId", told.retried);
}
