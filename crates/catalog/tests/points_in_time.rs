//! Versions of the catalog: what which reader finds, now and in the past, and what is dropped when.

#![allow(clippy::unwrap_used, reason = "a test fails where it does")]

mod support;

use pando_base::{ErrorCode, Timestamp};
use pando_catalog::{CollModChange, CollectionOptions, IndexChange};
use pando_doc::doc;
use pando_operation::UnitOfWork;
use pando_storage::{IndexFormat, ReadSource};
use std::sync::{Arc, Mutex};
use support::{Mode, Node, index_on, name, stores};

#[test]
fn x2_a_renamed_collection_is_found_under_its_former_name() {
    for store in stores(Mode::ReplicaSet) {
        let node = store.open();
        let created = node.create("test.a");
        let t0 = node.oplog.now();
        node.insert("test.a", "one");
        let t1 = node.oplog.now();
        node.rename("test.a", "test.b");
        let t2 = node.oplog.now();
        node.insert("test.b", "two");

        let (then, records) = node.read_at("test.a", t1).unwrap();
        assert_eq!((then.uuid, then.namespace.as_str(), records), (created.uuid, "test.a", vec!["one".to_owned()]));
        assert!(node.read_at("test.b", t1).is_none());
        assert_eq!(node.read_at("test.a", t0).unwrap().1, [] as [String; 0]);
        assert!(node.read_at("test.a", Timestamp(t0.0 - 1)).is_none());
        assert!(node.read_at("test.a", t2).is_none());
        assert_eq!(node.read_at("test.b", t2).unwrap().1, ["one"]);
        assert_eq!(node.read("test.b").unwrap().1, ["one", "two"]);
        assert!(node.read("test.a").is_none());

        // By id it is found at every time, under the name of that time.
        let mut operation = node.operation();
        operation.recovery_unit.set_read_source(ReadSource::Provided(t1)).unwrap();
        let mut view = node.catalog.establish(&mut operation).unwrap();
        let then = view.collection_by_uuid(&node.catalog, &mut operation, &created.uuid).unwrap().unwrap();
        assert_eq!(then.namespace, name("test.a"));
        let listed = view.collections(&node.catalog, &mut operation, &name("test.x").database_name()).unwrap();
        assert_eq!(listed.iter().map(|c| c.namespace.as_str()).collect::<Vec<_>>(), ["test.a"]);
    }
}

#[test]
fn x2_a_dropped_collection_is_found_before_its_drop() {
    for store in stores(Mode::ReplicaSet) {
        let node = store.open();
        node.create("test.a");
        node.insert("test.a", "old");
        let t1 = node.oplog.now();
        let old = node.read("test.a").unwrap().0.uuid;
        node.drop_collection("test.a");
        let t2 = node.oplog.now();
        let new = node.create("test.a");
        node.insert("test.a", "new");

        let (then, records) = node.read_at("test.a", t1).unwrap();
        assert_eq!((then.uuid, records), (old, vec!["old".to_owned()]));
        assert!(node.read_at("test.a", t2).is_none());
        assert_eq!(
            node.read("test.a").map(|(now, records)| (now.uuid, records)),
            Some((new.uuid, vec!["new".to_owned()]))
        );

        let mut operation = node.operation();
        operation.recovery_unit.set_read_source(ReadSource::Provided(t1)).unwrap();
        let mut view = node.catalog.establish(&mut operation).unwrap();
        assert!(view.collection_by_uuid(&node.catalog, &mut operation, &old).unwrap().is_some());
        assert!(view.collection_by_uuid(&node.catalog, &mut operation, &new.uuid).unwrap().is_none());
        assert_eq!(view.databases(&node.catalog, &mut operation).unwrap().len(), 1);
    }
}

#[test]
fn x2_indexes_and_options_are_those_of_the_time() {
    for store in stores(Mode::ReplicaSet) {
        let node = store.open();
        node.create("test.a");
        let t0 = node.oplog.now();
        node.add_index("test.a", &index_on("x"));
        let t1 = node.oplog.now();
        node.change(|op| {
            let collection = node.catalog.collection_for_ddl(op, &name("test.a"))?;
            let change = CollModChange { validator: Some(doc! { "x": 1 }), ..CollModChange::default() };
            node.catalog.coll_mod(op, &node.oplog, &collection, &change, doc! { "collMod": "a" }.view())
        })
        .unwrap();
        let t2 = node.oplog.now();
        node.change(|op| {
            let collection = node.catalog.collection_for_ddl(op, &name("test.a"))?;
            node.catalog.drop_index(op, &node.oplog, &collection, "x_1")
        })
        .unwrap();
        let seen = |at| {
            let collection = node.read_at("test.a", at).unwrap().0;
            (collection.index("x_1").is_some(), collection.options.validator.is_some())
        };
        assert_eq!((seen(t0), seen(t1), seen(t2)), ((false, false), (true, false), (true, true)));
        let now = node.read("test.a").unwrap().0;
        assert!(now.index("x_1").is_none() && now.options.validator.is_some());
        // A version for the past shares the records with the newest.
        assert!(Arc::ptr_eq(&now.records, &node.read_at("test.a", t0).unwrap().0.records));
    }
}

#[test]
fn x2_the_newest_version_serves_later_reads() {
    for store in stores(Mode::ReplicaSet) {
        let node = store.open();
        node.create("test.a");
        let created = node.oplog.now();
        node.insert("test.a", "one");
        let latest = node.catalog.latest().collection(&name("test.a")).unwrap().clone();
        assert_eq!(latest.minimum_valid_snapshot, created);
        assert!(Arc::ptr_eq(&latest, &node.read_at("test.a", created).unwrap().0));
        assert!(Arc::ptr_eq(&latest, &node.read("test.a").unwrap().0));
    }
}

#[test]
fn x2_the_past_is_known_after_a_restart_and_forgotten_with_oldest() {
    for store in stores(Mode::ReplicaSet) {
        let node = store.open();
        node.create("test.a");
        node.insert("test.a", "one");
        let t1 = node.oplog.now();
        node.services.engine.set_stable(t1).unwrap();
        node.services.engine.set_oldest(t1, false).unwrap();
        node.rename("test.a", "test.b");
        node.checkpoint();
        drop(node);
        store.crash();
        let node = store.open();
        assert_eq!(node.catalog.latest().history_len(), 1);
        // Nobody has told this catalog of the former name.
        assert_eq!(node.read_at("test.a", t1).unwrap().1, ["one"]);
        assert!(node.read_at("test.b", t1).is_none());
        node.rename("test.b", "test.c");
        assert_eq!(node.catalog.latest().history_len(), 3);
        node.settle();
        assert_eq!(node.catalog.latest().history_len(), 1);
        assert_eq!(node.read("test.c").unwrap().1, ["one"]);
    }
}

#[test]
fn x2_a_unit_sees_its_own_changes_and_nobody_else_does() {
    for store in stores(Mode::ReplicaSet) {
        let node = store.open();
        let version = node.catalog.latest().version();
        let mut operation = node.operation();
        let mut unit = operation.unit_of_work();
        let created = node
            .catalog
            .create_collection(&mut unit, &node.oplog, &name("test.a"), CollectionOptions::default())
            .unwrap();
        let seen = node.catalog.collection_for_write(&mut unit, &name("test.a")).unwrap().unwrap();
        assert!(Arc::ptr_eq(&seen, &created));
        assert!(node.catalog.collection_for_write_by_uuid(&mut unit, &created.uuid).unwrap().is_some());
        let mut view = node.catalog.establish(&mut unit).unwrap();
        assert!(view.collection(&node.catalog, &mut unit, &name("test.a")).unwrap().is_some());
        assert!(node.read("test.a").is_none());
        assert_eq!(node.catalog.latest().version(), version);
        let twice =
            node.catalog.create_collection(&mut unit, &node.oplog, &name("test.a"), CollectionOptions::default());
        assert_eq!(twice.unwrap_err().code(), ErrorCode::NamespaceExists);
        node.catalog.drop_collection(&mut unit, &node.oplog, &name("test.a")).unwrap();
        assert!(node.catalog.collection_for_write(&mut unit, &name("test.a")).unwrap().is_none());
        drop(unit);
    }
}

#[test]
fn x2_a_rollback_leaves_nothing() {
    for store in stores(Mode::ReplicaSet) {
        let node = store.open();
        node.create("test.kept");
        let before = node.services.engine.idents();
        let failed = node.change(|operation| {
            node.catalog.create_collection(operation, &node.oplog, &name("test.a"), CollectionOptions::default())?;
            node.catalog.drop_collection(operation, &node.oplog, &name("test.kept"))?;
            Err::<(), _>(pando_base::Error::bad_value("no"))
        });
        assert!(failed.is_err());
        assert!(node.read("test.kept").is_some() && node.read("test.a").is_none());
        assert_eq!(node.catalog.reaper().pending().len(), 2);
        assert_eq!(node.catalog.reap().unwrap(), 2);
        assert_eq!(node.services.engine.idents(), before);
        // The operation that failed sees nothing of it either.
        node.create("test.a");
        node.drop_collection("test.kept");
    }
}

/// Runs a call between the engine's commit and the publishing, and one just before the commit.
fn around_commit(
    node: &Node,
    change: impl FnOnce(&mut pando_operation::Operation),
    look: impl Fn(&str) + Send + 'static,
) {
    let look = Arc::new(Mutex::new(look));
    let mut operation = node.operation();
    let mut unit = operation.unit_of_work();
    let after = look.clone();
    unit.recovery_unit.on_commit(move |_| (after.lock().unwrap())("committed")).unwrap();
    change(&mut unit);
    unit.recovery_unit
        .register_pre_commit_hook(Box::new(move |_| {
            (look.lock().unwrap())("before");
            Ok(())
        }))
        .unwrap();
    unit.commit().unwrap();
}

#[test]
fn x2_readers_between_commit_and_publishing_find_what_their_snapshot_has() {
    for mode in [Mode::StandAlone, Mode::ReplicaSet] {
        for store in stores(mode) {
            let node = Arc::new(store.open());
            node.create("test.a");
            let seen: Arc<Mutex<Vec<String>>> = Arc::default();
            let (reader, notes) = (node.clone(), seen.clone());
            let look = move |when: &str| {
                let found = ["test.a", "test.b"].map(|name| reader.read(name).is_some());
                let mut operation = reader.operation();
                let mut view = reader.catalog.establish(&mut operation).unwrap();
                let database = name("test.x").database_name();
                let listed = view.collections(&reader.catalog, &mut operation, &database).unwrap();
                let names: Vec<&str> = listed.iter().map(|collection| collection.namespace.as_str()).collect();
                notes.lock().unwrap().push(format!("{when} {found:?} {names:?}"));
            };
            let options = pando_catalog::RenameOptions::default();
            around_commit(
                &node,
                |unit| {
                    let (from, to) = (name("test.a"), name("test.b"));
                    node.catalog.rename_collection(unit, &node.oplog, &from, &to, options).unwrap();
                },
                look,
            );
            let expected =
                [r#"before [true, false] ["test.a"]"#, r#"committed [false, true] ["test.b"]"#].map(str::to_owned);
            assert_eq!(*seen.lock().unwrap(), expected);
            assert!(node.read("test.b").is_some() && node.read("test.a").is_none());
        }
    }
}

#[test]
fn x2_creation_and_drop_are_seen_as_the_snapshot_has_them() {
    for store in stores(Mode::ReplicaSet) {
        let node = Arc::new(store.open());
        node.create("test.old");
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let (reader, notes) = (node.clone(), seen.clone());
        let look = move |when: &str| {
            let found = ["test.old", "test.new"].map(|name| reader.read(name).is_some());
            notes.lock().unwrap().push(format!("{when} {found:?}"));
        };
        around_commit(
            &node,
            |unit| {
                node.catalog.drop_collection(unit, &node.oplog, &name("test.old")).unwrap();
                let options = CollectionOptions::default();
                node.catalog.create_collection(unit, &node.oplog, &name("test.new"), options).unwrap();
            },
            look,
        );
        assert_eq!(*seen.lock().unwrap(), ["before [true, false]", "committed [false, true]"]);
    }
}

#[test]
fn x2_a_snapshot_older_than_the_catalog_keeps_its_collections() {
    for mode in [Mode::StandAlone, Mode::ReplicaSet] {
        for store in stores(mode) {
            let node = store.open();
            node.create("test.a");
            node.insert("test.a", "one");
            let mut operation = node.operation();
            operation.recovery_unit.preallocate_snapshot().unwrap();
            node.drop_collection("test.a");
            node.create("test.b");
            let found = node.read_with(&mut operation, "test.a");
            assert_eq!(found.map(|(_, records)| records), Some(vec!["one".to_owned()]));
            assert!(node.read_with(&mut operation, "test.b").is_none());
        }
    }
}

#[test]
fn x2_a_transaction_that_writes_to_what_changed_conflicts() {
    for store in stores(Mode::ReplicaSet) {
        let node = store.open();
        node.create("test.a");
        node.create("test.same");
        let mut transaction = node.operation();
        transaction.retry_policy.multi_document = true;
        transaction.recovery_unit.preallocate_snapshot().unwrap();
        node.add_index("test.a", &index_on("x"));
        node.create("test.new");
        let write = |operation: &mut _, namespace: &str| node.catalog.collection_for_write(operation, &name(namespace));
        assert!(write(&mut transaction, "test.same").unwrap().is_some());
        assert!(write(&mut transaction, "test.nothing").unwrap().is_none());
        assert_eq!(write(&mut transaction, "test.a").unwrap_err().code(), ErrorCode::WriteConflict);
        assert!(write(&mut transaction, "test.new").unwrap().is_none(), "it is not there yet");
        node.drop_collection("test.same");
        assert_eq!(write(&mut transaction, "test.same").unwrap_err().code(), ErrorCode::WriteConflict);
    }
}

#[test]
fn x3_data_stays_until_checkpoint_and_oldest_have_passed_the_drop() {
    for store in stores(Mode::ReplicaSet) {
        let node = store.open();
        let collection = node.create("test.a");
        node.insert("test.a", "one");
        let (ident, index) = (collection.ident().to_owned(), collection.indexes[0].ident().to_owned());
        drop(collection);
        let before = node.oplog.now();
        node.services.engine.set_stable(before).unwrap();
        node.services.engine.set_oldest(before, false).unwrap();
        node.drop_collection("test.a");
        let dropped_at = node.oplog.now();
        assert_eq!(node.catalog.reap().unwrap(), 0);
        node.checkpoint();
        assert_eq!(node.catalog.reap().unwrap(), 0, "oldest is before the drop");
        assert_eq!(node.read_at("test.a", before).unwrap().1, ["one"]);
        node.create("test.b");
        node.services.engine.set_stable(node.oplog.now()).unwrap();
        node.services.engine.set_oldest(node.oplog.now(), false).unwrap();
        assert_eq!(node.catalog.reap().unwrap(), 0, "the checkpoint is not after the drop");
        node.checkpoint();
        let mut told = Vec::new();
        let tell = &mut |ident: &str, dropped_at| told.push((ident.to_owned(), dropped_at));
        assert_eq!(node.catalog.reap_telling(tell).unwrap(), 2);
        told.sort();
        assert_eq!(told, [(ident.clone(), dropped_at), (index.clone(), dropped_at)]);
        assert!(!node.has_table(&ident) && !node.has_table(&index));
        assert_eq!(node.catalog.reaper().pending(), [] as [String; 0]);
    }
}

#[test]
fn x3_a_held_version_keeps_the_tables() {
    for mode in [Mode::StandAlone, Mode::ReplicaSet] {
        for store in stores(mode) {
            let node = store.open();
            node.create("test.a");
            node.insert("test.a", "one");
            let mut reader = node.operation();
            let (held, _) = node.read_with(&mut reader, "test.a").unwrap();
            node.drop_collection("test.a");
            node.create("test.b");
            reader.recovery_unit.abandon_snapshot().unwrap();
            assert_eq!(node.settle(), 0);
            assert!(node.has_table(held.ident()));
            let ident = held.ident().to_owned();
            drop(held);
            assert_eq!(node.settle(), 2);
            assert!(!node.has_table(&ident));
        }
    }
}

#[test]
fn x3_reads_of_the_past_mark_tables_as_in_use() {
    for store in stores(Mode::ReplicaSet) {
        let node = store.open();
        node.create("test.a");
        node.insert("test.a", "one");
        let then = node.oplog.now();
        node.services.engine.set_stable(then).unwrap();
        node.services.engine.set_oldest(then, false).unwrap();
        node.drop_collection("test.a");
        let (held, records) = node.read_at("test.a", then).unwrap();
        assert_eq!(records, ["one"]);
        node.create("test.b");
        assert_eq!(node.settle(), 0);
        let ident = held.ident().to_owned();
        drop(held);
        assert_eq!(node.settle(), 2);
        assert!(!node.has_table(&ident));
    }
}

#[test]
fn x3_an_unreplicated_drop_waits_for_two_checkpoints() {
    for store in stores(Mode::ReplicaSet) {
        let node = store.open();
        node.create("local.a");
        node.create("test.a");
        node.checkpoint();
        node.drop_collection("local.a");
        assert_eq!(node.catalog.reap().unwrap(), 0);
        let mut dropped = Vec::new();
        for i in 0..3 {
            node.create(&format!("test.more{i}"));
            dropped.push(node.settle());
        }
        assert_eq!(dropped, [0, 2, 0]);
    }
}

#[test]
fn x3_a_dropped_index_goes_the_same_way() {
    for store in stores(Mode::ReplicaSet) {
        let node = store.open();
        node.create("test.a");
        let ident = node.add_index("test.a", &index_on("x")).index("x_1").unwrap().ident().to_owned();
        node.change(|op| {
            let collection = node.catalog.collection_for_ddl(op, &name("test.a"))?;
            node.catalog.drop_index(op, &node.oplog, &collection, "x_1")
        })
        .unwrap();
        assert!(node.has_table(&ident));
        node.create("test.b");
        assert_eq!(node.settle(), 1);
        assert!(!node.has_table(&ident));
    }
}

#[test]
fn x3_an_index_held_in_two_formats_is_in_use_by_either() {
    for store in stores(Mode::ReplicaSet) {
        let node = store.open();
        node.create("test.a");
        node.add_index("test.a", &index_on("x"));
        let then = node.oplog.now();
        node.services.engine.set_stable(then).unwrap();
        node.services.engine.set_oldest(then, false).unwrap();
        for change in [
            IndexChange { prepare_unique: Some(true), ..IndexChange::default() },
            IndexChange { unique: Some(true), ..IndexChange::default() },
        ] {
            node.change(|op| {
                let collection = node.catalog.collection_for_ddl(op, &name("test.a"))?;
                let index = Some(IndexChange { name: "x_1".into(), ..change });
                let change = CollModChange { index, ..CollModChange::default() };
                node.catalog.coll_mod(op, &node.oplog, &collection, &change, doc! { "collMod": "a" }.view())
            })
            .unwrap();
        }
        let held = node.read("test.a").unwrap().0;
        assert_eq!(node.read_at("test.a", then).unwrap().0.index("x_1").unwrap().data.format(), IndexFormat::Standard);
        node.drop_collection("test.a");
        node.create("test.b");
        assert_eq!(node.settle(), 0, "the newest version is held");
        drop(held);
        assert_eq!(node.settle(), 3);
    }
}

#[test]
fn x2_a_transaction_that_keeps_its_view_learns_of_changes() {
    for store in stores(Mode::ReplicaSet) {
        let node = store.open();
        node.create("test.a");
        node.create("test.b");
        let mut transaction = node.operation();
        let mut view = node.catalog.establish(&mut transaction).unwrap();
        node.add_index("test.b", &index_on("x"));
        node.create("test.c");
        let mut write = |namespace: &str| view.collection_for_write(&node.catalog, &mut transaction, &name(namespace));
        assert!(write("test.a").unwrap().is_some());
        assert!(write("test.none").unwrap().is_none());
        assert_eq!(write("test.b").unwrap_err().code(), ErrorCode::WriteConflict);
        assert_eq!(write("test.c").unwrap_err().code(), ErrorCode::WriteConflict);
    }
}

#[test]
fn x2_statements_of_a_transaction_share_the_version_of_its_snapshot() {
    for read_source in [ReadSource::NoTimestamp, ReadSource::AllDurable] {
        for store in stores(Mode::ReplicaSet) {
            let node = store.open();
            node.create("test.a");
            let unchanged = node.read("test.a").unwrap().0;
            node.create("test.b");
            node.create("test.c");
            node.insert("test.c", "old");
            let mut transaction = node.operation();
            transaction.recovery_unit.set_read_source(read_source).unwrap();
            node.catalog.establish_for_transaction(&mut transaction).unwrap();
            UnitOfWork::begin(&mut transaction).release();
            transaction.retry_policy.multi_document = true;
            node.add_index("test.b", &index_on("x"));
            node.drop_collection("test.c");
            node.create("test.d");

            let found = node.read_with(&mut transaction, "test.a").unwrap().0;
            assert!(Arc::ptr_eq(&found, &unchanged), "it is not made anew");
            assert!(node.read_with(&mut transaction, "test.b").unwrap().0.index("x_1").is_none());
            assert_eq!(node.read_with(&mut transaction, "test.c").unwrap().1, ["old"]);
            assert!(node.read_with(&mut transaction, "test.d").is_none());

            let mut write = |namespace: &str| node.catalog.collection_for_write(&mut transaction, &name(namespace));
            assert!(write("test.a").unwrap().is_some());
            for changed in ["test.b", "test.c"] {
                assert_eq!(write(changed).unwrap_err().code(), ErrorCode::WriteConflict, "{changed}");
            }
            assert!(write("test.d").unwrap().is_none(), "it is not there yet");
            drop(UnitOfWork::resume(&mut transaction));
            transaction.recovery_unit.abandon_snapshot().unwrap();
            transaction.retry_policy.multi_document = false;
            assert!(node.read_with(&mut transaction, "test.d").is_some(), "another snapshot has another version");
            assert!(node.read_with(&mut transaction, "test.c").is_none());
        }
    }
}
