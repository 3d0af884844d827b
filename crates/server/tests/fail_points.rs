//! Fail points that know no single client: they belong to the process, so this one test has a process of its own.

#![allow(clippy::unwrap_used, reason = "a test fails where it does")]

use bytes::Bytes;
use pando_base::{Log, LogLine};
use pando_doc::{Doc, DocBuilder, Value, doc};
use pando_engine_model::{Mode, ModelDisk, ModelEngine};
use pando_env::simulated::{SimulatedMachine, Simulation};
use pando_env::{Connection, Env};
use pando_net::NetOptions;
use pando_server::{LogTarget, ProcessControl, ReplicationMode, Server, ServerOptions};
use pando_wire::{Compressors, MsgFlags, Reply, RequestBuilder};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const ADDRESS: &str = "node1:27017";

struct Nowhere;

impl LogTarget for Nowhere {
    fn write(&self, _: &LogLine, _: &str) {}
}

struct Client(Box<dyn Connection>);

impl Client {
    async fn connect(env: &Env) -> Client {
        Client(env.network().connect(ADDRESS).await.unwrap())
    }

    /// The reply; none if the connection was closed.
    async fn try_ask(&mut self, body: &Doc) -> Option<Doc> {
        let message = RequestBuilder::new(MsgFlags::NONE, Vec::new()).body(body.view()).finish(1, None).unwrap();
        self.0.write_all(&message).await.unwrap();
        let mut length = [0; 4];
        self.0.read_exact(&mut length).await.ok()?;
        let mut message = vec![0; i32::from_le_bytes(length) as usize];
        message[..4].copy_from_slice(&length);
        self.0.read_exact(&mut message[4..]).await.ok()?;
        Some(Reply::decode(Bytes::from(message), &Compressors::all()).unwrap().body().to_doc())
    }

    async fn ask(&mut self, body: &Doc) -> Doc {
        self.try_ask(body).await.expect("the connection stays open")
    }

    async fn configure(&mut self, name: &str, mode: Value<'_>, data: Doc) {
        let body = doc! { "configureFailPoint": name, "mode": mode, "data": data, "$db": "admin" };
        assert_eq!(number(&self.ask(&body).await, "ok"), 1);
    }
}

fn number(document: &Doc, name: &str) -> i64 {
    document.get(name).and_then(|value| value.to_i64_exact()).unwrap_or_else(|| panic!("{name} in {document}"))
}

async fn start(env: &Env) -> Server {
    let options = ServerOptions {
        net: NetOptions { addresses: vec![ADDRESS.into()], ..NetOptions::default() },
        replication: ReplicationMode::OneMember("rs0".into()),
        parameters: vec![("enableTestCommands".into(), "1".into())],
        runs_tasks: false,
        ..ServerOptions::default()
    };
    let engine = ModelEngine::open(&ModelDisk::new(), Mode::ReplicaSet).unwrap();
    let machine = Arc::new(SimulatedMachine::new("node1"));
    let control = Arc::new(ProcessControl::new(Arc::new(Nowhere)));
    Server::start(env, machine, Some(engine), options, Log::silent(), control).await.unwrap()
}

#[test]
fn u18_fail_points_of_deadlines_and_of_writes_in_sessions() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let env = Simulation::new(3).env();
        let _server = start(&env).await;
        let mut client = Client::connect(&env).await;
        deadlines(&mut client).await;
        deadlines_of_cursors(&mut client).await;
        writes_in_sessions(&env, &mut client).await;
        drops_of_databases(&env, &mut client).await;
        unique_indexes(&env, &mut client).await;
        ends_of_commands(&env, &mut client).await;
        conflicts(&mut client).await;
        plans_that_fail(&mut client).await;
        queries_as_they_were_written(&mut client).await;
        files_while_they_are_read(&env, &mut client).await;
    });
}

async fn deadlines(client: &mut Client) {
    let limited = doc! { "ping": 1, "maxTimeMS": 100_000, "$db": "d" };
    client.configure("maxTimeAlwaysTimeOut", Value::String("alwaysOn".into()), doc! {}).await;
    assert_eq!(number(&client.ask(&limited).await, "code"), 50);
    assert_eq!(number(&client.ask(&doc! { "ping": 1, "$db": "d" }).await, "ok"), 1, "it has no limit");
    client.configure("maxTimeNeverTimeOut", Value::String("alwaysOn".into()), doc! {}).await;
    assert_eq!(number(&client.ask(&limited).await, "ok"), 1);
    client.configure("maxTimeNeverTimeOut", Value::String("off".into()), doc! {}).await;
    client.configure("maxTimeAlwaysTimeOut", Value::String("off".into()), doc! {}).await;
    assert_eq!(number(&client.ask(&limited).await, "ok"), 1);
}

/// The time that find was given counts for getMore.
async fn deadlines_of_cursors(client: &mut Client) {
    client.ask(&doc! { "insert": "c", "documents": [{ "_id": 1 }, { "_id": 2 }], "$db": "d" }).await;
    let first = client.ask(&doc! { "find": "c", "batchSize": 1, "maxTimeMS": 100_000, "$db": "d" }).await;
    let id = first.get("cursor").and_then(|cursor| cursor.as_document()).and_then(|cursor| cursor.get("id")).unwrap();
    let more = doc! { "getMore": id, "collection": "c", "$db": "d" };
    client.configure("maxTimeAlwaysTimeOut", Value::String("alwaysOn".into()), doc! {}).await;
    assert_eq!(number(&client.ask(&more).await, "code"), 50);
    client.configure("maxTimeAlwaysTimeOut", Value::String("off".into()), doc! {}).await;
    assert_eq!(number(&client.ask(&more).await, "code"), 43, "a cursor whose query failed is gone");
}

async fn writes_in_sessions(env: &Env, client: &mut Client) {
    let session = doc! { "id": Value::Binary { subtype: 4, bytes: &[7; 16] } };
    let insert = |number: i64| {
        let mut body = DocBuilder::new();
        body.append("insert", "s");
        body.array("documents", |documents| documents.push(&doc! { "_id": number }));
        body.append("lsid", &session);
        body.append("txnNumber", number);
        body.append("$db", "d");
        body.finish()
    };
    let count = doc! { "count": "s", "$db": "d" };
    let point = "onPrimaryTransactionalWrite";
    let once = doc! { "times": 1 };
    // Written, but the reply never comes; sent again, it is not written twice.
    client.configure(point, Value::Document(once.view()), doc! {}).await;
    assert_eq!(Client::connect(env).await.try_ask(&insert(1)).await, None);
    assert_eq!(number(&client.ask(&count).await, "n"), 1);
    assert_eq!(number(&client.ask(&insert(1)).await, "n"), 1);
    assert_eq!(number(&client.ask(&count).await, "n"), 1);
    // Not written.
    let data = doc! { "failBeforeCommitExceptionCode": 1 };
    client.configure(point, Value::Document(once.view()), data).await;
    assert_eq!(Client::connect(env).await.try_ask(&insert(2)).await, None);
    assert_eq!(number(&client.ask(&count).await, "n"), 1);
    let data = doc! { "failBeforeCommitExceptionCode": 1, "closeConnection": false };
    client.configure(point, Value::Document(once.view()), data).await;
    let failed = client.ask(&insert(2)).await;
    assert_eq!(number(&failed, "n"), 0, "{failed}");
    assert_eq!(number(&client.ask(&insert(2)).await, "n"), 1);
    assert_eq!(number(&client.ask(&count).await, "n"), 2);
}

/// Waits until somebody has come to a point. Simulated time does not wait for tasks, so `waitForFailPoint` would not.
async fn entered(client: &mut Client, point: &str) {
    let name = format!("failpoint.{point}");
    let mut body = DocBuilder::new();
    body.append("getParameter", 1);
    body.append(name.as_str(), 1);
    body.append("$db", "admin");
    let body = body.finish();
    for _ in 0..100_000 {
        let reply = client.ask(&body).await;
        let status = reply.get(&name).and_then(|status| status.as_document()).unwrap().to_doc();
        if number(&status, "timesEntered") > 0 {
            return;
        }
    }
    panic!("nobody has come to {point}");
}

impl Client {
    async fn hold(&mut self, point: &str, data: Doc) {
        self.configure(point, Value::String("alwaysOn".into()), data).await;
    }

    async fn release(&mut self, point: &str) {
        self.configure(point, Value::String("off".into()), doc! {}).await;
    }
}

/// While a database is being dropped, nobody makes a collection there.
async fn drops_of_databases(env: &Env, client: &mut Client) {
    let insert = doc! { "insert": "c", "documents": [{ "_id": 1 }], "$db": "gone" };
    client.ask(&insert).await;
    let point = "dropDatabaseHangAfterWaitingForIndexBuilds";
    client.hold(point, doc! {}).await;
    let mut other = Client::connect(env).await;
    let drop = doc! { "dropDatabase": 1, "$db": "gone" };
    let looking = async {
        entered(client, point).await;
        assert_eq!(number(&client.ask(&doc! { "create": "x", "$db": "gone" }).await, "code"), 215);
        client.release(point).await;
    };
    let (dropped, ()) = tokio::join!(other.ask(&drop), looking);
    assert_eq!(number(&dropped, "ok"), 1, "{dropped}");
    assert_eq!(number(&client.ask(&insert).await, "n"), 1);
}

/// An index that is changed while it is looked through for duplicates does not become unique.
async fn unique_indexes(env: &Env, client: &mut Client) {
    let change = |index: Doc| doc! { "collMod": "u", "index": index, "$db": "d" };
    client.ask(&doc! { "insert": "u", "documents": [{ "_id": 1, "a": 1 }], "$db": "d" }).await;
    client.ask(&doc! { "createIndexes": "u", "indexes": [{ "key": { "a": 1 }, "name": "a_1" }], "$db": "d" }).await;
    client.ask(&change(doc! { "name": "a_1", "prepareUnique": true })).await;
    let point = "hangAfterCollModIndexUniqueReleaseIXLock";
    client.hold(point, doc! { "nss": "d.u" }).await;
    let mut other = Client::connect(env).await;
    let unique = change(doc! { "name": "a_1", "unique": true });
    let looking = async {
        entered(client, point).await;
        assert_eq!(number(&client.ask(&change(doc! { "name": "a_1", "hidden": true })).await, "ok"), 1);
        client.release(point).await;
    };
    let (refused, ()) = tokio::join!(other.ask(&unique), looking);
    assert_eq!(number(&refused, "code"), 125, "{refused}");
    assert_eq!(number(&client.ask(&unique).await, "ok"), 1);
}

/// A command that is meant waits with its reply, others do not.
async fn ends_of_commands(env: &Env, client: &mut Client) {
    let point = "waitAfterCommandFinishesExecution";
    client.hold(point, doc! { "ns": "d.u", "commands": ["count"] }).await;
    let mut other = Client::connect(env).await;
    let count = doc! { "count": "u", "$db": "d" };
    let looking = async {
        entered(client, point).await;
        assert_eq!(number(&client.ask(&doc! { "count": "c", "$db": "d" }).await, "ok"), 1);
        client.release(point).await;
    };
    let (counted, ()) = tokio::join!(other.ask(&count), looking);
    assert_eq!(number(&counted, "n"), 1, "{counted}");
}

/// Writers that meet others try again.
async fn conflicts(client: &mut Client) {
    let twice = doc! { "times": 2 };
    client.configure("WTWriteConflictException", Value::Document(twice.view()), doc! {}).await;
    let inserted = client.ask(&doc! { "insert": "u", "documents": [{ "_id": 2, "a": 2 }], "$db": "d" }).await;
    assert_eq!(number(&inserted, "n"), 1, "{inserted}");
}

/// Every plan fails where it is asked for documents, whichever command asks; what asks for none does not.
async fn plans_that_fail(client: &mut Client) {
    client.ask(&doc! { "insert": "p", "documents": [{ "_id": 1 }, { "_id": 2 }], "$db": "d" }).await;
    let first = client.ask(&doc! { "find": "p", "batchSize": 0, "$db": "d" }).await;
    let id = first.get("cursor").and_then(|cursor| cursor.as_document()).and_then(|cursor| cursor.get("id")).unwrap();
    client.configure("planExecutorAlwaysFails", Value::String("alwaysOn".into()), doc! {}).await;
    let by_id = || doc! { "_id": 1 };
    let change = || doc! { "$set": { "a": 1 } };
    let requests = [
        doc! { "find": "p", "$db": "d" },
        doc! { "find": "p", "filter": (by_id()), "$db": "d" },
        doc! { "count": "p", "query": (by_id()), "$db": "d" },
        doc! { "distinct": "p", "key": "_id", "$db": "d" },
        doc! { "aggregate": "p", "pipeline": [{ "$match": { "a": 1 } }], "cursor": {}, "$db": "d" },
        doc! { "findAndModify": "p", "query": (by_id()), "update": (change()), "$db": "d" },
        doc! { "dbHash": 1, "$db": "d" },
        doc! { "getMore": id, "collection": "p", "$db": "d" },
    ];
    for request in &requests {
        let reply = client.ask(request).await;
        assert_eq!(number(&reply, "code"), 4_382_101, "{request}: {reply}");
    }
    for write in [
        doc! { "update": "p", "updates": [{ "q": (by_id()), "u": (change()) }], "$db": "d" },
        doc! { "delete": "p", "deletes": [{ "q": (by_id()), "limit": 1 }], "$db": "d" },
    ] {
        let reply = client.ask(&write).await;
        assert!(reply.to_string().contains("4382101"), "{write}: {reply}");
    }
    let none = client.ask(&doc! { "find": "p", "batchSize": 0, "$db": "d" }).await;
    assert_eq!(number(&none, "ok"), 1, "{none}");
    client.configure("planExecutorAlwaysFails", Value::String("off".into()), doc! {}).await;
}

/// Filters and pipelines may be left as they are.
async fn queries_as_they_were_written(client: &mut Client) {
    let stages = async |client: &mut Client| {
        let pipeline =
            doc! { "p": [{ "$_internalInhibitOptimization": {} }, { "$match": { "a": 1 } }, { "$match": { "b": 1 } }] };
        let request = doc! { "aggregate": "p", "pipeline": (pipeline.get("p").unwrap()), "explain": true, "$db": "d" };
        let explained = client.ask(&request).await;
        explained.get("stages").and_then(|stages| stages.as_array()).map_or(0, |stages| stages.len())
    };
    let improved = stages(client).await;
    client.configure("disablePipelineOptimization", Value::String("alwaysOn".into()), doc! {}).await;
    assert!(stages(client).await > improved);
    client.configure("disablePipelineOptimization", Value::String("off".into()), doc! {}).await;
    let parsed = async |client: &mut Client| {
        let filter = doc! { "$and": [{ "$and": [{ "a": 1 }] }, { "b": { "$in": [1] } }] };
        let request = doc! { "explain": { "find": "p", "filter": filter }, "verbosity": "queryPlanner", "$db": "d" };
        client.ask(&request).await.to_string()
    };
    client.configure("disableMatchExpressionOptimization", Value::String("alwaysOn".into()), doc! {}).await;
    let written = parsed(client).await;
    client.configure("disableMatchExpressionOptimization", Value::String("off".into()), doc! {}).await;
    let nested = "parsedQuery: { $and: [ { $and: [";
    assert!(written.contains(nested) && !parsed(client).await.contains(nested), "{written}");
}

/// A file's chunks are waited for where a test wants it, and the operation may be killed there.
async fn files_while_they_are_read(env: &Env, client: &mut Client) {
    client.ask(&doc! { "insert": "fs.chunks", "documents": [{ "_id": 1, "files_id": 1, "n": 0 }], "$db": "d" }).await;
    let index = doc! { "key": { "files_id": 1, "n": 1 }, "name": "n" };
    client.ask(&doc! { "createIndexes": "fs.chunks", "indexes": [index], "$db": "d" }).await;
    let point = "waitInFilemd5DuringManualYield";
    client.hold(point, doc! {}).await;
    let mut other = Client::connect(env).await;
    let file = doc! { "filemd5": 1, "root": "fs", "$db": "d" };
    let looking = async {
        entered(client, point).await;
        let found = client.ask(&doc! { "currentOp": 1, "failpointMsg": point, "$db": "admin" }).await;
        let operations = found.get("inprog").and_then(|found| found.as_array()).unwrap();
        let operation = operations.values().next().and_then(|one| one.as_document()).unwrap().to_doc();
        assert_eq!(operation.get("ns").and_then(|name| name.as_str()), Some("d.fs.chunks"));
        let kill = doc! { "killOp": 1, "op": (operation.get("opid").unwrap()), "$db": "admin" };
        assert_eq!(number(&client.ask(&kill).await, "ok"), 1);
        client.release(point).await;
    };
    let (killed, ()) = tokio::join!(other.ask(&file), looking);
    assert_eq!(number(&killed, "code"), 11601, "{killed}");
}
