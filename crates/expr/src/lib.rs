//! The query language, without collections: what filters, expressions, projections and updates mean for one document.
//!
//! - [`MatchExpression`]: a filter; parsed, optimised, open to the planner as a tree of [`matcher::Node`]s.
//! - [`Expression`]: an aggregation expression, evaluated over a document and variables; [`Accumulator`]s over many.
//! - [`Projection`]: which fields a result has.
//! - [`Update`]: what becomes of a document.
//!
//! Everything is parsed once and applied to many documents: paths are split, constants folded and patterns compiled when
//! parsing. Applying never changes what was parsed, so that it can be shared by threads.
//!
//! Invariants: names, errors and codes are MongoDB 7.0's; nothing a client sends makes this crate panic; recursion is
//! bounded by the depth of the documents it was parsed from, which `pando_doc` bounds.
//!
//! This crate must not know collections, indexes, cursors, commands or the clock: the present time is handed in.

pub mod accumulator;
mod context;
pub mod expression;
mod fail_points;
mod limits;
pub mod matcher;
pub mod metadata;
pub mod projection;
mod regex;
pub mod update;

pub use accumulator::{Accumulator, AccumulatorKind};
pub use context::{Features, ParseContext, SharedCollator};
pub use expression::{Expression, Operand, Scope, SharedRandom};
pub use fail_points::{DISABLE_MATCH_OPTIMIZATION, DISABLE_PIPELINE_OPTIMIZATION, FAIL_POINTS};
pub use limits::{ExpressionLimits, VALUE_BYTES_MAX, check_value};
pub use matcher::MatchExpression;
pub use projection::{Projection, ProjectionPolicies};
pub use regex::Regex;
pub use update::{ChangedField, PathPart, Update, UpdateContext, UpdateOutcome};
