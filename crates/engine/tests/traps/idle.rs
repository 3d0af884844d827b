//! An idle engine takes no checkpoint.

use crate::store::{Store, ts};
use pando_engine::{DurableEngine, EngineOptions, Mode};
use pando_env::Env;
use pando_env::simulated::Simulation;
use pando_storage::{Engine, TableOptions};
use std::path::Path;
use std::time::Duration;

#[test]
fn x20_an_idle_engine_takes_no_checkpoint() {
    for mode in [Mode::StandAlone, Mode::ReplicaSet] {
        let mut store = Store::new(mode, 16 << 20);
        let table = store.local("t");
        store.put(&table, b"a", b"1", 0);
        if mode == Mode::ReplicaSet {
            store.stable_from_start(5);
        }
        assert!(store.checkpoint_now().taken);
        store.settle();
        assert_idle(&store, "after a checkpoint");
        // Reads, and transactions that come to nothing, are no work.
        drop(store.start().get(&table, b"a").unwrap());
        store.start().commit().unwrap();
        let mut writer = store.start();
        writer.put(&table, b"b", b"2").unwrap();
        writer.roll_back();
        assert_idle(&store, "after reads and rollbacks");
        drop(table);
        store.reopen();
        assert_idle(&store, "after a clean end");
        store.crash();
        assert_idle(&store, "after a crash with nothing to recover");
        // Each of these is work, once.
        let table = store.table("t");
        store.put(&table, b"a", b"2", 0);
        assert!(store.checkpoint_now().taken);
        assert_idle(&store, "after a write");
        drop(store.local("u"));
        assert!(store.checkpoint_now().taken);
        assert_idle(&store, "after a creation");
        store.engine().drop_table("u").unwrap();
        assert!(store.checkpoint_now().taken);
        assert_idle(&store, "after a drop");
        if mode == Mode::ReplicaSet {
            store.engine().set_stable(ts(6)).unwrap();
            assert!(store.checkpoint_now().taken);
            assert_idle(&store, "after stable moved");
        }
    }
}

/// Asked again and again, it writes nothing.
fn assert_idle(store: &Store, when: &str) {
    let (taken, written) = (store.figure("checkpoint.taken"), store.base_io().bytes_written);
    let log_written = store.log_io().bytes_written;
    for _ in 0..3 {
        assert!(!store.checkpoint_now().taken, "{when}");
        store.settle();
        store.simulation.clock().advance(Duration::from_secs(60));
    }
    assert_eq!(store.figure("checkpoint.taken"), taken, "{when}");
    assert_eq!(store.base_io().bytes_written, written, "{when}");
    assert_eq!(store.log_io().bytes_written, log_written, "{when}");
}

/// The same with the engine's own threads, on a disk that is simulated so that writes can be counted.
#[test]
fn x20_idle_threads_write_nothing() {
    let simulation = Simulation::new(1);
    let env = Env::real().with_disk(simulation.disk().handle());
    let options = EngineOptions {
        background: true,
        checkpoint_interval: Duration::from_millis(1),
        commit_interval: Duration::from_millis(1),
        ..EngineOptions::stepped(Mode::StandAlone)
    };
    let engine = DurableEngine::open(&env, Path::new("/data"), options).unwrap();
    let engine: &dyn Engine = &*engine;
    let table = engine.create_table("t", &TableOptions::default()).unwrap();
    let mut writer = engine.begin(pando_storage::BeginOptions::default()).unwrap();
    writer.put(&table, b"a", b"1").unwrap();
    writer.commit().unwrap();
    // The threads take a checkpoint of it by themselves; then there is nothing left to do.
    let written = || simulation.disk().statistics(|_| true).bytes_written;
    let taken = || engine.statistics().value("checkpoint.taken");
    let mut before = (0, 0);
    while taken() < 2 || before != (taken(), written()) {
        before = (taken(), written());
        env.clock().pause(Duration::from_millis(450));
    }
    env.clock().pause(Duration::from_millis(900));
    assert_eq!((taken(), written()), before, "an idle engine writes nothing");
    engine.shut_down().unwrap();
}
