//! Deletes what was found.
//!
//! As with updates, a document that was found under an older snapshot has to be there and to match still.

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
}

/// Deletes.
pub struct DeleteStage {
    child: StageNode,
    collection: Arc<Collection>,
    parameters: DeleteParameters,
    pending: Option<Member>,
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
        documents.is_some_and(|documents| self.deleted >= documents)
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
}

impl Stage for DeleteStage {
    fn work(&mut self, operation: &mut Operation) -> Result<Step> {
        if self.is_finished {
            return Ok(Step::Finished);
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
        // Documents that nobody asks back are deleted in groups.
        let is_batched = self.parameters.multi && !self.parameters.returns_deleted;
        if is_batched { "BATCHED_DELETE" } else { "DELETE" }
    }

    one_child!();

    fn restore(&mut self, _operation: &mut Operation, collection: &Arc<Collection>) -> Result<()> {
        self.collection = Arc::clone(collection);
        Ok(())
    }

    fn describe_run(&self, out: &mut DocBuilder) {
        out.append("nWouldDelete", i32::try_from(self.deleted).unwrap_or(i32::MAX));
    }
}
