//! What the engine tells of: what it found, what fails again and again and is refused in the end, damage with its place.

#[path = "support/mod.rs"]
mod support;
#[path = "support/world/mod.rs"]
mod world;

use pando_engine::{DurableEngine, EngineOptions, Mode};
use pando_env::simulated::{Fault, FaultKind, Simulation};
use pando_storage::{
    BeginOptions, CheckpointKind, Durability, Engine, EngineEvent, EngineListener, Listener, Maintenance, Result,
    StorageError, TableOptions, TableRegistry, TransactionSource, Work,
};
use std::sync::{Arc, Mutex};
use world::open;

/// Keeps what it is told.
#[derive(Default)]
struct Kept(Mutex<Vec<EngineEvent>>);

impl EngineListener for Kept {
    fn engine_event(&self, event: &EngineEvent) {
        self.0.lock().expect("no panic").push(event.clone());
    }
}

impl Kept {
    fn take(&self) -> Vec<EngineEvent> {
        std::mem::take(&mut *self.0.lock().expect("no panic"))
    }
}

fn options(kept: &Arc<Kept>) -> EngineOptions {
    let listener = Listener::new(Arc::clone(kept) as Arc<dyn EngineListener>);
    EngineOptions { listener, log_segment_bytes: 64 << 10, ..EngineOptions::stepped(Mode::StandAlone) }
}

fn start(seed: u64) -> (Simulation, Arc<Kept>, Arc<DurableEngine>) {
    let (simulation, kept) = (Simulation::new(seed), Arc::new(Kept::default()));
    let engine = open(&simulation, &options(&kept)).expect("a new store");
    engine.create_table("t", &TableOptions::default()).expect("a table");
    (simulation, kept, engine)
}

fn put(engine: &DurableEngine, key: u32) -> Result<()> {
    let table = engine.open_table("t")?;
    let mut transaction = engine.begin(BeginOptions::default())?;
    transaction.put(&table, &key.to_be_bytes(), &[7; 100])?;
    let committed = transaction.commit()?;
    engine.wait_durable(committed.position).block()
}

fn remove(engine: &DurableEngine, key: u32) -> Result<()> {
    let table = engine.open_table("t")?;
    let mut transaction = engine.begin(BeginOptions::default())?;
    transaction.delete(&table, &key.to_be_bytes())?;
    transaction.commit().map(drop)
}

fn opening(events: &[EngineEvent]) -> &pando_storage::Opening {
    let found = events.iter().find_map(|event| match event {
        EngineEvent::Opened(opening) => Some(opening),
        _ => None,
    });
    found.expect("an opening is told")
}

#[test]
fn what_was_found_at_the_start_is_told() {
    let (simulation, kept, engine) = start(1);
    let told = kept.take();
    assert!(opening(&told).is_new && opening(&told).records == 0, "{told:?}");
    engine.checkpoint(CheckpointKind::Full).expect("a checkpoint");
    for key in 0..10 {
        put(&engine, key).expect("there is room");
    }
    drop(engine);
    simulation.crash();
    kept.take();
    let engine = open(&simulation, &options(&kept)).expect("it recovers");
    let told = kept.take();
    let found = opening(&told);
    assert!(!found.is_new && !found.was_clean && found.records >= 10 && found.tables == 1, "{found:?}");
    assert!(found.log_from > (0, 0), "{found:?}");
    engine.shut_down().expect("it ends");
    assert!(kept.take().iter().any(|event| matches!(event, EngineEvent::ShutDown { .. })));
    drop(engine);
    let engine = open(&simulation, &options(&kept)).expect("it opens");
    assert!(opening(&kept.take()).was_clean);
    assert!(kept.take().is_empty());
    drop(engine);
}

#[test]
fn checkpoints_that_fail_are_told_counted_and_refuse_what_adds_data() {
    for kind in [FaultKind::SpaceRunsOut, FaultKind::WriteFails] {
        let (simulation, kept, engine) = start(2);
        for key in 0..10 {
            put(&engine, key).expect("there is room");
        }
        kept.take();
        // The base alone is hit: what is committed goes on into the log.
        simulation.disk().inject(Fault::new(kind).on_path(|path| path.starts_with("/data/base")));
        for failures in 1..=5_u64 {
            engine.checkpoint(CheckpointKind::Automatic).expect_err("nothing can be written");
            let told = kept.take();
            assert!(
                told.iter().any(|event| matches!(event, EngineEvent::WorkFailed { work: Work::Checkpoint, failures: n, .. } if *n == failures)),
                "{told:?}"
            );
            let refuses = told.iter().any(|event| matches!(event, EngineEvent::WritesRefused { failures: 5, .. }));
            assert_eq!(refuses, failures == 5);
            assert_eq!(put(&engine, 100 + failures as u32).is_err(), refuses, "after {failures}");
        }
        let statistics = engine.statistics();
        assert!(statistics.value("checkpoint.failed") >= 5 && statistics.value("checkpoint.failed_in_a_row") >= 5);
        assert_eq!(statistics.value("checkpoint.refuses_writes"), 1);
        let refused = put(&engine, 1).expect_err("it is refused");
        assert!(refused.to_string().contains("writes are refused until a checkpoint can be taken"), "{refused}");
        let is_full = matches!(refused, StorageError::OutOfDiskSpace(_));
        assert_eq!(is_full, kind == FaultKind::SpaceRunsOut, "{refused}");
        remove(&engine, 1).expect("what may make room goes on");
        simulation.disk().clear_faults();
        put(&engine, 1).expect("it is admitted as soon as a checkpoint was taken");
        let told = kept.take();
        assert!(told.contains(&EngineEvent::WritesAdmitted), "{told:?}");
        assert!(told.iter().any(|event| matches!(event, EngineEvent::WorkRecovered { work: Work::Checkpoint, .. })));
        let statistics = engine.statistics();
        assert_eq!(
            (statistics.value("checkpoint.failed_in_a_row"), statistics.value("checkpoint.refuses_writes")),
            (0, 0)
        );
        // Nothing that was acknowledged is lost over all that.
        let table = engine.open_table("t").expect("a table");
        let reader = engine.begin(BeginOptions::default()).expect("a transaction");
        for key in [0_u32, 1, 2, 9, 101, 104] {
            assert!(reader.get(&table, &key.to_be_bytes()).expect("it is read").is_some(), "{key}");
        }
    }
}

#[test]
fn damage_is_told_once_with_its_place() {
    let (simulation, kept, engine) = start(3);
    for key in 0..100 {
        put(&engine, key).expect("there is room");
    }
    engine.shut_down().expect("it ends");
    drop(engine);
    let runs: Vec<_> =
        simulation.disk().files().into_iter().filter(|path| path.extension().is_some_and(|end| end == "run")).collect();
    assert!(!runs.is_empty(), "{:?}", simulation.disk().files());
    for path in &runs {
        let length = simulation.disk().contents(path).expect("it is there").len() as u64;
        (0..length).for_each(|offset| simulation.disk().flip_byte(path, offset).expect("it is there"));
    }
    let engine = open(&simulation, &options(&kept)).expect("nothing of it is read yet");
    kept.take();
    let table = engine.open_table("t").expect("a table");
    let reader = engine.begin(BeginOptions::default()).expect("a transaction");
    let mut places = Vec::new();
    for _ in 0..3 {
        match reader.get(&table, &7_u32.to_be_bytes()) {
            Err(StorageError::Corruption { file, offset, .. }) => places.push((file, offset)),
            other => panic!("{other:?}"),
        }
    }
    let told = kept.take();
    let damage: Vec<_> = told
        .iter()
        .filter_map(|event| match event {
            EngineEvent::Corruption { file, offset, .. } => Some((file.clone(), *offset)),
            _ => None,
        })
        .collect();
    assert_eq!(damage, places[..1], "{told:?}");
    assert_eq!(engine.statistics().value("damage.places"), 1);
}
