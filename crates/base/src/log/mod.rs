//! The server's log: structured lines with stable ids.
//!
//! A line has a severity, a component, an id that never changes (so that people can search for it), a message without
//! values in it, and the values as attributes. It is written as MongoDB's JSON, or readably for a terminal. An error is
//! logged where it is handled, not where it passes.
//!
//! A [`Log`] is a handle: a server makes one with its clock and its sink, and gives it down; clones share everything but
//! the context name ("conn7"). It keeps the last lines for getLog. A process-wide log may be installed once, for layers
//! that no handle reaches; nothing else here is global.
//!
//! Whether a line is wanted is one relaxed load; [`log!`](crate::log!) looks before it evaluates attributes. Lock: the rings, never held
//! while the sink writes.

mod component;
mod handle;
mod line;
mod rate_limit;
mod render;
mod ring;
mod value;

#[cfg(test)]
mod tests;

pub use component::{Component, Severity};
pub use handle::{Log, LogSink, NoSink, Progress, WallClock};
pub use line::LogLine;
pub use rate_limit::RateLimit;
pub use value::LogValue;
