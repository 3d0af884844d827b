//! Numbers that go up, and numbers that go up and down.

use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};

/// A count that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// A counter at zero.
    pub const fn new() -> Counter {
        Counter(AtomicU64::new(0))
    }

    /// Counts one.
    pub fn increment(&self) {
        self.add(1);
    }

    /// Counts several.
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// The count so far.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A number that goes up and down.
#[derive(Debug, Default)]
pub struct Gauge(AtomicI64);

impl Gauge {
    /// A gauge at zero.
    pub const fn new() -> Gauge {
        Gauge(AtomicI64::new(0))
    }

    /// Sets it.
    pub fn set(&self, value: i64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// Moves it, up or down, and gives the new value.
    pub fn add(&self, change: i64) -> i64 {
        self.0.fetch_add(change, Ordering::Relaxed).wrapping_add(change)
    }

    /// Raises it to the value, if it is lower: a high-water mark.
    pub fn raise(&self, value: i64) {
        self.0.fetch_max(value, Ordering::Relaxed);
    }

    /// Its value.
    pub fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

pub(crate) const SHARD_COUNT: usize = 16;

/// A counter on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Shard(AtomicU64);

/// A count that all threads raise all the time: each has its own cache line, and reading adds them up.
#[derive(Debug, Default)]
pub struct ShardedCounter([Shard; SHARD_COUNT]);

thread_local! {
    /// Which shard this thread counts in.
    static SHARD: usize = {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        NEXT.fetch_add(1, Ordering::Relaxed) % SHARD_COUNT
    };
}

/// The number of this thread's shard, of anything that is kept once for each.
pub(crate) fn thread_shard() -> usize {
    // A thread that is ending has lost its shard; any will do.
    SHARD.try_with(|shard| *shard).unwrap_or(0)
}

impl ShardedCounter {
    /// Counts one.
    pub fn increment(&self) {
        self.add(1);
    }

    /// Counts several.
    pub fn add(&self, count: u64) {
        self.0[thread_shard()].0.fetch_add(count, Ordering::Relaxed);
    }

    /// The count so far.
    pub fn get(&self) -> u64 {
        self.0.iter().fold(0, |sum, shard| sum.wrapping_add(shard.0.load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_and_gauges_count() {
        let (counter, sharded, gauge) = (Counter::new(), ShardedCounter::default(), Gauge::new());
        counter.increment();
        counter.add(4);
        sharded.increment();
        sharded.add(4);
        assert_eq!((counter.get(), sharded.get()), (5, 5));
        gauge.set(10);
        assert_eq!(gauge.add(-4), 6);
        gauge.raise(5);
        assert_eq!(gauge.get(), 6);
        gauge.raise(9);
        assert_eq!(gauge.get(), 9);
    }
}
