//! The log: append-only, segmented, checksummed, with group commit; and the oplog that is served from it.
//!
//! One commit is one record: its oplog entries and the core's redo, atomic. What the redo means this crate does not know,
//! nor anything of tables, transactions or documents.
//!
//! Read top down: `log` (the parts, reserving, appending), `flush` (writing, group commit, waiting), `flusher` (who does it), `pace` and `solitude` (with whom) and `flushes` (who is told), `recovery` and `chain`
//! (opening after a crash), `oplog`, `reader` and `index` (the oplog view), `retention` (truncating both ends), `backup`,
//! `verify` and `salvage`. Below them: `tail` (what is in memory), `space` (reservations), `segment` (files), `record` and
//! `control` (bytes), `scan`, `rows`, `bell`.
//!
//! Promises: a commit whose wait ended is there after any crash; no record is ever there in part; log order is sequence
//! order; a forward reader never passes a hole, before or after a crash; damage below what was known to be synced is named,
//! never passed over; nothing that an earlier life wrote is overwritten.

mod backup;
mod bell;
mod chain;
mod control;
mod error;
mod fill;
mod flush;
mod flusher;
mod flushes;
mod index;
mod log;
mod oplog;
mod pace;
mod position;
mod reader;
mod record;
mod recovery;
mod retention;
mod rows;
mod salvage;
mod scan;
mod segment;
mod solitude;
mod space;
mod staging;
mod statistics;
mod tail;
#[cfg(test)]
mod tests;
mod verify;
mod walk;

pub use backup::{BackupFile, LogBackup};
pub use error::{LogError, Result};
pub use log::{Log, LogGuard, LogOptions, NoHoles};
pub use oplog::Oplog;
pub use position::{DurablePoint, LogPosition};
pub use reader::{Direction, OplogReader};
pub use record::PreparedRecord;
pub use recovery::{RecoveredRecord, Recovery, TornTail};
pub use retention::{Dropped, TruncateMarker};
pub use salvage::{SalvageReport, describe, salvage};
pub use space::Reservation;
pub use statistics::LogStatistics;
pub use verify::{VerifyReport, verify};
pub use walk::Damage;
