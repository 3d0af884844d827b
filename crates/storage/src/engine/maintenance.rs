//! Checking a store, and telling about it.

use crate::{Result, Statistics, Table};
use std::fmt::Write;

/// What of a store a damaged place belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DamagedPart {
    /// Data of tables.
    Base,
    /// The list of what the base consists of.
    Manifest,
    /// The log, which is the oplog too.
    Log,
    /// What is known of backups.
    Backups,
}

/// One damaged place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// What it belongs to.
    pub part: DamagedPart,
    /// Which file.
    pub file: String,
    /// Where in it.
    pub offset: u64,
    /// The table it belongs to, where that is known.
    pub ident: Option<String>,
    /// What is wrong, or what salvage did about it.
    pub detail: String,
}

/// What verification found.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct VerifyReport {
    /// Blocks read.
    pub blocks: u64,
    /// Log records read.
    pub log_records: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Everything that does not hold.
    pub damage: Vec<Damage>,
}

/// Engines that can be looked into.
pub trait Maintenance {
    /// Reads every block and log record. Goes on after damage.
    fn verify(&self) -> Result<VerifyReport>;
    /// Reads what is on disk of one table. Goes on after damage. Asks now and then whether to go on at all; if not, it tells what
    /// it has found so far.
    fn verify_table(&self, table: &Table, goes_on: &mut dyn FnMut() -> bool) -> Result<VerifyReport>;
    /// Brings one table on disk into as little space as it needs: what is in memory is written, and what nobody reads any more
    /// goes. Between pieces of the work it asks whether to go on; if not, everything is as if it had not begun.
    fn compact_table(&self, table: &Table, goes_on: &mut dyn FnMut() -> bool) -> Result<()>;
    /// Counters and gauges of everything.
    fn statistics(&self) -> Statistics;
    /// Tells a human what the store is made of.
    fn describe(&self, out: &mut dyn Write) -> Result<()>;
    /// The memory that overlay, caches and buffers may use together.
    fn set_memory_bytes(&self, bytes: u64);
    /// The share of what is not on disk yet that one transaction may be when it is refused for want of memory: one that is more
    /// is too large, and 1 means that none is.
    fn set_transaction_too_large_threshold(&self, share: f64);
}
