//! Rollback to stable.

use super::factory::EngineFactoryMaker;
use super::support::*;
use crate::*;

pub(super) fn x18_what_is_after_stable_goes(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let (table, local) = (store.replicated("t"), store.local("local"));
    store.put(&table, "a", "10", 10);
    store.put(&table, "b", "10", 10);
    store.put(&table, "c", "20", 20);
    store.put(&table, "a", "30", 30);
    store.delete(&table, "b", 30);
    store.put(&table, "d", "30", 30);
    store.put(&table, "untimestamped", "x", 0);
    store.put(&local, "k", "v", 0);
    store.stable_from_start(20);
    store.roll_back_to_stable().unwrap();
    assert_eq!(store.dump(&table), "a=10 b=10 c=20 untimestamped=x");
    assert_eq!(store.dump(&local), "k=v");
    assert_eq!(store.dump_at(&table, 10), "a=10 b=10 untimestamped=x");
    assert_eq!((store.all_durable(), store.timestamps().stable), (20, ts(20)));
    // The timestamps can be used anew.
    store.put(&table, "a", "25", 25);
    assert_eq!(store.dump_at(&table, 25), "a=25 b=10 c=20 untimestamped=x");
}

pub(super) fn x18_rollback_needs_a_stable_timestamp_and_rest(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    store.put(&table, "a", "1", 10);
    fails!(store.roll_back_to_stable(), IllegalOperation);
    store.set_stable(ts(5)).unwrap();
    let transaction = store.start();
    fails!(store.roll_back_to_stable(), Busy);
    let mut cursor = transaction.cursor(&table).unwrap();
    cursor.next().unwrap();
    drop(transaction);
    fails!(store.roll_back_to_stable(), Busy);
    cursor.detach();
    let prepared = store.prepared(&table, "b", "1", 20);
    fails!(store.roll_back_to_stable(), Busy);
    drop(prepared);
    assert_eq!(store.dump(&table), "a=1");
    store.roll_back_to_stable().unwrap();
    assert_eq!(store.dump(&table), "");
}

pub(super) fn x18_the_oplog_is_not_rolled_back(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    store.replicate(&table, "a", "1", 10);
    store.replicate(&table, "b", "1", 30);
    store.stable_from_start(20);
    store.roll_back_to_stable().unwrap();
    assert_eq!((store.dump(&table), store.dump_oplog_backward()), ("a=1".into(), "30=b=1 10=a=1".into()));
    assert_eq!(store.all_durable(), 30);
    store.log().truncate_after(ts(20), false).unwrap();
    assert_eq!((store.dump_oplog(), store.all_durable()), ("10=a=1".into(), 20));
}

pub(super) fn x18_truncations_after_stable_are_taken_back(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    for key in ["a", "b", "c"] {
        store.put(&table, key, "1", 10);
    }
    store.stable_from_start(15);
    store.checkpoint_now();
    let mut transaction = store.start();
    transaction.set_commit_timestamp(ts(30)).unwrap();
    truncate(&mut transaction, &table, "b", None).unwrap();
    transaction.commit().unwrap();
    assert_eq!(store.dump(&table), "a=1");
    store.roll_back_to_stable().unwrap();
    assert_eq!(store.dump(&table), "a=1 b=1 c=1");
    store.put(&table, "b", "2", 20);
}

pub(super) fn x18_durable_timestamps_decide(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    let mut kept = store.prepared(&table, "kept", "x", 10);
    let mut gone = store.prepared(&table, "gone", "x", 10);
    kept.set_commit_timestamp(ts(12)).unwrap();
    kept.set_durable_timestamp(ts(20)).unwrap();
    kept.commit().unwrap();
    gone.set_commit_timestamp(ts(12)).unwrap();
    gone.set_durable_timestamp(ts(21)).unwrap();
    gone.commit().unwrap();
    store.stable_from_start(20);
    assert_eq!(store.dump_at(&table, 12), "gone=x kept=x");
    store.roll_back_to_stable().unwrap();
    assert_eq!(store.dump(&table), "kept=x");
}

pub(super) fn x18_rollback_reaches_what_is_on_disk(maker: &dyn EngineFactoryMaker) {
    let mut store = Store::replica_set(maker);
    let table = store.replicated("t");
    store.put(&table, "a", "10", 10);
    store.put(&table, "a", "30", 30);
    store.put(&table, "b", "30", 30);
    store.set_stable(ts(20)).unwrap();
    // Everything, also what is after stable.
    store.checkpoint(CheckpointKind::Full).unwrap();
    store.settle();
    store.set_initial_data(ts(1));
    store.roll_back_to_stable().unwrap();
    assert_eq!(store.dump(&table), "a=10");
    store.put(&table, "c", "25", 25);
    store.set_stable(ts(25)).unwrap();
    assert!(store.checkpoint_now().taken);
    store.settle();
    assert_eq!(store.dump(&table), "a=10 c=25");
    drop(table);
    store.crash();
    assert_eq!(store.dump_ident("t"), "a=10 c=25");
}

pub(super) fn x18_rollback_again_and_again(maker: &dyn EngineFactoryMaker) {
    let mut store = Store::replica_set(maker);
    let table = store.replicated("t");
    store.stable_from_start(1);
    let mut expected = Vec::new();
    for round in 1..=6_u64 {
        let base = round * 100;
        store.put(&table, &format!("kept {round}"), "x", base);
        store.set_stable(ts(base)).unwrap();
        if round % 2 == 0 {
            store.checkpoint_now();
        }
        for number in 1..10 {
            store.put(&table, &format!("gone {number}"), "x", base + number);
            store.delete(&table, "kept 1", base + number);
        }
        if round % 3 == 0 {
            store.checkpoint_now();
        }
        store.roll_back_to_stable().unwrap();
        store.settle();
        expected.push(format!("kept {round}=x"));
        assert_eq!(store.dump(&table), expected.join(" "));
    }
    store.checkpoint_now();
    drop(table);
    store.crash();
    assert_eq!(store.dump_ident("t"), expected.join(" "));
}
