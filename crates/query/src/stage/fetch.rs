//! The documents of what was found, and a look at them.
//!
//! What was found under an older snapshot may have changed since: then the whole filter of the query is looked at again, not
//! only what the indexes left open.

use super::{Examined, Member, Stage, StageNode, Step, one_child};
use crate::planner::SharedFilter;
use pando_base::Result;
use pando_catalog::Collection;
use pando_doc::{Doc, DocBuilder};
use pando_operation::Operation;
use std::sync::Arc;

/// Gets documents.
pub struct FetchStage {
    child: StageNode,
    collection: Arc<Collection>,
    filter: Option<SharedFilter>,
    /// The filter of the whole query, for what was found earlier.
    whole_filter: SharedFilter,
    /// What the child gave and was not got yet.
    pending: Option<Member>,
    documents_examined: u64,
    already_had: u64,
}

impl FetchStage {
    /// Gets the documents of what the child finds.
    pub fn new(
        child: StageNode,
        collection: &Arc<Collection>,
        filter: Option<SharedFilter>,
        whole_filter: SharedFilter,
    ) -> FetchStage {
        FetchStage {
            child,
            collection: Arc::clone(collection),
            filter,
            whole_filter,
            pending: None,
            documents_examined: 0,
            already_had: 0,
        }
    }

    /// The member with its document; none if that is gone. Before an error the member is kept.
    fn fetch(&mut self, operation: &mut Operation, mut member: Member) -> Result<Option<Member>> {
        if member.document.is_some() {
            self.already_had += 1;
            return Ok(Some(member));
        }
        let Some(id) = &member.record_id else { return Ok(None) };
        let found = match self.collection.records.get(&mut operation.recovery_unit, id) {
            Ok(found) => found,
            Err(error) => {
                self.pending = Some(member);
                return Err(error.into());
            }
        };
        self.documents_examined += 1;
        let Some(bytes) = found else { return Ok(None) };
        let document = Doc::trusted(bytes);
        let snapshot = operation.recovery_unit.snapshot_id();
        let is_older = member.snapshot.is_some() && member.snapshot != snapshot;
        if is_older && !self.whole_filter.try_matches(document.view())? {
            return Ok(None);
        }
        member.snapshot = snapshot;
        member.document = Some(document);
        Ok(Some(member))
    }
}

impl Stage for FetchStage {
    fn work(&mut self, operation: &mut Operation) -> Result<Step> {
        let member = match self.pending.take() {
            Some(member) => member,
            None => match self.child.work(operation)? {
                Step::Advanced(member) => member,
                other => return Ok(other),
            },
        };
        let Some(member) = self.fetch(operation, member)? else { return Ok(Step::NeedTime) };
        let matches = match (&self.filter, &member.document) {
            (Some(filter), Some(document)) => filter.try_matches(document.view())?,
            _ => true,
        };
        Ok(if matches { Step::Advanced(member) } else { Step::NeedTime })
    }

    fn name(&self) -> &'static str {
        "FETCH"
    }

    one_child!();

    fn restore(&mut self, _operation: &mut Operation, collection: &Arc<Collection>) -> Result<()> {
        self.collection = Arc::clone(collection);
        Ok(())
    }

    fn describe(&self, out: &mut DocBuilder) {
        if let Some(filter) = &self.filter {
            out.append("filter", filter.to_document());
        }
    }

    fn describe_run(&self, out: &mut DocBuilder) {
        out.append("docsExamined", i32::try_from(self.documents_examined).unwrap_or(i32::MAX));
        out.append("alreadyHasObj", i32::try_from(self.already_had).unwrap_or(i32::MAX));
    }

    fn examined(&self) -> Examined {
        Examined { keys: 0, documents: self.documents_examined }
    }
}
