//! Places in the log.
//!
//! A position is a segment and a byte offset in it, ordered as the records are. Both halves fit 32 bits, so a position is
//! one machine word and can be published atomically.

use pando_base::Timestamp;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// A place in the log: before the record that starts there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct LogPosition {
    /// The segment's number, from 1; zero is before everything.
    pub segment: u32,
    /// The byte in the segment's file.
    pub offset: u32,
}

impl LogPosition {
    /// Before everything.
    pub const START: LogPosition = LogPosition { segment: 0, offset: 0 };

    /// A place.
    pub const fn new(segment: u32, offset: u32) -> LogPosition {
        LogPosition { segment, offset }
    }

    /// As one ordered number.
    pub const fn to_u64(self) -> u64 {
        ((self.segment as u64) << 32) | self.offset as u64
    }

    /// From [`LogPosition::to_u64`].
    pub const fn from_u64(number: u64) -> LogPosition {
        LogPosition { segment: (number >> 32) as u32, offset: number as u32 }
    }
}

impl fmt::Debug for LogPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.segment, self.offset)
    }
}

impl fmt::Display for LogPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// What a committer waits for: its record up to `position` is on disk, and so is a no-holes point at or past `timestamp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct DurablePoint {
    /// The end of the record.
    pub position: LogPosition,
    /// The record's highest oplog timestamp, or none.
    pub timestamp: Timestamp,
}

impl From<LogPosition> for DurablePoint {
    fn from(position: LogPosition) -> DurablePoint {
        DurablePoint { position, timestamp: Timestamp::NONE }
    }
}

/// A position that is published by one thread and read by many.
#[derive(Default)]
pub(crate) struct AtomicPosition(AtomicU64);

impl AtomicPosition {
    pub(crate) fn new(position: LogPosition) -> AtomicPosition {
        AtomicPosition(AtomicU64::new(position.to_u64()))
    }

    pub(crate) fn load(&self) -> LogPosition {
        LogPosition::from_u64(self.0.load(Ordering::Acquire))
    }

    pub(crate) fn store(&self, position: LogPosition) {
        self.0.store(position.to_u64(), Ordering::Release);
    }
}
