//! A full disk: writes are refused with a clear error, reads are served, drops give space back, and everything goes on when
//! there is room again. Nothing that was acknowledged is lost, whether the disk fills up in the middle of a checkpoint, of a
//! merge, of a roll of the log or of a start.

#[path = "support/mod.rs"]
mod support;
#[path = "support/world/mod.rs"]
mod world;

use pando_engine::{DurableEngine, EngineOptions, Mode};
use pando_env::simulated::{Fault, FaultKind, Simulation};
use pando_storage::{
    BeginOptions, CheckpointKind, Durability, Maintenance, ReadAt, Result, StorageError, TableOptions, TableRegistry,
    TableSize, TransactionSource,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use world::observe::rows_of;
use world::{Chance, open};

const BALLAST_BYTES: u64 = 256 << 10;
const AMPLE_BYTES: u64 = 1 << 30;

fn options() -> EngineOptions {
    EngineOptions {
        memory_bytes: 2 << 20,
        log_segment_bytes: 64 << 10,
        ballast_bytes: BALLAST_BYTES,
        ..EngineOptions::stepped(Mode::StandAlone)
    }
}

/// A store and what was committed to it.
struct Store {
    simulation: Simulation,
    engine: Option<Arc<DurableEngine>>,
    chance: Chance,
    rows: BTreeMap<String, BTreeMap<Vec<u8>, Vec<u8>>>,
}

impl Store {
    fn new(seed: u64) -> Store {
        let simulation = Simulation::new(seed);
        let engine = open(&simulation, &options()).expect("a new store");
        let mut store = Store { simulation, engine: Some(engine), chance: Chance::new(seed), rows: BTreeMap::new() };
        for ident in ["kept", "victim"] {
            store.engine().create_table(ident, &TableOptions::default()).expect("a table");
            store.rows.insert(ident.to_owned(), BTreeMap::new());
        }
        store
    }

    fn engine(&self) -> &DurableEngine {
        self.engine.as_ref().expect("it is open")
    }

    /// Commits one row, durably.
    fn put(&mut self, ident: &str) -> Result<()> {
        let key = format!("key {:04}", self.chance.below(3000)).into_bytes();
        let value: Vec<u8> = (0..200 + self.chance.below(800)).map(|_| self.chance.next() as u8).collect();
        let engine = self.engine.clone().expect("it is open");
        let table = engine.open_table(ident)?;
        let mut transaction = engine.begin(BeginOptions::default())?;
        let before = transaction.get(&table, &key)?;
        transaction.put(&table, &key, &value)?;
        let records = i64::from(before.is_none());
        let bytes = value.len() as i64 - before.map_or(0, |value| value.len()) as i64;
        transaction.adjust_size(&table, TableSize::new(records, bytes))?;
        let committed = transaction.commit()?;
        // Committed is committed: room for the flush was there before.
        engine.wait_durable(committed.position).block().expect("what was admitted can be flushed");
        self.rows.get_mut(ident).expect("a known table").insert(key, value);
        Ok(())
    }

    fn fill_some(&mut self, rows: u64) {
        for number in 0..rows {
            let ident = if number % 4 == 0 { "kept" } else { "victim" };
            self.put(ident).expect("there is room");
        }
    }

    /// Writes until there is no room; how many rows went in.
    fn fill_up(&mut self) -> u64 {
        for number in 0..100_000 {
            let ident = if number % 4 == 0 { "kept" } else { "victim" };
            match self.put(ident) {
                Ok(()) => {}
                Err(error) => {
                    self.full(error);
                    return number;
                }
            }
        }
        panic!("the disk never fills up");
    }

    fn full(&self, error: StorageError) {
        assert!(matches!(&error, StorageError::OutOfDiskSpace(text) if !text.is_empty()), "not said clearly: {error}");
    }

    /// So many bytes are free from now on.
    fn leave_free(&self, bytes: u64) {
        let disk = self.simulation.disk();
        disk.set_capacity_bytes(disk.used_bytes() + bytes);
    }

    fn check(&self) {
        let engine = self.engine();
        assert!(engine.idents().iter().eq(self.rows.keys()), "the tables");
        for (ident, expected) in &self.rows {
            let rows = rows_of(engine, ident, ReadAt::Latest).expect("reads are served");
            assert!(rows == *expected, "{ident}: {} rows instead of {}", rows.len(), expected.len());
            let bytes: usize = expected.values().map(Vec::len).sum();
            let table = engine.open_table(ident).expect("a table");
            let size = TableSize::new(expected.len() as i64, bytes as i64);
            assert_eq!(engine.table_size(&table).expect("a size"), size);
        }
        let mut report = engine.verify().expect("verification");
        // A write in place that was cut short leaves the other copy.
        report.damage.retain(|damage| !damage.detail.contains("the other one holds"));
        assert!(report.damage.is_empty(), "{:?}", report.damage);
    }

    fn restart(&mut self) -> Result<()> {
        self.engine = None;
        self.simulation.crash();
        self.engine = Some(open(&self.simulation, &options())?);
        Ok(())
    }

    fn settle(&self) -> Result<()> {
        self.engine().checkpoint(CheckpointKind::Automatic)?;
        while self.engine().maintain()? {}
        Ok(())
    }
}

#[test]
fn x20_a_full_disk_refuses_writes_serves_reads_and_goes_on() {
    for seed in 0..support::seeds(6) {
        let mut store = Store::new(seed);
        store.fill_some(400);
        store.settle().expect("there is room");
        store.leave_free(100 << 10);
        assert!(store.fill_up() > 0, "what is free is used");
        store.check();
        for _ in 0..20 {
            // A smaller row may still fit.
            store.put("kept").unwrap_or_else(|error| store_full(&error));
        }
        store.check();
        store.simulation.disk().set_capacity_bytes(AMPLE_BYTES);
        store.fill_some(100);
        store.settle().expect("there is room again");
        store.check();
        store.restart().expect("the store opens");
        store.check();
    }
}

fn store_full(error: &StorageError) {
    assert!(matches!(error, StorageError::OutOfDiskSpace(_)), "{error}");
}

#[test]
fn x20_a_drop_on_a_full_disk_makes_room() {
    for seed in 0..support::seeds(6) {
        let mut store = Store::new(seed);
        store.fill_some(1200);
        store.settle().expect("there is room");
        store.leave_free(50 << 10);
        store.fill_up();
        store.engine().drop_table("victim").expect("a drop needs no room that the reserve does not give");
        store.rows.remove("victim");
        // A first attempt may fail and give up the reserve, which the next one uses.
        for _ in 0..20 {
            if let Err(error) = store.engine().maintain() {
                store_full(&error);
            }
        }
        for _ in 0..100 {
            store.put("kept").expect("there is room again");
        }
        store.check();
        store.restart().expect("the store opens");
        store.check();
    }
}

#[test]
fn x20_a_store_on_a_full_disk_opens_and_is_read() {
    for seed in 0..support::seeds(6) {
        let mut store = Store::new(seed);
        store.fill_some(400);
        store.leave_free(30 << 10);
        store.fill_up();
        // Others take what is left.
        store.leave_free(0);
        store.restart().expect("a start needs no room that the reserve does not give");
        store.check();
        store.simulation.disk().set_capacity_bytes(AMPLE_BYTES);
        store.fill_some(20);
        store.settle().expect("there is room again");
        store.check();
    }
}

/// What is done while the disk is full.
type Action = fn(&mut Store) -> Result<()>;

/// Lets the space run out at every single call of the action that needs some, once and for good.
fn at_every_call(name: &str, prepare: fn(&mut Store), act: Action, concerns: fn(&Path) -> bool) {
    for times in [1, u64::MAX] {
        let mut number = 1;
        loop {
            let mut store = Store::new(number);
            prepare(&mut store);
            let fault = Fault::new(FaultKind::SpaceRunsOut).on_path(concerns).from_call(number).times(times);
            store.simulation.disk().inject(fault);
            let acted = act(&mut store);
            let done = acted.is_ok();
            if let Err(error) = acted {
                assert!(matches!(error, StorageError::OutOfDiskSpace(_)), "{name}, call {number}: {error}");
            }
            store.check();
            store.simulation.disk().clear_faults();
            act(&mut store).unwrap_or_else(|error| panic!("{name}, call {number}: it does not go on: {error}"));
            store.check();
            store.restart().unwrap_or_else(|error| panic!("{name}, call {number}: {error}"));
            store.check();
            // With the reserve a first failure may pass unnoticed; many in a row may not.
            if done && number > 30 {
                break;
            }
            number += 1;
            assert!(number < 2000, "{name} never gets through");
        }
    }
}

fn is_base(path: &Path) -> bool {
    path.starts_with("/data/base")
}

#[test]
fn x17_x20_the_disk_fills_up_during_a_checkpoint() {
    let act = |store: &mut Store| store.engine().checkpoint(CheckpointKind::Full).map(drop);
    at_every_call("a checkpoint", |store| store.fill_some(200), act, is_base);
}

#[test]
fn x20_the_disk_fills_up_during_a_merge() {
    let prepare = |store: &mut Store| {
        for _ in 0..7 {
            store.fill_some(40);
            store.engine().checkpoint(CheckpointKind::Automatic).expect("there is room");
        }
    };
    let act = |store: &mut Store| {
        while store.engine().maintain()? {}
        Ok(())
    };
    at_every_call("a merge", prepare, act, is_base);
}

#[test]
fn x20_x21_the_disk_fills_up_while_the_log_rolls() {
    for pages in 0..40 {
        let mut store = Store::new(pages);
        store.fill_some(20);
        store.leave_free(pages * 4096);
        let mut refused = 0;
        for _ in 0..300 {
            if let Err(error) = store.put("kept") {
                store_full(&error);
                refused += 1;
            }
        }
        assert!(refused > 0, "the disk never fills up");
        store.check();
        store.simulation.disk().set_capacity_bytes(AMPLE_BYTES);
        store.fill_some(100);
        store.restart().expect("the store opens");
        store.check();
    }
}

#[test]
fn x20_a_failed_write_of_a_run_is_told_and_can_be_repeated() {
    for number in 1..25 {
        let mut store = Store::new(number);
        store.fill_some(200);
        let fault = Fault::new(FaultKind::WriteFails).on_path(is_run).from_call(number).times(1);
        store.simulation.disk().inject(fault);
        if let Err(error) = store.engine().checkpoint(CheckpointKind::Full) {
            assert!(matches!(error, StorageError::Io(_)), "{error}");
        }
        store.check();
        store.simulation.disk().clear_faults();
        store.fill_some(10);
        store.engine().checkpoint(CheckpointKind::Full).expect("it can be repeated");
        store.restart().expect("the store opens");
        store.check();
    }
}

fn is_run(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "run")
}
