//! Inserts.

use crate::QueryEngine;
use pando_base::{ErrorCode, Result, Timestamp};
use pando_catalog::Collection;
use pando_collection::{InsertOptions, InsertStatement, can_batch_inserts};
use pando_doc::{Doc, DocRef, prepare_for_insert};
use pando_operation::{Operation, write_conflict_retry};
use pando_oplog::StatementIds;
use std::sync::Arc;

/// As many documents are inserted in one unit of work.
const BATCH_COUNT_MAX: usize = 128;
/// As many bytes.
const BATCH_BYTES_MAX: usize = 256 * 1024;

/// A document to be inserted, mended.
#[derive(Clone, Debug)]
pub struct InsertDocument {
    /// The document, with its `_id` in front.
    pub document: Doc,
    /// The statements of a retryable write.
    pub statement_ids: StatementIds,
}

impl QueryEngine {
    /// The document as it is stored: checked, with its `_id` in front and empty timestamps filled.
    pub fn prepare_insert(&self, operation: &Operation, document: DocRef<'_>) -> Result<Option<Doc>> {
        let env = &operation.env;
        prepare_for_insert(document, || self.object_ids.next(env), Some(|| self.present(operation)))
    }

    /// The same, but empty timestamps stay empty.
    pub fn prepare_insert_unfilled(&self, operation: &Operation, document: DocRef<'_>) -> Result<Option<Doc>> {
        let env = &operation.env;
        prepare_for_insert(document, || self.object_ids.next(env), None::<fn() -> Timestamp>)
    }

    /// The present as a timestamp, each time another one.
    pub(crate) fn present(&self, operation: &Operation) -> Timestamp {
        let seconds = operation.env.clock().wall_ms() / 1000;
        let increment = self.timestamps_given.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Timestamp(seconds << 32 | u64::from(increment % 0x00FF_FFFF + 1))
    }

    /// Inserts documents in order and tells of each what became of it; after an error only if the order does not matter. They
    /// go in groups, each in one unit of work; a group that fails is inserted one by one to see which it was.
    pub async fn insert(
        &self,
        operation: &mut Operation,
        collection: &Arc<Collection>,
        documents: &[InsertDocument],
        is_ordered: bool,
        options: InsertOptions,
    ) -> Vec<Result<()>> {
        let mut outcomes = Vec::with_capacity(documents.len());
        let mut rest = documents;
        while !rest.is_empty() {
            // A transaction ends with the first error, so that there is no second attempt to see which document it was.
            let count = if operation.in_multi_document_transaction() { 1 } else { group_size(rest, collection) };
            let (group, behind) = rest.split_at(count.min(rest.len()));
            rest = behind;
            let outcome = self.insert_group(operation, collection, group, options).await;
            if outcome.is_ok() || group.len() == 1 {
                outcomes.extend(std::iter::repeat_n(outcome, group.len()));
            } else {
                for document in group {
                    let outcome =
                        self.insert_group(operation, collection, std::slice::from_ref(document), options).await;
                    let failed = outcome.is_err();
                    outcomes.push(outcome);
                    if failed && is_ordered {
                        return outcomes;
                    }
                }
            }
            if is_ordered && outcomes.last().is_some_and(Result::is_err) {
                return outcomes;
            }
        }
        outcomes
    }

    async fn insert_group(
        &self,
        operation: &mut Operation,
        collection: &Arc<Collection>,
        group: &[InsertDocument],
        options: InsertOptions,
    ) -> Result<()> {
        let statements: Vec<InsertStatement<'_>> = group
            .iter()
            .map(|insert| InsertStatement {
                shared: options.shares_documents.then_some(&insert.document),
                statement_ids: insert.statement_ids.clone(),
                ..InsertStatement::new(insert.document.view())
            })
            .collect();
        write_conflict_retry(operation, "insert", &collection.namespace, |operation| {
            self.write_path.insert_documents(operation, collection, &statements, options).map(|_| ())
        })
        .await?;
        operation.context.statistics().inserted.add(group.len() as u64);
        Ok(())
    }
}

fn group_size(documents: &[InsertDocument], collection: &Collection) -> usize {
    if !can_batch_inserts(collection) {
        return 1;
    }
    let mut size_bytes = 0;
    let fits = |insert: &&InsertDocument| {
        size_bytes += insert.document.size_bytes();
        size_bytes <= BATCH_BYTES_MAX
    };
    documents.iter().take(BATCH_COUNT_MAX).take_while(fits).count().max(1)
}

/// True for the error of a key that is there already.
pub(crate) fn is_duplicate_key(error: &pando_base::Error) -> bool {
    error.code() == ErrorCode::DuplicateKey
}
