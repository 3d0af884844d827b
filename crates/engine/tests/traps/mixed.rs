//! Versions with and without timestamps on one key, and checkpoints between them.

use crate::store::{Store, ts};
use pando_engine::Mode;
use pando_storage::{CheckpointKind, Table, Transaction};

fn value(transaction: &dyn Transaction, table: &Table) -> Option<String> {
    transaction.get(table, b"k").unwrap().map(|value| String::from_utf8(value.to_vec()).unwrap())
}

/// A checkpoint takes the untimestamped version on top and not the one below, which is above stable. A later one must not
/// take the lower one for written.
#[test]
fn x4_x7_an_untimestamped_version_over_one_above_stable() {
    let mut store = Store::new(Mode::ReplicaSet, 8 << 20);
    let table = store.replicated("t");
    store.stable_from_start(5);
    store.engine().set_oldest(ts(5), false).unwrap();
    store.put(&table, b"k", b"settled", 0);
    store.checkpoint_now();
    store.put(&table, b"k", b"above stable", 10);
    let held = store.start();
    store.put(&table, b"k", b"untimestamped", 0);
    assert!(store.checkpoint_now().taken);
    store.evict();
    assert_eq!(value(&*held, &table).as_deref(), Some("above stable"), "after one checkpoint");
    store.engine().set_stable(ts(10)).unwrap();
    assert!(store.checkpoint_now().taken);
    store.settle();
    store.evict();
    assert_eq!(value(&*held, &table).as_deref(), Some("above stable"), "after two checkpoints");
    assert_eq!(value(&*store.start(), &table).as_deref(), Some("untimestamped"));
    assert_eq!(value(&*store.start_at(10), &table).as_deref(), Some("untimestamped"));
    drop((held, table));
    store.crash();
    assert_eq!(value(&*store.start(), &store.table("t")).as_deref(), Some("untimestamped"));
}

/// The same with a rollback and a crash in place of the second checkpoint.
#[test]
fn x4_x20_an_untimestamped_version_over_one_that_is_rolled_back() {
    for crash in [false, true] {
        let mut store = Store::new(Mode::ReplicaSet, 8 << 20);
        let table = store.replicated("t");
        store.stable_from_start(5);
        store.put(&table, b"k", b"settled", 0);
        store.checkpoint_now();
        store.put(&table, b"k", b"above stable", 10);
        let held = store.start();
        store.put(&table, b"k", b"untimestamped", 0);
        store.put(&table, b"k", b"above again", 12);
        assert!(store.checkpoint_now().taken);
        assert_eq!(value(&*held, &table).as_deref(), Some("above stable"));
        drop(held);
        store.evict();
        match crash {
            true => store.crash(),
            false => store.engine().roll_back_to_stable().unwrap(),
        }
        let table = store.table("t");
        assert_eq!(value(&*store.start(), &table).as_deref(), Some("untimestamped"), "crash: {crash}");
        store.settle();
        assert_eq!(value(&*store.start(), &table).as_deref(), Some("untimestamped"), "crash: {crash}");
    }
}

/// Memory runs short after a full checkpoint, when history has been said to begin later than stable: what the full
/// checkpoint had, a crash must leave.
#[test]
fn x20_a_spill_before_stable_reaches_initial_data_keeps_the_full_checkpoint() {
    let mut store = Store::new(Mode::ReplicaSet, 1 << 20);
    let table = store.replicated("t");
    store.put(&table, b"k", b"synced", 40);
    store.put(&table, b"l", b"also synced", 0);
    assert!(store.engine().checkpoint(CheckpointKind::Full).unwrap().taken);
    store.engine().set_initial_data(ts(100));
    for number in 0..400u64 {
        store.put(&table, format!("more-{number}").as_bytes(), &[1; 10_000], 101 + number);
    }
    assert!(store.figure("checkpoint.spills") > 0, "memory ran short");
    assert_eq!(value(&*store.start(), &table).as_deref(), Some("synced"));
    drop(table);
    store.crash();
    let table = store.table("t");
    assert_eq!(value(&*store.start(), &table).as_deref(), Some("synced"), "what the full checkpoint had");
    assert!(store.start().get(&table, b"l").unwrap().is_some());
}
