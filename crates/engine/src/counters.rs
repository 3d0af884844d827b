//! What happened so far, for statistics.

use crate::spread;
use std::sync::atomic::{AtomicU64, Ordering};

const SHARDS: usize = 8;

/// A number that only grows, in several pieces: reads and commits count, and threads must not meet over that.
#[derive(Default)]
pub struct Counter([Shard; SHARDS]);

#[derive(Default)]
#[repr(align(64))]
struct Shard(AtomicU64);

impl Counter {
    /// One more.
    pub fn increment(&self) {
        self.add(1);
    }

    /// Some more.
    pub fn add(&self, amount: u64) {
        self.0[spread::thread_number() % SHARDS].0.fetch_add(amount, Ordering::Relaxed);
    }

    /// So far.
    pub fn value(&self) -> u64 {
        self.0.iter().map(|shard| shard.0.load(Ordering::Relaxed)).sum()
    }
}

/// The engine's own counters.
#[derive(Default)]
pub struct Counters {
    /// Transactions begun.
    pub begun: Counter,
    /// Transactions with writes that committed.
    pub committed: Counter,
    /// Transactions that rolled back.
    pub rolled_back: Counter,
    /// Transactions that were prepared.
    pub prepared: Counter,
    /// Writes that met another transaction's.
    pub write_conflicts: Counter,
    /// Reads and writes that met a prepared transaction.
    pub prepare_conflicts: Counter,
    /// Writes refused for want of memory.
    pub temporarily_unavailable: Counter,
    /// Transactions refused because they alone fill the memory.
    pub transaction_too_large: Counter,
    /// Writes that were made to pause.
    pub slowed: Counter,
    /// Times when writers were made to wait for long.
    pub stalls: Counter,
    /// Point reads.
    pub gets: Counter,
    /// Point reads answered by the overlay.
    pub overlay_hits: Counter,
    /// Checkpoints taken.
    pub checkpoints: Counter,
    /// Checkpoints that also wrote versions above stable.
    pub spills: Counter,
    /// Keys that checkpoints wrote.
    pub checkpoint_keys: Counter,
    /// Bytes that checkpoints wrote.
    pub checkpoint_bytes: Counter,
    /// How long checkpoints took.
    pub checkpoint_microseconds: Counter,
    /// Rollbacks to stable.
    pub rollbacks_to_stable: Counter,
    /// Clean rows that left the overlay.
    pub evicted_rows: Counter,
    /// Log records that recovery applied.
    pub recovered_records: Counter,
    /// Markers that left the oplog's old end.
    pub oplog_markers_dropped: Counter,
    /// How long that took.
    pub oplog_truncation_microseconds: Counter,
    /// How long it took to find the oplog's markers when the log was opened.
    pub oplog_opening_microseconds: Counter,
}
