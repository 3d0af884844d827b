//! The stages, one file each.

pub(super) mod add_fields;
pub(super) mod bucket;
pub(super) mod bucket_auto;
pub(super) mod convert_index_stats;
pub(super) mod count;
pub(super) mod densify;
pub(super) mod documents;
pub(super) mod facet;
pub(super) mod fill;
pub(super) mod geo_near;
mod granularity;
pub(super) mod graph_lookup;
pub(super) mod group;
pub(super) mod group_by_distinct_scan;
pub(super) mod limit;
pub(super) mod lookup;
pub(super) mod match_stage;
pub(super) mod no_effect;
mod options;
mod ordering;
pub(super) mod output;
pub(super) mod project;
pub(super) mod redact;
pub(super) mod replace_root;
pub(super) mod sample;
pub(super) mod set_field;
pub(super) mod skip;
pub(super) mod sort;
pub(super) mod sort_by_count;
pub(super) mod transform;
pub(super) mod union_with;
pub(super) mod unpack;
pub(super) mod unset;
pub(super) mod unwind;
pub(super) mod window;

pub use unwind::Unwinding;
