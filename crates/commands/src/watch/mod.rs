//! Watching operations: what is counted, logged and profiled when one ends.
//!
//! - [`Top`]: per collection, how many operations of each kind there were and how long they took.
//! - [`Profiler`]: which databases are profiled, by which level and filter.
//! - `report`: everything that is told of one operation, as a line of the log and as a document of `system.profile`.
//! - `resources`: what operations take of storage and processor, where somebody accounts for that.
//! - `ending`: what is done when an operation, or one statement of a batch, is over.
//!
//! An operation that is neither slow nor watched pays for two looks at the clock, a look-up of its collection's counters and a
//! handful of additions. Locks: each map here has one, a leaf, held for a look-up.

mod ending;
mod filter;
mod profiler;
mod record;
mod report;
mod resources;
mod top;

pub(crate) use ending::Statement;
pub use ending::{begin, end};
pub use filter::ProfileFilter;
pub(crate) use filter::parse_filter;
pub use profiler::{ProfileSettings, Profiler};
pub(crate) use record::ensure_profile_collection;
pub use record::write_profile;
pub use resources::{PARAMETERS, ResourceTotals};
pub(crate) use resources::{account, are_summed, meter_for, of_operation};
pub use top::{Ended, LockKind, Scan, Top};
