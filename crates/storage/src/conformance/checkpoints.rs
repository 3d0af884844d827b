//! Checkpoints: when one is taken, at which timestamp, and what is in it.

use super::factory::EngineFactoryMaker;
use super::support::*;
use crate::*;

pub(super) fn x20_before_initial_data_a_checkpoint_takes_everything(maker: &dyn EngineFactoryMaker) {
    let mut store = Store::replica_set(maker);
    let table = store.replicated("t");
    store.put(&table, "a", "1", 10);
    store.put(&table, "b", "2", 90);
    store.set_stable(ts(10)).unwrap();
    let outcome = store.checkpoint_now();
    assert_eq!((outcome.taken, outcome.timestamp), (true, ts(0)));
    drop(table);
    store.crash();
    assert_eq!(store.dump_ident("t"), "a=1 b=2");
    assert_eq!(store.timestamps().recovery, ts(0));
}

pub(super) fn x20_no_checkpoint_before_stable_reaches_initial_data(maker: &dyn EngineFactoryMaker) {
    let mut store = Store::replica_set(maker);
    let table = store.replicated("t");
    store.put(&table, "a", "1", 10);
    store.set_initial_data(ts(20));
    assert!(!store.checkpoint_now().taken);
    store.set_stable(ts(19)).unwrap();
    assert!(!store.checkpoint_now().taken);
    store.set_stable(ts(20)).unwrap();
    let outcome = store.checkpoint_now();
    assert_eq!((outcome.taken, outcome.timestamp), (true, ts(20)));
    drop(table);
    store.crash();
    assert_eq!(store.dump_ident("t"), "a=1");
}

pub(super) fn x20_a_checkpoint_stands_at_stable(maker: &dyn EngineFactoryMaker) {
    let mut store = Store::replica_set(maker);
    let table = store.replicated("t");
    store.put(&table, "a", "10", 10);
    store.put(&table, "b", "20", 20);
    store.put(&table, "a", "30", 30);
    store.delete(&table, "b", 30);
    store.put(&table, "untimestamped", "x", 0);
    store.stable_from_start(20);
    store.set_oldest(ts(5), false).unwrap();
    let outcome = store.checkpoint_now();
    assert_eq!((outcome.taken, outcome.timestamp), (true, ts(20)));
    assert_eq!(store.timestamps().checkpoint, ts(20));
    // The live store still has everything.
    assert_eq!(store.dump(&table), "a=30 untimestamped=x");
    drop(table);
    store.crash();
    assert_eq!(store.dump_ident("t"), "a=10 b=20 untimestamped=x");
    let timestamps = store.timestamps();
    assert_eq!((timestamps.recovery, timestamps.checkpoint, timestamps.stable), (ts(20), ts(20), ts(20)));
    assert_eq!((timestamps.oldest, timestamps.initial_data, timestamps.all_durable), (ts(5), ts(20), ts(20)));
}

pub(super) fn x20_later_commits_wait_for_the_next_checkpoint(maker: &dyn EngineFactoryMaker) {
    let mut store = Store::replica_set(maker);
    let table = store.replicated("t");
    store.put(&table, "a", "1", 10);
    store.stable_from_start(10);
    store.checkpoint_now();
    store.put(&table, "a", "2", 20);
    store.put(&table, "untimestamped", "x", 0);
    store.set_stable(ts(20)).unwrap();
    store.flush_log().unwrap();
    drop(table);
    store.crash();
    assert_eq!((store.dump_ident("t"), store.timestamps().recovery), ("a=1".into(), ts(10)));
}

pub(super) fn x20_an_idle_store_takes_no_checkpoint(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    store.put(&table, "a", "1", 10);
    store.stable_from_start(10);
    assert!(store.checkpoint_now().taken);
    for _ in 0..3 {
        assert!(!store.checkpoint_now().taken);
        assert_eq!(store.dump(&table), "a=1");
    }
    // Stable alone.
    store.set_stable(ts(20)).unwrap();
    let outcome = store.checkpoint_now();
    assert_eq!((outcome.taken, outcome.timestamp), (true, ts(20)));
    assert!(!store.checkpoint_now().taken);
    store.put(&table, "a", "2", 0);
    assert!(store.checkpoint_now().taken);
    store.local("new");
    assert!(store.checkpoint_now().taken);
    store.drop_table("new").unwrap();
    assert!(store.checkpoint_now().taken);
    assert!(!store.checkpoint_now().taken);
}

pub(super) fn x20_running_and_prepared_transactions_are_skipped(maker: &dyn EngineFactoryMaker) {
    let mut store = Store::replica_set(maker);
    let table = store.replicated("t");
    store.put(&table, "a", "1", 5);
    let prepared = store.prepared(&table, "prepared", "x", 10);
    let mut running = store.start();
    put(&mut running, &table, "running", "x").unwrap();
    store.stable_from_start(30);
    assert!(store.checkpoint_now().taken);
    drop((running, prepared, table));
    store.crash();
    assert_eq!(store.dump_ident("t"), "a=1");
}

pub(super) fn x20_durable_timestamps_decide_not_commit_timestamps(maker: &dyn EngineFactoryMaker) {
    let mut store = Store::replica_set(maker);
    let table = store.replicated("t");
    let mut prepared = store.prepared(&table, "a", "x", 10);
    store.stable_from_start(30);
    prepared.set_commit_timestamp(ts(20)).unwrap();
    prepared.set_durable_timestamp(ts(40)).unwrap();
    prepared.commit().unwrap();
    assert_eq!(store.dump_at(&table, 20), "a=x");
    store.checkpoint_now();
    drop(table);
    store.crash();
    assert_eq!(store.dump_ident("t"), "");
}

pub(super) fn x20_history_back_to_oldest_is_in_the_checkpoint(maker: &dyn EngineFactoryMaker) {
    let mut store = Store::replica_set(maker);
    let table = store.replicated("t");
    for timestamp in [10, 20, 30, 40] {
        store.put(&table, "a", &timestamp.to_string(), timestamp);
    }
    store.delete(&table, "a", 50);
    store.put(&table, "b", "60", 60);
    store.stable_from_start(55);
    store.set_oldest(ts(20), false).unwrap();
    store.checkpoint_now();
    store.settle();
    drop(table);
    store.crash();
    let table = store.open_table("t").unwrap();
    for (timestamp, expected) in [(20, "a=20"), (29, "a=20"), (30, "a=30"), (49, "a=40"), (50, ""), (60, "")] {
        assert_eq!(store.dump_at(&table, timestamp), expected, "at {timestamp}");
    }
    let too_old = BeginOptions { read: ReadAt::Timestamp(ts(19)), ..BeginOptions::default() };
    fails!(store.begin(too_old), SnapshotTooOld);
}

pub(super) fn x20_a_full_checkpoint_on_demand_takes_everything(maker: &dyn EngineFactoryMaker) {
    let mut store = Store::replica_set(maker);
    let table = store.replicated("t");
    store.put(&table, "a", "1", 10);
    store.put(&table, "a", "2", 30);
    store.set_stable(ts(20)).unwrap();
    assert!(store.checkpoint(CheckpointKind::Full).unwrap().taken);
    drop(table);
    store.crash();
    assert_eq!(store.dump_ident("t"), "a=2");
}

pub(super) fn x20_many_checkpoints_and_merges_lose_nothing(maker: &dyn EngineFactoryMaker) {
    let mut store = Store::replica_set(maker);
    let table = store.replicated("t");
    store.stable_from_start(1);
    let mut expected = std::collections::BTreeMap::new();
    for round in 1..=20_u64 {
        for number in 0..30 {
            let key = format!("{:03}", (number * 7 + round * 11) % 100);
            let timestamp = round * 100 + number;
            if (number + round) % 5 == 0 {
                store.delete(&table, &key, timestamp);
                expected.remove(&key);
            } else {
                store.put(&table, &key, &timestamp.to_string(), timestamp);
                expected.insert(key, timestamp);
            }
        }
        store.set_stable(ts(round * 100 + 50)).unwrap();
        store.set_oldest(ts(round * 100 + 50 - 120 % (round * 100)), false).unwrap();
        assert!(store.checkpoint_now().taken);
        store.settle();
    }
    let words: Vec<String> = expected.iter().map(|(key, value)| format!("{key}={value}")).collect();
    assert_eq!(store.dump(&table), words.join(" "));
    drop(table);
    store.crash();
    assert_eq!(store.dump_ident("t"), words.join(" "));
}
