//! The fail point that pauses the checkpoint thread belongs to the process, so this one test has a process of its own.

#![allow(clippy::unwrap_used, reason = "a test fails where it does")]

use pando_base::FailPointMode;
use pando_engine::{DurableEngine, EngineOptions, Mode};
use pando_env::Env;
use pando_env::simulated::Simulation;
use pando_storage::{BeginOptions, CheckpointKind, Engine, PAUSE_CHECKPOINT_THREAD, TableOptions};
use std::path::Path;
use std::time::Duration;

#[test]
fn x20_the_checkpoint_thread_can_be_paused() {
    let simulation = Simulation::new(1);
    let env = Env::real().with_disk(simulation.disk().handle());
    let options = EngineOptions {
        background: true,
        checkpoint_interval: Duration::from_millis(1),
        commit_interval: Duration::from_millis(1),
        ..EngineOptions::stepped(Mode::StandAlone)
    };
    PAUSE_CHECKPOINT_THREAD.set(FailPointMode::AlwaysOn, Default::default(), 0).unwrap();
    let engine = DurableEngine::open(&env, Path::new("/data"), options).unwrap();
    let engine: &dyn Engine = &*engine;
    let table = engine.create_table("t", &TableOptions::default()).unwrap();
    let put = |value: &[u8]| {
        let mut writer = engine.begin(BeginOptions::default()).unwrap();
        writer.put(&table, b"a", value).unwrap();
        writer.commit().unwrap();
    };
    let taken = || engine.statistics().value("checkpoint.taken");
    let before = taken();
    put(b"1");
    while PAUSE_CHECKPOINT_THREAD.times_entered() < 3 {
        env.clock().pause(Duration::from_millis(10));
    }
    assert_eq!(taken(), before, "the thread came by three times");
    assert!(engine.checkpoint(CheckpointKind::Automatic).unwrap().taken, "whoever asks for one gets it");
    put(b"2");
    PAUSE_CHECKPOINT_THREAD.turn_off();
    while taken() < before + 2 {
        env.clock().pause(Duration::from_millis(10));
    }
    engine.shut_down().unwrap();
}
