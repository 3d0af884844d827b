//! Collections that give up their oldest documents.

use super::support::*;
use crate::*;
use pando_base::{ErrorCode, Uuid};
use pando_catalog::CollectionOptions;
use pando_doc::{Value, doc};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

fn capped(size_bytes: i64, documents_max: i64) -> CollectionOptions {
    CollectionOptions {
        capped: true,
        capped_size_bytes: size_bytes,
        capped_documents_max: documents_max,
        ..CollectionOptions::default()
    }
}

#[derive(Default)]
struct Watcher(AtomicU64);

impl InsertWatcher for Watcher {
    fn inserted(&self, _collection: Uuid) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn x13_capped_collections_push_out_the_oldest() {
    on_each_engine(&Mode::StandAlone, |make| {
        let mut fixture = Fixture::new(make, capped(10_000, 3), &[unique(doc! { "a": 1_i32 }, "a_1")]);
        let watcher = Arc::new(Watcher::default());
        fixture.write_path = fixture.write_path.with_watcher(watcher.clone());
        let mut operation = fixture.operation();
        for id in 1..=5_i32 {
            fixture.insert(&mut operation, &doc! { "_id": id, "a": id }).unwrap();
            fixture.check();
        }
        assert_eq!(fixture.documents(), [3, 4, 5].map(|id| format!("{{ _id: {id}, a: {id} }}")));
        let told = fixture.observer.take();
        let last = ["i { _id: 5 } { _id: 5, a: 5 } []", "about { _id: 2, a: 2 }", "d { _id: 2 } { _id: 2, a: 2 }"];
        assert_eq!(told[told.len() - 3..], last);
        // What was pushed out is free again; what is there is not.
        fixture.insert(&mut operation, &doc! { "_id": 1_i32, "a": 1_i32 }).unwrap();
        assert!(fixture.insert(&mut operation, &doc! { "_id": 9_i32, "a": 5_i32 }).is_err());
        assert_eq!(watcher.0.load(Ordering::Relaxed), 6);
        fixture.check();
    });
}

#[test]
fn x13_capped_collections_keep_to_their_size() {
    on_each_engine(&Mode::StandAlone, |make| {
        let fixture = Fixture::new(make, capped(1000, 0), &[]);
        let mut operation = fixture.operation();
        let text = "x".repeat(276);
        for id in 1..=10_i32 {
            fixture.insert(&mut operation, &doc! { "_id": id, "t": &*text }).unwrap();
            assert!(fixture.collection.records.data_size_bytes().unwrap() <= 1000);
            fixture.check();
        }
        assert_eq!(fixture.documents().len(), 3);
        // One that is larger than all of it pushes everything else out and stays.
        let large = "x".repeat(2000);
        fixture.insert(&mut operation, &doc! { "_id": 11_i32, "t": &*large }).unwrap();
        assert_eq!(fixture.documents().len(), 1);
        fixture.insert(&mut operation, &doc! { "_id": 12_i32 }).unwrap();
        assert_eq!(fixture.documents(), ["{ _id: 12 }"]);
        // Documents may change their size.
        assert!(fixture.update(&mut operation, &doc! { "_id": 12_i32, "t": &*text }).unwrap());
        fixture.check();
    });
}

#[test]
fn x13_a_rolled_back_insert_pushes_nothing_out() {
    on_each_engine(&Mode::StandAlone, |make| {
        let fixture = Fixture::new(make, capped(10_000, 2), &[]);
        let mut operation = fixture.operation();
        for id in 1..=3_i32 {
            fixture.insert(&mut operation, &doc! { "_id": id }).unwrap();
        }
        let mut unit = operation.unit_of_work();
        fixture.insert(&mut unit, &doc! { "_id": 4_i32 }).unwrap();
        fixture.insert(&mut unit, &doc! { "_id": 5_i32 }).unwrap();
        drop(unit);
        assert_eq!(fixture.documents(), ["{ _id: 2 }", "{ _id: 3 }"]);
        let mut unit = operation.unit_of_work();
        for id in 4..=9_i32 {
            fixture.insert(&mut unit, &doc! { "_id": id }).unwrap();
        }
        unit.commit().unwrap();
        assert_eq!(fixture.documents(), ["{ _id: 8 }", "{ _id: 9 }"]);
        fixture.check();
    });
}

#[test]
fn x13_capped_rules_of_mongodb() {
    on_each_engine(&Mode::StandAlone, |make| {
        let fixture = Fixture::new(make, capped(10_000, 0), &[]);
        let mut operation = fixture.operation();
        let documents = [doc! { "_id": 1_i32 }, doc! { "_id": 2_i32 }];
        let statements: Vec<_> = documents.iter().map(|document| InsertStatement::new(document.view())).collect();
        let options = InsertOptions::default();
        let batch = fixture.write_path.insert_documents(&mut operation, &fixture.collection, &statements, options);
        assert_eq!(batch.unwrap_err().code(), ErrorCode::OperationCannotBeBatched);
        fixture.insert(&mut operation, &documents[0]).unwrap();
        operation.recovery_unit.abandon_snapshot().unwrap();
        operation.retry_policy.multi_document = true;
        let error = fixture.delete(&mut operation, Value::Int32(1)).unwrap_err();
        assert_eq!(error.code(), ErrorCode::IllegalOperation);
        assert!(capped_lock_resource(&fixture.collection).is_some());
        assert!(capped_lock_resource(&Fixture::with_indexes(make, &[]).collection).is_none());
    });
}

#[test]
fn x13_truncate_empties_records_and_indexes() {
    on_each_engine(&Mode::StandAlone, |make| {
        let fixture = Fixture::new(make, capped(10_000, 2), &[specification(doc! { "a": 1_i32 }, "a_1")]);
        let mut operation = fixture.operation();
        for id in 1..=3_i32 {
            fixture.insert(&mut operation, &doc! { "_id": id, "a": [1_i32, 2_i32] }).unwrap();
        }
        fixture.observer.take();
        fixture.write_path.truncate(&mut operation, &fixture.collection).unwrap();
        assert_eq!(fixture.observer.take(), ["empty db.c"]);
        assert_eq!((fixture.documents().len(), fixture.entry_count("a_1"), fixture.entry_count("_id_")), (0, 0, 0));
        fixture.check();
        fixture.insert(&mut operation, &doc! { "_id": 1_i32, "a": 1_i32 }).unwrap();
        fixture.check();
    });
}
