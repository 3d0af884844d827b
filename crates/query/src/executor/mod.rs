//! Running a plan: pulling its stages, batch by batch, with yields in between.
//!
//! Everything here is synchronous and bounded: [`Executor::next_batch`] ends when a batch is full, when there is nothing more, or
//! when it is time to yield. The asynchronous caller then saves the executor, lets others run, and restores it under a new
//! snapshot ([`drive`] does that). A conflict in storage is a reason to yield, not an error: stages can repeat the work that
//! failed. Inside a transaction nothing may yield; there a conflict is an error, and time only a reason to look whether the
//! operation was stopped.
//!
//! Invariants: a document that was taken from the stages is returned exactly once; an executor whose collection was dropped or
//! renamed ends with `QueryPlanKilled`.

mod batch;
mod collections;
mod drive;
mod fail_points;
mod scripting;
mod yielding;

pub use batch::{BATCH_BYTES_MAX, BatchLimits, BatchSink, CountingSink, DocumentSink, FIRST_BATCH_COUNT};
pub use collections::{CatalogCollections, Collections};
pub(crate) use drive::give_way;
pub use drive::{drive, drive_to_end, yield_now};
pub use fail_points::FAIL_POINTS;
pub(crate) use fail_points::INDEX_SCAN_RESTORE;
pub(crate) use scripting::script_limits;
pub use scripting::{SCRIPT_PARAMETERS, StoredFunctions};
pub use yielding::{NO_TABLE_SCAN, PARAMETERS, YieldCause, YieldPolicy};
pub(crate) use yielding::{TRIAL_RESULTS_MAX, TRIAL_WORKS_MAX, cause_of, is_conflict};

use crate::stage::{
    CollectionScanStage, Examined, Look, Member, MultiPlanStage, Shown, StageNode, Step, plan_killed, record_id_value,
};
use crate::{CanonicalQuery, QueryCounters};
use pando_base::{Error, Namespace, OperationContext, RecordId, Result, Uuid};
use pando_catalog::Collection;
use pando_doc::{Doc, DocBuilder, DocRef};
use pando_operation::{Conflicts, Operation};
use std::cell::Cell;
use std::sync::Arc;
pub(crate) use yielding::YieldClock;

/// While a plan is chosen, somebody may want to stop after so many pieces of work.
const SETTLE_CHECK_INTERVAL: u64 = 128;

/// How a batch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchOutcome {
    /// It is full; there may be more.
    Full,
    /// There is nothing more, for now at least.
    Exhausted,
    /// Others are to run first; then it goes on.
    Yield(YieldCause),
}

/// What comes next.
#[derive(Debug)]
pub enum Next {
    /// A result.
    Result(Member),
    /// Nothing more, for now at least.
    Exhausted,
    /// Others are to run first.
    Yield(YieldCause),
}

/// What came of a look at results.
#[derive(Debug)]
pub enum Seen {
    /// Some were looked at, or none; there may be more.
    Some,
    /// Nothing more, for now at least.
    Exhausted,
    /// Others are to run first.
    Yield(YieldCause),
}

/// Pieces of work between two answers to whoever looks at results.
const SHOWN_AT_ONCE: usize = 64;
/// No more than that, and one document, is looked at between two answers: somebody may have to keep it after all.
const SHOWN_BYTES_AT_ONCE: usize = 256 * 1024;

/// Something that gives documents batch by batch, and can be left and taken up again: what a client's cursor stands on.
pub trait BatchSource: Send {
    /// Appends results until the batch is full.
    fn next_batch(&mut self, operation: &mut Operation, sink: &mut dyn DocumentSink) -> Result<BatchOutcome>;

    /// Lets go of the snapshot; the place is kept.
    fn save(&mut self);

    /// Goes on under the operation's present snapshot.
    fn restore(&mut self, operation: &mut Operation, collections: &dyn Collections) -> Result<()>;

    /// The plan in few words.
    fn plan_summary(&self) -> &str;

    /// True if it runs JavaScript, which may take its time without looking up.
    fn runs_scripts(&self) -> bool {
        false
    }

    /// True if it found nothing more and, tailable or not, never will.
    fn is_dead(&self) -> bool {
        false
    }

    /// True for a change stream that has told its end.
    fn is_invalidated(&self) -> bool {
        false
    }

    /// Where the query could be gone on with behind what it has given, if it was asked for that.
    fn resume_token(&self) -> Option<Doc> {
        None
    }

    /// Tells an operation that wants details what plan it has run, and how.
    fn tell(&self, context: &OperationContext) {
        context.describe(|description| description.plan_summary = self.plan_summary().to_owned().into());
    }
}

impl BatchSource for Executor {
    fn next_batch(&mut self, operation: &mut Operation, sink: &mut dyn DocumentSink) -> Result<BatchOutcome> {
        Executor::next_batch(self, operation, sink)
    }

    fn save(&mut self) {
        Executor::save(self);
    }

    fn restore(&mut self, operation: &mut Operation, collections: &dyn Collections) -> Result<()> {
        Executor::restore(self, operation, collections)
    }

    fn plan_summary(&self) -> &str {
        Executor::plan_summary(self)
    }

    fn runs_scripts(&self) -> bool {
        self.query.as_ref().and_then(|query| query.script.as_ref()).is_some_and(|script| script.is_used())
    }

    fn is_dead(&self) -> bool {
        self.root.find::<CollectionScanStage>().is_some_and(CollectionScanStage::is_finished)
    }

    fn resume_token(&self) -> Option<Doc> {
        self.resume_token.clone()
    }

    fn tell(&self, context: &OperationContext) {
        self.tell_plan(context, false, false);
    }
}

/// A plan being run.
pub struct Executor {
    root: StageNode,
    namespace: Namespace,
    /// The collection that is read; none if it was not there.
    collection: Option<(Uuid, Arc<Collection>)>,
    /// What was asked for, where it was planned for that.
    query: Option<Arc<CanonicalQuery>>,
    /// A result that did not fit into the last batch.
    stashed: Option<Doc>,
    show_record_id: bool,
    /// Where it could be gone on with, where that is asked for.
    resume_token: Option<Doc>,
    clock: YieldClock,
    /// Those since a piece of work was last done.
    conflicts: Conflicts,
    /// The last result came when it was time to yield: that is done before the next.
    is_due: bool,
    /// What was reported to the operation's statistics and to the node's so far.
    reported: Examined,
    counters: Option<Arc<QueryCounters>>,
    returned: u64,
    summary: String,
    is_saved: bool,
}

impl Executor {
    /// Stages that have done nothing yet.
    pub fn new(
        root: StageNode,
        namespace: Namespace,
        collection: Option<Arc<Collection>>,
        policy: YieldPolicy,
        summary: String,
    ) -> Executor {
        Executor {
            root,
            namespace,
            collection: collection.map(|collection| (collection.uuid, collection)),
            query: None,
            stashed: None,
            show_record_id: false,
            resume_token: None,
            clock: YieldClock::new(policy),
            conflicts: Conflicts::default(),
            is_due: false,
            reported: Examined::default(),
            counters: None,
            returned: 0,
            summary,
            is_saved: false,
        }
    }

    /// Adds `$recordId` to every document.
    #[must_use]
    pub fn showing_record_ids(mut self, show: bool) -> Executor {
        self.show_record_id = show;
        self
    }

    /// Counts for the whole node, too.
    #[must_use]
    pub(crate) fn counting(mut self, counters: &Arc<QueryCounters>) -> Executor {
        self.counters = Some(Arc::clone(counters));
        self
    }

    /// Says what was asked for.
    #[must_use]
    pub(crate) fn for_query(mut self, query: &Arc<CanonicalQuery>) -> Executor {
        self.query = Some(Arc::clone(query));
        if query.wants_resume_token {
            let given = query.resume.as_ref().and_then(|point| point.record_id.as_ref());
            self.resume_token = Some(token(given));
        }
        self
    }

    /// The indexes that its query could choose from.
    pub(crate) fn usable_indexes(&self) -> String {
        fn collect(node: &StageNode, names: &mut Vec<String>) {
            let mut described = DocBuilder::new();
            node.stage().describe(&mut described);
            let name = described.finish();
            names.extend(name.get("indexName").and_then(|name| name.as_str()).map(str::to_owned));
            node.children().iter().for_each(|child| collect(child, names));
        }
        if let Some(trial) = self.root.find::<MultiPlanStage>() {
            return trial.usable().to_owned();
        }
        let mut names = Vec::new();
        collect(&self.root, &mut names);
        names.sort_unstable();
        names.dedup();
        names.join(",")
    }

    /// Notes that everything up to where the scan stands was given.
    fn note_place(&mut self) {
        if self.resume_token.is_none() {
            return;
        }
        let place = self.root.find::<CollectionScanStage>().and_then(CollectionScanStage::place);
        if let Some(place) = place {
            self.resume_token = Some(token(place));
        }
    }

    /// What was asked for, where it was planned for that.
    pub(crate) fn query(&self) -> Option<&CanonicalQuery> {
        self.query.as_deref()
    }

    /// Its stages.
    pub fn root(&self) -> &StageNode {
        &self.root
    }

    /// Where it reads.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// The collection that it reads.
    pub fn collection(&self) -> Option<&Arc<Collection>> {
        self.collection.as_ref().map(|(_, collection)| collection)
    }

    /// The plan in few words.
    pub fn plan_summary(&self) -> &str {
        &self.summary
    }

    /// How many documents it returned.
    pub fn returned(&self) -> u64 {
        self.returned
    }

    /// Does a single piece of work, without a look at the time.
    pub(crate) fn work_once(&mut self, operation: &mut Operation) -> Result<Step> {
        self.root.work(operation)
    }

    /// Works until it is decided which of several plans goes on, without giving a result; false if that could not be done now.
    pub(crate) fn settle_plan(&mut self, operation: &mut Operation) -> Result<bool> {
        let is_open = |root: &StageNode| root.find::<MultiPlanStage>().is_some_and(|stage| !stage.is_settled());
        let mut works: u64 = 0;
        while is_open(&self.root) {
            works += 1;
            if works.is_multiple_of(SETTLE_CHECK_INTERVAL) {
                operation.context.check()?;
            }
            match self.root.work(operation) {
                Ok(Step::NeedTime) => {}
                Ok(_) => return Err(Error::internal("a plan gave a result before it was chosen")),
                Err(error) if yielding::is_conflict(&error) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Does pieces of work until there is a result, or nothing more, or it is time to yield. Every piece counts, also one that
    /// gives a result: whoever pulls results one by one may have nobody else who looks at the time.
    pub fn next(&mut self, operation: &mut Operation) -> Result<Next> {
        debug_assert!(!self.is_saved, "a saved executor is restored before it goes on");
        if std::mem::take(&mut self.is_due) {
            return Ok(Next::Yield(YieldCause::Time));
        }
        loop {
            let step = match self.root.work(operation) {
                Ok(step) => step,
                Err(error) => return yielding::cause_of(operation, &mut self.conflicts, error).map(Next::Yield),
            };
            self.conflicts.got_on();
            let member = match step {
                Step::Advanced(member) => Some(member),
                Step::Finished => return Ok(Next::Exhausted),
                Step::NeedTime => None,
            };
            let is_time = self.clock.is_time(operation)?;
            match member {
                Some(member) => {
                    self.is_due = is_time;
                    return Ok(Next::Result(member));
                }
                None if is_time => return Ok(Next::Yield(YieldCause::Time)),
                None => {}
            }
        }
    }

    /// Has some of the results looked at, in pieces of work as `next` does them.
    pub fn show(&mut self, operation: &mut Operation, look: &mut Look<'_>) -> Result<Seen> {
        debug_assert!(!self.is_saved, "a saved executor is restored before it goes on");
        if std::mem::take(&mut self.is_due) {
            return Ok(Seen::Yield(YieldCause::Time));
        }
        let shown_bytes = Cell::new(0);
        let mut look = |document: DocRef<'_>| {
            shown_bytes.set(shown_bytes.get() + document.size_bytes());
            look(document)
        };
        for _ in 0..SHOWN_AT_ONCE {
            match self.root.show(operation, &mut look) {
                Ok(Shown::Document | Shown::NeedTime) => {}
                Ok(Shown::Finished) => return Ok(Seen::Exhausted),
                Err(error) => return yielding::cause_of(operation, &mut self.conflicts, error).map(Seen::Yield),
            }
            self.conflicts.got_on();
            if self.clock.is_time(operation)? {
                return Ok(Seen::Yield(YieldCause::Time));
            }
            if shown_bytes.get() > SHOWN_BYTES_AT_ONCE {
                break;
            }
        }
        Ok(Seen::Some)
    }

    /// Appends results until the batch is full.
    pub fn next_batch(&mut self, operation: &mut Operation, sink: &mut dyn DocumentSink) -> Result<BatchOutcome> {
        let outcome = self.fill(operation, sink);
        self.report(operation);
        outcome
    }

    fn fill(&mut self, operation: &mut Operation, sink: &mut dyn DocumentSink) -> Result<BatchOutcome> {
        if let Some(document) = self.stashed.take()
            && !sink.offer(&document)
        {
            self.stashed = Some(document);
            return Ok(BatchOutcome::Full);
        }
        self.note_place();
        while !sink.is_full() {
            let member = match self.next(operation)? {
                Next::Result(member) => member,
                Next::Exhausted => {
                    self.note_place();
                    return Ok(BatchOutcome::Exhausted);
                }
                Next::Yield(cause) => return Ok(BatchOutcome::Yield(cause)),
            };
            let document = self.finished_document(member);
            self.returned += 1;
            if !sink.offer(&document) {
                self.stashed = Some(document);
                return Ok(BatchOutcome::Full);
            }
            self.note_place();
        }
        Ok(BatchOutcome::Full)
    }

    fn finished_document(&self, member: Member) -> Doc {
        let document = member.document.unwrap_or_default();
        if !self.show_record_id {
            return document;
        }
        let mut builder = DocBuilder::with_capacity(document.size_bytes() + 24);
        builder.append_all(document.view());
        builder.append_some("$recordId", member.record_id.as_ref().map(record_id_value));
        builder.finish()
    }

    /// Adds what was looked at since the last report to the operation's counters.
    pub fn report(&mut self, operation: &Operation) {
        let examined = self.root.examined();
        let news = Examined {
            keys: examined.keys.saturating_sub(self.reported.keys),
            documents: examined.documents.saturating_sub(self.reported.documents),
        };
        let statistics = operation.context.statistics();
        statistics.keys_examined.add(news.keys);
        statistics.documents_examined.add(news.documents);
        if let Some(counters) = &self.counters {
            counters.examined(news);
        }
        self.reported = examined;
    }

    /// Lets go of the snapshot; the place is kept.
    pub fn save(&mut self) {
        if !self.is_saved {
            self.root.save();
            self.is_saved = true;
        }
    }

    /// Goes on under the operation's present snapshot, which is opened if it is not. The collection has to be there still.
    pub fn restore(&mut self, operation: &mut Operation, collections: &dyn Collections) -> Result<()> {
        self.is_saved = false;
        self.is_due = false;
        self.clock.restart(operation);
        let Some((uuid, _)) = &self.collection else { return Ok(()) };
        let uuid = *uuid;
        let found = collections.reopen(operation, &self.namespace, &uuid)?;
        let Some(found) = found else { return Err(plan_killed(format!("collection dropped. UUID {uuid}"))) };
        if found.namespace != self.namespace {
            let reason = format!("collection renamed from '{}' to '{}'. UUID {uuid}", self.namespace, found.namespace);
            return Err(plan_killed(reason));
        }
        self.root.restore(operation, &found)?;
        self.collection = Some((uuid, found));
        Ok(())
    }
}

/// A token that says where a scan stands.
fn token(place: Option<&RecordId>) -> Doc {
    let mut token = DocBuilder::new();
    match place {
        Some(record_id) => token.append("$recordId", record_id_value(record_id)),
        None => token.append("$recordId", pando_doc::Value::Null),
    }
    token.finish()
}
