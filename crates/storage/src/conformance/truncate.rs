//! Range truncation.

use super::factory::EngineFactoryMaker;
use super::support::*;
use crate::*;

/// A table with a to e at 10.
fn five(maker: &dyn EngineFactoryMaker) -> (Store, Table) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    for key in ["a", "b", "c", "d", "e"] {
        store.put(&table, key, "1", 10);
    }
    (store, table)
}

fn truncated(store: &Store, table: &Table, start: &str, end: Option<&str>, timestamp: u64) {
    let mut transaction = store.start();
    if timestamp != 0 {
        transaction.set_commit_timestamp(ts(timestamp)).unwrap();
    }
    truncate(&mut transaction, table, start, end).unwrap();
    transaction.commit().unwrap();
}

pub(super) fn x25_a_range_goes_at_its_timestamp(maker: &dyn EngineFactoryMaker) {
    let (store, table) = five(maker);
    truncated(&store, &table, "b", Some("d"), 20);
    assert_eq!(store.dump(&table), "a=1 d=1 e=1");
    assert_eq!(store.dump_at(&table, 19), "a=1 b=1 c=1 d=1 e=1");
    assert_eq!(store.dump_at(&table, 20), "a=1 d=1 e=1");
    store.put(&table, "c", "2", 30);
    assert_eq!(store.dump(&table), "a=1 c=2 d=1 e=1");
    assert_eq!(store.dump_at(&table, 29), "a=1 d=1 e=1");
}

pub(super) fn x25_an_open_end_reaches_the_last_key(maker: &dyn EngineFactoryMaker) {
    let (store, table) = five(maker);
    truncated(&store, &table, "d", None, 20);
    assert_eq!(store.dump(&table), "a=1 b=1 c=1");
    truncated(&store, &table, "", None, 0);
    assert_eq!(store.dump(&table), "");
    // Untimestamped: at every timestamp.
    assert_eq!(store.dump_at(&table, 15), "");
}

pub(super) fn x25_an_empty_range_changes_nothing(maker: &dyn EngineFactoryMaker) {
    let (store, table) = five(maker);
    let mut other = store.start();
    put(&mut other, &table, "b", "running").unwrap();
    truncated(&store, &table, "b", Some("b"), 20);
    truncated(&store, &table, "d", Some("b"), 20);
    other.roll_back();
    assert_eq!(store.dump(&table), "a=1 b=1 c=1 d=1 e=1");
}

pub(super) fn x25_a_snapshot_hides_a_later_truncation(maker: &dyn EngineFactoryMaker) {
    let (store, table) = five(maker);
    let reader = store.start();
    let mut cursor = reader.cursor(&table).unwrap();
    assert_eq!(shown(cursor.next().unwrap()), "a=1");
    truncated(&store, &table, "", None, 0);
    assert_eq!(shown(cursor.next().unwrap()), "b=1");
    assert_eq!(dump(&*reader, &table), "a=1 b=1 c=1 d=1 e=1");
}

pub(super) fn x25_own_writes_and_truncations_take_effect_in_order(maker: &dyn EngineFactoryMaker) {
    let (store, table) = five(maker);
    let mut transaction = store.start();
    put(&mut transaction, &table, "bb", "before").unwrap();
    truncate(&mut transaction, &table, "b", Some("d")).unwrap();
    put(&mut transaction, &table, "c", "after").unwrap();
    assert_eq!(dump(&*transaction, &table), "a=1 c=after d=1 e=1");
    truncate(&mut transaction, &table, "c", Some("e")).unwrap();
    put(&mut transaction, &table, "d", "again").unwrap();
    assert_eq!(dump(&*transaction, &table), "a=1 d=again e=1");
    assert_eq!(store.dump(&table), "a=1 b=1 c=1 d=1 e=1");
    transaction.commit().unwrap();
    assert_eq!(store.dump(&table), "a=1 d=again e=1");
}

pub(super) fn x25_a_rolled_back_truncation_leaves_everything(maker: &dyn EngineFactoryMaker) {
    let (store, table) = five(maker);
    let mut transaction = store.start();
    truncate(&mut transaction, &table, "", None).unwrap();
    assert_eq!(dump(&*transaction, &table), "");
    transaction.roll_back();
    assert_eq!(store.dump(&table), "a=1 b=1 c=1 d=1 e=1");
    store.put(&table, "a", "2", 20);
}

pub(super) fn x5_a_truncation_conflicts_with_writes_in_its_range(maker: &dyn EngineFactoryMaker) {
    let (store, table) = five(maker);
    let mut old = store.start();
    let mut running = store.start();
    put(&mut running, &table, "b", "2").unwrap();
    let mut truncation = store.start();
    truncate(&mut truncation, &table, "c", None).unwrap();
    drop(truncation);
    let mut truncation = store.start();
    fails!(truncate(&mut truncation, &table, "a", Some("c")), WriteConflict);
    fails!(truncation.commit(), WriteConflict);
    running.commit().unwrap();
    // Committed, but after the snapshot began.
    fails!(truncate(&mut old, &table, "a", Some("c")), WriteConflict);
    let mut at_an_earlier_time = store.start_at(9);
    fails!(truncate(&mut at_an_earlier_time, &table, "e", None), WriteConflict);
    // A key that nobody has seen yet.
    let mut inserting = store.start();
    put(&mut inserting, &table, "new", "1").unwrap();
    let mut truncation = store.start();
    fails!(truncate(&mut truncation, &table, "f", None), WriteConflict);
}

pub(super) fn x5_writes_conflict_with_a_truncation_of_their_range(maker: &dyn EngineFactoryMaker) {
    let (store, table) = five(maker);
    let mut old = store.start();
    let mut old_too = store.start();
    let mut truncation = store.start();
    truncate(&mut truncation, &table, "b", Some("d")).unwrap();
    let mut writer = store.start();
    put(&mut writer, &table, "a", "2").unwrap();
    put(&mut writer, &table, "d", "2").unwrap();
    fails!(put(&mut writer, &table, "bx", "2"), WriteConflict);
    drop(writer);
    truncation.commit().unwrap();
    fails!(put(&mut old, &table, "b", "2"), WriteConflict);
    fails!(delete(&mut old_too, &table, "cc"), WriteConflict);
    store.put(&table, "b", "2", 0);
    assert_eq!(store.dump(&table), "a=1 b=2 d=1 e=1");
}

pub(super) fn x5_overlapping_truncations_conflict(maker: &dyn EngineFactoryMaker) {
    let (store, table) = five(maker);
    let mut first = store.start();
    truncate(&mut first, &table, "b", Some("d")).unwrap();
    let mut beside = store.start();
    truncate(&mut beside, &table, "d", None).unwrap();
    truncate(&mut beside, &table, "", Some("b")).unwrap();
    let mut overlapping = store.start();
    fails!(truncate(&mut overlapping, &table, "c", None), WriteConflict);
    let mut old = store.start();
    first.commit().unwrap();
    fails!(truncate(&mut old, &table, "", Some("bb")), WriteConflict);
    beside.commit().unwrap();
    assert_eq!(store.dump(&table), "");
}

pub(super) fn r20_writes_over_a_truncation_keep_the_order_of_timestamps(maker: &dyn EngineFactoryMaker) {
    let (store, table) = five(maker);
    // A truncation itself may be before what it removes: its keys are not looked at one by one.
    truncated(&store, &table, "b", Some("c"), 5);
    assert_eq!(store.dump(&table), "a=1 c=1 d=1 e=1");
    truncated(&store, &table, "x", None, 30);
    let mut transaction = store.start();
    transaction.set_commit_timestamp(ts(20)).unwrap();
    fails!(transaction.put(&table, b"y", b"1"), TimestampRule);
    drop(transaction);
    store.put(&table, "y", "1", 30);
    assert_eq!(store.dump_at(&table, 20), "a=1 c=1 d=1 e=1");
    assert_eq!(store.dump(&table), "a=1 c=1 d=1 e=1 y=1");
    // A transaction that deletes a key and later a range over it leaves the later of its timestamps.
    let mut transaction = store.start();
    transaction.set_commit_timestamp(ts(40)).unwrap();
    transaction.delete(&table, b"c").unwrap();
    transaction.set_commit_timestamp(ts(50)).unwrap();
    transaction.truncate(&table, b"c", Some(b"d")).unwrap();
    transaction.commit().unwrap();
    let mut transaction = store.start();
    transaction.set_commit_timestamp(ts(45)).unwrap();
    fails!(transaction.put(&table, b"c", b"2"), TimestampRule);
}

pub(super) fn x25_truncations_reach_the_disk(maker: &dyn EngineFactoryMaker) {
    let (mut store, table) = five(maker);
    store.stable_from_start(10);
    store.checkpoint_now();
    store.settle();
    truncated(&store, &table, "b", Some("d"), 20);
    store.put(&table, "c", "2", 30);
    truncated(&store, &table, "d", None, 40);
    store.set_stable(ts(30)).unwrap();
    let check = |store: &Store, table: &Table| {
        assert_eq!(store.dump_at(table, 10), "a=1 b=1 c=1 d=1 e=1");
        assert_eq!(store.dump_at(table, 20), "a=1 d=1 e=1");
        assert_eq!(store.dump_at(table, 30), "a=1 c=2 d=1 e=1");
    };
    check(&store, &table);
    store.checkpoint_now();
    store.settle();
    check(&store, &table);
    assert_eq!(store.dump(&table), "a=1 c=2");
    drop(table);
    store.crash();
    let table = store.open_table("t").unwrap();
    check(&store, &table);
    assert_eq!(store.dump(&table), "a=1 c=2 d=1 e=1");
}

pub(super) fn x25_truncations_are_redone(maker: &dyn EngineFactoryMaker) {
    let mut store = Store::stand_alone(maker);
    let table = store.local("t");
    for key in ["a", "b", "c", "d"] {
        store.put(&table, key, "1", 0);
    }
    store.checkpoint_now();
    truncated(&store, &table, "b", Some("d"), 0);
    store.put(&table, "c", "2", 0);
    store.flush_log().unwrap();
    drop(table);
    store.crash();
    assert_eq!(store.dump_ident("t"), "a=1 c=2 d=1");
}
