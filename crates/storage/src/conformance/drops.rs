//! Dropping tables under those who use them.

use super::factory::EngineFactoryMaker;
use super::support::*;
use crate::*;

pub(super) fn x3_a_dropped_table_is_gone_at_once(maker: &dyn EngineFactoryMaker) {
    for store in Store::both(maker) {
        let table = store.local("t");
        store.put(&table, "a", "1", 0);
        let mut transaction = store.start();
        store.drop_table("t").unwrap();
        assert_eq!(store.idents(), Vec::<String>::new());
        fails!(store.open_table("t"), IdentNotFound);
        fails!(transaction.get(&table, b"a"), IdentNotFound);
        fails!(transaction.cursor(&table), IdentNotFound);
        fails!(put(&mut transaction, &table, "b", "1"), IdentNotFound);
        fails!(store.table_size(&table), IdentNotFound);
        fails!(store.drop_table("t"), IdentNotFound);
    }
}

pub(super) fn x3_open_cursors_of_a_dropped_table_go_on(maker: &dyn EngineFactoryMaker) {
    for store in Store::both(maker) {
        let table = store.local("t");
        for key in ["a", "b", "c"] {
            store.put(&table, key, "1", 0);
        }
        store.checkpoint(CheckpointKind::Full).unwrap();
        let transaction = store.start();
        let mut cursor = transaction.cursor(&table).unwrap();
        assert_eq!(shown(cursor.next().unwrap()), "a=1");
        store.drop_table("t").unwrap();
        store.checkpoint(CheckpointKind::Full).unwrap();
        store.settle();
        assert_eq!(shown(cursor.next().unwrap()), "b=1");
        assert_eq!(shown(cursor.next().unwrap()), "c=1");
        assert_eq!(shown(cursor.next().unwrap()), "none");
    }
}

pub(super) fn x3_a_transaction_that_wrote_to_a_dropped_table_commits(maker: &dyn EngineFactoryMaker) {
    for mut store in Store::both(maker) {
        let (dropped, kept) = (store.local("dropped"), store.local("kept"));
        let mut transaction = store.start();
        put(&mut transaction, &dropped, "a", "1").unwrap();
        put(&mut transaction, &kept, "a", "1").unwrap();
        store.drop_table("dropped").unwrap();
        let position = transaction.commit().unwrap().position;
        store.wait_durable(position).block().unwrap();
        assert_eq!(store.dump(&kept), "a=1");
        drop((dropped, kept));
        store.crash();
        assert_eq!(store.idents(), ["kept"]);
        assert_eq!(store.dump_ident("kept"), "a=1");
    }
}

pub(super) fn x3_an_ident_can_be_used_again_at_once(maker: &dyn EngineFactoryMaker) {
    for mut store in Store::both(maker) {
        let old = store.local("t");
        store.put(&old, "a", "old", 0);
        let mut late = store.start();
        put(&mut late, &old, "b", "late").unwrap();
        store.drop_table("t").unwrap();
        let new = store.local("t");
        assert_ne!(old.id(), new.id());
        assert_eq!((store.dump(&new), store.size(&new)), ("".into(), (0, 0)));
        store.put(&new, "a", "new", 0);
        late.commit().unwrap();
        assert_eq!(store.dump(&new), "a=new");
        fails!(store.start().get(&old, b"a"), IdentNotFound);
        let id = new.id();
        store.flush_log().unwrap();
        drop((old, new));
        store.crash();
        assert_eq!(store.dump_ident("t"), "a=new");
        assert_eq!(store.open_table("t").unwrap().id(), id);
    }
}

pub(super) fn x3_drops_survive_a_crash_once_flushed(maker: &dyn EngineFactoryMaker) {
    for mut store in Store::both(maker) {
        let table = store.local("t");
        store.put(&table, "a", "1", 0);
        store.checkpoint(CheckpointKind::Full).unwrap();
        store.drop_table("t").unwrap();
        store.flush_log().unwrap();
        drop(table);
        store.crash();
        assert_eq!(store.idents(), Vec::<String>::new());
        // The table's number is not used again.
        store.local("t");
        assert_eq!(store.dump_ident("t"), "");
    }
}
