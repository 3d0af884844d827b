//! Entries and diffs with damaged bytes: an error or an entry, never a panic.

use crate::build::{ApplyOpsPart, apply_ops_object};
use crate::tests::seeds;
use crate::*;
use pando_base::{Timestamp, Uuid};
use pando_doc::{Doc, DocRef, doc};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// One entry of every shape.
fn good_entries() -> Vec<Doc> {
    let uuid = Uuid::from_bytes([6; 16]);
    let (pre, key) = (document(), doc! { "_id": 1 });
    let diff = doc! { "d": { "x": false }, "u": { "n": 2 }, "i": { "y": 1 }, "sl": { "a": true, "l": 3, "u1": 7, "s2": { "u": { "z": 1 } } } };
    let delta = delta_object(diff.view());
    let operations = [
        Operation::insert("a.b".into(), uuid, pre.view(), key.view()),
        Operation::update("a.b".into(), uuid, delta.view(), key.view()),
        Operation::delete("a.b".into(), uuid, key.view()),
    ];
    let group = apply_ops_object(&operations, ApplyOpsPart::PrepareLast(3));
    let rename = doc! { "renameCollection": "a.b", "to": "a.c", "stayTemp": false };
    let commands = [&group, &rename].map(|object| Operation::command("a.$cmd".into(), None, object.view()));
    let all = operations.iter().chain(&commands);
    all.map(|operation| {
        let mut entry = OplogEntry::new(operation.clone(), OpTime::new(Timestamp::new(1, 2), 3), 4);
        entry.previous_op_time = Some(OpTime::NULL);
        entry.operation.statement_ids = StatementIds::Many(vec![1, 2]);
        entry.to_doc()
    })
    .collect()
}

fn document() -> Doc {
    doc! { "_id": 1, "n": 1, "x": "text", "l": [1, 2, { "z": 0 }, 4] }
}

/// Reads all there is. True if it is an entry.
fn digest(bytes: &[u8]) -> bool {
    let Ok(document) = DocRef::parse(bytes) else {
        return false;
    };
    let Ok(entry) = OplogEntry::parse(document) else {
        return false;
    };
    digest_operation(&entry.operation);
    if let Ok(Some(OplogCommand::ApplyOps(group))) = entry.command() {
        group.iter().flatten().for_each(|operation| digest_operation(&operation));
    }
    let written = entry.to_doc();
    assert_eq!(OplogEntry::parse(written.view()).expect("what was read is written"), entry);
    true
}

fn digest_operation(operation: &Operation<'_>) {
    drop(operation.namespace());
    let pre = document();
    let Ok(once) = UpdateChange::parse(operation.object).and_then(|change| change.apply(pre.view())) else {
        return;
    };
    DocRef::parse(once.bytes()).expect("a change leads to a valid document");
    let again = UpdateChange::parse(operation.object).and_then(|change| change.apply(once.view()));
    assert_eq!(again.expect("and again"), once);
}

#[test]
fn r1_every_corrupted_byte_is_an_error_or_an_entry() {
    let mut accepted = 0;
    for entry in good_entries() {
        assert!(digest(entry.bytes()));
        for place in 0..entry.size_bytes() {
            digest(&entry.bytes()[..place]);
            for change in [1, 2, 4, 8, 16, 32, 64, 128, 0xff] {
                let mut bytes = entry.bytes().to_vec();
                bytes[place] ^= change;
                accepted += u32::from(digest(&bytes));
            }
        }
    }
    assert!(accepted > 100, "damage reaches past the first check: {accepted}");
}

#[test]
fn r1_mutated_entries_never_panic() {
    let good = good_entries();
    let mut accepted = 0;
    for seed in 0..seeds(10_000) {
        let mut random = StdRng::seed_from_u64(seed);
        let mut bytes = good[random.random_range(0..good.len())].bytes().to_vec();
        for _ in 0..random.random_range(1..6) {
            let place = random.random_range(0..bytes.len());
            bytes[place] = match random.random_range(0..3) {
                0 => random.random(),
                1 => bytes[random.random_range(0..bytes.len())],
                _ => b"uisadl0123456789"[random.random_range(0..16)],
            };
        }
        accepted += u64::from(digest(&bytes));
    }
    assert!(accepted > 0, "mutations reach past the first check");
}
