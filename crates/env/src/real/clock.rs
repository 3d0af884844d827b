//! The machine's clock.

use crate::{BoxedFuture, Clock};
use std::time::Duration;

const NS_PER_SECOND: u64 = 1_000_000_000;

/// Reads the machine's clock; monotonic time counts from when this was made.
pub struct RealClock {
    started_ns: u64,
}

impl RealClock {
    /// A clock whose monotonic time starts now.
    pub fn new() -> RealClock {
        RealClock { started_ns: read_ns(libc::CLOCK_MONOTONIC) }
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
        read_ns(libc::CLOCK_REALTIME) / 1_000_000
    }

    fn monotonic_ns(&self) -> u64 {
        read_ns(libc::CLOCK_MONOTONIC).saturating_sub(self.started_ns)
    }

    fn thread_processor_ns(&self) -> u64 {
        read_ns(libc::CLOCK_THREAD_CPUTIME_ID)
    }

    fn sleep(&self, duration: Duration) -> BoxedFuture<'static, ()> {
        Box::pin(async move { tokio::time::sleep(duration).await })
    }

    fn pause(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}

/// One of the machine's clocks. They are read several times for each request: without the checks of the standard library's types.
#[inline]
fn read_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the place for the answer is ours. The clocks that are asked for are on every system; one that were not would stand still.
    unsafe { libc::clock_gettime(clock, &mut time) };
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    seconds.saturating_mul(NS_PER_SECOND).saturating_add(u64::try_from(time.tv_nsec).unwrap_or(0))
}
