//! Collections, indexes, views and databases, over the wire.

mod changes;
mod collections;
mod indexes;
mod many;
mod renames;
mod sizes;
mod views;

use super::*;
use pando_doc::{DocBuilder, DocRef, Value};
use pando_engine_model::{Mode, ModelDisk, ModelEngine};

struct Node {
    fixture: Fixture,
    client: Client,
}

async fn node_as(replication: ReplicationMode) -> Node {
    let mode = if replication == ReplicationMode::StandAlone { Mode::StandAlone } else { Mode::ReplicaSet };
    let engine: Arc<dyn Engine> = ModelEngine::open(&ModelDisk::new(), mode).unwrap();
    let fixture = start_on(Some(engine), options(replication)).await;
    let client = fixture.connect().await;
    Node { fixture, client }
}

/// A set of one member.
async fn node() -> Node {
    node_as(ReplicationMode::OneMember("rs0".into())).await
}

fn with_database(body: &Doc, database: &str) -> Doc {
    let mut builder = DocBuilder::new();
    builder.append_all(body.view());
    builder.append("$db", database);
    builder.finish()
}

impl Node {
    /// Runs a command on the database "d".
    async fn run(&mut self, body: Doc) -> Doc {
        self.client.ask(with_database(&body, "d")).await
    }

    async fn ok(&mut self, body: Doc) -> Doc {
        self.ok_on("d", body).await
    }

    async fn ok_on(&mut self, database: &str, body: Doc) -> Doc {
        let reply = self.client.ask(with_database(&body, database)).await;
        assert_eq!(number(&reply, "ok"), 1.0, "{body}: {reply}");
        reply
    }

    async fn code(&mut self, body: Doc) -> i32 {
        let reply = self.run(body.clone()).await;
        assert_eq!(number(&reply, "ok"), 0.0, "{body}: {reply}");
        number(&reply, "code") as i32
    }

    async fn error(&mut self, body: Doc, code: i32, reason: &str) {
        self.client.expect_error(with_database(&body, "d"), code, reason).await;
    }

    async fn insert(&mut self, collection: &str, documents: &[Doc]) {
        for documents in documents.chunks(1000) {
            let mut body = DocBuilder::new();
            body.append("insert", collection);
            body.array("documents", |array| documents.iter().for_each(|document| array.push(document)));
            let reply = self.ok(body.finish()).await;
            assert_eq!(number(&reply, "n") as usize, documents.len(), "{reply}");
        }
    }

    async fn find(&mut self, collection: &str, filter: Doc) -> Vec<Doc> {
        let reply = self.ok(doc! { "find": collection, "filter": filter, "batchSize": 10_000 }).await;
        batch(&reply, "firstBatch")
    }

    /// The rows of listCollections.
    async fn collections(&mut self) -> Vec<Doc> {
        batch(&self.ok(doc! { "listCollections": 1 }).await, "firstBatch")
    }

    async fn names(&mut self) -> Vec<String> {
        self.collections().await.iter().map(|row| text(row, "name")).collect()
    }

    async fn options_of(&mut self, name: &str) -> Doc {
        let reply = self.ok(doc! { "listCollections": 1, "filter": { "name": name } }).await;
        let rows = batch(&reply, "firstBatch");
        assert_eq!(rows.len(), 1, "{reply}");
        part(&rows[0], "options")
    }

    async fn indexes(&mut self, collection: &str) -> Vec<Doc> {
        batch(&self.ok(doc! { "listIndexes": collection }).await, "firstBatch")
    }

    async fn index_names(&mut self, collection: &str) -> Vec<String> {
        self.indexes(collection).await.iter().map(|index| text(index, "name")).collect()
    }

    /// `validate` finds nothing wrong; its reply.
    async fn valid(&mut self, collection: &str) -> Doc {
        let reply = self.ok(doc! { "validate": collection }).await;
        assert_eq!(reply.get("valid"), Some(Value::Bool(true)), "{reply}");
        reply
    }

    /// What the commands in the oplog are called, with what each is about, from the first on.
    fn oplog_commands(&self) -> Vec<String> {
        let data = self.fixture.server.node().data.clone().unwrap();
        let mut cursor = data.services.engine.oplog().unwrap().forward().unwrap();
        let mut found = Vec::new();
        while let Some(entry) = cursor.next().unwrap() {
            let entry = Doc::parse(entry.entry.to_vec()).unwrap();
            let object = part(&entry, "o");
            if text(&entry, "op") == "c" && text(&entry, "ns") == "d.$cmd" {
                let first = object.elements().next().unwrap();
                found.push(format!("{} {}", first.name, first.value.as_str().unwrap_or("1")));
            }
        }
        found
    }
}

/// A document inside.
fn part(document: &Doc, name: &str) -> Doc {
    document.get(name).and_then(|value| value.as_document()).map(DocRef::to_doc).unwrap_or_else(|| {
        panic!("no document {name}: {document}");
    })
}

fn batch(reply: &Doc, name: &str) -> Vec<Doc> {
    let cursor = part(reply, "cursor");
    let array = cursor.get(name).and_then(|batch| batch.as_array()).unwrap_or_else(|| panic!("no {name}: {reply}"));
    array.values().filter_map(|value| value.as_document()).map(|document| document.to_doc()).collect()
}

fn cursor_id(reply: &Doc) -> i64 {
    match part(reply, "cursor").get("id") {
        Some(Value::Int64(id)) => id,
        other => panic!("a cursor's id is a long, not {other:?}"),
    }
}

fn numbered(count: i32) -> Vec<Doc> {
    (0..count).map(|number| doc! { "_id": number, "a": (number % 10), "b": [number, (number + 1)] }).collect()
}
