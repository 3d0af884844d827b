//! When a write is refused because of another transaction's, and what is left to do then.

use super::factory::EngineFactoryMaker;
use super::support::*;
use crate::*;

pub(super) fn x5_a_running_write_conflicts(maker: &dyn EngineFactoryMaker) {
    for store in Store::both(maker) {
        let table = store.local("t");
        store.put(&table, "a", "0", 0);
        let (mut first, mut second) = (store.start(), store.start());
        put(&mut first, &table, "a", "1").unwrap();
        fails!(put(&mut second, &table, "a", "2"), WriteConflict);
        let mut third = store.start();
        fails!(delete(&mut third, &table, "a"), WriteConflict);
        first.commit().unwrap();
        assert_eq!(store.dump(&table), "a=1");
    }
}

pub(super) fn x5_a_commit_after_the_snapshot_conflicts(maker: &dyn EngineFactoryMaker) {
    for store in Store::both(maker) {
        let table = store.local("t");
        store.put(&table, "a", "0", 0);
        store.put(&table, "b", "0", 0);
        let (mut first, mut second) = (store.start(), store.start());
        store.put(&table, "a", "1", 0);
        store.delete(&table, "b", 0);
        fails!(put(&mut first, &table, "a", "2"), WriteConflict);
        fails!(put(&mut second, &table, "b", "2"), WriteConflict);
        // Also if what has committed is on disk by now.
        let mut third = store.start();
        store.put(&table, "a", "3", 0);
        store.checkpoint(CheckpointKind::Full).unwrap();
        store.settle();
        fails!(delete(&mut third, &table, "a"), WriteConflict);
        assert_eq!(store.dump(&table), "a=3");
    }
}

pub(super) fn x5_a_version_after_the_read_timestamp_conflicts(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    store.put(&table, "a", "1", 10);
    store.put(&table, "b", "1", 10);
    store.put(&table, "a", "2", 20);
    let mut writer = store.start_at(15);
    put(&mut writer, &table, "b", "fine").unwrap();
    fails!(put(&mut writer, &table, "a", "x"), WriteConflict);
    drop(writer);
    let mut writer = store.start_at(20);
    put(&mut writer, &table, "a", "x").unwrap();
    // An untimestamped version is visible at every timestamp.
    store.put(&table, "c", "untimestamped", 0);
    let mut writer = store.start_at(5);
    put(&mut writer, &table, "c", "fine").unwrap();
}

pub(super) fn x5_after_a_conflict_only_rollback_is_left(maker: &dyn EngineFactoryMaker) {
    for store in Store::both(maker) {
        let table = store.local("t");
        let (mut first, mut second) = (store.start(), store.start());
        put(&mut second, &table, "own", "1").unwrap();
        put(&mut first, &table, "a", "1").unwrap();
        fails!(put(&mut second, &table, "a", "2"), WriteConflict);
        fails!(put(&mut second, &table, "other", "2"), WriteConflict);
        fails!(delete(&mut second, &table, "other"), WriteConflict);
        fails!(truncate(&mut second, &table, "x", None), WriteConflict);
        assert_eq!(dump(&*second, &table), "own=1");
        fails!(second.commit(), WriteConflict);
        first.commit().unwrap();
        assert_eq!(store.dump(&table), "a=1");
        // It was rolled back: its own key is free.
        store.put(&table, "own", "2", 0);
    }
}

pub(super) fn x5_a_rolled_back_write_does_not_conflict(maker: &dyn EngineFactoryMaker) {
    for store in Store::both(maker) {
        let table = store.local("t");
        store.put(&table, "a", "0", 0);
        let mut later = store.start();
        let mut first = store.start();
        put(&mut first, &table, "a", "1").unwrap();
        first.roll_back();
        put(&mut later, &table, "a", "2").unwrap();
        later.commit().unwrap();
        assert_eq!(store.dump(&table), "a=2");
    }
}

pub(super) fn x5_deleting_an_absent_key_conflicts_like_any_write(maker: &dyn EngineFactoryMaker) {
    for store in Store::both(maker) {
        let table = store.local("t");
        let (mut first, mut second, mut third) = (store.start(), store.start(), store.start());
        delete(&mut first, &table, "absent").unwrap();
        fails!(put(&mut second, &table, "absent", "2"), WriteConflict);
        first.commit().unwrap();
        fails!(delete(&mut third, &table, "absent"), WriteConflict);
        assert_eq!(store.dump(&table), "");
    }
}

pub(super) fn x5_reads_do_not_conflict(maker: &dyn EngineFactoryMaker) {
    for store in Store::both(maker) {
        let table = store.local("t");
        store.put(&table, "a", "0", 0);
        let mut writer = store.start();
        put(&mut writer, &table, "a", "1").unwrap();
        assert_eq!(store.dump(&table), "a=0");
        let mut other = store.start();
        assert_eq!(got(&*other, &table, "a"), "0");
        put(&mut other, &table, "b", "1").unwrap();
        writer.commit().unwrap();
        // Snapshot isolation: what was read may change under a writer.
        other.commit().unwrap();
        assert_eq!(store.dump(&table), "a=1 b=1");
    }
}

pub(super) fn x5_a_transaction_does_not_conflict_with_itself(maker: &dyn EngineFactoryMaker) {
    for store in Store::both(maker) {
        let table = store.local("t");
        let mut transaction = store.start();
        for round in 0..10 {
            put(&mut transaction, &table, "a", &round.to_string()).unwrap();
            delete(&mut transaction, &table, "b").unwrap();
            truncate(&mut transaction, &table, "c", Some("d")).unwrap();
            put(&mut transaction, &table, "c", "x").unwrap();
        }
        transaction.commit().unwrap();
        assert_eq!(store.dump(&table), "a=9 c=x");
    }
}
