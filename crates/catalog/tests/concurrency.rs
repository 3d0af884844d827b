//! Readers and changes at the same time, and changes that a crash cuts off.

#![allow(clippy::unwrap_used, reason = "a test fails where it does")]

mod support;

use pando_base::{ErrorCode, Namespace, Result, Timestamp};
use pando_catalog::{CollectionOptions, RenameOptions};
use pando_env::{Env, Random};
use pando_operation::{Operation, write_conflict_retry_blocking};
use pando_storage::{Direction, ReadSource};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use support::{Mode, Node, Store, name, records, stores};

/// How often the writers change something.
const ROUNDS: usize = 150;

fn run_threads(bodies: Vec<Box<dyn FnOnce() + Send>>) {
    let env = Env::real();
    let threads: Vec<_> = bodies.into_iter().map(|body| env.tasks().spawn_thread("test", body).unwrap()).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

/// Renames a collection to and fro, replacing its one record by its name in the same unit.
fn rename_round(node: &Node, from: &Namespace, to: &Namespace) -> Result<()> {
    let mut operation = node.operation();
    write_conflict_retry_blocking(&mut operation, "rename", from, |operation| {
        operation.in_unit_of_work(|operation| {
            let options = RenameOptions::default();
            let renamed = node.catalog.rename_collection(operation, node.observers(), from, to, options)?;
            let mut cursor = renamed.records.cursor(Direction::Forward);
            let old = cursor.next(&mut operation.recovery_unit)?.map(|record| record.id);
            if let Some(old) = old {
                renamed.records.delete(&mut operation.recovery_unit, &old)?;
            }
            renamed.records.insert(&mut operation.recovery_unit, to.as_str().as_bytes())?;
            Ok(())
        })
    })
}

/// What a reader may find: one of the two names, with that name as its record.
fn check_view(node: &Node, operation: &mut Operation) {
    let mut view = node.catalog.establish(operation).unwrap();
    let database = name("test.x").database_name();
    let mut found = Vec::new();
    for namespace in ["test.a", "test.b"] {
        if let Some(collection) = view.collection(&node.catalog, operation, &name(namespace)).unwrap() {
            assert_eq!(collection.namespace.as_str(), namespace);
            assert_eq!(records(operation, &collection), [namespace]);
            found.push(namespace);
        }
    }
    assert_eq!(found.len(), 1, "{found:?}");
    let listed = view.collections(&node.catalog, operation, &database).unwrap();
    let of_two = |collection: &&Arc<pando_catalog::Collection>| !collection.namespace.collection().starts_with("other");
    let listed: Vec<&str> = listed.iter().filter(of_two).map(|collection| collection.namespace.as_str()).collect();
    assert_eq!(listed, found);
}

fn race(node: Arc<Node>, read_in_the_past: bool) {
    let (from, to) = (name("test.a"), name("test.b"));
    node.create("test.a");
    node.insert("test.a", "test.a");
    let start = node.oplog.now();
    let (done, reads) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let mut bodies: Vec<Box<dyn FnOnce() + Send>> = Vec::new();
    let (writer, ended) = (node.clone(), done.clone());
    bodies.push(Box::new(move || {
        for round in 0..ROUNDS {
            let (from, to) = if round % 2 == 0 { (&from, &to) } else { (&to, &from) };
            rename_round(&writer, from, to).unwrap();
        }
        ended.store(true, Ordering::SeqCst);
    }));
    // Another writer, so that versions are made for more than one reason.
    let (other, ended) = (node.clone(), done.clone());
    bodies.push(Box::new(move || {
        while !ended.load(Ordering::SeqCst) {
            other.create("test.other");
            other.drop_collection("test.other");
            other.catalog.reap().unwrap();
        }
    }));
    for _ in 0..2 {
        let (reader, ended, reads) = (node.clone(), done.clone(), reads.clone());
        bodies.push(Box::new(move || {
            while !ended.load(Ordering::SeqCst) || reads.load(Ordering::SeqCst) < 10 {
                let mut operation = reader.operation();
                if read_in_the_past {
                    // Behind the no-holes point, so that everything before it has committed.
                    let all_durable = reader.services.engine.timestamps().all_durable;
                    let span = all_durable.0.saturating_sub(start.0) + 1;
                    let at = Timestamp(start.0 + reader.services.env.random().below(span));
                    operation.recovery_unit.set_read_source(ReadSource::Provided(at.min(all_durable))).unwrap();
                }
                check_view(&reader, &mut operation);
                reads.fetch_add(1, Ordering::SeqCst);
            }
        }));
    }
    run_threads(bodies);
    assert!(reads.load(Ordering::SeqCst) >= 10);
    assert_eq!(node.catalog.latest().collection_count(), 1);
}

#[test]
fn x6_readers_find_what_their_snapshot_has_while_collections_are_renamed() {
    for mode in [Mode::StandAlone, Mode::ReplicaSet] {
        stores(mode).into_iter().for_each(|store| race(Arc::new(store.open()), false));
    }
}

#[test]
fn x6_readers_of_the_past_find_what_was_while_collections_are_renamed() {
    stores(Mode::ReplicaSet).into_iter().for_each(|store| race(Arc::new(store.open()), true));
}

#[test]
fn x6_nested_reads_share_the_view_and_a_yield_ends_it() {
    for store in stores(Mode::ReplicaSet) {
        let node = store.open();
        node.create("test.a");
        let mut operation = node.operation();
        let mut view = node.catalog.establish(&mut operation).unwrap();
        node.create("test.b");
        assert!(view.collection(&node.catalog, &mut operation, &name("test.b")).unwrap().is_none());
        assert!(view.is_current(&operation));
        operation.recovery_unit.abandon_snapshot().unwrap();
        assert!(!view.is_current(&operation));
        let mut view = node.catalog.establish(&mut operation).unwrap();
        assert!(view.collection(&node.catalog, &mut operation, &name("test.b")).unwrap().is_some());
    }
}

#[test]
fn x6_readers_find_what_has_committed_and_is_not_published_yet() {
    let points = pando_base::FailPointSet::new(&[pando_catalog::FAIL_POINTS]).unwrap();
    let point = "hangBeforePublishingCatalogUpdates";
    let point_itself = pando_catalog::FAIL_POINTS.iter().find(|other| other.name() == point).unwrap();
    for store in stores(Mode::ReplicaSet) {
        let node = Arc::new(store.open());
        let data = pando_doc::doc! { "collectionNS": "test.published" }.into_bytes();
        let before = points.set(point, pando_base::FailPointMode::AlwaysOn, data, 0).unwrap();
        node.create("test.other");
        let writer = node.clone();
        let env = Env::real();
        let body = move || drop(writer.create("test.published"));
        let thread = env.tasks().spawn_thread("test", Box::new(body)).unwrap();
        while point_itself.status().times_entered == before {
            env.clock().pause(std::time::Duration::from_millis(1));
        }
        assert!(node.catalog.latest().collection(&name("test.published")).is_none());
        let mut operation = node.operation();
        let mut view = node.catalog.establish(&mut operation).unwrap();
        assert!(view.collection(&node.catalog, &mut operation, &name("test.published")).unwrap().is_some());
        drop(operation);
        point_itself.turn_off();
        thread.join().unwrap();
        assert!(node.catalog.latest().collection(&name("test.published")).is_some());
    }
}

#[test]
fn x2_concurrent_changes_of_many_collections_are_all_made() {
    for store in stores(Mode::ReplicaSet) {
        let node = Arc::new(store.open());
        let bodies = (0..4).map(|thread| {
            let node = node.clone();
            let body = move || {
                for i in 0..40 {
                    node.create(&format!("test.t{thread}_{i}"));
                    if i % 4 == 0 {
                        node.drop_collection(&format!("test.t{thread}_{i}"));
                    }
                }
            };
            Box::new(body) as Box<dyn FnOnce() + Send>
        });
        run_threads(bodies.collect());
        let latest = node.catalog.latest();
        assert_eq!(latest.collection_count(), 4 * 30);
        let mut unit = node.services.recovery_unit();
        let durable = node.catalog.durable().entries(&mut unit).unwrap();
        let written: BTreeSet<String> = durable.iter().map(|(_, entry)| entry.namespace.to_string()).collect();
        let known: BTreeSet<String> = latest.all_collections().map(|c| c.namespace.to_string()).collect();
        assert_eq!(written, known);
    }
}

/// A random change; what names there are is kept beside.
fn random_change(node: &Node, random: &dyn Random, names: &mut BTreeSet<String>) {
    let pick = |names: &BTreeSet<String>| names.iter().nth(random.below(names.len() as u64) as usize).cloned();
    match random.below(5) {
        0 if names.len() > 2 => {
            let dropped = pick(names).unwrap();
            node.drop_collection(&dropped);
            names.remove(&dropped);
        }
        1 if names.len() > 1 => {
            let (from, to) = (pick(names).unwrap(), pick(names).unwrap());
            if from != to {
                node.rename(&from, &to);
                names.remove(&from);
            }
        }
        2 if !names.is_empty() => {
            let indexed = pick(names).unwrap();
            let field = format!("f{}", random.below(1_000_000));
            node.add_index(&indexed, &support::index_on(&field));
        }
        3 => {
            node.settle();
        }
        _ => {
            let created = format!("test.c{}", random.below(30));
            match node.try_create(&created, CollectionOptions::default()) {
                Ok(_) => assert!(names.insert(created)),
                Err(error) => assert_eq!(error.code(), ErrorCode::NamespaceExists),
            }
        }
    }
}

/// The catalog in memory, the durable one and the engine's tables agree.
fn check_consistent(node: &Node, context: &str) {
    let latest = node.catalog.latest();
    let idents: BTreeSet<String> = node.services.engine.idents().into_iter().collect();
    let mut unit = node.services.recovery_unit();
    let entries = node.catalog.durable().entries(&mut unit).unwrap();
    assert_eq!(entries.len(), latest.collection_count(), "{context}");
    for (id, entry) in &entries {
        let collection = latest.collection(&entry.namespace).unwrap();
        assert_eq!((&collection.catalog_id, collection.ident()), (id, entry.ident.as_str()), "{context}");
        assert!(entry.idents().all(|ident| idents.contains(ident)), "{context}: {}", entry.namespace);
        let indexes: Vec<&str> = collection.indexes.iter().map(|index| index.ident()).collect();
        assert_eq!(indexes, entry.idents().skip(1).collect::<Vec<_>>(), "{context}");
    }
}

fn known_names(node: &Node) -> BTreeSet<String> {
    node.catalog.latest().all_collections().map(|collection| collection.namespace.to_string()).collect()
}

fn crash_history(mode: Mode, store: &Store, seed: u64) {
    let random = pando_env::simulated::Simulation::new(seed).env();
    let random = random.random();
    let mut checkpointed = BTreeSet::new();
    for life in 0..4 {
        let context = format!("{mode:?}, seed {seed}, life {life}");
        let node = store.open();
        check_consistent(&node, &context);
        if mode == Mode::ReplicaSet {
            assert_eq!(known_names(&node), checkpointed, "{context}");
        }
        let mut names = known_names(&node);
        for _ in 0..random.below(25) {
            random_change(&node, random, &mut names);
            assert_eq!(known_names(&node), names, "{context}");
        }
        check_consistent(&node, &context);
        node.settle();
        checkpointed = names.clone();
        for _ in 0..random.below(4) {
            match random.below(2) {
                0 => node.services.engine.flush_log().map(drop).unwrap(),
                _ => {
                    node.try_create(&format!("test.late{}", random.next_u64()), CollectionOptions::default()).unwrap();
                }
            }
        }
        drop(node);
        store.crash();
    }
    // What is left over after the last life goes in time.
    let node = store.open();
    let wanted: usize = node.catalog.latest().all_collections().map(|collection| 1 + collection.indexes.len()).sum();
    node.create("test.last");
    node.settle();
    let tables = node.services.engine.idents().iter().filter(|ident| ident.contains('-')).count();
    assert_eq!(tables, wanted + 2, "{mode:?}, seed {seed}");
}

#[test]
fn x2_catalog_and_tables_agree_after_every_crash() {
    for seed in 1..=12 {
        for mode in [Mode::StandAlone, Mode::ReplicaSet] {
            crash_history(mode, &Store::simulated(mode, seed), seed);
            crash_history(mode, &Store::model(mode), seed);
        }
    }
}
