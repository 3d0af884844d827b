//! Queries: what clients ask for, how it is found, and how it is brought to them.
//!
//! A request ([`request`]) is read and checked ([`CanonicalQuery`]), planned ([`planner`]), and run ([`stage`], [`executor`]).
//! Plans are tried against each other and remembered ([`PlanCache`]). Writes ([`write`]) are plans whose root changes what they
//! find; aggregations ([`pipeline`]) are stages behind a plan. What a client takes in several batches is kept by the
//! [`cursor::CursorManager`]. [`timeseries`] puts measurements into buckets. [`explain`] tells what all of this does.
//!
//! Everything is synchronous in bounded pieces; only [`executor::drive`] and what is built on it wait. Documents are shared bytes
//! from storage to reply.
//!
//! Invariants: reads take no locks; an operation's snapshot and the version of the catalog belong together; every plan of a query
//! has the same results.
//!
//! This crate must not know the wire protocol, command documents, sessions or replication.

mod canonical;
mod counters;
pub mod cursor;
mod engine;
pub mod executor;
pub mod explain;
pub mod fail_points;
mod hooks;
pub mod limits;
mod memory;
pub mod pipeline;
mod plan_cache;
pub mod planner;
mod read;
pub mod request;
mod shape;
pub mod spill;
pub mod stage;
pub mod timeseries;
pub mod write;

#[cfg(test)]
mod tests;

pub use canonical::{CanonicalQuery, id_of};
pub use counters::QueryCounters;
pub use engine::{ClusterTimeSource, FindPlan, QueryEngine};
pub use hooks::{MatchValidator, QueryIndexHooks};
pub use memory::{Account, HeldByNode};
pub use pando_expr::FAIL_POINTS as OPTIMIZER_FAIL_POINTS;
pub use plan_cache::{CachedPlan, IndexFilter, PlanCache, PlanStory, indexes_of, shape_of};
pub use shape::{plan_cache_key, query_hash, shape};
