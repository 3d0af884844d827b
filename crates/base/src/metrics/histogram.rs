//! How long operations took, in MongoDB's buckets.
//!
//! A bucket is a power of two of microseconds; from 2,048 µs to 2 s, where it matters, each power is split in half.

use std::sync::atomic::{AtomicU64, Ordering};

/// How many buckets there are.
pub const BUCKET_COUNT: usize = 51;

/// The first power of two that is split, and the first after them that is not.
const SPLIT_FROM: u32 = 11;
const SPLIT_TO: u32 = 21;

/// Latencies of one kind of operation.
#[derive(Debug)]
pub struct LatencyHistogram {
    buckets: [AtomicU64; BUCKET_COUNT],
    count: AtomicU64,
    sum_micros: AtomicU64,
}

/// What a histogram held at some time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistogramSnapshot {
    /// How many operations there were.
    pub count: u64,
    /// How long they took together.
    pub sum_micros: u64,
    /// The buckets that are not empty: the least latency and how many operations.
    pub buckets: Vec<(u64, u64)>,
}

impl Default for LatencyHistogram {
    fn default() -> LatencyHistogram {
        LatencyHistogram {
            buckets: [const { AtomicU64::new(0) }; BUCKET_COUNT],
            count: AtomicU64::new(0),
            sum_micros: AtomicU64::new(0),
        }
    }
}

impl LatencyHistogram {
    /// Counts an operation that took so long.
    pub fn record(&self, latency_micros: u64) {
        if let Some(bucket) = self.buckets.get(bucket_of(latency_micros)) {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        self.sum_micros.fetch_add(latency_micros, Ordering::Relaxed);
    }

    /// What it holds now.
    pub fn snapshot(&self) -> HistogramSnapshot {
        let counts = self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).enumerate();
        let buckets = counts.filter(|(_, count)| *count != 0).map(|(bucket, count)| (lower_bound(bucket), count));
        HistogramSnapshot {
            count: self.count.load(Ordering::Relaxed),
            sum_micros: self.sum_micros.load(Ordering::Relaxed),
            buckets: buckets.collect(),
        }
    }
}

/// The bucket of a latency.
fn bucket_of(latency_micros: u64) -> usize {
    let power = latency_micros.max(1).ilog2();
    let index = if power < SPLIT_FROM {
        power
    } else if power < SPLIT_TO {
        let is_upper_half = latency_micros >> (power - 1) & 1 == 1;
        SPLIT_FROM + 2 * (power - SPLIT_FROM) + u32::from(is_upper_half)
    } else {
        power + (SPLIT_TO - SPLIT_FROM)
    };
    (index as usize).min(BUCKET_COUNT - 1)
}

/// The least latency of a bucket.
fn lower_bound(bucket: usize) -> u64 {
    let bucket = bucket as u32;
    let split_end = SPLIT_FROM + 2 * (SPLIT_TO - SPLIT_FROM);
    if bucket == 0 {
        0
    } else if bucket < SPLIT_FROM {
        1 << bucket
    } else if bucket < split_end {
        let (power, half) = (SPLIT_FROM + (bucket - SPLIT_FROM) / 2, (bucket - SPLIT_FROM) % 2);
        (1 << power) + u64::from(half) * (1 << (power - 1))
    } else {
        1 << (bucket - (SPLIT_TO - SPLIT_FROM))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_mongodbs() {
        let bounds: Vec<u64> = (0..BUCKET_COUNT).map(lower_bound).collect();
        assert_eq!(bounds[..13], [0, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3072]);
        assert_eq!(bounds[28..33], [786_432, 1_048_576, 1_572_864, 2_097_152, 4_194_304]);
        assert_eq!(bounds[50], 1_099_511_627_776);
        assert!(bounds.is_sorted_by(|left, right| left < right));
    }

    #[test]
    fn a_latency_falls_between_its_bounds() {
        for bucket in 0..BUCKET_COUNT {
            assert_eq!(bucket_of(lower_bound(bucket)), bucket);
            assert_eq!(bucket_of(lower_bound(bucket + 1).saturating_sub(1)), bucket);
        }
        assert_eq!(bucket_of(u64::MAX), BUCKET_COUNT - 1);
    }

    #[test]
    fn a_snapshot_has_what_was_recorded() {
        let histogram = LatencyHistogram::default();
        [0, 1, 3_000, 3_100].into_iter().for_each(|latency| histogram.record(latency));
        let snapshot = histogram.snapshot();
        assert_eq!((snapshot.count, snapshot.sum_micros), (4, 6_101));
        assert_eq!(snapshot.buckets, [(0, 2), (2048, 1), (3072, 1)]);
    }
}
