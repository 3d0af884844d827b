//! The log, read as the oplog.

use crate::{Result, Wait};
use bytes::Bytes;
use pando_base::Timestamp;
use std::sync::Arc;

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OplogEntry {
    /// Its key.
    pub timestamp: Timestamp,
    /// Its bytes as appended.
    pub entry: Bytes,
}

/// Walks the oplog in one direction.
pub trait OplogCursor: Send {
    /// To the first entry at or after (forward) or the last at or before (backward) the timestamp.
    fn seek(&mut self, timestamp: Timestamp) -> Result<Option<OplogEntry>>;
    /// The next one. At the end it gives none, and goes on once there is more. Fails with `PositionLost` if the entry
    /// stood on was truncated from the old end.
    fn next(&mut self) -> Result<Option<OplogEntry>>;
}

/// A range of the oplog that can be dropped at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TruncateMarker {
    /// The newest entry in it.
    pub last: Timestamp,
    /// When that was written, in milliseconds since 1970.
    pub wall_ms: u64,
    /// Bytes of its entries.
    pub bytes: u64,
    /// How many entries.
    pub records: u64,
}

/// Keeps entries at or after a timestamp until it is dropped.
pub trait OplogPin: Send + Sync {
    /// Moves the pin.
    fn advance(&self, timestamp: Timestamp);
}

/// The oplog.
pub trait Oplog: Send + Sync {
    /// Reads forward, never past a hole.
    fn forward(&self) -> Result<Box<dyn OplogCursor>>;
    /// Reads backward from the very end, holes or not.
    fn backward(&self) -> Result<Box<dyn OplogCursor>>;
    /// The oldest entry's timestamp.
    fn first(&self) -> Option<Timestamp>;
    /// The newest entry's timestamp, past holes.
    fn last(&self) -> Option<Timestamp>;
    /// Forward readers see entries at or before this.
    fn visible(&self) -> Timestamp;
    /// Completes once something after `timestamp` is visible, or the oplog was truncated.
    fn wait_visible(&self, timestamp: Timestamp) -> Wait;
    /// Entries and their bytes.
    fn size(&self) -> crate::TableSize;
    /// Removes the new end: entries after the timestamp, or at it too.
    fn truncate_after(&self, timestamp: Timestamp, inclusive: bool) -> Result<()>;
    /// Removes every entry.
    fn reset(&self) -> Result<()>;
    /// Drops markers from the old end while the oplog is over its size and nothing forbids it; how many.
    fn truncate_old(&self) -> Result<usize>;
    /// The oldest entries may go once there are more bytes than this.
    fn set_size_max(&self, bytes: u64) -> Result<()>;
    /// Bytes that the oplog may have.
    fn size_max(&self) -> u64;
    /// Entries younger than this stay, whatever the size.
    fn set_retention_min(&self, milliseconds: u64) -> Result<()>;
    /// The whole markers, oldest first.
    fn markers(&self) -> Vec<TruncateMarker>;
    /// Keeps entries at or after a timestamp.
    fn pin(&self, name: &str, timestamp: Timestamp) -> Result<Arc<dyn OplogPin>>;
}

/// Engines that may have an oplog.
pub trait OplogSource {
    /// The oplog; none in stand-alone mode.
    fn oplog(&self) -> Option<&dyn Oplog>;
}
