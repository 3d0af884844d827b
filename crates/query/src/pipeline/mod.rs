//! Aggregation pipelines.
//!
//! Each stage has a description ([`StageSpec`]: parsed, shared, shown by `explain`) and a run ([`DocumentSource`]: pulled from the
//! end, one document at a time). A pipeline is read with [`parse_pipeline`], whose table names every stage. What stands in front
//! and the planner can do (`$match`, `$sort`, `$skip`, `$limit`) becomes part of the query that reads the collection; `optimize` brings
//! as much as possible to the front.
//!
//! A source that has to wait passes that on as [`Pulled::Yield`] and has lost nothing; it goes on after `restore`.
//!
//! To add a stage: a file in `stages/`, a row in `parse.rs`.

mod aggregate;
mod bounded;
mod dependencies;
mod optimize;
mod parse;
mod source;
mod stages;
mod touch;
mod views;
mod within;

pub use aggregate::{Aggregation, MergeOutput, OutputStage, PipelineExecutor, PlannedPipeline, is_change_stream};
pub use dependencies::Needs;
pub use optimize::{Modified, Rename};
pub use parse::{PipelineParser, StageProvider, StreamBeginning, parse_pipeline};
pub use source::{
    CountedSource, DocumentSource, ExecutorSource, ListSource, PipelineContext, Pulled, PulledRows, StageFacts,
    StageRun,
};
pub(crate) use stages::apply_oplog_update::OPLOG_UPDATES;
pub use stages::bounded_sort::SortParts;
pub use stages::geo_near::GeoNear;
pub use stages::group_by_distinct_scan::DistinctGroup;
pub use stages::output::{WhenMatched, WhenNotMatched};
pub(crate) use stages::set_field::with_field;
pub(crate) use stages::unpack::Facts;
pub use stages::unpack::Unpacking;
pub use stages::{Stream, StreamState, Unwinding, Watched};
pub use touch::{Touch, Touches, touches};
pub use views::{find_as_pipeline, with_view};
use views::{require_collation, view_stages};
pub use within::{Permits, Within};

use crate::request::SortPattern;
use pando_base::Result;
use pando_doc::Doc;
use pando_expr::{MatchExpression, Projection};
use pando_timeseries::TimeseriesOptions;
use std::fmt::Debug;
use std::sync::Arc;

/// Where a stage runs in a sharded cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShardSplit {
    /// On every shard.
    OnShards,
    /// Once, over what all shards give.
    OnMerger,
    /// On every shard, and again over what they give.
    Both,
}

/// What the planner can do in place of a stage.
pub enum Pushdown<'s> {
    /// Nothing.
    None,
    /// A filter.
    Match(&'s Arc<MatchExpression>),
    /// An order.
    Sort(&'s SortPattern),
    /// All but the first.
    Skip(u64),
    /// The first.
    Limit(u64),
    /// Some of the fields.
    Project(&'s Arc<Projection>),
    /// A search by distance, which is a query of its own.
    GeoNear(&'s GeoNear),
}

/// A stage as it was read.
pub trait StageSpec: Send + Sync + Debug {
    /// As it is written.
    fn name(&self) -> &'static str;

    /// Runs it over a source.
    fn start(&self, source: Box<dyn DocumentSource>) -> Result<Box<dyn DocumentSource>>;

    /// The stage as `explain` shows it.
    fn to_doc(&self) -> Doc;

    /// What the planner can do in its place.
    fn pushdown(&self) -> Pushdown<'_> {
        Pushdown::None
    }

    /// Where it runs in a sharded cluster.
    fn split(&self) -> ShardSplit {
        ShardSplit::OnShards
    }

    /// True if it makes its documents itself and has to come first.
    fn is_initial(&self) -> bool {
        false
    }

    /// True if it has to come first.
    fn must_be_first(&self) -> bool {
        self.is_initial()
    }

    /// The pipelines that it may stand in.
    fn permits(&self) -> Permits {
        Permits::of(self.name(), self.must_be_first())
    }

    /// The same with a limit behind it, if it can use that: a sort.
    fn with_limit(&self, _limit: u64) -> Option<SharedStage> {
        None
    }

    /// Which fields it changes, for filters behind it.
    fn modified(&self) -> Modified {
        Modified::Everything
    }

    /// This stage and the next one as one, if it can do both.
    fn with_next(&self, _next: &dyn StageSpec) -> Option<SharedStage> {
        None
    }

    /// What it does, if it is an `$unwind`.
    fn unwinding(&self) -> Option<Unwinding> {
        None
    }

    /// What it was written as, if it is a `$group`.
    fn grouping(&self) -> Option<&Doc> {
        None
    }

    /// True if it is a `$group` that compares strings by this collation.
    fn has_collation(&self, _collation: Option<&Doc>) -> bool {
        false
    }

    /// A `$group` with the same resources and collation that is written so.
    fn regrouped(&self, _specification: &Doc) -> Option<SharedStage> {
        None
    }

    /// A `$group` that takes many measurements at once, if it can.
    fn over_rows(&self, _options: &TimeseriesOptions) -> Option<SharedStage> {
        None
    }

    /// What it does, if it unpacks buckets.
    fn unpacking(&self) -> Option<&Unpacking> {
        None
    }

    /// The same with another order, if it is a sort.
    fn with_pattern(&self, _pattern: SortPattern) -> Option<SharedStage> {
        None
    }

    /// What it does, if it is a sort.
    fn sorting(&self) -> Option<SortParts> {
        None
    }

    /// The same stage for when nobody looks at other fields than these of what it gives, if that spares it work.
    fn keeping(&self, _names: &[&[u8]]) -> Option<SharedStage> {
        None
    }

    /// Fields that are others of the documents that come to it: new name and old, for filters behind it.
    fn renames(&self) -> Vec<Rename> {
        Vec::new()
    }

    /// What it needs of the documents that come to it.
    fn needs(&self) -> Needs {
        Needs::Everything
    }

    /// True if it gives exactly one document for each, whatever the others are.
    fn keeps_count(&self) -> bool {
        false
    }

    /// True if a sort by fields that it leaves may as well be done in front of it.
    fn lets_sorts_pass(&self) -> bool {
        false
    }

    /// True for a sort that keeps only the first.
    fn is_limited(&self) -> bool {
        false
    }

    /// What a plan would have to give in its place, if it is a `$group` that needs one document of each group.
    fn distinct_group(&self) -> Option<DistinctGroup> {
        None
    }

    /// The stream that it begins, if it is a `$changeStream`.
    fn stream(&self) -> Option<Stream> {
        None
    }

    /// The output that it is, if it is one.
    fn output(&self) -> Option<OutputStage> {
        None
    }
}

/// A stage that pipelines share.
pub type SharedStage = Arc<dyn StageSpec>;
