//! Time, as a trait.

use crate::BoxedFuture;
use std::time::Duration;

/// Where time comes from.
pub trait Clock: Send + Sync {
    /// Milliseconds since 1970.
    fn wall_ms(&self) -> u64;
    /// Nanoseconds since some fixed moment; never goes back.
    fn monotonic_ns(&self) -> u64;
    /// Nanoseconds that this thread has kept a processor busy; zero where nobody measures.
    fn thread_processor_ns(&self) -> u64 {
        0
    }
    /// Completes after `duration`.
    fn sleep(&self, duration: Duration) -> BoxedFuture<'static, ()>;
    /// Blocks this thread for `duration`. A simulated clock advances instead of blocking.
    fn pause(&self, duration: Duration);
}
