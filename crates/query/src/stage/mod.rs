//! The stages that plans are run by.
//!
//! A tree of stages is pulled from its root: each [`StageNode::work`] does a small piece of work and tells what came of it.
//! Documents are shared bytes; nothing is copied on the way up.
//!
//! Invariants:
//! - A `work` that fails because of a conflict in storage has not lost anything: after a restore it may be called again. So
//!   a stage that does something in storage with what its child gave it keeps that until it succeeded.
//! - After `save` no stage holds on to a snapshot. `restore` gets the collection as the new snapshot has it.
//! - Counters say what was done, never what was planned.
//!
//! Stages must not know commands, cursors of clients or how their plan was chosen.

mod and;
mod build;
mod collection_scan;
mod count_scan;
mod delete;
mod delete_batch;
mod distinct_scan;
mod encoded_bounds;
mod eof;
mod fetch;
mod found_ids;
mod id_hack;
mod index_scan;
mod limit;
mod member;
mod multi_plan;
mod near;
mod or;
mod projection;
mod read_ahead;
mod return_key;
mod skip;
mod sort;
mod sort_key;
mod sort_merge;
mod text;
mod update;

pub use build::{BuildContext, build};
pub use collection_scan::CollectionScanStage;
pub use delete::{DeleteParameters, DeleteStage, DeleteTarget};
pub(crate) use delete_batch::are_client_deletes_batched;
pub use delete_batch::{DELETE_FAIL_POINTS, DELETE_PARAMETERS, DeleteBatch, DeleteBatchCounters};
pub use eof::EofStage;
pub use id_hack::IdHackStage;
pub(crate) use id_hack::find_by_id;
pub use index_scan::IndexScanStage;
pub use member::{GeoNearMetadata, IndexKey, KeyLayout, Member, Metadata};
pub(crate) use member::{distance_missing, record_id_value, text_score_missing};
pub use multi_plan::{Candidate, MultiPlanStage, Outcome};
pub(crate) use near::Nearest;
pub use sort_key::SortKeyGenerator;
pub use update::{ReturnedImage, UpdateParameters, UpdateStage};

use pando_base::{Error, ErrorCode, Result};
use pando_catalog::Collection;
use pando_doc::{DocBuilder, DocRef};
use pando_operation::Operation;
use std::any::Any;
use std::sync::Arc;

/// What came of a piece of work.
#[derive(Debug)]
pub enum Step {
    /// A result.
    Advanced(Member),
    /// Nothing yet.
    NeedTime,
    /// There is nothing more, for now at least.
    Finished,
}

/// Whoever looks at documents without keeping them.
pub type Look<'l> = dyn FnMut(DocRef<'_>) -> Result<()> + 'l;

/// What came of a piece of work whose results are only looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    /// A document was looked at.
    Document,
    /// Nothing yet.
    NeedTime,
    /// There is nothing more, for now at least.
    Finished,
}

/// A look at a result.
fn show_result(step: Step, look: &mut Look<'_>) -> Result<Shown> {
    match step {
        Step::Advanced(member) => look(member.document.unwrap_or_default().view()).map(|()| Shown::Document),
        Step::NeedTime => Ok(Shown::NeedTime),
        Step::Finished => Ok(Shown::Finished),
    }
}

/// What was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Examined {
    /// Index keys.
    pub keys: u64,
    /// Documents.
    pub documents: u64,
}

/// One kind of work.
pub trait Stage: Send + Any {
    /// Does a piece of work.
    fn work(&mut self, operation: &mut Operation) -> Result<Step>;

    /// The same for somebody who only looks at documents: a result need not be made for that.
    fn show(&mut self, operation: &mut Operation, look: &mut Look<'_>) -> Result<Shown> {
        show_result(self.work(operation)?, look)
    }

    /// MongoDB's name of the stage.
    fn name(&self) -> &'static str;

    /// The stages right below.
    fn children(&self) -> &[StageNode] {
        &[]
    }

    /// The stages right below, to be changed.
    fn children_mut(&mut self) -> &mut [StageNode] {
        &mut []
    }

    /// Lets go of the snapshot; the place is kept.
    fn save(&mut self) {}

    /// Goes on under a new snapshot, which has this version of the collection.
    fn restore(&mut self, _operation: &mut Operation, _collection: &Arc<Collection>) -> Result<()> {
        Ok(())
    }

    /// Appends what `explain` tells of the plan.
    fn describe(&self, _out: &mut DocBuilder) {}

    /// Appends what `explain` tells of the run.
    fn describe_run(&self, _out: &mut DocBuilder) {}

    /// True if this stage itself has written to disk for want of memory.
    fn used_disk(&self) -> bool {
        false
    }

    /// What this stage itself looked at.
    fn examined(&self) -> Examined {
        Examined::default()
    }
}

/// Implements what a stage over one other says of it.
macro_rules! one_child {
    () => {
        fn children(&self) -> &[StageNode] {
            std::slice::from_ref(&self.child)
        }

        fn children_mut(&mut self) -> &mut [StageNode] {
            std::slice::from_mut(&mut self.child)
        }
    };
}

use one_child;

/// What every stage counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Pieces of work.
    pub works: u64,
    /// Results.
    pub advanced: u64,
    /// Pieces of work without a result.
    pub need_time: u64,
    /// Pieces of work that ran into a conflict.
    pub need_yield: u64,
    /// Snapshots let go of.
    pub saves: u64,
    /// Snapshots taken anew.
    pub restores: u64,
    /// There is nothing more.
    pub is_finished: bool,
}

/// A stage in its tree.
pub struct StageNode {
    stage: Box<dyn Stage>,
    counts: Counts,
}

impl StageNode {
    /// A stage that has done nothing yet.
    pub fn new(stage: impl Stage) -> StageNode {
        StageNode { stage: Box::new(stage), counts: Counts::default() }
    }

    /// Does a piece of work.
    #[inline]
    pub fn work(&mut self, operation: &mut Operation) -> Result<Step> {
        self.counts.works += 1;
        let step = self.stage.work(operation);
        match &step {
            Ok(Step::Advanced(_)) => self.counts.advanced += 1,
            Ok(Step::NeedTime) => self.counts.need_time += 1,
            Ok(Step::Finished) => self.counts.is_finished = true,
            Err(_) => self.counts.need_yield += 1,
        }
        step
    }

    /// Does a piece of work for somebody who only looks at documents.
    #[inline]
    pub fn show(&mut self, operation: &mut Operation, look: &mut Look<'_>) -> Result<Shown> {
        self.counts.works += 1;
        let shown = self.stage.show(operation, look);
        match &shown {
            Ok(Shown::Document) => self.counts.advanced += 1,
            Ok(Shown::NeedTime) => self.counts.need_time += 1,
            Ok(Shown::Finished) => self.counts.is_finished = true,
            Err(_) => self.counts.need_yield += 1,
        }
        shown
    }

    /// Lets go of the snapshot.
    pub fn save(&mut self) {
        self.counts.saves += 1;
        self.stage.save();
        self.stage.children_mut().iter_mut().for_each(StageNode::save);
    }

    /// Goes on under a new snapshot.
    pub fn restore(&mut self, operation: &mut Operation, collection: &Arc<Collection>) -> Result<()> {
        self.counts.restores += 1;
        for child in self.stage.children_mut() {
            child.restore(operation, collection)?;
        }
        self.stage.restore(operation, collection)
    }

    /// MongoDB's name of the stage.
    pub fn name(&self) -> &'static str {
        self.stage.name()
    }

    /// The stage.
    pub fn stage(&self) -> &dyn Stage {
        &*self.stage
    }

    /// The stages right below.
    pub fn children(&self) -> &[StageNode] {
        self.stage.children()
    }

    /// What it counted.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// True if any stage of the tree has written to disk for want of memory.
    pub fn used_disk(&self) -> bool {
        self.stage.used_disk() || self.children().iter().any(StageNode::used_disk)
    }

    /// What the whole tree looked at.
    pub fn examined(&self) -> Examined {
        let mut sum = self.stage.examined();
        for child in self.children() {
            let below = child.examined();
            sum.keys += below.keys;
            sum.documents += below.documents;
        }
        sum
    }

    /// The stage of this kind, in the tree.
    pub fn find<S: Stage>(&self) -> Option<&S> {
        let this = (&*self.stage as &dyn Any).downcast_ref::<S>();
        this.or_else(|| self.children().iter().find_map(StageNode::find))
    }

    /// True if this stage or one below has the name.
    pub fn has(&self, name: &str) -> bool {
        self.name() == name || self.children().iter().any(|child| child.has(name))
    }
}

/// The error of a plan whose collection or index is gone.
pub(crate) fn plan_killed(reason: impl Into<String>) -> Error {
    Error::new(ErrorCode::QueryPlanKilled, reason)
}
