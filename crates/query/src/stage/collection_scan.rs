//! The records one after the other.
//!
//! A document is matched where it lies; only what matches is shared. At the end, a tailable scan can be pulled again: the
//! cursor stays at the last record and goes on when there is another. If that record was deleted meanwhile, which in a capped
//! collection means that the scan was too slow, it ends with an error.

use super::{Examined, Look, Member, Shown, Stage, Step};
use crate::planner::CollectionScanPlan;
use crate::request::direction_number;
use pando_base::{Error, ErrorCode, RecordId, Result};
use pando_catalog::Collection;
use pando_doc::{Doc, DocBuilder, DocRef};
use pando_operation::Operation;
use pando_storage::{Direction, RecordCursor, RecoveryUnit};
use std::sync::Arc;

/// What a step came to.
enum Advance {
    /// A record that matches.
    Found(RecordId),
    /// Another one.
    Other,
    /// There is none.
    End,
}

/// Scans the records.
pub struct CollectionScanStage {
    plan: CollectionScanPlan,
    collection: Arc<Collection>,
    cursor: RecordCursor,
    /// The record stood on, which is where a tailable scan goes on.
    last: Option<RecordId>,
    /// The cursor has to be put to its place before it moves: at the start, and where a tailable scan met the end.
    needs_place: bool,
    is_finished: bool,
    documents_examined: u64,
}

impl CollectionScanStage {
    /// A scan that stands before its first record.
    pub fn new(plan: CollectionScanPlan, collection: &Arc<Collection>) -> CollectionScanStage {
        let cursor = collection.records.cursor(plan.direction);
        CollectionScanStage {
            collection: Arc::clone(collection),
            last: plan.resume.as_ref().and_then(|point| point.record_id.clone()),
            plan,
            cursor,
            needs_place: true,
            is_finished: false,
            documents_examined: 0,
        }
    }

    /// The plan that it runs.
    pub fn plan(&self) -> &CollectionScanPlan {
        &self.plan
    }

    /// The next record's id; matched and shared afterwards.
    fn advance(&mut self, operation: &mut Operation) -> Result<Option<(RecordId, bool)>> {
        let unit = &mut operation.recovery_unit;
        let start = match self.plan.direction {
            Direction::Forward => self.plan.min.as_ref(),
            Direction::Reverse => self.plan.max.as_ref(),
        };
        let record = match (&self.last, start) {
            (None, Some(start)) if self.needs_place => {
                if self.plan.cluster.is_bounded() && !has_record(&self.collection, self.plan.direction, unit, start)? {
                    self.documents_examined += 1;
                }
                self.cursor.seek(unit, start)?
            }
            (Some(last), _) if self.needs_place => {
                let is_there = self.cursor.seek_exact(unit, last)?.is_some();
                match &self.plan.resume {
                    _ if is_there => self.cursor.next(unit)?,
                    Some(point) if self.documents_examined == 0 && point.may_be_gone => self.cursor.seek(unit, last)?,
                    Some(_) if self.documents_examined == 0 => return Err(resume_point_lost(last)),
                    _ => return Err(position_lost(last)),
                }
            }
            _ => self.cursor.next(unit)?,
        };
        let Some(record) = record else { return Ok(None) };
        let matches = match &self.plan.filter {
            Some(filter) => filter.try_matches(DocRef::trusted(record.value))?,
            None => true,
        };
        Ok(Some((record.id, matches)))
    }

    /// To the next record that is within the bounds, and a look at it.
    fn go_on(&mut self, operation: &mut Operation) -> Result<Advance> {
        if self.is_finished {
            return Ok(Advance::End);
        }
        let Some((id, matches)) = self.advance(operation)? else {
            self.meet_end();
            return Ok(Advance::End);
        };
        // One behind the end was looked at, too.
        self.documents_examined += 1;
        if self.is_beyond(&id) {
            self.is_finished = true;
            return Ok(Advance::End);
        }
        self.needs_place = false;
        if self.minds_its_place() || self.plan.keeps_place {
            self.last = Some(id.clone());
        }
        Ok(if matches { Advance::Found(id) } else { Advance::Other })
    }

    /// True if it will not find anything more, whatever comes.
    pub fn is_finished(&self) -> bool {
        self.is_finished
    }

    /// Where it stands, if it was asked to keep that; none inside before the first record.
    pub fn place(&self) -> Option<Option<&RecordId>> {
        self.plan.keeps_place.then_some(self.last.as_ref())
    }

    /// A cursor past the end does not come back by itself.
    fn meet_end(&mut self) {
        // A scan that has seen no record has no place to go on from.
        let has_place = self.last.is_some() || self.plan.min.is_some();
        self.is_finished = !(self.plan.tailable && has_place);
        if self.is_finished && self.plan.keeps_place {
            // There is no place to go on from where everything was given.
            self.last = None;
        }
        if !self.is_finished {
            self.cursor = self.collection.records.cursor(self.plan.direction);
            self.needs_place = true;
        }
    }

    /// True if it may not go on where the record that it stood on has gone: it could have missed others that went after it.
    fn minds_its_place(&self) -> bool {
        self.plan.tailable || (self.collection.is_capped() && self.plan.direction == Direction::Forward)
    }

    fn is_beyond(&self, id: &RecordId) -> bool {
        match self.plan.direction {
            Direction::Forward => {
                let is_exclusive = self.plan.cluster.max.as_ref().is_some_and(|edge| !edge.is_inclusive);
                self.plan.max.as_ref().is_some_and(|max| id > max || (is_exclusive && id == max))
            }
            Direction::Reverse => {
                let is_exclusive = self.plan.cluster.min.as_ref().is_some_and(|edge| !edge.is_inclusive);
                self.plan.min.as_ref().is_some_and(|min| id < min || (is_exclusive && id == min))
            }
        }
    }
}

/// False if a scan of a clustered collection comes to its first record from one that lies before the bounds, which it has then looked at.
fn has_record(
    collection: &Collection,
    direction: Direction,
    unit: &mut RecoveryUnit,
    start: &RecordId,
) -> Result<bool> {
    let back = if direction == Direction::Forward { Direction::Reverse } else { Direction::Forward };
    let mut cursor = collection.records.cursor(back);
    let before = cursor.seek(unit, start)?;
    Ok(before.is_none_or(|record| record.id == *start))
}

fn position_lost(id: &RecordId) -> Error {
    let reason =
        format!("CollectionScan died due to position in capped collection being deleted. Last seen record id: {id:?}");
    Error::new(ErrorCode::CappedPositionLost, reason)
}

fn resume_point_lost(id: &RecordId) -> Error {
    let reason = format!(
        "Failed to resume collection scan: the recordId from which we are attempting to resume no longer exists in the collection. recordId: {id:?}"
    );
    Error::new(ErrorCode::KeyNotFound, reason)
}

impl Stage for CollectionScanStage {
    fn work(&mut self, operation: &mut Operation) -> Result<Step> {
        let id = match self.go_on(operation)? {
            Advance::Found(id) => id,
            Advance::Other => return Ok(Step::NeedTime),
            Advance::End => return Ok(Step::Finished),
        };
        let document = self.cursor.value_bytes().map(Doc::trusted);
        let snapshot = operation.recovery_unit.snapshot_id();
        Ok(Step::Advanced(Member { record_id: Some(id), document, snapshot, ..Member::default() }))
    }

    fn show(&mut self, operation: &mut Operation, look: &mut Look<'_>) -> Result<Shown> {
        match self.go_on(operation)? {
            Advance::Found(_) => {}
            Advance::Other => return Ok(Shown::NeedTime),
            Advance::End => return Ok(Shown::Finished),
        }
        match self.cursor.value() {
            Some(value) => look(DocRef::trusted(value))?,
            None => look(self.cursor.value_bytes().map(Doc::trusted).unwrap_or_default().view())?,
        }
        Ok(Shown::Document)
    }

    fn name(&self) -> &'static str {
        self.plan.stage_name()
    }

    fn save(&mut self) {
        self.cursor.save();
    }

    fn restore(&mut self, operation: &mut Operation, collection: &Arc<Collection>) -> Result<()> {
        self.collection = Arc::clone(collection);
        if let Some(last) = self.last.as_ref().filter(|_| self.minds_its_place() && self.documents_examined > 0) {
            let mut probe = self.collection.records.cursor(self.plan.direction);
            if probe.seek_exact(&mut operation.recovery_unit, last)?.is_none() {
                return Err(position_lost(last));
            }
        }
        Ok(())
    }

    fn describe(&self, out: &mut DocBuilder) {
        if let Some(filter) = &self.plan.filter {
            out.append("filter", filter.to_document());
        }
        for (name, bound) in [("minRecord", &self.plan.min), ("maxRecord", &self.plan.max)] {
            out.append_some(name, bound.as_ref().and_then(RecordId::as_long));
        }
        for (name, edge) in [("minRecord", &self.plan.cluster.min), ("maxRecord", &self.plan.cluster.max)] {
            out.append_some(name, edge.as_ref().map(|edge| &edge.value));
        }
        out.append("direction", if direction_number(self.plan.direction) == 1 { "forward" } else { "backward" });
    }

    fn describe_run(&self, out: &mut DocBuilder) {
        out.append("docsExamined", i64::try_from(self.documents_examined).unwrap_or(i64::MAX) as i32);
    }

    fn examined(&self) -> Examined {
        Examined { keys: 0, documents: self.documents_examined }
    }
}
