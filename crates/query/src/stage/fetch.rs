//! The documents of what was found, and a look at them.
//!
//! What was found under an older snapshot may have changed since: then the whole filter of the query is looked at again, not
//! only what the indexes left open.

use super::read_ahead::{RECORDS_AHEAD, ReadAhead, Taken};
use super::{Examined, Member, Stage, StageNode, Step, one_child};
use crate::planner::SharedFilter;
use pando_base::Result;
use pando_catalog::Collection;
use pando_doc::{Doc, DocBuilder};
use pando_operation::Operation;
use pando_storage::SnapshotId;
use std::sync::Arc;

/// Gets documents.
pub struct FetchStage {
    child: StageNode,
    collection: Arc<Collection>,
    filter: Option<SharedFilter>,
    /// The filter of the whole query, for what was found earlier.
    whole_filter: SharedFilter,
    /// What the child gave and did not go out yet.
    ahead: ReadAhead,
    /// Everything that is found is wanted.
    reads_ahead: bool,
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
            ahead: ReadAhead::default(),
            reads_ahead: false,
            documents_examined: 0,
            already_had: 0,
        }
    }

    /// The same where everything that is found is wanted.
    pub fn reading_ahead(self, reads_ahead: bool) -> FetchStage {
        FetchStage { reads_ahead, ..self }
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
                self.ahead.put_back(member);
                return Err(error.into());
            }
        };
        let snapshot = operation.recovery_unit.snapshot_id();
        let is_there = self.take_in(&mut member, found.map(Doc::trusted), snapshot)?;
        Ok(is_there.then_some(member))
    }

    /// Gives a member the document that was found under a snapshot; false if there is none, or another than was sought.
    fn take_in(&mut self, member: &mut Member, document: Option<Doc>, snapshot: Option<SnapshotId>) -> Result<bool> {
        self.documents_examined += 1;
        let Some(document) = document else { return Ok(false) };
        let is_older = member.snapshot.is_some() && member.snapshot != snapshot;
        if is_older && !self.whole_filter.try_matches(document.view())? {
            return Ok(false);
        }
        member.snapshot = snapshot;
        member.document = Some(document);
        Ok(true)
    }

    /// Takes records from the child, and reads what is best read together. If there is none, what the child said last.
    fn take(&mut self, operation: &mut Operation, taken_max: usize) -> Result<Option<Step>> {
        for _ in 0..taken_max {
            match self.child.work(operation)? {
                Step::Advanced(member) => self.ahead.push(member),
                other if self.ahead.is_empty() => return Ok(Some(other)),
                Step::NeedTime => {}
                Step::Finished => break,
            }
        }
        if self.ahead.len() > 1 {
            self.ahead.read(operation, &self.collection)?;
        }
        Ok(None)
    }

    fn next_member(&mut self, operation: &mut Operation) -> Result<Option<Member>> {
        match self.ahead.pop() {
            Some(Taken::Unread(member)) => self.fetch(operation, member),
            Some(Taken::Read(mut member, document)) => {
                let is_there = self.take_in(&mut member, document, self.ahead.snapshot())?;
                Ok(is_there.then_some(member))
            }
            None => Ok(None),
        }
    }
}

impl Stage for FetchStage {
    fn work(&mut self, operation: &mut Operation) -> Result<Step> {
        if self.ahead.is_empty() {
            let taken_max = if self.reads_ahead { RECORDS_AHEAD } else { 1 };
            if let Some(step) = self.take(operation, taken_max)? {
                return Ok(step);
            }
        }
        let Some(member) = self.next_member(operation)? else { return Ok(Step::NeedTime) };
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
