//! Tables, pairs and transactions without timestamps.

use super::factory::EngineFactoryMaker;
use super::support::*;
use crate::*;
use pando_env::Random;
use std::collections::BTreeMap;

pub(super) fn x17_tables_are_created_found_and_listed(maker: &dyn EngineFactoryMaker) {
    for store in Store::both(maker) {
        assert_eq!(store.idents(), Vec::<String>::new());
        let options = TableOptions { replicated: true, filter: KeyFilter::ExceptLast(8), note: "format 7".to_owned() };
        let table = store.create_table("collection-2", &options).unwrap();
        let other = store.local("collection-1");
        assert_eq!((table.ident(), table.options()), ("collection-2", &options));
        assert_ne!(table.id(), other.id());
        assert_eq!(store.idents(), ["collection-1", "collection-2"]);
        fails!(store.create_table("collection-1", &TableOptions::default()), IdentExists);
        fails!(store.open_table("collection-3"), IdentNotFound);
        fails!(store.drop_table("collection-3"), IdentNotFound);
        let found = store.open_table("collection-2").unwrap();
        assert_eq!((found.id(), found.options()), (table.id(), &options));
    }
}

pub(super) fn x4_pairs_are_put_read_replaced_and_deleted(maker: &dyn EngineFactoryMaker) {
    for store in Store::both(maker) {
        let table = store.local("t");
        store.put(&table, "b", "2", 0);
        store.put(&table, "a", "1", 0);
        assert_eq!(store.dump(&table), "a=1 b=2");
        store.put(&table, "a", "one", 0);
        store.delete(&table, "b", 0);
        store.delete(&table, "never there", 0);
        assert_eq!(store.dump(&table), "a=one");
        assert_eq!(got(&*store.start(), &table, "b"), "none");
    }
}

pub(super) fn x4_shared_values_are_values_like_others(maker: &dyn EngineFactoryMaker) {
    for store in Store::both(maker) {
        let table = store.local("t");
        let message = bytes::Bytes::from_static(b"one two three");
        let mut transaction = store.start();
        transaction.put_shared(&table, b"a", message.slice(0..3)).unwrap();
        transaction.put_shared(&table, b"b", message.slice(4..7)).unwrap();
        transaction.put_shared(&table, b"b", message.slice(8..13)).unwrap();
        put(&mut transaction, &table, "c", "four").unwrap();
        transaction.put_shared(&table, b"c", message.slice(0..0)).unwrap();
        assert_eq!(got(&*transaction, &table, "a"), "one");
        transaction.commit().unwrap();
        assert_eq!(store.dump(&table), "a=one b=three c=");
        store.checkpoint_now();
        assert_eq!(store.dump(&table), "a=one b=three c=");
        let mut transaction = store.start();
        transaction.put_shared(&table, b"a", message.slice(4..7)).unwrap();
        transaction.roll_back();
        store.put(&table, "b", "copied", 0);
        store.checkpoint_now();
        assert_eq!(store.dump(&table), "a=one b=copied c=");
    }
}

pub(super) fn x4_several_keys_are_read_by_one_call(maker: &dyn EngineFactoryMaker) {
    for store in Store::both(maker) {
        let table = store.local("t");
        for number in 0..500 {
            store.put(&table, &format!("k{number:03}"), &format!("old {number}"), 0);
        }
        store.checkpoint_now();
        let older = store.start();
        for number in (0..500).step_by(7) {
            store.put(&table, &format!("k{number:03}"), &format!("new {number}"), 0);
        }
        (0..500).step_by(11).for_each(|number| store.delete(&table, &format!("k{number:03}"), 0));
        let mut own = store.start();
        put(&mut own, &table, "k003", "mine").unwrap();
        delete(&mut own, &table, "k004").unwrap();
        let names: Vec<String> = (0..510).rev().map(|number| format!("k{number:03}")).collect();
        let keys: Vec<&[u8]> = names.iter().map(|name| name.as_bytes()).collect();
        for transaction in [&older, &own, &store.start()] {
            let mut values = Vec::new();
            transaction.get_each(&table, &keys, usize::MAX, &mut |value| values.push(value)).unwrap();
            let one_by_one = keys.iter().map(|key| transaction.get(&table, key).unwrap());
            assert!(values.iter().cloned().eq(one_by_one));
            let mut some = Vec::new();
            transaction.get_each(&table, &keys, 50, &mut |value| some.push(value)).unwrap();
            let given: usize = some.iter().flatten().map(|value| value.len()).sum();
            assert!(some.len() > 5 && values.starts_with(&some) && (50..60).contains(&given), "{given}");
        }
    }
}

pub(super) fn x4_tables_do_not_see_each_other(maker: &dyn EngineFactoryMaker) {
    for store in Store::both(maker) {
        let (first, second) = (store.local("first"), store.replicated("second"));
        let mut transaction = store.start();
        put(&mut transaction, &first, "k", "1").unwrap();
        put(&mut transaction, &second, "k", "2").unwrap();
        put(&mut transaction, &second, "l", "3").unwrap();
        transaction.commit().unwrap();
        assert_eq!((store.dump(&first), store.dump(&second)), ("k=1".into(), "k=2 l=3".into()));
    }
}

pub(super) fn x4_a_transaction_reads_its_own_writes(maker: &dyn EngineFactoryMaker) {
    for store in Store::both(maker) {
        let table = store.local("t");
        store.put(&table, "a", "1", 0);
        store.put(&table, "c", "3", 0);
        let mut transaction = store.start();
        put(&mut transaction, &table, "b", "2").unwrap();
        put(&mut transaction, &table, "b", "two").unwrap();
        delete(&mut transaction, &table, "c").unwrap();
        assert_eq!(dump(&*transaction, &table), "a=1 b=two");
        put(&mut transaction, &table, "c", "three").unwrap();
        assert_eq!(dump(&*transaction, &table), "a=1 b=two c=three");
        assert_eq!(store.dump(&table), "a=1 c=3");
        transaction.commit().unwrap();
        assert_eq!(store.dump(&table), "a=1 b=two c=three");
    }
}

pub(super) fn x4_rolled_back_and_dropped_transactions_leave_nothing(maker: &dyn EngineFactoryMaker) {
    for store in Store::both(maker) {
        let table = store.local("t");
        store.put(&table, "a", "1", 0);
        for end in [0, 1] {
            let mut transaction = store.start();
            put(&mut transaction, &table, "a", "changed").unwrap();
            put(&mut transaction, &table, "b", "new").unwrap();
            transaction.adjust_size(&table, TableSize::new(5, 5)).unwrap();
            match end {
                0 => transaction.roll_back(),
                _ => drop(transaction),
            }
            assert_eq!((store.dump(&table), store.size(&table)), ("a=1".into(), (0, 0)));
        }
        // The keys are free again.
        store.put(&table, "a", "2", 0);
        assert_eq!(store.dump(&table), "a=2");
    }
}

pub(super) fn x4_a_commit_with_nothing_written_is_fine(maker: &dyn EngineFactoryMaker) {
    for store in Store::both(maker) {
        let table = store.local("t");
        let transaction = store.start();
        assert_eq!(got(&*transaction, &table, "a"), "none");
        let position = transaction.commit().unwrap().position;
        assert!(position <= store.log_end());
        store.wait_durable(position).block().unwrap();
    }
}

pub(super) fn x4_empty_keys_and_values_are_pairs_like_others(maker: &dyn EngineFactoryMaker) {
    for store in Store::both(maker) {
        let table = store.local("t");
        store.put(&table, "", "of the empty key", 0);
        store.put(&table, "a", "", 0);
        assert_eq!(store.dump(&table), "=of the empty key a=");
        store.put(&table, "", "", 0);
        assert_eq!(store.dump(&table), "= a=");
        store.delete(&table, "", 0);
        assert_eq!(store.dump(&table), "a=");
    }
}

pub(super) fn x4_many_pairs_keep_their_order(maker: &dyn EngineFactoryMaker) {
    let store = Store::stand_alone(maker);
    let table = store.local("t");
    let (dice, mut expected) = (Dice::new(4), BTreeMap::new());
    for round in 0..20 {
        let mut transaction = store.start();
        for _ in 0..100 {
            // Few distinct keys, of lengths that make prefixes of each other.
            let key = vec![b'a' + dice.below(3) as u8; dice.below(40) as usize];
            let key = [&key[..], &[dice.below(256) as u8]].concat();
            if dice.below(4) == 0 {
                transaction.delete(&table, &key).unwrap();
                expected.remove(&key);
            } else {
                let value = dice.next_u64().to_le_bytes().to_vec();
                transaction.put(&table, &key, &value).unwrap();
                expected.insert(key, value);
            }
        }
        transaction.commit().unwrap();
        if round % 7 == 6 {
            store.checkpoint_now();
            store.settle();
        }
        let transaction = store.start();
        let mut cursor = transaction.cursor(&table).unwrap();
        for (key, value) in &expected {
            assert_eq!(cursor.next().unwrap(), Some(Entry { key, value }));
        }
        assert_eq!(cursor.next().unwrap(), None);
    }
}

pub(super) fn x16_the_committed_cursor_sees_the_newest_committed_data(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    store.put(&table, "a", "1", 10);
    store.put(&table, "b", "2", 0);
    let mut running = store.start();
    put(&mut running, &table, "c", "3").unwrap();
    let mut cursor = store.committed_cursor(&table).unwrap();
    assert_eq!(shown(cursor.first().unwrap()), "a=1");
    assert_eq!(shown(cursor.next().unwrap()), "b=2");
    assert_eq!(shown(cursor.next().unwrap()), "none");
    assert_eq!(shown(cursor.last().unwrap()), "b=2");
}

pub(super) fn x16_the_engine_tells_about_itself(maker: &dyn EngineFactoryMaker) {
    for store in Store::both(maker) {
        let table = store.local("t");
        store.put(&table, "a", "1", 0);
        assert!(!store.name().is_empty());
        let mut description = String::new();
        store.describe(&mut description).unwrap();
        store.statistics();
        store.estimate(&table, b"", None).unwrap();
        store.estimate(&table, b"b", Some(b"a")).unwrap();
        store.table_disk_bytes(&table).unwrap();
        store.set_memory_bytes(64 << 20);
        assert_eq!(store.dump(&table), "a=1");
    }
}

pub(super) fn x5_uncommitted_bytes_are_counted(maker: &dyn EngineFactoryMaker) {
    let store = Store::stand_alone(maker);
    let table = store.local("t");
    let mut transaction = store.start();
    assert_eq!(transaction.dirty_bytes(), 0);
    transaction.put(&table, b"key", &[7; 1000]).unwrap();
    assert!(transaction.dirty_bytes() >= 1000);
}
