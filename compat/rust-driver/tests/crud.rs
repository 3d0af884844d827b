//! Documents in and out: typed and untyped collections, updates, cursors, aggregation.

use bson::{Bson, Document, doc, oid::ObjectId};
use pando_compat_rust_driver::{bson, client, code_of, empty_database, mongodb};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Book {
    #[serde(rename = "_id")]
    id: ObjectId,
    title: String,
    year: i32,
    tags: Vec<String>,
}

fn book(title: &str, year: i32) -> Book {
    Book { id: ObjectId::new(), title: title.to_owned(), year, tags: vec!["novel".to_owned()] }
}

#[test]
fn typed_documents_survive() {
    let books = empty_database(&client(), "rust_typed").collection::<Book>("books");
    let tehanu = book("Tehanu", 1990);
    books.insert_one(&tehanu).run().unwrap();
    books.insert_many([book("The Dispossessed", 1974), book("Kindred", 1979)]).run().unwrap();
    assert_eq!(books.find_one(doc! { "title": "Tehanu" }).run().unwrap(), Some(tehanu));
    let old = books.find(doc! { "year": { "$lt": 1980 } }).sort(doc! { "year": 1 }).run().unwrap();
    let titles: Vec<String> = old.map(|book| book.unwrap().title).collect();
    assert_eq!(titles, ["The Dispossessed", "Kindred"]);
}

#[test]
fn every_type_survives() {
    let things = empty_database(&client(), "rust_types").collection::<Document>("things");
    let document = doc! {
        "_id": bson::Uuid::new(), "double": -0.5, "text": "é\u{0}", "sub": { "list": [1, [2], { "x": 3 }] },
        "binary": bson::Binary { subtype: bson::spec::BinarySubtype::UserDefined(0x81), bytes: vec![0, 255] },
        "yes": true, "nothing": Bson::Null, "when": bson::DateTime::from_millis(1_582_979_696_789),
        "code": Bson::JavaScriptCode("return 1".to_owned()), "int": -7_i32, "long": 9_007_199_254_740_993_i64,
        "stamp": bson::Timestamp { time: 7, increment: 9 }, "decimal": "1.10".parse::<bson::Decimal128>().unwrap(),
        "low": Bson::MinKey, "high": Bson::MaxKey, "old": Bson::Undefined, "symbol": Bson::Symbol("s".to_owned()),
    };
    things.insert_one(&document).run().unwrap();
    assert_eq!(things.find_one(doc! {}).run().unwrap(), Some(document));
}

#[test]
fn updates_and_deletes_count() {
    let items = empty_database(&client(), "rust_updates").collection::<Document>("items");
    items.insert_many((0..10).map(|n| doc! { "_id": n, "n": n })).run().unwrap();
    let result = items.update_many(doc! { "n": { "$gte": 5 } }, doc! { "$inc": { "n": 100 } }).run().unwrap();
    assert_eq!((result.matched_count, result.modified_count), (5, 5));
    let upsert = items.update_one(doc! { "_id": 99 }, vec![doc! { "$set": { "made": { "$add": [1, 2] } } }]).upsert(true).run().unwrap();
    assert_eq!(upsert.upserted_id, Some(Bson::Int32(99)));
    assert_eq!(items.find_one(doc! { "_id": 99 }).run().unwrap(), Some(doc! { "_id": 99, "made": 3 }));
    items.replace_one(doc! { "_id": 99 }, doc! { "bare": true }).run().unwrap();
    assert_eq!(items.delete_many(doc! { "n": { "$exists": true } }).run().unwrap().deleted_count, 10);
    assert_eq!(items.count_documents(doc! {}).run().unwrap(), 1);
    assert_eq!(items.estimated_document_count().run().unwrap(), 1);
}

#[test]
fn find_one_and_modifies() {
    let jobs = empty_database(&client(), "rust_jobs").collection::<Document>("jobs");
    jobs.insert_many([doc! { "_id": 1, "at": 2 }, doc! { "_id": 2, "at": 1 }]).run().unwrap();
    let first = jobs.find_one_and_update(doc! {}, doc! { "$set": { "taken": true } }).sort(doc! { "at": 1 }).run().unwrap();
    assert_eq!(first, Some(doc! { "_id": 2, "at": 1 }));
    let after = mongodb::options::ReturnDocument::After;
    let replaced = jobs.find_one_and_replace(doc! { "_id": 2 }, doc! { "done": 1 }).return_document(after).run().unwrap();
    assert_eq!(replaced, Some(doc! { "_id": 2, "done": 1 }));
    assert_eq!(jobs.find_one_and_delete(doc! { "_id": 1 }).run().unwrap(), Some(doc! { "_id": 1, "at": 2 }));
    assert_eq!(jobs.find_one_and_delete(doc! { "_id": 1 }).run().unwrap(), None);
}

#[test]
fn cursors_cross_batches() {
    let client = client();
    let items = empty_database(&client, "rust_cursors").collection::<Document>("items");
    items.insert_many((0..1000).map(|n| doc! { "_id": n })).run().unwrap();
    let ids: Vec<i32> = items.find(doc! {}).sort(doc! { "_id": 1 }).batch_size(77).run().unwrap().map(|one| one.unwrap().get_i32("_id").unwrap()).collect();
    assert_eq!(ids, (0..1000).collect::<Vec<_>>());
    let mut session = client.start_session().run().unwrap();
    let mut cursor = items.find(doc! {}).batch_size(10).session(&mut session).run().unwrap();
    assert_eq!(cursor.iter(&mut session).map(Result::unwrap).count(), 1000);
}

#[test]
fn aggregation() {
    let items = empty_database(&client(), "rust_aggregation").collection::<Document>("items");
    items.insert_many((0..100).map(|n| doc! { "n": n, "third": n % 3 })).run().unwrap();
    let stages = [doc! { "$group": { "_id": "$third", "n": { "$sum": 1 }, "most": { "$max": "$n" } } }, doc! { "$sort": { "_id": 1 } }];
    let groups: Vec<Document> = items.aggregate(stages).run().unwrap().map(Result::unwrap).collect();
    assert_eq!(groups[0], doc! { "_id": 0, "n": 34, "most": 99 });
    assert_eq!(items.distinct("third", doc! {}).run().unwrap(), [Bson::Int32(0), Bson::Int32(1), Bson::Int32(2)]);
}

#[test]
fn errors_have_codes_and_labels() {
    let client = client();
    let database = empty_database(&client, "rust_errors");
    let items = database.collection::<Document>("items");
    items.insert_one(doc! { "_id": 1 }).run().unwrap();
    assert_eq!(code_of(&items.insert_one(doc! { "_id": 1 }).run().unwrap_err()), 11000);
    let unordered = items.insert_many([doc! { "_id": 1 }, doc! { "_id": 2 }]).ordered(false).run().unwrap_err();
    assert_eq!(code_of(&unordered), 11000);
    assert_eq!(items.count_documents(doc! {}).run().unwrap(), 2);
    assert_eq!(code_of(&items.find(doc! { "a": { "$nope": 1 } }).run().unwrap_err()), 2);
    assert_eq!(code_of(&database.run_command(doc! { "noSuch": 1 }).run().unwrap_err()), 59);
    assert_eq!(code_of(&database.run_command(doc! { "ping": 1, "noSuch": 1 }).run().unwrap_err()), 40415);
}
