//! Commit timestamps, holes and the timestamps of the store: one case a rule.

use super::factory::EngineFactoryMaker;
use super::support::*;
use crate::*;

pub(super) fn r20_a_fresh_store_has_no_timestamps(maker: &dyn EngineFactoryMaker) {
    for store in Store::both(maker) {
        assert_eq!(store.timestamps(), Timestamps::default());
    }
}

pub(super) fn x8_writes_before_the_first_commit_timestamp_get_it(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    let mut transaction = store.start();
    put(&mut transaction, &table, "a", "before").unwrap();
    transaction.set_commit_timestamp(ts(10)).unwrap();
    transaction.commit().unwrap();
    assert_eq!((store.dump_at(&table, 9), store.dump_at(&table, 10)), ("".into(), "a=before".into()));
}

pub(super) fn x8_vectored_inserts_have_a_timestamp_each(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    let mut transaction = store.start();
    put(&mut transaction, &table, "first", "10").unwrap();
    for timestamp in [10, 20, 20, 30] {
        transaction.set_commit_timestamp(ts(timestamp)).unwrap();
        put(&mut transaction, &table, &format!("at {timestamp}"), "x").unwrap();
    }
    assert_eq!(dump(&*transaction, &table), "at 10=x at 20=x at 30=x first=10");
    transaction.commit().unwrap();
    assert_eq!(store.dump_at(&table, 9), "");
    assert_eq!(store.dump_at(&table, 10), "at 10=x first=10");
    assert_eq!(store.dump_at(&table, 29), "at 10=x at 20=x first=10");
    assert_eq!(store.dump_at(&table, 30), "at 10=x at 20=x at 30=x first=10");
    assert_eq!(store.all_durable(), 30);
}

pub(super) fn x8_one_key_may_be_written_at_several_timestamps_of_one_unit(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    let mut transaction = store.start();
    for timestamp in [10, 20, 30] {
        transaction.set_commit_timestamp(ts(timestamp)).unwrap();
        put(&mut transaction, &table, "a", &timestamp.to_string()).unwrap();
    }
    transaction.commit().unwrap();
    for (timestamp, expected) in [(9, ""), (15, "a=10"), (20, "a=20"), (30, "a=30")] {
        assert_eq!(store.dump_at(&table, timestamp), expected);
    }
}

pub(super) fn r20_a_commit_timestamp_must_be_after_stable_and_not_before_oldest(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    store.set_oldest(ts(5), false).unwrap();
    let mut transaction = store.start();
    fails!(transaction.set_commit_timestamp(ts(0)), TimestampRule);
    fails!(transaction.set_commit_timestamp(ts(4)), TimestampRule);
    transaction.set_commit_timestamp(ts(5)).unwrap();
    drop(transaction);
    store.set_stable(ts(10)).unwrap();
    let mut transaction = store.start();
    fails!(transaction.set_commit_timestamp(ts(9)), TimestampRule);
    fails!(transaction.set_commit_timestamp(ts(10)), TimestampRule);
    // A refused one changes nothing.
    put(&mut transaction, &table, "a", "1").unwrap();
    transaction.set_commit_timestamp(ts(11)).unwrap();
    transaction.commit().unwrap();
    assert_eq!((store.dump_at(&table, 10), store.dump_at(&table, 11)), ("".into(), "a=1".into()));
}

pub(super) fn r20_commit_timestamps_do_not_go_below_the_first(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    let mut transaction = store.start();
    transaction.set_commit_timestamp(ts(20)).unwrap();
    transaction.set_commit_timestamp(ts(30)).unwrap();
    fails!(transaction.set_commit_timestamp(ts(19)), TimestampRule);
    transaction.set_commit_timestamp(ts(25)).unwrap();
    put(&mut transaction, &table, "a", "1").unwrap();
    transaction.commit().unwrap();
    assert_eq!((store.dump_at(&table, 24), store.dump_at(&table, 25)), ("".into(), "a=1".into()));
}

pub(super) fn r20_a_commit_timestamp_is_not_before_the_keys_newest(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    store.put(&table, "a", "20", 20);
    store.delete(&table, "b", 20);
    for key in ["a", "b"] {
        // Checked at the write.
        let mut transaction = store.start();
        transaction.set_commit_timestamp(ts(19)).unwrap();
        fails!(put(&mut transaction, &table, key, "x"), TimestampRule);
        drop(transaction);
        // Checked when the timestamp comes after the write; the transaction may take another.
        let mut transaction = store.start();
        put(&mut transaction, &table, key, "x").unwrap();
        fails!(transaction.set_commit_timestamp(ts(19)), TimestampRule);
        transaction.set_commit_timestamp(ts(20)).unwrap();
        transaction.commit().unwrap();
    }
    assert_eq!(store.dump_at(&table, 20), "a=x b=x");
}

pub(super) fn r20_the_order_of_a_keys_timestamps_is_known_on_disk_too(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    store.put(&table, "a", "20", 20);
    store.stable_from_start(5);
    store.checkpoint(CheckpointKind::Full).unwrap();
    store.settle();
    let mut transaction = store.start();
    transaction.set_commit_timestamp(ts(19)).unwrap();
    fails!(put(&mut transaction, &table, "a", "x"), TimestampRule);
}

pub(super) fn r20_untimestamped_versions_set_no_order(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    store.put(&table, "a", "20", 20);
    store.put(&table, "a", "untimestamped", 0);
    store.put(&table, "a", "10", 10);
    assert_eq!(store.dump_at(&table, 9), "a=untimestamped");
    assert_eq!(store.dump_at(&table, 10), "a=10");
}

pub(super) fn r20_stable_may_overtake_a_running_transaction_only_to_fail_it(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    store.put(&table, "high", "x", 50);
    // Below all_durable, so it holds nothing.
    let mut transaction = store.start();
    transaction.set_commit_timestamp(ts(20)).unwrap();
    put(&mut transaction, &table, "a", "1").unwrap();
    assert_eq!(store.all_durable(), 50);
    match store.set_stable(ts(30)) {
        // Its first timestamp is among the holds.
        Err(StorageError::TimestampRule(_)) => {
            transaction.commit().unwrap();
            assert_eq!(store.dump(&table), "a=1 high=x");
        }
        Ok(()) => {
            fails!(transaction.commit(), TimestampRule);
            assert_eq!(store.dump(&table), "high=x");
        }
        Err(other) => panic!("{other:?}"),
    }
}

pub(super) fn r20_all_durable_is_the_newest_commit_without_holes(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    assert_eq!(store.all_durable(), 0);
    store.put(&table, "untimestamped", "x", 0);
    assert_eq!(store.all_durable(), 0);
    store.put(&table, "a", "1", 10);
    assert_eq!(store.all_durable(), 10);
    // Out of order, as secondaries apply.
    store.put(&table, "b", "1", 30);
    store.put(&table, "c", "1", 20);
    assert_eq!(store.all_durable(), 30);
    store.set_stable(ts(40)).unwrap();
    assert_eq!(store.all_durable(), 40);
}

pub(super) fn r20_running_commit_timestamps_hold_all_durable(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    store.put(&table, "a", "1", 10);
    let mut first = store.start();
    put(&mut first, &table, "b", "1").unwrap();
    assert_eq!(store.all_durable(), 10);
    first.set_commit_timestamp(ts(20)).unwrap();
    let mut second = store.start();
    second.set_commit_timestamp(ts(30)).unwrap();
    put(&mut second, &table, "c", "1").unwrap();
    store.put(&table, "d", "1", 40);
    assert_eq!(store.all_durable(), 19);
    // Its later timestamps do not move the hold.
    first.set_commit_timestamp(ts(45)).unwrap();
    put(&mut first, &table, "e", "1").unwrap();
    assert_eq!(store.all_durable(), 19);
    first.commit().unwrap();
    assert_eq!(store.all_durable(), 29);
    second.roll_back();
    assert_eq!(store.all_durable(), 45);
}

pub(super) fn r20_slots_hold_all_durable(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    store.put(&table, "a", "1", 10);
    let (early, late) = (store.reserve_slot(ts(20)).unwrap(), store.reserve_slot(ts(30)).unwrap());
    assert_eq!((early.timestamp(), late.timestamp()), (ts(20), ts(30)));
    store.put(&table, "b", "1", 40);
    assert_eq!(store.all_durable(), 19);
    drop(late);
    assert_eq!(store.all_durable(), 19);
    drop(early);
    assert_eq!(store.all_durable(), 40);
}

pub(super) fn r20_a_slot_ends_with_the_transaction_that_holds_it(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    store.put(&table, "a", "1", 10);
    for commit in [true, false] {
        let base = store.all_durable();
        let slot = store.reserve_slot(ts(base + 10)).unwrap();
        store.put(&table, "late", "1", base + 20);
        let mut transaction = store.start();
        put(&mut transaction, &table, "b", "1").unwrap();
        transaction.set_commit_timestamp(ts(base + 10)).unwrap();
        transaction.hold_slot(slot);
        assert_eq!(store.all_durable(), base + 9);
        if commit {
            transaction.commit().unwrap();
        } else {
            transaction.roll_back();
        }
        assert_eq!(store.all_durable(), base + 20);
    }
}

pub(super) fn r20_slots_at_or_below_stable_or_all_durable_are_refused(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    store.set_stable(ts(10)).unwrap();
    fails!(store.reserve_slot(ts(10)), TimestampRule);
    store.put(&table, "a", "1", 20);
    fails!(store.reserve_slot(ts(15)), TimestampRule);
    assert_eq!(store.all_durable(), 20);
    drop(store.reserve_slot(ts(21)).unwrap());
    assert_eq!(store.all_durable(), 20);
}

pub(super) fn r20_late_timestamps_leave_all_durable_where_it_is(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    store.put(&table, "a", "1", 40);
    let mut late = store.start();
    late.set_commit_timestamp(ts(20)).unwrap();
    put(&mut late, &table, "b", "1").unwrap();
    assert_eq!(store.all_durable(), 40);
    late.commit().unwrap();
    assert_eq!(store.all_durable(), 40);
    assert_eq!(store.dump_at(&table, 20), "b=1");
}

pub(super) fn r20_oldest_moves_forward_up_to_stable(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    fails!(store.set_oldest(ts(0), false), TimestampRule);
    store.set_stable(ts(20)).unwrap();
    fails!(store.set_oldest(ts(21), false), TimestampRule);
    store.set_oldest(ts(10), false).unwrap();
    store.set_oldest(ts(5), false).unwrap();
    assert_eq!(store.timestamps().oldest, ts(10));
    store.set_oldest(ts(5), true).unwrap();
    assert_eq!(store.timestamps().oldest, ts(5));
    store.set_oldest(ts(20), false).unwrap();
    assert_eq!(store.timestamps().oldest, ts(20));
}

pub(super) fn r20_stable_moves_forward_below_holes(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    fails!(store.set_stable(ts(0)), TimestampRule);
    store.set_oldest(ts(5), false).unwrap();
    fails!(store.set_stable(ts(4)), TimestampRule);
    store.set_stable(ts(10)).unwrap();
    store.set_stable(ts(7)).unwrap();
    assert_eq!(store.timestamps().stable, ts(10));
    let slot = store.reserve_slot(ts(20)).unwrap();
    fails!(store.set_stable(ts(20)), TimestampRule);
    fails!(store.set_stable(ts(30)), TimestampRule);
    store.set_stable(ts(19)).unwrap();
    drop(slot);
    let mut running = store.start();
    put(&mut running, &table, "a", "1").unwrap();
    running.set_commit_timestamp(ts(25)).unwrap();
    fails!(store.set_stable(ts(25)), TimestampRule);
    running.commit().unwrap();
    store.set_stable(ts(25)).unwrap();
    let timestamps = store.timestamps();
    assert!(timestamps.oldest <= timestamps.stable && timestamps.stable <= timestamps.all_durable);
}

pub(super) fn r20_initial_data_is_kept_as_set(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    store.set_initial_data(ts(5));
    assert_eq!(store.timestamps().initial_data, ts(5));
    store.set_initial_data(ts(0));
    assert_eq!(store.timestamps().initial_data, ts(0));
}

pub(super) fn r20_own_reads_do_not_care_about_commit_timestamps(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    let mut transaction = store.start_at(10);
    transaction.set_commit_timestamp(ts(50)).unwrap();
    put(&mut transaction, &table, "a", "1").unwrap();
    assert_eq!(dump(&*transaction, &table), "a=1");
}

pub(super) fn r20_durable_timestamps_are_for_prepared_transactions(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let mut transaction = store.start();
    transaction.set_commit_timestamp(ts(10)).unwrap();
    fails!(transaction.set_durable_timestamp(ts(20)), IllegalOperation);
}
