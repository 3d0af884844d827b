//! A clock that stands still until it is told to move.

use crate::{BoxedFuture, Clock};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The wall time at which every simulation starts: 2026-01-01 00:00:00 UTC.
pub const START_WALL_MS: u64 = 1_767_225_600_000;

/// Simulated time. Clones share it. It goes on over crashes, as the clock on a machine's board does.
#[derive(Clone, Default)]
pub struct SimulatedClock {
    elapsed_ns: Arc<AtomicU64>,
}

impl SimulatedClock {
    /// A clock at [`START_WALL_MS`].
    pub fn new() -> SimulatedClock {
        SimulatedClock::default()
    }

    /// Moves time forward.
    pub fn advance(&self, duration: Duration) {
        self.elapsed_ns.fetch_add(nanoseconds(duration), Ordering::SeqCst);
    }

    /// Another clock that stands at the same time.
    pub fn copy(&self) -> SimulatedClock {
        SimulatedClock { elapsed_ns: Arc::new(AtomicU64::new(self.monotonic_ns())) }
    }

    /// Moves time forward to the moment, unless it is already past it.
    fn advance_to(&self, moment_ns: u64) {
        self.elapsed_ns.fetch_max(moment_ns, Ordering::SeqCst);
    }
}

impl Clock for SimulatedClock {
    fn wall_ms(&self) -> u64 {
        START_WALL_MS + self.monotonic_ns() / 1_000_000
    }

    fn monotonic_ns(&self) -> u64 {
        self.elapsed_ns.load(Ordering::SeqCst)
    }

    fn sleep(&self, duration: Duration) -> BoxedFuture<'static, ()> {
        let clock = self.clone();
        let deadline_ns = self.monotonic_ns().saturating_add(nanoseconds(duration));
        Box::pin(async move { clock.advance_to(deadline_ns) })
    }

    fn pause(&self, duration: Duration) {
        self.advance(duration);
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_moves_only_when_told() {
        let clock = SimulatedClock::new();
        assert_eq!((clock.wall_ms(), clock.monotonic_ns()), (START_WALL_MS, 0));
        clock.pause(Duration::from_millis(3));
        clock.advance(Duration::from_millis(4));
        assert_eq!((clock.wall_ms(), clock.monotonic_ns()), (START_WALL_MS + 7, 7_000_000));
    }

    #[test]
    fn concurrent_sleeps_overlap() {
        let clock = SimulatedClock::new();
        let (long, short) = (clock.sleep(Duration::from_secs(5)), clock.sleep(Duration::from_secs(2)));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            long.await;
            short.await;
        });
        assert_eq!(clock.monotonic_ns(), 5_000_000_000);
    }
}
