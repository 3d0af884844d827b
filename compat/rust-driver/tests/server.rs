//! The catalog, sessions, retries, compression and GridFS.

use bson::{Document, doc};
use mongodb::IndexModel;
use mongodb::options::{Compressor, IndexOptions, ReadConcern, ServerApi, ServerApiVersion, WriteConcern};
use pando_compat_rust_driver::{bson, client, client_with, code_of, empty_database, mongodb};
use std::io::{Read, Write};

#[test]
fn collections_and_indexes() {
    let client = client();
    let database = empty_database(&client, "rust_catalog");
    database.create_collection("log").capped(true).size(8192).max(2).run().unwrap();
    let log = database.collection::<Document>("log");
    log.insert_many((1..=3).map(|n| doc! { "_id": n })).run().unwrap();
    let kept: Vec<Document> = log.find(doc! {}).run().unwrap().map(Result::unwrap).collect();
    assert_eq!(kept, [doc! { "_id": 2 }, doc! { "_id": 3 }]);

    let items = database.collection::<Document>("items");
    let unique = IndexOptions::builder().unique(true).build();
    items.create_index(IndexModel::builder().keys(doc! { "a": 1 }).options(unique).build()).run().unwrap();
    items.create_indexes([IndexModel::builder().keys(doc! { "b": 1, "c": -1 }).build(), IndexModel::builder().keys(doc! { "d": "hashed" }).build()]).run().unwrap();
    assert_eq!(items.list_index_names().run().unwrap(), ["_id_", "a_1", "b_1_c_-1", "d_hashed"]);
    items.insert_one(doc! { "a": 1 }).run().unwrap();
    assert_eq!(code_of(&items.insert_one(doc! { "a": 1 }).run().unwrap_err()), 11000);
    items.drop_index("d_hashed").run().unwrap();
    assert_eq!(code_of(&items.drop_index("d_hashed").run().unwrap_err()), 27);

    let mut names = database.list_collection_names().run().unwrap();
    names.sort();
    assert_eq!(names, ["items", "log"]);
    assert!(client.list_database_names().run().unwrap().contains(&"rust_catalog".to_owned()));
    database.create_collection("view").view_on("items".to_owned()).pipeline([doc! { "$project": { "_id": 0, "a": 1 } }]).run().unwrap();
    let viewed: Vec<Document> = database.collection::<Document>("view").find(doc! {}).run().unwrap().map(Result::unwrap).collect();
    assert_eq!(viewed, [doc! { "a": 1 }]);
}

#[test]
fn validators_refuse() {
    let database = empty_database(&client(), "rust_validator");
    database.create_collection("checked").validator(doc! { "a": { "$gt": 0 } }).run().unwrap();
    let checked = database.collection::<Document>("checked");
    checked.insert_one(doc! { "a": 1 }).run().unwrap();
    assert_eq!(code_of(&checked.insert_one(doc! { "a": 0 }).run().unwrap_err()), 121);
    checked.insert_one(doc! { "a": 0 }).bypass_document_validation(true).run().unwrap();
}

#[test]
fn sessions_are_causal() {
    let client = client();
    let items = empty_database(&client, "rust_sessions").collection::<Document>("items");
    let mut session = client.start_session().causal_consistency(true).run().unwrap();
    items.insert_one(doc! { "_id": 1 }).session(&mut session).run().unwrap();
    assert_eq!(items.find_one(doc! {}).session(&mut session).run().unwrap(), Some(doc! { "_id": 1 }));
    assert!(session.cluster_time().is_some());
}

#[test]
fn concerns() {
    let items = empty_database(&client(), "rust_concerns").collection::<Document>("items");
    items.insert_one(doc! { "_id": 1 }).write_concern(WriteConcern::majority()).run().unwrap();
    for concern in [ReadConcern::local(), ReadConcern::available(), ReadConcern::majority(), ReadConcern::linearizable()] {
        assert_eq!(items.count_documents(doc! {}).read_concern(concern).run().unwrap(), 1);
    }
}

#[test]
fn a_write_is_retried_after_a_lost_connection() {
    let client = client_with(|options| options.app_name = Some("rust_retries".to_owned()));
    let items = empty_database(&client, "rust_retries").collection::<Document>("items");
    items.insert_one(doc! { "_id": 1, "n": 0 }).run().unwrap();
    let data = doc! { "failCommands": ["update"], "closeConnection": true, "appName": "rust_retries" };
    let admin = client.database("admin");
    admin.run_command(doc! { "configureFailPoint": "failCommand", "mode": { "times": 1 }, "data": data }).run().unwrap();
    let result = items.update_one(doc! { "_id": 1 }, doc! { "$inc": { "n": 1 } }).run().unwrap();
    assert_eq!(result.modified_count, 1);
    assert_eq!(items.find_one(doc! {}).run().unwrap(), Some(doc! { "_id": 1, "n": 1 }));
    admin.run_command(doc! { "configureFailPoint": "failCommand", "mode": "off" }).run().unwrap();
}

#[test]
fn compressors() {
    for compressor in [Compressor::Snappy, Compressor::Zlib { level: Some(6) }] {
        let client = client_with(|options| options.compressors = Some(vec![compressor.clone()]));
        let items = empty_database(&client, &format!("rust_{compressor:?}").chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>()).collection::<Document>("items");
        let text = "pando ".repeat(100_000);
        items.insert_one(doc! { "_id": 1, "text": &text }).run().unwrap();
        assert_eq!(items.find_one(doc! {}).run().unwrap().unwrap().get_str("text").unwrap(), text);
    }
}

#[test]
fn the_stable_interface_is_strict() {
    let api = ServerApi::builder().version(ServerApiVersion::V1).strict(true).build();
    let client = client_with(|options| options.server_api = Some(api));
    let database = empty_database(&client, "rust_strict");
    database.collection::<Document>("items").insert_one(doc! { "_id": 1 }).run().unwrap();
    assert_eq!(code_of(&database.run_command(doc! { "distinct": "items", "key": "_id" }).run().unwrap_err()), 323);
}

#[test]
fn gridfs_keeps_files() {
    let bucket = empty_database(&client(), "rust_gridfs").gridfs_bucket(None);
    let bytes: Vec<u8> = (0..600_000_u32).map(|n| n as u8).collect();
    let mut upload = bucket.open_upload_stream("numbers").run().unwrap();
    upload.write_all(&bytes).unwrap();
    upload.close().unwrap();
    let mut found = Vec::new();
    bucket.open_download_stream(upload.id().clone()).run().unwrap().read_to_end(&mut found).unwrap();
    assert_eq!(found, bytes);
    bucket.delete(upload.id().clone()).run().unwrap();
    assert!(bucket.open_download_stream(upload.id().clone()).run().is_err());
}

#[test]
fn threads_share_a_client() {
    let client = client();
    let items = empty_database(&client, "rust_threads").collection::<Document>("items");
    items.insert_one(doc! { "_id": 1, "n": 0 }).run().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..25 {
                    items.update_one(doc! { "_id": 1 }, doc! { "$inc": { "n": 1 } }).run().unwrap();
                }
            });
        }
    });
    assert_eq!(items.find_one(doc! {}).run().unwrap(), Some(doc! { "_id": 1, "n": 200 }));
}
