//! Short words for the cases: open a store, write a pair, look at what is there.
//!
//! Contents are compared as text, `key=value` in order with spaces between, so that a failure shows what was found.

use super::factory::{EngineFactory, EngineFactoryMaker, Mode};
use crate::*;
use pando_base::Timestamp;
use pando_env::Random;
use std::future::Future;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

/// Asserts that a call fails with this variant of `StorageError`.
macro_rules! fails {
    ($call:expr, $variant:ident) => {
        match $call {
            Err(StorageError::$variant { .. }) => {}
            Err(other) => panic!("expected {}, got the error: {other:?}", stringify!($variant)),
            Ok(_) => panic!("expected {}, but the call succeeded", stringify!($variant)),
        }
    };
}
pub(super) use fails;

/// A small timestamp.
pub(super) fn ts(number: u64) -> Timestamp {
    Timestamp(number)
}

/// A store under test.
pub(super) struct Store {
    pub(super) factory: Box<dyn EngineFactory>,
    engine: Option<Arc<dyn Engine>>,
}

impl Deref for Store {
    type Target = dyn Engine;

    fn deref(&self) -> &(dyn Engine + 'static) {
        &**self.engine.as_ref().unwrap()
    }
}

impl Store {
    pub(super) fn new(factory: Box<dyn EngineFactory>) -> Store {
        let engine = Some(factory.open());
        Store { factory, engine }
    }

    pub(super) fn replica_set(maker: &dyn EngineFactoryMaker) -> Store {
        Store::new(maker.make(Mode::ReplicaSet))
    }

    pub(super) fn stand_alone(maker: &dyn EngineFactoryMaker) -> Store {
        Store::new(maker.make(Mode::StandAlone))
    }

    /// One of each mode.
    pub(super) fn both(maker: &dyn EngineFactoryMaker) -> [Store; 2] {
        [Store::replica_set(maker), Store::stand_alone(maker)]
    }

    /// Lets go of the engine and keeps the files.
    pub(super) fn close(self) -> Box<dyn EngineFactory> {
        self.factory
    }

    pub(super) fn engine(&self) -> &Arc<dyn Engine> {
        self.engine.as_ref().unwrap()
    }

    pub(super) fn reopen(&mut self) {
        self.shut_down().unwrap();
        self.engine = None;
        self.engine = Some(self.factory.open());
    }

    pub(super) fn crash(&mut self) {
        self.crash_holding(());
    }

    /// Crashes with something in hand that outlives the last use of the engine.
    pub(super) fn crash_holding<T>(&mut self, held: T) {
        self.engine = None;
        drop(held);
        self.factory.crash();
        self.engine = Some(self.factory.open());
    }

    pub(super) fn recovery_unit(&self) -> RecoveryUnit {
        RecoveryUnit::new(self.engine().clone(), Arc::new(NoReplication))
    }

    /// Makes a table that the oplog covers.
    pub(super) fn replicated(&self, ident: &str) -> Table {
        self.create_table(ident, &TableOptions { replicated: true, ..TableOptions::default() }).unwrap()
    }

    /// Makes a table with redo of its own.
    pub(super) fn local(&self, ident: &str) -> Table {
        self.create_table(ident, &TableOptions::default()).unwrap()
    }

    pub(super) fn start(&self) -> Box<dyn Transaction> {
        self.begin(BeginOptions::default()).unwrap()
    }

    pub(super) fn start_at(&self, timestamp: u64) -> Box<dyn Transaction> {
        self.begin(BeginOptions { read: ReadAt::Timestamp(ts(timestamp)), ..BeginOptions::default() }).unwrap()
    }

    pub(super) fn start_with_prepare(&self, prepare: PrepareBehaviour) -> Box<dyn Transaction> {
        self.begin(BeginOptions { prepare, ..BeginOptions::default() }).unwrap()
    }

    // ---- One write, one transaction. Timestamp zero stands for none.

    pub(super) fn put(&self, table: &Table, key: &str, value: &str, timestamp: u64) -> LogPosition {
        let mut transaction = self.start();
        if timestamp != 0 {
            transaction.set_commit_timestamp(ts(timestamp)).unwrap();
        }
        transaction.put(table, key.as_bytes(), value.as_bytes()).unwrap();
        transaction.commit().unwrap().position
    }

    pub(super) fn delete(&self, table: &Table, key: &str, timestamp: u64) {
        let mut transaction = self.start();
        if timestamp != 0 {
            transaction.set_commit_timestamp(ts(timestamp)).unwrap();
        }
        transaction.delete(table, key.as_bytes()).unwrap();
        transaction.commit().unwrap();
    }

    pub(super) fn grow(&self, table: &Table, change: (i64, i64), timestamp: u64) {
        let mut transaction = self.start();
        if timestamp != 0 {
            transaction.set_commit_timestamp(ts(timestamp)).unwrap();
        }
        transaction.adjust_size(table, TableSize::new(change.0, change.1)).unwrap();
        transaction.commit().unwrap();
    }

    /// A transaction that has written this pair and is prepared.
    pub(super) fn prepared(&self, table: &Table, key: &str, value: &str, timestamp: u64) -> Box<dyn Transaction> {
        let mut transaction = self.start();
        transaction.put(table, key.as_bytes(), value.as_bytes()).unwrap();
        transaction.prepare(ts(timestamp)).unwrap();
        transaction
    }

    /// Commits an entry to the oplog, alone.
    pub(super) fn append(&self, timestamp: u64, entry: &str) -> LogPosition {
        let mut transaction = self.start();
        transaction.set_commit_timestamp(ts(timestamp)).unwrap();
        transaction.append_oplog(ts(timestamp), entry.as_bytes()).unwrap();
        transaction.commit().unwrap().position
    }

    /// Commits a pair with the oplog entry that covers it.
    pub(super) fn replicate(&self, table: &Table, key: &str, value: &str, timestamp: u64) -> LogPosition {
        let mut transaction = self.start();
        transaction.set_commit_timestamp(ts(timestamp)).unwrap();
        transaction.put(table, key.as_bytes(), value.as_bytes()).unwrap();
        transaction.append_oplog(ts(timestamp), format!("{key}={value}").as_bytes()).unwrap();
        transaction.commit().unwrap().position
    }

    // ---- Looking.

    pub(super) fn dump(&self, table: &Table) -> String {
        dump(&*self.start(), table)
    }

    pub(super) fn dump_at(&self, table: &Table, timestamp: u64) -> String {
        dump(&*self.start_at(timestamp), table)
    }

    pub(super) fn dump_ident(&self, ident: &str) -> String {
        self.dump(&self.open_table(ident).unwrap())
    }

    pub(super) fn size(&self, table: &Table) -> (i64, i64) {
        let size = self.table_size(table).unwrap();
        (size.records, size.bytes)
    }

    pub(super) fn stable_size(&self, table: &Table) -> (i64, i64) {
        let size = self.stable_table_size(table).unwrap();
        (size.records, size.bytes)
    }

    pub(super) fn all_durable(&self) -> u64 {
        self.timestamps().all_durable.0
    }

    pub(super) fn log(&self) -> &dyn Oplog {
        self.oplog().unwrap()
    }

    pub(super) fn dump_oplog(&self) -> String {
        dump_entries(self.log().forward().unwrap())
    }

    pub(super) fn dump_oplog_backward(&self) -> String {
        dump_entries(self.log().backward().unwrap())
    }

    /// Says where history begins and moves stable there and further, so that checkpoints are taken at stable.
    pub(super) fn stable_from_start(&self, stable: u64) {
        self.set_initial_data(ts(1));
        self.set_stable(ts(stable)).unwrap();
    }

    pub(super) fn checkpoint_now(&self) -> CheckpointOutcome {
        self.checkpoint(CheckpointKind::Automatic).unwrap()
    }

    /// Does all background work that there is.
    pub(super) fn settle(&self) {
        while self.maintain().unwrap() {}
    }
}

pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub(super) fn shown(entry: Option<Entry<'_>>) -> String {
    entry.map_or_else(|| "none".to_owned(), |entry| format!("{}={}", text(entry.key), text(entry.value)))
}

/// Everything visible, found by walking forward; walking backward and getting must agree.
pub(super) fn dump(transaction: &dyn Transaction, table: &Table) -> String {
    let mut cursor = transaction.cursor(table).unwrap();
    let mut pairs = Vec::new();
    while let Some(entry) = cursor.next().unwrap() {
        pairs.push((entry.key.to_vec(), entry.value.to_vec()));
    }
    let mut backward = Vec::new();
    let mut cursor = transaction.cursor(table).unwrap();
    while let Some(entry) = cursor.previous().unwrap() {
        backward.push((entry.key.to_vec(), entry.value.to_vec()));
    }
    backward.reverse();
    assert_eq!(pairs, backward, "both directions see the same");
    for (key, value) in &pairs {
        assert_eq!(transaction.get(table, key).unwrap().as_deref(), Some(&value[..]), "get agrees with the cursor");
    }
    let words: Vec<String> = pairs.iter().map(|(key, value)| format!("{}={}", text(key), text(value))).collect();
    words.join(" ")
}

pub(super) fn got(transaction: &dyn Transaction, table: &Table, key: &str) -> String {
    let value = transaction.get(table, key.as_bytes()).unwrap();
    value.map_or_else(|| "none".to_owned(), |value| text(&value))
}

pub(super) fn put(transaction: &mut Box<dyn Transaction>, table: &Table, key: &str, value: &str) -> Result<()> {
    transaction.put(table, key.as_bytes(), value.as_bytes())
}

pub(super) fn delete(transaction: &mut Box<dyn Transaction>, table: &Table, key: &str) -> Result<()> {
    transaction.delete(table, key.as_bytes())
}

pub(super) fn truncate(
    transaction: &mut Box<dyn Transaction>,
    table: &Table,
    start: &str,
    end: Option<&str>,
) -> Result<()> {
    transaction.truncate(table, start.as_bytes(), end.map(str::as_bytes))
}

pub(super) fn dump_entries(mut cursor: Box<dyn OplogCursor>) -> String {
    let mut words = Vec::new();
    while let Some(entry) = cursor.next().unwrap() {
        words.push(format!("{}={}", entry.timestamp.0, text(&entry.entry)));
    }
    words.join(" ")
}

pub(super) fn shown_entry(entry: Option<OplogEntry>) -> String {
    entry.map_or_else(|| "none".to_owned(), |entry| format!("{}={}", entry.timestamp.0, text(&entry.entry)))
}

/// True if the wait is over.
pub(super) fn is_over(wait: &mut Wait) -> bool {
    match Pin::new(wait).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(result) => {
            result.unwrap();
            true
        }
        Poll::Pending => false,
    }
}

/// Numbers that look random and are the same in each run.
pub(super) struct Dice(AtomicU64);

impl Dice {
    pub(super) fn new(seed: u64) -> Dice {
        Dice(AtomicU64::new(seed))
    }
}

impl Random for Dice {
    fn next_u64(&self) -> u64 {
        // The usual finaliser of a counter; the constants are odd numbers with evenly spread bits.
        let state = self.0.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed).wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn fill(&self, buffer: &mut [u8]) {
        for chunk in buffer.chunks_mut(8) {
            let bytes = self.next_u64().to_le_bytes();
            chunk.copy_from_slice(&bytes[..chunk.len()]);
        }
    }
}
