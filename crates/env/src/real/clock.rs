//! The machine's clock.

use crate::{BoxedFuture, Clock};
use std::time::{Duration, Instant, SystemTime};

/// Reads the machine's clock; monotonic time counts from when this was made.
pub struct RealClock {
    started: Instant,
}

impl RealClock {
    /// A clock whose monotonic time starts now.
    pub fn new() -> RealClock {
        RealClock { started: Instant::now() }
    }
}

impl Default for RealClock {
    fn default() -> RealClock {
        RealClock::new()
    }
}

impl Clock for RealClock {
    fn wall_ms(&self) -> u64 {
        // A machine whose clock stands before 1970 is treated as standing at 1970.
        SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_millis() as u64)
    }

    fn monotonic_ns(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }

    fn thread_processor_ns(&self) -> u64 {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        seconds.saturating_mul(1_000_000_000).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
    }

    fn sleep(&self, duration: Duration) -> BoxedFuture<'static, ()> {
        Box::pin(async move { tokio::time::sleep(duration).await })
    }

    fn pause(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}
