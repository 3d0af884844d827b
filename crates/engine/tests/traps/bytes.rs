//! How often the bytes of an insert reach the disk.

use crate::store::{Dice, Store, ts};
use pando_engine::Mode;

const INSERTS: u64 = 2_000;
const DOCUMENT_BYTES: usize = 500;
/// What an entry costs beside its bytes: the record's header and its place in the index.
const OVERHEAD_BYTES: u64 = 64;

/// Inserts documents, each with the oplog entry that covers it; flushes after so many.
fn insert(store: &Store, replicated: bool, flush_every: u64) -> u64 {
    let table = if replicated { store.replicated("t") } else { store.local("t") };
    store.engine().flush_log().unwrap();
    store.simulation.disk().reset_statistics();
    let mut dice = Dice::new(4);
    for number in 1..=INSERTS {
        let document = dice.bytes(DOCUMENT_BYTES);
        let mut transaction = store.start();
        transaction.set_commit_timestamp(ts(10 + number)).unwrap();
        transaction.put(&table, &number.to_be_bytes(), &document).unwrap();
        transaction.append_oplog(ts(10 + number), &document).unwrap();
        transaction.commit().unwrap();
        if number.is_multiple_of(flush_every) {
            store.engine().flush_log().unwrap();
        }
    }
    store.engine().flush_log().unwrap();
    store.log_io().bytes_written
}

#[test]
fn b3_a_replicated_insert_reaches_the_disk_once_before_its_checkpoint() {
    let store = Store::new(Mode::ReplicaSet, 64 << 20);
    store.stable_from_start(5);
    let written = insert(&store, true, 100);
    let entries = INSERTS * DOCUMENT_BYTES as u64;
    assert!(written >= entries, "{written} bytes for {entries}");
    // One entry each, and what a flush and a new segment cost; there is no redo.
    let allowed = INSERTS * (DOCUMENT_BYTES as u64 + OVERHEAD_BYTES) + INSERTS / 100 * 512 + 64_000;
    assert!(written <= allowed, "{written} bytes for {entries}");
    assert_eq!(store.base_io().bytes_written, 0, "the base waits for the checkpoint");
    // Log and first checkpoint together: less than 2.2 bytes for each byte inserted.
    store.engine().set_stable(ts(10 + INSERTS)).unwrap();
    store.engine().set_oldest(ts(10 + INSERTS), false).unwrap();
    assert!(store.checkpoint_now().taken);
    let all = store.base_io().bytes_written + store.log_io().bytes_written;
    assert!(all * 10 < entries * 22, "{all} bytes for {entries}");
}

#[test]
fn b3_a_flush_for_each_insert_writes_little_more() {
    let store = Store::new(Mode::ReplicaSet, 64 << 20);
    store.stable_from_start(5);
    let written = insert(&store, true, 1);
    let entries = INSERTS * DOCUMENT_BYTES as u64;
    // Each flush also tells the point without holes.
    assert!(written <= entries + entries / 2, "{written} bytes for {entries}");
}

#[test]
fn b3_only_a_table_outside_the_oplog_has_redo() {
    let store = Store::new(Mode::ReplicaSet, 64 << 20);
    store.stable_from_start(5);
    let replicated = insert(&store, true, 100);
    let store = Store::new(Mode::ReplicaSet, 64 << 20);
    store.stable_from_start(5);
    let logged = insert(&store, false, 100);
    let entries = INSERTS * DOCUMENT_BYTES as u64;
    assert!(logged >= replicated + entries, "redo: {logged} bytes, without: {replicated}");
}
