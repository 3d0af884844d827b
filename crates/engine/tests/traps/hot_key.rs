//! One key with very many versions inside the history window, read at timestamps in the middle of them.
//!
//! That a read in memory takes a number of steps that grows with the logarithm only is proven beside the chain
//! (`overlay/tests.rs`); here the whole engine reads right, spills, and reads few bytes for a version in the middle.

use crate::store::{Dice, Store, is_long, ts};
use pando_engine::Mode;
use pando_storage::Table;

const HOT: &[u8] = b"hot";

fn versions() -> u64 {
    if is_long() { 3_000_000 } else { 300_000 }
}

fn value_of(timestamp: u64) -> Vec<u8> {
    let mut value = timestamp.to_le_bytes().to_vec();
    value.extend(Dice::new(timestamp).bytes(40));
    value
}

fn write_all(store: &Store, table: &Table, last: u64) {
    for timestamp in 2..=last {
        store.put(table, HOT, &value_of(timestamp), timestamp);
    }
}

fn check_reads(store: &Store, table: &Table, last: u64, reads: u64) {
    let mut dice = Dice::new(5);
    for _ in 0..reads {
        let timestamp = 2 + dice.below(last - 1);
        let found = store.start_at(timestamp).get(table, HOT).unwrap();
        assert!(found.as_deref() == Some(&value_of(timestamp)[..]), "at {timestamp}");
    }
    let latest = store.start().get(table, HOT).unwrap();
    assert!(latest.as_deref() == Some(&value_of(last)[..]));
    assert_eq!(store.start_at(1).get(table, HOT).unwrap(), None);
}

#[test]
fn x25_x7_a_hot_key_in_memory_and_on_disk() {
    let last = versions();
    let mut store = Store::new(Mode::ReplicaSet, 8 << 30);
    let table = store.replicated("t");
    store.stable_from_start(1);
    store.engine().set_oldest(ts(1), false).unwrap();
    store.put(&table, b"cold", b"value", 2);
    write_all(&store, &table, last);
    assert_eq!(store.figure("checkpoint.spills"), 0, "all of it is in memory");
    check_reads(&store, &table, last, 2_000);
    // A majority of the set has everything; the history stays.
    store.engine().set_stable(ts(last)).unwrap();
    assert!(store.checkpoint_now().taken);
    store.settle();
    check_reads(&store, &table, last, 500);
    drop(table);
    store.options.memory_bytes = 1 << 20;
    store.crash();
    let table = store.table("t");
    store.simulation.disk().reset_statistics();
    let reads = 200;
    check_reads(&store, &table, last, reads);
    // With next to no cache a read costs some blocks of each run, never the history.
    let read_bytes = store.base_io().bytes_read / reads;
    let history_bytes = store.figure("base.live_bytes") as u64;
    assert!(history_bytes > last * 40, "the history is there: {history_bytes} bytes");
    assert!(read_bytes < 300_000, "{read_bytes} bytes a read of {history_bytes}");
}

#[test]
fn x25_x20_a_hot_key_is_spilled() {
    let last = versions();
    let memory_bytes = 8 << 20;
    let mut store = Store::new(Mode::ReplicaSet, memory_bytes);
    let table = store.replicated("t");
    store.stable_from_start(1);
    store.engine().set_oldest(ts(1), false).unwrap();
    store.engine().checkpoint(pando_storage::CheckpointKind::Full).unwrap();
    for timestamp in 2..=last {
        store.put(&table, HOT, &value_of(timestamp), timestamp);
        if timestamp.is_multiple_of(1000) {
            store.settle();
            let overlay_bytes = store.figure("overlay.bytes");
            assert!(overlay_bytes <= memory_bytes as i64 * 9 / 10, "{overlay_bytes} bytes in the overlay");
        }
    }
    assert!(store.figure("checkpoint.spills") > 2);
    check_reads(&store, &table, last, 500);
    assert!(store.figure("base.runs_per_table_max") <= 8);
    store.engine().set_stable(ts(last / 2)).unwrap();
    assert!(store.checkpoint_now().taken);
    drop(table);
    store.crash();
    let table = store.table("t");
    check_reads(&store, &table, last / 2, 500);
}

/// The first version has no timestamp, as in a collection that was there before the set was initiated.
#[test]
fn x25_a_hot_key_over_an_untimestamped_version() {
    let last = 20_000;
    let store = Store::new(Mode::ReplicaSet, 1 << 30);
    let table = store.replicated("t");
    store.stable_from_start(1);
    store.engine().set_oldest(ts(1), false).unwrap();
    store.put(&table, HOT, b"before", 0);
    write_all(&store, &table, last);
    let mut dice = Dice::new(6);
    for _ in 0..500 {
        let timestamp = 2 + dice.below(last - 1);
        assert!(store.start_at(timestamp).get(&table, HOT).unwrap().as_deref() == Some(&value_of(timestamp)[..]));
    }
    assert_eq!(store.start_at(1).get(&table, HOT).unwrap().as_deref(), Some(&b"before"[..]));
}
