//! Queries end to end over the model engine.
#![allow(clippy::unwrap_used, reason = "a failed step fails the test")]

mod aggregate;
mod collation;
mod concurrent;
mod explain;
mod find;
mod generate;
mod golden;
mod joins;
mod limits;
mod places;
mod random;
mod spill;
mod stage_options;
pub(crate) mod support;
mod tailable;
mod writes;
