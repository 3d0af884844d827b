//! A power loss at every single disk operation of one action.

use super::check::{Pending, check};
use super::life::{Life, Step};
use super::model::Model;
use super::{Chance, open, small_options};
use pando_base::Timestamp;
use pando_engine::{EngineOptions, Mode};
use pando_env::simulated::{Loss, Simulation};
use pando_storage::{CheckpointKind, Maintenance, TableOptions, TimestampControl};

/// What leads up to the action, and the action.
pub struct Scene {
    pub name: &'static str,
    pub prepare: fn(&mut Life<'_>) -> Step,
    pub act: fn(&mut Life<'_>) -> Step,
    /// Whether what was to happen did, after a run that nothing disturbed.
    pub happened: fn(&Life<'_>) -> bool,
}

fn options() -> EngineOptions {
    small_options(Mode::ReplicaSet, 8 << 20)
}

/// Plays the scene: undisturbed to count its disk operations, then once for each of them and each kind of loss.
pub fn at_every_operation(scene: &Scene) {
    let operations = undisturbed(scene);
    assert!(operations > 0, "{} does nothing", scene.name);
    for left in 0..operations {
        for loss in [Loss::Random, Loss::Random, Loss::Everything, Loss::Nothing] {
            for seed in 0..2 {
                disturbed(scene, seed, left, loss);
            }
        }
    }
}

fn undisturbed(scene: &Scene) -> u64 {
    let simulation = Simulation::new(1);
    let mut model = Model::new();
    let mut chance = Chance::new(7);
    let engine = open(&simulation, &options()).expect("a new store");
    let mut life = Life::new(engine, &simulation, &mut chance, &mut model, Mode::ReplicaSet);
    (scene.prepare)(&mut life).expect("nothing disturbs it");
    let before = simulation.disk().operation_count();
    (scene.act)(&mut life).expect("nothing disturbs it");
    assert!((scene.happened)(&life), "{} did not happen", scene.name);
    simulation.disk().operation_count() - before
}

fn disturbed(scene: &Scene, seed: u64, left: u64, loss: Loss) {
    let context = Context { scene: scene.name, seed, left, loss };
    let simulation = Simulation::new(1 + seed);
    let mut model = Model::new();
    let mut chance = Chance::new(7);
    let engine = open(&simulation, &options()).expect("a new store");
    let mut life = Life::new(engine, &simulation, &mut chance, &mut model, Mode::ReplicaSet);
    (scene.prepare)(&mut life).expect("nothing disturbs it");
    simulation.disk().crash_after(left);
    let _ = (scene.act)(&mut life);
    let pending = Pending::of(&life);
    drop(life);
    simulation.crash_with(loss);
    let engine = open(&simulation, &options()).expect("the store opens");
    check(&engine, &mut model, &pending, &mut chance);
    drop(context);
}

/// Says where it failed.
struct Context {
    scene: &'static str,
    seed: u64,
    left: u64,
    loss: Loss,
}

impl Drop for Context {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}: power loss after {} operations, {:?}, seed {}", self.scene, self.left, self.loss, self.seed);
        }
    }
}

// What scenes are made of.

/// Commits a few transactions and moves stable behind them, with one left open.
pub fn some_commits(life: &mut Life<'_>) -> Step {
    life.create_first_tables()?;
    for _ in 0..12 {
        life.begin()?;
        life.commit_one()?;
    }
    life.begin()?;
    let all_durable = life.engine.timestamps().all_durable;
    if all_durable > life.engine.timestamps().stable {
        let stable = Timestamp(all_durable.0 - 1).max(life.engine.timestamps().stable);
        life.engine.set_stable(stable).expect("stable below all_durable");
        life.model.stable_max = stable;
        life.engine.set_initial_data(stable);
    }
    Ok(())
}

/// Commits and checkpoints, so often.
pub fn some_checkpoints(life: &mut Life<'_>, count: usize) -> Step {
    for _ in 0..count {
        some_commits(life)?;
        life.checkpoint(CheckpointKind::Automatic)?;
    }
    Ok(())
}

/// A table whose record in the manifest is large, so that a few checkpoints rotate it.
pub fn large_record(life: &mut Life<'_>) -> Step {
    let note = "n".repeat(300 << 10);
    life.create_with("large", &TableOptions { note, ..TableOptions::default() })
}

/// The value of a figure of the engine.
pub fn figure(life: &Life<'_>, name: &str) -> i64 {
    life.engine.statistics().value(name)
}
