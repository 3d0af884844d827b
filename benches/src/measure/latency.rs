//! A histogram of latencies in fixed memory: 32 buckets for every doubling, so a percentile is off by 3 % at most.

use std::time::Duration;

const BUCKETS_PER_DOUBLING_BITS: u32 = 5;
const BUCKETS: usize = 64 << BUCKETS_PER_DOUBLING_BITS;

/// Latencies that can be added and asked for percentiles.
pub struct Latencies {
    counts: Vec<u64>,
    total: u64,
}

impl Latencies {
    /// None yet.
    pub fn new() -> Latencies {
        Latencies { counts: vec![0; BUCKETS], total: 0 }
    }

    /// Adds one.
    pub fn add(&mut self, latency: Duration) {
        let nanoseconds = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.counts[bucket(nanoseconds)] += 1;
        self.total += 1;
    }

    /// Adds all of another.
    pub fn merge(&mut self, other: &Latencies) {
        for (count, added) in self.counts.iter_mut().zip(&other.counts) {
            *count += added;
        }
        self.total += other.total;
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.total
    }

    /// The latency in microseconds that this share of all is at or below.
    pub fn percentile_us(&self, share: f64) -> f64 {
        let rank = (self.total as f64 * share).ceil() as u64;
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank.max(1) {
                return bucket_end(index) as f64 / 1000.0;
            }
        }
        0.0
    }
}

/// Below 32 every value has a bucket of its own; above, the bits after the leading one choose among 32.
fn bucket(value: u64) -> usize {
    let exponent = (64 - value.leading_zeros()).saturating_sub(BUCKETS_PER_DOUBLING_BITS + 1);
    ((exponent as usize) << BUCKETS_PER_DOUBLING_BITS) + (value >> exponent) as usize
}

/// The greatest value of a bucket.
fn bucket_end(index: usize) -> u64 {
    let width = 1 << BUCKETS_PER_DOUBLING_BITS;
    if index < 2 * width {
        return index as u64;
    }
    let exponent = index / width - 1;
    (((index - exponent * width) as u64 + 1) << exponent) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_hold_their_values() {
        for value in (0..100_000).chain([u64::MAX / 3, u64::MAX / 2]) {
            let end = bucket_end(bucket(value));
            assert!(end >= value && end as f64 <= value as f64 * 1.04 + 1.0, "{value} {end}");
        }
    }

    #[test]
    fn percentiles_are_ranks() {
        let mut latencies = Latencies::new();
        (1..=1000).for_each(|us| latencies.add(Duration::from_micros(us)));
        assert!((latencies.percentile_us(0.5) - 500.0).abs() < 20.0);
        assert!((latencies.percentile_us(0.99) - 990.0).abs() < 35.0);
    }
}
