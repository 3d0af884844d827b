//! A server of MongoDB's protocol that is just large enough for the load: maps in memory, a thread for each connection.

use bytes::Bytes;
use pando_doc::{Doc, DocBuilder, DocRef, Value};
use pando_wire::{Command, Compressors, ReplyBuilder, next_length};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

type Collections = BTreeMap<String, BTreeMap<Vec<u8>, Doc>>;

struct State {
    collections: Mutex<Collections>,
    refused: Vec<String>,
    hangs_up: AtomicBool,
}

/// Listens until the test's process ends.
pub struct FakeServer {
    pub address: SocketAddr,
    state: Arc<State>,
}

/// A code, its name and a text.
type Refusal = (i32, &'static str, String);

impl FakeServer {
    /// Told which commands it does not know.
    pub fn start(refused: &[&str]) -> FakeServer {
        let refused = refused.iter().map(|name| (*name).to_owned()).collect();
        let state = State { collections: Mutex::default(), refused, hangs_up: AtomicBool::new(false) };
        let state = Arc::new(state);
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&shared);
                std::thread::spawn(move || while answer(&stream, &state).is_some() {});
            }
        });
        FakeServer { address, state }
    }

    /// From now on a command that is not known ends the connection.
    pub fn hang_up_on_refusal(&self) {
        self.state.hangs_up.store(true, Ordering::SeqCst);
    }
}

/// One request and its reply; nothing when the connection is over.
fn answer(mut stream: &TcpStream, state: &State) -> Option<()> {
    let mut header = [0; 16];
    stream.read_exact(&mut header).ok()?;
    let mut message = header.to_vec();
    message.resize(next_length(&header, pando_wire::limits::MESSAGE_SIZE_BYTES_MAX).unwrap(), 0);
    stream.read_exact(&mut message[16..]).ok()?;
    let Ok(command) = Command::decode(Bytes::from(message), &Compressors::default()) else { panic!("a bad request") };
    let mut reply = ReplyBuilder::new(command.reply_to(), Vec::new());
    match execute(&command, state, reply.body()) {
        Ok(()) => reply.body().append("ok", 1.0),
        Err(_) if state.hangs_up.load(Ordering::SeqCst) => return None,
        Err((code, name, text)) => {
            reply.body().append("ok", 0.0);
            reply.body().append("errmsg", text.as_str());
            reply.body().append("code", code);
            reply.body().append("codeName", name);
        }
    }
    stream.write_all(&reply.finish(1, false).unwrap()).ok()
}

fn execute(command: &Command, state: &State, reply: &mut DocBuilder) -> Result<(), Refusal> {
    let name = command.name().to_string();
    if state.refused.contains(&name) {
        return Err((59, "CommandNotFound", format!("no such command: '{name}'")));
    }
    let body = command.body();
    let collection = body.first().and_then(|element| element.value.as_str()).unwrap_or_default().to_owned();
    let mut collections = state.collections.lock().unwrap();
    if name == "drop" && collections.remove(&collection).is_none() {
        return Err((26, "NamespaceNotFound", "ns not found".to_owned()));
    }
    let documents = collections.entry(collection).or_default();
    match name.as_str() {
        "insert" => return insert(command, documents, reply),
        "update" => update(body, documents, reply),
        "find" => {
            let Some(Value::Int32(limit)) = body.get("limit") else { panic!("no limit") };
            let found = documents.values().filter(|document| matches(document.view(), nested(body, "filter")));
            batch(reply, found.map(Doc::view).take(limit as usize));
        }
        "aggregate" => {
            let Some(Value::Array(stages)) = body.get("pipeline") else { panic!("no pipeline") };
            let Some(Value::Document(stage)) = stages.get(0) else { panic!("no stage") };
            let found = documents.values().filter(|document| matches(document.view(), nested(stage, "$match")));
            batch(reply, found.map(Doc::view).take(1));
        }
        "hello" | "ping" | "drop" | "create" | "createIndexes" | "fsync" => {}
        _ => panic!("a command of no workload: {name}"),
    }
    Ok(())
}

fn insert(command: &Command, documents: &mut BTreeMap<Vec<u8>, Doc>, reply: &mut DocBuilder) -> Result<(), Refusal> {
    expect_durable(command.body());
    let inserted = command.sequence("documents").unwrap().unwrap();
    for document in inserted.iter() {
        if documents.insert(id(document), document.to_doc()).is_some() {
            return Err((11000, "DuplicateKey", "E11000".to_owned()));
        }
    }
    reply.append("n", inserted.len() as i32);
    Ok(())
}

fn update(body: DocRef<'_>, documents: &BTreeMap<Vec<u8>, Doc>, reply: &mut DocBuilder) {
    expect_durable(body);
    let Some(Value::Array(updates)) = body.get("updates") else { panic!("no updates") };
    let Some(Value::Document(update)) = updates.get(0) else { panic!("no update") };
    assert_eq!(nested(nested(update, "u"), "$set").field_count(), 1);
    reply.append("n", i32::from(documents.contains_key(&id(nested(update, "q")))));
}

fn id(document: DocRef<'_>) -> Vec<u8> {
    document.get_raw("_id").unwrap().value_bytes.to_vec()
}

fn nested<'a>(document: DocRef<'a>, name: &str) -> DocRef<'a> {
    let Some(Value::Document(nested)) = document.get(name) else { panic!("no {name}") };
    nested
}

fn expect_durable(body: DocRef<'_>) {
    let concern = nested(body, "writeConcern");
    assert_eq!(concern.get("w").and_then(|value| value.as_str()), Some("majority"));
    assert!(concern.get("j").is_some_and(|value| value.is_true()));
}

fn batch<'a>(reply: &mut DocBuilder, found: impl Iterator<Item = DocRef<'a>>) {
    reply.document("cursor", |cursor| {
        cursor.array("firstBatch", |documents| found.for_each(|document| documents.push(document)));
        cursor.append("id", 0_i64);
        cursor.append("ns", "bench.any");
    });
}

/// One field: a value, an element of a list, or bounds.
fn matches(document: DocRef<'_>, filter: DocRef<'_>) -> bool {
    let Some(condition) = filter.first() else { return true };
    let Some(value) = document.get(condition.name) else { return false };
    if let Value::Array(list) = value {
        return list.values().any(|element| element.as_str() == condition.value.as_str());
    }
    let Value::Document(bounds) = condition.value else {
        return pando_doc::compare(value, condition.value).is_eq();
    };
    let holds = |name: &str, value: Value<'_>, bound: Value<'_>| match name {
        "$gte" => pando_doc::compare(value, bound).is_ge(),
        "$lt" => pando_doc::compare(value, bound).is_lt(),
        _ => panic!("an operator of no workload: {name}"),
    };
    bounds.elements().all(|bound| holds(&bound.name.to_string(), value, bound.value))
}
