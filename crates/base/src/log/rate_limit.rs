//! A line that could come thousands of times a second comes once in a while.

use std::sync::atomic::{AtomicU64, Ordering};

/// Never yet.
const NEVER: u64 = u64::MAX;

/// Lets one through in each interval and counts the others.
#[derive(Debug)]
pub struct RateLimit {
    interval_ms: u64,
    last_ms: AtomicU64,
    suppressed: AtomicU64,
}

impl RateLimit {
    /// One line in so many milliseconds.
    pub const fn new(interval_ms: u64) -> RateLimit {
        RateLimit { interval_ms, last_ms: AtomicU64::new(NEVER), suppressed: AtomicU64::new(0) }
    }

    /// Whether to log now; if so, how many were kept back since the last time.
    pub fn admit(&self, now_ms: u64) -> Option<u64> {
        let last_ms = self.last_ms.load(Ordering::Relaxed);
        // A clock that was set back must not silence a line for long.
        let is_due = last_ms == NEVER || now_ms < last_ms || now_ms - last_ms >= self.interval_ms;
        let admitted =
            is_due && self.last_ms.compare_exchange(last_ms, now_ms, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if admitted {
            return Some(self.suppressed.swap(0, Ordering::Relaxed));
        }
        self.suppressed.fetch_add(1, Ordering::Relaxed);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_an_interval() {
        let limit = RateLimit::new(100);
        let admitted = [1_000, 1_001, 1_099, 1_100, 1_150, 500].map(|now_ms| limit.admit(now_ms));
        assert_eq!(admitted, [Some(0), None, None, Some(2), None, Some(1)]);
    }
}
