//! Cursors: every move, own writes under way, detaching and attaching, random positions.

use super::factory::EngineFactoryMaker;
use super::support::*;
use crate::*;
use std::collections::BTreeSet;

/// A table with b, d and f.
fn three(maker: &dyn EngineFactoryMaker) -> (Store, Table) {
    let store = Store::replica_set(maker);
    let table = store.local("t");
    for (key, value) in [("b", "1"), ("d", "2"), ("f", "3")] {
        store.put(&table, key, value, 0);
    }
    (store, table)
}

pub(super) fn x4_cursors_seek_forward_backward_and_exactly(maker: &dyn EngineFactoryMaker) {
    let (store, table) = three(maker);
    let transaction = store.start();
    let mut cursor = transaction.cursor(&table).unwrap();
    let cases = [("a", "b=1", "none", "none"), ("b", "b=1", "b=1", "b=1"), ("c", "d=2", "b=1", "none")];
    for (key, forward, backward, exact) in cases.into_iter().chain([("g", "none", "f=3", "none")]) {
        assert_eq!(shown(cursor.seek(key.as_bytes()).unwrap()), forward, "seek {key}");
        assert_eq!(shown(cursor.entry()), forward);
        assert_eq!(shown(cursor.seek_back(key.as_bytes()).unwrap()), backward, "seek_back {key}");
        assert_eq!(shown(cursor.entry()), backward);
        assert_eq!(shown(cursor.seek_exact(key.as_bytes()).unwrap()), exact, "seek_exact {key}");
        assert_eq!(shown(cursor.entry()), exact);
    }
    assert_eq!(shown(cursor.first().unwrap()), "b=1");
    assert_eq!(shown(cursor.last().unwrap()), "f=3");
    assert_eq!(cursor.value_bytes().as_deref(), Some(&b"3"[..]));
}

pub(super) fn x4_cursors_step_both_ways(maker: &dyn EngineFactoryMaker) {
    let (store, table) = three(maker);
    let transaction = store.start();
    let mut cursor = transaction.cursor(&table).unwrap();
    assert_eq!(shown(cursor.entry()), "none");
    assert_eq!(shown(cursor.next().unwrap()), "b=1");
    assert_eq!(shown(cursor.next().unwrap()), "d=2");
    assert_eq!(shown(cursor.previous().unwrap()), "b=1");
    assert_eq!(shown(cursor.next().unwrap()), "d=2");
    assert_eq!(shown(cursor.next().unwrap()), "f=3");
    assert_eq!(shown(cursor.previous().unwrap()), "d=2");
    assert_eq!(shown(cursor.seek(b"c").unwrap()), "d=2");
    assert_eq!(shown(cursor.previous().unwrap()), "b=1");
    assert_eq!(shown(cursor.seek_back(b"e").unwrap()), "d=2");
    assert_eq!(shown(cursor.next().unwrap()), "f=3");
    let mut backward = transaction.cursor(&table).unwrap();
    assert_eq!(shown(backward.previous().unwrap()), "f=3");
}

pub(super) fn x4_past_an_end_only_a_seek_helps(maker: &dyn EngineFactoryMaker) {
    let (store, table) = three(maker);
    let transaction = store.start();
    let mut cursor = transaction.cursor(&table).unwrap();
    cursor.last().unwrap();
    for _ in 0..2 {
        assert_eq!(shown(cursor.next().unwrap()), "none");
        assert_eq!(shown(cursor.entry()), "none");
        assert_eq!(cursor.value_bytes(), None);
    }
    assert_eq!(shown(cursor.previous().unwrap()), "none");
    assert_eq!(shown(cursor.seek(b"d").unwrap()), "d=2");
    cursor.first().unwrap();
    assert_eq!(shown(cursor.previous().unwrap()), "none");
    assert_eq!(shown(cursor.next().unwrap()), "none");
    assert_eq!(shown(cursor.last().unwrap()), "f=3");
}

pub(super) fn x4_cursors_on_an_empty_table_find_nothing(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.local("t");
    let transaction = store.start();
    let mut cursor = transaction.cursor(&table).unwrap();
    assert_eq!(shown(cursor.next().unwrap()), "none");
    assert_eq!(shown(cursor.first().unwrap()), "none");
    assert_eq!(shown(cursor.last().unwrap()), "none");
    assert_eq!(shown(cursor.seek(b"").unwrap()), "none");
    assert_eq!(shown(cursor.seek_back(b"zzz").unwrap()), "none");
    assert_eq!(shown(cursor.random(&Dice::new(1)).unwrap()), "none");
    assert_eq!(shown(cursor.skip_prefix(1).unwrap()), "none");
}

pub(super) fn x4_an_open_cursor_sees_own_later_writes(maker: &dyn EngineFactoryMaker) {
    let (store, table) = three(maker);
    let mut transaction = store.start();
    let mut cursor = transaction.cursor(&table).unwrap();
    assert_eq!(shown(cursor.next().unwrap()), "b=1");
    put(&mut transaction, &table, "c", "new").unwrap();
    assert_eq!(shown(cursor.next().unwrap()), "c=new");
    delete(&mut transaction, &table, "d").unwrap();
    assert_eq!(shown(cursor.next().unwrap()), "f=3");
    put(&mut transaction, &table, "a", "first").unwrap();
    delete(&mut transaction, &table, "f").unwrap();
    assert_eq!(shown(cursor.previous().unwrap()), "c=new");
    assert_eq!(shown(cursor.previous().unwrap()), "b=1");
    assert_eq!(shown(cursor.previous().unwrap()), "a=first");
    assert_eq!(shown(cursor.last().unwrap()), "c=new");
    put(&mut transaction, &table, "c", "changed").unwrap();
    assert_eq!(shown(cursor.seek_exact(b"c").unwrap()), "c=changed");
}

pub(super) fn x4_a_cursor_survives_the_deletion_of_its_key(maker: &dyn EngineFactoryMaker) {
    let (store, table) = three(maker);
    let mut transaction = store.start();
    let mut cursor = transaction.cursor(&table).unwrap();
    cursor.seek(b"d").unwrap();
    delete(&mut transaction, &table, "d").unwrap();
    assert_eq!(shown(cursor.next().unwrap()), "f=3");
    cursor.seek(b"b").unwrap();
    delete(&mut transaction, &table, "b").unwrap();
    assert_eq!(shown(cursor.previous().unwrap()), "none");
}

pub(super) fn x4_an_open_cursor_keeps_its_snapshot(maker: &dyn EngineFactoryMaker) {
    let (store, table) = three(maker);
    let transaction = store.start();
    let mut cursor = transaction.cursor(&table).unwrap();
    assert_eq!(shown(cursor.next().unwrap()), "b=1");
    store.put(&table, "c", "new", 0);
    store.put(&table, "d", "changed", 0);
    store.delete(&table, "f", 0);
    store.checkpoint_now();
    store.settle();
    assert_eq!(shown(cursor.next().unwrap()), "d=2");
    assert_eq!(shown(cursor.next().unwrap()), "f=3");
    assert_eq!(dump(&*transaction, &table), "b=1 d=2 f=3");
}

pub(super) fn x4_skip_prefix_goes_past_all_keys_that_share_it(maker: &dyn EngineFactoryMaker) {
    let store = Store::replica_set(maker);
    let table = store.local("t");
    for key in ["a1", "a2", "a3", "b1", "c1", "c2"] {
        store.put(&table, key, "", 0);
    }
    let transaction = store.start();
    let mut cursor = transaction.cursor(&table).unwrap();
    assert_eq!(shown(cursor.first().unwrap()), "a1=");
    assert_eq!(shown(cursor.skip_prefix(1).unwrap()), "b1=");
    assert_eq!(shown(cursor.skip_prefix(1).unwrap()), "c1=");
    assert_eq!(shown(cursor.skip_prefix(2).unwrap()), "c2=");
    assert_eq!(shown(cursor.skip_prefix(9).unwrap()), "none");
    cursor.first().unwrap();
    assert_eq!(shown(cursor.skip_prefix(0).unwrap()), "none");
}

pub(super) fn x6_a_detached_cursor_goes_on_under_another_transaction(maker: &dyn EngineFactoryMaker) {
    let (store, table) = three(maker);
    let transaction = store.start();
    let mut cursor = transaction.cursor(&table).unwrap();
    assert_eq!(shown(cursor.seek(b"d").unwrap()), "d=2");
    cursor.detach();
    fails!(cursor.next(), IllegalOperation);
    fails!(cursor.seek(b"a"), IllegalOperation);
    drop(transaction);
    store.delete(&table, "d", 0);
    store.put(&table, "c", "new", 0);
    store.put(&table, "e", "new", 0);
    let transaction = store.start();
    cursor.attach(&*transaction).unwrap();
    assert_eq!(shown(cursor.next().unwrap()), "e=new");
    assert_eq!(shown(cursor.previous().unwrap()), "c=new");
}

pub(super) fn x6_an_attached_cursor_does_not_repeat_the_key_it_stood_on(maker: &dyn EngineFactoryMaker) {
    let (store, table) = three(maker);
    let transaction = store.start();
    let (mut forward, mut backward) = (transaction.cursor(&table).unwrap(), transaction.cursor(&table).unwrap());
    assert_eq!(shown(forward.seek(b"d").unwrap()), "d=2");
    assert_eq!(shown(backward.seek(b"d").unwrap()), "d=2");
    forward.detach();
    backward.detach();
    drop(transaction);
    let transaction = store.start();
    forward.attach(&*transaction).unwrap();
    backward.attach(&*transaction).unwrap();
    assert_eq!(shown(forward.next().unwrap()), "f=3");
    assert_eq!(shown(backward.previous().unwrap()), "b=1");
}

pub(super) fn x6_a_cursor_attached_before_any_move_starts_at_the_first_key(maker: &dyn EngineFactoryMaker) {
    let (store, table) = three(maker);
    let transaction = store.start();
    let mut cursor = transaction.cursor(&table).unwrap();
    cursor.detach();
    drop(transaction);
    store.put(&table, "a", "new", 0);
    let transaction = store.start();
    cursor.attach(&*transaction).unwrap();
    assert_eq!(shown(cursor.next().unwrap()), "a=new");
}

pub(super) fn x4_random_positions_reach_every_key_and_no_other(maker: &dyn EngineFactoryMaker) {
    let store = Store::stand_alone(maker);
    let table = store.local("t");
    for number in 0..40 {
        store.put(&table, &format!("key {number:02}"), "old", 0);
    }
    store.checkpoint_now();
    store.settle();
    // Half of what is on disk goes, as much comes in memory.
    for number in 0..20 {
        store.delete(&table, &format!("key {number:02}"), 0);
        store.put(&table, &format!("key {:02}", 40 + number), "new", 0);
    }
    let transaction = store.start();
    let mut cursor = transaction.cursor(&table).unwrap();
    let (dice, mut seen) = (Dice::new(9), BTreeSet::new());
    for _ in 0..4000 {
        let entry = cursor.random(&dice).unwrap().expect("the table is not empty");
        seen.insert(text(entry.key));
    }
    let expected: BTreeSet<String> = (20..60).map(|number| format!("key {number:02}")).collect();
    assert_eq!(seen, expected);
}

pub(super) fn x4_cursors_see_what_moves_from_memory_to_disk(maker: &dyn EngineFactoryMaker) {
    let store = Store::stand_alone(maker);
    let table = store.local("t");
    for number in 0..500 {
        store.put(&table, &format!("{number:04}"), "x", 0);
    }
    let transaction = store.start();
    let (mut forward, mut backward) = (transaction.cursor(&table).unwrap(), transaction.cursor(&table).unwrap());
    for number in 0..500 {
        if number % 97 == 0 {
            store.put(&table, &format!("{number:04}"), "changed", 0);
            store.checkpoint(CheckpointKind::Full).unwrap();
            store.settle();
        }
        assert_eq!(shown(forward.next().unwrap()), format!("{number:04}=x"));
        assert_eq!(shown(backward.previous().unwrap()), format!("{:04}=x", 499 - number));
    }
    assert_eq!(shown(forward.next().unwrap()), "none");
    assert_eq!(shown(backward.previous().unwrap()), "none");
}
