//! The catalog on disk: what is written, what is found again, what `$listCatalog` says.

#![allow(clippy::unwrap_used, reason = "a test fails where it does")]

mod support;

use pando_base::{ErrorCode, Timestamp, Uuid};
use pando_catalog::{CatalogFeatures, CollectionOptions, ViewDefinition};
use pando_doc::{Doc, array, doc};
use pando_storage::StorageError;
use support::{Mode, Node, PlainWriter, Store, index_on, name, stores};

fn modes() -> [Mode; 2] {
    [Mode::StandAlone, Mode::ReplicaSet]
}

fn summary(node: &Node) -> Vec<String> {
    let latest = node.catalog.latest();
    let line = |collection: &std::sync::Arc<pando_catalog::Collection>| {
        let indexes: Vec<&str> = collection.indexes.iter().map(|index| index.name()).collect();
        format!(
            "{} {} {} {indexes:?} {:?}",
            collection.namespace,
            collection.uuid,
            collection.ident(),
            collection.options
        )
    };
    latest.all_collections().map(line).collect()
}

#[test]
fn x1_collections_and_indexes_are_found_again() {
    for mode in modes() {
        for store in stores(mode) {
            let node = store.open();
            node.create("test.a");
            node.create_with(
                "test.capped",
                CollectionOptions {
                    capped: true,
                    capped_size_bytes: 4096,
                    capped_documents_max: 7,
                    validator: Some(doc! { "x": 1 }),
                    ..CollectionOptions::default()
                },
            );
            node.add_index("test.a", &index_on("x"));
            node.create("other.b");
            node.rename("test.a", "test.renamed");
            let before = summary(&node);
            assert_eq!(before.len(), 3);
            node.checkpoint();
            drop(node);
            store.crash();
            let node = store.open();
            assert_eq!(summary(&node), before);
            assert_eq!(node.report, pando_catalog::LoadReport::default());
            assert_eq!(
                node.catalog.latest().databases().map(|name| name.as_str()).collect::<Vec<_>>(),
                ["other", "test"]
            );
            // Idents of this life do not meet those of the former.
            node.create("test.more");
            assert_eq!(node.catalog.latest().collection_count(), 4);
        }
    }
}

#[test]
fn x1_what_was_not_checkpointed_is_gone_with_its_tables_under_a_replica_set() {
    for store in stores(Mode::ReplicaSet) {
        let node = store.open();
        node.create("test.kept");
        node.checkpoint();
        let lost = node.create("test.lost").ident().to_owned();
        node.services.engine.flush_log().unwrap();
        drop(node);
        store.crash();
        let node = store.open();
        assert!(node.catalog.latest().collection(&name("test.kept")).is_some());
        assert!(node.catalog.latest().collection(&name("test.lost")).is_none());
        assert_eq!(node.report.unknown_idents.len(), 2);
        assert!(node.report.unknown_idents.contains(&lost) && node.has_table(&lost));
        node.create("test.next");
        assert_eq!(node.settle(), 2);
        assert!(!node.has_table(&lost));
    }
}

#[test]
fn x1_list_catalog_has_entries_and_views() {
    for store in stores(Mode::ReplicaSet) {
        let node = store.open();
        let simple = node.create("test.simple");
        node.add_index("test.simple", &index_on("a"));
        let view = ViewDefinition {
            namespace: name("test.simple_view"),
            view_on: name("test.simple"),
            pipeline: array![{ "$project": { "a": 0 } }],
            collation: None,
        };
        let writer = PlainWriter(&node.oplog);
        node.change(|operation| node.catalog.create_view(operation, &node.oplog, &writer, view)).unwrap();

        let rows = node.catalog.list_catalog(&mut node.operation(), None).unwrap();
        let names: Vec<&str> = rows.iter().map(|row| row.get("name").unwrap().as_str().unwrap()).collect();
        assert_eq!(names, ["simple", "system.views", "simple_view"]);
        let view = doc! {
            "db": "test", "name": "simple_view", "type": "view", "ns": "test.simple_view", "_id": "test.simple_view",
            "viewOn": "simple", "pipeline": [{ "$project": { "a": 0 } }],
        };
        assert_eq!(rows[2], view);
        let fields: Vec<String> = rows[0].elements().map(|element| element.name.to_string()).collect();
        assert_eq!(fields, ["db", "name", "type", "md", "idxIdent", "ns", "ident"]);
        assert_eq!(rows[0].get("ident").unwrap().as_str(), Some(simple.ident()));

        let one = node.catalog.list_catalog(&mut node.operation(), Some(&name("test.simple"))).unwrap();
        assert_eq!(one, [rows[0].clone()]);
        let one = node.catalog.list_catalog(&mut node.operation(), Some(&name("test.simple_view"))).unwrap();
        assert_eq!(one, [rows[2].clone()]);
        let none = node.catalog.list_catalog(&mut node.operation(), Some(&name("test.nothing"))).unwrap();
        assert_eq!(none, [] as [Doc; 0]);
    }
}

#[test]
fn x1_list_catalog_reads_at_a_time() {
    for store in stores(Mode::ReplicaSet) {
        let node = store.open();
        node.create("test.a");
        let then = node.oplog.now();
        node.create("test.b");
        let mut operation = node.operation();
        operation.recovery_unit.set_read_source(pando_storage::ReadSource::Provided(then)).unwrap();
        let rows = node.catalog.list_catalog(&mut operation, None).unwrap();
        assert_eq!(rows.len(), 1);
    }
}

#[test]
fn x1_a_missing_table_is_told() {
    let store = Store::model(Mode::StandAlone);
    let node = store.open();
    node.create("test.a");
    let indexed = node.add_index("test.a", &index_on("x"));
    let lost_index = indexed.index("x_1").unwrap().ident().to_owned();
    let engine = node.services.engine.clone();
    engine.drop_table(&lost_index).unwrap();
    let env = node.services.env.clone();
    let (catalog, report) = pando_catalog::Catalog::open(&env, &engine).unwrap();
    assert_eq!(report.missing_indexes, [(name("test.a"), "x_1".to_owned())]);
    assert!(catalog.latest().collection(&name("test.a")).unwrap().index("x_1").is_none());
    engine.drop_table(indexed.ident()).unwrap();
    let error = pando_catalog::Catalog::open(&env, &engine).err().unwrap();
    assert_eq!(error.code(), ErrorCode::DataCorruptionDetected);
}

#[test]
fn x1_unfinished_builds_are_told() {
    for store in stores(Mode::StandAlone) {
        let node = store.open();
        node.create("test.a");
        let build = Uuid::from_random([3; 16]);
        let started = node
            .change(|operation| {
                let collection = node.catalog.collection_for_ddl(operation, &name("test.a"))?;
                let specification = doc! { "v": 2, "key": { "x": 1 }, "name": "x_1" };
                node.catalog.start_index(operation, &collection, &specification, Some(build))
            })
            .unwrap();
        assert!(!started.index("x_1").unwrap().ready);
        let error = node.change(|op| node.catalog.drop_collection(op, &node.oplog, &name("test.a"))).unwrap_err();
        assert_eq!(error.code(), ErrorCode::BackgroundOperationInProgressForNamespace);
        node.checkpoint();
        drop((node, started));
        store.crash();
        let node = store.open();
        let found = &node.report.unfinished_builds;
        assert_eq!((found.len(), found[0].build_uuid, found[0].index_name.as_str()), (1, Some(build), "x_1"));
        let ready = node.change(|operation| {
            let collection = node.catalog.collection_for_ddl(operation, &name("test.a"))?;
            node.catalog.set_index_ready(operation, &collection, "x_1")
        });
        let index = ready.unwrap().index("x_1").unwrap().clone();
        assert!(index.ready && index.build_uuid.is_none());
    }
}

#[test]
fn x1_features_of_later_versions_are_refused() {
    for store in stores(Mode::StandAlone) {
        let node = store.open();
        node.create("test.a");
        let unit = &mut node.operation().recovery_unit;
        assert_eq!(node.catalog.durable().features(unit).unwrap(), CatalogFeatures::default());
        unit.abandon_snapshot().unwrap();
        let set = |features| {
            node.change(|op| node.catalog.durable().set_features(&mut op.recovery_unit, features)).unwrap();
        };
        set(CatalogFeatures { non_repairable: 0, repairable: 5 });
        let (env, engine) = (node.services.env.clone(), node.services.engine.clone());
        let (catalog, _) = pando_catalog::Catalog::open(&env, &engine).unwrap();
        assert_eq!(catalog.latest().collection_count(), 1);
        set(CatalogFeatures { non_repairable: 2, repairable: 5 });
        assert_eq!(pando_catalog::Catalog::open(&env, &engine).err().unwrap().code(), ErrorCode::MustUpgrade);
    }
}

#[test]
fn x1_after_a_rollback_the_catalog_is_read_again() {
    for store in stores(Mode::ReplicaSet) {
        let node = store.open();
        node.create("test.kept");
        node.checkpoint();
        node.create("test.gone");
        node.rename("test.kept", "test.other");
        node.services.engine.roll_back_to_stable().unwrap();
        let stable = node.services.engine.timestamps().stable;
        let report = node.catalog.reload(stable).unwrap();
        assert_eq!(report.unknown_idents.len(), 2);
        let latest = node.catalog.latest();
        let names: Vec<String> = latest.all_collections().map(|collection| collection.namespace.to_string()).collect();
        assert_eq!(names, ["test.kept"]);
        assert_ne!(stable, Timestamp::NONE);
    }
}

#[test]
fn x1_damage_is_an_error_that_names_the_record() {
    let store = Store::model(Mode::StandAlone);
    let node = store.open();
    node.create("test.a");
    let engine = node.services.engine.clone();
    let table = engine.open_table(pando_catalog::CATALOG_IDENT).unwrap();
    let records = pando_storage::RecordStore::new(engine.clone(), table, pando_storage::RecordIdKind::Long);
    node.change(|op| Ok(records.insert(&mut op.recovery_unit, b"no document")?)).unwrap();
    let error = pando_catalog::Catalog::open(&node.services.env, &engine).err().unwrap();
    assert!(error.reason().contains("the catalog's record"), "{error}");
    assert!(matches!(engine.open_table("none"), Err(StorageError::IdentNotFound(_))));
}
