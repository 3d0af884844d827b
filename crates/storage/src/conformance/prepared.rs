//! Prepared transactions.

use super::factory::EngineFactoryMaker;
use super::support::*;
use crate::*;

/// A replicated table with a=old at 5.
fn one(maker: &dyn EngineFactoryMaker) -> (Store, Table) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    store.put(&table, "a", "old", 5);
    (store, table)
}

pub(super) fn x4_readers_after_the_prepare_conflict(maker: &dyn EngineFactoryMaker) {
    let (store, table) = one(maker);
    let before = store.start();
    let prepared = store.prepared(&table, "a", "new", 20);
    assert!(prepared.is_prepared());
    assert_eq!(got(&*before, &table, "a"), "old");
    fails!(store.start().get(&table, b"a"), PrepareConflict);
    // By timestamp: only those at or after the prepare.
    assert_eq!(got(&*store.start_at(19), &table, "a"), "old");
    fails!(store.start_at(20).get(&table, b"a"), PrepareConflict);
    assert_eq!(got(&*store.start(), &table, "b"), "none");
}

pub(super) fn x4_readers_may_ignore_prepared_data(maker: &dyn EngineFactoryMaker) {
    let (store, table) = one(maker);
    let _prepared = store.prepared(&table, "a", "new", 20);
    let mut reader = store.start_with_prepare(PrepareBehaviour::Ignore);
    assert_eq!(dump(&*reader, &table), "a=old");
    fails!(put(&mut reader, &table, "b", "1"), IllegalOperation);
    let mut writer = store.start_with_prepare(PrepareBehaviour::IgnoreAndWrite);
    assert_eq!(dump(&*writer, &table), "a=old");
    put(&mut writer, &table, "b", "1").unwrap();
    fails!(put(&mut writer, &table, "a", "1"), PrepareConflict);
    writer.commit().unwrap();
    assert_eq!(dump(&*store.start_with_prepare(PrepareBehaviour::Ignore), &table), "a=old b=1");
}

pub(super) fn x4_cursors_keep_their_place_over_a_prepare_conflict(maker: &dyn EngineFactoryMaker) {
    let (store, table) = one(maker);
    store.put(&table, "b", "old", 5);
    store.put(&table, "c", "old", 5);
    let prepared = store.prepared(&table, "b", "new", 20);
    let reader = store.start();
    let (mut forward, mut backward) = (reader.cursor(&table).unwrap(), reader.cursor(&table).unwrap());
    assert_eq!(shown(forward.next().unwrap()), "a=old");
    assert_eq!(shown(backward.previous().unwrap()), "c=old");
    for _ in 0..2 {
        fails!(forward.next(), PrepareConflict);
        fails!(backward.previous(), PrepareConflict);
    }
    prepared.roll_back();
    assert_eq!(shown(forward.next().unwrap()), "b=old");
    assert_eq!(shown(backward.previous().unwrap()), "b=old");
}

pub(super) fn x4_a_reader_that_waited_sees_the_commit(maker: &dyn EngineFactoryMaker) {
    let (store, table) = one(maker);
    let mut prepared = store.prepared(&table, "a", "new", 20);
    let reader = store.start();
    let cursor_reader = store.start();
    let mut cursor = cursor_reader.cursor(&table).unwrap();
    let epoch = store.prepare_epoch();
    fails!(reader.get(&table, b"a"), PrepareConflict);
    fails!(cursor.next(), PrepareConflict);
    let mut wait = store.prepare_wait(epoch);
    assert!(!is_over(&mut wait));
    prepared.set_commit_timestamp(ts(30)).unwrap();
    prepared.commit().unwrap();
    wait.block().unwrap();
    assert!(store.prepare_epoch() > epoch);
    // It began after the prepare: the visibility sequence is the prepare's.
    assert_eq!(got(&*reader, &table, "a"), "new");
    assert_eq!(shown(cursor.next().unwrap()), "a=new");
    store.prepare_wait(epoch).block().unwrap();
}

pub(super) fn x4_the_epoch_counts_every_end_of_a_prepared_transaction(maker: &dyn EngineFactoryMaker) {
    let (store, table) = one(maker);
    let before = store.prepare_epoch();
    store.put(&table, "b", "1", 10);
    assert_eq!(store.prepare_epoch(), before);
    store.prepared(&table, "a", "new", 20).roll_back();
    assert_eq!(store.prepare_epoch(), before + 1);
    drop(store.prepared(&table, "a", "new", 20));
    assert_eq!(store.prepare_epoch(), before + 2);
    let mut prepared = store.prepared(&table, "a", "new", 20);
    prepared.set_commit_timestamp(ts(20)).unwrap();
    prepared.commit().unwrap();
    assert_eq!(store.prepare_epoch(), before + 3);
}

pub(super) fn x4_retrying_prepare_conflicts_ends_with_the_prepared_transaction(maker: &dyn EngineFactoryMaker) {
    let (store, table) = one(maker);
    let mut prepared = Some(store.prepared(&table, "a", "new", 20));
    let mut calls = 0;
    let value = retry_prepare_conflicts(&*store, || {
        calls += 1;
        let result = store.start().get(&table, b"a");
        // Ends between the call and the wait, where a wake-up could be lost.
        drop(prepared.take());
        result
    });
    assert_eq!((value.unwrap().as_deref(), calls), (Some(&b"old"[..]), 2));
}

pub(super) fn x4_writers_conflict_with_prepared_data(maker: &dyn EngineFactoryMaker) {
    let (store, table) = one(maker);
    let mut earlier = store.start();
    let mut earlier_by_time = store.start_at(19);
    let prepared = store.prepared(&table, "a", "new", 20);
    // Not a conflict for its reads: the snapshot is older.
    fails!(put(&mut earlier, &table, "a", "x"), WriteConflict);
    fails!(put(&mut earlier_by_time, &table, "a", "x"), WriteConflict);
    let mut later = store.start();
    fails!(put(&mut later, &table, "a", "x"), PrepareConflict);
    // The call may be repeated once the prepared transaction has ended.
    put(&mut later, &table, "b", "fine").unwrap();
    prepared.roll_back();
    put(&mut later, &table, "a", "x").unwrap();
    later.commit().unwrap();
    assert_eq!(store.dump(&table), "a=x b=fine");
}

pub(super) fn x4_a_writer_that_waited_can_write_over_the_commit(maker: &dyn EngineFactoryMaker) {
    let (store, table) = one(maker);
    let mut prepared = store.prepared(&table, "a", "new", 20);
    let mut later = store.start();
    fails!(delete(&mut later, &table, "a"), PrepareConflict);
    prepared.set_commit_timestamp(ts(25)).unwrap();
    prepared.commit().unwrap();
    delete(&mut later, &table, "a").unwrap();
    later.set_commit_timestamp(ts(30)).unwrap();
    later.commit().unwrap();
    assert_eq!((store.dump_at(&table, 25), store.dump_at(&table, 30)), ("a=new".into(), "".into()));
}

pub(super) fn x4_a_prepared_transaction_only_ends(maker: &dyn EngineFactoryMaker) {
    let (store, table) = one(maker);
    let mut prepared = store.prepared(&table, "b", "new", 20);
    fails!(prepared.get(&table, b"a"), IllegalOperation);
    fails!(put(&mut prepared, &table, "c", "x"), IllegalOperation);
    fails!(delete(&mut prepared, &table, "c"), IllegalOperation);
    fails!(truncate(&mut prepared, &table, "c", None), IllegalOperation);
    fails!(prepared.cursor(&table), IllegalOperation);
    fails!(prepared.adjust_size(&table, TableSize::new(1, 1)), IllegalOperation);
    fails!(prepared.append_oplog(ts(50), b"x"), IllegalOperation);
    fails!(prepared.prepare(ts(30)), IllegalOperation);
    prepared.set_commit_timestamp(ts(20)).unwrap();
    prepared.commit().unwrap();
    assert_eq!(store.dump(&table), "a=old b=new");
}

pub(super) fn x4_what_cannot_be_prepared(maker: &dyn EngineFactoryMaker) {
    let (store, table) = one(maker);
    let local = store.local("local");
    let mut transaction = store.start();
    put(&mut transaction, &table, "b", "1").unwrap();
    fails!(transaction.prepare(ts(0)), TimestampRule);
    transaction.set_commit_timestamp(ts(20)).unwrap();
    fails!(transaction.prepare(ts(20)), IllegalOperation);
    drop(transaction);
    let mut transaction = store.start();
    put(&mut transaction, &local, "b", "1").unwrap();
    fails!(transaction.prepare(ts(20)), IllegalOperation);
    drop(transaction);
    let mut transaction = store.start();
    transaction.append_oplog(ts(20), b"entry").unwrap();
    fails!(transaction.prepare(ts(20)), IllegalOperation);
    drop(transaction);
    store.set_stable(ts(10)).unwrap();
    let mut transaction = store.start();
    put(&mut transaction, &table, "b", "1").unwrap();
    fails!(transaction.prepare(ts(10)), TimestampRule);
    transaction.prepare(ts(11)).unwrap();
    drop(transaction);

    let store = Store::stand_alone(maker);
    let table = store.local("t");
    let mut transaction = store.start();
    put(&mut transaction, &table, "b", "1").unwrap();
    fails!(transaction.prepare(ts(10)), IllegalOperation);
}

pub(super) fn x17_recovery_may_prepare_at_or_before_stable(maker: &dyn EngineFactoryMaker) {
    let (store, table) = one(maker);
    store.set_stable(ts(30)).unwrap();
    let mut transaction = store.begin(BeginOptions { recovering: true, ..BeginOptions::default() }).unwrap();
    put(&mut transaction, &table, "b", "1").unwrap();
    transaction.prepare(ts(20)).unwrap();
    transaction.set_commit_timestamp(ts(25)).unwrap();
    transaction.set_durable_timestamp(ts(40)).unwrap();
    transaction.commit().unwrap();
    assert_eq!((store.dump_at(&table, 24), store.dump_at(&table, 25)), ("a=old".into(), "a=old b=1".into()));
}

pub(super) fn r20_a_prepared_commit_is_not_before_its_prepare(maker: &dyn EngineFactoryMaker) {
    let (store, table) = one(maker);
    let mut prepared = store.prepared(&table, "b", "1", 20);
    fails!(prepared.set_commit_timestamp(ts(19)), TimestampRule);
    prepared.set_commit_timestamp(ts(25)).unwrap();
    fails!(prepared.set_durable_timestamp(ts(24)), TimestampRule);
    prepared.set_durable_timestamp(ts(30)).unwrap();
    prepared.commit().unwrap();
    assert_eq!((store.dump_at(&table, 24), store.dump_at(&table, 25)), ("a=old".into(), "a=old b=1".into()));
    assert_eq!(store.all_durable(), 30);
}

pub(super) fn r20_a_prepared_commit_needs_a_timestamp(maker: &dyn EngineFactoryMaker) {
    let (store, table) = one(maker);
    let prepared = store.prepared(&table, "a", "1", 20);
    fails!(prepared.commit(), TimestampRule);
    // It was rolled back.
    assert_eq!(store.dump(&table), "a=old");
    store.put(&table, "a", "free", 30);
}

pub(super) fn r20_a_prepared_commit_may_be_below_stable_but_not_durable_there(maker: &dyn EngineFactoryMaker) {
    let (store, table) = one(maker);
    let mut prepared = store.prepared(&table, "b", "1", 20);
    // Prepared transactions hold back neither all_durable nor stable.
    store.put(&table, "c", "1", 40);
    assert_eq!(store.all_durable(), 40);
    store.set_stable(ts(30)).unwrap();
    prepared.set_commit_timestamp(ts(25)).unwrap();
    fails!(prepared.set_durable_timestamp(ts(30)), TimestampRule);
    prepared.set_durable_timestamp(ts(31)).unwrap();
    prepared.commit().unwrap();
    assert_eq!(store.dump_at(&table, 25), "a=old b=1");

    let mut prepared = store.prepared(&table, "d", "1", 50);
    store.set_stable(ts(60)).unwrap();
    prepared.set_commit_timestamp(ts(55)).unwrap();
    fails!(prepared.commit(), TimestampRule);
    assert_eq!(store.dump(&table), "a=old b=1 c=1");
}

pub(super) fn r20_prepared_commits_follow_their_keys_predecessors(maker: &dyn EngineFactoryMaker) {
    let (store, table) = one(maker);
    let mut prepared = store.prepared(&table, "a", "1", 3);
    fails!(prepared.set_commit_timestamp(ts(4)), TimestampRule);
    prepared.set_commit_timestamp(ts(10)).unwrap();
    prepared.set_durable_timestamp(ts(20)).unwrap();
    prepared.commit().unwrap();
    // The successor's commit timestamp is at or after the durable one.
    let mut next = store.start();
    next.set_commit_timestamp(ts(19)).unwrap();
    fails!(put(&mut next, &table, "a", "2"), TimestampRule);
    drop(next);
    store.put(&table, "a", "2", 20);
    assert_eq!((store.dump_at(&table, 10), store.dump_at(&table, 20)), ("a=1".into(), "a=2".into()));
}

pub(super) fn x4_prepared_truncations_conflict_with_readers(maker: &dyn EngineFactoryMaker) {
    let (store, table) = one(maker);
    store.put(&table, "m", "1", 5);
    let mut prepared = store.start();
    truncate(&mut prepared, &table, "a", Some("c")).unwrap();
    prepared.prepare(ts(20)).unwrap();
    fails!(store.start().get(&table, b"a"), PrepareConflict);
    assert_eq!(got(&*store.start(), &table, "m"), "1");
    assert_eq!(store.dump_at(&table, 19), "a=old m=1");
    let mut writer = store.start();
    fails!(put(&mut writer, &table, "b", "x"), PrepareConflict);
    prepared.set_commit_timestamp(ts(25)).unwrap();
    prepared.commit().unwrap();
    assert_eq!(store.dump(&table), "m=1");
    assert_eq!(store.dump_at(&table, 24), "a=old m=1");
}
