//! What clients ask for, as plain structs.
//!
//! Commands are read into these by `commands`; what can be wrong about them whatever command they came from is checked
//! here. A request borrows nothing, so that it can be kept with its cursor.

mod hint;
mod read;
mod seen;
mod sort_pattern;
mod write;

pub use hint::Hint;
pub(crate) use hint::{direction_number, natural_direction};
pub use read::{AggregateRequest, CountRequest, DistinctRequest, FindRequest, ResumePoint};
pub use seen::Seen;
pub use sort_pattern::{SortKey, SortPart, SortPattern};
pub use write::{DeleteRequest, FindAndModifyChange, FindAndModifyRequest, UpdateRequest};
