//! What plan a request would get, and what running it costs, with MongoDB's field names.
//!
//! The plan is chosen as for the request itself: if several are worth trying, they are tried. With counters asked for, the plan is
//! run to its end; writes do everything but write. What is shown comes from the stages themselves.

mod facts;
mod render;
mod request;

pub(crate) use render::plan_documents;
pub use render::{execution_stats, query_planner};

use pando_base::{Error, Result};
use pando_doc::Value;

/// How much is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verbosity {
    /// The plans.
    QueryPlanner,
    /// Also what running the chosen one costs.
    ExecutionStats,
    /// Also what trying the others cost.
    AllPlansExecution,
}

impl Verbosity {
    /// Reads the `verbosity` of the command.
    pub fn parse(value: Option<Value<'_>>) -> Result<Verbosity> {
        match value.map(|value| (value.as_str(), value)) {
            None => Ok(Verbosity::AllPlansExecution),
            Some((Some("queryPlanner"), _)) => Ok(Verbosity::QueryPlanner),
            Some((Some("executionStats"), _)) => Ok(Verbosity::ExecutionStats),
            Some((Some("allPlansExecution"), _)) => Ok(Verbosity::AllPlansExecution),
            Some((_, other)) => {
                let reason = format!(
                    "Enumeration value '{}' for field 'explain.verbosity' is not a valid value.",
                    other.as_str().unwrap_or("?")
                );
                Err(Error::bad_value(reason))
            }
        }
    }
}
