//! The engine's traps: things that go wrong in engines of this kind, each with a test of its own.
//!
//! All of it runs on a simulated disk without threads, so that a failure replays; `tests/threads.rs` has the same spirit on
//! real threads.
#![allow(clippy::unwrap_used)]

mod bytes;
mod counts;
mod drops;
mod frozen;
mod history;
mod hot_key;
mod idle;
mod limits;
mod mixed;
mod scans;
mod snapshots;
mod store;
mod tables;
