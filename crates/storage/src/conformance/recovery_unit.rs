//! The recovery unit and the unit of work, over the engine under test.

use super::factory::EngineFactoryMaker;
use super::support::*;
use crate::*;
use pando_base::Timestamp;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Replication, as far as read sources go.
#[derive(Default)]
struct Replication {
    applied: AtomicU64,
    majority: AtomicU64,
}

impl ReadTimestamps for Replication {
    fn last_applied(&self) -> Timestamp {
        ts(self.applied.load(Ordering::Relaxed))
    }

    fn majority_committed(&self) -> Timestamp {
        ts(self.majority.load(Ordering::Relaxed))
    }
}

/// A change that notes its end.
struct Noted(&'static str, Arc<Mutex<Vec<String>>>);

impl Change for Noted {
    fn on_commit(self: Box<Self>, timestamp: Option<Timestamp>) {
        let at = timestamp.map_or(0, |timestamp| timestamp.0);
        self.1.lock().unwrap().push(format!("{} committed at {at}", self.0));
    }

    fn on_rollback(self: Box<Self>) {
        self.1.lock().unwrap().push(format!("{} rolled back", self.0));
    }
}

fn write(unit: &mut RecoveryUnit, table: &Table, key: &str) -> Result<()> {
    unit.writer()?.put(table, key.as_bytes(), b"x")
}

fn seen(unit: &mut RecoveryUnit, table: &Table) -> String {
    dump(unit.reader().unwrap(), table)
}

pub(super) fn x4_the_snapshot_is_opened_by_the_first_use(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    let mut unit = store.recovery_unit();
    store.put(&table, "a", "1", 0);
    assert_eq!(unit.snapshot_id(), None);
    assert_eq!(seen(&mut unit, &table), "a=1");
    let first = unit.snapshot_id();
    assert!(first.is_some());
    store.put(&table, "b", "2", 0);
    assert_eq!(seen(&mut unit, &table), "a=1");
    assert_eq!(unit.snapshot_id(), first);
    unit.abandon_snapshot().unwrap();
    assert_eq!(seen(&mut unit, &table), "a=1 b=2");
    assert_ne!(unit.snapshot_id(), first);
    // Or earlier, on request; also a unit of work does not begin it.
    unit.abandon_snapshot().unwrap();
    unit.preallocate_snapshot().unwrap();
    store.put(&table, "c", "3", 0);
    assert_eq!(seen(&mut unit, &table), "a=1 b=2");
    unit.abandon_snapshot().unwrap();
    let mut work = WriteUnitOfWork::begin(&mut unit);
    assert_eq!(work.snapshot_id(), None);
    fails!(work.abandon_snapshot(), IllegalOperation);
    store.put(&table, "d", "4", 0);
    assert_eq!(seen(&mut work, &table), "a=1 b=2 c=3 d=4");
    work.commit().unwrap();
    assert_eq!(unit.snapshot_id(), None);
}

pub(super) fn x4_writes_need_a_unit_of_work(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    let mut unit = store.recovery_unit();
    fails!(write(&mut unit, &table, "a"), IllegalOperation);
    fails!(unit.adjust_size(&table, TableSize::new(1, 1)), IllegalOperation);
    fails!(unit.on_commit(|_| {}), IllegalOperation);
    fails!(unit.set_timestamp(ts(10)), IllegalOperation);
    let slot = store.reserve_slot(ts(10)).unwrap();
    fails!(unit.hold_slot(slot), IllegalOperation);
    let mut work = WriteUnitOfWork::begin(&mut unit);
    write(&mut work, &table, "a").unwrap();
    assert_eq!(seen(&mut work, &table), "a=x");
    assert!(work.in_unit_of_work() && work.dirty_bytes() > 0);
    work.commit().unwrap();
    assert!(!unit.in_unit_of_work());
    assert_eq!(store.dump(&table), "a=x");
}

pub(super) fn x4_a_unit_dropped_without_commit_rolls_back(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    let mut unit = store.recovery_unit();
    let mut work = WriteUnitOfWork::begin(&mut unit);
    write(&mut work, &table, "a").unwrap();
    drop(work);
    assert!(!unit.in_unit_of_work());
    assert_eq!(seen(&mut unit, &table), "");
    assert_eq!(store.dump(&table), "");
}

pub(super) fn x4_nested_units_join_the_outer_one(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    let mut unit = store.recovery_unit();
    let mut outer = WriteUnitOfWork::begin(&mut unit);
    write(&mut outer, &table, "outer").unwrap();
    let mut inner = WriteUnitOfWork::begin(&mut outer);
    write(&mut inner, &table, "inner").unwrap();
    fails!(inner.prepare(ts(10)), IllegalOperation);
    assert_eq!(inner.commit().unwrap(), None);
    assert_eq!(store.dump(&table), "");
    assert!(outer.commit().unwrap().is_some());
    assert_eq!(store.dump(&table), "inner=x outer=x");
}

pub(super) fn x4_a_failed_nested_unit_fails_the_outer_one(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    let notes = Arc::new(Mutex::new(Vec::new()));
    let mut unit = store.recovery_unit();
    let mut outer = WriteUnitOfWork::begin(&mut unit);
    outer.register_change(Box::new(Noted("outer", notes.clone()))).unwrap();
    write(&mut outer, &table, "outer").unwrap();
    let mut middle = WriteUnitOfWork::begin(&mut outer);
    let mut inner = WriteUnitOfWork::begin(&mut middle);
    write(&mut inner, &table, "inner").unwrap();
    drop(inner);
    fails!(middle.commit(), IllegalOperation);
    fails!(write(&mut outer, &table, "more"), IllegalOperation);
    assert!(notes.lock().unwrap().is_empty(), "changes end with the outermost unit");
    fails!(outer.commit(), IllegalOperation);
    assert_eq!(*notes.lock().unwrap(), ["outer rolled back"]);
    assert_eq!(store.dump(&table), "");
    // The next unit starts anew.
    let mut work = WriteUnitOfWork::begin(&mut unit);
    write(&mut work, &table, "a").unwrap();
    work.commit().unwrap();
    assert_eq!(store.dump(&table), "a=x");
}

pub(super) fn x4_changes_run_in_order_or_in_reverse(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    let notes = Arc::new(Mutex::new(Vec::new()));
    let mut unit = store.recovery_unit();
    for commit in [true, false] {
        let mut work = WriteUnitOfWork::begin(&mut unit);
        for name in ["first", "second", "third"] {
            work.register_change(Box::new(Noted(name, notes.clone()))).unwrap();
        }
        if commit {
            work.set_timestamp(ts(10)).unwrap();
            work.set_timestamp(ts(20)).unwrap();
            write(&mut work, &table, "a").unwrap();
            work.commit().unwrap();
            assert_eq!(
                std::mem::take(&mut *notes.lock().unwrap()),
                ["first committed at 20", "second committed at 20", "third committed at 20"]
            );
        } else {
            drop(work);
            assert_eq!(
                std::mem::take(&mut *notes.lock().unwrap()),
                ["third rolled back", "second rolled back", "first rolled back"]
            );
        }
    }
    // A unit without writes commits its changes too; there is no timestamp then.
    let mut work = WriteUnitOfWork::begin(&mut unit);
    work.register_change(Box::new(Noted("alone", notes.clone()))).unwrap();
    work.commit().unwrap();
    assert_eq!(std::mem::take(&mut *notes.lock().unwrap()), ["alone committed at 0"]);
}

pub(super) fn x4_changes_see_the_commit_and_a_failed_commit_rolls_them_back(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    let (engine, table_of_change) = (store.engine().clone(), table.clone());
    let mut unit = store.recovery_unit();
    let mut work = WriteUnitOfWork::begin(&mut unit);
    write(&mut work, &table, "a").unwrap();
    let seen = Arc::new(Mutex::new(String::new()));
    let seen_by_change = seen.clone();
    work.on_commit(move |_| {
        let transaction = engine.begin(BeginOptions::default()).unwrap();
        *seen_by_change.lock().unwrap() = dump(&*transaction, &table_of_change);
    })
    .unwrap();
    work.commit().unwrap();
    assert_eq!(*seen.lock().unwrap(), "a=x");

    let mut running = store.start();
    put(&mut running, &table, "b", "1").unwrap();
    let rolled_back = Arc::new(AtomicU64::new(0));
    let counter = rolled_back.clone();
    let mut work = WriteUnitOfWork::begin(&mut unit);
    work.on_rollback(move || counter.store(1, Ordering::Relaxed)).unwrap();
    fails!(write(&mut work, &table, "b"), WriteConflict);
    fails!(work.commit(), WriteConflict);
    assert_eq!(rolled_back.load(Ordering::Relaxed), 1);
}

pub(super) fn x4_pre_commit_hooks_may_refuse_the_commit(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    let notes = Arc::new(Mutex::new(Vec::new()));
    let mut unit = store.recovery_unit();
    let mut work = WriteUnitOfWork::begin(&mut unit);
    let in_hook = table.clone();
    work.register_pre_commit_hook(Box::new(move |unit| write(unit, &in_hook, "from the hook"))).unwrap();
    work.commit().unwrap();
    assert_eq!(store.dump(&table), "from the hook=x");
    let mut work = WriteUnitOfWork::begin(&mut unit);
    work.register_change(Box::new(Noted("change", notes.clone()))).unwrap();
    write(&mut work, &table, "a").unwrap();
    work.register_pre_commit_hook(Box::new(|_| Err(StorageError::WriteConflict))).unwrap();
    fails!(work.commit(), WriteConflict);
    assert_eq!(*notes.lock().unwrap(), ["change rolled back"]);
    assert_eq!(store.dump(&table), "from the hook=x");
}

pub(super) fn x4_a_released_unit_can_be_resumed(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    let notes = Arc::new(Mutex::new(Vec::new()));
    let mut unit = store.recovery_unit();
    let mut work = WriteUnitOfWork::begin(&mut unit);
    write(&mut work, &table, "a").unwrap();
    work.release().unwrap();
    assert!(unit.in_unit_of_work());
    let mut work = WriteUnitOfWork::resume(&mut unit).unwrap();
    assert_eq!(seen(&mut work, &table), "a=x");
    write(&mut work, &table, "b").unwrap();
    fails!(WriteUnitOfWork::resume(&mut work), IllegalOperation);
    work.commit().unwrap();
    assert_eq!(store.dump(&table), "a=x b=x");
    fails!(WriteUnitOfWork::resume(&mut unit), IllegalOperation);
    // Dropped with everything.
    let mut work = WriteUnitOfWork::begin(&mut unit);
    work.register_change(Box::new(Noted("change", notes.clone()))).unwrap();
    write(&mut work, &table, "c").unwrap();
    work.release().unwrap();
    drop(unit);
    assert_eq!(*notes.lock().unwrap(), ["change rolled back"]);
    assert_eq!(store.dump(&table), "a=x b=x");
}

pub(super) fn x8_grouping_of_oplog_entries_is_carried(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let mut unit = store.recovery_unit();
    let mut outer = WriteUnitOfWork::begin_grouped(&mut unit).unwrap();
    assert!(outer.groups_oplog_entries());
    let mut inner = WriteUnitOfWork::begin(&mut outer);
    assert!(inner.groups_oplog_entries());
    let innermost = WriteUnitOfWork::begin_grouped(&mut inner).unwrap();
    innermost.commit().unwrap();
    inner.commit().unwrap();
    outer.commit().unwrap();
    let mut outer = WriteUnitOfWork::begin(&mut unit);
    assert!(!outer.groups_oplog_entries());
    fails!(WriteUnitOfWork::begin_grouped(&mut outer), IllegalOperation);
}

pub(super) fn x8_a_unit_has_one_way_to_its_timestamps(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    let mut unit = store.recovery_unit();
    unit.set_commit_timestamp(ts(10)).unwrap();
    fails!(unit.set_commit_timestamp(ts(20)), IllegalOperation);
    for key in ["a", "b"] {
        let mut work = WriteUnitOfWork::begin(&mut unit);
        fails!(work.set_timestamp(ts(20)), IllegalOperation);
        fails!(work.clear_commit_timestamp(), IllegalOperation);
        write(&mut work, &table, key).unwrap();
        work.commit().unwrap();
    }
    unit.clear_commit_timestamp().unwrap();
    let mut work = WriteUnitOfWork::begin(&mut unit);
    fails!(work.set_commit_timestamp(ts(20)), IllegalOperation);
    write(&mut work, &table, "c").unwrap();
    work.set_timestamp(ts(20)).unwrap();
    assert_eq!(work.commit_timestamp(), Some(ts(20)));
    work.commit().unwrap();
    let mut work = WriteUnitOfWork::begin(&mut unit);
    write(&mut work, &table, "untimestamped").unwrap();
    work.commit().unwrap();
    assert_eq!(store.dump_at(&table, 9), "untimestamped=x");
    assert_eq!(store.dump_at(&table, 10), "a=x b=x untimestamped=x");
    assert_eq!(store.dump_at(&table, 20), "a=x b=x c=x untimestamped=x");
}

pub(super) fn x4_a_prepared_unit_gets_its_timestamps_afterwards(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    let notes = Arc::new(Mutex::new(Vec::new()));
    let mut unit = store.recovery_unit();
    let mut work = WriteUnitOfWork::begin(&mut unit);
    write(&mut work, &table, "a").unwrap();
    work.register_change(Box::new(Noted("change", notes.clone()))).unwrap();
    fails!(work.set_durable_timestamp(ts(30)), IllegalOperation);
    work.prepare(ts(10)).unwrap();
    assert!(work.is_prepared());
    fails!(work.set_timestamp(ts(20)), IllegalOperation);
    fails!(write(&mut work, &table, "b"), IllegalOperation);
    work.set_commit_timestamp(ts(20)).unwrap();
    work.set_durable_timestamp(ts(30)).unwrap();
    work.commit().unwrap();
    assert_eq!((store.dump_at(&table, 19), store.dump_at(&table, 20)), ("".into(), "a=x".into()));
    assert_eq!(*notes.lock().unwrap(), ["change committed at 20"]);
    let mut work = WriteUnitOfWork::begin(&mut unit);
    work.set_timestamp(ts(40)).unwrap();
    fails!(work.prepare(ts(40)), IllegalOperation);
}

pub(super) fn x7_each_read_source_sees_its_data(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    for timestamp in [10, 20, 30] {
        store.put(&table, &timestamp.to_string(), "x", timestamp);
    }
    let slot = store.reserve_slot(ts(40)).unwrap();
    store.put(&table, "50", "x", 50);
    let replication = Arc::new(Replication::default());
    let mut unit = RecoveryUnit::new(store.engine().clone(), replication.clone());
    let mut check = |source: ReadSource, timestamp: Option<u64>, expected: &str| {
        unit.abandon_snapshot().unwrap();
        unit.set_read_source(source).unwrap();
        assert_eq!(seen(&mut unit, &table), expected, "{source:?}");
        assert_eq!(unit.read_timestamp(), timestamp.map(ts), "{source:?}");
    };
    check(ReadSource::NoTimestamp, None, "10=x 20=x 30=x 50=x");
    check(ReadSource::LastApplied, None, "10=x 20=x 30=x 50=x");
    replication.applied.store(20, Ordering::Relaxed);
    replication.majority.store(10, Ordering::Relaxed);
    check(ReadSource::LastApplied, Some(20), "10=x 20=x");
    check(ReadSource::MajorityCommitted, Some(10), "10=x");
    check(ReadSource::Provided(ts(30)), Some(30), "10=x 20=x 30=x");
    check(ReadSource::AllDurable, Some(39), "10=x 20=x 30=x");
    drop(slot);
    check(ReadSource::AllDurable, Some(50), "10=x 20=x 30=x 50=x");
    // Resolved anew for each snapshot.
    replication.majority.store(20, Ordering::Relaxed);
    check(ReadSource::MajorityCommitted, Some(20), "10=x 20=x");
}

pub(super) fn x7_read_sources_and_oldest(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    store.put(&table, "a", "1", 10);
    store.put(&table, "a", "2", 30);
    store.set_oldest(ts(20), false).unwrap();
    let replication = Arc::new(Replication::default());
    let mut unit = RecoveryUnit::new(store.engine().clone(), replication.clone());
    unit.set_read_source(ReadSource::MajorityCommitted).unwrap();
    fails!(unit.reader(), IllegalOperation);
    // What replication named falls behind oldest for a moment.
    replication.majority.store(15, Ordering::Relaxed);
    assert_eq!((seen(&mut unit, &table), unit.read_timestamp()), ("a=1".into(), Some(ts(20))));
    fails!(unit.set_read_source(ReadSource::NoTimestamp), IllegalOperation);
    unit.set_read_source(ReadSource::MajorityCommitted).unwrap();
    unit.abandon_snapshot().unwrap();
    unit.set_read_source(ReadSource::Provided(ts(15))).unwrap();
    assert_eq!(unit.read_timestamp(), Some(ts(15)));
    fails!(unit.reader(), SnapshotTooOld);
    unit.set_round_up_to_oldest(true).unwrap();
    assert_eq!((seen(&mut unit, &table), unit.read_timestamp()), ("a=1".into(), Some(ts(20))));
}

pub(super) fn x7_prepare_behaviour_is_passed_on(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    store.put(&table, "a", "old", 5);
    let _prepared = store.prepared(&table, "a", "new", 10);
    let mut unit = store.recovery_unit();
    fails!(unit.reader().unwrap().get(&table, b"a"), PrepareConflict);
    fails!(unit.set_prepare_behaviour(PrepareBehaviour::Ignore), IllegalOperation);
    unit.abandon_snapshot().unwrap();
    unit.set_prepare_behaviour(PrepareBehaviour::Ignore).unwrap();
    unit.set_urgency(Urgency::Exempt).unwrap();
    assert_eq!(seen(&mut unit, &table), "a=old");
    let mut work = WriteUnitOfWork::begin(&mut unit);
    fails!(write(&mut work, &table, "b"), IllegalOperation);
}

pub(super) fn x8_slots_are_filled_by_the_unit(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let oplog = OplogRecordStore::new(store.engine().clone()).unwrap();
    let mut unit = store.recovery_unit();
    let mut work = WriteUnitOfWork::begin(&mut unit);
    work.preallocate_snapshot().unwrap();
    let slot = store.reserve_slot(ts(10)).unwrap();
    work.hold_slot(slot).unwrap();
    work.set_timestamp(ts(10)).unwrap();
    oplog.insert(&mut work, ts(10), b"entry").unwrap();
    store.append(20, "later");
    assert_eq!(store.dump_oplog(), "");
    work.commit().unwrap();
    assert_eq!(store.dump_oplog(), "10=entry 20=later");
}

pub(super) fn x5_a_conflict_is_tried_again_until_the_other_is_done(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    let mut other = Some(store.start());
    put(other.as_mut().unwrap(), &table, "a", "other").unwrap();
    let (mut retry, counters) = (Retry::new(RetryPolicy::default()), RetryCounters::default());
    let mut unit = store.recovery_unit();
    let mut pauses_ms = Vec::new();
    loop {
        if let Some(other) = other.take_if(|_| pauses_ms.len() == 6) {
            other.commit().unwrap();
        }
        let mut work = WriteUnitOfWork::begin(&mut unit);
        match write(&mut work, &table, "a").and_then(|()| work.commit()) {
            Ok(_) => break,
            Err(error) => match retry.decide(error, &counters) {
                RetryDecision::Again(pause) => pauses_ms.push(pause.as_millis()),
                other => panic!("a conflict is tried again, not {other:?}"),
            },
        }
        unit.abandon_snapshot().unwrap();
    }
    assert_eq!(store.dump(&table), "a=x");
    assert_eq!(pauses_ms, [0, 0, 0, 0, 1, 2], "four attempts at once, then pauses that double");
    assert_eq!(counters.write_conflicts.load(Ordering::Relaxed), 6);
}
