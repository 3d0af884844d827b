//! Entries as MongoDB 7.0 writes them, read and written; entries that are none; the observers.

use crate::build::{self, ApplyOpsPart, IndexCollMod};
use crate::observer::{Collection, Delete, DropCollection};
use crate::*;
use bstr::{BStr, ByteSlice};
use pando_base::{Error, ErrorCode, Namespace, Timestamp, Uuid};
use pando_doc::{Doc, DocBuilder, DocRef, ObjectId, Value, doc};
use std::sync::Arc;

/// How many seeds a test plays: its default number, scaled by `PANDO_SEEDS` (500 is the usual number, 10,000 the long one).
pub(crate) fn seeds(default: u64) -> u64 {
    let chosen: Option<u64> = std::env::var("PANDO_SEEDS").ok().and_then(|text| text.parse().ok());
    let long = std::env::var("PANDO_TEST_LONG").is_ok().then_some(10_000);
    (default * chosen.or(long).unwrap_or(500)).div_ceil(500)
}

const UUID: Uuid = Uuid::from_bytes([6; 16]);
const TIME: OpTime = OpTime::new(Timestamp::new(1_700_000_000, 3), 4);
const WALL_MS: i64 = 1_700_000_000_123;

fn ns(name: &str) -> &BStr {
    name.into()
}

fn uuid_value() -> Value<'static> {
    Value::Binary { subtype: 4, bytes: &[6; 16] }
}

/// Expects that the entry is written as this document and read back equal.
fn check(entry: OplogEntry<'_>, expected: Doc) {
    let written = entry.to_doc();
    assert_eq!(written, expected);
    assert_eq!(OplogEntry::parse(written.view()).expect("what is written is read"), entry);
}

#[test]
fn r1_an_insert_looks_as_mongodb_writes_it() {
    let (document, key) = (doc! { "_id": 1, "a": "x" }, doc! { "_id": 1 });
    let operation = Operation::insert(ns("test.c"), UUID, document.view(), key.view());
    check(
        OplogEntry::new(operation, TIME, WALL_MS),
        doc! {
            "op": "i", "ns": "test.c", "ui": (uuid_value()), "o": { "_id": 1, "a": "x" }, "o2": { "_id": 1 },
            "ts": (TIME.timestamp), "t": 4_i64, "v": 2_i64, "wall": (Value::DateTime(WALL_MS)),
        },
    );
}

#[test]
fn r1_a_retryable_update_looks_as_mongodb_writes_it() {
    let (change, key, session) = (doc! { "$v": 2, "diff": { "u": { "a": 2 } } }, doc! { "_id": 1 }, doc! { "id": 7 });
    let mut operation = Operation::update(ns("test.c"), UUID, change.view(), key.view());
    operation.statement_ids = StatementIds::One(0);
    operation.needs_retry_image = Some(RetryImage::Pre);
    operation.from_migrate = Some(true);
    let mut entry = OplogEntry::new(operation, TIME, WALL_MS);
    entry.session = SessionInfo { session_id: Some(session.view()), txn_number: Some(5), txn_retry_counter: None };
    entry.previous_op_time = Some(OpTime::NULL);
    check(
        entry,
        doc! {
            "lsid": { "id": 7 }, "txnNumber": 5_i64, "op": "u", "ns": "test.c", "ui": (uuid_value()),
            "o": { "$v": 2, "diff": { "u": { "a": 2 } } }, "o2": { "_id": 1 }, "needsRetryImage": "preImage", "stmtId": 0,
            "fromMigrate": true, "ts": (TIME.timestamp), "t": 4_i64, "v": 2_i64, "wall": (Value::DateTime(WALL_MS)),
            "prevOpTime": { "ts": (Timestamp(0)), "t": (-1_i64) },
        },
    );
}

#[test]
fn r1_every_field_round_trips() {
    let (object, object2) = (doc! { "_id": 1 }, doc! { "x": 1 });
    let operation = Operation {
        kind: OpKind::Delete,
        tenant: Some(ObjectId::from_bytes([1; 12])),
        ns: ns("test.c"),
        uuid: Some(UUID),
        object: object.view(),
        object2: Some(object2.view()),
        upsert: Some(false),
        pre_image_op_time: Some(TIME),
        post_image_op_time: Some(OpTime::NULL),
        needs_retry_image: Some(RetryImage::Post),
        destined_recipient: Some(ns("shard0")),
        statement_ids: StatementIds::Many(vec![1, 2, 3]),
        from_migrate: Some(true),
        check_existence_for_diff_insert: Some(true),
    };
    let entry = OplogEntry {
        session: SessionInfo { session_id: Some(object2.view()), txn_number: Some(-1), txn_retry_counter: Some(2) },
        operation,
        op_time: TIME,
        version: OPLOG_VERSION,
        wall_ms: WALL_MS,
        from_tenant_migration: Some(UUID),
        id: Some(Value::Int32(9)),
        previous_op_time: Some(TIME),
    };
    let written = entry.to_doc();
    assert_eq!(OplogEntry::parse(written.view()).unwrap(), entry);
    let names: Vec<String> = written.elements().map(|element| element.name.to_string()).collect();
    let order = "lsid txnNumber txnRetryCounter op tid ns ui o o2 b preImageOpTime postImageOpTime needsRetryImage \
                 destinedRecipient stmtId fromMigrate checkExistenceForDiffInsert ts t v wall fromTenantMigration _id \
                 prevOpTime";
    assert_eq!(names.join(" "), order);
}

#[test]
fn r1_wrong_entries_are_refused() {
    let good = OplogEntry::new(Operation::delete(ns("a.b"), UUID, DocRef::EMPTY), TIME, WALL_MS).to_doc();
    let without = |name: &str| {
        let mut builder = pando_doc::DocBuilder::new();
        good.view().raw_elements().filter(|element| element.name != name).for_each(|e| builder.append_raw(e));
        builder.finish()
    };
    for name in ["op", "ns", "o", "ts", "wall"] {
        let error = OplogEntry::parse(without(name).view()).unwrap_err();
        assert_eq!(error.code().number(), 40414, "{name}");
    }
    let with = |name: &str, value: Value<'_>| {
        let mut builder = pando_doc::DocBuilder::new();
        builder.append_all(without(name).view());
        builder.append(name, value);
        OplogEntry::parse(builder.finish().view()).map(drop).unwrap_err().code().number()
    };
    for name in ["op", "ns", "o", "o2", "ui", "ts", "wall", "lsid", "prevOpTime", "fromMigrate", "stmtId", "tid"] {
        assert_eq!(with(name, Value::Null), 14, "{name}");
    }
    assert_eq!(with("op", Value::String("q".into())), 2);
    assert_eq!(with("op", Value::String("u".into())), 40414, "an update without o2");
    assert_eq!(with("v", Value::Int64(1)), ErrorCode::UnsupportedFormat.number());
    assert_eq!(with("needsRetryImage", Value::String("x".into())), 2);
    assert_eq!(with("ui", Value::Binary { subtype: 4, bytes: &[1; 15] }), 14);
}

#[test]
fn r1_op_times_are_ordered_by_term_first() {
    let time = |seconds, term| OpTime::new(Timestamp::new(seconds, 1), term);
    assert!(time(9, 1) < time(1, 2));
    assert!(time(1, 2) < time(2, 2));
    assert!(OpTime::NULL < time(0, 0) && OpTime::NULL.is_null());
}

#[test]
fn r1_an_operation_names_its_collection_and_document() {
    let (document, key) = (doc! { "_id": 5, "a": 1 }, doc! { "_id": 5 });
    let insert = Operation::insert(ns("db.some.name"), UUID, document.view(), key.view());
    assert_eq!(insert.namespace().unwrap(), Namespace::of("db", "some.name").unwrap());
    let update = Operation::update(ns("db.c"), UUID, DocRef::EMPTY, key.view());
    let delete = Operation::delete(ns("db.c"), UUID, key.view());
    for operation in [&insert, &update, &delete] {
        assert_eq!(operation.document_id(), Some(Value::Int32(5)));
        assert!(operation.kind.is_crud());
    }
    assert_eq!(Operation::command(ns("db.$cmd"), None, document.view()).document_id(), None);
    assert!(Operation::delete(b"\xff.x".as_bstr(), UUID, key.view()).namespace().is_err());
}

#[test]
fn r1_commands_are_built_and_read() {
    let (from, to) = (Namespace::of("a", "b").unwrap(), Namespace::of("a", "c").unwrap());
    let index = doc! { "v": 2, "key": { "x": 1 }, "name": "x_1" };
    let options = doc! { "capped": true, "size": 4096 };
    let cases = [
        (
            build::create_object("c", options.view(), Some(index.view())),
            doc! {
                "create": "c", "capped": true, "size": 4096, "idIndex": (&index)
            },
        ),
        (build::drop_object("c"), doc! { "drop": "c" }),
        (build::drop_database_object(), doc! { "dropDatabase": 1 }),
        (
            build::rename_object(&from, &to, false, Some(UUID)),
            doc! {
                "renameCollection": "a.b", "to": "a.c", "stayTemp": false, "dropTarget": (uuid_value())
            },
        ),
        (
            build::create_indexes_object("c", index.view()),
            doc! {
                "createIndexes": "c", "v": 2, "key": { "x": 1 }, "name": "x_1"
            },
        ),
        (build::drop_indexes_object("c", "x_1"), doc! { "dropIndexes": "c", "index": "x_1" }),
        (
            build::start_index_build_object("c", UUID, &[index.view()]),
            doc! {
                "startIndexBuild": "c", "indexBuildUUID": (uuid_value()), "indexes": [(&index)]
            },
        ),
        (
            build::commit_index_build_object("c", UUID, &[index.view()]),
            doc! {
                "commitIndexBuild": "c", "indexBuildUUID": (uuid_value()), "indexes": [(&index)]
            },
        ),
        (
            build::abort_index_build_object("c", UUID, &[], &Error::new(ErrorCode::Interrupted, "stop")),
            doc! {
                "abortIndexBuild": "c", "indexBuildUUID": (uuid_value()), "indexes": [],
                "cause": { "ok": false, "code": 11601, "codeName": "Interrupted", "errmsg": "stop" }
            },
        ),
        (build::empty_capped_object("c"), doc! { "emptycapped": "c" }),
        (
            build::commit_transaction_object(Timestamp(5)),
            doc! {
                "commitTransaction": 1, "commitTimestamp": (Timestamp(5))
            },
        ),
        (build::abort_transaction_object(), doc! { "abortTransaction": 1 }),
    ];
    for (built, expected) in cases {
        assert_eq!(built, expected);
        let command = OplogCommand::parse(built.view()).unwrap();
        let entry = OplogEntry::new(Operation::command(ns("a.$cmd"), None, built.view()), TIME, WALL_MS);
        assert_eq!(entry.command().unwrap(), Some(command));
    }
    let read = |object: Doc| format!("{:?}", OplogCommand::parse(object.view()).unwrap());
    assert!(read(doc! { "deleteIndexes": "c", "index": "*" }).starts_with("DropIndexes"));
    assert!(read(doc! { "renameCollection": "a.b", "to": "a.c", "dropTarget": true }).contains("drop_target: None"));
    assert!(read(doc! { "convertToCapped": "c", "size": 5.0 }).contains("size_bytes: 5"));
    assert!(read(doc! { "dbCheck": "c" }).starts_with("DbCheck"));
    for wrong in [doc! {}, doc! { "find": "c" }, doc! { "create": 1 }, doc! { "startIndexBuild": "c" }] {
        assert!(OplogCommand::parse(wrong.view()).is_err(), "{wrong:?}");
    }
    let noop = OplogEntry::new(Operation::new(OpKind::Noop, ns(""), None, DocRef::EMPTY), TIME, WALL_MS);
    assert_eq!(noop.command().unwrap(), None);
}

#[test]
fn r1_coll_mod_names_the_index_and_keeps_what_was() {
    let command = doc! { "collMod": "c", "index": { "keyPattern": { "a": 1 }, "expireAfterSeconds": 9 } };
    let index = IndexCollMod {
        index_name: "a_1",
        expire_after_seconds: Some(9),
        old_expire_after_seconds: Some(5),
        ..IndexCollMod::default()
    };
    let object = build::coll_mod_object(command.view(), Some(&index));
    assert_eq!(object, doc! { "collMod": "c", "index": { "name": "a_1", "expireAfterSeconds": 9_i64 } });
    let object2 = build::coll_mod_object2(UUID, doc! { "capped": true }.view(), Some(&index));
    let expected = doc! { "collectionOptions_old": { "uuid": (Value::Binary { subtype: 4, bytes: UUID.as_bytes() }), "capped": true }, "indexOptions_old": { "expireAfterSeconds": 5_i64 } };
    assert_eq!(object2, expected);
    assert_eq!(build::coll_mod_object(command.view(), None), command);
}

fn as_document(operation: &Operation<'_>) -> Doc {
    let mut document = DocBuilder::with_capacity(operation.size_bytes_estimate());
    operation.append_to(&mut document);
    document.finish()
}

#[test]
fn r1_apply_ops_holds_operations() {
    let (document, key) = (doc! { "_id": 1 }, doc! { "_id": 1 });
    let operations = [
        Operation::insert(ns("a.b"), UUID, document.view(), key.view()),
        Operation::delete(ns("a.b"), UUID, key.view()),
    ];
    for (part, prepare, partial_txn, count) in [
        (ApplyOpsPart::Whole, false, false, None),
        (ApplyOpsPart::Partial, false, true, None),
        (ApplyOpsPart::Last(7), false, false, Some(7)),
        (ApplyOpsPart::Prepare, true, false, None),
        (ApplyOpsPart::PrepareLast(7), true, false, Some(7)),
    ] {
        let object = build::apply_ops_object(&operations, part);
        let OplogCommand::ApplyOps(read) = OplogCommand::parse(object.view()).unwrap() else { panic!("applyOps") };
        assert_eq!((read.prepare, read.partial_txn, read.count), (prepare, partial_txn, count));
        assert_eq!(read.iter().collect::<Result<Vec<_>, _>>().unwrap(), operations);
        let written: Vec<Doc> = operations.iter().map(as_document).collect();
        assert_eq!(build::apply_ops_object_of_documents(&written, part), object);
    }
    let wrong = doc! { "applyOps": [1] };
    let OplogCommand::ApplyOps(read) = OplogCommand::parse(wrong.view()).unwrap() else { panic!("applyOps") };
    assert!(read.iter().next().unwrap().is_err());
}

#[test]
fn r1_an_update_is_a_delta_or_a_replacement() {
    let text = "text ".repeat(50);
    let (pre, post) = (doc! { "_id": 1, "a": 1, "t": (&text) }, doc! { "_id": 1, "a": 2, "t": (&text) });
    let object = update_object(pre.view(), post.view()).unwrap();
    assert_eq!(object, doc! { "$v": 2, "diff": { "u": { "a": 2 } } });
    let change = UpdateChange::parse(object.view()).unwrap();
    assert!(matches!(change, UpdateChange::Delta(_)));
    assert_eq!(change.apply(pre.view()).unwrap(), post);

    let other = doc! { "_id": 1, "x": 1 };
    let object = update_object(pre.view(), other.view()).unwrap();
    assert_eq!(object, other);
    assert_eq!(UpdateChange::parse(object.view()).unwrap().apply(pre.view()).unwrap(), other);

    assert_eq!(update_object(pre.view(), pre.view()), None);
    for wrong in [doc! {}, doc! { "$set": { "a": 1 } }, doc! { "$v": 1, "diff": {} }] {
        assert_eq!(UpdateChange::parse(wrong.view()).unwrap_err().code().number(), 4772600);
    }
    let no_diff = doc! { "$v": 2, "diff": 1 };
    assert_eq!(UpdateChange::parse(no_diff.view()).unwrap_err().code().number(), 4772601);
}

/// Notes its name for each call, and may fail.
struct Noting {
    name: &'static str,
    fails: bool,
}

impl OpObserver<Vec<String>> for Noting {
    fn on_delete(&self, notes: &mut Vec<String>, delete: &Delete<'_>) -> pando_base::Result<()> {
        notes.push(format!("{} deletes {:?}", self.name, delete.document_key.get("_id")));
        if self.fails { Err(Error::bad_value("refused")) } else { Ok(()) }
    }
}

#[test]
fn r1_observers_are_called_in_order_until_one_fails() {
    let mut registry: ObserverRegistry<Vec<String>> = ObserverRegistry::new();
    for (name, fails) in [("one", false), ("two", true), ("three", false)] {
        registry.add(Arc::new(Noting { name, fails }));
    }
    let namespace = Namespace::of("a", "b").unwrap();
    let collection = Collection { namespace: &namespace, uuid: UUID, records_pre_images: false };
    let key = doc! { "_id": 1 };
    let delete = Delete {
        collection,
        pre_image: key.view(),
        document_key: key.view(),
        statement_ids: StatementIds::None,
        retry_image: None,
        slots: &[],
        from_migrate: false,
        destined_recipient: None,
    };
    let (observer, mut notes): (&dyn OpObserver<Vec<String>>, _) = (&registry, Vec::new());
    assert!(observer.on_delete(&mut notes, &delete).is_err());
    assert_eq!(notes, ["one deletes Some(Int32(1))", "two deletes Some(Int32(1))"]);
    let drop = DropCollection { collection, record_count: 3, from_migrate: false };
    observer.on_drop_collection(&mut notes, &drop).unwrap();
    assert_eq!(notes.len(), 2, "what is not overridden does nothing");
}
