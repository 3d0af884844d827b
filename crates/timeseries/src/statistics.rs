//! What the catalog counts, for each collection and for all: shown by `collStats` and `serverStatus`.

use pando_doc::DocBuilder;
use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! statistics {
    ($($(#[doc = $text:literal])* $field:ident = $name:literal),* $(,)?) => {
        /// Counters of a collection's buckets.
        #[derive(Debug, Default)]
        pub struct Statistics {
            $($(#[doc = $text])* pub $field: AtomicU64,)*
        }

        impl Statistics {
            /// Appends them under MongoDB's names.
            pub fn append_to(&self, out: &mut DocBuilder) {
                $(out.append($name, self.$field.load(Ordering::Relaxed) as i64);)*
                let commits = self.commits.load(Ordering::Relaxed);
                if let Some(average) = self.measurements_committed.load(Ordering::Relaxed).checked_div(commits) {
                    out.append("avgNumMeasurementsPerCommit", average as i64);
                }
            }
        }
    };
}

statistics! {
    /// Buckets that were new.
    bucket_inserts = "numBucketInserts",
    /// Buckets that were added to.
    bucket_updates = "numBucketUpdates",
    /// Buckets opened for a source that had none.
    opened_due_to_metadata = "numBucketsOpenedDueToMetadata",
    /// Full by count.
    closed_due_to_count = "numBucketsClosedDueToCount",
    /// Another kind of value came.
    closed_due_to_schema_change = "numBucketsClosedDueToSchemaChange",
    /// Full by size.
    closed_due_to_size = "numBucketsClosedDueToSize",
    /// A later measurement came.
    closed_due_to_time_forward = "numBucketsClosedDueToTimeForward",
    /// An earlier measurement came; buckets are kept then.
    closed_due_to_time_backward = "numBucketsClosedDueToTimeBackward",
    /// Too many buckets to remember.
    closed_due_to_memory_threshold = "numBucketsClosedDueToMemoryThreshold",
    /// Writes of buckets.
    commits = "numCommits",
    /// Measurements written together with those of others.
    measurements_group_committed = "numMeasurementsGroupCommitted",
    /// Writers that met another on a bucket.
    waits = "numWaits",
    /// Measurements written.
    measurements_committed = "numMeasurementsCommitted",
    /// Another bucket was taken up again.
    closed_due_to_reopening = "numBucketsClosedDueToReopening",
    /// Bytes of buckets before they were compressed.
    bytes_uncompressed = "numBytesUncompressed",
    /// Bytes of the same buckets afterwards.
    bytes_compressed = "numBytesCompressed",
    /// Buckets that were compressed.
    compressed = "numCompressedBuckets",
    /// Buckets that could not be.
    uncompressed = "numUncompressedBuckets",
    /// Compressed buckets that could not be read.
    decompressions_failed = "numFailedDecompressBuckets",
    /// Kept, with less known of them.
    archived_due_to_memory_threshold = "numBucketsArchivedDueToMemoryThreshold",
    /// Kept for later measurements, since an earlier one came.
    archived_due_to_time_backward = "numBucketsArchivedDueToTimeBackward",
    /// Taken up again.
    reopened = "numBucketsReopened",
    /// Large because their measurements are.
    kept_open_due_to_large_measurements = "numBucketsKeptOpenDueToLargeMeasurements",
    /// Full because there are many buckets.
    closed_due_to_cache_pressure = "numBucketsClosedDueToCachePressure",
    /// Found again by their ids.
    fetched = "numBucketsFetched",
    /// Found again by a query.
    queried = "numBucketsQueried",
    /// Not found by their ids.
    fetches_failed = "numBucketFetchesFailed",
    /// Not found by a query.
    queries_failed = "numBucketQueriesFailed",
    /// Found, and not fit to be taken up again.
    reopenings_failed = "numBucketReopeningsFailed",
    /// Taken up by two at once.
    duplicate_reopened = "numDuplicateBucketsReopened",
    /// New buckets too large to be stored.
    too_large_inserts = "numBucketDocumentsTooLargeInsert",
    /// Buckets too large to be stored after an addition.
    too_large_updates = "numBucketDocumentsTooLargeUpdate",
}

/// One more.
pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
