//! Entries applied again and again.

use super::support::{Node, engine};
use crate::apply::{Applier, ApplyMode};
use crate::topology::Mode;
use pando_base::ErrorCode;
use pando_doc::{Doc, Value, doc};
use pando_env::simulated::Simulation;
use pando_oplog::OplogEntry;
use pando_session::History;

/// Everything that a life leaves in the oplog, with names used again.
fn life() -> Vec<Doc> {
    let simulation = Simulation::new(1);
    let (node, _) = Node::start(&simulation.env()).unwrap();
    let before = node.entries().len();
    let text = "so long that a change of one field is worth a diff";
    node.create_index("test.a", &doc! { "v": 2, "key": { "a": 1 }, "name": "a_1" }).unwrap();
    node.insert("test.a", &[doc! { "_id": 1, "a": 1, "text": text }, doc! { "_id": 2, "a": 2, "text": text }]).unwrap();
    node.update("test.a", &doc! { "_id": 1, "a": [3, 4], "text": text }).unwrap();
    node.update("test.a", &doc! { "_id": 1, "a": 9, "text": text, "more": 1 }).unwrap();
    node.delete("test.a", Value::Int32(2)).unwrap();
    // The same name for another collection.
    node.insert("test.b", &[doc! { "_id": 1, "first": true }]).unwrap();
    node.drop_collection("test.b").unwrap();
    node.insert("test.b", &[doc! { "_id": 1, "second": true }]).unwrap();
    // A rename over another, and the old name used again.
    node.insert("test.c", &[doc! { "_id": 1, "renamed": true }]).unwrap();
    node.rename("test.c", "test.b").unwrap();
    node.insert("test.c", &[doc! { "_id": 5 }, doc! { "_id": 6 }]).unwrap();
    node.delete_batch("test.c", &[5]).unwrap();
    node.entries().split_off(before)
}

/// A node without history, where entries have no times.
fn plain(simulation: &Simulation) -> (Node, Applier) {
    let env = simulation.env();
    let node = Node::new(&env, engine(&env, pando_engine::Mode::StandAlone).unwrap(), Mode::StandAlone, 1).unwrap();
    let history = History::new(node.engine.clone());
    let applier = Applier::new(node.catalog.clone(), node.unobserved.clone(), node.table.clone(), history);
    let applier = applier.without_times();
    (node, applier)
}

fn apply(node: &Node, applier: &Applier, entries: &[Doc]) {
    let mut operation = node.operation();
    for entry in entries {
        let parsed = OplogEntry::parse(entry.view()).unwrap();
        applier
            .apply(&mut operation, &parsed, ApplyMode::Recovery)
            .unwrap_or_else(|error| panic!("{entry}: {error:?}"));
    }
}

#[test]
fn r17_applying_twice_is_applying_once() {
    let entries = life();
    let simulation = Simulation::new(2);
    let (node, applier) = plain(&simulation);
    apply(&node, &applier, &entries);
    let once = node.contents();
    assert_eq!(once.keys().collect::<Vec<_>>(), ["test.a", "test.b", "test.c"]);
    assert!(once["test.b"].values().all(|text| text.contains("renamed")), "{once:?}");
    node.check_indexes();
    for _ in 0..2 {
        apply(&node, &applier, &entries);
        assert_eq!(node.contents(), once);
        node.check_indexes();
    }
    // From any place on to the end.
    for start in 0..entries.len() {
        apply(&node, &applier, &entries[start..]);
        assert_eq!(node.contents(), once, "from {start}");
    }
    node.check_indexes();
}

#[test]
fn r17_in_steady_state_what_is_missing_is_an_error() {
    let entries = life();
    let simulation = Simulation::new(2);
    let (node, applier) = plain(&simulation);
    let update = entries.iter().find(|entry| entry.get("op").and_then(|op| op.as_str()) == Some("u")).unwrap();
    let parsed = OplogEntry::parse(update.view()).unwrap();
    let mut operation = node.operation();
    let error = applier.apply(&mut operation, &parsed, ApplyMode::Steady).unwrap_err();
    assert_eq!(error.code(), ErrorCode::NamespaceNotFound);
    assert!(applier.apply(&mut operation, &parsed, ApplyMode::Recovery).is_ok());
}

#[test]
fn r17_an_index_build_ends_with_every_key() {
    let simulation = Simulation::new(2);
    let (node, applier) = plain(&simulation);
    let uuid = pando_base::Uuid::from_random([7; 16]);
    let build = pando_base::Uuid::from_random([8; 16]);
    let command = |object: Doc| {
        let operation = pando_oplog::Operation::command("test.$cmd".into(), Some(uuid), object.view());
        OplogEntry::new(operation, pando_oplog::OpTime::new(pando_base::Timestamp::new(1, 1), 1), 1).to_doc()
    };
    let document = |id: i32| {
        let (document, key) = (doc! { "_id": id, "a": [id, id + 1] }, doc! { "_id": id });
        let operation = pando_oplog::Operation::insert("test.x".into(), uuid, document.view(), key.view());
        OplogEntry::new(operation, pando_oplog::OpTime::new(pando_base::Timestamp::new(1, 1), 1), 1).to_doc()
    };
    let index = doc! { "v": 2, "key": { "a": 1 }, "name": "a_1" };
    let mut entries = vec![command(doc! { "create": "x", "idIndex": { "v": 2, "key": { "_id": 1 }, "name": "_id_" } })];
    entries.extend((0..600).map(document));
    entries.push(command(pando_oplog::build::start_index_build_object("x", build, &[index.view()])));
    entries.push(document(1000));
    entries.push(command(pando_oplog::build::commit_index_build_object("x", build, &[index.view()])));
    apply(&node, &applier, &entries);
    let collection = node.find("test.x").unwrap();
    assert!(collection.index("a_1").is_some_and(|index| index.ready && index.multikey.is_multikey()));
    node.check_indexes();
    // One that is given up leaves nothing.
    let other = doc! { "v": 2, "key": { "b": 1 }, "name": "b_1" };
    let cause = pando_base::Error::bad_value("given up");
    apply(
        &node,
        &applier,
        &[
            command(pando_oplog::build::start_index_build_object("x", build, &[other.view()])),
            command(pando_oplog::build::abort_index_build_object("x", build, &[other.view()], &cause)),
        ],
    );
    assert!(node.find("test.x").unwrap().index("b_1").is_none());
}

#[test]
fn r17_options_are_changed_by_entries() {
    let simulation = Simulation::new(2);
    let (node, applier) = plain(&simulation);
    let uuid = pando_base::Uuid::from_random([7; 16]);
    let command = |object: Doc| {
        let operation = pando_oplog::Operation::command("test.$cmd".into(), Some(uuid), object.view());
        OplogEntry::new(operation, pando_oplog::OpTime::new(pando_base::Timestamp::new(1, 1), 1), 1).to_doc()
    };
    let id_index = doc! { "v": 2, "key": { "_id": 1 }, "name": "_id_" };
    apply(
        &node,
        &applier,
        &[
            command(doc! { "create": "x", "idIndex": &id_index }),
            command(doc! { "createIndexes": "x", "v": 2, "key": { "a": 1 }, "name": "a_1" }),
            command(doc! { "collMod": "x", "index": { "name": "a_1", "hidden": true } }),
            command(doc! { "collMod": "x", "validator": { "a": 1 }, "validationLevel": "moderate" }),
            command(doc! { "createIndexes": "x", "v": 2, "key": { "b": 1 }, "name": "b_1" }),
            command(doc! { "dropIndexes": "x", "index": "b_1" }),
        ],
    );
    let collection = node.find("test.x").unwrap();
    assert!(collection.index("a_1").unwrap().descriptor.hidden);
    assert_eq!(collection.options.validator, Some(doc! { "a": 1 }));
    assert!(collection.index("b_1").is_none());
    let dropped = OplogEntry::new(
        pando_oplog::Operation::command("test.$cmd".into(), None, doc! { "dropDatabase": 1 }.view()),
        pando_oplog::OpTime::new(pando_base::Timestamp::new(1, 1), 1),
        1,
    )
    .to_doc();
    apply(&node, &applier, &[dropped.clone(), dropped]);
    assert!(node.find("test.x").is_none());
}
