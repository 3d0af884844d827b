//! Record stores over the engine under test.

use super::factory::EngineFactoryMaker;
use super::support::*;
use crate::*;
use pando_base::RecordId;
use pando_env::Random;
use std::collections::{BTreeMap, BTreeSet};

fn long(number: i64) -> RecordId {
    RecordId::Long(number)
}

fn bytes(text: &str) -> RecordId {
    RecordId::Bytes(text.as_bytes().into())
}

fn make(store: &Store, kind: RecordIdKind) -> RecordStore {
    RecordStore::new(store.engine().clone(), store.replicated("records"), kind)
}

fn shown_record(record: Option<Record<'_>>) -> String {
    match record {
        None => "none".to_owned(),
        Some(Record { id: RecordId::Long(number), value }) => format!("{number}={}", text(value)),
        Some(Record { id: RecordId::Bytes(id), value }) => format!("{}={}", text(&id), text(value)),
    }
}

fn all(store: &Store, records: &RecordStore, direction: Direction) -> String {
    let (mut unit, mut words) = (store.recovery_unit(), Vec::new());
    let mut cursor = records.cursor(direction);
    while let Some(record) = cursor.next(&mut unit).unwrap() {
        words.push(shown_record(Some(record)));
    }
    words.join(" ")
}

/// Runs a unit of work and commits it.
fn in_unit<T>(store: &Store, call: impl FnOnce(&mut RecoveryUnit) -> Result<T>) -> T {
    let mut unit = store.recovery_unit();
    let mut work = WriteUnitOfWork::begin(&mut unit);
    let value = call(&mut work).unwrap();
    work.commit().unwrap();
    value
}

fn counts(records: &RecordStore) -> (i64, i64) {
    (records.num_records().unwrap(), records.data_size_bytes().unwrap())
}

pub(super) fn x4_records_are_inserted_updated_and_deleted(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let records = make(&store, RecordIdKind::Long);
    let ids = in_unit(&store, |unit| {
        let first = records.insert(unit, b"one")?;
        let second = records.insert(unit, b"two")?;
        assert_eq!(records.get(unit, &second)?.as_deref(), Some(&b"two"[..]));
        Ok((first, second))
    });
    assert_eq!(ids, (long(1), long(2)));
    assert_eq!(counts(&records), (2, 6));
    in_unit(&store, |unit| {
        assert!(records.update(unit, &long(1), b"longer")?);
        assert!(!records.update(unit, &long(9), b"x")?);
        records.update_known(unit, &long(2), 3, b"2")?;
        records.insert(unit, b"three")
    });
    assert_eq!(all(&store, &records, Direction::Forward), "1=longer 2=2 3=three");
    assert_eq!(all(&store, &records, Direction::Reverse), "3=three 2=2 1=longer");
    assert_eq!(counts(&records), (3, 12));
    in_unit(&store, |unit| {
        assert!(records.delete(unit, &long(2))?);
        assert!(!records.delete(unit, &long(2))?);
        records.delete_known(unit, &long(3), 5)
    });
    assert_eq!((all(&store, &records, Direction::Forward), counts(&records)), ("1=longer".into(), (1, 6)));
}

pub(super) fn x4_rolled_back_records_do_not_count(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let records = make(&store, RecordIdKind::Long);
    let mut unit = store.recovery_unit();
    fails!(records.insert(&mut unit, b"x"), IllegalOperation);
    let mut work = WriteUnitOfWork::begin(&mut unit);
    let lost = records.insert(&mut work, b"lost").unwrap();
    drop(work);
    assert_eq!((all(&store, &records, Direction::Forward), counts(&records)), ("".into(), (0, 0)));
    let kept = in_unit(&store, |unit| records.insert(unit, b"kept"));
    assert!(kept > lost, "an id is not given out twice");
}

pub(super) fn x4_ids_go_on_after_the_largest(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let records = make(&store, RecordIdKind::Long);
    in_unit(&store, |unit| records.insert_at(unit, &long(-5), b"low"));
    assert_eq!(in_unit(&store, |unit| records.insert(unit, b"x")), long(1));
    in_unit(&store, |unit| records.insert_at(unit, &long(100), b"high"));
    assert_eq!(in_unit(&store, |unit| records.insert(unit, b"x")), long(101));
    assert_eq!(records.reserve_record_ids(10).unwrap(), 102..112);
    assert_eq!(all(&store, &records, Direction::Forward), "-5=low 1=x 100=high 101=x");
    // Another store object over the same table looks at the largest key.
    let again = RecordStore::new(store.engine().clone(), records.table().clone(), RecordIdKind::Long);
    assert_eq!(in_unit(&store, |unit| again.insert(unit, b"y")), long(102));
    in_unit(&store, |unit| again.insert_at(unit, &long(i64::MAX), b"last"));
    fails!(again.reserve_record_ids(1), IllegalOperation);
}

pub(super) fn x28_clustered_stores_have_byte_ids(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let records = make(&store, RecordIdKind::Bytes);
    for id in ["b", "a", "ab", ""] {
        in_unit(&store, |unit| records.insert_at(unit, &bytes(id), b"x"));
    }
    assert_eq!(all(&store, &records, Direction::Forward), "=x a=x ab=x b=x");
    let mut unit = store.recovery_unit();
    let mut work = WriteUnitOfWork::begin(&mut unit);
    fails!(records.insert_at(&mut work, &bytes("ab"), b"again"), DuplicateKey);
    fails!(records.insert_at(&mut work, &long(1), b"x"), IllegalOperation);
    fails!(records.insert(&mut work, b"x"), IllegalOperation);
    drop(work);
    fails!(records.get(&mut unit, &long(1)), IllegalOperation);
    assert_eq!(counts(&records), (4, 4));
}

pub(super) fn x8_vectored_inserts_commit_at_their_timestamps(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let records = make(&store, RecordIdKind::Long);
    let new = |value: &'static [u8], timestamp| NewRecord { id: None, value, timestamp: ts(timestamp) };
    let batch = [new(b"a", 10), NewRecord { id: Some(long(50)), value: b"c", timestamp: ts(15) }, new(b"b", 20)];
    let ids = in_unit(&store, |unit| records.insert_records(unit, &batch));
    assert_eq!(ids, [long(1), long(50), long(2)]);
    let mut unit = store.recovery_unit();
    for (timestamp, expected) in [(9, "none"), (10, "1=a"), (15, "1=a 50=c"), (20, "1=a 2=b 50=c")] {
        unit.abandon_snapshot().unwrap();
        unit.set_read_source(ReadSource::Provided(ts(timestamp))).unwrap();
        let mut cursor = records.cursor(Direction::Forward);
        let mut words = vec![shown_record(cursor.next(&mut unit).unwrap())];
        while let Some(record) = cursor.next(&mut unit).unwrap() {
            words.push(shown_record(Some(record)));
        }
        assert_eq!(words.join(" "), expected);
    }
    unit.abandon_snapshot().unwrap();
    store.stable_from_start(15);
    assert_eq!((store.stable_size(records.table()), counts(&records)), ((2, 2), (3, 3)));
}

pub(super) fn x25_truncation_counts_exactly(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let records = make(&store, RecordIdKind::Long);
    for _ in 0..10 {
        in_unit(&store, |unit| records.insert(unit, b"value"));
    }
    // From 3 to 5, counted here.
    in_unit(&store, |unit| records.range_truncate(unit, Some(&long(3)), Some(&long(5)), None));
    assert_eq!(counts(&records), (7, 35));
    // Told by the caller.
    let told = Some(TableSize::new(2, 10));
    in_unit(&store, |unit| records.range_truncate(unit, None, Some(&long(2)), told));
    assert_eq!(all(&store, &records, Direction::Forward), "6=value 7=value 8=value 9=value 10=value");
    assert_eq!(counts(&records), (5, 25));
    in_unit(&store, |unit| records.range_truncate(unit, Some(&long(9)), None, None));
    assert_eq!(
        (all(&store, &records, Direction::Reverse), counts(&records)),
        ("8=value 7=value 6=value".into(), (3, 15))
    );
    // Everything, with own uncommitted records among it.
    in_unit(&store, |unit| {
        records.insert(unit, b"own")?;
        records.delete(unit, &long(6))?;
        records.truncate(unit)?;
        records.insert(unit, b"after")
    });
    assert_eq!(counts(&records), (1, 5));
    let mut unit = store.recovery_unit();
    fails!(records.range_truncate(&mut unit, None, None, None), IllegalOperation);
    fails!(records.truncate(&mut unit), IllegalOperation);
}

pub(super) fn x6_record_cursors_seek_save_and_restore(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let records = make(&store, RecordIdKind::Long);
    for number in [10, 20, 30, 40] {
        in_unit(&store, |unit| records.insert_at(unit, &long(number), b"x"));
    }
    let mut unit = store.recovery_unit();
    let (mut forward, mut reverse) = (records.cursor(Direction::Forward), records.cursor(Direction::Reverse));
    assert_eq!(shown_record(forward.seek(&mut unit, &long(15)).unwrap()), "20=x");
    assert_eq!(shown_record(reverse.seek(&mut unit, &long(35)).unwrap()), "30=x");
    assert_eq!(forward.value_bytes().as_deref(), Some(&b"x"[..]));
    forward.save();
    reverse.save();
    unit.abandon_snapshot().unwrap();
    in_unit(&store, |unit| {
        records.delete(unit, &long(20))?;
        records.delete(unit, &long(30))?;
        records.insert_at(unit, &long(25), b"new")
    });
    forward.restore(&mut unit).unwrap();
    assert_eq!(shown_record(forward.next(&mut unit).unwrap()), "25=new");
    // Without save and restore the next move does it.
    assert_eq!(shown_record(reverse.next(&mut unit).unwrap()), "25=new");
    assert_eq!(shown_record(reverse.next(&mut unit).unwrap()), "10=x");
    assert_eq!(shown_record(reverse.next(&mut unit).unwrap()), "none");
    assert_eq!(shown_record(forward.seek_exact(&mut unit, &long(30)).unwrap()), "none");
    assert_eq!(shown_record(forward.seek_exact(&mut unit, &long(40)).unwrap()), "40=x");
    // Also under another recovery unit.
    let mut other = store.recovery_unit();
    assert_eq!(shown_record(forward.next(&mut other).unwrap()), "none");
}

pub(super) fn x4_random_records_are_records_of_the_store(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let records = make(&store, RecordIdKind::Long);
    let mut unit = store.recovery_unit();
    let dice = Dice::new(3);
    assert_eq!(shown_record(records.cursor(Direction::Forward).random(&mut unit, &dice).unwrap()), "none");
    unit.abandon_snapshot().unwrap();
    for _ in 0..10 {
        in_unit(&store, |unit| records.insert(unit, b"x"));
    }
    let mut cursor = records.cursor(Direction::Forward);
    let mut seen = BTreeSet::new();
    for _ in 0..1000 {
        seen.insert(cursor.random(&mut unit, &dice).unwrap().unwrap().id);
    }
    assert_eq!(seen, (1..=10).map(long).collect());
}

pub(super) fn x17_counts_stay_exact_through_crashes(maker: &dyn EngineFactoryMaker) {
    let mut store = Store::replica_set(maker);
    drop(store.replicated("records"));
    store.stable_from_start(1);
    store.flush_log().unwrap();
    let (dice, mut timestamp) = (Dice::new(17), 1);
    for round in 0..6 {
        let table = store.open_table("records").unwrap();
        let records = RecordStore::new(store.engine().clone(), table, RecordIdKind::Long);
        let mut live: BTreeMap<RecordId, usize> = BTreeMap::new();
        let mut unit = store.recovery_unit();
        let mut cursor = records.cursor(Direction::Forward);
        while let Some(record) = cursor.next(&mut unit).unwrap() {
            live.insert(record.id, record.value.len());
        }
        let bytes: usize = live.values().sum();
        assert_eq!(counts(&records), (live.len() as i64, bytes as i64), "round {round}");
        drop((cursor, unit));
        for step in 0..40 {
            timestamp += 1;
            in_unit(&store, |unit| {
                unit.set_timestamp(ts(timestamp))?;
                let value = vec![b'v'; dice.below(50) as usize];
                let chosen = live.keys().nth(dice.below(live.len().max(1) as u64) as usize).cloned();
                match (dice.below(3), chosen) {
                    (0, Some(id)) => {
                        records.delete(unit, &id)?;
                        live.remove(&id);
                    }
                    (1, Some(id)) => {
                        records.update(unit, &id, &value)?;
                    }
                    _ => {
                        live.insert(records.insert(unit, &value)?, value.len());
                    }
                }
                Ok(())
            });
            if step == 25 {
                store.set_stable(ts(timestamp - 5)).unwrap();
                store.checkpoint_now();
            }
        }
        drop(records);
        store.crash();
    }
}

pub(super) fn x14_records_are_loaded_in_bulk(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let records = make(&store, RecordIdKind::Long);
    let mut loader = records.bulk_load().unwrap();
    for number in 1..=1000 {
        loader.add(&long(number), b"value").unwrap();
    }
    fails!(loader.add(&bytes("x"), b"value"), IllegalOperation);
    loader.finish().unwrap();
    assert_eq!(counts(&records), (1000, 5000));
    assert_eq!(in_unit(&store, |unit| records.insert(unit, b"next")), long(1001));
}

pub(super) fn x26_the_oplog_has_the_shape_of_a_record_store(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let oplog = OplogRecordStore::new(store.engine().clone()).unwrap();
    let at = |number| OplogRecordStore::record_id(ts(number)).unwrap();
    for number in [10, 20, 30] {
        let id = in_unit(&store, |unit| {
            unit.set_timestamp(ts(number))?;
            oplog.insert(unit, ts(number), b"entry")
        });
        assert_eq!((id.clone(), OplogRecordStore::timestamp(&id).unwrap()), (at(number), ts(number)));
    }
    let slot = store.reserve_slot(ts(40)).unwrap();
    store.append(50, "late");
    assert_eq!((oplog.num_records().unwrap(), oplog.data_size_bytes().unwrap()), (4, 19));
    assert_eq!(shown_entry(oplog.get(&at(20)).unwrap()), "20=entry");
    assert_eq!(shown_entry(oplog.get(&at(21)).unwrap()), "none");
    assert_eq!(shown_entry(oplog.get(&at(50)).unwrap()), "50=late");
    let mut forward = oplog.cursor(Direction::Forward).unwrap();
    assert_eq!(shown_entry(forward.seek(ts(25)).unwrap()), "30=entry");
    forward.save();
    forward.restore().unwrap();
    assert_eq!(shown_entry(forward.next().unwrap()), "none");
    assert_eq!(shown_entry(oplog.cursor(Direction::Reverse).unwrap().next().unwrap()), "50=late");
    drop(slot);
    assert_eq!(shown_entry(forward.next().unwrap()), "50=late");
    assert_eq!(shown_entry(forward.seek_exact(ts(20)).unwrap()), "20=entry");
    assert_eq!(shown_entry(forward.seek_exact(ts(21)).unwrap()), "none");
    assert_eq!(shown_entry(forward.seek_exact(ts(30)).unwrap()), "30=entry");
    oplog.truncate_after(&at(30), true).unwrap();
    fails!(forward.restore(), PositionLost);
    assert_eq!(store.dump_oplog(), "10=entry 20=entry");
    oplog.truncate().unwrap();
    assert_eq!(oplog.num_records().unwrap(), 0);
    fails!(OplogRecordStore::record_id(pando_base::Timestamp::MAX), IllegalOperation);
    fails!(OplogRecordStore::timestamp(&bytes("x")), IllegalOperation);
    fails!(OplogRecordStore::new(Store::stand_alone(maker).engine().clone()), IllegalOperation);
}
