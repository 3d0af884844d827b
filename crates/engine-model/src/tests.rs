//! What the suite cannot see: the disk's possible states, and the cases that the rules leave open.

use crate::{Mode, ModelDisk, ModelEngine};
use pando_base::Timestamp;
use pando_storage::*;
use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

fn store() -> (Arc<ModelDisk>, Arc<ModelEngine>) {
    let disk = ModelDisk::new();
    let engine = ModelEngine::open(&disk, Mode::ReplicaSet).unwrap();
    (disk, engine)
}

fn begin(engine: &ModelEngine) -> Box<dyn Transaction> {
    engine.begin(BeginOptions::default()).unwrap()
}

/// Writes a pair with redo, and an oplog entry with it.
fn write(engine: &ModelEngine, table: &Table, key: &str, timestamp: u64) {
    let mut transaction = begin(engine);
    transaction.put(table, key.as_bytes(), b"").unwrap();
    transaction.append_oplog(Timestamp(timestamp), b"").unwrap();
    transaction.commit().unwrap();
}

/// The keys and the oplog's timestamps.
fn seen(engine: &ModelEngine) -> (String, Vec<u64>) {
    let table = engine.open_table("t").unwrap();
    let mut cursor = engine.committed_cursor(&table).unwrap();
    let mut keys = String::new();
    while let Some(entry) = cursor.next().unwrap() {
        keys.push_str(std::str::from_utf8(entry.key).unwrap());
    }
    let mut reader = engine.oplog().unwrap().backward().unwrap();
    let mut timestamps = Vec::new();
    while let Some(entry) = reader.next().unwrap() {
        timestamps.insert(0, entry.timestamp.0);
    }
    (keys, timestamps)
}

#[test]
fn x21_a_crash_keeps_a_prefix_of_the_log() {
    let (disk, engine) = store();
    let table = engine.create_table("t", &TableOptions::default()).unwrap();
    write(&engine, &table, "a", 10);
    engine.flush_log().unwrap();
    write(&engine, &table, "b", 20);
    write(&engine, &table, "c", 30);
    assert_eq!(disk.unflushed_count(), 2);
    assert_eq!(disk.unflushed()[1].oplog, [Timestamp(30)]);
    assert!(disk.unflushed()[1].keys.contains(&("t".into(), b"c".to_vec())));
    for (kept, keys, timestamps) in [(0, "a", vec![10]), (1, "ab", vec![10, 20]), (2, "abc", vec![10, 20, 30])] {
        let copy = disk.copy();
        copy.crash_keeping(kept);
        let engine = ModelEngine::open(&copy, Mode::ReplicaSet).unwrap();
        assert_eq!(seen(&engine), (keys.into(), timestamps));
    }
}

#[test]
fn x26_entries_after_a_hole_go_and_their_redo_stays() {
    let (disk, engine) = store();
    let table = engine.create_table("t", &TableOptions::default()).unwrap();
    write(&engine, &table, "a", 10);
    let slot = engine.reserve_slot(Timestamp(15)).unwrap();
    write(&engine, &table, "b", 20);
    engine.flush_log().unwrap();
    assert_eq!(disk.no_holes_candidates(), [Timestamp(14)]);
    disk.crash();
    drop(slot);
    let engine = ModelEngine::open(&disk, Mode::ReplicaSet).unwrap();
    assert_eq!(seen(&engine), ("ab".into(), vec![10]));
    // What is cut off stays cut off, whatever comes after it.
    write(&engine, &engine.open_table("t").unwrap(), "c", 30);
    engine.flush_log().unwrap();
    disk.crash();
    assert_eq!(seen(&ModelEngine::open(&disk, Mode::ReplicaSet).unwrap()), ("abc".into(), vec![10, 30]));
}

#[test]
fn an_engine_from_before_a_crash_reaches_nothing() {
    let (disk, engine) = store();
    let table = engine.create_table("t", &TableOptions::default()).unwrap();
    write(&engine, &table, "a", 10);
    engine.flush_log().unwrap();
    disk.crash();
    let next = ModelEngine::open(&disk, Mode::ReplicaSet).unwrap();
    let mut late = begin(&engine);
    assert!(matches!(late.put(&table, b"b", b""), Err(StorageError::Io(_))));
    assert!(engine.checkpoint(CheckpointKind::Full).is_err() && engine.shut_down().is_err());
    next.flush_log().unwrap();
    disk.crash();
    assert_eq!(seen(&ModelEngine::open(&disk, Mode::ReplicaSet).unwrap()), ("a".into(), vec![10]));
}

#[test]
fn x17_a_bulk_load_survives_by_itself() {
    let (disk, engine) = store();
    engine.create_table("early", &TableOptions::default()).unwrap();
    let table = engine.create_table("t", &TableOptions { replicated: true, ..TableOptions::default() }).unwrap();
    let mut loader = engine.bulk_load(&table).unwrap();
    loader.add(b"a", b"").unwrap();
    loader.finish(TableSize::new(1, 0)).unwrap();
    disk.crash();
    let engine = ModelEngine::open(&disk, Mode::ReplicaSet).unwrap();
    assert_eq!((engine.idents(), seen(&engine).0), (vec!["t".into()], "a".into()));
    assert_eq!(engine.table_size(&engine.open_table("t").unwrap()), Ok(TableSize::new(1, 0)));
}

#[test]
fn open_questions_are_told() {
    let (_disk, engine) = store();
    let table = engine.create_table("t", &TableOptions { replicated: true, ..TableOptions::default() }).unwrap();
    let mut running = begin(&engine);
    running.put(&table, b"a", b"").unwrap();
    let mut prepared = begin(&engine);
    prepared.put(&table, b"b", b"").unwrap();
    prepared.prepare(Timestamp(5)).unwrap();
    let mut other = begin(&engine);
    assert_eq!(other.truncate(&table, b"b", None), Err(StorageError::PrepareConflict));
    assert!(!engine.is_unspecified());
    assert_eq!(other.truncate(&table, b"", None), Err(StorageError::WriteConflict));
    assert!(engine.is_unspecified());
    drop(other);
    assert!(!engine.is_unspecified());
}

#[test]
fn x4_waits_are_woken_both_ways() {
    let (_disk, engine) = store();
    let table = engine.create_table("t", &TableOptions { replicated: true, ..TableOptions::default() }).unwrap();
    let mut prepared = begin(&engine);
    prepared.put(&table, b"a", b"").unwrap();
    prepared.prepare(Timestamp(5)).unwrap();
    let mut wait = Box::pin(engine.prepare_wait(engine.prepare_epoch()));
    let mut context = Context::from_waker(Waker::noop());
    assert!(wait.as_mut().poll(&mut context).is_pending());
    prepared.roll_back();
    assert_eq!(wait.as_mut().poll(&mut context), Poll::Ready(Ok(())));
    engine.prepare_wait(0).block().unwrap();
}

#[test]
fn x21_a_change_of_mode_keeps_everything() {
    let (disk, engine) = store();
    let table = engine.create_table("t", &TableOptions { replicated: true, ..TableOptions::default() }).unwrap();
    let mut transaction = begin(&engine);
    transaction.put(&table, b"a", b"").unwrap();
    transaction.commit().unwrap();
    engine.shut_down().unwrap();
    let engine = ModelEngine::open(&disk, Mode::StandAlone).unwrap();
    assert!(engine.oplog().is_none());
    disk.crash();
    assert_eq!(seen(&ModelEngine::open(&disk, Mode::ReplicaSet).unwrap()).0, "a");
}
