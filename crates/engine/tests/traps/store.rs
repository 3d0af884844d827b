//! A store on a simulated disk, with short words for what the traps do.

use pando_base::Timestamp;
use pando_engine::{DurableEngine, EngineOptions, Mode};
use pando_env::Env;
use pando_env::simulated::{Simulation, Statistics};
use pando_storage::{
    BeginOptions, CheckpointKind, CheckpointOutcome, Engine, ReadAt, Table, TableOptions, Transaction, Urgency,
};
use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

const DIRECTORY: &str = "/data";

/// What a table is expected to have.
pub type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

/// A store that can be crashed and opened again.
pub struct Store {
    pub simulation: Simulation,
    pub options: EngineOptions,
    env: Env,
    engine: Option<Arc<DurableEngine>>,
}

impl Deref for Store {
    type Target = DurableEngine;

    fn deref(&self) -> &DurableEngine {
        self.engine.as_ref().expect("an open engine")
    }
}

/// True if the long variants are wanted.
pub fn is_long() -> bool {
    std::env::var("PANDO_TEST_LONG").is_ok()
}

/// A small timestamp.
pub fn ts(number: u64) -> Timestamp {
    Timestamp(number)
}

impl Store {
    /// A store on a fresh disk.
    pub fn new(mode: Mode, memory_bytes: u64) -> Store {
        Store::with_options(EngineOptions { memory_bytes, ..EngineOptions::stepped(mode) })
    }

    /// A store on a fresh disk, opened like this.
    pub fn with_options(options: EngineOptions) -> Store {
        let simulation = Simulation::new(7);
        let env = simulation.env();
        let mut store = Store { simulation, options, env, engine: None };
        store.open();
        store
    }

    fn open(&mut self) {
        let opened = DurableEngine::open(&self.env, Path::new(DIRECTORY), self.options.clone());
        self.engine = Some(opened.expect("the store opens"));
    }

    /// Power loss, then the next life.
    pub fn crash(&mut self) {
        self.engine = None;
        self.env = self.simulation.crash();
        self.open();
    }

    /// A clean end, then the next life.
    pub fn reopen(&mut self) {
        self.shut_down().expect("a clean end");
        self.engine = None;
        self.open();
    }

    // ---- Tables and transactions.

    /// A table that the oplog covers.
    pub fn replicated(&self, ident: &str) -> Table {
        self.engine().create_table(ident, &TableOptions { replicated: true, ..TableOptions::default() }).unwrap()
    }

    /// A table with redo of its own.
    pub fn local(&self, ident: &str) -> Table {
        self.engine().create_table(ident, &TableOptions::default()).unwrap()
    }

    /// A table that is there.
    pub fn table(&self, ident: &str) -> Table {
        self.engine().open_table(ident).unwrap()
    }

    /// As the interface knows it.
    pub fn engine(&self) -> &dyn Engine {
        &**self
    }

    pub fn start(&self) -> Box<dyn Transaction> {
        self.engine().begin(BeginOptions::default()).unwrap()
    }

    pub fn start_at(&self, timestamp: u64) -> Box<dyn Transaction> {
        let read = ReadAt::Timestamp(ts(timestamp));
        self.engine().begin(BeginOptions { read, ..BeginOptions::default() }).unwrap()
    }

    pub fn start_exempt(&self) -> Box<dyn Transaction> {
        self.engine().begin(BeginOptions { urgency: Urgency::Exempt, ..BeginOptions::default() }).unwrap()
    }

    /// Commits one change; a timestamp of zero is none, no value deletes.
    pub fn write(&self, table: &Table, key: &[u8], value: Option<&[u8]>, timestamp: u64) {
        let mut transaction = self.start();
        if timestamp > 0 {
            transaction.set_commit_timestamp(ts(timestamp)).unwrap();
        }
        match value {
            Some(value) => transaction.put(table, key, value).unwrap(),
            None => transaction.delete(table, key).unwrap(),
        }
        transaction.commit().unwrap();
    }

    pub fn put(&self, table: &Table, key: &[u8], value: &[u8], timestamp: u64) {
        self.write(table, key, Some(value), timestamp);
    }

    /// Says where history begins and moves stable there, so that checkpoints are taken at stable.
    pub fn stable_from_start(&self, stable: u64) {
        self.engine().set_initial_data(ts(1));
        self.engine().set_stable(ts(stable)).unwrap();
    }

    // ---- Work that threads would do.

    pub fn checkpoint_now(&self) -> CheckpointOutcome {
        self.engine().checkpoint(CheckpointKind::Automatic).unwrap()
    }

    /// All background work that there is.
    pub fn settle(&self) {
        while self.engine().maintain().unwrap() {}
    }

    /// Rows that the base has leave memory.
    pub fn evict(&self) {
        self.engine().set_memory_bytes(0);
        self.engine().set_memory_bytes(self.options.memory_bytes);
    }

    // ---- Figures.

    pub fn figure(&self, name: &str) -> i64 {
        let statistics = self.engine().statistics();
        assert!(statistics.0.contains_key(name), "no figure is called {name}");
        statistics.value(name)
    }

    /// What was done to the files of the base.
    pub fn base_io(&self) -> Statistics {
        self.io("base")
    }

    /// What was done to the files of the log.
    pub fn log_io(&self) -> Statistics {
        self.io("log")
    }

    fn io(&self, folder: &str) -> Statistics {
        let folder = Path::new(DIRECTORY).join(folder);
        self.simulation.disk().statistics(|path| path.starts_with(&folder))
    }

    /// How many files there are.
    pub fn file_count(&self) -> usize {
        self.simulation.disk().files().len()
    }
}

/// Everything that a transaction sees, found in both directions and by get.
pub fn contents(transaction: &dyn Transaction, table: &Table) -> Contents {
    let forward = forward(transaction, table);
    let mut backward = Vec::new();
    let mut cursor = transaction.cursor(table).unwrap();
    while let Some(entry) = cursor.previous().unwrap() {
        backward.push((entry.key.to_vec(), entry.value.to_vec()));
    }
    backward.reverse();
    assert!(forward == backward, "both directions see the same");
    for (key, value) in &forward {
        assert!(transaction.get(table, key).unwrap().as_deref() == Some(&value[..]), "get agrees with the cursor");
    }
    forward.into_iter().collect()
}

/// Everything that a transaction sees, in order.
pub fn forward(transaction: &dyn Transaction, table: &Table) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut pairs = Vec::new();
    let mut cursor = transaction.cursor(table).unwrap();
    while let Some(entry) = cursor.next().unwrap() {
        pairs.push((entry.key.to_vec(), entry.value.to_vec()));
    }
    pairs
}

/// Asserts that a transaction sees just this, without printing thousands of rows.
pub fn assert_contents(transaction: &dyn Transaction, table: &Table, expected: &Contents, when: &str) {
    let found = contents(transaction, table);
    if found != *expected {
        let missing: Vec<_> = expected.keys().filter(|key| !found.contains_key(*key)).take(5).collect();
        let extra: Vec<_> = found.keys().filter(|key| !expected.contains_key(*key)).take(5).collect();
        let wrong = found.iter().filter(|(key, value)| expected.get(*key).is_some_and(|want| want != *value));
        let wrong: Vec<_> = wrong.map(|(key, _)| key).take(5).collect();
        panic!("{when}: missing {missing:?}, extra {extra:?}, wrong {wrong:?}");
    }
}

/// Numbers that look random and are the same in each run.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 8
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// Bytes that do not compress.
    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.next() as u8).collect()
    }
}
