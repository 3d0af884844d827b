//! `insert`.
//!
//! Documents go in groups, each with the collection's lock of its own, so that a long batch keeps nobody out. A document
//! that cannot be stored, or was stored by an earlier attempt, ends the group before it.

use super::batch::{BatchResult, check_count};
use super::collections::{check_can_write, collection_for_insert};
use super::fail_points;
use super::retryable::{RetryableWrite, statement};
use crate::arguments::SafeBool;
use crate::locking::unlock;
use crate::table::run_boxed;
use crate::timeseries::{buckets_to_write, check_bypass};
use crate::{Access, Admission, Class, CommandRow, Data, Invocation, NamespaceOf, OpCounter, SecondaryOk, arguments};
use pando_base::{ErrorCode, Namespace, OperationKind, Result, ensure};
use pando_collection::InsertOptions;
use pando_doc::{ArrayRef, Doc, DocBuilder, DocRef};
use pando_operation::Operation;
use pando_oplog::StatementIds;
use pando_query::executor::yield_now;
use pando_query::write::InsertDocument;
use pando_wire::Documents;

/// As many documents are inserted under one lock.
const GROUP_COUNT_MAX: usize = 128;
/// As many bytes.
const GROUP_BYTES_MAX: usize = 256 * 1024;
/// As many measurements.
const SERIES_COUNT_MAX: usize = 10_000;
/// As many bytes of them.
const SERIES_BYTES_MAX: usize = 4 * 1024 * 1024;

pub(super) const ROW: CommandRow = CommandRow {
    name: "insert",
    help: "insert documents",
    run: |invocation, reply| run_boxed(run(invocation, reply)),
    class: Class::Write,
    secondary_ok: SecondaryOk::Never,
    is_allowed_in_transaction: true,
    is_retryable_write: true,
    is_in_api_version_1: true,
    takes_write_concern: true,
    admission: Admission::Write,
    kind: OperationKind::Insert,
    op_counter: OpCounter::Own,
    namespace: NamespaceOf::FirstField,
    privileges: Access::Checked(crate::access::may_insert),
    ..CommandRow::DEFAULT
};

arguments! {
    struct InsertArguments<'a> of "insert" {
        documents: Documents<'a> = "documents",
        ordered: bool = "ordered" or true,
        bypass_validation: SafeBool = "bypassDocumentValidation" or SafeBool(false),
        bypass_empty_timestamps: SafeBool = "bypassEmptyTsReplacement" or SafeBool(false),
        statement_ids: Option<ArrayRef<'a>> = "stmtIds",
        is_timeseries: Option<SafeBool> = "isTimeseriesNamespace",
        collection_uuid: Option<pando_base::Uuid> = "collectionUUID",
        encryption: Option<DocRef<'a>> = "encryptionInformation",
    }
}

async fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    let namespace = invocation.collection()?;
    let arguments = InsertArguments::parse(&invocation.request)?;
    check_count(arguments.documents.len())?;
    check_can_write(invocation, data, &namespace, arguments.collection_uuid)?;
    check_bypass(data, &namespace, arguments.bypass_validation.0)?;
    let buckets = buckets_to_write(data, &namespace, arguments.is_timeseries)?;
    ensure!(
        buckets.is_none() || invocation.transaction().is_none(),
        ErrorCode::OperationNotSupportedInTransaction,
        "Cannot insert into a time-series collection in a multi-document transaction: {namespace}"
    );
    let shares_message = fills_most_of(arguments.documents.size_bytes(), invocation.request.size_bytes());
    let mut operation = invocation.operation()?;
    let retryable = RetryableWrite::begin(invocation, data, &mut operation, arguments.documents.len()).await?;
    let mut inserts = Inserts {
        invocation,
        data,
        namespace: buckets.as_ref().unwrap_or(&namespace),
        is_timeseries: buckets.is_some(),
        // A transaction ends with the first error.
        is_ordered: arguments.ordered || invocation.transaction().is_some(),
        bypass_empty_timestamps: arguments.bypass_empty_timestamps.0,
        shares_message,
        options: InsertOptions {
            bypass_validation: arguments.bypass_validation.0,
            shares_documents: true,
            ..InsertOptions::default()
        },
        result: BatchResult::new(invocation),
        group: Vec::with_capacity(arguments.documents.len().min(GROUP_COUNT_MAX)),
        group_start: 0,
        group_bytes: 0,
    };
    inserts.run(&mut operation, retryable.as_ref(), arguments.documents).await?;
    inserts.result.append_to(invocation, data, false, reply);
    Ok(())
}

/// True if so many bytes of documents are three quarters of their message or more.
fn fills_most_of(documents_bytes: usize, message_bytes: usize) -> bool {
    documents_bytes.saturating_mul(4) >= message_bytes.saturating_mul(3)
}

/// A batch in progress.
struct Inserts<'a> {
    invocation: &'a Invocation,
    data: &'a Data,
    namespace: &'a Namespace,
    /// They are measurements, and go into buckets.
    is_timeseries: bool,
    is_ordered: bool,
    bypass_empty_timestamps: bool,
    /// Documents may stay in the message that they came in.
    shares_message: bool,
    options: InsertOptions,
    result: BatchResult<'a>,
    /// Documents next to each other in the batch that go together.
    group: Vec<InsertDocument>,
    group_start: usize,
    group_bytes: usize,
}

impl Inserts<'_> {
    async fn run(
        &mut self,
        operation: &mut Operation,
        retryable: Option<&RetryableWrite>,
        documents: Documents<'_>,
    ) -> Result<()> {
        for (index, document) in documents.iter().enumerate() {
            let (ids, executed) = statement(self.data, retryable, index)?;
            if executed.is_some() {
                if !self.flush(operation).await? {
                    return Ok(());
                }
                self.result.n += 1;
                ids.as_slice().iter().for_each(|id| self.result.retried(*id));
                continue;
            }
            match self.prepare(operation, document) {
                Ok(document) => self.add(index, document, ids),
                Err(error) => {
                    if !self.flush(operation).await? || !self.result.failed(index, error, self.is_ordered)? {
                        return Ok(());
                    }
                    continue;
                }
            }
            // Measurements of one source go into a bucket together: the more there are, the fewer buckets are written.
            let is_full = match self.is_timeseries {
                true => self.group.len() >= SERIES_COUNT_MAX || self.group_bytes >= SERIES_BYTES_MAX,
                false => self.group.len() >= GROUP_COUNT_MAX || self.group_bytes >= GROUP_BYTES_MAX,
            };
            if is_full {
                if !self.flush(operation).await? {
                    return Ok(());
                }
                // A long batch keeps nobody waiting; a short one is not worth going to the end of the queue.
                yield_now().await;
            }
        }
        self.flush(operation).await.map(|_| ())
    }

    /// The document as it is stored. One that needs nothing is not copied, unless it would keep a message that is mostly
    /// something else.
    fn prepare(&self, operation: &Operation, document: DocRef<'_>) -> Result<Doc> {
        let mended = match self.bypass_empty_timestamps {
            true => self.data.query.prepare_insert_unfilled(operation, document)?,
            false => self.data.query.prepare_insert(operation, document)?,
        };
        Ok(mended.unwrap_or_else(|| match self.shares_message {
            true => Doc::trusted(self.invocation.request.share(document.bytes())),
            false => document.to_doc(),
        }))
    }

    fn add(&mut self, index: usize, document: Doc, statement_ids: StatementIds) {
        if self.group.is_empty() {
            self.group_start = index;
            self.group_bytes = 0;
        }
        debug_assert_eq!(self.group_start + self.group.len(), index, "a group has no gaps");
        self.group_bytes += document.size_bytes();
        self.group.push(InsertDocument { document, statement_ids });
    }

    /// Inserts the group; false if the batch ends here.
    async fn flush(&mut self, operation: &mut Operation) -> Result<bool> {
        if self.group.is_empty() {
            return Ok(true);
        }
        let group = std::mem::take(&mut self.group);
        self.invocation.node.counters.operations.insert.add(group.len() as u64);
        if let Err(error) = fail_points::INSERT.before_lock(&operation.context, self.namespace).await {
            return self.fail_group(group.len(), &error);
        }
        let collection = match collection_for_insert(self.data, operation, self.namespace).await {
            Ok(collection) => collection,
            Err(error) => {
                unlock(operation);
                return self.fail_group(group.len(), &error);
            }
        };
        fail_points::INSERT.with_lock(&operation.context, self.namespace).await?;
        let query = &self.data.query;
        let outcomes = match self.is_timeseries {
            true => Box::pin(query.insert_measurements(operation, &collection, &group, self.is_ordered)).await,
            false => query.insert(operation, &collection, &group, self.is_ordered, self.options).await,
        };
        unlock(operation);
        let mut goes_on = true;
        for (place, outcome) in outcomes.into_iter().enumerate() {
            match outcome {
                Ok(()) => self.result.n += 1,
                Err(error) => goes_on &= self.result.failed(self.group_start + place, error, self.is_ordered)?,
            }
        }
        self.group = group;
        self.group.clear();
        Ok(goes_on)
    }

    /// Every document of the group fails for the same reason.
    fn fail_group(&mut self, count: usize, error: &pando_base::Error) -> Result<bool> {
        for place in 0..count {
            if !self.result.failed(self.group_start + place, error.clone(), self.is_ordered)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
