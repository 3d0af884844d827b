//! One write at a time.

use super::support::*;
use crate::*;
use pando_base::ErrorCode;
use pando_catalog::{ClusteredIndex, CollectionOptions, ValidationLevel};
use pando_doc::{Doc, DocBuilder, Value, doc};
use pando_oplog::StatementIds;
use std::sync::atomic::Ordering;

fn indexes() -> Vec<Doc> {
    vec![
        unique(doc! { "a": 1_i32 }, "a_1"),
        specification(doc! { "b": 1_i32, "c.d": -1_i32 }, "b_1_c.d_-1"),
        specification(doc! { "h": "hashed" }, "h_hashed"),
    ]
}

#[test]
fn x13_a_write_is_documents_keys_and_observers_together() {
    on_each_engine(&Mode::StandAlone, |make| {
        let fixture = Fixture::with_indexes(make, &indexes());
        let mut operation = fixture.operation();
        let documents =
            [doc! { "_id": 1_i32, "a": 1_i32, "b": [1_i32, 2_i32] }, doc! { "_id": 2_i32, "a": 2_i32, "h": "x" }];
        let mut statements: Vec<_> = documents.iter().map(|document| InsertStatement::new(document.view())).collect();
        statements[1].statement_ids = StatementIds::One(4);
        let options = InsertOptions::default();
        let ids =
            fixture.write_path.insert_documents(&mut operation, &fixture.collection, &statements, options).unwrap();
        assert!(ids[0] < ids[1]);
        fixture.check();
        assert_eq!(operation.context.statistics().keys_inserted.get(), 9);
        assert_eq!(
            fixture.observer.take(),
            ["i { _id: 1 } { _id: 1, a: 1, b: [ 1, 2 ] } [] | { _id: 2 } { _id: 2, a: 2, h: \"x\" } [4]"]
        );
        operation.recovery_unit.abandon_snapshot().unwrap();
        assert!(fixture.update(&mut operation, &doc! { "_id": 1_i32, "a": 3_i32, "b": 2_i32 }).unwrap());
        assert_eq!(operation.context.statistics().keys_inserted.get(), 10, "one key of a_1; {{b: 2}} was there");
        assert_eq!(operation.context.statistics().keys_deleted.get(), 2);
        assert_eq!(fixture.observer.take(), ["u { _id: 1 } { _id: 1, a: 1, b: [ 1, 2 ] } -> { _id: 1, a: 3, b: 2 }"]);
        fixture.check();
        operation.recovery_unit.abandon_snapshot().unwrap();
        assert!(fixture.delete(&mut operation, Value::Int32(2)).unwrap());
        let document = "{ _id: 2, a: 2, h: \"x\" }";
        assert_eq!(fixture.observer.take(), [format!("about {document}"), format!("d {{ _id: 2 }} {document}")]);
        fixture.check();
        assert_eq!(fixture.documents(), ["{ _id: 1, a: 3, b: 2 }"]);
        assert_eq!(fixture.entry_count("h_hashed"), 1);
    });
}

#[test]
fn u7_duplicate_keys_are_refused_and_undo_the_batch() {
    on_each_engine(&Mode::StandAlone, |make| {
        let fixture = Fixture::with_indexes(make, &indexes());
        let mut operation = fixture.operation();
        fixture.insert(&mut operation, &doc! { "_id": 1_i32, "a": 1_i32 }).unwrap();
        fixture.insert(&mut operation, &doc! { "_id": 2_i32, "a": [5_i32, 6_i32] }).unwrap();
        fixture.observer.take();
        let refused = [
            (doc! { "_id": 1.0, "a": 9_i32 }, "index: _id_ dup key: { _id: 1.0 }"),
            (doc! { "_id": 3_i32, "a": 1_i64 }, "index: a_1 dup key: { a: 1 }"),
            (doc! { "_id": 3_i32, "a": [7_i32, 6_i32] }, "index: a_1 dup key: { a: 6 }"),
        ];
        for (document, expected) in refused {
            let good = doc! { "_id": 100_i32, "a": 100_i32 };
            let statements = [InsertStatement::new(good.view()), InsertStatement::new(document.view())];
            let write = fixture.write_path.insert_documents(
                &mut operation,
                &fixture.collection,
                &statements,
                InsertOptions::default(),
            );
            let error = write.unwrap_err();
            assert_eq!(error.code(), ErrorCode::DuplicateKey);
            assert_eq!(error.reason(), format!("E11000 duplicate key error collection: db.c {expected}"));
            assert!(error.details().is_some());
            operation.recovery_unit.abandon_snapshot().unwrap();
        }
        let error = fixture.update(&mut operation, &doc! { "_id": 2_i32, "a": 1_i32 }).unwrap_err();
        assert_eq!(error.code(), ErrorCode::DuplicateKey);
        assert!(fixture.observer.take().is_empty(), "observers see no failed write");
        assert_eq!(fixture.documents().len(), 2);
        fixture.check();
        // The two values of one document do not exclude each other, and its own old key is free.
        operation.recovery_unit.abandon_snapshot().unwrap();
        fixture.insert(&mut operation, &doc! { "_id": 4_i32, "a": [8_i32, 8.0] }).unwrap();
        assert!(fixture.update(&mut operation, &doc! { "_id": 2_i32, "a": [6_i32, 7_i32] }).unwrap());
        fixture.check();
    });
}

#[test]
fn u7_relaxed_constraints_let_duplicates_in_for_a_while() {
    on_each_engine(&Mode::StandAlone, |make| {
        let fixture = Fixture::with_indexes(make, &indexes());
        let mut operation = fixture.operation();
        let options = InsertOptions { constraints: Constraints::Relaxed, ..InsertOptions::default() };
        for id in [1_i32, 2] {
            let document = doc! { "_id": id, "a": 1_i32, "h": [1_i32] };
            let statements = [InsertStatement::new(document.view())];
            fixture.write_path.insert_documents(&mut operation, &fixture.collection, &statements, options).unwrap();
        }
        assert_eq!(fixture.entry_count("a_1"), 2);
        assert_eq!(fixture.entry_count("h_hashed"), 0, "what cannot be indexed is left out");
        let again = doc! { "_id": 1_i32 };
        let statements = [InsertStatement::new(again.view())];
        let write = fixture.write_path.insert_documents(&mut operation, &fixture.collection, &statements, options);
        assert_eq!(write.unwrap_err().code(), ErrorCode::DuplicateKey, "_id is never relaxed");
        operation.recovery_unit.abandon_snapshot().unwrap();
        assert!(fixture.delete(&mut operation, Value::Int32(2)).unwrap());
        assert!(fixture.update(&mut operation, &doc! { "_id": 1_i32, "a": 1_i32 }).unwrap());
        fixture.check();
    });
}

#[test]
fn u7_indexes_become_multikey_once() {
    on_each_engine(&Mode::StandAlone, |make| {
        let fixture = Fixture::with_indexes(make, &[specification(doc! { "a.b": 1_i32, "c": 1_i32 }, "n")]);
        let mut operation = fixture.operation();
        let told = || std::mem::take(&mut *fixture.hooks.multikey.lock());
        fixture.insert(&mut operation, &doc! { "_id": 1_i32, "a": { "b": 1_i32 } }).unwrap();
        assert!(told().is_empty() && !fixture.collection.indexes[1].multikey.is_multikey());
        // A rolled back unit does not raise the state, so the next write tells again.
        let mut unit = operation.unit_of_work();
        fixture.insert(&mut unit, &doc! { "_id": 2_i32, "a": [{ "b": 1_i32 }] }).unwrap();
        drop(unit);
        assert_eq!(told(), ["n [[0], []]"]);
        fixture.insert(&mut operation, &doc! { "_id": 2_i32, "a": [{ "b": 1_i32 }] }).unwrap();
        assert_eq!(told(), ["n [[0], []]"]);
        fixture.insert(&mut operation, &doc! { "_id": 3_i32, "a": [{ "b": 2_i32 }, { "b": 3_i32 }] }).unwrap();
        assert!(told().is_empty());
        operation.recovery_unit.abandon_snapshot().unwrap();
        // The same key, but through an array.
        assert!(fixture.update(&mut operation, &doc! { "_id": 1_i32, "a": { "b": [1_i32] } }).unwrap());
        assert_eq!(told(), ["n [[1], []]"]);
        fixture.insert(&mut operation, &doc! { "_id": 4_i32, "c": [] }).unwrap();
        assert_eq!(told(), ["n [[], [0]]"]);
        fixture.check();
    });
}

#[test]
fn u7_sparse_partial_and_collated_indexes() {
    on_each_engine(&Mode::StandAlone, |make| {
        let specifications = [
            doc! { "v": 2_i32, "key": { "s": 1_i32 }, "name": "sparse", "sparse": true, "unique": true },
            doc! { "v": 2_i32, "key": { "p": 1_i32 }, "name": "partial", "unique": true,
            "partialFilterExpression": { "on": true } },
            doc! { "v": 2_i32, "key": { "t": 1_i32 }, "name": "text", "unique": true, "sparse": true,
            "collation": { "locale": "en", "strength": 2_i32 } },
        ];
        let fixture = Fixture::with_indexes(make, &specifications);
        let mut operation = fixture.operation();
        fixture.insert(&mut operation, &doc! { "_id": 1_i32, "p": 1_i32 }).unwrap();
        fixture.insert(&mut operation, &doc! { "_id": 2_i32, "p": 1_i32, "on": true, "t": "Hello" }).unwrap();
        assert_eq!(["sparse", "partial", "text"].map(|name| fixture.entry_count(name)), [0, 1, 1]);
        let error = fixture.insert(&mut operation, &doc! { "_id": 3_i32, "t": "hELLO", "p": 2_i32 }).unwrap_err();
        let expected = "dup key: { t: \"CollationKey(0x68656c6c6f)\" }";
        assert!(error.reason().ends_with(expected), "{error}");
        operation.recovery_unit.abandon_snapshot().unwrap();
        // Into the partial index, by a field that is not in its key.
        let error = fixture.update(&mut operation, &doc! { "_id": 1_i32, "p": 1_i32, "on": true }).unwrap_err();
        assert_eq!(error.code(), ErrorCode::DuplicateKey);
        operation.recovery_unit.abandon_snapshot().unwrap();
        assert!(fixture.update(&mut operation, &doc! { "_id": 2_i32, "p": 1_i32, "on": false }).unwrap());
        assert!(fixture.update(&mut operation, &doc! { "_id": 1_i32, "p": 1_i32, "on": true }).unwrap());
        assert_eq!(["sparse", "partial", "text"].map(|name| fixture.entry_count(name)), [0, 1, 0]);
        fixture.check();
    });
}

#[test]
fn x13_an_observer_can_undo_a_write() {
    on_each_engine(&Mode::StandAlone, |make| {
        let fixture = Fixture::with_indexes(make, &indexes());
        let mut operation = fixture.operation();
        fixture.insert(&mut operation, &doc! { "_id": 1_i32, "a": 1_i32 }).unwrap();
        fixture.observer.refuses.store(true, Ordering::Relaxed);
        assert!(fixture.insert(&mut operation, &doc! { "_id": 2_i32 }).is_err());
        operation.recovery_unit.abandon_snapshot().unwrap();
        assert!(fixture.update(&mut operation, &doc! { "_id": 1_i32, "a": 2_i32 }).is_err());
        operation.recovery_unit.abandon_snapshot().unwrap();
        assert!(fixture.delete(&mut operation, Value::Int32(1)).is_err());
        assert_eq!(fixture.documents(), ["{ _id: 1, a: 1 }"]);
        fixture.check();
    });
}

#[test]
fn x13_what_cannot_be_stored_is_refused() {
    on_each_engine(&Mode::StandAlone, |make| {
        let fixture = Fixture::with_indexes(make, &[]);
        let mut operation = fixture.operation();
        fixture.insert(&mut operation, &doc! { "_id": 1_i32, "a": 1_i32 }).unwrap();
        let error = fixture.insert(&mut operation, &doc! { "a": 1_i32 }).unwrap_err();
        assert_eq!(error.code(), ErrorCode::InternalError);
        let text = "x".repeat(16 * 1024 * 1024);
        let large = doc! { "_id": 2_i32, "a": &*text };
        let error = fixture.insert(&mut operation, &large).unwrap_err();
        assert_eq!(error.code().number(), 10334);
        let error = fixture.update(&mut operation, &doc! { "_id": 1_i32, "a": &*text }).unwrap_err();
        assert_eq!(error.code().number(), 10334);
        let mut deep = doc! {};
        for _ in 0..181 {
            deep = doc! { "a": deep.view() };
        }
        let error = fixture.update(&mut operation, &doc! { "_id": 1_i32, "a": deep.view() }).unwrap_err();
        assert_eq!(error.code(), ErrorCode::Overflow);
        let (record_id, old) = fixture.find(&mut operation, Value::Int32(1)).unwrap().unwrap();
        for new in [doc! { "_id": 2_i32 }, doc! { "a": 1_i32 }] {
            let arguments = UpdateArguments::new(record_id.clone(), old.view(), new.view(), new.view());
            let update = fixture.write_path.update_document(&mut operation, &fixture.collection, &arguments);
            assert_eq!(update.unwrap_err().code().number(), 66);
        }
        assert_eq!(fixture.documents(), ["{ _id: 1, a: 1 }"]);
    });
}

#[test]
fn x13_validators_are_asked_as_their_level_says() {
    on_each_engine(&Mode::StandAlone, |make| {
        for (level, bad_to_bad) in [(ValidationLevel::Strict, false), (ValidationLevel::Moderate, true)] {
            let options = CollectionOptions {
                validator: Some(doc! { "x": 1_i32 }),
                validation_level: Some(level),
                ..CollectionOptions::default()
            };
            let fixture = Fixture::new(make, options, &[]);
            let mut operation = fixture.operation();
            let bad = doc! { "_id": 1_i32, "bad": 1_i32 };
            assert_eq!(fixture.insert(&mut operation, &bad).unwrap_err().code().number(), 121);
            let bypass = InsertOptions { bypass_validation: true, ..InsertOptions::default() };
            let statements = [InsertStatement::new(bad.view())];
            fixture.write_path.insert_documents(&mut operation, &fixture.collection, &statements, bypass).unwrap();
            let update = fixture.update(&mut operation, &doc! { "_id": 1_i32, "bad": 2_i32 });
            assert_eq!(update.is_ok(), bad_to_bad);
            operation.recovery_unit.abandon_snapshot().unwrap();
            fixture.update(&mut operation, &doc! { "_id": 1_i32 }).unwrap();
            assert!(fixture.update(&mut operation, &bad).is_err(), "from good to bad");
        }
    });
}

#[test]
fn x13_clustered_collections_store_by_id() {
    on_each_engine(&Mode::StandAlone, |make| {
        let options =
            CollectionOptions { clustered_index: Some(ClusteredIndex::legacy()), ..CollectionOptions::default() };
        let fixture = Fixture::new(make, options, &[specification(doc! { "a": 1_i32 }, "a_1")]);
        let mut operation = fixture.operation();
        for id in [3_i32, 1, 2] {
            fixture.insert(&mut operation, &doc! { "_id": id, "a": [id, 0_i32] }).unwrap();
        }
        assert_eq!(fixture.documents()[0], "{ _id: 1, a: [ 1, 0 ] }");
        fixture.check();
        let error = fixture.insert(&mut operation, &doc! { "_id": 2.0 }).unwrap_err();
        assert_eq!(error.code(), ErrorCode::DuplicateKey);
        assert!(error.reason().starts_with("E11000 duplicate key error collection: db.c dup key: { _id: 2 }"));
        operation.recovery_unit.abandon_snapshot().unwrap();
        assert_eq!(fixture.find(&mut operation, Value::Int64(2)).unwrap().unwrap().1.get("_id"), Some(Value::Int32(2)));
        // What the key was written from is not to be seen in it; the error says so, with the code of the number's form.
        for (id, code) in [(f64::NAN, 50819), (f64::INFINITY, 50826), (-1e300, 50826), (1.5, 50810), (0.25, 50825)] {
            fixture.insert(&mut operation, &doc! { "_id": id }).unwrap();
            let error = fixture.insert(&mut operation, &doc! { "_id": id }).unwrap_err();
            assert_eq!(error.code(), ErrorCode::location(code), "{id}");
            operation.recovery_unit.abandon_snapshot().unwrap();
            assert!(fixture.delete(&mut operation, Value::Double(id)).unwrap());
        }
        assert!(fixture.find(&mut operation, Value::Int64(9)).unwrap().is_none());
        assert!(fixture.update(&mut operation, &doc! { "_id": 2_i32, "a": 5_i32 }).unwrap());
        assert!(fixture.delete(&mut operation, Value::Int32(1)).unwrap());
        fixture.check();
    });
}

#[test]
fn x13_find_by_id_knows_every_type() {
    on_each_engine(&Mode::StandAlone, |make| {
        let fixture = Fixture::with_indexes(make, &[]);
        let mut operation = fixture.operation();
        let mut builder = DocBuilder::new();
        builder.append("_id", Value::Binary { subtype: 4, bytes: &[1; 16] });
        let documents =
            [doc! { "_id": 1_i32 }, doc! { "_id": "1" }, doc! { "_id": { "a": [1_i32] } }, builder.finish()];
        for document in &documents {
            fixture.insert(&mut operation, document).unwrap();
        }
        for document in &documents {
            let (_, found) = fixture.find(&mut operation, document.get("_id").unwrap()).unwrap().unwrap();
            assert_eq!(found, *document);
        }
        assert!(fixture.find(&mut operation, Value::Null).unwrap().is_none());
    });
}

#[test]
fn x11_the_checker_sees_what_is_wrong() {
    on_each_engine(&Mode::StandAlone, |make| {
        let fixture = Fixture::with_indexes(make, &[specification(doc! { "a": 1_i32 }, "a_1")]);
        let mut operation = fixture.operation();
        let id = fixture.insert(&mut operation, &doc! { "_id": 1_i32, "a": 1_i32 }).unwrap();
        operation
            .in_unit_of_work(|operation| {
                let unit = &mut operation.recovery_unit;
                let old = fixture.collection.records.get(unit, &id)?.unwrap();
                let new = doc! { "_id": 1_i32, "a": [2_i32, 3_i32] };
                Ok(fixture.collection.records.update_known(unit, &id, old.len(), new.bytes())?)
            })
            .unwrap();
        let indexing = fixture.write_path.indexing();
        let faults = check_indexes(&mut fixture.operation(), indexing, &fixture.collection).unwrap();
        let expected = [
            "a_1: RecordId(1) makes it multikey, which is not known",
            "a_1: misses { : 2 } of RecordId(1)",
            "a_1: misses { : 3 } of RecordId(1)",
            "a_1: has too much: { : 1 } of RecordId(1)",
        ];
        assert_eq!(faults, expected);
        let index = &fixture.collection.indexes[1];
        let document = doc! { "a": [1_i32, 3_i32] };
        let missing = indexing.missing_entries(&mut fixture.operation(), index, document.view(), &id).unwrap();
        assert_eq!(missing.len(), 1);
    });
}
