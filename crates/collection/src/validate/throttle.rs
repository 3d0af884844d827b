//! How fast a validation beside clients may read: so many bytes in a second, saved up for a second at most.
//!
//! A reckoning alone: it says how long to wait, and whoever reads waits.

use std::time::Duration;

const SECOND_NS: u128 = 1_000_000_000;

/// Bytes that may be read.
pub(super) struct Throttle {
    bytes_per_second: u64,
    /// What may be read now; below zero is owed.
    available: i128,
    reckoned_ns: u64,
}

impl Throttle {
    /// From now on so many bytes in a second; none for as many as there are.
    pub(super) fn new(bytes_per_second: u64, now_ns: u64) -> Option<Throttle> {
        let available = i128::from(bytes_per_second);
        (bytes_per_second > 0).then_some(Throttle { bytes_per_second, available, reckoned_ns: now_ns })
    }

    /// So many bytes were read; how long to wait before the next.
    pub(super) fn take(&mut self, bytes: u64, now_ns: u64) -> Duration {
        let rate = u128::from(self.bytes_per_second);
        let passed_ns = u128::from(now_ns.saturating_sub(self.reckoned_ns));
        let earned = passed_ns.saturating_mul(rate) / SECOND_NS;
        // What is less than a byte is earned the next time.
        if earned > 0 || self.available >= rate as i128 {
            self.reckoned_ns = now_ns;
        }
        let saved = self.available.saturating_add(i128::try_from(earned).unwrap_or(i128::MAX)).min(rate as i128);
        self.available = saved - i128::from(bytes);
        let owed = u128::try_from(-self.available).unwrap_or(0);
        let wait_ns = owed.saturating_mul(SECOND_NS).div_ceil(rate);
        Duration::from_nanos(u64::try_from(wait_ns).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x24_a_throttle_lets_so_many_bytes_through_in_a_second() {
        assert!(Throttle::new(0, 0).is_none());
        let (mut throttle, mut now_ns) = (Throttle::new(1000, 5).unwrap(), 5);
        for _ in 0..210 {
            now_ns += u64::try_from(throttle.take(100, now_ns).as_nanos()).unwrap();
        }
        // The first second's share was there at the start.
        assert_eq!(now_ns, 5 + 20_000_000_000);
        now_ns += 60_000_000_000;
        assert_eq!(throttle.take(1000, now_ns), Duration::ZERO, "a second's share is saved up");
        assert_eq!(throttle.take(500, now_ns), Duration::from_millis(500), "and no more");
    }

    #[test]
    fn x24_a_throttle_counts_what_is_less_than_a_byte() {
        let mut throttle = Throttle::new(1000, 0).unwrap();
        assert_eq!(throttle.take(1000, 0), Duration::ZERO);
        // Ten looks in a millisecond earn one byte together.
        for look in 1..10 {
            assert_eq!(throttle.take(0, look * 100_000), Duration::ZERO);
        }
        assert_eq!(throttle.take(1, 1_000_000), Duration::ZERO);
    }
}
