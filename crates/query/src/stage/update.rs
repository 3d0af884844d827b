//! Updates what was found.
//!
//! A document that was found under an older snapshot is read again and has to match the filter still: somebody may have changed
//! it in between. With several documents each is updated in its own unit of work, after which the scan goes on under a new
//! snapshot. There an updated document may turn up again, moved to another place of the index; it is passed by.

use super::{Member, Stage, StageNode, Step, one_child};
use crate::planner::SharedFilter;
use crate::write::DocumentChange;
use pando_base::{Error, RecordId, Result};
use pando_catalog::Collection;
use pando_collection::{UpdateArguments, WritePath};
use pando_doc::{Doc, DocBuilder};
use pando_expr::matcher::MatchDetails;
use pando_operation::Operation;
use pando_oplog::{RetryImage, StatementIds};
use std::collections::HashSet;
use std::sync::Arc;

/// Which version of a changed document is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReturnedImage {
    /// None.
    Nothing,
    /// As it was.
    Before,
    /// As it is.
    After,
}

/// How documents are updated.
#[derive(Clone)]
pub struct UpdateParameters {
    /// Writes.
    pub write_path: Arc<WritePath>,
    /// What becomes of a document.
    pub change: Arc<DocumentChange>,
    /// What a document has to match still.
    pub filter: SharedFilter,
    /// All that match, not only the first.
    pub multi: bool,
    /// Which version comes out of the stage.
    pub returned: ReturnedImage,
    /// The statements of a retryable write.
    pub statement_ids: StatementIds,
    /// The version that a retry will want.
    pub retry_image: Option<RetryImage>,
    /// The validator is left out.
    pub bypass_validation: bool,
    /// Nothing is written; for `explain`.
    pub is_explain: bool,
}

/// Updates.
pub struct UpdateStage {
    child: StageNode,
    collection: Arc<Collection>,
    parameters: UpdateParameters,
    /// What was found and not updated yet.
    pending: Option<Member>,
    /// What was updated; only where it could be found again.
    updated: Option<HashSet<RecordId>>,
    is_finished: bool,
    matched: u64,
    modified: u64,
}

impl UpdateStage {
    /// Updates what the child finds.
    pub fn new(child: StageNode, collection: &Arc<Collection>, parameters: UpdateParameters) -> UpdateStage {
        let may_meet_again = parameters.multi && (child.has("IXSCAN") || child.has("MULTI_PLAN"));
        UpdateStage {
            child,
            collection: Arc::clone(collection),
            parameters,
            pending: None,
            updated: may_meet_again.then(HashSet::new),
            is_finished: false,
            matched: 0,
            modified: 0,
        }
    }

    /// How many documents matched.
    pub fn matched(&self) -> u64 {
        self.matched
    }

    /// How many were changed by it.
    pub fn modified(&self) -> u64 {
        self.modified
    }

    fn update(&mut self, operation: &mut Operation, member: &mut Member) -> Result<Step> {
        let Some((record_id, document, details)) =
            current(operation, &self.collection, &self.parameters.filter, member)?
        else {
            return Ok(Step::NeedTime);
        };
        let change = Arc::clone(&self.parameters.change);
        let details = match details {
            None if change.needs_match_details() => self.parameters.filter.matches_with_details(document.view())?,
            details => details,
        };
        let changed = change.apply(document.view(), details.as_ref())?;
        if let Some(changed) = &changed
            && !self.parameters.is_explain
        {
            let mut arguments = UpdateArguments::new(
                record_id.clone(),
                document.view(),
                changed.document.view(),
                changed.oplog_object.view(),
            );
            arguments.statement_ids = self.parameters.statement_ids.clone();
            arguments.retry_image = self.parameters.retry_image;
            arguments.bypass_validation = self.parameters.bypass_validation;
            self.parameters.write_path.update_document(operation, &self.collection, &arguments)?;
        }
        self.matched += 1;
        operation.context.statistics().matched.add(1);
        let after = match changed {
            Some(changed) => {
                self.modified += 1;
                operation.context.statistics().modified.add(1);
                changed.document
            }
            None => document.clone(),
        };
        if let Some(updated) = &mut self.updated {
            updated.insert(record_id.clone());
        }
        self.is_finished = !self.parameters.multi;
        let returned = match self.parameters.returned {
            ReturnedImage::Nothing => return Ok(Step::NeedTime),
            ReturnedImage::Before => document,
            ReturnedImage::After => after,
        };
        Ok(Step::Advanced(Member { record_id: Some(record_id), document: Some(returned), ..Member::default() }))
    }
}

/// The document as it is now, if it is there and matches still; with how it matched, if it was looked at.
pub(super) fn current(
    operation: &mut Operation,
    collection: &Collection,
    filter: &SharedFilter,
    member: &mut Member,
) -> Result<Option<(RecordId, Doc, Option<MatchDetails>)>> {
    let Some(record_id) = member.record_id.clone() else {
        return Err(Error::internal("a result that is no record cannot be written"));
    };
    let snapshot = operation.recovery_unit.snapshot_id();
    if let (Some(document), true) = (&member.document, snapshot.is_some() && member.snapshot == snapshot) {
        return Ok(Some((record_id, document.clone(), None)));
    }
    let Some(bytes) = collection.records.get(&mut operation.recovery_unit, &record_id)? else { return Ok(None) };
    let document = Doc::trusted(bytes);
    let Some(details) = filter.matches_with_details(document.view())? else { return Ok(None) };
    Ok(Some((record_id, document, Some(details))))
}

impl Stage for UpdateStage {
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
        let is_known = |updated: &HashSet<RecordId>| member.record_id.as_ref().is_some_and(|id| updated.contains(id));
        if self.updated.as_ref().is_some_and(is_known) {
            return Ok(Step::NeedTime);
        }
        let step = self.update(operation, &mut member);
        if step.is_err() {
            // The unit is rolled back; under another snapshot it may succeed.
            member.snapshot = None;
            self.pending = Some(member);
        }
        step
    }

    fn name(&self) -> &'static str {
        "UPDATE"
    }

    one_child!();

    fn restore(&mut self, _operation: &mut Operation, collection: &Arc<Collection>) -> Result<()> {
        self.collection = Arc::clone(collection);
        Ok(())
    }

    fn describe_run(&self, out: &mut DocBuilder) {
        out.append("nMatched", i32::try_from(self.matched).unwrap_or(i32::MAX));
        out.append("nWouldModify", i32::try_from(self.modified).unwrap_or(i32::MAX));
        out.append("nWouldUpsert", 0_i32);
    }
}
