//! Server parameters: what an administrator may set, at start or at run time.
//!
//! A parameter is *defined* once, as a static beside the code that reads it: name, default, bounds, when it may be set, one
//! line of documentation. It has a *value* in a [`ParameterSet`], which a server owns; so two servers in one process (a
//! simulated cluster, tests that run at once) do not share settings. Nothing registers itself: each crate lists its
//! definitions in a `PARAMETERS` slice, and the server puts the slices together.
//!
//! ```
//! use pando_base::{AnyParameter, Parameter, ParameterSet};
//!
//! static CURSOR_TIMEOUT_MS: Parameter<i64> =
//!     Parameter::new("cursorTimeoutMillis", 600_000, "How long an idle cursor lives.").at_least(1);
//! pub static PARAMETERS: &[&dyn AnyParameter] = &[&CURSOR_TIMEOUT_MS];
//!
//! let set = ParameterSet::new(&[PARAMETERS], false)?;
//! assert_eq!(set.get(&CURSOR_TIMEOUT_MS), 600_000);
//! set.set_from_text("cursorTimeoutMillis", "5000")?;
//! assert_eq!(set.get(&CURSOR_TIMEOUT_MS), 5000);
//! # Ok::<(), pando_base::Error>(())
//! ```
//!
//! A read is two loads and an index for numbers and booleans, a short lock and a count for strings and documents. A
//! parameter that a set does not have reads as its default. Locks: each string has one, and the subscribers of a set have one, which
//! is held while they are told, so that they hear of changes in order; a subscriber must not set parameters.

mod cell;
mod definition;
mod kind;
mod set;
mod value;

#[cfg(test)]
mod tests;

pub use definition::{AnyParameter, Parameter, Settable};
pub use kind::{Document, Kind, Number};
pub use set::ParameterSet;
pub use value::ParameterValue;
