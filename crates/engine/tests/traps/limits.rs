//! When memory runs short: who is slowed, who is refused, and with which error.

use crate::store::{Store, ts};
use pando_engine::{EngineOptions, Mode};
use pando_storage::{Result, StorageError, Table, Transaction};

const MEMORY_BYTES: u64 = 2 << 20;
const VALUE: [u8; 10_000] = [5; 10_000];

fn store_with(mode: Mode, threshold: f64) -> Store {
    Store::with_options(EngineOptions {
        memory_bytes: MEMORY_BYTES,
        transaction_too_large_threshold: threshold,
        ..EngineOptions::stepped(mode)
    })
}

/// Writes this many keys with a prefix, or stops with an error.
fn fill(transaction: &mut Box<dyn Transaction>, table: &Table, prefix: &str, keys: u64) -> Result<()> {
    (0..keys).try_for_each(|number| transaction.put(table, format!("{prefix}-{number:05}").as_bytes(), &VALUE))
}

#[test]
fn x5_a_transaction_that_fills_the_cache_is_too_large() {
    for mode in [Mode::StandAlone, Mode::ReplicaSet] {
        let store = store_with(mode, 0.75);
        let table = store.local("t");
        let mut large = store.start();
        let refused = fill(&mut large, &table, "large", 1_000);
        assert!(matches!(refused, Err(StorageError::TransactionTooLargeForCache(_))), "{refused:?}");
        // It is refused near the limit, not at once and not far beyond.
        let dirty_bytes = large.dirty_bytes();
        assert!((MEMORY_BYTES * 4 / 10..MEMORY_BYTES * 7 / 10).contains(&dirty_bytes), "{dirty_bytes}");
        // It can read, but only roll back.
        assert!(large.get(&table, b"large-00000").unwrap().is_some());
        assert!(large.put(&table, b"more", b"value").is_err());
        assert!(matches!(large.commit(), Err(StorageError::WriteConflict)));
        assert_eq!(store.figure("memory.transaction_too_large"), 1);
        assert_eq!((store.figure("overlay.bytes"), store.figure("overlay.dirty_bytes")), (0, 0));
        // The next one has room.
        let mut small = store.start();
        fill(&mut small, &table, "small", 20).unwrap();
        small.commit().unwrap();
    }
}

#[test]
fn x5_a_transaction_that_no_checkpoint_can_make_room_for_is_not_slowed_down_first() {
    let options = EngineOptions { memory_bytes: 32 * MEMORY_BYTES, ..EngineOptions::stepped(Mode::ReplicaSet) };
    let store = Store::with_options(options);
    let table = store.local("t");
    let mut large = store.start();
    let refused = fill(&mut large, &table, "large", 10_000);
    assert!(matches!(refused, Err(StorageError::TransactionTooLargeForCache(_))), "{refused:?}");
    assert_eq!(store.figure("memory.slowed_writes"), 1, "only the write that was refused had to wait");
}

#[test]
fn x5_many_transactions_that_fill_the_cache_are_temporarily_unavailable() {
    let store = store_with(Mode::StandAlone, 0.75);
    let table = store.local("t");
    let mut writers: Vec<Box<dyn Transaction>> = (0..8).map(|_| store.start()).collect();
    let mut refusal = None;
    'filling: for round in 0..100 {
        for (number, writer) in writers.iter_mut().enumerate() {
            if let Err(error) = fill(writer, &table, &format!("{number}-{round}"), 1) {
                refusal = Some(error);
                break 'filling;
            }
        }
    }
    assert!(matches!(refusal, Some(StorageError::TemporarilyUnavailable(_))), "{refusal:?}");
    assert_eq!(store.figure("memory.temporarily_unavailable"), 1);
    // Once some of them have committed, there is room again: what is committed can go to the base.
    let last = writers.pop().unwrap();
    writers.into_iter().for_each(|writer| drop(writer.commit()));
    drop(last);
    let mut next = store.start();
    fill(&mut next, &table, "next", 20).unwrap();
    next.commit().unwrap();
}

#[test]
fn x5_a_threshold_of_one_never_says_too_large() {
    let store = store_with(Mode::StandAlone, 1.0);
    let table = store.local("t");
    let mut large = store.start();
    let refused = fill(&mut large, &table, "large", 1_000);
    assert!(matches!(refused, Err(StorageError::TemporarilyUnavailable(_))), "{refused:?}");
    drop(large);
    assert_eq!(store.figure("overlay.bytes"), 0);
}

#[test]
fn x5_committed_writes_are_never_refused() {
    for mode in [Mode::StandAlone, Mode::ReplicaSet] {
        let store = store_with(mode, 0.75);
        let table = store.local("t");
        for number in 0..2_000u64 {
            let mut transaction = store.start();
            transaction.put(&table, format!("{:05}", number % 700).as_bytes(), &VALUE).unwrap();
            transaction.commit().unwrap();
            assert!(store.figure("overlay.bytes") < MEMORY_BYTES as i64);
        }
    }
}

#[test]
fn x5_x20_exempt_transactions_are_never_refused() {
    let store = store_with(Mode::ReplicaSet, 0.75);
    let table = store.replicated("t");
    store.stable_from_start(1);
    let mut large = store.start_exempt();
    fill(&mut large, &table, "large", 600).unwrap();
    assert!(large.dirty_bytes() > 2 * MEMORY_BYTES);
    // Others are refused meanwhile, and it is not their fault.
    let mut other = store.start();
    let refused = fill(&mut other, &table, "other", 1);
    assert!(matches!(refused, Err(StorageError::TemporarilyUnavailable(_))), "{refused:?}");
    drop(other);
    // Readers are not.
    assert_eq!(store.start().get(&table, b"large-00000").unwrap(), None);
    // A prepared transaction ends whatever the memory is like.
    large.prepare(ts(5)).unwrap();
    large.set_commit_timestamp(ts(6)).unwrap();
    large.set_durable_timestamp(ts(7)).unwrap();
    large.commit().unwrap();
    for round in 0..100u64 {
        let mut applier = store.start_exempt();
        applier.set_commit_timestamp(ts(10 + round)).unwrap();
        fill(&mut applier, &table, "applied", 5).unwrap();
        applier.commit().unwrap();
    }
    // A normal writer makes the room that it needs: everything is committed.
    let mut normal = store.start();
    fill(&mut normal, &table, "normal", 1).unwrap();
    normal.commit().unwrap();
    assert!(store.figure("overlay.bytes") < MEMORY_BYTES as i64, "{}", store.figure("overlay.bytes"));
    assert_eq!(store.start().get(&table, b"large-00599").unwrap().as_deref(), Some(&VALUE[..]));
}

/// Overwriting a key again and again in one transaction does not count each time.
#[test]
fn x5_dirty_bytes_are_what_is_there() {
    let store = store_with(Mode::StandAlone, 0.75);
    let table = store.local("t");
    let mut transaction = store.start();
    for _ in 0..1_000 {
        transaction.put(&table, b"key", &VALUE).unwrap();
    }
    assert!(store.figure("overlay.dirty_bytes") < 20_000);
    assert!(transaction.dirty_bytes() < 20_000, "{}", transaction.dirty_bytes());
    transaction.commit().unwrap();
}

/// A large running transaction cannot be taken by any checkpoint: none is tried for those who are refused because of it.
#[test]
fn x5_x20_no_checkpoint_is_taken_in_vain() {
    let store = Store::with_options(EngineOptions {
        memory_bytes: 8 * MEMORY_BYTES,
        ..EngineOptions::stepped(Mode::ReplicaSet)
    });
    let table = store.replicated("t");
    store.stable_from_start(1);
    let mut large = store.start_exempt();
    large.set_commit_timestamp(ts(5)).unwrap();
    fill(&mut large, &table, "large", 1_000).unwrap();
    let before = (store.figure("checkpoint.taken"), store.figure("checkpoint.spills"));
    for number in 0..20 {
        let mut small = store.start();
        let refused = fill(&mut small, &table, &format!("small-{number}"), 1);
        assert!(matches!(refused, Err(StorageError::TemporarilyUnavailable(_))), "{refused:?}");
    }
    assert_eq!((store.figure("checkpoint.taken"), store.figure("checkpoint.spills")), before);
    // Once it is committed, the next writer makes the room.
    large.commit().unwrap();
    let mut small = store.start();
    fill(&mut small, &table, "small", 1).unwrap();
    assert!(store.figure("checkpoint.spills") > before.1);
}
