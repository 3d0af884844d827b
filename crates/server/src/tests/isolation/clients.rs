//! The clients: each sends transactions of its own session, one after the other, and notes what it saw.

use super::super::node::batch;
use super::super::{Client, Fixture, number};
use super::Dice;
use super::history::{History, Key, Outcome, Step, Transaction};
use pando_base::Uuid;
use pando_doc::{Doc, DocBuilder, Value, doc};
use parking_lot::Mutex;
use std::sync::Arc;

const CLIENT_COUNT: u64 = 16;
const TRANSACTIONS_MAX: u64 = 6;
const LIST_COUNT: u64 = 4;
const REGISTER_COUNT: u64 = 3;

type Shared = Arc<Mutex<History>>;

/// All clients at work; the last incarnation looks at what is there when they are done.
pub(super) async fn play(fixture: Fixture, history: Shared, seed: u64, is_last: bool) {
    prepare(&fixture).await;
    let work = (0..CLIENT_COUNT).map(|place| {
        let dice = Dice::new(seed ^ (place + 1));
        work(&fixture, Arc::clone(&history), dice, seed.wrapping_add(place))
    });
    join(work.map(|work| Box::pin(work) as Work<'_>).collect()).await;
    if is_last {
        read_all(&fixture, &history).await;
    }
}

type Work<'a> = std::pin::Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Runs all of them, in turn.
async fn join(mut all: Vec<Work<'_>>) {
    std::future::poll_fn(|context| {
        all.retain_mut(|work| work.as_mut().poll(context).is_pending());
        if all.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}

/// Every key is there before anybody writes to it.
async fn prepare(fixture: &Fixture) {
    let mut client = fixture.connect().await;
    for (collection, count, empty) in [
        ("lists", LIST_COUNT, doc! { "$setOnInsert": { "v": [] } }),
        ("registers", REGISTER_COUNT, doc! { "$setOnInsert": { "v": 0 } }),
    ] {
        for key in 0..count {
            let update = doc! {
                "update": collection, "updates": [{ "q": { "_id": (key as i32) }, "u": &empty, "upsert": true }],
                "writeConcern": { "w": "majority" }, "$db": "d",
            };
            if client.try_ask(update).await.is_none() {
                return;
            }
        }
    }
}

async fn work(fixture: &Fixture, history: Shared, mut dice: Dice, session: u64) {
    let mut client = fixture.connect().await;
    for count in 1..=1 + dice.below(TRANSACTIONS_MAX) {
        let mut statements =
            Statements { client: &mut client, session, number: count as i64, is_first: true, level: None };
        statements.level = ["snapshot", "majority", "local"].get(dice.below(4) as usize).copied();
        let place = begin(&history);
        let outcome = run(&mut statements, &history, place, &mut dice).await;
        history.lock().transactions[place].outcome = outcome;
    }
}

/// Enters a transaction of which nothing is known yet: if the power goes, that stays so.
fn begin(history: &Shared) -> usize {
    let mut history = history.lock();
    history.transactions.push(Transaction { steps: Vec::new(), outcome: Outcome::Unknown });
    history.transactions.len() - 1
}

async fn run(statements: &mut Statements<'_>, history: &Shared, place: usize, dice: &mut Dice) -> Outcome {
    for _ in 0..1 + dice.below(4) {
        for _ in 0..dice.below(20) {
            tokio::task::yield_now().await;
        }
        let list = dice.below(LIST_COUNT) as Key;
        let register = dice.below(REGISTER_COUNT) as Key;
        let done = match dice.below(4) {
            0 => statements.append(history, place, list).await,
            1 => statements.read_list(history, place, list).await,
            2 => statements.read(history, place, register).await.map(|_| ()),
            _ => statements.change(history, place, register).await,
        };
        if let Err(outcome) = done {
            return outcome;
        }
    }
    if statements.is_first {
        return Outcome::Aborted;
    }
    match dice.below(8) {
        0 => statements.end("abortTransaction").await.map_or(Outcome::Aborted, |_| Outcome::Aborted),
        _ => match statements.end("commitTransaction").await {
            Ok(_) => Outcome::Committed,
            Err(outcome) => outcome,
        },
    }
}

/// A transaction in progress.
struct Statements<'a> {
    client: &'a mut Client,
    session: u64,
    number: i64,
    is_first: bool,
    level: Option<&'static str>,
}

impl Statements<'_> {
    /// Sends a statement. An error says what has become of the transaction.
    async fn send(&mut self, body: &Doc, database: &str) -> Result<Doc, Outcome> {
        let mut id = [0; 16];
        id[..8].copy_from_slice(&self.session.to_le_bytes());
        let id = Uuid::from_random(id);
        let mut statement = DocBuilder::new();
        statement.append_all(body.view());
        statement.append("lsid", doc! { "id": (Value::Binary { subtype: 4, bytes: id.as_bytes() }) });
        statement.append("txnNumber", self.number);
        statement.append("autocommit", false);
        if std::mem::take(&mut self.is_first) {
            statement.append("startTransaction", true);
            if let Some(level) = self.level {
                statement.append("readConcern", doc! { "level": level });
            }
        }
        statement.append("$db", database);
        let reply = self.client.try_ask(statement.finish()).await.ok_or(Outcome::Unknown)?;
        let is_well = number(&reply, "ok") == 1.0 && reply.get("writeErrors").is_none();
        if is_well { Ok(reply) } else { Err(Outcome::Aborted) }
    }

    async fn append(&mut self, history: &Shared, place: usize, key: Key) -> Result<(), Outcome> {
        let value = next_value(history);
        note(history, place, Step::Append(key, value));
        let change = doc! { "update": "lists", "updates": [{ "q": { "_id": key }, "u": { "$push": { "v": value } } }] };
        self.send(&change, "d").await.map(|_| ())
    }

    async fn read_list(&mut self, history: &Shared, place: usize, key: Key) -> Result<(), Outcome> {
        let found = self.send(&doc! { "find": "lists", "filter": { "_id": key } }, "d").await?;
        let list = batch(&found, "firstBatch").first().map(list_of).unwrap_or_default();
        note(history, place, Step::ReadList(key, list));
        Ok(())
    }

    async fn read(&mut self, history: &Shared, place: usize, key: Key) -> Result<i32, Outcome> {
        let found = self.send(&doc! { "find": "registers", "filter": { "_id": key } }, "d").await?;
        let value = batch(&found, "firstBatch").first().map_or(0, |found| number(found, "v") as i32);
        note(history, place, Step::Read(key, value));
        Ok(value)
    }

    /// Reads a register and writes it.
    async fn change(&mut self, history: &Shared, place: usize, key: Key) -> Result<(), Outcome> {
        self.read(history, place, key).await?;
        let value = next_value(history);
        note(history, place, Step::Write(key, value));
        let change =
            doc! { "update": "registers", "updates": [{ "q": { "_id": key }, "u": { "$set": { "v": value } } }] };
        self.send(&change, "d").await.map(|_| ())
    }

    /// Ends it. Only some errors of a commit say that it has not happened.
    async fn end(&mut self, command: &str) -> Result<Doc, Outcome> {
        let mut body = DocBuilder::new();
        body.append(command, 1);
        body.append("writeConcern", doc! { "w": "majority" });
        let mut reply = self.send(&body.finish(), "admin").await;
        if let Ok(told) = &reply
            && told.get("writeConcernError").is_some()
        {
            reply = Err(Outcome::Unknown);
        }
        reply
    }
}

fn next_value(history: &Shared) -> i32 {
    let mut history = history.lock();
    history.last_value += 1;
    history.last_value
}

fn note(history: &Shared, place: usize, step: Step) {
    history.lock().transactions[place].steps.push(step);
}

fn list_of(found: &Doc) -> Vec<i32> {
    let list = found.get("v").and_then(|list| list.as_array());
    list.map(|list| list.values().filter_map(|value| value.to_double()).map(|value| value as i32).collect())
        .unwrap_or_default()
}

async fn read_all(fixture: &Fixture, history: &Shared) {
    let mut client = fixture.connect().await;
    for (collection, is_list) in [("lists", true), ("registers", false)] {
        let reply = client.ask(doc! { "find": collection, "$db": "d" }).await;
        for found in batch(&reply, "firstBatch") {
            let key = number(&found, "_id") as Key;
            let mut history = history.lock();
            match is_list {
                true => drop(history.lists.insert(key, list_of(&found))),
                false => drop(history.registers.insert(key, number(&found, "v") as i32)),
            }
        }
    }
}
