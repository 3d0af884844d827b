//! From a query to the plans that could answer it.
//!
//! `condition` takes the filter apart, `predicate_bounds` turns conditions into intervals, `access` combines them for one
//! index, `plan` puts whole plans together, `sort_order` sees which of them are in order by themselves. Ranking plans is
//! not done here: that needs to run them.
//!
//! Invariants: every plan gives the same documents as a scan of the collection with the filter. A plan may look at more than it
//! must, never at less.
//!
//! This module must not open cursors or read data.

mod access;
mod bounds;
mod bucket_order;
mod cluster_range;
mod condition;
mod effort;
mod given;
mod grouped;
mod implication;
mod index_info;
mod interval;
mod near;
mod oplog_range;
mod places;
mod plan;
mod predicate_bounds;
mod solution;
mod sort_order;
mod text;
mod type_range;
mod wildcard;

pub use access::{Access, CollationMatch, accesses};
pub use bounds::{FieldBounds, IndexBounds};
pub use bucket_order::{BucketEnd, BucketOrder, HelpfulScan};
pub use cluster_range::{ClusterEdge, ClusterRange};
pub use given::GivenPlan;
pub use grouped::grouped_plan;
pub use implication::implies;
pub use index_info::{IndexField, IndexInfo};
pub use interval::{Interval, IntervalList};
pub use near::{NearOutput, NearPlan};
pub use places::PlaceField;
pub(crate) use places::{
    PLANE_CELLS_MAX, degrees_along_latitude, inside_sphere_cells, of_plane_cells, of_sphere_cells,
};
pub(crate) use plan::everything;
pub use plan::plans;
pub use predicate_bounds::Tightness;
pub(crate) use solution::key_text;
pub use solution::{CollectionScanPlan, IndexScanPlan, KeyRange, PlanNode, ProjectionKind, SharedFilter};
pub use sort_order::in_order;
pub use text::TextPlan;
pub(crate) use text::index_required;
