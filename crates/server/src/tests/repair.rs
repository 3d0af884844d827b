//! Repair above the engine: what is wrong is put there through the engine itself.

use super::node::{Node, node_on};
use super::*;
use crate::{RepairReport, repair_catalog, repair_data};
use pando_base::Namespace;
use pando_catalog::{Collection, DurableCatalog};
use pando_doc::DocBuilder;
use pando_engine_model::{Mode, ModelDisk, ModelEngine};
use pando_operation::Services;

fn collection_of(node: &Node, database: &str, name: &str) -> Arc<Collection> {
    let data = node.fixture.server.node().data.as_ref().unwrap();
    Arc::clone(data.catalog.latest().collection(&Namespace::of(database, name).unwrap()).unwrap())
}

/// Puts documents into a collection without a word to its indexes.
fn smuggle(node: &Node, collection: &Collection, documents: &[&[u8]]) {
    let data = node.fixture.server.node().data.as_ref().unwrap();
    let mut operation = data.services.internal_operation("smuggler");
    operation
        .in_unit_of_work(|operation| {
            for document in documents {
                collection.records.insert(&mut operation.recovery_unit, document)?;
            }
            Ok(())
        })
        .unwrap();
}

/// Repairs the store on the disk; what was changed.
async fn repair(disk: &Arc<ModelDisk>, damaged: &[&str]) -> Vec<String> {
    let env = Simulation::new(5).env();
    let engine: Arc<dyn Engine> = ModelEngine::open(disk, Mode::StandAlone).unwrap();
    let damaged = damaged.iter().map(|ident| (*ident).to_owned()).collect();
    let mut report = RepairReport { damaged, ..RepairReport::default() };
    let (machine, log) = (SimulatedMachine::new("node1"), Log::silent());
    let options = options(ReplicationMode::StandAlone);
    repair_catalog(&env, &engine, &log, &mut report).unwrap();
    repair_data(&env, &machine, &engine, &options, &log, &mut report).await.unwrap();
    engine.shut_down().unwrap();
    report.changes
}

async fn stopped(node: Node) {
    node.fixture.server.shut_down().await.unwrap();
}

fn has(changes: &[String], part: &str) -> bool {
    changes.iter().any(|change| change.contains(part))
}

#[test]
fn x16_documents_in_the_way_of_unique_indexes_are_found_again() {
    run(async {
        for is_known_as_damaged in [false, true] {
            let disk = ModelDisk::new();
            let mut node = node_on(&disk, ReplicationMode::StandAlone).await;
            node.insert((0..50).map(|id| doc! { "_id": id, "a": id, "b": [id, 7] }).collect()).await;
            let indexes = doc! { "createIndexes": "c", "indexes": [
                { "key": { "a": 1 }, "name": "a", "unique": true }, { "key": { "b": 1 }, "name": "b" },
            ] };
            node.ok(indexes).await;
            let collection = collection_of(&node, "d", "c");
            let same_id = doc! { "_id": 3, "a": 1003 };
            let same_key = doc! { "_id": 900, "a": 4 };
            let fine = doc! { "_id": 901, "a": 901, "b": 1 };
            smuggle(&node, &collection, &[same_id.bytes(), same_key.bytes(), fine.bytes(), b"no document"]);
            let (ident, uuid) = (collection.ident().to_owned(), collection.uuid);
            drop(collection);
            stopped(node).await;
            let damaged = if is_known_as_damaged { vec![ident.as_str()] } else { Vec::new() };
            let changes = repair(&disk, &damaged).await;
            assert_eq!(has(&changes, "were rebuilt"), is_known_as_damaged, "{changes:?}");
            assert_eq!(repair(&disk, &[]).await, Vec::<String>::new(), "one repair is enough");
            let mut node = node_on(&disk, ReplicationMode::StandAlone).await;
            assert_eq!(number(&node.ok(doc! { "count": "c" }).await, "n"), 51.0);
            let validated = node.ok(doc! { "validate": "c", "full": true }).await;
            assert!(validated.get("valid").unwrap().is_true(), "{validated}");
            let lost = format!("lost_and_found.{uuid}");
            assert_eq!(number(&node.ok_on("local", doc! { "count": (lost.as_str()) }).await, "n"), 2.0);
        }
    });
}

#[test]
fn x16_tables_and_entries_that_are_missing_are_made_up_for() {
    run(async {
        let disk = ModelDisk::new();
        let mut node = node_on(&disk, ReplicationMode::StandAlone).await;
        for name in ["kept", "emptied", "bare", "forgotten"] {
            let create = doc! { "createIndexes": name, "indexes": [{ "key": { "a": 1 }, "name": "a" }] };
            node.ok(create).await;
            node.ok(doc! { "insert": name, "documents": [{ "_id": 1, "a": 1 }, { "_id": 2, "a": 2 }] }).await;
        }
        let emptied = collection_of(&node, "d", "emptied").ident().to_owned();
        let index = collection_of(&node, "d", "bare").index("a").unwrap().ident().to_owned();
        let forgotten = collection_of(&node, "d", "forgotten");
        let (entry, orphan) = (forgotten.catalog_id.clone(), forgotten.ident().replace('-', "_"));
        let version = collection_of(&node, "admin", "system.version").catalog_id.clone();
        drop(forgotten);
        stopped(node).await;
        let env = Simulation::new(6).env();
        let engine: Arc<dyn Engine> = ModelEngine::open(&disk, Mode::StandAlone).unwrap();
        engine.drop_table(&emptied).unwrap();
        engine.drop_table(&index).unwrap();
        let services = Services::plain(&env, Arc::clone(&engine));
        let mut operation = services.internal_operation("vandal");
        let catalog = DurableCatalog::open(&engine).unwrap();
        operation
            .in_unit_of_work(|operation| {
                catalog.remove(&mut operation.recovery_unit, &entry)?;
                catalog.remove(&mut operation.recovery_unit, &version)
            })
            .unwrap();
        engine.shut_down().unwrap();
        drop((operation, services, catalog, engine));
        let changes = repair(&disk, &["_mdb_catalog"]).await;
        for part in
            ["the table of d.emptied is missing", "the index a of d.bare", "orphan.", "featureCompatibilityVersion"]
        {
            assert!(has(&changes, part), "{part}: {changes:?}");
        }
        let mut node = node_on(&disk, ReplicationMode::StandAlone).await;
        for (database, name, count) in [
            ("d", "kept".to_owned(), 2.0),
            ("d", "emptied".to_owned(), 0.0),
            ("d", "bare".to_owned(), 2.0),
            ("local", format!("orphan.{orphan}"), 2.0),
        ] {
            let counted = node.ok_on(database, doc! { "count": (name.as_str()) }).await;
            assert_eq!(number(&counted, "n"), count, "{name}");
            let validated = node.ok_on(database, doc! { "validate": (name.as_str()), "full": true }).await;
            assert!(validated.get("valid").unwrap().is_true(), "{validated}");
        }
        let by_index = node.ok(doc! { "count": "bare", "query": { "a": 2 }, "hint": "a" }).await;
        assert_eq!(number(&by_index, "n"), 1.0);
    });
}

#[test]
fn x16_a_repaired_member_does_not_join_its_set() {
    run(async {
        let disk = ModelDisk::new();
        let mut node = node_on(&disk, ReplicationMode::StandAlone).await;
        let configuration = doc! { "_id": "rs0", "version": 1, "term": 1, "members": [
            { "_id": 0, "host": "node1:27017" }, { "_id": 1, "host": "node2:27017" },
        ] };
        let mut insert = DocBuilder::new();
        insert.append("insert", "system.replset");
        insert.array("documents", |array| array.push(&configuration));
        node.ok_on("local", insert.finish()).await;
        node.insert(vec![doc! { "_id": 1 }]).await;
        let collection = collection_of(&node, "d", "c");
        smuggle(&node, &collection, &[b"no document"]);
        drop(collection);
        stopped(node).await;
        assert!(has(&repair(&disk, &[]).await, "configuration of the replica set"));
        let mut node = node_on(&disk, ReplicationMode::StandAlone).await;
        let found = node.ok_on("local", doc! { "find": "system.replset", "filter": { "repaired": true } }).await;
        assert!(found.to_string().contains("node2:27017"), "{found}");
    });
}
