//! Collections, indexes, views and databases, over the wire.

mod changes;
mod clustered;
mod collections;
mod index_builds;
mod indexes;
mod many;
mod refusals;
mod renames;
mod sizes;
mod unique;
mod validate;
mod views;
mod written_down;

use super::node::{Node, batch, cursor_id, node, node_as, node_with, part, with_database};
use super::*;
use pando_doc::{DocBuilder, Value};

impl Node {
    async fn documents_of(&mut self, collection: &str, filter: Doc) -> Vec<Doc> {
        self.find(doc! { "find": collection, "filter": filter, "batchSize": 10_000 }).await
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

fn numbered(count: i32) -> Vec<Doc> {
    (0..count).map(|number| doc! { "_id": number, "a": (number % 10), "b": [number, (number + 1)] }).collect()
}
