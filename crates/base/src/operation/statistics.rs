//! What an operation has done so far, counted where it happens.
//!
//! Counters are relaxed: they are read by others only to be shown. Waits for locks and tickets are counted by the locker.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! statistics {
    ($($(#[$doc:meta])* $field:ident = $name:literal,)*) => {
        /// The counters of one operation. A loop over rows counts by itself and adds up once.
        #[derive(Debug, Default)]
        pub struct OperationStatistics {
            $($(#[$doc])* pub $field: Tally,)*
        }

        impl OperationStatistics {
            /// Every counter that is not zero, by the name that the log of slow operations uses.
            pub fn counted(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$(($name, self.$field.get())),*].into_iter().filter(|(_, count)| *count != 0)
            }

            /// What was counted since another look at the same counters.
            #[must_use]
            pub fn since(&self, before: &OperationStatistics) -> OperationStatistics {
                OperationStatistics { $($field: Tally::of(self.$field.get().saturating_sub(before.$field.get())),)* }
            }

            /// The counters as they are now.
            #[must_use]
            pub fn snapshot(&self) -> OperationStatistics {
                OperationStatistics { $($field: Tally::of(self.$field.get()),)* }
            }

            /// Adds another's counters, e.g. a child's.
            pub fn add_all(&self, other: &OperationStatistics) {
                $(self.$field.add(other.$field.get());)*
            }
        }
    };
}

statistics! {
    /// Index keys looked at.
    keys_examined = "keysExamined",
    /// Documents looked at.
    documents_examined = "docsExamined",
    /// Documents returned.
    documents_returned = "nreturned",
    /// Documents that an update or delete matched.
    matched = "nMatched",
    /// Documents changed.
    modified = "nModified",
    /// Documents inserted.
    inserted = "ninserted",
    /// Documents deleted.
    deleted = "ndeleted",
    /// Documents inserted because nothing matched.
    upserted = "nUpserted",
    /// Index keys inserted.
    keys_inserted = "keysInserted",
    /// Index keys deleted.
    keys_deleted = "keysDeleted",
    /// Times it gave up its resources to others and came back.
    yields = "numYields",
    /// Write conflicts it tried again after.
    write_conflicts = "writeConflicts",
    /// Times the engine was short of memory for it.
    temporarily_unavailable = "temporarilyUnavailableErrors",
    /// Times its transaction was too large for the cache.
    transaction_too_large = "transactionTooLargeErrors",
    /// Times it met a prepared transaction.
    prepare_conflicts = "prepareReadConflicts",
    /// How long it waited for its write concern.
    write_concern_wait_micros = "waitForWriteConcernDurationMicros",
    /// How long its work kept a processor busy; measured only for operations that want details.
    processor_ns = "cpuNanos",
    /// The most memory that its stages held at once.
    memory_peak_bytes = "memoryPeakBytes",
    /// How long planning took.
    planning_micros = "planningTimeMicros",
    /// How long its places in the oplog were holes; measured only for operations that want details.
    oplog_slot_micros = "totalOplogSlotDurationMicros",
    /// Bytes of the base that were not in memory and were read from files.
    bytes_read = "bytesRead",
    /// How long that took, where the disk had to be waited for.
    read_micros = "timeReadingMicros",
    /// Bytes of the reply.
    response_bytes = "reslen",
}

/// One counter.
#[derive(Debug, Default)]
pub struct Tally(AtomicU64);

impl Tally {
    fn of(count: u64) -> Tally {
        Tally(AtomicU64::new(count))
    }

    /// Counts one.
    pub fn increment(&self) {
        self.add(1);
    }

    /// Counts several.
    pub fn add(&self, count: u64) {
        if count != 0 {
            self.0.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// The count so far.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
