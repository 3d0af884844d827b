//! Tailable cursors on capped collections.

use super::support::*;
use crate::FindPlan;
use crate::executor::BatchOutcome;
use pando_catalog::CollectionOptions;
use pando_doc::{Doc, doc};

fn capped(documents_max: i64) -> Fixture {
    let options = CollectionOptions {
        capped: true,
        capped_size_bytes: 1 << 20,
        capped_documents_max: documents_max,
        ..CollectionOptions::default()
    };
    Fixture::with_options(options, &[])
}

#[test]
fn u9_a_tailable_scan_goes_on_when_documents_come() {
    let fixture = capped(100);
    fixture.insert(&[doc! { "_id": 1 }]);
    fixture.insert(&[doc! { "_id": 2 }]);
    let mut request = fixture.request(doc! { "_id": { "$gt": 0 } });
    request.tailable = true;
    let mut operation = fixture.operation();
    let Ok(FindPlan::Executor(mut executor)) = fixture.engine.find(&mut operation, &request) else { panic!("no plan") };
    let mut pull = || {
        let mut found: Vec<Doc> = Vec::new();
        let outcome = executor.next_batch(&mut operation, &mut found).unwrap();
        assert_eq!(outcome, BatchOutcome::Exhausted);
        executor.save();
        operation.recovery_unit.abandon_snapshot().unwrap();
        executor.restore(&mut operation, &*fixture.engine.collections).unwrap();
        ids(&found)
    };
    assert_eq!(pull(), ["1", "2"]);
    assert!(pull().is_empty());
    // The snapshot of the last pull is too old for what comes now; the next one sees it.
    fixture.insert(&[doc! { "_id": 3 }]);
    pull();
    fixture.insert(&[doc! { "_id": 4 }]);
    pull();
    assert_eq!(pull(), ["4"]);
    assert_eq!(executor.returned(), 4);
}

#[test]
fn u9_a_tailable_scan_that_is_overtaken_ends() {
    let fixture = capped(3);
    for id in 1..=3 {
        fixture.insert(&[doc! { "_id": id }]);
    }
    let mut request = fixture.request(doc! {});
    request.tailable = true;
    let mut operation = fixture.operation();
    let Ok(FindPlan::Executor(mut executor)) = fixture.engine.find(&mut operation, &request) else { panic!("no plan") };
    let crate::executor::Next::Result(_) = executor.next(&mut operation).unwrap() else { panic!("no result") };
    executor.save();
    operation.recovery_unit.abandon_snapshot().unwrap();
    for id in 4..=8 {
        fixture.insert(&[doc! { "_id": id }]);
    }
    let error = executor.restore(&mut operation, &*fixture.engine.collections).unwrap_err();
    assert_eq!(error.code().number(), 136);
}

#[test]
fn u9_a_capped_collection_is_read_in_its_own_order() {
    let fixture = capped(10);
    fixture.insert(&[doc! { "_id": 5 }, doc! { "_id": 1 }, doc! { "_id": 3 }]);
    let mut request = fixture.request(doc! {});
    request.projection = doc! { "_id": 1 };
    // The index on `_id` would cover it, but has another order.
    let (found, stages) = fixture.find_with_summary(&request).unwrap();
    assert_eq!(
        (ids(&found), stages.as_str()),
        (vec!["5".into(), "1".into(), "3".into()], "PROJECTION_SIMPLE(COLLSCAN)")
    );
}
