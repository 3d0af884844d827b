//! How large a bucket may become.

/// The parameters that bound buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketLimits {
    /// `timeseriesBucketMaxCount`.
    pub count_max: usize,
    /// `timeseriesBucketMaxSize`.
    pub size_bytes_max: usize,
    /// `timeseriesBucketMinCount`: a bucket with fewer measurements may become larger than that.
    pub count_min: usize,
    /// `timeseriesBucketMinSize`: no less, however many sources there are.
    pub size_bytes_min: usize,
    /// What the storage engine keeps in memory: half of it is shared by all open buckets.
    pub cache_bytes: usize,
}

/// A bucket of few large measurements stays below this, so that it has room for fields of ours.
const LARGE_BUCKET_BYTES_MAX: usize = 12 * 1024 * 1024;

impl Default for BucketLimits {
    fn default() -> BucketLimits {
        BucketLimits {
            count_max: 1000,
            size_bytes_max: 128_000,
            count_min: 10,
            size_bytes_min: 5120,
            cache_bytes: usize::MAX,
        }
    }
}

impl BucketLimits {
    /// The same without a limit to what a bucket takes.
    #[must_use]
    pub fn unbounded(self) -> BucketLimits {
        BucketLimits { count_max: usize::MAX, size_bytes_max: usize::MAX, ..self }
    }

    /// The size at which a bucket is full, with so many buckets in use.
    pub fn effective_size_bytes_max(&self, active_count: usize) -> usize {
        self.size_bytes_max.min(self.shared_size_bytes(active_count))
    }

    /// The size at which a bucket with few measurements is full.
    pub fn absolute_size_bytes_max(&self, active_count: usize) -> usize {
        LARGE_BUCKET_BYTES_MAX.min(self.shared_size_bytes(active_count))
    }

    /// True if there are so many buckets that each has to be smaller.
    pub fn is_under_pressure(&self, active_count: usize) -> bool {
        self.shared_size_bytes(active_count) < self.size_bytes_max
    }

    fn shared_size_bytes(&self, active_count: usize) -> usize {
        match active_count {
            0 => usize::MAX,
            count => (self.cache_bytes / count.saturating_mul(2)).max(self.size_bytes_min),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x29_many_sources_make_buckets_small() {
        let limits = BucketLimits { cache_bytes: 1 << 30, ..BucketLimits::default() };
        assert_eq!(limits.effective_size_bytes_max(10), 128_000);
        assert_eq!(limits.effective_size_bytes_max(10_000), (1 << 30) / 20_000);
        assert_eq!(limits.effective_size_bytes_max(10_000_000), 5120);
        assert!(limits.is_under_pressure(10_000) && !limits.is_under_pressure(10));
    }
}
