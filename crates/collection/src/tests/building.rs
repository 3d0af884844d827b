//! Writes while an index is built, and what a build does to get its keys in.

use super::support::*;
use pando_base::{ErrorCode, RecordId, Result};
use pando_catalog::Index;
use pando_doc::{Value, doc};
use pando_index::{Arrays, Duplicates, IndexInterceptor, Key, KeySet, SideWrite};
use pando_operation::Operation;
use parking_lot::Mutex;
use std::sync::Arc;

/// Keeps what a side table would.
#[derive(Default)]
struct SideTable(Mutex<Vec<String>>);

impl IndexInterceptor for SideTable {
    fn side_write(
        &self,
        _operation: &mut Operation,
        index: &Index,
        kind: SideWrite,
        keys: &mut dyn Iterator<Item = Key<'_>>,
        record_id: &RecordId,
        _arrays: Arrays<'_>,
    ) -> Result<u64> {
        let rows = keys.map(|key| format!("{kind:?} {} {record_id:?} {}", index.name(), key.bytes.len()));
        let rows: Vec<String> = rows.collect();
        let count = rows.len() as u64;
        self.0.lock().extend(rows);
        Ok(count)
    }

    fn skip(&self, _operation: &mut Operation, index: &Index, record_id: &RecordId) -> Result<()> {
        self.0.lock().push(format!("Skip {} {record_id:?}", index.name()));
        Ok(())
    }
}

/// A collection whose last index is being built.
fn building(fixture: &mut Fixture) -> Arc<Index> {
    let index = fixture.collection.indexes.pop().unwrap();
    let index = Arc::new(Index { ready: false, ..Index::clone(&index) });
    fixture.collection.indexes.push(Arc::clone(&index));
    index
}

#[test]
fn u7_writes_during_a_build_go_to_its_side_table() {
    on_each_engine(&Mode::StandAlone, |make| {
        let mut fixture = Fixture::with_indexes(make, &[unique(doc! { "a": 1_i32 }, "a_1")]);
        building(&mut fixture);
        let table = Arc::new(SideTable::default());
        *fixture.hooks.interceptor.lock() = Some(table.clone());
        let mut operation = fixture.operation();
        for id in [1_i32, 2] {
            fixture.insert(&mut operation, &doc! { "_id": id, "a": [1_i32, 2_i32] }).unwrap();
        }
        fixture.update(&mut operation, &doc! { "_id": 1_i32, "a": 1_i32 }).unwrap();
        fixture.delete(&mut operation, Value::Int32(2)).unwrap();
        let expected = [
            "Insert a_1 RecordId(1) 3",
            "Insert a_1 RecordId(1) 3",
            "Insert a_1 RecordId(2) 3",
            "Insert a_1 RecordId(2) 3",
            "Remove a_1 RecordId(1) 3",
            "Remove a_1 RecordId(2) 3",
            "Remove a_1 RecordId(2) 3",
        ];
        assert_eq!(*table.0.lock(), expected);
        assert_eq!((fixture.entry_count("a_1"), fixture.entry_count("_id_")), (0, 1));
        let error = fixture.write_path.truncate(&mut operation, &fixture.collection).unwrap_err();
        assert_eq!(error.code(), ErrorCode::BackgroundOperationInProgressForNamespace);
    });
}

#[test]
fn u7_duplicates_met_by_a_build_are_told() {
    on_each_engine(&Mode::StandAlone, |make| {
        let mut fixture = Fixture::with_indexes(make, &[unique(doc! { "a": 1_i32 }, "a_1")]);
        let index = building(&mut fixture);
        let indexing = fixture.write_path.indexing();
        let mut keys = KeySet::new();
        indexing.access(&index).unwrap().keys(doc! { "a": 7_i32 }.view(), &mut keys).unwrap();
        let mut operation = fixture.operation();
        let mut told = 0;
        let mut tell = |_: &mut Operation, _: Key<'_>| {
            told += 1;
            Ok(())
        };
        for (number, refused) in [(1, false), (2, false), (3, true)] {
            let mut duplicates = if refused { Duplicates::Refused } else { Duplicates::Told(&mut tell) };
            let id = RecordId::Long(number);
            let inserted = operation.in_unit_of_work(|operation| {
                indexing.insert_keys(operation, &fixture.collection, &index, keys.iter(), &id, &mut duplicates)
            });
            assert_eq!(inserted.is_err(), refused);
            operation.recovery_unit.abandon_snapshot().unwrap();
        }
        assert_eq!((told, fixture.entry_count("a_1")), (1, 2));
        let key = keys.iter().next().unwrap();
        let has = |number| indexing.has_entry(&mut fixture.operation(), &index, key, &RecordId::Long(number)).unwrap();
        assert_eq!([1, 2, 3].map(has), [true, true, false]);
        operation
            .in_unit_of_work(|operation| indexing.remove_keys(operation, &index, keys.iter(), &RecordId::Long(1)))
            .unwrap();
        assert_eq!(fixture.entry_count("a_1"), 1);
    });
}

#[test]
fn u7_prepare_unique_refuses_new_duplicates() {
    on_each_engine(&Mode::StandAlone, |make| {
        let prepared = doc! { "v": 2_i32, "key": { "a": 1_i32 }, "name": "a_1", "prepareUnique": true };
        let fixture = Fixture::with_indexes(make, &[prepared]);
        let mut operation = fixture.operation();
        fixture.insert(&mut operation, &doc! { "_id": 1_i32, "a": 1_i32 }).unwrap();
        let error = fixture.insert(&mut operation, &doc! { "_id": 2_i32, "a": 1_i32 }).unwrap_err();
        assert_eq!(error.code(), ErrorCode::DuplicateKey);
        fixture.check();
    });
}
