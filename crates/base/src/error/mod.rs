//! What goes wrong, in the words that clients know: MongoDB's numbered codes, their categories, and the error value that
//! every layer above storage returns.
//!
//! Invariants: a code is one `i32`, so that codes without a name ("Location40415") pass through unharmed; an [`Error`] is
//! one pointer wide, so that a `Result` of it costs the happy path nothing. An error is told to the log where it is
//! handled, not where it passes.

mod category;
mod code;
mod table;
mod value;

pub use category::Category;
pub use code::ErrorCode;
use code::Row;
pub use value::{Context, Error, Result};
