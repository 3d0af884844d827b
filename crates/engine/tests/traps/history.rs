//! History must cost latest reads nothing: they touch no block of it.

use crate::store::{Dice, Store, ts};
use pando_engine::Mode;
use pando_storage::Table;

const KEYS: u64 = 2_000;
const VALUE_BYTES: usize = 200;

fn key(number: u64) -> Vec<u8> {
    format!("{number:08}").into_bytes()
}

/// What cold reads of the latest values cost.
#[derive(Debug)]
struct Cost {
    get_bytes: u64,
    get_misses: i64,
    scan_bytes: u64,
    scan_misses: i64,
    base_bytes: i64,
}

/// A cold store whose every key has so many versions in the window, written in so many checkpoints.
fn cost_with(versions: u64, checkpoints: u64) -> Cost {
    let mut store = Store::new(Mode::ReplicaSet, 256 << 20);
    let table = store.replicated("t");
    store.stable_from_start(1);
    store.engine().set_oldest(ts(1), false).unwrap();
    let mut dice = Dice::new(1);
    for version in 0..versions {
        for number in 0..KEYS {
            let value = dice.bytes(VALUE_BYTES);
            store.put(&table, &key(number), &value, 2 + version);
        }
        if (version + 1).is_multiple_of(versions / checkpoints) {
            store.engine().set_stable(ts(2 + version)).unwrap();
            assert!(store.checkpoint_now().taken);
        }
    }
    store.settle();
    let base_bytes = store.figure("base.live_bytes");
    drop(table);
    store.crash();
    let (get_bytes, get_misses) = cold(&store, |table| {
        let reader = store.start();
        for number in (0..KEYS).step_by(7) {
            assert!(reader.get(table, &key(number)).unwrap().is_some());
        }
    });
    store.crash();
    let (scan_bytes, scan_misses) = cold(&store, |table| {
        assert_eq!(crate::store::forward(&*store.start(), table).len() as u64, KEYS);
    });
    Cost { get_bytes, get_misses, scan_bytes, scan_misses, base_bytes }
}

/// Bytes and units that some reads get from the disk.
fn cold(store: &Store, read: impl FnOnce(&Table)) -> (u64, i64) {
    let table = store.table("t");
    store.simulation.disk().reset_statistics();
    let misses = store.figure("cache.misses");
    read(&table);
    (store.base_io().bytes_read, store.figure("cache.misses") - misses)
}

#[test]
fn x7_x25_history_costs_latest_reads_nothing() {
    let without = cost_with(1, 1);
    let with = cost_with(40, 1);
    assert!(with.base_bytes > 20 * without.base_bytes, "the history is there: {with:?}, {without:?}");
    // The root of a section also tells where its history is; that is all.
    assert!(with.get_misses <= without.get_misses + 2, "{with:?}, {without:?}");
    assert!(with.scan_misses <= without.scan_misses + 2, "{with:?}, {without:?}");
    assert!(with.get_bytes <= without.get_bytes + without.get_bytes / 8 + 4096, "{with:?}, {without:?}");
    assert!(with.scan_bytes <= without.scan_bytes + without.scan_bytes / 8 + 4096, "{with:?}, {without:?}");
}

#[test]
fn x7_x25_history_of_many_checkpoints_costs_latest_reads_nothing() {
    // Ten checkpoints that each write every key leave some runs; merged, the newest versions lie together again.
    let without = cost_with(1, 1);
    let with = cost_with(40, 10);
    // Up to the six runs that need no merge yet, of which each has every key.
    assert!(with.scan_bytes <= 7 * without.scan_bytes, "{with:?}, {without:?}");
    assert!(with.get_bytes <= 2 * without.get_bytes, "a get asks the newest run only: {with:?}, {without:?}");
}
