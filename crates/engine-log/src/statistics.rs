//! Figures about the log.

use crate::Log;
use std::sync::atomic::{AtomicU64, Ordering};

/// Running counts.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) written_bytes: AtomicU64,
    pub(crate) syncs: AtomicU64,
    pub(crate) flushed_commits: AtomicU64,
    pub(crate) rolls: AtomicU64,
    pub(crate) dropped_segments: AtomicU64,
    pub(crate) failed_growths: AtomicU64,
}

/// A snapshot of the figures, since the log was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogStatistics {
    /// Commits that were appended.
    pub appended_records: u64,
    /// Bytes that were appended, marks and links included.
    pub appended_bytes: u64,
    /// Bytes that were handed to the disk, indexes included.
    pub written_bytes: u64,
    /// Bytes that wait in memory to be written.
    pub buffered_bytes: u64,
    /// Bytes of the log that are in memory, written or not.
    pub tail_memory_bytes: u64,
    /// Bytes of loaded indexes of sealed segments.
    pub index_memory_bytes: u64,
    /// Syncs of segment files.
    pub syncs: u64,
    /// Commits that a flush made durable; divided by `syncs` this is how well committers share.
    pub flushed_commits: u64,
    /// Times that a segment was full.
    pub rolls: u64,
    /// Segments that are there.
    pub segments: u64,
    /// Segments that were dropped.
    pub dropped_segments: u64,
    /// Times that the next segment could not be reserved ahead for want of space.
    pub failed_growths: u64,
}

impl Log {
    /// True if the next segment should have been reserved by now.
    pub fn wants_segment(&self) -> bool {
        self.inner.needs_segment()
    }

    /// The figures as of now.
    pub fn statistics(&self) -> LogStatistics {
        let inner = &self.inner;
        let counters = &inner.counters;
        let (appended_records, appended_bytes, tail_memory_bytes) = {
            let tail = inner.tail.lock();
            (tail.appended_records, tail.appended_bytes, tail.memory_bytes())
        };
        LogStatistics {
            appended_records,
            appended_bytes,
            written_bytes: counters.written_bytes.load(Ordering::Relaxed),
            buffered_bytes: inner.buffered_bytes.load(Ordering::Relaxed),
            tail_memory_bytes,
            index_memory_bytes: inner.row_cache.lock().held_bytes(),
            syncs: counters.syncs.load(Ordering::Relaxed),
            flushed_commits: counters.flushed_commits.load(Ordering::Relaxed),
            rolls: counters.rolls.load(Ordering::Relaxed),
            segments: inner.index.read().segments.len() as u64,
            dropped_segments: counters.dropped_segments.load(Ordering::Relaxed),
            failed_growths: counters.failed_growths.load(Ordering::Relaxed),
        }
    }
}
