//! The systems that run the workload, each behind the same small trait.
//!
//! A [`Peer`] is an open store with two tables. A thread takes a [`Reader`] or a [`Writer`] of its own. Each adapter does what
//! a careful user of that system would do, and says at its top which settings it took; none of them may know what is
//! being measured.

mod fjall;
mod lmdb;
pub mod pando;
mod redb;
#[cfg(test)]
mod tests;
mod wiredtiger;

use crate::Error;
use crate::workload::BulkInput;
use std::path::Path;
use std::time::Instant;

/// A system under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum System {
    /// Ours.
    Pando,
    /// The peer to beat.
    Wiredtiger,
    /// Through `heed`.
    Lmdb,
    /// A B-tree in Rust.
    Redb,
    /// A log-structured store in Rust.
    Fjall,
}

impl System {
    /// In the order of the report's columns.
    pub const ALL: [System; 5] = [System::Pando, System::Wiredtiger, System::Lmdb, System::Redb, System::Fjall];

    /// As on the command line and in the JSON.
    pub fn name(self) -> &'static str {
        match self {
            System::Pando => "pando",
            System::Wiredtiger => "wiredtiger",
            System::Lmdb => "lmdb",
            System::Redb => "redb",
            System::Fjall => "fjall",
        }
    }

    /// Whether this binary has it.
    pub fn is_built_in(self) -> bool {
        match self {
            System::Pando => true,
            System::Wiredtiger => cfg!(wiredtiger),
            System::Lmdb | System::Redb | System::Fjall => true,
        }
    }

    /// Opens or creates a store.
    pub fn open(self, directory: &Path, cache_bytes: u64) -> Result<Box<dyn Peer>, Error> {
        std::fs::create_dir_all(directory)?;
        match self {
            System::Pando => pando::open(directory, cache_bytes),
            System::Wiredtiger => wiredtiger::open(directory, cache_bytes),
            System::Lmdb => lmdb::open(directory, cache_bytes),
            System::Redb => redb::open(directory, cache_bytes),
            System::Fjall => fjall::open(directory, cache_bytes),
        }
    }
}

/// Which of the two tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// Documents by number.
    Documents,
    /// Document keys by random key.
    Index,
}

/// One write of a transaction.
#[derive(Clone, Copy, Debug)]
pub enum Change<'a> {
    /// New or over another.
    Put(Table, &'a [u8], &'a [u8]),
    /// There or not.
    Delete(Table, &'a [u8]),
}

/// What a commit waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Nothing: a later flush makes it durable.
    No,
    /// The disk.
    ForDisk,
}

/// Which way a scan goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Ascending.
    Forward,
    /// Descending.
    Reverse,
}

/// An open store.
pub trait Peer: Send + Sync {
    /// Fills the empty store and makes it durable.
    fn bulk_load(&self, input: &BulkInput) -> Result<(), Error>;
    /// For one thread.
    fn reader(&self) -> Result<Box<dyn Reader + '_>, Error>;
    /// For one thread.
    fn writer(&self) -> Result<Box<dyn Writer + '_>, Error>;
    /// Makes every commit so far durable.
    fn flush_log(&self) -> Result<(), Error>;
    /// Brings everything committed from log and memory into the tables' own files.
    fn checkpoint(&self) -> Result<(), Error>;
    /// Returns when no background work is left, with the moment when the last of it was seen.
    fn settle(&self) -> Result<Instant, Error>;
    /// True for files that are log and not data.
    fn is_log_file(&self, path: &Path) -> bool;
    /// Ends everything and gives the directory back.
    fn close(self: Box<Self>) -> Result<(), Error>;

    /// Switches, where it is a switch of the whole store, whether commits without [`Wait`] touch the disk at all.
    fn relax(&self, _relaxed: bool) -> Result<(), Error> {
        Ok(())
    }
    /// False where durable data is only made by a whole durable commit, so that a batch of updates is best one transaction.
    fn has_log(&self) -> bool {
        true
    }
    /// False where reads go to the operating system's page cache alone and a cache size means nothing.
    fn has_cache(&self) -> bool {
        true
    }
    /// What the system itself counts, for the record.
    fn figures(&self) -> Vec<(String, f64)> {
        Vec::new()
    }
}

/// Reads through snapshots.
pub trait Reader {
    /// Lets go of the snapshot, if any, and takes a new one.
    fn refresh(&mut self) -> Result<(), Error>;
    /// Shows the value, if there is one, and says whether.
    fn get(&mut self, table: Table, key: &[u8], see: &mut dyn FnMut(&[u8])) -> Result<bool, Error>;
    /// Shows every pair, and counts them.
    fn scan(&mut self, table: Table, direction: Direction, see: &mut dyn FnMut(&[u8], &[u8])) -> Result<u64, Error>;
}

/// Writes in transactions.
pub trait Writer {
    /// One transaction.
    fn commit(&mut self, changes: &[Change<'_>], wait: Wait) -> Result<(), Error>;
}
