//! Records and bytes that commit with their transaction.

use super::factory::EngineFactoryMaker;
use super::support::*;
use crate::*;

pub(super) fn x20_sizes_commit_with_their_transaction(maker: &dyn EngineFactoryMaker) {
    for store in Store::both(maker) {
        let table = store.local("t");
        assert_eq!(store.size(&table), (0, 0));
        let mut transaction = store.start();
        transaction.adjust_size(&table, TableSize::new(2, 30)).unwrap();
        transaction.adjust_size(&table, TableSize::new(-1, 5)).unwrap();
        assert_eq!(store.size(&table), (0, 0));
        transaction.commit().unwrap();
        assert_eq!(store.size(&table), (1, 35));
        // Concurrent changes add up without conflict.
        let (mut first, mut second) = (store.start(), store.start());
        first.adjust_size(&table, TableSize::new(1, 1)).unwrap();
        second.adjust_size(&table, TableSize::new(1, 2)).unwrap();
        first.commit().unwrap();
        second.commit().unwrap();
        assert_eq!(store.size(&table), (3, 38));
    }
}

pub(super) fn x20_the_stable_size_counts_what_a_checkpoint_keeps(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    store.grow(&table, (1, 10), 10);
    store.grow(&table, (1, 10), 20);
    store.grow(&table, (1, 5), 0);
    store.stable_from_start(10);
    assert_eq!((store.size(&table), store.stable_size(&table)), ((3, 25), (2, 15)));
    store.set_stable(ts(20)).unwrap();
    assert_eq!(store.stable_size(&table), (3, 25));
}

pub(super) fn x20_size_changes_follow_the_vectored_timestamps(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    let mut transaction = store.start();
    transaction.adjust_size(&table, TableSize::new(1, 1)).unwrap();
    for timestamp in [10, 20, 30] {
        transaction.set_commit_timestamp(ts(timestamp)).unwrap();
        transaction.adjust_size(&table, TableSize::new(1, 100)).unwrap();
    }
    transaction.commit().unwrap();
    store.stable_from_start(20);
    assert_eq!((store.size(&table), store.stable_size(&table)), ((4, 301), (3, 201)));
}

pub(super) fn x20_setting_a_size_is_an_untimestamped_change(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    store.grow(&table, (5, 50), 10);
    store.stable_from_start(10);
    store.set_table_size(&table, TableSize::new(7, 70)).unwrap();
    assert_eq!((store.size(&table), store.stable_size(&table)), ((7, 70), (7, 70)));
    store.grow(&table, (1, 1), 20);
    assert_eq!((store.size(&table), store.stable_size(&table)), ((8, 71), (7, 70)));
}

pub(super) fn x17_sizes_are_exact_after_a_crash(maker: &dyn EngineFactoryMaker) {
    let mut store = Store::replica_set(maker);
    let (replicated, local) = (store.replicated("replicated"), store.local("local"));
    store.grow(&replicated, (1, 10), 10);
    store.grow(&replicated, (1, 20), 0);
    store.grow(&local, (1, 1), 0);
    store.grow(&replicated, (1, 40), 30);
    store.stable_from_start(20);
    store.checkpoint_now();
    store.grow(&replicated, (1, 80), 40);
    store.grow(&replicated, (1, 160), 0);
    store.grow(&local, (1, 2), 0);
    store.flush_log().unwrap();
    drop((replicated, local));
    store.crash();
    let (replicated, local) = (store.open_table("replicated").unwrap(), store.open_table("local").unwrap());
    assert_eq!((store.size(&replicated), store.stable_size(&replicated)), ((2, 30), (2, 30)));
    assert_eq!(store.size(&local), (2, 3));
}

pub(super) fn x18_sizes_are_exact_after_rollback(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    store.grow(&table, (1, 10), 10);
    store.grow(&table, (1, 20), 30);
    store.grow(&table, (1, 40), 0);
    store.stable_from_start(20);
    store.roll_back_to_stable().unwrap();
    assert_eq!((store.size(&table), store.stable_size(&table)), ((2, 50), (2, 50)));
}

pub(super) fn x20_prepared_size_changes_count_by_their_durable_timestamp(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    let mut transaction = store.start();
    put(&mut transaction, &table, "a", "1").unwrap();
    transaction.adjust_size(&table, TableSize::new(1, 1)).unwrap();
    transaction.prepare(ts(10)).unwrap();
    assert_eq!(store.size(&table), (0, 0));
    store.stable_from_start(20);
    transaction.set_commit_timestamp(ts(15)).unwrap();
    transaction.set_durable_timestamp(ts(30)).unwrap();
    transaction.commit().unwrap();
    assert_eq!((store.size(&table), store.stable_size(&table)), ((1, 1), (0, 0)));
    store.set_stable(ts(30)).unwrap();
    assert_eq!(store.stable_size(&table), (1, 1));
}
