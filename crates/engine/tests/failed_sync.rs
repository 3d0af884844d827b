//! A failed fsync: nobody knows what the disk holds, so the engine stops writing with a clear message, goes on reading, and
//! the next start finds a consistent store with everything that was acknowledged.

#[path = "support/mod.rs"]
mod support;
#[path = "support/world/mod.rs"]
mod world;

use pando_engine::{DurableEngine, Mode};
use pando_env::simulated::{Fault, FaultKind, Simulation};
use pando_storage::{
    BeginOptions, CheckpointKind, Durability, Engine, Maintenance, StorageError, TableOptions, TableRegistry,
    TransactionSource,
};
use std::path::Path;
use std::sync::Arc;
use world::check::{Pending, check, check_live};
use world::each::{some_checkpoints, some_commits};
use world::life::Life;
use world::model::Model;
use world::{Chance, lose_power, open, small_options};

/// Which files a fault strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Log,
    Run,
    Manifest,
}

impl Target {
    fn concerns(self, path: &Path) -> bool {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        match self {
            Target::Log => path.starts_with("/data/log"),
            Target::Run => name.ends_with(".run"),
            Target::Manifest => name.starts_with("MANIFEST") || name.starts_with("CURRENT"),
        }
    }
}

fn stopped(result: Result<(), StorageError>, what: &str) -> String {
    match result {
        Err(StorageError::Stopped(message)) => message,
        Err(other) => panic!("{what} failed otherwise: {other}"),
        Ok(()) => panic!("{what} is not refused"),
    }
}

/// Every kind of write is refused, every kind of read goes on.
fn check_stopped(engine: &DurableEngine, model: &Model) {
    let message = stopped(engine.flush_log().map(drop), "a flush");
    assert!(!message.is_empty(), "the message says why");
    stopped(engine.checkpoint(CheckpointKind::Full).map(drop), "a checkpoint");
    stopped(engine.create_table("another", &TableOptions::default()).map(drop), "a new table");
    stopped(engine.maintain().map(drop), "maintenance");
    let table = engine.open_table("logged-a").expect("a table");
    let mut transaction = engine.begin(BeginOptions::default()).expect("reads go on");
    stopped(transaction.put(&table, b"key", b"value"), "a write");
    drop(transaction);
    check_live(engine, model);
    engine.verify().expect("verification goes on");
    engine.shut_down().expect("an engine that has stopped can still be shut down");
}

/// One life with a fault in it, the end, and the next start.
fn play(seed: u64, kind: FaultKind, target: Target, strike: u64) -> bool {
    let context = Context { seed, kind, target, strike };
    let simulation = Simulation::new(seed);
    let mut chance = Chance::new(seed);
    let mut model = Model::new();
    let options = small_options(Mode::ReplicaSet, 256 << 10);
    let engine = open(&simulation, &options).expect("a new store");
    let mut life = Life::new(Arc::clone(&engine), &simulation, &mut chance, &mut model, Mode::ReplicaSet);
    some_checkpoints(&mut life, 2).expect("nothing disturbs it yet");
    life.may_stop = true;
    let fault = Fault::new(kind).on_path(move |path| target.concerns(path)).from_call(strike).times(1);
    simulation.disk().inject(fault);
    let struck = life.play(80).is_err();
    let pending = Pending::of(&life);
    drop(life);
    if struck {
        check_stopped(&engine, &model);
    }
    drop(engine);
    simulation.disk().clear_faults();
    match seed % 3 {
        0 => drop(simulation.kill()),
        _ => lose_power(&simulation, &mut chance),
    }
    let engine = open(&simulation, &options).expect("the next start");
    check(&engine, &mut model, &pending, &mut chance);
    let mut life = Life::new(engine, &simulation, &mut chance, &mut model, Mode::ReplicaSet);
    some_commits(&mut life).expect("it goes on");
    life.checkpoint(CheckpointKind::Full).expect("it goes on");
    drop(context);
    struck
}

/// Says what failed.
struct Context {
    seed: u64,
    kind: FaultKind,
    target: Target,
    strike: u64,
}

impl Drop for Context {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Context { seed, kind, target, strike } = self;
            eprintln!("failed with {kind:?} of {target:?} at call {strike}, seed {seed}");
        }
    }
}

fn play_all(kind: FaultKind, target: Target) {
    let mut struck = 0;
    for seed in 0..support::seeds(60) {
        struck += u64::from(play(seed, kind, target, 1 + seed % 7));
    }
    assert!(struck > 0, "{kind:?} of {target:?} never stopped an engine");
}

#[test]
fn x20_x21_a_failed_sync_of_the_log_stops_the_engine() {
    play_all(FaultKind::SyncFails, Target::Log);
}

#[test]
fn x17_x20_a_failed_sync_of_a_run_stops_the_engine() {
    play_all(FaultKind::SyncFails, Target::Run);
}

#[test]
fn x17_x20_a_failed_sync_of_the_manifest_stops_the_engine() {
    play_all(FaultKind::SyncFails, Target::Manifest);
}

#[test]
fn x20_x21_a_failed_write_of_the_log_stops_the_engine() {
    play_all(FaultKind::WriteFails, Target::Log);
}

#[test]
fn x20_a_failed_sync_of_a_directory_stops_the_engine() {
    let mut struck = 0;
    for seed in 0..support::seeds(60) {
        let target = if seed % 2 == 0 { Target::Log } else { Target::Run };
        struck += u64::from(play_directory(seed, target));
    }
    assert!(struck > 0, "no directory sync ever failed");
}

fn play_directory(seed: u64, target: Target) -> bool {
    let directory = if target == Target::Log { "/data/log" } else { "/data/base" };
    let simulation = Simulation::new(seed);
    let mut chance = Chance::new(seed);
    let mut model = Model::new();
    let options = small_options(Mode::ReplicaSet, 256 << 10);
    let engine = open(&simulation, &options).expect("a new store");
    let mut life = Life::new(Arc::clone(&engine), &simulation, &mut chance, &mut model, Mode::ReplicaSet);
    some_checkpoints(&mut life, 1).expect("nothing disturbs it yet");
    life.may_stop = true;
    let fault = Fault::new(FaultKind::DirectorySyncFails).on_path(move |path| path == Path::new(directory)).times(1);
    simulation.disk().inject(fault);
    let struck = life.play(120).is_err();
    let pending = Pending::of(&life);
    drop(life);
    if struck {
        check_stopped(&engine, &model);
    }
    drop(engine);
    simulation.disk().clear_faults();
    lose_power(&simulation, &mut chance);
    let engine = open(&simulation, &options).expect("the next start");
    check(&engine, &mut model, &pending, &mut chance);
    struck
}
