//! What is refused, and in which words.

use super::*;
use pando_doc::{Doc, doc};
use pando_wire::{Compressors, Documents, MsgFlags, RequestBuilder};

arguments! {
    /// A command like find.
    struct Find<'a> of "find" {
        /// Required.
        filter: DocRef<'a> = "filter",
        /// Optional.
        limit: Option<SafeLong> = "limit",
        /// With a default.
        batch_size: SafeLong = "batchSize" or SafeLong(101),
        /// Strict.
        single: Option<bool> = "singleBatch",
        /// Nested.
        inner: Option<Inner<'a>> = "inner",
        /// A list.
        names: Option<Vec<&'a str>> = "names",
        /// Perhaps a sequence.
        documents: Option<Documents<'a>> = "documents",
    }
}

arguments! {
    /// A nested struct.
    struct Inner<'a> of "inner" {
        /// Required.
        locale: &'a str = "locale",
    }
}

arguments! {
    /// One that ignores what it does not know.
    struct Lenient<'a> of "hello" lenient {
        /// Forgiving.
        flag: SafeBool = "flag" or SafeBool(true),
    }
}

fn expect_error(body: Doc, code: i32, reason: &str) {
    let error = Find::parse_document(body.view()).unwrap_err();
    assert_eq!((error.code().number(), error.reason()), (code, reason));
}

#[test]
fn fields_are_read_with_their_types_and_defaults() {
    let body = doc! {
        "find": "c", "filter": { "a": 1 }, "limit": 3.7, "singleBatch": null, "inner": { "locale": "de" },
        "names": ["x", "y"], "lsid": 1, "$db": "t", "maxTimeMS": 3
    };
    let find = Find::parse_document(body.view()).unwrap();
    assert_eq!(find.filter, doc! { "a": 1 }.view());
    assert_eq!((find.limit, find.batch_size, find.single), (Some(SafeLong(3)), SafeLong(101), None));
    assert_eq!((find.inner.unwrap().locale, find.names.unwrap()), ("de", vec!["x", "y"]));
    assert!(!Lenient::parse_document(doc! { "hello": 1, "what": 1, "flag": 0.0 }.view()).unwrap().flag.0);
    assert!(Lenient::parse_document(doc! { "hello": 1 }.view()).unwrap().flag.0);
}

#[test]
fn wrong_fields_are_refused_in_mongodbs_words() {
    expect_error(doc! { "find": "c", "filter": {}, "foo": 1 }, 40415, "BSON field 'find.foo' is an unknown field.");
    expect_error(doc! { "find": "c" }, 40414, "BSON field 'find.filter' is missing but a required field");
    expect_error(
        doc! { "find": "c", "filter": null },
        40414,
        "BSON field 'find.filter' is missing but a required field",
    );
    expect_error(
        doc! { "find": "c", "filter": {}, "limit": 1, "limit": 1 },
        40413,
        "BSON field 'find.limit' is a duplicate field",
    );
    expect_error(
        doc! { "find": "c", "filter": {}, "limit": "x" },
        14,
        "BSON field 'find.limit' is the wrong type 'string', expected types '[long, int, decimal, double']",
    );
    expect_error(
        doc! { "find": "c", "filter": {}, "singleBatch": 1 },
        14,
        "BSON field 'find.singleBatch' is the wrong type 'int', expected type 'bool'",
    );
    expect_error(
        doc! { "find": "c", "filter": {}, "inner": { "locale": 1 } },
        14,
        "BSON field 'find.inner.locale' is the wrong type 'int', expected type 'string'",
    );
    expect_error(
        doc! { "find": "c", "filter": {}, "inner": { "lsid": 1 } },
        40415,
        "BSON field 'find.inner.lsid' is an unknown field.",
    );
    expect_error(
        doc! { "find": "c", "filter": {}, "names": ["x", 1] },
        14,
        "BSON field 'find.names.1' is the wrong type 'int', expected type 'string'",
    );
    let small = at_least("limit", -1, 0).unwrap_err();
    assert_eq!(
        (small.code().number(), small.reason()),
        (51024, "BSON field 'limit' value must be >= 0, actual value '-1'")
    );
}

#[test]
fn u1_sequences_are_fields() {
    let body = doc! { "find": "c", "filter": {} };
    let (one, two) = (doc! { "a": 1 }, doc! { "a": 2 });
    let request = |name| {
        let builder = RequestBuilder::new(MsgFlags::NONE, Vec::new()).body(body.view());
        let message = builder.sequence(name, [one.view(), two.view()]).finish(1, None).unwrap();
        Command::decode(message.into(), &Compressors::disabled()).unwrap()
    };
    assert_eq!(Find::parse(&request("documents")).unwrap().documents.unwrap().len(), 2);
    assert_eq!(Find::parse(&request("limit")).unwrap_err().code().number(), 40415);
    assert_eq!(Find::parse(&request("other")).unwrap_err().code().number(), 40415);
}

#[test]
fn generic_arguments_are_parsed_and_refused() {
    let parse = |body: Doc| {
        let message = RequestBuilder::new(MsgFlags::NONE, Vec::new()).body(body.view()).finish(1, None).unwrap();
        GenericArguments::parse(&Command::decode(message.into(), &Compressors::disabled()).unwrap(), false)
    };
    let id = Value::Binary { subtype: 4, bytes: &[7; 16] };
    let good = parse(doc! {
        "ping": 1, "$db": "x", "lsid": { "id": id }, "txnNumber": 5_i64, "autocommit": false, "maxTimeMS": 20.0,
        "comment": "why", "apiVersion": "1", "$readPreference": { "mode": "nearest" },
        "writeConcern": { "w": 1 }
    })
    .unwrap();
    assert_eq!(good.session.as_ref().unwrap().id.as_bytes(), &[7; 16]);
    assert_eq!((good.transaction_number, good.autocommit, good.max_time_ms), (Some(5), Some(false), 20));
    assert!(good.allows_secondary().unwrap() && good.is_in_transaction());
    assert_eq!(good.api.version.as_deref(), Some("1"));
    let codes = [
        (doc! { "ping": 1, "lsid": 1 }, 14),
        (doc! { "ping": 1, "lsid": {} }, 40414),
        (doc! { "ping": 1, "txnNumber": 1 }, 14),
        (doc! { "ping": 1, "maxTimeMS": -1 }, 2),
        (doc! { "ping": 1, "maxTimeMS": 1.5 }, 2),
        (doc! { "ping": 1, "maxTimeMS": "1" }, 2),
        (doc! { "ping": 1, "$maxTimeMS": 1 }, 72),
        (doc! { "ping": 1, "maxTimeMSOpOnly": 1 }, 72),
        (doc! { "ping": 1, "apiStrict": 1 }, 14),
        (doc! { "ping": 1, "readConcern": "local" }, 14),
    ];
    for (body, code) in codes {
        assert_eq!(parse(body.clone()).unwrap_err().code().number(), code, "{body:?}");
    }
}
