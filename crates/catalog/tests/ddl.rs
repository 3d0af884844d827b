//! What changes the catalog: creating, dropping, renaming, collMod, indexes, views, multikey; and what is refused.

#![allow(clippy::unwrap_used, reason = "a test fails where it does")]

mod support;

use pando_base::{DatabaseName, ErrorCode, Result};
use pando_catalog::{
    CollModChange, Collection, CollectionOptions, IndexChange, MultikeyComponents, PreparedIndex, RenameOptions,
    ValidationLevel, ViewDefinition,
};
use pando_doc::{Doc, array, doc};
use std::sync::Arc;
use support::{Mode, Node, PlainWriter, index_on, name, stores};

fn code<T: std::fmt::Debug>(result: Result<T>) -> ErrorCode {
    result.unwrap_err().code()
}

fn each(test: impl Fn(&Node)) {
    for mode in [Mode::StandAlone, Mode::ReplicaSet] {
        stores(mode).iter().for_each(|store| test(&store.open()));
    }
}

fn options(document: Doc) -> Result<CollectionOptions> {
    CollectionOptions::parse_command(document.view())
}

#[test]
fn x2_a_new_collection_has_its_id_index_and_an_id() {
    each(|node| {
        let collection = node.create("test.a");
        assert!(collection.uuid.is_random());
        assert!(
            collection.ident().starts_with("collection-")
                && collection.id_index().unwrap().ident().starts_with("index-")
        );
        let specification = &collection.id_index().unwrap().descriptor.specification;
        assert_eq!(*specification, doc! { "v": 2, "key": { "_id": 1 }, "name": "_id_" });
        let french = node.create_with("test.fr", options(doc! { "collation": { "locale": "fr" } }).unwrap());
        assert!(french.id_index().unwrap().descriptor.collation.is_some());
        let clustered = node.create_with(
            "test.cl",
            options(doc! { "clusteredIndex": { "key": { "_id": 1 }, "unique": true } }).unwrap(),
        );
        assert!(clustered.indexes.is_empty() && clustered.is_clustered());
        assert_eq!(clustered.records.kind(), pando_storage::RecordIdKind::Bytes);
        assert!(node.create("test.system.profile").indexes.is_empty());
        let given = CollectionOptions { uuid: Some(collection.uuid), ..CollectionOptions::default() };
        assert_eq!(code(node.try_create("test.taken", given)), ErrorCode::NamespaceExists);
    });
}

#[test]
fn u9_creation_is_refused_where_names_collide() {
    each(|node| {
        node.create("test.a");
        let create = |namespace: &str| node.try_create(namespace, CollectionOptions::default());
        assert_eq!(code(create("test.a")), ErrorCode::NamespaceExists);
        assert_eq!(code(create("TEST.b")), ErrorCode::DatabaseDifferCase);
        assert_eq!(code(create("test")), ErrorCode::InvalidNamespace);
        node.drop_collection("test.a");
        // Without collections there is no database, and no case to differ from.
        create("TEST.b").unwrap();
        let id_index = options(doc! { "idIndex": { "key": { "a": 1 }, "name": "_id_" } }).unwrap();
        assert_eq!(code(node.try_create("TEST.c", id_index)), ErrorCode::BadValue);
    });
}

#[test]
fn u9_dropping_what_is_not_there() {
    each(|node| {
        let drop = |namespace: &str| {
            node.change(|operation| node.catalog.drop_collection(operation, node.observers(), &name(namespace)))
        };
        assert_eq!(code(drop("test.a")), ErrorCode::NamespaceNotFound);
        view(node, "test.v", "test.base").unwrap();
        assert_eq!(code(drop("test.v")), ErrorCode::CommandNotSupportedOnView);
    });
}

#[test]
fn u9_a_dropped_database_has_nothing_left() {
    each(|node| {
        for namespace in ["test.a", "test.b", "testing.a", "tes.a"] {
            node.create(namespace);
        }
        view(node, "test.v", "test.a").unwrap();
        let database = DatabaseName::new("test").unwrap();
        node.change(|operation| node.catalog.drop_database(operation, node.observers(), &database)).unwrap();
        let latest = node.catalog.latest();
        let names: Vec<&str> = latest.all_collections().map(|collection| collection.namespace.as_str()).collect();
        assert_eq!(names, ["tes.a", "testing.a"]);
        assert!(latest.view(&name("test.v")).unwrap().is_none() && !latest.has_database(&database));
        assert_eq!(latest.collections(&database).count(), 0);
    });
}

fn rename(node: &Node, from: &str, to: &str, drop_target: bool, stay_temp: bool) -> Result<Arc<Collection>> {
    let options = RenameOptions { drop_target, stay_temp };
    node.change(|op| node.catalog.rename_collection(op, node.observers(), &name(from), &name(to), options))
}

#[test]
fn u9_rename_keeps_the_collection_and_its_indexes() {
    each(|node| {
        node.create_with("test.a", CollectionOptions { temp: true, ..CollectionOptions::default() });
        let before = node.add_index("test.a", &index_on("x"));
        let target = node.create("test.b");
        assert_eq!(code(rename(node, "test.a", "test.b", false, false)), ErrorCode::NamespaceExists);
        let stays = rename(node, "test.a", "test.c", false, true).unwrap();
        assert!(stays.options.temp);
        let after = rename(node, "test.c", "test.b", true, false).unwrap();
        assert_eq!((after.uuid, after.ident(), after.indexes.len()), (before.uuid, before.ident(), 2));
        assert!(!after.options.temp);
        assert!(Arc::ptr_eq(&after.indexes[1].multikey, &before.indexes[1].multikey));
        let latest = node.catalog.latest();
        assert_eq!(latest.collection_count(), 1);
        assert!(latest.collection_by_uuid(&target.uuid).is_none());
        assert_eq!(latest.namespace_of(&before.uuid), Some(&name("test.b")));
    });
}

#[test]
fn u9_rename_is_refused() {
    each(|node| {
        node.create("test.a");
        view(node, "test.v", "test.a").unwrap();
        let rows = [
            ("test.none", "test.x", ErrorCode::NamespaceNotFound),
            ("test.v", "test.x", ErrorCode::CommandNotSupportedOnView),
            ("test.a", "test.v", ErrorCode::NamespaceExists),
            ("test.a", "test.a", ErrorCode::IllegalOperation),
            ("test.a", "other.a", ErrorCode::CommandFailed),
            ("test.a", "test.system.views", ErrorCode::IllegalOperation),
            ("test.a", "test.system.profile", ErrorCode::IllegalOperation),
        ];
        for (from, to, expected) in rows {
            assert_eq!(code(rename(node, from, to, true, false)), expected, "{from} to {to}");
        }
    });
}

fn coll_mod(node: &Node, namespace: &str, change: CollModChange) -> Result<Arc<Collection>> {
    node.change(|operation| {
        let collection = node.catalog.collection_for_ddl(operation, &name(namespace))?;
        let command = doc! { "collMod": "x" };
        let outcome = node.catalog.coll_mod(operation, node.observers(), &collection, &change, command.view())?;
        Ok(outcome.collection)
    })
}

#[test]
fn u9_coll_mod_changes_options() {
    each(|node| {
        node.create("test.a");
        let level = Some(ValidationLevel::Moderate);
        let change = CollModChange {
            validator: Some(doc! { "x": { "$gt": 1 } }),
            validation_level: level,
            pre_and_post_images: Some(true),
            ..CollModChange::default()
        };
        let changed = coll_mod(node, "test.a", change).unwrap();
        assert_eq!((changed.options.validation_level, changed.options.pre_and_post_images), (level, true));
        let none = CollModChange { validator: Some(doc! {}), ..CollModChange::default() };
        let changed = coll_mod(node, "test.a", none).unwrap();
        assert!(changed.options.validator.is_none() && changed.options.pre_and_post_images);
        let capped = CollModChange { capped_size_bytes: Some(1), ..CollModChange::default() };
        assert_eq!(code(coll_mod(node, "test.a", capped.clone())), ErrorCode::InvalidOptions);
        node.create_with("test.capped", options(doc! { "capped": true, "size": 4096 }).unwrap());
        assert_eq!(coll_mod(node, "test.capped", capped).unwrap().options.capped_size_bytes, 1);
        let expiry = CollModChange { expire_after_seconds: Some(Some(5)), ..CollModChange::default() };
        assert_eq!(code(coll_mod(node, "test.a", expiry)), ErrorCode::InvalidOptions);
        assert_eq!(code(coll_mod(node, "test.none", CollModChange::default())), ErrorCode::NamespaceNotFound);
    });
}

#[test]
fn u9_coll_mod_changes_an_index() {
    each(|node| {
        node.create("test.a");
        node.add_index("test.a", &index_on("x"));
        let change = |change: IndexChange| {
            let change = CollModChange { index: Some(change), ..CollModChange::default() };
            coll_mod(node, "test.a", change)
        };
        let on = |name: &str| IndexChange { name: name.to_owned(), ..IndexChange::default() };
        let specification =
            |collection: Arc<Collection>| collection.index("x_1").unwrap().descriptor.specification.clone();

        let hidden = change(IndexChange { hidden: Some(true), ..on("x_1") }).unwrap();
        assert_eq!(specification(hidden), doc! { "v": 2, "key": { "x": 1 }, "name": "x_1", "hidden": true });
        let shown = change(IndexChange { hidden: Some(false), ..on("x_1") }).unwrap();
        assert_eq!(specification(shown), doc! { "v": 2, "key": { "x": 1 }, "name": "x_1" });
        let expiring = change(IndexChange { expire_after_seconds: Some(60), ..on("x_1") }).unwrap();
        assert_eq!(expiring.index("x_1").unwrap().descriptor.expire_after_seconds, Some(60));

        assert_eq!(code(change(IndexChange { unique: Some(true), ..on("x_1") })), ErrorCode::InvalidOptions);
        change(IndexChange { prepare_unique: Some(true), ..on("x_1") }).unwrap();
        let unique = change(IndexChange { unique: Some(true), ..on("x_1") }).unwrap();
        let index = unique.index("x_1").unwrap();
        assert!(index.descriptor.unique && !index.descriptor.prepare_unique);
        assert_eq!(index.data.format(), pando_storage::IndexFormat::Unique);
        assert_eq!(code(change(IndexChange { unique: Some(false), ..on("x_1") })), ErrorCode::BadValue);
        assert_eq!(code(change(IndexChange { hidden: Some(true), ..on("_id_") })), ErrorCode::BadValue);
        assert_eq!(code(change(on("none"))), ErrorCode::IndexNotFound);
    });
}

#[test]
fn x2_index_specifications_are_compared_with_what_is_there() {
    each(|node| {
        node.create("test.a");
        node.add_index("test.a", &index_on("x"));
        let collection = node.read("test.a").unwrap().0;
        let prepare = |specification: Doc| node.catalog.prepare_index(&collection, specification.view());
        assert!(matches!(prepare(index_on("x")), Ok(PreparedIndex::Exists(name)) if name == "x_1"));
        assert!(matches!(prepare(doc! { "key": { "x": 1.0 }, "name": "x_1" }), Ok(PreparedIndex::Exists(_))));
        assert!(matches!(prepare(index_on("y")), Ok(PreparedIndex::New(_))));
        assert!(matches!(prepare(doc! { "key": { "_id": 1 }, "name": "any" }), Ok(PreparedIndex::Exists(_))));
        let rows = [
            (doc! { "key": { "y": 1 }, "name": "x_1" }, ErrorCode::IndexKeySpecsConflict),
            (doc! { "key": { "x": 1 }, "name": "x_1", "expireAfterSeconds": 5 }, ErrorCode::IndexOptionsConflict),
            (doc! { "key": { "x": 1 }, "name": "other" }, ErrorCode::IndexOptionsConflict),
            (doc! { "key": { "x": 1 }, "name": "x_1", "unique": true }, ErrorCode::IndexKeySpecsConflict),
            (doc! { "key": { "_id": 1 }, "name": "_id_", "sparse": true }, ErrorCode::InvalidIndexSpecificationOption),
        ];
        for (specification, expected) in rows {
            assert_eq!(code(prepare(specification.clone())), expected, "{specification:?}");
        }
        // Uniqueness, sparseness, a filter or a collation make another index.
        let other = doc! { "key": { "x": 1 }, "name": "partial", "partialFilterExpression": { "x": 1 } };
        assert!(matches!(prepare(other), Ok(PreparedIndex::New(_))));
        let drop = |name: &str| node.change(|op| node.catalog.drop_index(op, node.observers(), &collection, name));
        assert_eq!(code(drop("_id_")), ErrorCode::InvalidOptions);
        assert_eq!(code(drop("none")), ErrorCode::IndexNotFound);
        assert_eq!(collection.index_by_key(doc! { "x": 1 }.view()).unwrap().name(), "x_1");
        assert_eq!(code(collection.index_by_key(doc! { "z": 1 }.view())), ErrorCode::IndexNotFound);
    });
}

#[test]
fn x2_a_collection_has_at_most_64_indexes() {
    let node = &support::Store::model(Mode::StandAlone).open();
    node.create("test.a");
    (0..63).for_each(|i| {
        node.add_index("test.a", &index_on(&format!("f{i}")));
    });
    let collection = node.read("test.a").unwrap().0;
    assert_eq!(code(node.catalog.prepare_index(&collection, index_on("more").view())), ErrorCode::CannotCreateIndex);
}

fn view(node: &Node, view: &str, on: &str) -> Result<()> {
    let definition =
        ViewDefinition { namespace: name(view), view_on: name(on), pipeline: array![{ "$limit": 1 }], collation: None };
    node.change(|op| node.catalog.create_view(op, node.observers(), &PlainWriter(&node.oplog), definition))
}

#[test]
fn u9_views_are_created_changed_dropped_and_found_again() {
    for mode in [Mode::StandAlone, Mode::ReplicaSet] {
        for store in stores(mode) {
            let node = store.open();
            view(&node, "test.v", "test.base").unwrap();
            view(&node, "test.w", "test.v").unwrap();
            assert_eq!(code(view(&node, "test.v", "test.base")), ErrorCode::NamespaceExists);
            assert_eq!(code(node.try_create("test.v", CollectionOptions::default())), ErrorCode::NamespaceExists);
            assert_eq!(code(view(&node, "test.system.x", "test.base")), ErrorCode::InvalidNamespace);
            assert_eq!(code(view(&node, "test.x", "other.base")), ErrorCode::BadValue);
            let resolved = node.catalog.latest().resolve_view(&name("test.w")).unwrap().unwrap();
            assert_eq!((resolved.namespace, resolved.pipeline.len()), (name("test.base"), 2));
            node.checkpoint();
            drop(node);
            store.crash();

            let node = store.open();
            let writer = PlainWriter(&node.oplog);
            let circle = ViewDefinition {
                namespace: name("test.v"),
                view_on: name("test.w"),
                pipeline: array![],
                collation: None,
            };
            let modify =
                |view: ViewDefinition| node.change(|op| node.catalog.modify_view(op, node.observers(), &writer, view));
            assert_eq!(code(modify(circle.clone())), ErrorCode::GraphContainsCycle);
            modify(ViewDefinition { view_on: name("test.other"), ..circle.clone() }).unwrap();
            assert_eq!(
                code(modify(ViewDefinition { namespace: name("test.none"), ..circle })),
                ErrorCode::NamespaceNotFound
            );
            let resolved = node.catalog.latest().resolve_view(&name("test.w")).unwrap().unwrap();
            assert_eq!((resolved.namespace, resolved.pipeline.len()), (name("test.other"), 1));
            let drop = |view: &str| node.change(|op| node.catalog.drop_view(op, &writer, &name(view)));
            drop("test.v").unwrap();
            assert_eq!(code(drop("test.v")), ErrorCode::NamespaceNotFound);
            assert_eq!(node.catalog.latest().resolve_view(&name("test.w")).unwrap().unwrap().namespace, name("test.v"));
        }
    }
}

#[test]
fn u9_views_written_past_the_catalog_are_read_again() {
    each(|node| {
        view(node, "test.v", "test.base").unwrap();
        let database = DatabaseName::new("test").unwrap();
        node.change(|operation| {
            let system_views = node.catalog.collection_for_ddl(operation, &name("test.system.views"))?;
            let document = doc! { "_id": "test.direct", "viewOn": "v", "pipeline": [] };
            system_views.records.insert(&mut operation.recovery_unit, document.bytes())?;
            node.catalog.reload_views(operation, &database)
        })
        .unwrap();
        assert_eq!(node.catalog.latest().views(&database).unwrap().len(), 2);
        node.drop_collection("test.system.views");
        assert!(node.catalog.latest().view(&name("test.v")).unwrap().is_none());
    });
}

fn multikey_written(node: &Node, namespace: &str) -> (bool, Vec<Vec<usize>>) {
    let collection = node.read(namespace).unwrap().0;
    let unit = &mut node.operation().recovery_unit;
    let entry = node.catalog.durable().get(unit, &collection.catalog_id).unwrap().unwrap();
    let index = entry.index("a.b_1").unwrap();
    (index.multikey, index.multikey_paths.iter().map(|components| components.iter().collect()).collect())
}

fn set_multikey(node: &Node, operation: &mut pando_operation::Operation, component: usize) -> Result<()> {
    let collection = node.catalog.collection_for_ddl(operation, &name("test.a"))?;
    let index = collection.index("a.b_1").unwrap();
    let paths = [MultikeyComponents::from_iter([component])];
    node.catalog.set_multikey(operation, node.observers(), &collection, index, &paths)
}

#[test]
fn x11_multikey_is_written_when_first_set_and_found_again() {
    for mode in [Mode::StandAlone, Mode::ReplicaSet] {
        for store in stores(mode) {
            let node = store.open();
            node.create("test.a");
            node.add_index("test.a", &index_on("a.b"));
            assert_eq!(multikey_written(&node, "test.a"), (false, vec![vec![]]));
            // Whatever becomes of the document, the state stays.
            let failed = node.change(|operation| {
                set_multikey(&node, operation, 1)?;
                Err::<(), _>(pando_base::Error::bad_value("no"))
            });
            assert!(failed.is_err());
            assert_eq!(multikey_written(&node, "test.a"), (true, vec![vec![1]]));
            let version = node.catalog.latest().version();
            node.change(|operation| set_multikey(&node, operation, 0)).unwrap();
            assert_eq!(multikey_written(&node, "test.a"), (true, vec![vec![0, 1]]));
            let written = node.oplog.now();
            node.change(|operation| set_multikey(&node, operation, 1)).unwrap();
            assert_eq!((node.oplog.now(), node.catalog.latest().version()), (written, version));
            node.checkpoint();
            drop(node);
            store.crash();
            let node = store.open();
            let collection = node.read("test.a").unwrap().0;
            let state = &collection.index("a.b_1").unwrap().multikey;
            assert!(state.is_multikey() && state.paths()[0].contains(0) && state.paths()[0].contains(1));
        }
    }
}

#[test]
fn x11_multikey_joins_the_unit_where_its_time_is_set_or_the_collection_is_its_own() {
    for store in stores(Mode::ReplicaSet) {
        let node = store.open();
        node.create("test.a");
        node.add_index("test.a", &index_on("a.b"));
        let mut operation = node.operation();
        let mut unit = operation.unit_of_work();
        node.oplog.write(&mut unit, &name("test.a")).unwrap();
        set_multikey(&node, &mut unit, 0).unwrap();
        assert_eq!(multikey_written(&node, "test.a"), (false, vec![vec![]]));
        let state = node.read("test.a").unwrap().0.index("a.b_1").unwrap().multikey.clone();
        assert!(!state.is_multikey());
        unit.commit().unwrap();
        assert!(state.is_multikey());
        assert_eq!(multikey_written(&node, "test.a"), (true, vec![vec![0]]));

        // In a unit that has made the collection there is no other way.
        node.drop_collection("test.a");
        let created = node.change(|operation| {
            let namespace = name("test.a");
            let options = CollectionOptions::default();
            let collection = node.catalog.create_collection(operation, node.observers(), &namespace, options)?;
            let specification = doc! { "v": 2, "key": { "a.b": 1 }, "name": "a.b_1" };
            node.catalog.create_index_on_empty(operation, node.observers(), &collection, &specification)?;
            set_multikey(&node, operation, 1)
        });
        created.unwrap();
        assert_eq!(multikey_written(&node, "test.a"), (true, vec![vec![1]]));
    }
}
