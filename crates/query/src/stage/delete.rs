//! Deletes what was found.
//!
//! As with updates, a document that was found under an older snapshot has to be there and to match still. Many documents are deleted
//! in batches (`delete_batch`), where nothing is against it.

use super::delete_batch::{DeleteBatch, Staged, fail_if_wanted};
use super::update::current;
use super::{Member, Stage, StageNode, Step, one_child};
use crate::planner::SharedFilter;
use pando_base::Result;
use pando_catalog::Collection;
use pando_collection::{DeleteArguments, WritePath};
use pando_doc::DocBuilder;
use pando_operation::Operation;
use pando_oplog::{RetryImage, StatementIds};
use std::sync::Arc;

/// How much one delete does; nothing where it does all of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeleteTarget {
    /// Documents.
    pub documents: Option<u64>,
    /// The time of the monotonic clock that it ends at.
    pub until_ns: Option<u64>,
}

/// How documents are deleted.
#[derive(Clone)]
pub struct DeleteParameters {
    /// Writes.
    pub write_path: Arc<WritePath>,
    /// What a document has to match still.
    pub filter: SharedFilter,
    /// All that match, not only the first.
    pub multi: bool,
    /// The deleted document comes out of the stage.
    pub returns_deleted: bool,
    /// The statements of a retryable write.
    pub statement_ids: StatementIds,
    /// The version that a retry will want.
    pub retry_image: Option<RetryImage>,
    /// Nothing is written; for `explain`.
    pub is_explain: bool,
    /// How much is done.
    pub target: DeleteTarget,
    /// How much is done in one unit of work; none for one document. Only for many that nobody asks back, outside of transactions.
    pub batch: Option<DeleteBatch>,
}

/// Deletes.
pub struct DeleteStage {
    child: StageNode,
    collection: Arc<Collection>,
    parameters: DeleteParameters,
    pending: Option<Member>,
    /// What a batch is to delete.
    staged: Staged,
    /// Nothing more is staged before what there is has been deleted.
    is_draining: bool,
    /// Nothing more is staged at all.
    is_staging_done: bool,
    is_finished: bool,
    deleted: u64,
    has_met_target: bool,
}

impl DeleteStage {
    /// Deletes what the child finds.
    pub fn new(child: StageNode, collection: &Arc<Collection>, parameters: DeleteParameters) -> DeleteStage {
        let collection = Arc::clone(collection);
        DeleteStage {
            child,
            collection,
            parameters,
            pending: None,
            staged: Staged::default(),
            is_draining: false,
            is_staging_done: false,
            is_finished: false,
            deleted: 0,
            has_met_target: false,
        }
    }

    /// How many documents were deleted.
    pub fn deleted(&self) -> u64 {
        self.deleted
    }

    /// It ended because it had done as much as it was given.
    pub fn has_met_target(&self) -> bool {
        self.has_met_target
    }

    fn meets_target(&self, operation: &Operation) -> bool {
        let DeleteTarget { documents, until_ns } = self.parameters.target;
        documents.is_some_and(|documents| self.deleted + self.staged.count() >= documents)
            || until_ns.is_some_and(|until_ns| operation.context.now_ns() >= until_ns)
    }

    fn delete(&mut self, operation: &mut Operation, member: &mut Member) -> Result<Step> {
        let found = current(operation, &self.collection, &self.parameters.filter, member)?;
        let Some((record_id, document, _)) = found else { return Ok(Step::NeedTime) };
        if !self.parameters.is_explain {
            let mut arguments = DeleteArguments::new(record_id.clone(), document.view());
            arguments.statement_ids = self.parameters.statement_ids.clone();
            arguments.retry_image = self.parameters.retry_image;
            self.parameters.write_path.delete_document(operation, &self.collection, &arguments)?;
        }
        self.deleted += 1;
        operation.context.statistics().deleted.add(1);
        self.has_met_target = self.meets_target(operation);
        self.is_finished = !self.parameters.multi || self.has_met_target;
        if !self.parameters.returns_deleted {
            return Ok(Step::NeedTime);
        }
        Ok(Step::Advanced(Member { record_id: Some(record_id), document: Some(document), ..Member::default() }))
    }

    /// A piece of work of a delete in batches: stages what was found, or deletes a batch.
    fn work_in_batches(&mut self, operation: &mut Operation, batch: &DeleteBatch) -> Result<Step> {
        if !self.is_draining && !self.is_staging_done {
            match self.child.work(operation)? {
                Step::Advanced(member) => self.staged.add(member),
                Step::NeedTime => return Ok(Step::NeedTime),
                Step::Finished => self.is_staging_done = true,
            }
            if !self.is_staging_done && self.meets_target(operation) {
                (self.has_met_target, self.is_staging_done) = (true, true);
            }
            self.is_draining = self.staged.is_full(batch);
        }
        if self.is_draining || self.is_staging_done {
            self.delete_batch(operation, batch)?;
        }
        if self.staged.is_empty() {
            self.is_draining = false;
            self.is_finished = self.is_staging_done;
        }
        Ok(if self.is_finished { Step::Finished } else { Step::NeedTime })
    }

    /// Deletes what is staged in one unit of work, or as much of it as there is time for. If that fails, nothing has happened.
    fn delete_batch(&mut self, operation: &mut Operation, batch: &DeleteBatch) -> Result<()> {
        if self.staged.is_empty() {
            return Ok(());
        }
        let start_ns = operation.context.now_ns();
        let write_path = Arc::clone(&self.parameters.write_path);
        let (collection, filter, staged) = (&self.collection, &self.parameters.filter, &mut self.staged);
        let (mut passed, mut deleted) = (0, 0);
        let outcome = write_path.in_group(operation, |operation| {
            for member in staged.of_one_entry() {
                passed += 1;
                if let Some((record_id, document, _)) = current(operation, collection, filter, member)? {
                    let arguments = DeleteArguments::new(record_id, document.view());
                    write_path.delete_document(operation, collection, &arguments)?;
                    deleted += 1;
                    fail_if_wanted(operation, collection.namespace.as_str(), deleted)?;
                }
                if batch.is_late(start_ns, operation.context.now_ns()) {
                    break;
                }
            }
            Ok(())
        });
        if let Err(error) = outcome {
            self.staged.forget_snapshots();
            return Err(error);
        }
        let staged_bytes = self.staged.drop_first(passed);
        self.deleted += deleted;
        operation.context.statistics().deleted.add(deleted);
        batch.counters().committed(deleted, staged_bytes, operation.context.now_ns().saturating_sub(start_ns));
        Ok(())
    }
}

impl Stage for DeleteStage {
    fn work(&mut self, operation: &mut Operation) -> Result<Step> {
        if self.is_finished {
            return Ok(Step::Finished);
        }
        if let Some(batch) = self.parameters.batch.clone().filter(|_| !self.parameters.is_explain) {
            return self.work_in_batches(operation, &batch);
        }
        let mut member = match self.pending.take() {
            Some(member) => member,
            None => match self.child.work(operation)? {
                Step::Advanced(member) => member,
                other => return Ok(other),
            },
        };
        let step = self.delete(operation, &mut member);
        if step.is_err() {
            member.snapshot = None;
            self.pending = Some(member);
        }
        step
    }

    fn name(&self) -> &'static str {
        if self.parameters.batch.is_some() { "BATCHED_DELETE" } else { "DELETE" }
    }

    one_child!();

    fn restore(&mut self, _operation: &mut Operation, collection: &Arc<Collection>) -> Result<()> {
        self.collection = Arc::clone(collection);
        let stale = self.staged.forget_snapshots();
        if let Some(batch) = &self.parameters.batch {
            batch.counters().refetched(stale);
        }
        Ok(())
    }

    fn describe_run(&self, out: &mut DocBuilder) {
        out.append("nWouldDelete", i32::try_from(self.deleted).unwrap_or(i32::MAX));
    }
}
