//! Fail points: places where a test makes something go wrong (`configureFailPoint`).
//!
//! A fail point is a static at the place it is for. It is off in every real server, and then asking costs one relaxed load.
//! It belongs to the process, not to a server: the places that need one lie deeper than any handle reaches. Tests that run
//! several servers tell them apart by the point's data. Nothing registers itself: crates list their points in a
//! `FAIL_POINTS` slice, and the server puts the slices into a [`FailPointSet`].
//!
//! The data of a point is a BSON document, which this crate passes on as bytes; a point that needs it has a type for it and
//! says how it is read, so that bad data is refused when it is set. Chance comes from a seed given with the mode.
//!
//! A point's lock is held while its mode is weighed and while a predicate looks at the data; a predicate must not use the
//! same point.

mod mode;
mod point;
mod set;

#[cfg(test)]
mod tests;

pub use mode::FailPointMode;
pub use point::{AnyFailPoint, FailPoint, FailPointHit, FailPointStatus};
pub use set::FailPointSet;
