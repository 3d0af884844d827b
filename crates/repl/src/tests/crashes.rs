//! Power loss: random writes and DDL, a crash at a random disk operation, also during recovery. After each start the data
//! is as of one of the writes since the last acknowledged one, and every index says what the documents say.

use super::support::{Contents, Node};
use pando_base::Result;
use pando_doc::{Doc, Value, doc};
use pando_env::Random;
use pando_env::simulated::{SimulatedRandom, Simulation};
use pando_storage::CheckpointKind;

const COLLECTIONS: [&str; 3] = ["test.a", "test.b", "other.c"];

struct Chance(SimulatedRandom);

impl Chance {
    fn below(&self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    fn collection(&self) -> &'static str {
        COLLECTIONS[self.below(3) as usize]
    }

    /// Arrays make indexes multikey.
    fn document(&self) -> Doc {
        let (id, a) = (self.below(12) as i32, self.below(5) as i32);
        match self.below(3) {
            0 => doc! { "_id": id, "a": [a, a + 1], "text": "so long that a change of one field is worth a diff" },
            _ => {
                doc! { "_id": id, "a": a, "b": { "c": a }, "text": "so long that a change of one field is worth a diff" }
            }
        }
    }
}

/// One random write; duplicates and missing collections are no faults.
fn write(node: &Node, chance: &Chance) -> Result<()> {
    let name = chance.collection();
    match chance.below(20) {
        0..8 => ignore(node.insert(name, &(0..=chance.below(3)).map(|_| chance.document()).collect::<Vec<_>>())),
        8..12 => ignore(node.update(name, &chance.document()).map(|_| ())),
        12..14 => ignore(node.delete(name, Value::Int32(chance.below(12) as i32)).map(|_| ())),
        14 => ignore(node.delete_batch(name, &[1, 3, 5])),
        15 => ignore(node.drop_collection(name)),
        16 => ignore(node.rename(name, chance.collection())),
        17 => match node.find(name).map(|collection| collection.records.num_records()) {
            Some(Ok(0)) => ignore(node.create_index(name, &doc! { "v": 2, "key": { "a": 1 }, "name": "a_1" })),
            _ => Ok(()),
        },
        18 => node.node.flush_blocking(),
        _ => Ok(node.engine.checkpoint(CheckpointKind::Automatic).map(|_| ())?),
    }
}

/// What the request itself can be refused for.
fn ignore(outcome: Result<()>) -> Result<()> {
    match outcome {
        Err(error) if [11000, 26, 48, 20, 72, 2].contains(&error.code().number()) => Ok(()),
        outcome => outcome,
    }
}

/// Starts the node, with crashes on the way as the dice fall.
fn start(simulation: &Simulation, chance: &Chance) -> Node {
    while chance.below(3) == 0 {
        simulation.disk().crash_after(chance.below(60));
        drop(Node::start(&simulation.env()));
        simulation.crash();
    }
    Node::start(&simulation.env()).map(|(node, _)| node).unwrap_or_else(|error| panic!("it does not start: {error:?}"))
}

fn play(seed: u64) {
    let chance = Chance(SimulatedRandom::new(seed));
    let simulation = Simulation::new(seed);
    // What the data may be: the states since the last acknowledgement.
    let mut possible: Vec<Contents> = vec![Contents::new()];
    for _ in 0..4 {
        let node = start(&simulation, &chance);
        let found = node.contents();
        let is_possible = possible.is_empty() || possible.contains(&found);
        assert!(is_possible, "seed {seed}: {found:#?} is none of the {} possible", possible.len());
        node.check_indexes();
        possible = vec![found];
        simulation.disk().crash_after(20 + chance.below(400));
        for _ in 0..60 {
            let outcome = write(&node, &chance);
            if outcome.is_err() {
                break;
            }
            // The power may have gone after the write and before the look: then what it made is not known.
            let (Ok(now), Some(last)) = (node.try_contents(), possible.last()) else {
                possible.clear();
                break;
            };
            // Each document of a batch is a state of its own, since each has an entry of its own.
            possible.extend(steps(last, &now));
            if chance.below(4) == 0 && node.node.flush_blocking().is_ok() {
                possible = vec![now];
            }
        }
        drop(node);
        simulation.crash();
    }
}

/// The states on the way from one to the next: documents of a batch appear one by one, in the order of the oplog; a batch
/// touches one collection, which may have been made for it.
fn steps(before: &Contents, after: &Contents) -> Vec<Contents> {
    let mut states = Vec::new();
    let mut state = before.clone();
    for (name, documents) in after {
        if !state.contains_key(name) && before.keys().all(|other| after.contains_key(other)) {
            state.insert(name.clone(), Default::default());
            states.push(state.clone());
        }
        let Some(known) = before.get(name) else {
            // Any subset may be what had been written: all orders of up to three documents.
            states.extend(subsets(&state, name, documents));
            continue;
        };
        let added: std::collections::BTreeMap<_, _> = documents
            .iter()
            .filter(|(id, _)| !known.contains_key(*id))
            .map(|(id, text)| (id.clone(), text.clone()))
            .collect();
        let changed = documents.iter().any(|(id, text)| known.get(id).is_some_and(|old| old != text));
        if !changed && known.keys().all(|id| documents.contains_key(id)) {
            states.extend(subsets(&state, name, &added));
        }
    }
    states.push(after.clone());
    states
}

fn subsets(state: &Contents, name: &str, added: &std::collections::BTreeMap<String, String>) -> Vec<Contents> {
    if added.len() > 4 {
        return Vec::new();
    }
    let items: Vec<_> = added.iter().collect();
    (1..1_usize << items.len())
        .map(|mask| {
            let mut state = state.clone();
            let documents = state.entry(name.to_owned()).or_default();
            for (place, (id, text)) in items.iter().enumerate() {
                if mask & (1 << place) != 0 {
                    documents.insert((*id).clone(), (*text).clone());
                }
            }
            state
        })
        .collect()
}

#[test]
fn r17_nothing_acknowledged_is_lost_by_power_loss() {
    let seeds = std::env::var("PANDO_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(25);
    (0..seeds).for_each(play);
}

#[test]
fn r17_recovery_applies_every_kind_of_entry() {
    let simulation = Simulation::new(1);
    let (node, _) = Node::start(&simulation.env()).unwrap();
    node.engine.checkpoint(CheckpointKind::Automatic).unwrap();
    let text = "so long that a change of one field is worth a diff";
    node.create_index("test.a", &doc! { "v": 2, "key": { "a": 1 }, "name": "a_1" }).unwrap();
    node.insert("test.a", &[doc! { "_id": 1, "a": 1, "text": text }, doc! { "_id": 2, "a": [1, 2], "text": text }])
        .unwrap();
    node.update("test.a", &doc! { "_id": 1, "a": 5, "text": text }).unwrap();
    node.insert("test.b", &(0..6).map(|id| doc! { "_id": id }).collect::<Vec<_>>()).unwrap();
    node.delete("test.b", Value::Int32(0)).unwrap();
    node.delete_batch("test.b", &[1, 2]).unwrap();
    node.insert("test.c", &[doc! { "_id": 1 }]).unwrap();
    node.rename("test.c", "test.d").unwrap();
    node.insert("gone.a", &[doc! { "_id": 1 }]).unwrap();
    node.drop_collection("gone.a").unwrap();
    let expected = node.contents();
    let records = node.find("test.b").unwrap().records.num_records().unwrap();
    node.node.flush_blocking().unwrap();
    drop(node);
    let (node, outcome) = Node::start(&simulation.crash()).unwrap();
    assert!(outcome.applied >= 16, "{outcome:?}");
    assert_eq!(node.contents(), expected);
    node.check_indexes();
    assert!(node.find("test.a").unwrap().index("a_1").unwrap().multikey.is_multikey());
    assert_eq!(node.find("test.b").unwrap().records.num_records().unwrap(), records);
    // Once more, right away: nothing has changed.
    drop(node);
    let (node, _) = Node::start(&simulation.crash()).unwrap();
    assert_eq!(node.contents(), expected);
    node.check_indexes();
}

#[test]
fn r17_recovery_begins_at_the_checkpoint() {
    let simulation = Simulation::new(1);
    let (node, _) = Node::start(&simulation.env()).unwrap();
    node.insert("test.a", &[doc! { "_id": 1 }]).unwrap();
    node.node.flush_blocking().unwrap();
    node.engine.checkpoint(CheckpointKind::Automatic).unwrap();
    let stable = node.engine.timestamps().stable;
    node.insert("test.a", &[doc! { "_id": 2 }]).unwrap();
    node.node.flush_blocking().unwrap();
    drop(node);
    let (node, outcome) = Node::start(&simulation.crash()).unwrap();
    assert_eq!((outcome.from, outcome.applied), (stable, 1));
    assert_eq!(node.contents()["test.a"].len(), 2);
}

#[test]
fn r17_the_oplog_is_cut_where_replication_says() {
    let simulation = Simulation::new(1);
    let (node, _) = Node::start(&simulation.env()).unwrap();
    node.insert("test.a", &[doc! { "_id": 1 }]).unwrap();
    let kept = node.entries().len();
    node.insert("test.a", &[doc! { "_id": 2 }, doc! { "_id": 3 }]).unwrap();
    let cut = node.entries()[kept].get("ts").unwrap().as_timestamp().unwrap();
    // A majority has none of it: the point must not be below what a checkpoint may have.
    crate::recovery::set_truncate_after_point(&mut node.operation(), &node.parts.local, cut).unwrap();
    node.engine.flush_log().unwrap();
    drop(node);
    let (node, _) = Node::start(&simulation.crash()).unwrap();
    assert_eq!(node.contents()["test.a"].len(), 1);
    let entries = node.entries();
    assert_eq!(entries[kept].get("op").and_then(|op| op.as_str()), Some("n"), "the new term's first entry follows");
    node.check_indexes();
    // The point counts once.
    node.insert("test.a", &[doc! { "_id": 4 }]).unwrap();
    node.node.flush_blocking().unwrap();
    drop(node);
    let (node, _) = Node::start(&simulation.crash()).unwrap();
    assert_eq!(node.contents()["test.a"].len(), 2);
}

#[test]
fn r17_transactions_in_the_oplog_are_applied_when_they_commit() {
    use pando_oplog::build::{ApplyOpsPart, apply_ops_object, commit_transaction_object};
    use pando_oplog::{OpTime, Operation, OplogEntry, SessionInfo};
    let simulation = Simulation::new(1);
    let (node, _) = Node::start(&simulation.env()).unwrap();
    node.insert("test.a", &[doc! { "_id": 0 }]).unwrap();
    let uuid = node.find("test.a").unwrap().uuid;
    let session = pando_session::LogicalSessionId::new(pando_base::Uuid::from_random([3; 16]), pando_session::NO_USER);
    let session = session.to_doc();
    // What a transaction would write; nothing of it is in the data.
    let append = |object: &Doc, txn_number: i64, previous: OpTime| {
        let mut operation = node.operation();
        operation
            .in_unit_of_work(|operation| {
                let slot = node.writer.reserve(operation, 1)?.last();
                let what = Operation::command("admin.$cmd".into(), None, object.view());
                let mut entry = OplogEntry::new(what, slot, 1);
                entry.session = SessionInfo {
                    session_id: Some(session.view()),
                    txn_number: Some(txn_number),
                    txn_retry_counter: None,
                };
                entry.previous_op_time = Some(previous);
                operation.recovery_unit.set_timestamp(slot.timestamp)?;
                operation.recovery_unit.writer()?.append_oplog(slot.timestamp, entry.to_doc().bytes())?;
                Ok(slot)
            })
            .unwrap()
    };
    let insert = |id: i32, part: ApplyOpsPart| {
        let (document, key) = (doc! { "_id": id }, doc! { "_id": id });
        let what = Operation::insert("test.a".into(), uuid, document.view(), key.view());
        apply_ops_object([&what], part)
    };
    let first = append(&insert(1, ApplyOpsPart::Partial), 1, OpTime::NULL);
    append(&insert(2, ApplyOpsPart::Last(2)), 1, first);
    let prepared = append(&insert(3, ApplyOpsPart::Prepare), 2, OpTime::NULL);
    append(&commit_transaction_object(prepared.timestamp), 2, prepared);
    let open = append(&insert(4, ApplyOpsPart::Prepare), 3, OpTime::NULL);
    append(&insert(5, ApplyOpsPart::Partial), 4, OpTime::NULL);
    node.engine.flush_log().unwrap();
    drop(node);
    let (node, outcome) = Node::start(&simulation.crash()).unwrap();
    assert_eq!(node.contents()["test.a"].len(), 4, "{:?}", node.contents());
    assert_eq!(outcome.prepared, [open], "what is still prepared is told");
    node.check_indexes();
}
