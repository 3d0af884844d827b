//! What pipelines pull documents from.

use crate::QueryEngine;
use crate::executor::Seen;
use crate::executor::{Collections, Executor, Next, YieldCause};
use crate::stage::{Member, SortKeyGenerator};
use pando_base::Result;
use pando_base::operation::tick;
use pando_doc::Doc;
use pando_expr::metadata::Meta;
use pando_operation::Operation;
use pando_timeseries::Rows;
use std::collections::VecDeque;

pub use crate::stage::Look;

/// Implements what a source passes on to the one before it.
macro_rules! pass_on_to_source {
    () => {
        fn save(&mut self) {
            self.source.save();
        }

        fn restore(
            &mut self,
            operation: &mut pando_operation::Operation,
            collections: &dyn crate::executor::Collections,
        ) -> pando_base::Result<()> {
            self.source.restore(operation, collections)
        }

        fn before(&self) -> Option<&dyn crate::pipeline::DocumentSource> {
            Some(&*self.source)
        }

        fn before_mut(&mut self) -> Option<&mut dyn crate::pipeline::DocumentSource> {
            Some(&mut *self.source)
        }
    };
}

/// What came of a pull.
#[derive(Debug)]
pub enum Pulled {
    /// A document.
    Document(Doc),
    /// There is nothing more.
    Exhausted,
    /// Others are to run first; nothing was lost.
    Yield(YieldCause),
}

/// What came of a look at documents.
#[derive(Debug)]
pub enum Fed {
    /// Some were looked at, or none; there may be more.
    Some,
    /// There is nothing more.
    Exhausted,
    /// Others are to run first; nothing was lost.
    Yield(YieldCause),
}

/// A look at what was pulled.
pub(super) fn feed_pulled(pulled: Pulled, look: &mut Look<'_>) -> Result<Fed> {
    match pulled {
        Pulled::Document(document) => look(document.view()).map(|()| Fed::Some),
        Pulled::Exhausted => Ok(Fed::Exhausted),
        Pulled::Yield(cause) => Ok(Fed::Yield(cause)),
    }
}

/// What came of a pull by who takes several measurements at once.
#[derive(Debug)]
pub enum PulledRows {
    /// Measurements of one bucket.
    Rows(Rows),
    /// Anything else.
    Other(Pulled),
}

/// What a pull may use.
pub struct PipelineContext<'a> {
    /// The operation.
    pub operation: &'a mut Operation,
    /// Reads other collections.
    pub engine: &'a QueryEngine,
}

/// Gives documents one by one.
pub trait DocumentSource: Send {
    /// The next document.
    fn next(&mut self, context: &mut PipelineContext<'_>) -> Result<Pulled>;

    /// Has some of the next documents looked at, which need not be made as documents of their own for that.
    fn feed(&mut self, context: &mut PipelineContext<'_>, look: &mut Look<'_>) -> Result<Fed> {
        let pulled = self.next(context)?;
        feed_pulled(pulled, look)
    }

    /// The next documents, several measurements at once where that is possible.
    fn next_rows(&mut self, context: &mut PipelineContext<'_>) -> Result<PulledRows> {
        self.next(context).map(PulledRows::Other)
    }

    /// Lets go of the snapshot.
    fn save(&mut self);

    /// Goes on under a new snapshot.
    fn restore(&mut self, operation: &mut Operation, collections: &dyn Collections) -> Result<()>;

    /// The source that it takes its documents from.
    fn before(&self) -> Option<&dyn DocumentSource> {
        None
    }

    /// The source that it takes its documents from, to be changed.
    fn before_mut(&mut self) -> Option<&mut dyn DocumentSource> {
        None
    }

    /// What `explain` tells of its run.
    fn facts(&self) -> StageFacts {
        StageFacts::default()
    }

    /// The least and the greatest time of the bucket that the last document came from, if stages in between have kept none back.
    fn bucket_times(&self) -> Option<(i64, i64)> {
        self.before().and_then(|before| before.bucket_times())
    }

    /// The query at the very start, for `explain` and counters.
    fn executor(&self) -> Option<&Executor> {
        self.before().and_then(|before| before.executor())
    }

    /// The query at the very start, to be changed.
    fn executor_mut(&mut self) -> Option<&mut Executor> {
        self.before_mut().and_then(|before| before.executor_mut())
    }

    /// Appends what the stages up to this one have done, in their order.
    fn tell(&self, runs: &mut Vec<StageRun>) {
        if let Some(before) = self.before() {
            before.tell(runs);
        }
    }
}

/// What a stage tells of its run.
#[derive(Debug, Default)]
pub struct StageFacts {
    /// It has written to disk for want of memory.
    pub used_disk: bool,
    /// What `explain` shows.
    pub details: Doc,
}

/// What a stage has done.
#[derive(Debug)]
pub struct StageRun {
    /// How many documents it gave.
    pub returned: u64,
    /// What it tells.
    pub facts: StageFacts,
}

/// So many steps are counted for each document that a stage gives: stages between which documents come and go may not have read
/// anything for long.
const STEPS_PER_DOCUMENT: u64 = 16;

/// What a stage gives, counted.
pub struct CountedSource {
    source: Box<dyn DocumentSource>,
    returned: u64,
}

impl CountedSource {
    /// Counts what this gives.
    pub fn new(source: Box<dyn DocumentSource>) -> CountedSource {
        CountedSource { source, returned: 0 }
    }
}

impl DocumentSource for CountedSource {
    fn next(&mut self, context: &mut PipelineContext<'_>) -> Result<Pulled> {
        tick(STEPS_PER_DOCUMENT)?;
        let pulled = self.source.next(context)?;
        self.returned += u64::from(matches!(pulled, Pulled::Document(_)));
        Ok(pulled)
    }

    fn feed(&mut self, context: &mut PipelineContext<'_>, look: &mut Look<'_>) -> Result<Fed> {
        let returned = &mut self.returned;
        self.source.feed(context, &mut |document| {
            *returned += 1;
            tick(STEPS_PER_DOCUMENT)?;
            look(document)
        })
    }

    fn next_rows(&mut self, context: &mut PipelineContext<'_>) -> Result<PulledRows> {
        tick(STEPS_PER_DOCUMENT)?;
        let pulled = self.source.next_rows(context)?;
        self.returned += match &pulled {
            PulledRows::Rows(rows) => rows.len() as u64,
            PulledRows::Other(pulled) => u64::from(matches!(pulled, Pulled::Document(_))),
        };
        Ok(pulled)
    }

    pass_on_to_source!();

    fn tell(&self, runs: &mut Vec<StageRun>) {
        self.source.tell(runs);
        runs.push(StageRun { returned: self.returned, facts: self.source.facts() });
    }
}

/// What a query finds; with what it knows of it, if stages ask for that.
pub struct ExecutorSource(pub Box<Executor>);

impl ExecutorSource {
    fn document(&self, member: Member) -> Result<Doc> {
        let query = self.0.query().filter(|query| !query.metadata.is_empty());
        let Some(query) = query else { return Ok(member.document.unwrap_or_default()) };
        let pattern = query.sort.as_ref().filter(|_| query.metadata.contains(Meta::SortKey));
        let sort = pattern.map(|pattern| SortKeyGenerator::new(pattern, query.collator.clone()));
        member.with_metadata(query.metadata, sort.transpose()?.as_mut())
    }
}

impl DocumentSource for ExecutorSource {
    fn next(&mut self, context: &mut PipelineContext<'_>) -> Result<Pulled> {
        Ok(match self.0.next(context.operation)? {
            Next::Result(member) => Pulled::Document(self.document(member)?),
            Next::Exhausted => {
                self.0.report(context.operation);
                Pulled::Exhausted
            }
            Next::Yield(cause) => Pulled::Yield(cause),
        })
    }

    fn feed(&mut self, context: &mut PipelineContext<'_>, look: &mut Look<'_>) -> Result<Fed> {
        if self.0.query().is_some_and(|query| !query.metadata.is_empty()) {
            return feed_pulled(self.next(context)?, look);
        }
        Ok(match self.0.show(context.operation, look)? {
            Seen::Some => Fed::Some,
            Seen::Exhausted => {
                self.0.report(context.operation);
                Fed::Exhausted
            }
            Seen::Yield(cause) => Fed::Yield(cause),
        })
    }

    fn save(&mut self) {
        self.0.save();
    }

    fn restore(&mut self, operation: &mut Operation, collections: &dyn Collections) -> Result<()> {
        self.0.restore(operation, collections)
    }

    fn executor(&self) -> Option<&Executor> {
        Some(&self.0)
    }

    fn executor_mut(&mut self) -> Option<&mut Executor> {
        Some(&mut self.0)
    }
}

/// Documents that are there already.
#[derive(Default)]
pub struct ListSource(pub VecDeque<Doc>);

impl DocumentSource for ListSource {
    fn next(&mut self, _context: &mut PipelineContext<'_>) -> Result<Pulled> {
        Ok(self.0.pop_front().map_or(Pulled::Exhausted, Pulled::Document))
    }

    fn save(&mut self) {}

    fn restore(&mut self, _operation: &mut Operation, _collections: &dyn Collections) -> Result<()> {
        Ok(())
    }
}

pub(super) use pass_on_to_source;
