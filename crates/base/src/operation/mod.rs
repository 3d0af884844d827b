//! An operation in progress: who asked for it, how long it may take, whether it was told to stop, what it has done so far.
//!
//! Every request a client makes, and every longer task of the server's own, has an [`OperationContext`], passed down to
//! whatever works for it. Work that can last asks [`OperationContext::check`] at every row: two loads, as long as nobody
//! stopped it and it has no deadline. Loops that have no context at hand count their steps with [`tick`]. Work that waits gives its future to [`OperationContext::interruptible`].
//! Whoever runs requests runs them in slices ([`follow`]): work that keeps its thread for longer leaves the threads of others.
//!
//! Stopping is a request, not force: [`OperationContext::kill`] stores a code, wakes those who wait, and the operation ends
//! with that code where it next looks. The first kill wins. A scope in which it must not be stopped
//! ([`OperationContext::ignore_interrupts`]) hears of shutdown alone.
//!
//! Time is monotonic nanoseconds from the clock that the [`OperationRegistry`] was given. Nobody here sleeps: a wait with
//! a deadline is the caller's, see [`OperationContext::deadline_ns`].
//!
//! Invariants: an id is in the registry as long as a handle of the operation lives. A killed operation's children are
//! killed. Lock order: a registry's shard, then an operation's children, parent before child; the description's lock is
//! innermost. Under a lock nothing is called but the clock.

mod client;
mod context;
mod current;
mod description;
mod registry;
mod resources;
pub mod slice;
mod sort;
mod state;
mod statistics;
mod time_points;

#[cfg(test)]
mod tests;

pub use client::{Client, ClientUser};
pub use context::{DeadlineScope, IgnoreInterruptsScope, OperationContext, WeakOperation};
pub use current::{STEPS_PER_LOOK, count, current, during, ended, goes_on, tick, tick_bytes, unstopped};
pub use description::{CursorFacts, OperationDescription, OperationKind, PlanFacts};
pub use registry::{MonotonicClock, OperationRegistry};
pub use resources::{ReadResources, ResourceMeter, ResourceUse, UnitSizes, Units, WriteResources};
pub use slice::{Slices, follow};
pub use sort::{dedup_by, sort_by};
pub use statistics::{OperationStatistics, Tally};
pub use time_points::FAIL_POINTS;
