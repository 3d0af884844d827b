//! What writes leave in the oplog.

use super::support::Node;
use pando_base::Timestamp;
use pando_doc::{Doc, Value, doc};
use pando_env::simulated::Simulation;
use pando_oplog::{OpKind, OplogEntry};

/// The entries since the node was started.
fn written(act: impl FnOnce(&Node)) -> (Vec<Doc>, Node, Simulation) {
    let simulation = Simulation::new(1);
    let (node, _) = Node::start(&simulation.env()).unwrap();
    let before = node.entries().len();
    act(&node);
    (node.entries().split_off(before), node, simulation)
}

fn object<'a>(entry: &'a Doc, field: &str) -> pando_doc::DocRef<'a> {
    entry.get(field).and_then(|value| value.as_document()).unwrap_or_else(|| panic!("no {field} in {entry}"))
}

fn kinds(entries: &[Doc]) -> Vec<String> {
    let text = |entry: &Doc| {
        let kind = entry.get("op").and_then(|kind| kind.as_str()).unwrap().to_owned();
        match kind.as_str() {
            "c" => object(entry, "o").first().unwrap().name.to_string(),
            _ => kind,
        }
    };
    entries.iter().map(text).collect()
}

#[test]
fn r1_every_write_leaves_one_entry_in_order() {
    let (entries, node, _simulation) = written(|node| {
        node.insert("test.c", &[doc! { "_id": 1, "a": 1, "filler": "a long text that is not in the diff" }]).unwrap();
        let new = doc! { "_id": 1, "a": 2, "filler": "a long text that is not in the diff" };
        node.update("test.c", &new).unwrap();
        node.delete("test.c", Value::Int32(1)).unwrap();
        node.create_index("test.c", &doc! { "key": { "a": 1 }, "name": "a_1", "v": 2 }).unwrap();
        node.rename("test.c", "test.d").unwrap();
        node.drop_collection("test.d").unwrap();
    });
    assert_eq!(kinds(&entries), ["create", "i", "u", "d", "createIndexes", "renameCollection", "drop"]);
    for entry in &entries {
        let parsed = OplogEntry::parse(entry.view()).unwrap();
        assert_eq!(parsed.to_doc(), *entry, "in MongoDB's order of fields");
        assert_eq!((parsed.op_time.term, parsed.version), (1, 2));
        assert!(parsed.operation.uuid.is_some() && parsed.wall_ms > 0);
    }
    assert_eq!(object(&entries[1], "o2"), doc! { "_id": 1 }.view());
    assert_eq!(object(&entries[2], "o"), doc! { "$v": 2, "diff": { "u": { "a": 2 } } }.view());
    assert_eq!(object(&entries[2], "o2"), doc! { "_id": 1 }.view());
    assert_eq!(object(&entries[3], "o"), doc! { "_id": 1 }.view());
    assert_eq!(entries[0].get("ns").and_then(|ns| ns.as_str()), Some("test.$cmd"));
    assert_eq!(object(&entries[6], "o2"), doc! { "numRecords": 0_i64 }.view());
    // Nothing of it is in flight, and majority reads are not behind.
    assert_eq!(node.engine.timestamps().all_durable, node.node.points().applied.0.timestamp);
}

#[test]
fn r1_each_document_of_a_batch_has_its_own_time() {
    let documents: Vec<Doc> = (0..3).map(|id| doc! { "_id": id }).collect();
    let (entries, node, _simulation) = written(|node| node.insert("test.c", &documents).unwrap());
    assert_eq!(kinds(&entries), ["create", "i", "i", "i"]);
    let times: Vec<Timestamp> = entries.iter().map(|entry| entry.get("ts").unwrap().as_timestamp().unwrap()).collect();
    assert!(times.windows(2).all(|pair| pair[0] < pair[1]));
    // A read at the time of the second does not see the third.
    let collection = node.find("test.c").unwrap();
    for (place, time) in times[1..].iter().enumerate() {
        let mut operation = node.operation();
        operation.recovery_unit.set_read_source(pando_storage::ReadSource::Provided(*time)).unwrap();
        let mut cursor = collection.records.cursor(pando_storage::Direction::Forward);
        let mut count = 0;
        while cursor.next(&mut operation.recovery_unit).unwrap().is_some() {
            count += 1;
        }
        assert_eq!(count, place + 1);
    }
}

#[test]
fn r1_what_is_not_replicated_leaves_nothing() {
    let (entries, _node, _simulation) = written(|node| {
        node.insert("local.mine", &[doc! { "_id": 1 }]).unwrap();
        node.update("local.mine", &doc! { "_id": 1, "a": 1 }).unwrap();
        node.delete("local.mine", Value::Int32(1)).unwrap();
        node.drop_collection("local.mine").unwrap();
    });
    assert_eq!(kinds(&entries), Vec::<String>::new());
}

#[test]
fn r1_a_write_that_fails_leaves_nothing_and_no_hole() {
    let (entries, node, _simulation) = written(|node| {
        node.insert("test.c", &[doc! { "_id": 1 }]).unwrap();
        assert!(node.insert("test.c", &[doc! { "_id": 2 }, doc! { "_id": 1 }]).is_err());
        node.insert("test.c", &[doc! { "_id": 3 }]).unwrap();
    });
    assert_eq!(kinds(&entries), ["create", "i", "i"]);
    assert_eq!(node.contents()["test.c"].len(), 2);
    assert_eq!(node.engine.timestamps().all_durable, node.node.points().applied.0.timestamp);
}

#[test]
fn r1_a_group_of_deletes_is_one_entry() {
    let documents: Vec<Doc> = (0..5).map(|id| doc! { "_id": id }).collect();
    let (entries, node, _simulation) = written(|node| {
        node.insert("test.c", &documents).unwrap();
        node.delete_batch("test.c", &[1, 2, 3]).unwrap();
        node.delete_batch("test.c", &[9]).unwrap();
    });
    assert_eq!(kinds(&entries)[6..], ["applyOps"], "an empty group leaves nothing");
    let operations = object(&entries[6], "o").get("applyOps").unwrap().as_array().unwrap();
    assert_eq!(operations.len(), 3);
    let first = operations.get(0).unwrap().as_document().unwrap();
    assert_eq!(first.get("op").and_then(|kind| kind.as_str()), Some(OpKind::Delete.as_str()));
    assert_eq!(node.contents()["test.c"].len(), 2);
}

#[test]
fn r1_a_group_is_one_entry_or_too_large() {
    let (entries, node, _simulation) = written(|node| {
        let large = "x".repeat(9 << 20);
        let documents = [1, 2].map(|id| doc! { "_id": id, "text": (large.as_str()) });
        let error = node.insert_group("test.c", &documents).unwrap_err();
        assert_eq!(error.code(), pando_base::ErrorCode::TransactionTooLarge, "{error}");
        node.insert_group("test.c", &documents[..1]).unwrap();
        node.insert_group("test.c", &[doc! { "_id": 3 }, doc! { "_id": 4 }]).unwrap();
    });
    assert_eq!(kinds(&entries), ["create", "i", "applyOps"]);
    let mut operation = node.operation();
    operation.recovery_unit.set_read_source(pando_storage::ReadSource::AllDurable).unwrap();
    let collection = node.find("test.c").unwrap();
    let mut cursor = collection.records.cursor(pando_storage::Direction::Forward);
    let found = std::iter::from_fn(|| cursor.next(&mut operation.recovery_unit).unwrap().map(|_| ())).count();
    assert_eq!(found, 3, "what failed has left no hole");
}
