//! Power loss: random lives on a disk that loses, tears and reorders what was not synced, each ended by a crash at a random
//! disk operation, also during recovery. After each the store must hold a prefix of its log, at least what was
//! acknowledged, and replicated tables exactly as of a checkpoint.

#[path = "support/mod.rs"]
mod support;
#[path = "support/world/mod.rs"]
mod world;

use pando_engine::Mode;
use pando_env::simulated::Simulation;
use pando_storage::{BeginOptions, CheckpointKind, TimestampControl};
use world::check::{Pending, check, reopen};
use world::each::{Scene, at_every_operation, figure, large_record, some_checkpoints, some_commits};
use world::life::Life;
use world::model::Model;
use world::{Chance, lose_power, small_options};

/// Says which seed failed.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("failing seed: {} (PANDO_SEED={0} plays it alone)", self.0);
        }
    }
}

fn play(seed: u64) {
    let _seed = Seed(seed);
    let mut chance = Chance::new(seed);
    let simulation = Simulation::new(seed);
    let mode = if seed % 8 == 7 { Mode::StandAlone } else { Mode::ReplicaSet };
    let memory_bytes = [96 << 10, 256 << 10, 4 << 20][chance.below(3) as usize];
    let options = small_options(mode, memory_bytes);
    let mut model = Model::new();
    let mut pending = Pending::default();
    for _ in 0..2 + chance.below(4) {
        trace(&simulation);
        let engine = reopen(&simulation, &options, &mut chance);
        check(&engine, &mut model, &pending, &mut chance);
        pending = live(engine, &simulation, &mut chance, &mut model, mode);
    }
    trace(&simulation);
    let engine = reopen(&simulation, &options, &mut chance);
    check(&engine, &mut model, &pending, &mut chance);
}

fn trace(simulation: &Simulation) {
    if std::env::var("PANDO_TRACE").is_ok() {
        let mut text = String::new();
        let _ = pando_engine_log::describe(&simulation.env(), std::path::Path::new("/data/log"), true, &mut text);
        eprintln!("LOG\n{text}ENDLOG");
    }
}

/// One life, until the power goes in the middle of it or at its end.
fn live(
    engine: std::sync::Arc<pando_engine::DurableEngine>,
    simulation: &Simulation,
    chance: &mut Chance,
    model: &mut Model,
    mode: Mode,
) -> Pending {
    let steps = 20 + chance.below(180);
    if !chance.one_in(4) {
        let most = [20, 120, 500][chance.below(3) as usize];
        simulation.disk().crash_after(chance.below(most));
    }
    let mut life = Life::new(engine, simulation, chance, model, mode);
    let mut ended = life.play(steps);
    let how = life.chance.below(6);
    if ended.is_ok() && how == 0 {
        ended = life.shut_down();
    }
    let pending = Pending::of(&life);
    drop(life);
    match how {
        1 if ended.is_ok() => drop(simulation.kill()),
        _ => lose_power(simulation, chance),
    }
    pending
}

#[test]
fn x17_x20_r20_every_acknowledged_commit_survives_power_loss() {
    if let Some(seed) = std::env::var("PANDO_SEED").ok().and_then(|text| text.parse().ok()) {
        return play(seed);
    }
    (0..support::seeds(500)).for_each(play);
}

/// The number of the newest manifest.
fn manifest(life: &Life<'_>) -> String {
    let names =
        life.simulation.disk().files().into_iter().filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()));
    names.filter(|name| name.starts_with("MANIFEST")).max().expect("a manifest")
}

#[test]
fn x17_x20_a_power_loss_at_every_operation_of_a_checkpoint() {
    at_every_operation(&Scene {
        name: "a checkpoint",
        prepare: |life| some_checkpoints(life, 1).and_then(|()| some_commits(life)),
        act: |life| life.checkpoint(CheckpointKind::Automatic),
        happened: |life| life.engine.timestamps().checkpoint.is_some(),
    });
    at_every_operation(&Scene {
        name: "a full checkpoint",
        prepare: |life| some_checkpoints(life, 1).and_then(|()| some_commits(life)),
        act: |life| life.checkpoint(CheckpointKind::Full),
        happened: |life| life.engine.timestamps().checkpoint.is_none(),
    });
}

#[test]
fn x17_x20_a_power_loss_at_every_operation_of_a_merge() {
    at_every_operation(&Scene {
        name: "a merge",
        prepare: |life| some_checkpoints(life, 8),
        act: |life| (0..6).try_for_each(|_| life.maintain()),
        happened: |life| figure(life, "base.merges") > 0,
    });
}

#[test]
fn x17_x20_a_power_loss_at_every_operation_of_a_manifest_rotation() {
    at_every_operation(&Scene {
        name: "a manifest rotation",
        prepare: |life| {
            large_record(life)?;
            some_checkpoints(life, 3)
        },
        act: |life| {
            let before = manifest(life);
            while manifest(life) == before {
                some_commits(life)?;
                let mut open = life.begin_with(BeginOptions::default())?.expect("a transaction");
                life.write(&mut open, "large", b"u", Some(vec![1; life.markers as usize]))?;
                life.commit(open)?;
                life.checkpoint(CheckpointKind::Automatic)?;
            }
            Ok(())
        },
        happened: |life| manifest(life) != "MANIFEST-000001",
    });
}

#[test]
fn x17_x21_a_power_loss_at_every_operation_of_a_log_roll() {
    at_every_operation(&Scene {
        name: "a log roll",
        prepare: some_commits,
        act: |life| {
            let before = figure(life, "log.segments");
            while figure(life, "log.segments") < before + 2 {
                some_commits(life)?;
                life.flush()?;
            }
            life.checkpoint(CheckpointKind::Automatic)?;
            life.truncate_old()
        },
        happened: |life| figure(life, "log.segments") > 1 || figure(life, "log.dropped_segments") > 0,
    });
}

#[test]
fn x17_x18_a_power_loss_at_every_operation_of_a_drop_and_of_a_rollback() {
    at_every_operation(&Scene {
        name: "a drop",
        prepare: |life| some_checkpoints(life, 2).and_then(|()| some_commits(life)),
        act: |life| {
            life.drop_table("replicated-a")?;
            life.drop_table("logged-a")?;
            life.flush()?;
            life.maintain()?;
            life.create("replicated-a", true)?;
            life.checkpoint(CheckpointKind::Automatic)?;
            life.maintain()
        },
        happened: |life| life.tables.len() == 3,
    });
    at_every_operation(&Scene {
        name: "a rollback to stable",
        prepare: |life| {
            some_checkpoints(life, 1)?;
            life.checkpoint(CheckpointKind::Full)?;
            some_commits(life)
        },
        act: |life| (0..3).try_for_each(|_| life.rewind()).and_then(|()| life.flush()),
        happened: |life| figure(life, "rollback_to_stable.done") > 0,
    });
}

#[test]
fn x17_x20_a_power_loss_at_every_operation_of_a_shutdown() {
    at_every_operation(&Scene {
        name: "a shutdown",
        prepare: |life| some_checkpoints(life, 1).and_then(|()| some_commits(life)),
        act: |life| life.shut_down(),
        happened: |_| true,
    });
}
