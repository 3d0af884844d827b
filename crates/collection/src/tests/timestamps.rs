//! Writes at chosen times.

use super::support::*;
use crate::*;
use pando_base::Timestamp;
use pando_catalog::CollectionOptions;
use pando_doc::{DocRef, Value, doc};
use pando_oplog::OpTime;
use pando_storage::ReadSource;
use std::sync::atomic::Ordering;

/// Documents and entries of an index as of a time.
fn as_of(fixture: &Fixture, index: &str, timestamp: u64) -> (usize, usize) {
    let mut operation = fixture.operation();
    operation.recovery_unit.set_read_source(ReadSource::Provided(Timestamp(timestamp))).unwrap();
    let unit = &mut operation.recovery_unit;
    let mut records = fixture.collection.records.cursor(pando_storage::Direction::Forward);
    let documents = std::iter::from_fn(|| records.next(unit).unwrap().map(|_| ())).count();
    let mut entries = fixture.collection.index(index).unwrap().data.cursor(pando_storage::Direction::Forward);
    (documents, std::iter::from_fn(|| entries.next(unit).unwrap().map(|_| ())).count())
}

#[test]
fn x13_each_document_of_a_batch_has_its_own_time() {
    on_each_engine(&Mode::ReplicaSet, |make| {
        let fixture = Fixture::with_indexes(make, &[specification(doc! { "a": 1_i32 }, "a_1")]);
        let mut operation = fixture.operation();
        let documents = [1_i32, 2, 3].map(|id| doc! { "_id": id, "a": [id, 10_i32] });
        let statements: Vec<_> = (0_u64..)
            .zip(&documents)
            .map(|(place, document)| InsertStatement {
                slot: Some(OpTime::new(Timestamp(10 + place), 1)),
                ..InsertStatement::new(document.view())
            })
            .collect();
        let options = InsertOptions::default();
        fixture.write_path.insert_documents(&mut operation, &fixture.collection, &statements, options).unwrap();
        assert_eq!([9, 10, 11, 12].map(|time| as_of(&fixture, "a_1", time)), [(0, 0), (1, 2), (2, 4), (3, 6)]);
        fixture.check();

        let (record_id, old) = fixture.find(&mut fixture.operation(), Value::Int32(2)).unwrap().unwrap();
        let new = doc! { "_id": 2_i32, "a": 5_i32 };
        let slots = [OpTime::new(Timestamp(20), 1), OpTime::new(Timestamp(21), 1)];
        let mut arguments = UpdateArguments::new(record_id.clone(), old.view(), new.view(), DocRef::EMPTY);
        arguments.slots = &slots;
        fixture.write_path.update_document(&mut fixture.operation(), &fixture.collection, &arguments).unwrap();
        let mut arguments = DeleteArguments::new(record_id, new.view());
        let slots = [OpTime::new(Timestamp(30), 1)];
        arguments.slots = &slots;
        fixture.write_path.delete_document(&mut fixture.operation(), &fixture.collection, &arguments).unwrap();
        assert_eq!([20, 21, 29, 30].map(|time| as_of(&fixture, "a_1", time)), [(3, 6), (3, 5), (3, 5), (2, 4)]);
        fixture.check();
    });
}

#[test]
fn x13_what_is_pushed_out_goes_at_the_time_of_its_own_entry() {
    on_each_engine(&Mode::ReplicaSet, |make| {
        let options = CollectionOptions {
            capped: true,
            capped_size_bytes: 10_000,
            capped_documents_max: 1,
            ..CollectionOptions::default()
        };
        let fixture = Fixture::new(make, options, &[]);
        for (id, time) in [(1_i32, 10), (2, 20)] {
            let document = doc! { "_id": id };
            let slot = Some(OpTime::new(Timestamp(time), 1));
            let statement = InsertStatement { slot, ..InsertStatement::new(document.view()) };
            fixture.observer.delete_timestamp.store(time + 1, Ordering::Relaxed);
            let mut operation = fixture.operation();
            let options = InsertOptions::default();
            fixture.write_path.insert_documents(&mut operation, &fixture.collection, &[statement], options).unwrap();
        }
        assert_eq!([10, 20, 21].map(|time| as_of(&fixture, "_id_", time)), [(1, 1), (2, 2), (1, 1)]);
        fixture.check();
    });
}
