//! The longest keys and values, odd keys, and many tables.

use super::factory::EngineFactoryMaker;
use super::support::*;
use crate::*;

pub(super) fn x17_the_longest_values_are_kept(maker: &dyn EngineFactoryMaker) {
    let mut store = Store::stand_alone(maker);
    let table = store.local("t");
    let value: Vec<u8> = (0..VALUE_LENGTH_MAX).map(|index| ((index * 31) >> 5) as u8).collect();
    let mut transaction = store.start();
    transaction.put(&table, b"a", &value).unwrap();
    transaction.put(&table, b"b", b"small").unwrap();
    fails!(transaction.put(&table, b"c", &vec![0; VALUE_LENGTH_MAX + 1]), TooLarge);
    transaction.commit().unwrap();
    store.flush_log().unwrap();
    drop(table);
    for checkpoint in [false, true] {
        if checkpoint {
            store.checkpoint(CheckpointKind::Full).unwrap();
            store.settle();
        }
        store.crash();
        let table = store.open_table("t").unwrap();
        let transaction = store.start();
        assert!(transaction.get(&table, b"a").unwrap().as_deref() == Some(&value[..]), "the large value is whole");
        let mut cursor = transaction.cursor(&table).unwrap();
        assert!(cursor.next().unwrap().is_some_and(|entry| entry.value == value));
        assert_eq!(shown(cursor.next().unwrap()), "b=small");
        assert_eq!(shown(cursor.next().unwrap()), "none");
    }
}

pub(super) fn x17_the_longest_keys_are_kept(maker: &dyn EngineFactoryMaker) {
    let mut store = Store::stand_alone(maker);
    let table = store.local("t");
    let keys: Vec<Vec<u8>> =
        [1, 255, 256, 65_535, 65_536, 1 << 20, KEY_LENGTH_MAX].into_iter().map(|length| vec![b'k'; length]).collect();
    let mut transaction = store.start();
    for key in &keys {
        transaction.put(&table, key, b"v").unwrap();
    }
    fails!(transaction.put(&table, &vec![b'k'; KEY_LENGTH_MAX + 1], b"v"), TooLarge);
    transaction.commit().unwrap();
    assert!(store.checkpoint(CheckpointKind::Full).unwrap().taken);
    store.settle();
    drop(table);
    store.crash();
    let table = store.open_table("t").unwrap();
    let transaction = store.start();
    let mut cursor = transaction.cursor(&table).unwrap();
    for key in &keys {
        assert!(cursor.next().unwrap().is_some_and(|entry| entry.key == key), "a key of {} bytes", key.len());
        assert!(transaction.get(&table, key).unwrap().is_some());
    }
    assert!(cursor.next().unwrap().is_none());
}

pub(super) fn x17_keys_of_all_bytes_keep_their_order(maker: &dyn EngineFactoryMaker) {
    let mut store = Store::stand_alone(maker);
    let table = store.local("t");
    let mut keys: Vec<Vec<u8>> = vec![vec![]];
    for first in [0, 1, 127, 128, 254, 255] {
        keys.push(vec![first]);
        keys.extend([0, 1, 128, 255].map(|second| vec![first, second]));
        keys.push(vec![first; 9]);
    }
    keys.sort();
    keys.dedup();
    let mut transaction = store.start();
    keys.iter().rev().for_each(|key| transaction.put(&table, key, key).unwrap());
    transaction.commit().unwrap();
    drop(table);
    for _ in 0..2 {
        let table = store.open_table("t").unwrap();
        let transaction = store.start();
        let mut cursor = transaction.cursor(&table).unwrap();
        for key in &keys {
            assert_eq!(cursor.next().unwrap(), Some(Entry { key, value: key }));
            assert_eq!(transaction.get(&table, key).unwrap().as_deref(), Some(&key[..]));
        }
        assert_eq!(cursor.next().unwrap(), None);
        drop((cursor, transaction, table));
        store.reopen();
    }
}

pub(super) fn x13_filters_of_every_kind_find_short_and_long_keys(maker: &dyn EngineFactoryMaker) {
    let store = Store::stand_alone(maker);
    for (number, filter) in [KeyFilter::Whole, KeyFilter::ExceptLast(8), KeyFilter::Nothing].into_iter().enumerate() {
        let options = TableOptions { filter, ..TableOptions::default() };
        let table = store.create_table(&format!("t{number}"), &options).unwrap();
        // Shorter than what the filter leaves out, too.
        let keys: Vec<String> = (0..30).map(|length| "k".repeat(length)).collect();
        for key in &keys {
            store.put(&table, key, "v", 0);
        }
        store.checkpoint(CheckpointKind::Full).unwrap();
        store.settle();
        let transaction = store.start();
        for key in &keys {
            assert_eq!(got(&*transaction, &table, key), "v", "{} bytes, {filter:?}", key.len());
            assert_eq!(got(&*transaction, &table, &format!("{key}x")), "none");
        }
        let mut cursor = transaction.cursor(&table).unwrap();
        assert_eq!(shown(cursor.seek(b"kkk").unwrap()), "kkk=v");
        assert_eq!(shown(cursor.seek(b"kkj").unwrap()), "kkk=v");
    }
}

pub(super) fn x17_thousands_of_tables(maker: &dyn EngineFactoryMaker) {
    const TABLES: usize = 2000;
    let mut store = Store::replica_set(maker);
    for number in 0..TABLES {
        let table = store.replicated(&format!("table-{number:04}"));
        store.put(&table, "k", &number.to_string(), 10);
    }
    store.stable_from_start(10);
    assert!(store.checkpoint_now().taken);
    store.settle();
    for number in (0..TABLES).step_by(2) {
        store.drop_table(&format!("table-{number:04}")).unwrap();
    }
    store.flush_log().unwrap();
    store.crash();
    assert_eq!(store.idents().len(), TABLES / 2);
    for number in (1..TABLES).step_by(2) {
        assert_eq!(store.dump_ident(&format!("table-{number:04}")), format!("k={number}"));
    }
    let table = store.open_table("table-0001").unwrap();
    store.put(&table, "k", "changed", 20);
    store.set_stable(ts(20)).unwrap();
    let outcome = store.checkpoint_now();
    assert!(outcome.taken);
    // An engine without files writes no bytes and may well copy everything.
    assert!(outcome.bytes == 0 || outcome.keys <= 10, "one change is not a rewrite of all tables: {outcome:?}");
    drop(table);
    store.reopen();
    assert_eq!(store.dump_ident("table-0001"), "k=changed");
}

pub(super) fn x4_a_large_transaction_is_one(maker: &dyn EngineFactoryMaker) {
    let mut store = Store::stand_alone(maker);
    let table = store.local("t");
    let mut transaction = store.start();
    for number in 0..5_000 {
        put(&mut transaction, &table, &format!("{number:06}"), "value").unwrap();
    }
    let position = transaction.commit().unwrap().position;
    store.wait_durable(position).block().unwrap();
    drop(table);
    store.crash();
    let table = store.open_table("t").unwrap();
    let transaction = store.start();
    let mut cursor = transaction.cursor(&table).unwrap();
    let mut count = 0;
    while cursor.next().unwrap().is_some() {
        count += 1;
    }
    assert_eq!(count, 5_000);
}

pub(super) fn x20_stable_may_stand_still_while_much_is_written(maker: &dyn EngineFactoryMaker) {
    const ROUNDS: u64 = 150;
    let mut store = Store::replica_set(maker);
    let table = store.replicated("t");
    store.put(&table, "00", "stable", 1);
    store.stable_from_start(1);
    store.set_memory_bytes(4 << 20);
    let exempt = BeginOptions { urgency: Urgency::Exempt, ..BeginOptions::default() };
    let value_of = |round: u64| vec![round as u8; 100_000];
    for round in 2..ROUNDS {
        let mut transaction = store.begin(exempt).unwrap();
        transaction.set_commit_timestamp(ts(round)).unwrap();
        transaction.put(&table, format!("{:02}", round % 20).as_bytes(), &value_of(round)).unwrap();
        transaction.commit().unwrap();
        if round % 10 == 0 {
            store.checkpoint_now();
            store.settle();
        }
    }
    for round in [25, ROUNDS - 1] {
        let reader = store.start_at(round);
        let newest = |key: u64| (1..=round).rev().find(|round| round % 20 == key);
        for key in 1..20 {
            let expected = newest(key).filter(|found| *found > 1).map(value_of);
            let found = reader.get(&table, format!("{key:02}").as_bytes()).unwrap();
            assert!(found.as_deref() == expected.as_deref(), "key {key} at {round}");
        }
    }
    assert_eq!(store.dump_at(&table, 1), "00=stable");
    store.roll_back_to_stable().unwrap();
    assert_eq!(store.dump(&table), "00=stable");
    drop(table);
    store.crash();
    assert_eq!(store.dump_ident("t"), "00=stable");
}
