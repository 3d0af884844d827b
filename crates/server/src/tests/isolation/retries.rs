//! The process is killed, or loses its power, between a write and its reply; then the same write is sent again with its number. It
//! must have happened once, and the answer must be the one that was lost.

use super::super::{Fixture, number};
use super::{Dice, Machine};
use pando_base::Uuid;
use pando_doc::{Doc, DocBuilder, Value, doc};
use parking_lot::Mutex;
use std::sync::Arc;

/// Kills by default; 200 in long mode.
const KILL_COUNT: u64 = 40;
const KILLS_PER_MACHINE: u64 = 10;

/// A write, and the counter's value that it leads to.
fn write(kind: u64, value: i32) -> Doc {
    let (before, id) = (value - 1, value);
    match kind {
        0 => doc! { "update": "c", "updates": [{ "q": { "_id": 0 }, "u": { "$inc": { "n": 1 } } }] },
        1 => doc! { "findAndModify": "c", "query": { "_id": 0 }, "update": { "$inc": { "n": 1 } }, "new": true },
        2 => doc! { "findAndModify": "c", "query": { "_id": 0 }, "update": { "$inc": { "n": 1 } } },
        3 => doc! {
            "findAndModify": "c", "query": { "_id": 0, "n": before },
            "update": { "$inc": { "n": 1 }, "$set": { "last": id } },
        },
        _ => doc! { "insert": "inserted", "documents": [{ "_id": id }] },
    }
}

fn numbered(body: &Doc, txn_number: i64) -> Doc {
    let id = Uuid::from_random([9; 16]);
    let mut builder = DocBuilder::new();
    builder.append_all(body.view());
    builder.append("lsid", doc! { "id": (Value::Binary { subtype: 4, bytes: id.as_bytes() }) });
    builder.append("txnNumber", txn_number);
    builder.append("writeConcern", doc! { "w": "majority" });
    builder.append("$db", "d");
    builder.finish()
}

/// What an answer says, without what differs from one to the next.
fn essence(reply: &Doc) -> Doc {
    let mut builder = DocBuilder::new();
    for element in
        reply.elements().filter(|element| ["n", "nModified", "value", "ok"].iter().any(|it| element.name == *it))
    {
        builder.append_element(element);
    }
    builder.finish()
}

async fn counter(fixture: &Fixture) -> (f64, usize) {
    let mut client = fixture.connect().await;
    let found = client.ask(doc! { "find": "c", "filter": { "_id": 0 }, "$db": "d" }).await;
    let count = client.ask(doc! { "count": "inserted", "$db": "d" }).await;
    let counter = super::super::node::batch(&found, "firstBatch").first().map_or(0.0, |found| number(found, "n"));
    (counter, number(&count, "n") as usize)
}

#[test]
fn s17_a_write_whose_reply_was_lost_happens_once_and_is_answered_as_it_was() {
    let is_long = std::env::var("PANDO_TEST_LONG").is_ok();
    let machines = if is_long { 200 } else { KILL_COUNT } / KILLS_PER_MACHINE;
    let mut lost = 0;
    for seed in 1..=machines {
        let (mut machine, mut dice) = (Machine::new(seed), Dice::new(seed + 7));
        let begun = machine.incarnation(|fixture| async move {
            let mut client = fixture.connect().await;
            let first = doc! { "insert": "c", "documents": [{ "_id": 0, "n": 0 }], "writeConcern": { "w": "majority" }, "$db": "d" };
            client.ask(first).await;
            let other = doc! { "create": "inserted", "writeConcern": { "w": "majority" }, "$db": "d" };
            client.ask(other).await;
        });
        assert!(begun);
        machine.end(&mut dice);
        let (mut expected, mut inserted) = (0, 0);
        for kill in 1..=KILLS_PER_MACHINE {
            let kind = dice.below(5);
            let value = if kind < 4 { expected + 1 } else { i32::try_from(kill).unwrap() };
            let request = numbered(&write(kind, value), i64::try_from(kill).unwrap());
            let reply: Arc<Mutex<Option<Doc>>> = Arc::default();
            // Either the disk goes after some operations of its own, or the process after some turns of its tasks.
            let (turns, by_disk) = (dice.below(60), dice.below(2) == 0);
            let (shared, sent) = (Arc::clone(&reply), request.clone());
            let disk_operations = dice.below(6);
            let disk = machine.simulation.disk();
            machine.incarnation(|fixture| async move {
                if by_disk {
                    disk.crash_after(disk_operations);
                }
                let mut client = fixture.connect().await;
                let ask = async {
                    let told = client.try_ask(sent).await;
                    *shared.lock() = told;
                };
                let pause = async {
                    for _ in 0..turns {
                        tokio::task::yield_now().await;
                    }
                    if by_disk {
                        std::future::pending::<()>().await;
                    }
                };
                tokio::select! { () = ask => {}, () = pause => {} }
            });
            machine.end(&mut dice);
            let first = reply.lock().take().filter(|reply| number(reply, "ok") == 1.0);
            lost += u64::from(first.is_none());
            let again: Arc<Mutex<Option<Doc>>> = Arc::default();
            let (shared, sent) = (Arc::clone(&again), request.clone());
            let counts = Arc::new(Mutex::new((0.0, 0)));
            let told = Arc::clone(&counts);
            assert!(machine.incarnation(|fixture| async move {
                let mut client = fixture.connect().await;
                *shared.lock() = Some(client.ask(sent).await);
                *told.lock() = counter(&fixture).await;
            }));
            machine.end(&mut dice);
            let again = again.lock().take().unwrap();
            assert_eq!(number(&again, "ok"), 1.0, "seed {seed}, {kill}: {again}");
            if let Some(first) = first {
                assert_eq!(essence(&again), essence(&first), "seed {seed}, {kill}");
            }
            if kind < 4 {
                expected += 1
            } else {
                inserted += 1
            }
            assert_eq!(*counts.lock(), (f64::from(expected), inserted), "seed {seed}, {kill}: {request}");
            let value =
                again.get("value").and_then(|value| value.as_document()).map(|value| number(&value.to_doc(), "n"));
            let wanted = match kind {
                1 => Some(f64::from(expected)),
                2 | 3 => Some(f64::from(expected - 1)),
                _ => None,
            };
            assert_eq!(value, wanted, "seed {seed}, {kill}: {again}");
        }
    }
    assert!(lost > 0, "some replies were lost");
}
