//! The source of a stream: reads the oplog forward and gives events.
//!
//! It opens the oplog when it is first pulled from, and makes sure that nothing behind the beginning is gone already. Entries
//! that do not concern the stream are passed over after a look at two fields, and those that the client's filters leave out after
//! a look at what they are. Events up to the one that a client came back with
//! are swallowed.

use super::event::{Event, EventFacts, Moment, event_of, invalidation};
use super::options::StreamOptions;
use super::state::StreamState;
use super::token::{ResumeStatus, ResumeToken};
use super::transaction::Unwinding;
use crate::executor::{Collections, Executor, Next};
use crate::pipeline::{DocumentSource, PipelineContext, Pulled};
use crate::planner::{CollectionScanPlan, PlanNode};
use crate::stage::{CollectionScanStage, StageNode};
use pando_base::{Error, ErrorCode, Namespace, RecordId, Result, Timestamp, ensure};
use pando_catalog::Collection;
use pando_doc::{Doc, DocRef, Value, doc};
use pando_operation::Operation;
use pando_oplog::{OpKind, Operation as OplogOperation, OplogEntry};
use pando_storage::Direction;
use std::sync::Arc;

/// Gives events.
pub(super) struct EventSource {
    options: Arc<StreamOptions>,
    state: Arc<StreamState>,
    /// The oplog and the scan of it, once it is open.
    scan: Option<(Arc<Collection>, Box<Executor>)>,
    unwinding: Option<Unwinding>,
    /// The event that says that the stream is over, to be given next.
    last: Option<Event>,
    is_over: bool,
    /// The client's own invalidation: the one that it came back with does not end the stream again.
    start_after_invalidation: Option<ResumeToken>,
    /// The beginning is passed.
    is_past_beginning: bool,
}

/// What the oplog has next.
enum Found {
    Event(Box<Event>),
    Nothing(Pulled),
}

impl EventSource {
    pub(super) fn new(options: &Arc<StreamOptions>, state: &Arc<StreamState>) -> EventSource {
        let beginning = &options.beginning;
        EventSource {
            options: Arc::clone(options),
            state: Arc::clone(state),
            scan: None,
            unwinding: None,
            last: None,
            is_over: false,
            start_after_invalidation: beginning.from_invalidate.then(|| beginning.clone()),
            is_past_beginning: false,
        }
    }

    /// The next event of the oplog, whether or not the client has seen it.
    fn find(&mut self, context: &mut PipelineContext<'_>) -> Result<Found> {
        loop {
            if let Some(unwinding) = &mut self.unwinding {
                match unwinding.next(context.operation)? {
                    Some((document, moment)) => {
                        let operation = OplogOperation::parse(document.view())?;
                        if self.options.scope.covers(&operation) && self.is_wanted(&operation, &moment) {
                            return self.event(&operation, &moment);
                        }
                    }
                    None => self.unwinding = None,
                }
                continue;
            }
            let (oplog, document) = match self.entry(context)? {
                (oplog, Next::Result(member)) => (oplog, member.document.unwrap_or_default()),
                (_, Next::Exhausted) => return Ok(Found::Nothing(Pulled::Exhausted)),
                (_, Next::Yield(cause)) => return Ok(Found::Nothing(Pulled::Yield(cause))),
            };
            if !self.may_concern(document.view()) {
                continue;
            }
            let entry = OplogEntry::parse(document.view())?;
            if entry.operation.kind == OpKind::Command {
                self.unwinding = Unwinding::of(context.operation, &oplog, &document, &entry)?;
            }
            if self.unwinding.is_none() && self.options.scope.covers(&entry.operation) {
                let moment =
                    Moment { cluster_time: entry.op_time.timestamp, wall_ms: entry.wall_ms, ..Moment::default() };
                if self.is_wanted(&entry.operation, &moment) {
                    return self.event(&entry.operation, &moment);
                }
            }
        }
    }

    fn is_wanted(&self, operation: &OplogOperation<'_>, moment: &Moment) -> bool {
        self.state.prefilter().is_none_or(|prefilter| prefilter.may_pass(&self.options, operation, moment))
    }

    fn event(&self, operation: &OplogOperation<'_>, moment: &Moment) -> Result<Found> {
        Ok(Found::Event(Box::new(event_of(&self.options, operation, moment)?)))
    }

    /// The next entry, of an oplog that is open afterwards.
    fn entry(&mut self, context: &mut PipelineContext<'_>) -> Result<(Arc<Collection>, Next)> {
        let (oplog, scan) = match &mut self.scan {
            Some(scan) => scan,
            none => none.insert(open(context, self.options.beginning.cluster_time)?),
        };
        let next = scan.next(context.operation)?;
        match &next {
            Next::Result(member) => {
                if let Some(RecordId::Long(time)) = member.record_id {
                    self.state.read(Timestamp(u64::try_from(time).unwrap_or_default()));
                }
            }
            Next::Exhausted | Next::Yield(_) => scan.report(context.operation),
        }
        Ok((Arc::clone(oplog), next))
    }

    fn may_concern(&self, entry: DocRef<'_>) -> bool {
        match (entry.get("op"), entry.get("ns")) {
            (Some(Value::String(kind)), Some(Value::String(ns))) => self.options.scope.may_cover(kind, ns),
            _ => false,
        }
    }

    /// Sees to it that a stream whose collection or database is gone ends.
    fn look_for_end(&mut self, facts: &EventFacts) -> Result<bool> {
        let began_after = self.start_after_invalidation.take();
        if !self.options.scope.is_ended_by(facts.operation_type) {
            return Ok(true);
        }
        let end = invalidation(facts)?;
        match began_after {
            None => self.last = Some(end),
            // The one that it came back with. It is found, whatever filters follow, and not told again; nor is its cause.
            Some(token) if token.against(&end.facts.token) == ResumeStatus::Found => {
                self.state.found_beginning();
                return Ok(false);
            }
            Some(_) => {}
        }
        Ok(true)
    }

    /// Gives an event, unless the client has seen it.
    fn give(&mut self, event: Event) -> Option<Pulled> {
        if !self.is_past_beginning {
            match event.facts.token.against(&self.options.beginning) {
                ResumeStatus::Before => return None,
                ResumeStatus::Surpassed => self.is_past_beginning = true,
                // The last stage has to see it.
                ResumeStatus::Found | ResumeStatus::NeedsSplit => {}
            }
        }
        self.state.sent(event.facts);
        Some(Pulled::Document(event.document))
    }
}

impl DocumentSource for EventSource {
    fn next(&mut self, context: &mut PipelineContext<'_>) -> Result<Pulled> {
        loop {
            if self.is_over {
                self.state.ended();
                return Ok(Pulled::Exhausted);
            }
            let event = match self.last.take() {
                Some(last) => {
                    self.is_over = true;
                    last
                }
                None => match self.find(context)? {
                    Found::Event(event) => {
                        if !self.look_for_end(&event.facts)? {
                            continue;
                        }
                        *event
                    }
                    Found::Nothing(pulled) => return Ok(pulled),
                },
            };
            if let Some(pulled) = self.give(event) {
                return Ok(pulled);
            }
        }
    }

    fn save(&mut self) {
        if let Some((_, scan)) = &mut self.scan {
            scan.save();
        }
    }

    fn restore(&mut self, operation: &mut Operation, collections: &dyn Collections) -> Result<()> {
        match &mut self.scan {
            Some((_, scan)) => scan.restore(operation, collections),
            None => Ok(()),
        }
    }

    fn executor(&self) -> Option<&Executor> {
        self.scan.as_ref().map(|(_, scan)| &**scan)
    }

    fn executor_mut(&mut self) -> Option<&mut Executor> {
        self.scan.as_mut().map(|(_, scan)| &mut **scan)
    }
}

/// Opens the oplog at this time. An error if something at or behind it may be gone.
fn open(context: &mut PipelineContext<'_>, from: Timestamp) -> Result<(Arc<Collection>, Box<Executor>)> {
    let oplog = context.engine.collections.open(context.operation, Namespace::oplog())?;
    let oplog =
        oplog.ok_or_else(|| Error::location(40573, "The $changeStream stage is only supported on replica sets"))?;
    let mut cursor = oplog.records.cursor(Direction::Forward);
    if let Some(first) = cursor.next(&mut context.operation.recovery_unit)? {
        ensure!(
            reaches_back(&first.id, DocRef::trusted(first.value), from),
            ErrorCode::ChangeStreamHistoryLost,
            "Resume of change stream was not possible, as the resume point may no longer be in the oplog."
        );
    }
    let plan = CollectionScanPlan {
        direction: Direction::Forward,
        filter: None,
        min: Some(RecordId::Long(i64::try_from(from.0).unwrap_or(i64::MAX))),
        max: None,
        tailable: true,
        resume: None,
        keeps_place: false,
        cluster: Box::default(),
        key_order: None,
        is_direction_given: false,
    };
    let root = StageNode::new(CollectionScanStage::new(plan.clone(), &oplog));
    let plan = PlanNode::CollectionScan(plan);
    let scan = context.engine.executor(root, Namespace::oplog(), Some(&oplog), &plan)?;
    Ok((oplog, Box::new(scan)))
}

/// True if the oplog that begins with this entry has everything from a time on: the entry is not younger, or is the very first
/// one of its set.
fn reaches_back(id: &RecordId, entry: DocRef<'_>, from: Timestamp) -> bool {
    let is_young = matches!(id, RecordId::Long(time) if u64::try_from(*time).is_ok_and(|time| Timestamp(time) > from));
    let is_first = || {
        let message: Doc = doc! { "msg": "initiating set" };
        entry.get("op").and_then(|op| op.as_str()) == Some("n")
            && entry.get("o").and_then(|o| o.as_document()).is_some_and(|o| o == message.view())
    };
    !is_young || is_first()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u13_an_oplog_that_was_cut_off_does_not_reach_back() {
        let time = |increment: u32| Timestamp::new(5, increment);
        let id = |increment: u32| RecordId::Long(i64::try_from(time(increment).0).unwrap());
        let first = doc! { "op": "n", "ns": "", "o": { "msg": "initiating set" } };
        let other = doc! { "op": "n", "ns": "", "o": { "msg": "periodic noop" } };
        assert!(reaches_back(&id(3), other.view(), time(3)) && reaches_back(&id(3), other.view(), time(4)));
        assert!(!reaches_back(&id(3), other.view(), time(2)));
        assert!(reaches_back(&id(3), first.view(), time(2)), "nothing was before the very first");
    }
}
