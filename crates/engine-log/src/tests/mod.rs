//! Tests of the whole log on the simulated disk, and of its threads on the real one.

mod basics;
mod crash;
mod fill;
mod oplog;
mod retention;
mod rot;
mod space;
mod staging;
mod tasks;
mod threads;

use crate::*;
use bytes::Bytes;
use pando_base::Timestamp;
use pando_env::Env;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A no-holes point that a test sets.
#[derive(Clone, Default)]
struct Point(Arc<AtomicU64>);

impl Point {
    fn at(timestamp: u64) -> Point {
        Point(Arc::new(AtomicU64::new(timestamp)))
    }

    fn set(&self, timestamp: u64) {
        self.0.store(timestamp, Ordering::SeqCst);
    }

    fn function(&self) -> NoHoles {
        let point = self.0.clone();
        Arc::new(move || Timestamp(point.load(Ordering::SeqCst)))
    }
}

fn directory() -> PathBuf {
    PathBuf::from("/data/log")
}

/// Small segments, so that rolls happen.
fn small(oplog: bool) -> LogOptions {
    LogOptions { segment_bytes: 4096, oplog, tail_cache_bytes: 2048, ..LogOptions::default() }
}

fn open(env: &Env, options: LogOptions, point: &Point) -> Result<(Log, Recovery)> {
    Log::open(env, &directory(), options, None, point.function())
}

/// Appends one commit.
fn commit(log: &Log, sequence: u64, timestamps: &[u64], payload: &[u8]) -> Result<DurablePoint> {
    let entries: Vec<(Timestamp, Bytes)> =
        timestamps.iter().map(|timestamp| (Timestamp(*timestamp), entry(*timestamp))).collect();
    let record = PreparedRecord::new(1, &entries, payload)?;
    let _room = log.reserve(record.reserved_bytes())?;
    Ok(log.lock().append(&record, sequence))
}

/// What the entry of a timestamp says.
fn entry(timestamp: u64) -> Bytes {
    let length = 20 + (timestamp % 7) as usize * 13;
    format!("entry {timestamp} ").bytes().cycle().take(length).collect()
}

/// All entries that a reader gives, checked.
fn read_all(reader: &mut OplogReader) -> Vec<u64> {
    let mut timestamps = Vec::new();
    while let Some((timestamp, bytes)) = reader.advance().unwrap() {
        assert_eq!(bytes, entry(timestamp.0));
        timestamps.push(timestamp.0);
    }
    timestamps
}

fn forward(log: &Log) -> Vec<u64> {
    read_all(&mut log.oplog().forward())
}

fn backward(log: &Log) -> Vec<u64> {
    read_all(&mut log.oplog().backward())
}

/// The sequences of all records from a recovery.
fn sequences(recovery: Recovery) -> Vec<u64> {
    recovery.map(|record| record.unwrap().sequence).collect()
}

/// A temporary directory on the real disk.
struct RealDirectory(PathBuf);

impl RealDirectory {
    fn new(name: &str) -> RealDirectory {
        let path = std::env::temp_dir().join(format!("pando-log-{name}-{}", std::process::id()));
        RealDirectory(path)
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for RealDirectory {
    #[allow(clippy::disallowed_methods)]
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
