//! Change streams whose readers are killed: eight writers, four readers, each a process of its own that is killed again and again
//! and comes back with the token of the last event that it has handed on.
//!
//! Every reader must see every event once and in the order of the oplog, which is read at the end.
//!
//! A reader is this very program, started with the word `reader`; so there is no harness around it.

mod support;

use pando_base::{Timestamp, Uuid};
use pando_doc::{Doc, DocBuilder, DocRef, JsonFormat, Value, doc, doc_from_json, doc_to_json};
use pando_env::Env;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use support::{Client, DATABASE, Scratch, Server, batch, block_on, free_port, number};

const NAME: &str = "u13_killed_readers_see_every_event_once_and_in_order";
const READER: &str = "reader";
const WRITERS: u8 = 8;
const READERS: usize = 4;
/// Documents that all writers share.
const DOCUMENTS: u64 = 40;
/// Each writer does so many things, unless told otherwise.
const WRITES: u64 = 150;
/// A reader is killed after at most so many events.
const EVENTS_MAX: u64 = 60;
/// The document that is written last.
const END: i64 = 1_000_000;

/// Runs as the harness would, or is a reader.
fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [word, address, beginning] = arguments.as_slice()
        && word == READER
    {
        return block_on(read(&Env::real(), address, beginning));
    }
    let (options, filters): (Vec<&String>, Vec<&String>) = arguments.iter().partition(|word| word.starts_with('-'));
    let is_chosen = filters.is_empty() || filters.iter().any(|filter| NAME.contains(filter.as_str()));
    if options.iter().any(|option| *option == "--list") {
        return println!("{NAME}: test");
    }
    if is_chosen {
        killed_readers_see_every_event_once_and_in_order();
        println!("test {NAME} ... ok");
    }
    let count = u8::from(is_chosen);
    println!("test result: ok. {count} passed; 0 failed; 0 ignored; 0 measured; {} filtered out", 1 - count);
}

fn killed_readers_see_every_event_once_and_in_order() {
    let env = Env::real();
    let scratch = Scratch::new(&env);
    let port = block_on(free_port(&env));
    let address = format!("127.0.0.1:{port}");
    let server = Server::start(&env, &scratch.0, port, &[]);
    let beginning = block_on(begin(&env, &address));
    let (sender, seen) = mpsc::channel();
    let mut threads = Vec::new();
    for _ in 0..READERS {
        let (env_of, address, beginning, sender) = (env.clone(), address.clone(), beginning.clone(), sender.clone());
        let body = move || {
            let _ = sender.send(follow(&env_of, &address, &beginning));
        };
        threads.push(env.tasks().spawn_thread("reader", Box::new(body)).expect("a thread"));
    }
    drop(sender);
    write_all(&env, &address);
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    let expected = block_on(entries(&env, &address));
    let mut kills = 0;
    for (reader, (events, killed)) in seen.iter().enumerate() {
        let difference = events.iter().zip(&expected).position(|(event, entry)| event != entry);
        assert_eq!(difference, None, "reader {reader} saw something else, or in another order");
        assert_eq!(events.len(), expected.len(), "reader {reader} saw too few or too many");
        kills += killed;
    }
    assert!(kills >= READERS, "somebody was killed");
    println!("{} events, {READERS} readers, {kills} times killed", expected.len());
    drop(server);
}

/// Makes the collection; the time from which on everything is to be seen.
async fn begin(env: &Env, address: &str) -> Doc {
    let mut client = Client::connect(env, address).await.expect("the server listens");
    let reply = client.ok(doc! { "create": "rows" }).await;
    let time = reply.get("operationTime").and_then(|time| time.as_timestamp()).expect("an operationTime");
    doc! { "startAtOperationTime": (time.next()) }
}

// The writers.

fn write_all(env: &Env, address: &str) {
    let mut threads = Vec::new();
    for place in 0..WRITERS {
        let (env_of, address) = (env.clone(), address.to_owned());
        let body = move || block_on(write(&env_of, &address, place));
        threads.push(env.tasks().spawn_thread("writer", Box::new(body)).expect("a thread"));
    }
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    block_on(async {
        let mut client = Client::connect(env, address).await.expect("the server listens");
        client.ok(doc! { "insert": "rows", "documents": [{ "_id": END }] }).await;
    });
}

fn writes() -> u64 {
    let chosen: Option<u64> = std::env::var("PANDO_SEEDS").ok().and_then(|text| text.parse().ok());
    let long = std::env::var("PANDO_TEST_LONG").is_ok().then_some(10_000);
    (WRITES * chosen.or(long).unwrap_or(500)).div_ceil(500)
}

async fn write(env: &Env, address: &str, place: u8) {
    let mut client = Client::connect(env, address).await.expect("the server listens");
    let id = Uuid::from_random([place + 1; 16]);
    let session = doc! { "id": (Value::Binary { subtype: 4, bytes: id.as_bytes() }) };
    for turn in 0..writes() {
        let statements = [statement(env), statement(env)];
        match env.random().below(4) {
            0 => transact(&mut client, &session, turn as i64, &statements).await,
            _ => {
                let reply = client.ask(&statements[0]).await.expect("the server is there");
                assert_eq!(number(&reply, "ok"), 1, "{reply}");
            }
        }
    }
}

/// A write to one of the documents that everybody writes to.
fn statement(env: &Env) -> Doc {
    let id = env.random().below(DOCUMENTS) as i64;
    let query = doc! { "_id": id };
    match env.random().below(10) {
        0 => doc! { "delete": "rows", "deletes": [{ "q": query, "limit": 1 }] },
        1 => doc! { "update": "rows", "updates": [{ "q": query, "u": { "replaced": true }, "upsert": true }] },
        _ => doc! { "update": "rows", "updates": [{ "q": query, "u": { "$inc": { "count": 1 } }, "upsert": true }] },
    }
}

/// Both in one transaction, or none of them where others were faster.
async fn transact(client: &mut Client, session: &Doc, number_of: i64, statements: &[Doc; 2]) {
    let in_transaction = |body: &Doc, is_first: bool| {
        let mut whole = DocBuilder::new();
        whole.append_all(body.view());
        whole.append("lsid", session);
        whole.append("txnNumber", number_of);
        whole.append("autocommit", false);
        if is_first {
            whole.append("startTransaction", true);
        }
        whole.finish()
    };
    for (place, statement) in statements.iter().enumerate() {
        let reply = client.ask(&in_transaction(statement, place == 0)).await.expect("the server is there");
        if number(&reply, "ok") != 1 || reply.get("writeErrors").is_some() {
            return;
        }
    }
    let commit = in_transaction(&doc! { "commitTransaction": 1 }, false);
    let reply = client.ask_on("admin", &commit).await.expect("the server is there");
    assert_eq!(number(&reply, "ok"), 1, "{reply}");
}

// The readers.

/// What a reader says of an event, and what the oplog says of it.
#[derive(Clone, Debug, PartialEq)]
struct Seen {
    time: Timestamp,
    kind: String,
    id: i64,
}

/// Follows the stream by readers that are killed; what they have seen, and how many were killed.
fn follow(env: &Env, address: &str, beginning: &Doc) -> (Vec<Seen>, usize) {
    let (mut seen, mut killed, mut from) = (Vec::new(), 0, beginning.clone());
    loop {
        let mut reader = Reader::start(address, &from);
        let patience = env.random().below(EVENTS_MAX);
        for line in reader.lines(patience) {
            let event = doc_from_json(&line).expect("an event");
            let part = |name: &str| event.get(name).unwrap_or_else(|| panic!("no {name}: {line}"));
            from = doc! { "resumeAfter": (part("token")) };
            let kind = part("kind").as_str().expect("a kind").to_owned();
            let time = part("time").as_timestamp().expect("a time");
            seen.push(Seen { time, kind, id: number(&event, "id") });
        }
        if seen.last().is_some_and(|last| last.id == END) {
            return (seen, killed);
        }
        killed += 1;
    }
}

/// A process that reads.
struct Reader(Child);

impl Drop for Reader {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Reader {
    fn start(address: &str, beginning: &Doc) -> Reader {
        let program = std::env::current_exe().expect("this program");
        let child = Command::new(program)
            .args([READER, address, &doc_to_json(beginning.view(), JsonFormat::Canonical)])
            .stdout(Stdio::piped())
            .spawn();
        Reader(child.expect("a reader's process"))
    }

    /// So many lines; then it is killed, and what it has written until then counts too. Fewer if it has seen the end.
    fn lines(&mut self, count: u64) -> Vec<String> {
        let mut output = BufReader::new(self.0.stdout.take().expect("a pipe"));
        let mut lines = Vec::new();
        loop {
            if lines.len() as u64 == count {
                self.0.kill().expect("it can be killed");
            }
            let mut line = String::new();
            let read = output.read_line(&mut line).expect("text");
            if read == 0 || !line.ends_with('\n') {
                return lines;
            }
            let is_end = number(&doc_from_json(&line).expect("an event"), "id") == END;
            lines.push(line);
            if is_end {
                return lines;
            }
        }
    }
}

/// What a reader does: it hands on what it sees, one line for each event.
async fn read(env: &Env, address: &str, beginning: &str) {
    let options = doc_from_json(beginning).expect("a beginning");
    let mut client = Client::connect(env, address).await.expect("the server listens");
    let stream = doc! { "aggregate": "rows", "pipeline": [{ "$changeStream": options }], "cursor": {} };
    let reply = client.ok(stream).await;
    let (id, mut events) = batch(&reply, "firstBatch");
    loop {
        for event in &events {
            let mut line = doc_to_json(shown(event.view()).view(), JsonFormat::Canonical);
            line.push('\n');
            // Whoever reads it may be gone.
            if std::io::stdout().write_all(line.as_bytes()).is_err() {
                return;
            }
        }
        let more = doc! { "getMore": id, "collection": "rows", "maxTimeMS": 200 };
        let Some(reply) = client.ask(&more).await else { return };
        assert_eq!(number(&reply, "ok"), 1, "{reply}");
        events = batch(&reply, "nextBatch").1;
    }
}

fn shown(event: DocRef<'_>) -> Doc {
    let key = event.get("documentKey").and_then(|key| key.as_document()).expect("a key");
    let mut shown = DocBuilder::new();
    shown.append_some("token", event.get("_id"));
    shown.append_some("time", event.get("clusterTime"));
    shown.append_some("kind", event.get("operationType"));
    shown.append_some("id", key.get("_id"));
    shown.finish()
}

// The oplog.

/// What the oplog has about the documents.
async fn entries(env: &Env, address: &str) -> Vec<Seen> {
    let mut client = Client::connect(env, address).await.expect("the server listens");
    let namespace = format!("{DATABASE}.rows");
    let filter = doc! { "$or": [
        { "ns": (&*namespace), "op": { "$in": ["i", "u", "d"] } },
        { "op": "c", "o.applyOps.ns": (&*namespace) },
    ] };
    let find = doc! { "find": "oplog.rs", "filter": filter, "sort": { "$natural": 1 }, "batchSize": 10_000_000 };
    let reply = client.ask_on("local", &find).await.expect("the server is there");
    let (id, found) = batch(&reply, "firstBatch");
    assert_eq!(id, 0, "all of it");
    let mut entries = Vec::new();
    for entry in &found {
        let time = entry.get("ts").and_then(|time| time.as_timestamp()).expect("a time");
        let group = entry.get("o").and_then(|o| o.as_document()).and_then(|o| o.get("applyOps"));
        match group.and_then(|group| group.as_array()) {
            Some(group) => {
                let operations = group.values().filter_map(|operation| operation.as_document());
                entries.extend(operations.map(|operation| told(operation, time)));
            }
            None => entries.push(told(entry.view(), time)),
        }
    }
    entries
}

fn told(operation: DocRef<'_>, time: Timestamp) -> Seen {
    let part = |name: &str| operation.get(name).and_then(|part| part.as_document());
    let object = part("o").expect("an object");
    let kind = match operation.get("op").and_then(|op| op.as_str()) {
        Some("i") => "insert",
        Some("d") => "delete",
        _ if object.get("_id").is_some() => "replace",
        _ => "update",
    };
    let key = part("o2").unwrap_or(object).to_doc();
    Seen { time, kind: kind.to_owned(), id: number(&key, "_id") }
}
