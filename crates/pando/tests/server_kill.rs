//! `kill -9` of the real server under load, again and again, on one data directory.
//!
//! Workers write over the wire as a driver does: in sessions, each write numbered, with write concerns that promise
//! durability. What was acknowledged must be there after the next start, once. A write whose answer the kill has taken is sent
//! again with its number, and must count once, whether it was carried out before or not. Beside them somebody creates, renames
//! and drops collections and indexes. Some starts are killed too, while they recover.
//!
//! After each start every document is compared with what the workers know, and `validate` compares indexes with documents.

mod support;

use pando_base::Uuid;
use pando_doc::{Doc, DocBuilder, Value, doc};
use pando_env::Env;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc;
use std::time::Duration;
use support::{Client, DATABASE, Scratch, Server, block_on, free_port, number};

const CYCLES: u64 = 20;
const WORKERS: i32 = 4;
/// Worker `n` has the ids from `n` times this on.
const IDS_PER_WORKER: i32 = 10_000_000;

fn cycles() -> u64 {
    let chosen: Option<u64> = std::env::var("PANDO_SEEDS").ok().and_then(|text| text.parse().ok());
    let long = std::env::var("PANDO_TEST_LONG").is_ok().then_some(2_500);
    (CYCLES * chosen.or(long).unwrap_or(500)).div_ceil(500)
}

// What is written.

#[derive(Clone, Copy, Debug)]
enum Write {
    Insert(i32),
    Increment(i32),
    Delete(i32),
}

/// Somebody who writes documents, and knows what must be there.
struct Worker {
    place: i32,
    session: Doc,
    transaction: i64,
    next: i32,
    /// Ids and how often each was incremented.
    rows: BTreeMap<i32, i32>,
    /// A write whose answer has not come.
    pending: Option<Write>,
}

impl Worker {
    fn new(place: i32) -> Worker {
        let id = Uuid::from_random([place as u8 + 1; 16]);
        let session = doc! { "id": (Value::Binary { subtype: 4, bytes: id.as_bytes() }) };
        Worker { place, session, transaction: 0, next: 0, rows: BTreeMap::new(), pending: None }
    }

    fn choose(&mut self, env: &Env) -> Write {
        let (kind, chance) = (env.random().below(100), env.random().below(u64::from(u32::MAX)));
        let known = self.rows.len().max(1) as u64;
        let existing = self.rows.keys().nth((chance % known) as usize).copied();
        match (kind, existing) {
            (50..85, Some(id)) => Write::Increment(id),
            (85.., Some(id)) => Write::Delete(id),
            _ => {
                self.next += 1;
                Write::Insert(self.place * IDS_PER_WORKER + self.next)
            }
        }
    }

    fn command(&self, write: Write) -> Doc {
        let concern = match self.transaction % 2 {
            0 => doc! { "w": "majority" },
            _ => doc! { "w": 1, "j": true },
        };
        let mut command = DocBuilder::new();
        let text = "x".repeat(200);
        let statement = match write {
            Write::Insert(id) => doc! {
                "insert": "rows",
                "documents": [{ "_id": id, "worker": (self.place), "a": (id % 13), "count": 0, "text": text }],
            },
            Write::Increment(id) => doc! {
                "update": "rows",
                "updates": [{ "q": { "_id": id }, "u": { "$inc": { "count": 1, "a": 1 } } }],
            },
            Write::Delete(id) => doc! { "delete": "rows", "deletes": [{ "q": { "_id": id }, "limit": 1 }] },
        };
        command.append_all(statement.view());
        command.append("lsid", &self.session);
        command.append("txnNumber", self.transaction);
        command.append("writeConcern", concern);
        command.finish()
    }

    /// Sends the pending write; true if it was acknowledged.
    async fn send(&mut self, client: &mut Client) -> bool {
        let Some(write) = self.pending else { return true };
        let command = self.command(write);
        let Some(reply) = client.ask(&command).await else { return false };
        let is_good = number(&reply, "ok") == 1
            && number(&reply, "n") == 1
            && reply.get("writeErrors").is_none()
            && reply.get("writeConcernError").is_none();
        assert!(is_good, "{command}: {reply}");
        match write {
            Write::Insert(id) => drop(self.rows.insert(id, 0)),
            Write::Increment(id) => *self.rows.entry(id).or_default() += 1,
            Write::Delete(id) => drop(self.rows.remove(&id)),
        }
        self.pending = None;
        true
    }

    async fn work(&mut self, env: &Env, address: &str) {
        let Some(mut client) = Client::connect(env, address).await else { return };
        loop {
            self.transaction += 1;
            self.pending = Some(self.choose(env));
            if !self.send(&mut client).await {
                return;
            }
        }
    }
}

/// Somebody who creates, renames and drops, and knows what must be there: the round, and how many of its steps are done.
#[derive(Default)]
struct Builder {
    round: i32,
    done: i32,
    is_pending: bool,
}

const STEPS: i32 = 7;

impl Builder {
    /// The next step, and the error that says that it was done already.
    fn step(&self) -> (Doc, i64) {
        let (made, moved) = (format!("made{}", self.round), format!("moved{}", self.round));
        let old = format!("moved{}", self.round - 2);
        match self.done {
            0 => (doc! { "create": made }, 48),
            1 => (doc! { "createIndexes": made, "indexes": [{ "key": { "x": 1 }, "name": "x_1" }] }, 0),
            2 => (doc! { "insert": made, "documents": [{ "_id": 1, "x": 1 }, { "_id": 2, "x": [2, 3] }] }, 11000),
            3 => {
                let (from, to) = (format!("{DATABASE}.{made}"), format!("{DATABASE}.{moved}"));
                (doc! { "renameCollection": from, "to": to }, 26)
            }
            4 => (doc! { "createIndexes": "rows", "indexes": [{ "key": { "count": 1 }, "name": "count_1" }] }, 0),
            5 => (doc! { "dropIndexes": "rows", "index": "count_1" }, 27),
            _ => (doc! { "drop": old }, 26),
        }
    }

    async fn send(&mut self, client: &mut Client, is_again: bool) -> bool {
        self.is_pending = true;
        let (command, done_already) = self.step();
        let database = if command.get("renameCollection").is_some() { "admin" } else { DATABASE };
        let Some(reply) = client.ask_on(database, &command).await else { return false };
        let errors = reply.get("writeErrors").and_then(|errors| errors.as_array());
        let error = errors.and_then(|errors| errors.values().next()?.as_document().map(|error| error.to_doc()));
        let code = match number(&reply, "ok") {
            0 => number(&reply, "code"),
            _ => error.map_or(0, |error| number(&error, "code")),
        };
        assert!(code == 0 || (is_again && code == done_already), "{command}: {reply}");
        self.is_pending = false;
        self.done += 1;
        if self.done == STEPS {
            (self.round, self.done) = (self.round + 1, 0);
        }
        true
    }

    async fn work(&mut self, env: &Env, address: &str) {
        let Some(mut client) = Client::connect(env, address).await else { return };
        while self.send(&mut client, false).await {}
    }

    fn collections(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::from(["rows".to_owned()]);
        if (1..4).contains(&self.done) {
            names.insert(format!("made{}", self.round));
        }
        let newest = if self.done >= 4 { self.round } else { self.round - 1 };
        names.extend((self.round - 2..=newest).filter(|round| *round >= 0).map(|round| format!("moved{round}")));
        names
    }
}

// What must hold.

async fn settle_and_check(env: &Env, address: &str, workers: &mut [Worker], builder: &mut Builder) {
    let mut client = Client::connect(env, address).await.expect("the server listens");
    for worker in workers.iter_mut() {
        assert!(worker.send(&mut client).await, "the server is gone");
    }
    if builder.is_pending {
        assert!(builder.send(&mut client, true).await, "the server is gone");
    }
    check_rows(&mut client, workers).await;
    let listed = client.all("$cmd.listCollections", doc! { "listCollections": 1 }).await;
    let names: BTreeSet<String> =
        listed.iter().filter_map(|found| found.get("name")?.as_str().map(str::to_owned)).collect();
    assert_eq!(names, builder.collections(), "round {}, step {}", builder.round, builder.done);
    for name in &names {
        let report = client.ok(doc! { "validate": name, "full": true }).await;
        assert_eq!(report.get("valid"), Some(Value::Bool(true)), "{name}: {report}");
    }
}

async fn check_rows(client: &mut Client, workers: &[Worker]) {
    let expected: BTreeMap<i32, i32> = workers.iter().flat_map(|worker| worker.rows.clone()).collect();
    let found = client.all("rows", doc! { "find": "rows", "sort": { "_id": 1 } }).await;
    let found: BTreeMap<i32, i32> =
        found.iter().map(|row| (number(row, "_id") as i32, number(row, "count") as i32)).collect();
    let lost: Vec<_> = expected.iter().filter(|(id, count)| found.get(id) != Some(count)).take(5).collect();
    let extra: Vec<_> = found.iter().filter(|(id, _)| !expected.contains_key(id)).take(5).collect();
    assert!(lost.is_empty() && extra.is_empty(), "lost or wrong: {lost:?}, too many: {extra:?}");
    let counted = client.ok(doc! { "count": "rows" }).await;
    assert_eq!(number(&counted, "n") as usize, expected.len());
    let by_index = doc! { "count": "rows", "query": { "a": { "$gte": 0 } }, "hint": { "a": 1 } };
    assert_eq!(number(&client.ok(by_index).await, "n") as usize, expected.len());
}

/// Lets everybody work until the server is killed.
fn work_and_kill(env: &Env, server: Server, address: &str, crew: (Vec<Worker>, Builder)) -> (Vec<Worker>, Builder) {
    let (workers, mut builder) = crew;
    let (sender, receiver) = mpsc::channel();
    let mut threads = Vec::new();
    for mut worker in workers {
        let (env_of, address, sender) = (env.clone(), address.to_owned(), sender.clone());
        let body = move || {
            block_on(worker.work(&env_of, &address));
            let _ = sender.send(worker);
        };
        threads.push(env.tasks().spawn_thread("worker", Box::new(body)).expect("a thread"));
    }
    drop(sender);
    let (built, back) = mpsc::channel();
    let (env_of, address) = (env.clone(), address.to_owned());
    let body = move || {
        block_on(builder.work(&env_of, &address));
        let _ = built.send(builder);
    };
    threads.push(env.tasks().spawn_thread("builder", Box::new(body)).expect("a thread"));
    env.clock().pause(Duration::from_millis(20 + env.random().below(500)));
    drop(server);
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    let mut workers: Vec<Worker> = receiver.iter().collect();
    workers.sort_by_key(|worker| worker.place);
    assert_eq!(workers.len() as i32, WORKERS, "a worker failed");
    (workers, back.recv().expect("the builder failed"))
}

async fn prepare(env: &Env, address: &str) {
    let mut client = Client::connect(env, address).await.expect("the server listens");
    let indexes = doc! { "createIndexes": "rows", "indexes": [
        { "key": { "a": 1 }, "name": "a_1" },
        { "key": { "worker": 1, "_id": 1 }, "name": "unique", "unique": true },
    ] };
    client.ok(indexes).await;
}

#[test]
fn r17_a_killed_server_has_everything_it_acknowledged() {
    let env = Env::real();
    let scratch = Scratch::new(&env);
    let mut crew: (Vec<Worker>, Builder) = ((0..WORKERS).map(Worker::new).collect(), Builder::default());
    for cycle in 0..cycles() {
        let port = block_on(free_port(&env));
        let address = format!("127.0.0.1:{port}");
        for _ in 0..env.random().below(3) {
            // Killed while it recovers, or just afterwards.
            let early = Server::spawn(&scratch.0, port, &[]);
            env.clock().pause(Duration::from_millis(env.random().below(200)));
            drop(early);
        }
        let server = Server::start(&env, &scratch.0, port, &[]);
        if cycle == 0 {
            block_on(prepare(&env, &address));
        }
        block_on(settle_and_check(&env, &address, &mut crew.0, &mut crew.1));
        crew = work_and_kill(&env, server, &address, crew);
    }
    let writes: i64 = crew.0.iter().map(|worker| worker.transaction).sum();
    println!("{} cycles, {writes} writes, {} rounds of changes to the catalog", cycles(), crew.1.round);
    assert!(crew.0.iter().all(|worker| worker.transaction > 0), "everybody has written");
}

#[test]
fn b2_a_killed_member_stands_alone_and_comes_back() {
    let env = Env::real();
    let scratch = Scratch::new(&env);
    let port = block_on(free_port(&env));
    let address = format!("127.0.0.1:{port}");
    let mut expected = BTreeSet::new();
    for (round, more) in [&[][..], &["--standalone"][..], &[][..], &["--standalone"][..], &[][..]].iter().enumerate() {
        let server = Server::start(&env, &scratch.0, port, more);
        let is_alone = !more.is_empty();
        block_on(async {
            let mut client = Client::connect(&env, &address).await.expect("the server listens");
            let hello = client.ok(doc! { "hello": 1 }).await;
            assert_eq!(hello.get("setName").is_none(), is_alone);
            let found = client.all("rows", doc! { "find": "rows" }).await;
            let found: BTreeSet<i64> = found.iter().map(|row| number(row, "_id")).collect();
            assert_eq!(found, expected, "round {round}");
            for place in 0..50 {
                let id = round as i64 * 100 + place;
                let insert =
                    doc! { "insert": "rows", "documents": [{ "_id": id }], "writeConcern": { "w": 1, "j": true } };
                assert_eq!(number(&client.ok(insert).await, "n"), 1);
                expected.insert(id);
            }
            let report = client.ok(doc! { "validate": "rows", "full": true }).await;
            assert_eq!(report.get("valid"), Some(Value::Bool(true)), "{report}");
        });
        drop(server);
    }
}

#[test]
fn u12_a_server_that_is_told_to_end_ends_well() {
    let env = Env::real();
    let scratch = Scratch::new(&env);
    let port = block_on(free_port(&env));
    for _ in 0..2 {
        let server = Server::start(&env, &scratch.0, port, &[]);
        block_on(async {
            let mut client = Client::connect(&env, &format!("127.0.0.1:{port}")).await.expect("the server listens");
            client.ok(doc! { "insert": "rows", "documents": [{}] }).await;
        });
        assert!(server.terminate());
    }
}
