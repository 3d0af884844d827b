//! Very many tables: memory and files stay within bounds.

use crate::store::{Store, is_long, ts};
use pando_engine::Mode;

#[test]
fn x17_twenty_thousand_tables() {
    let tables = 20_000u64;
    let mut store = Store::new(Mode::ReplicaSet, 64 << 20);
    store.stable_from_start(1);
    for number in 0..tables {
        let table = store.replicated(&format!("collection-{number:05}"));
        store.put(&table, b"key", &number.to_le_bytes(), 2);
    }
    store.engine().set_stable(ts(2)).unwrap();
    store.engine().set_oldest(ts(2), false).unwrap();
    assert_eq!(store.checkpoint_now().keys, tables);
    store.settle();
    let check = |store: &Store, when: &str| {
        // A table of one small row costs a share of a file, not a file.
        assert!(store.file_count() < 100, "{when}: {} files", store.file_count());
        let file_bytes = store.figure("base.file_bytes") as u64;
        assert!(file_bytes < tables * 1_500, "{when}: {file_bytes} bytes on disk");
        assert!(store.figure("overlay.bytes") < 16 << 20, "{when}: {} bytes", store.figure("overlay.bytes"));
        assert!(store.figure("cache.used_bytes") < 64 << 20, "{when}: {} bytes", store.figure("cache.used_bytes"));
    };
    check(&store, "checkpointed");
    store.crash();
    assert_eq!(store.engine().idents().len() as u64, tables);
    check(&store, "opened");
    assert_eq!(store.figure("overlay.bytes"), 0, "an opened table costs no memory in the overlay");
    let reader = store.start();
    for number in (0..tables).step_by(if is_long() { 1 } else { 7 }) {
        let table = store.table(&format!("collection-{number:05}"));
        assert_eq!(reader.get(&table, b"key").unwrap().as_deref(), Some(&number.to_le_bytes()[..]));
    }
    drop(reader);
    check(&store, "read");
    // A checkpoint of one change writes one change.
    let written = store.base_io().bytes_written;
    let table = store.table("collection-00077");
    store.put(&table, b"key", b"changed", 3);
    store.engine().set_stable(ts(3)).unwrap();
    assert_eq!(store.checkpoint_now().keys, 1);
    let written = store.base_io().bytes_written - written;
    assert!(written < 50_000, "{written} bytes for one change");
    // Many small checkpoints over many tables do not pile up files.
    for round in 0..20 {
        for number in (round..tables).step_by(500) {
            let table = store.table(&format!("collection-{number:05}"));
            store.put(&table, b"key", &round.to_le_bytes(), 4 + round);
        }
        store.engine().set_stable(ts(4 + round)).unwrap();
        store.engine().set_oldest(ts(4 + round), false).unwrap();
        assert!(store.checkpoint_now().taken);
        store.settle();
    }
    check(&store, "after many checkpoints");
    for number in 0..tables {
        store.engine().drop_table(&format!("collection-{number:05}")).unwrap();
    }
    drop(table);
    store.checkpoint_now();
    store.settle();
    assert_eq!(store.figure("base.live_bytes"), 0);
    assert!(store.file_count() < 30, "{} files", store.file_count());
    store.crash();
    assert!(store.engine().idents().is_empty());
}
