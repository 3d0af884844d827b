//! A dropped table is read on by cursors that were open, at their own time.

use crate::store::{Contents, Dice, Store, ts};
use pando_engine::Mode;
use pando_storage::{CheckpointKind, StorageError, Table};

const KEYS: u64 = 1_000;

fn key(number: u64) -> Vec<u8> {
    format!("{number:08}").into_bytes()
}

/// Rows in the base, others in the overlay, some in both; ends at timestamp 20.
fn fill(store: &Store, table: &Table) -> (Contents, Contents) {
    let mut dice = Dice::new(2);
    let (mut early, mut late) = (Contents::new(), Contents::new());
    for number in 0..KEYS {
        let value = dice.bytes(100);
        store.put(table, &key(number), &value, 10);
        early.insert(key(number), value.clone());
        late.insert(key(number), value);
    }
    store.engine().set_stable(ts(10)).unwrap();
    assert!(store.checkpoint_now().taken);
    store.evict();
    for number in (0..KEYS).step_by(3) {
        let value = dice.bytes(100);
        store.put(table, &key(number), &value, 20);
        late.insert(key(number), value);
    }
    (early, late)
}

#[test]
fn x17_x7_a_dropped_table_is_read_on_by_open_cursors() {
    let mut store = Store::new(Mode::ReplicaSet, 16 << 20);
    store.stable_from_start(5);
    store.engine().set_oldest(ts(5), false).unwrap();
    let other = store.replicated("other");
    let files_before = store.file_count();
    let table = store.replicated("t");
    let (early, late) = fill(&store, &table);
    let early_reader = store.start_at(10);
    let late_reader = store.start();
    let mut early_cursor = early_reader.cursor(&table).unwrap();
    let mut late_cursor = late_reader.cursor(&table).unwrap();
    let mut unused_cursor = late_reader.cursor(&table).unwrap();
    let (mut early_rows, mut late_rows) = (early.iter(), late.iter().rev());
    for number in 0..KEYS {
        // Everything that could take the rows away happens while they stand at different places.
        match number {
            100 => store.engine().drop_table("t").unwrap(),
            200 => drop(store.replicated("t")),
            300 => store.put(&other, b"x", b"y", 30),
            400 => {
                store.engine().set_stable(ts(30)).unwrap();
                store.engine().set_oldest(ts(30), false).unwrap();
                assert!(store.checkpoint_now().taken);
            }
            500 => store.settle(),
            600 => store.evict(),
            700 => drop(store.engine().checkpoint(CheckpointKind::Full).unwrap()),
            800 => store.settle(),
            _ => {}
        }
        let row = early_cursor.next().unwrap().map(|entry| (entry.key.to_vec(), entry.value.to_vec()));
        assert!(row.as_ref().map(|(key, value)| (key, value)) == early_rows.next(), "early, row {number}");
        let row = late_cursor.previous().unwrap().map(|entry| (entry.key.to_vec(), entry.value.to_vec()));
        assert!(row.as_ref().map(|(key, value)| (key, value)) == late_rows.next(), "late, row {number}");
    }
    assert!(early_cursor.next().unwrap().is_none() && late_cursor.previous().unwrap().is_none());
    let mut rows = 0;
    while unused_cursor.next().unwrap().is_some() {
        rows += 1;
    }
    assert_eq!(rows, late.len(), "a cursor that was open but unused");
    assert!(matches!(late_reader.get(&table, b"x"), Err(StorageError::IdentNotFound(_))));
    assert!(matches!(store.start().cursor(&table), Err(StorageError::IdentNotFound(_))));
    // Then it is gone: memory and space come back.
    drop((early_cursor, late_cursor, unused_cursor, early_reader, late_reader, table, other));
    store.settle();
    store.evict();
    assert!(store.figure("base.live_bytes") < 20_000, "{}", store.figure("base.live_bytes"));
    assert!(store.figure("overlay.bytes") < 10_000, "{}", store.figure("overlay.bytes"));
    assert!(store.file_count() <= files_before + 4, "{} files", store.file_count());
    store.crash();
    assert_eq!(store.engine().idents(), ["other", "t"]);
    assert!(crate::store::forward(&*store.start(), &store.table("t")).is_empty(), "the new table of the old name");
}

#[test]
fn x17_a_drop_gives_back_what_a_rolled_back_writer_held() {
    let store = Store::new(Mode::StandAlone, 16 << 20);
    let before = store.figure("overlay.bytes");
    let table = store.local("t");
    let mut writer = store.start();
    for number in 0..KEYS {
        writer.put(&table, &key(number), &[7; 500]).unwrap();
    }
    store.engine().drop_table("t").unwrap();
    drop(table);
    writer.roll_back();
    assert_eq!(store.figure("overlay.bytes"), before);
    assert_eq!(store.figure("overlay.dirty_bytes"), 0);
}
