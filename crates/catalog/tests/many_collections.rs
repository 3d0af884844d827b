//! Ten thousand collections: a change costs what it costs with a few.
//!
//! Allocations are counted, not time: those that one thread makes while a collection is created.

#![allow(clippy::unwrap_used, reason = "a test fails where it does")]

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use support::{Mode, Node, Store, name};

/// Counts what this thread allocates.
struct Counting;

thread_local! {
    static ALLOCATED_BYTES: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: everything is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATED_BYTES.try_with(|bytes| bytes.set(bytes.get() + layout.size() as u64));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocated_bytes(call: impl FnOnce()) -> u64 {
    let before = ALLOCATED_BYTES.with(Cell::get);
    call();
    ALLOCATED_BYTES.with(Cell::get) - before
}

/// The bytes allocated for creating some collections, the cheapest of several rounds, since maps grow by jumps.
fn cost_of_creating(node: &Node, round_name: &str) -> u64 {
    let cost = |round: usize| {
        allocated_bytes(|| {
            (0..10).for_each(|i| {
                node.create(&format!("test.{round_name}_{round}_{i}"));
            });
        })
    };
    (0..5).map(cost).min().unwrap()
}

#[test]
fn x2_creating_costs_the_same_with_ten_thousand_collections() {
    let store = Store::simulated(Mode::ReplicaSet, 1);
    let node = store.open();
    (0..100).for_each(|i| {
        node.create(&format!("test.first{i:05}"));
    });
    let few = cost_of_creating(&node, "few");
    (100..10_000).for_each(|i| {
        node.create(&format!("test.first{i:05}"));
    });
    let many = cost_of_creating(&node, "many");
    assert!(node.catalog.latest().collection_count() >= 10_000);
    // The maps are a level or two deeper: a hundred times as many collections, at most half as much again.
    assert!(many * 2 <= few * 3, "{few} bytes with a hundred, {many} with ten thousand");

    // A look-up allocates nothing at all.
    let (latest, wanted) = (node.catalog.latest(), name("test.first05000"));
    assert_eq!(allocated_bytes(|| assert!(latest.collection(&wanted).is_some())), 0);
    let mut operation = node.operation();
    let mut view = node.catalog.establish(&mut operation).unwrap();
    let looked_up = allocated_bytes(|| {
        assert!(view.collection(&node.catalog, &mut operation, &wanted).unwrap().is_some());
    });
    assert_eq!(looked_up, 0);
}

#[test]
fn x2_a_database_is_listed_without_looking_at_the_others() {
    let store = Store::model(Mode::StandAlone);
    let node = store.open();
    for i in 0..300 {
        node.create(&format!("db{i:03}.only"));
    }
    node.create("db150.more");
    let latest = node.catalog.latest();
    let database = name("db150.x").database_name();
    let listed: Vec<&str> = latest.collections(&database).map(|collection| collection.namespace.as_str()).collect();
    assert_eq!(listed, ["db150.more", "db150.only"]);
    assert_eq!(latest.databases().count(), 300);
}
