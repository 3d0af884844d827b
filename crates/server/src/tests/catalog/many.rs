//! Many collections, on the durable engine: the oracle finds tables by looking at all of them.

use super::*;
use pando_engine::{DurableEngine, EngineOptions};
use std::path::Path;

/// How many.
const COUNT: usize = 10_000;

#[test]
fn x1_ten_thousand_collections_are_created_and_listed() {
    run(async {
        let engine_options = EngineOptions::stepped(pando_engine::Mode::ReplicaSet);
        let engine: Arc<dyn Engine> =
            DurableEngine::open(&Simulation::new(5).env(), Path::new("/data"), engine_options).unwrap();
        let fixture = start_on(Some(engine), options(ReplicationMode::OneMember("rs0".into()))).await;
        let client = fixture.connect().await;
        let mut node = Node { fixture, client };
        let version = |node: &Node| node.fixture.server.node().data.as_ref().unwrap().catalog.latest().version();
        let before = version(&node);
        for place in 0..COUNT {
            node.ok(doc! { "create": (format!("c{place:05}")) }).await;
        }
        // Each is entered once, whatever else there is: before its commit, and at it.
        let steps = version(&node) - before;
        assert!(steps <= 3 * COUNT as u64, "{steps}");
        let mut reply = node.ok(doc! { "listCollections": 1, "nameOnly": true, "cursor": { "batchSize": 3000 } }).await;
        let mut found: Vec<String> = batch(&reply, "firstBatch").iter().map(|row| text(row, "name")).collect();
        while cursor_id(&reply) != 0 {
            let more = doc! { "getMore": (cursor_id(&reply)), "collection": "$cmd.listCollections", "batchSize": 3000 };
            reply = node.ok(more).await;
            found.extend(batch(&reply, "nextBatch").iter().map(|row| text(row, "name")));
        }
        assert!(found.len() == COUNT && found.is_sorted(), "{}", found.len());
        let one = node.ok(doc! { "listCollections": 1, "filter": { "name": "c07777" } }).await;
        assert_eq!(batch(&one, "firstBatch").len(), 1);
        assert_eq!(number(&node.ok(doc! { "dbStats": 1 }).await, "collections") as usize, COUNT);
    });
}
