//! Updates, deletes, upserts, findAndModify.

use super::support::*;
use crate::request::{
    CountRequest, DeleteRequest, DistinctRequest, FindAndModifyChange, FindAndModifyRequest, Hint, UpdateRequest,
};
use crate::write::UpdateResult;
use pando_base::{ErrorCode, Result};
use pando_doc::{Doc, OwnedValue, array, doc};

fn update(
    fixture: &Fixture,
    filter: Doc,
    change: Doc,
    adjust: impl FnOnce(&mut UpdateRequest),
) -> Result<UpdateResult> {
    let mut request = UpdateRequest::new(fixture.namespace.clone(), filter, OwnedValue::Document(change));
    adjust(&mut request);
    now(fixture.engine.update(&mut fixture.operation(), &request))
}

fn all(fixture: &Fixture) -> Vec<Doc> {
    fixture.find(&fixture.request(doc! {})).unwrap()
}

#[test]
fn u4_updates_change_one_or_all() {
    let fixture = Fixture::new(&[index(doc! { "a": 1 })]);
    fixture.insert(&(0..6).map(|n| doc! { "_id": n, "a": n % 2 }).collect::<Vec<_>>());
    let one = update(&fixture, doc! { "a": 1 }, doc! { "$set": { "b": 1 } }, |_| {}).unwrap();
    assert_eq!((one.n, one.modified), (1, 1));
    let again = update(&fixture, doc! { "_id": 1 }, doc! { "$set": { "b": 1 } }, |_| {}).unwrap();
    assert_eq!((again.n, again.modified), (1, 0));
    let many = update(&fixture, doc! { "a": 1 }, doc! { "$inc": { "a": 10 } }, |request| request.multi = true).unwrap();
    assert_eq!((many.n, many.modified), (3, 3));
    assert_eq!(fixture.find(&fixture.request(doc! { "a": 11 })).unwrap().len(), 3);
    let replaced = update(&fixture, doc! { "_id": 0 }, doc! { "x": 1 }, |_| {}).unwrap();
    assert_eq!((replaced.n, replaced.modified), (1, 1));
    assert_eq!(fixture.find(&fixture.request(doc! { "_id": 0 })).unwrap(), vec![doc! { "_id": 0, "x": 1 }]);
    fixture.check();
}

/// A document that is asked for by its `_id` is updated without a plan: nobody may see a difference.
#[test]
fn u4_updates_by_id_are_as_those_with_a_plan() {
    let changes = [
        doc! { "$inc": { "a": 1 } },
        doc! { "$inc": { "a": 0 } },
        doc! { "$inc": { "t": 1 } },
        doc! { "$inc": { "n": 5, "a": 2_i64 }, "$unset": { "t": 1 } },
        doc! { "$set": { "t": "longer than before" } },
        doc! { "$set": { "new": { "x": [1] } } },
        doc! { "$set": { "l.1": 7, "d.e": 1 } },
        doc! { "$set": { "_id": 9 } },
        doc! { "$set": { "a": 1 }, "$inc": { "a": 1 } },
        doc! { "$set": { "": 1 } },
        doc! { "$set": { "$a": 1 } },
        doc! { "$set": { "l.$": 1 } },
        doc! { "$push": { "l": 4 } },
        doc! { "$pull": { "l": { "$gt": 1 } } },
        doc! { "$unset": { "a": 1 } },
        doc! { "$rename": { "a": "z" } },
        doc! { "$unknown": { "a": 1 } },
        doc! { "whole": 1 },
        doc! { "_id": 2 },
        doc! {},
    ];
    for change in changes {
        let outcomes = [doc! { "_id": 1 }, doc! { "_id": { "$in": [1] } }].map(|filter| {
            let fixture = Fixture::new(&[index(doc! { "a": 1 })]);
            fixture.insert(&[doc! { "_id": 1, "a": 1, "t": "text", "l": [1, 2, 3] }]);
            let updated = update(&fixture, filter, change.clone(), |_| {});
            fixture.check();
            let told = updated.map(|result| (result.n, result.modified));
            (told.map_err(|error| (error.code(), error.reason().to_owned())), all(&fixture))
        });
        assert_eq!(outcomes[0], outcomes[1], "{change}");
    }
    let fixture = Fixture::new(&[]);
    let missed = update(&fixture, doc! { "_id": 1 }, doc! { "$inc": { "a": 1 } }, |_| {}).unwrap();
    assert_eq!((missed.n, missed.modified), (0, 0));
}

#[test]
fn u4_a_document_that_moves_ahead_of_the_scan_is_updated_once() {
    let fixture = Fixture::new(&[index(doc! { "a": 1 })]);
    fixture.insert(&(0..20).map(|n| doc! { "_id": n, "a": n }).collect::<Vec<_>>());
    let increase = doc! { "$inc": { "a": 7 } };
    let result = update(&fixture, doc! { "a": { "$gte": 0 } }, increase, |request| request.multi = true).unwrap();
    assert_eq!((result.n, result.modified), (20, 20));
    for document in all(&fixture) {
        let value = |name: &str| document.get(name).unwrap().to_i64_exact().unwrap();
        assert_eq!(value("a"), value("_id") + 7);
    }
    fixture.check();
}

#[test]
fn u4_upserts_insert_what_the_filter_says() {
    let fixture = Fixture::new(&[doc! { "v": 2, "key": { "k": 1 }, "name": "k_1", "unique": true }]);
    let upsert = |request: &mut UpdateRequest| request.upsert = true;
    let made = update(&fixture, doc! { "_id": 5, "k": 1 }, doc! { "$set": { "a": 1 } }, upsert).unwrap();
    assert_eq!((made.n, made.modified, made.upserted), (1, 0, Some(OwnedValue::Int32(5))));
    assert_eq!(all(&fixture), vec![doc! { "_id": 5, "k": 1, "a": 1 }]);
    let met = update(&fixture, doc! { "k": 1 }, doc! { "$set": { "a": 2 } }, upsert).unwrap();
    assert_eq!((met.n, met.modified, met.upserted), (1, 1, None));
    // The key of the new document belongs to another one, which the filter does not ask for.
    let in_part = update(&fixture, doc! { "_id.x": 1 }, doc! { "a": 1 }, upsert).unwrap_err();
    assert_eq!(in_part.code(), ErrorCode::NotExactValueField);
    let refused = update(&fixture, doc! { "_id": 6 }, doc! { "$set": { "k": 1 } }, upsert).unwrap_err();
    assert_eq!(refused.code().number(), 11000);
    fixture.check();
}

#[test]
fn u4_updates_are_refused_as_mongodb_does() {
    let fixture = Fixture::new(&[]);
    fixture.insert(&[doc! { "_id": 1, "a": 1 }]);
    let code = |filter: Doc, change: Doc, multi: bool| {
        update(&fixture, filter, change, |request| request.multi = multi).unwrap_err().code().number()
    };
    assert_eq!(code(doc! {}, doc! { "a": 2 }, true), 9);
    assert_eq!(code(doc! {}, doc! { "$set": { "_id": 2 } }, false), 66);
    assert_eq!(code(doc! {}, doc! { "_id": 2 }, false), 66);
    let natural = |request: &mut UpdateRequest| request.hint = Hint::Name("nothing".into());
    assert_eq!(update(&fixture, doc! {}, doc! { "$set": { "a": 2 } }, natural).unwrap_err().code().number(), 2);
}

#[test]
fn u4_deletes_remove_one_or_all() {
    let fixture = Fixture::new(&[index(doc! { "a": 1 })]);
    fixture.insert(&(0..10).map(|n| doc! { "_id": n, "a": n % 2 }).collect::<Vec<_>>());
    let delete = |filter: Doc, multi: bool| {
        let request = DeleteRequest::new(fixture.namespace.clone(), filter, multi);
        now(fixture.engine.delete(&mut fixture.operation(), &request)).unwrap().n
    };
    assert_eq!(delete(doc! { "a": 1 }, false), 1);
    assert_eq!(delete(doc! { "a": 1 }, true), 4);
    assert_eq!(delete(doc! { "_id": 0 }, true), 1);
    assert_eq!(delete(doc! { "a": 1 }, true), 0);
    assert_eq!(all(&fixture).len(), 4);
    fixture.check();
}

#[test]
fn u4_find_and_modify_returns_a_version() {
    let fixture = Fixture::new(&[index(doc! { "a": 1 })]);
    fixture.insert(&(0..3).map(|n| doc! { "_id": n, "a": 10 - n }).collect::<Vec<_>>());
    let request = |filter: Doc, change: FindAndModifyChange| FindAndModifyRequest {
        namespace: fixture.namespace.clone(),
        filter,
        sort: doc! { "a": 1 },
        fields: doc! {},
        change,
        hint: Hint::None,
        collation: doc! {},
        variables: doc! {},
        bypass_document_validation: false,
        bypass_empty_timestamp_replacement: false,
        statement_ids: pando_oplog::StatementIds::None,
    };
    let change = |returns_new: bool, upsert: bool| FindAndModifyChange::Update {
        update: OwnedValue::Document(doc! { "$inc": { "n": 1 } }),
        upsert,
        returns_new,
        array_filters: Vec::new(),
    };
    let run = |request: FindAndModifyRequest| {
        now(fixture.engine.find_and_modify(&mut fixture.operation(), &request)).unwrap()
    };
    let before = run(request(doc! {}, change(false, false)));
    assert_eq!((before.value, before.updated_existing), (Some(doc! { "_id": 2, "a": 8 }), true));
    let mut projected = request(doc! {}, change(true, false));
    projected.fields = doc! { "n": 1, "_id": 0 };
    assert_eq!(run(projected).value, Some(doc! { "n": 2 }));
    let made = run(request(doc! { "_id": 9 }, change(true, true)));
    assert_eq!((made.value, made.upserted), (Some(doc! { "_id": 9, "n": 1 }), Some(OwnedValue::Int32(9))));
    let removed = run(request(doc! { "a": { "$gt": 0 } }, FindAndModifyChange::Remove));
    assert_eq!((removed.value, removed.n), (Some(doc! { "_id": 2, "a": 8, "n": 2 }), 1));
    assert_eq!(run(request(doc! { "_id": 77 }, FindAndModifyChange::Remove)).value, None);
    fixture.check();
}

#[test]
fn u3_count_and_distinct() {
    let fixture = Fixture::new(&[index(doc! { "a": 1 })]);
    fixture.insert(&(0..20).map(|n| doc! { "_id": n, "a": n % 4, "t": ["x", "y"], "c": n / 10 }).collect::<Vec<_>>());
    let count = |filter: Doc, limit: Option<i64>| {
        let request = CountRequest {
            namespace: fixture.namespace.clone(),
            filter,
            skip: None,
            limit,
            hint: Hint::None,
            collation: doc! {},
        };
        now(fixture.engine.count(&mut fixture.operation(), &request)).unwrap()
    };
    assert_eq!(count(doc! {}, None), 20);
    assert_eq!(count(doc! { "a": { "$lt": 2 } }, None), 10);
    assert_eq!(count(doc! { "c": 1 }, Some(-3)), 3);
    let distinct = |key: &str, filter: Doc| {
        let request = DistinctRequest {
            namespace: fixture.namespace.clone(),
            key: key.into(),
            filter,
            hint: Hint::None,
            collation: doc! {},
        };
        now(fixture.engine.distinct(&mut fixture.operation(), &request)).unwrap()
    };
    assert_eq!(distinct("a", doc! {}), array![0, 1, 2, 3]);
    assert_eq!(distinct("t", doc! {}), array!["x", "y"]);
    assert_eq!(distinct("a", doc! { "c": 1, "a": { "$gt": 1 } }), array![2, 3]);
    fixture.insert(&[doc! { "_id": 100 }]);
    assert_eq!(distinct("a", doc! {}), array![null, 0, 1, 2, 3], "as 7.0 does by an index: its keys have null there");
    assert_eq!(distinct("u", doc! {}), array![], "without an index what is missing is no value");
    fixture.insert(&[doc! { "_id": 101, "u": null }]);
    assert_eq!(distinct("u", doc! {}), array![null]);
}
