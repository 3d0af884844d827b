//! Options: what is read, what is refused, what is written.

use super::*;
use pando_base::ErrorCode;
use pando_doc::doc;

fn parse(options: Doc) -> pando_base::Result<CollectionOptions> {
    CollectionOptions::parse_command(options.view())
}

#[test]
fn u9_what_is_stored_reads_back() {
    let rows = [
        doc! {},
        doc! { "capped": true, "size": 4096, "max": 10 },
        doc! { "validator": { "x": 1 }, "validationLevel": "moderate", "validationAction": "warn" },
        doc! { "clusteredIndex": { "key": { "_id": 1 }, "unique": true, "name": "c" }, "expireAfterSeconds": 60_i64 },
        doc! { "clusteredIndex": true, "timeseries": { "timeField": "t" } },
        doc! { "collation": { "locale": "fr" }, "temp": true, "storageEngine": { "wiredTiger": {} } },
        doc! { "viewOn": "a", "pipeline": [{ "$limit": 1 }] },
        doc! { "changeStreamPreAndPostImages": { "enabled": true }, "encryptedFields": { "fields": [] } },
        doc! { "indexOptionDefaults": { "storageEngine": {} }, "autoIndexId": false },
    ];
    for row in rows {
        let mut options = parse(row.clone()).unwrap_or_else(|error| panic!("{row:?}: {error}"));
        options.uuid = Some(Uuid::from_random([1; 16]));
        let read = CollectionOptions::parse_stored(options.to_doc().view()).unwrap();
        assert_eq!(read, options, "{row:?}");
        assert!(options.to_doc_without_uuid().get("uuid").is_none());
    }
}

#[test]
fn u9_options_are_refused_with_mongodbs_codes() {
    let location = ErrorCode::location;
    let rows = [
        (doc! { "capped": true }, ErrorCode::InvalidOptions),
        (doc! { "size": 4096 }, ErrorCode::InvalidOptions),
        (doc! { "capped": true, "size": -1 }, ErrorCode::BadValue),
        (doc! { "capped": true, "size": (1_i64 << 51) }, ErrorCode::BadValue),
        (doc! { "capped": true, "size": 4096, "max": (1_i64 << 31) }, ErrorCode::BadValue),
        (doc! { "validator": 1 }, ErrorCode::BadValue),
        (doc! { "validationLevel": "never" }, ErrorCode::BadValue),
        (doc! { "validationAction": "shrug" }, ErrorCode::BadValue),
        (doc! { "collation": {} }, location(40414)),
        (doc! { "viewOn": "" }, ErrorCode::BadValue),
        (doc! { "pipeline": [{}] }, ErrorCode::InvalidOptions),
        (doc! { "viewOn": "a", "pipeline": [1] }, ErrorCode::TypeMismatch),
        (doc! { "viewOn": "a", "capped": true, "size": 1 }, ErrorCode::InvalidOptions),
        (doc! { "viewOn": "a", "validator": {} }, ErrorCode::InvalidOptions),
        (doc! { "timeseries": 1 }, ErrorCode::TypeMismatch),
        (doc! { "timeseries": {}, "viewOn": "a" }, ErrorCode::InvalidOptions),
        (doc! { "expireAfterSeconds": 1 }, ErrorCode::InvalidOptions),
        (doc! { "unknown": 1 }, ErrorCode::InvalidOptions),
        (doc! { "uuid": 1 }, ErrorCode::InvalidOptions),
        (doc! { "idIndex": {} }, ErrorCode::FailedToParse),
        (doc! { "changeStreamPreAndPostImages": { "enabled": 1 } }, ErrorCode::TypeMismatch),
        (doc! { "changeStreamPreAndPostImages": {} }, location(40414)),
        (doc! { "storageEngine": { "x": 1 } }, ErrorCode::BadValue),
        (doc! { "storageEngine": { "x": {} } }, ErrorCode::InvalidOptions),
        (doc! { "indexOptionDefaults": { "x": {} } }, ErrorCode::IDLUnknownField),
        (doc! { "indexOptionDefaults": { "storageEngine": { "wiredTiger": { "x": 1 } } } }, ErrorCode::InvalidOptions),
        (doc! { "clusteredIndex": false, "capped": true, "size": 4096 }, location(6049200)),
        (doc! { "clusteredIndex": { "key": null, "unique": true } }, location(40414)),
        (doc! { "clusteredIndex": { "key": { "_id": 1 }, "unique": null } }, location(40414)),
        (doc! { "clusteredIndex": "yes" }, ErrorCode::TypeMismatch),
        (doc! { "clusteredIndex": { "key": { "a": 1 }, "unique": true }, "viewOn": "a" }, location(6026500)),
        (doc! { "clusteredIndex": { "key": { "a": 1 }, "unique": true }, "autoIndexId": false }, location(6026501)),
        (doc! { "clusteredIndex": { "key": { "_id": 1 }, "unique": false } }, location(5979700)),
        (doc! { "clusteredIndex": { "key": { "_id": 1 }, "unique": true, "v": 1 } }, location(5979704)),
        (doc! { "clusteredIndex": { "key": 1, "unique": true } }, ErrorCode::TypeMismatch),
        (doc! { "clusteredIndex": true, "capped": true, "size": 1 }, location(6049200)),
        (doc! { "clusteredIndex": true, "idIndex": { "key": { "_id": 1 } } }, ErrorCode::InvalidOptions),
    ];
    for (row, expected) in rows {
        assert_eq!(parse(row.clone()).unwrap_err().code(), expected, "{row:?}");
    }
}

#[test]
fn u9_arguments_of_all_commands_are_no_options() {
    let options = parse(doc! { "writeConcern": { "w": 1 }, "$db": "test", "comment": 1, "lsid": {}, "capped": false });
    assert_eq!(options.unwrap(), CollectionOptions::default());
    let odd = doc! { "size": "x", "max": "y", "flags": 1 };
    assert_eq!(CollectionOptions::parse_stored(odd.view()).unwrap(), CollectionOptions::default());
}
