//! Bulk loading.

use super::factory::EngineFactoryMaker;
use super::support::*;
use crate::*;

fn load(store: &Store, table: &Table, keys: std::ops::Range<u32>) -> Result<()> {
    let mut loader = store.bulk_load(table)?;
    let size = TableSize::new(i64::from(keys.end - keys.start), 0);
    for number in keys {
        loader.add(format!("{number:06}").as_bytes(), b"x")?;
    }
    loader.finish(size)
}

pub(super) fn x14_loaded_pairs_are_visible_and_durable_at_once(maker: &dyn EngineFactoryMaker) {
    for mut store in Store::both(maker) {
        let table = store.replicated("t");
        let before = store.start();
        let mut loader = store.bulk_load(&table).unwrap();
        loader.add(b"a", b"1").unwrap();
        loader.add(b"b", b"").unwrap();
        assert_eq!(store.dump(&table), "");
        loader.finish(TableSize::new(2, 1)).unwrap();
        assert_eq!((store.dump(&table), store.size(&table)), ("a=1 b=".into(), (2, 1)));
        assert_eq!(store.dump_at(&table, 1), "a=1 b=", "loaded without a timestamp");
        assert_eq!(dump(&*before, &table), "");
        drop((before, table));
        store.crash();
        let table = store.open_table("t").unwrap();
        assert_eq!((store.dump(&table), store.size(&table)), ("a=1 b=".into(), (2, 1)));
        store.put(&table, "c", "3", 0);
        store.delete(&table, "a", 0);
        assert_eq!(store.dump(&table), "b= c=3");
    }
}

pub(super) fn x14_many_pairs_are_loaded(maker: &dyn EngineFactoryMaker) {
    let mut store = Store::replica_set(maker);
    let table = store.replicated("t");
    load(&store, &table, 0..4_000).unwrap();
    drop(table);
    store.crash();
    let table = store.open_table("t").unwrap();
    assert_eq!(store.size(&table), (4_000, 0));
    let transaction = store.start();
    let mut cursor = transaction.cursor(&table).unwrap();
    for number in 0..4_000 {
        assert_eq!(shown(cursor.next().unwrap()), format!("{number:06}=x"));
    }
    assert_eq!(shown(cursor.next().unwrap()), "none");
    assert_eq!(shown(cursor.seek(b"002345").unwrap()), "002345=x");
}

pub(super) fn x14_unfinished_loads_leave_nothing(maker: &dyn EngineFactoryMaker) {
    for mut store in Store::both(maker) {
        let table = store.replicated("t");
        store.flush_log().unwrap();
        let mut loader = store.bulk_load(&table).unwrap();
        for number in 0..2000 {
            loader.add(format!("{number:06}").as_bytes(), &[7; 100]).unwrap();
        }
        drop(loader);
        assert_eq!(store.dump(&table), "");
        load(&store, &table, 0..3).unwrap();
        assert_eq!(store.dump(&table), "000000=x 000001=x 000002=x");
        drop(table);
        store.crash();
        assert_eq!(store.dump_ident("t"), "000000=x 000001=x 000002=x");
    }
}

pub(super) fn x14_keys_must_ascend(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    for second in ["b", "a"] {
        let mut loader = store.bulk_load(&table).unwrap();
        loader.add(b"b", b"1").unwrap();
        let added = loader.add(second.as_bytes(), b"2");
        assert!(added.is_err(), "'{second}' after 'b'");
    }
    assert_eq!(store.dump(&table), "");
}

pub(super) fn x14_a_table_that_was_written_meanwhile_conflicts(maker: &dyn EngineFactoryMaker) {
    for store in Store::both(maker) {
        let table = store.replicated("t");
        let mut loader = store.bulk_load(&table).unwrap();
        loader.add(b"a", b"loaded").unwrap();
        store.put(&table, "b", "written", 0);
        fails!(loader.finish(TableSize::default()), WriteConflict);
        assert_eq!(store.dump(&table), "b=written");
        assert!(load(&store, &table, 0..1).is_err(), "the table is not empty");
        assert_eq!(store.dump(&table), "b=written");
    }
}

pub(super) fn x14_loaded_pairs_conflict_with_older_snapshots(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    let mut old = store.start();
    load(&store, &table, 0..3).unwrap();
    fails!(put(&mut old, &table, "000001", "x"), WriteConflict);
    store.put(&table, "000001", "new", 10);
    assert_eq!(store.dump_at(&table, 9), "000000=x 000001=x 000002=x");
    assert_eq!(store.dump(&table), "000000=x 000001=new 000002=x");
}

pub(super) fn x14_an_empty_load_is_fine(maker: &dyn EngineFactoryMaker) {
    for store in Store::both(maker) {
        let table = store.replicated("t");
        load(&store, &table, 0..0).unwrap();
        assert_eq!((store.dump(&table), store.size(&table)), ("".into(), (0, 0)));
        load(&store, &table, 0..1).unwrap();
        assert_eq!(store.dump(&table), "000000=x");
    }
}

pub(super) fn x18_loaded_pairs_survive_rollback(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    load(&store, &table, 0..2).unwrap();
    store.stable_from_start(10);
    store.put(&table, "000000", "later", 20);
    store.roll_back_to_stable().unwrap();
    assert_eq!(store.dump(&table), "000000=x 000001=x");
}
