//! What a snapshot sees, with and without a read timestamp.

use super::factory::EngineFactoryMaker;
use super::support::*;
use crate::*;

pub(super) fn x4_a_snapshot_hides_what_commits_after_it_began(maker: &dyn EngineFactoryMaker) {
    for store in Store::both(maker) {
        let table = store.local("t");
        store.put(&table, "a", "old", 0);
        store.put(&table, "b", "old", 0);
        let mut running = store.start();
        put(&mut running, &table, "c", "running").unwrap();
        let reader = store.start();
        running.commit().unwrap();
        store.put(&table, "a", "new", 0);
        store.delete(&table, "b", 0);
        assert_eq!(dump(&*reader, &table), "a=old b=old");
        assert_eq!(store.dump(&table), "a=new c=running");
    }
}

pub(super) fn x7_a_timestamp_hides_later_commits_of_the_past(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    store.put(&table, "a", "1", 10);
    let reader = store.start_at(50);
    // An earlier timestamp than the reader's, but a later commit.
    store.put(&table, "b", "2", 20);
    assert_eq!(dump(&*reader, &table), "a=1");
    assert_eq!(store.dump_at(&table, 50), "a=1 b=2");
}

pub(super) fn x7_each_timestamp_sees_its_version(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    store.put(&table, "a", "1", 10);
    store.put(&table, "a", "2", 20);
    store.put(&table, "b", "x", 25);
    store.delete(&table, "a", 30);
    store.put(&table, "a", "4", 40);
    let check = |store: &Store, table: &Table| {
        let cases = [(9, ""), (10, "a=1"), (19, "a=1"), (20, "a=2"), (25, "a=2 b=x"), (30, "b=x"), (40, "a=4 b=x")];
        for (timestamp, expected) in cases {
            assert_eq!(store.dump_at(table, timestamp), expected, "at {timestamp}");
        }
    };
    check(&store, &table);
    // History within the window is kept on disk too.
    store.stable_from_start(40);
    store.checkpoint_now();
    store.settle();
    check(&store, &table);
}

pub(super) fn x7_an_untimestamped_write_hides_older_history_everywhere(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    store.put(&table, "a", "1", 10);
    store.put(&table, "a", "2", 20);
    store.put(&table, "a", "always", 0);
    assert_eq!(store.dump_at(&table, 5), "a=always");
    assert_eq!(store.dump_at(&table, 15), "a=always");
    store.put(&table, "a", "3", 30);
    assert_eq!(store.dump_at(&table, 29), "a=always");
    assert_eq!(store.dump_at(&table, 30), "a=3");
    store.put(&table, "b", "1", 10);
    store.delete(&table, "b", 0);
    assert_eq!(store.dump_at(&table, 15), "a=always");
}

pub(super) fn x7_all_durable_reads_stop_before_holes(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    let options = BeginOptions { read: ReadAt::AllDurable, ..BeginOptions::default() };
    store.put(&table, "untimestamped", "0", 0);
    assert_eq!(dump(&*store.begin(options).unwrap(), &table), "untimestamped=0");
    store.put(&table, "a", "1", 10);
    let slot = store.reserve_slot(ts(20)).unwrap();
    store.put(&table, "b", "2", 30);
    let reader = store.begin(options).unwrap();
    assert_eq!(reader.read_timestamp(), Some(ts(19)));
    assert_eq!(dump(&*reader, &table), "a=1 untimestamped=0");
    drop(slot);
    let reader = store.begin(options).unwrap();
    assert_eq!(reader.read_timestamp(), Some(ts(30)));
    assert_eq!(dump(&*reader, &table), "a=1 b=2 untimestamped=0");
}

pub(super) fn x7_the_read_timestamp_is_told(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    assert_eq!(store.start().read_timestamp(), None);
    assert_eq!(store.start_at(7).read_timestamp(), Some(ts(7)));
    let none = BeginOptions { read: ReadAt::Timestamp(ts(0)), ..BeginOptions::default() };
    fails!(store.begin(none), TimestampRule);
}

pub(super) fn x7_reads_below_oldest_are_refused_or_rounded_up(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    store.put(&table, "a", "1", 10);
    store.put(&table, "a", "2", 20);
    store.set_oldest(ts(20), false).unwrap();
    let mut options = BeginOptions { read: ReadAt::Timestamp(ts(19)), ..BeginOptions::default() };
    match store.begin(options) {
        Err(StorageError::SnapshotTooOld { requested, oldest }) => assert_eq!((requested, oldest), (ts(19), ts(20))),
        _ => panic!("a read below oldest must be refused"),
    }
    options.round_up_to_oldest = true;
    let reader = store.begin(options).unwrap();
    assert_eq!(reader.read_timestamp(), Some(ts(20)));
    assert_eq!(dump(&*reader, &table), "a=2");
    assert_eq!(store.dump_at(&table, 20), "a=2");
}

pub(super) fn x7_open_snapshots_survive_an_advance_of_oldest(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    store.put(&table, "a", "1", 10);
    store.put(&table, "b", "1", 10);
    let reader = store.start_at(10);
    store.put(&table, "a", "2", 20);
    store.delete(&table, "b", 20);
    store.stable_from_start(30);
    store.set_oldest(ts(30), false).unwrap();
    for timestamp in [40, 50] {
        store.put(&table, "a", &timestamp.to_string(), timestamp);
        store.set_stable(ts(timestamp)).unwrap();
        store.set_oldest(ts(timestamp), false).unwrap();
        store.checkpoint_now();
        store.settle();
        assert_eq!(dump(&*reader, &table), "a=1 b=1");
    }
}

pub(super) fn x7_a_snapshot_without_timestamp_survives_checkpoints_and_merges(maker: &dyn EngineFactoryMaker) {
    for store in Store::both(maker) {
        let table = store.local("t");
        for number in 0..50 {
            store.put(&table, &format!("{number:02}"), "first", 0);
        }
        let reader = store.start();
        let before = dump(&*reader, &table);
        for round in 0..5 {
            for number in 0..50 {
                match (number + round) % 3 {
                    0 => store.delete(&table, &format!("{number:02}"), 0),
                    _ => drop(store.put(&table, &format!("{number:02}"), &round.to_string(), 0)),
                }
            }
            store.checkpoint(CheckpointKind::Full).unwrap();
            store.settle();
            assert_eq!(dump(&*reader, &table), before);
        }
    }
}

pub(super) fn x7_a_hot_key_keeps_every_version_of_the_window(maker: &dyn EngineFactoryMaker) {
    const VERSIONS: u64 = 1500;
    let mut store = Store::replica_set(maker);
    let table = store.replicated("t");
    store.set_initial_data(ts(1));
    for timestamp in 1..=VERSIONS {
        store.put(&table, "hot", &timestamp.to_string(), timestamp);
        if timestamp % 400 == 0 {
            store.set_stable(ts(timestamp - 100)).unwrap();
            store.checkpoint_now();
            store.settle();
        }
    }
    let check = |store: &Store, table: &Table, end: u64| {
        for timestamp in (1..=end).step_by(37) {
            assert_eq!(got(&*store.start_at(timestamp), table, "hot"), timestamp.to_string());
        }
        assert_eq!(got(&*store.start(), table, "hot"), end.to_string());
    };
    check(&store, &table, VERSIONS);
    drop(table);
    store.crash();
    let table = store.open_table("t").unwrap();
    check(&store, &table, 1100);
}
