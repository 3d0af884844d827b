//! A node with data, and the client that most tests ask it with.

use super::*;
use pando_doc::{DocBuilder, DocRef, Value};
use pando_engine::{DurableEngine, EngineOptions};
use pando_engine_model::{Mode, ModelDisk, ModelEngine};

/// Documents that are inserted by one command.
const BATCH_COUNT: usize = 1000;

pub(super) struct Node {
    pub(super) fixture: Fixture,
    pub(super) client: Client,
}

/// A set of one member.
pub(super) async fn node() -> Node {
    node_as(ReplicationMode::OneMember("rs0".into())).await
}

pub(super) async fn node_as(replication: ReplicationMode) -> Node {
    node_on(&ModelDisk::new(), replication).await
}

pub(super) async fn node_on(disk: &Arc<ModelDisk>, replication: ReplicationMode) -> Node {
    let mode = if replication == ReplicationMode::StandAlone { Mode::StandAlone } else { Mode::ReplicaSet };
    let engine: Arc<dyn Engine> = ModelEngine::open(disk, mode).unwrap();
    let fixture = start_on(Some(engine), options(replication)).await;
    let client = fixture.connect().await;
    Node { fixture, client }
}

/// A set of one member on the durable engine, whose files are those of the environment.
pub(super) async fn durable_node(
    simulation: Simulation,
    env: Env,
    engine_options: EngineOptions,
    parameters: &[(&str, &str)],
) -> Node {
    let engine = DurableEngine::open(&env, std::path::Path::new("/data"), engine_options).unwrap();
    let control = Arc::new(ProcessControl::new(Arc::new(Nowhere)));
    let machine = Arc::new(SimulatedMachine::new("node1"));
    let mut options = options(ReplicationMode::OneMember("rs0".into()));
    options.parameters.extend(parameters.iter().map(|(name, value)| ((*name).into(), (*value).into())));
    let log = Log::silent();
    let server = Server::start(&env, machine, Some(engine), options, log, Arc::clone(&control)).await.unwrap();
    let fixture = Fixture { simulation, env, server: Arc::new(server), control };
    let client = fixture.connect().await;
    Node { fixture, client }
}

/// A set of one member with these parameters.
pub(super) async fn node_with(parameters: &[(&str, &str)]) -> Node {
    let engine: Arc<dyn Engine> = ModelEngine::open(&ModelDisk::new(), Mode::ReplicaSet).unwrap();
    let mut options = options(ReplicationMode::OneMember("rs0".into()));
    options.parameters.extend(parameters.iter().map(|(name, value)| ((*name).into(), (*value).into())));
    let fixture = start_on(Some(engine), options).await;
    let client = fixture.connect().await;
    Node { fixture, client }
}

/// Where nothing else is said, commands run on the database "d" and documents go into its collection "c".
impl Node {
    pub(super) async fn run(&mut self, body: Doc) -> Doc {
        self.run_on("d", body).await
    }

    pub(super) async fn run_on(&mut self, database: &str, body: Doc) -> Doc {
        self.client.ask(with_database(&body, database)).await
    }

    pub(super) async fn ok(&mut self, body: Doc) -> Doc {
        self.ok_on("d", body).await
    }

    pub(super) async fn ok_on(&mut self, database: &str, body: Doc) -> Doc {
        let reply = self.run_on(database, body.clone()).await;
        assert_eq!(number(&reply, "ok"), 1.0, "{body}: {reply}");
        reply
    }

    /// The code of the error that it fails with.
    pub(super) async fn code(&mut self, body: Doc) -> i32 {
        self.code_on("d", body).await
    }

    pub(super) async fn code_on(&mut self, database: &str, body: Doc) -> i32 {
        let reply = self.run_on(database, body.clone()).await;
        assert_eq!(number(&reply, "ok"), 0.0, "{body}: {reply}");
        number(&reply, "code") as i32
    }

    pub(super) async fn error(&mut self, body: Doc, code: i32, reason: &str) {
        self.client.expect_error(with_database(&body, "d"), code, reason).await;
    }

    /// The last reply, if it takes several commands.
    pub(super) async fn insert(&mut self, documents: Vec<Doc>) -> Doc {
        self.insert_into("c", &documents).await
    }

    pub(super) async fn insert_into(&mut self, collection: &str, documents: &[Doc]) -> Doc {
        let mut reply = Doc::new();
        for documents in documents.chunks(BATCH_COUNT) {
            let mut body = DocBuilder::new();
            body.append("insert", collection);
            body.array("documents", |array| documents.iter().for_each(|document| array.push(document)));
            reply = self.ok(body.finish()).await;
        }
        reply
    }

    /// The first batch of a command with a cursor.
    pub(super) async fn find(&mut self, body: Doc) -> Vec<Doc> {
        self.find_on("d", body).await
    }

    pub(super) async fn find_on(&mut self, database: &str, body: Doc) -> Vec<Doc> {
        batch(&self.ok_on(database, body).await, "firstBatch")
    }
}

pub(super) fn with_database(body: &Doc, database: &str) -> Doc {
    let mut builder = DocBuilder::new();
    builder.append_all(body.view());
    builder.append("$db", database);
    builder.finish()
}

/// A document inside.
pub(super) fn part(document: &Doc, name: &str) -> Doc {
    document.get(name).and_then(|value| value.as_document()).map(DocRef::to_doc).unwrap_or_else(|| {
        panic!("no document {name}: {document}");
    })
}

pub(super) fn batch(reply: &Doc, name: &str) -> Vec<Doc> {
    let cursor = part(reply, "cursor");
    let array = cursor.get(name).and_then(|batch| batch.as_array()).unwrap_or_else(|| panic!("no {name}: {reply}"));
    array.values().filter_map(|value| value.as_document()).map(|document| document.to_doc()).collect()
}

pub(super) fn cursor_id(reply: &Doc) -> i64 {
    match part(reply, "cursor").get("id") {
        Some(Value::Int64(id)) => id,
        other => panic!("a cursor's id is a long, not {other:?}"),
    }
}
