//! Loading sorted input into a new table, past the log and the memory limits.

use crate::{Result, TableSize};

/// Takes keys in ascending order. Nothing is visible, and nothing survives a crash, before `finish`.
pub trait BulkLoader: Send {
    /// Adds a pair; the key must be greater than the one before.
    fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()>;
    /// Makes all of it durable and visible at once, untimestamped, and adds `size` to the table's records and bytes.
    /// Fails with `WriteConflict` if the table was written meanwhile.
    fn finish(self: Box<Self>, size: TableSize) -> Result<()>;
}
