//! Commands and fail points that are there for tests only, and splitVector, which shards ask.

use super::node::{Node, node_as, with_database};
use super::*;
use pando_doc::{DocBuilder, Value};

async fn filled(count: i32) -> Node {
    let mut node = node_as(ReplicationMode::OneMember("rs0".into())).await;
    node.insert((0..count).map(|id| doc! { "_id": id, "a": id, "text": ("x".repeat(1024)) }).collect()).await;
    node.ok(doc! { "createIndexes": "c", "indexes": [{ "key": { "a": 1, "b": 1 }, "name": "a_1_b_1" }] }).await;
    node
}

fn keys(reply: &Doc) -> Vec<i64> {
    let keys = reply.get("splitKeys").and_then(|keys| keys.as_array()).unwrap_or_else(|| panic!("{reply}"));
    let first =
        |key: Value<'_>| key.as_document().and_then(|key| key.first()).map(|first| first.value.to_i64_or_zero());
    keys.values().filter_map(first).collect()
}

#[test]
fn u9_split_vector_divides_a_range_by_its_index() {
    run(async {
        let mut node = filled(3000).await;
        let split = |more: Doc| {
            let mut body = DocBuilder::new();
            body.append("splitVector", "d.c");
            body.append("keyPattern", doc! { "a": 1 });
            body.append_all(more.view());
            body.finish()
        };
        // Half of a mebibyte is some 490 documents.
        let found = keys(&node.ok(split(doc! { "maxChunkSize": 1 })).await);
        assert!((5..=6).contains(&found.len()), "{found:?}");
        assert!(found.is_sorted() && found[0] > 450 && found[0] < 512, "{found:?}");
        assert_eq!(keys(&node.ok(split(doc! { "maxChunkSize": 1, "maxSplitPoints": 2 })).await).len(), 2);
        let small = split(doc! { "maxChunkSize": 1, "maxChunkObjects": 100, "min": { "a": 0 }, "max": { "a": 1000 } });
        let found = keys(&node.ok(small).await);
        assert_eq!(found.len(), 9, "{found:?}");
        assert_eq!(keys(&node.ok(split(doc! { "force": true })).await), [1500]);
        assert_eq!(keys(&node.ok(split(doc! { "maxChunkSize": 100 })).await), [] as [i64; 0]);
        for (more, code) in [
            (doc! {}, 72),
            (doc! { "maxChunkSize": 0 }, 72),
            (doc! { "maxChunkSize": 1, "maxChunkObjects": 0 }, 72),
            (doc! { "maxChunkSize": 1, "min": { "a": 1 } }, 125),
            (doc! { "maxChunkSize": 1, "min": { "a": 5000 }, "max": { "a": 6000 } }, 96),
        ] {
            assert_eq!(node.code(split(more.clone())).await, code, "{more}");
        }
        let other = doc! { "splitVector": "d.c", "keyPattern": { "b": 1 }, "maxChunkSize": 1 };
        assert_eq!(node.code(other).await, 27);
        let nowhere = doc! { "splitVector": "d.nowhere", "keyPattern": { "a": 1 }, "maxChunkSize": 1 };
        assert_eq!(node.code(nowhere).await, 26);
        assert_eq!(node.code(doc! { "splitVector": "d.c", "maxChunkSize": 1 }).await, 125);
    });
}

#[test]
fn u14_commands_of_tests_do_what_they_say() {
    run(async {
        let mut node = filled(1).await;
        node.ok(doc! { "godinsert": "fresh", "obj": { "_id": 7 } }).await;
        assert_eq!(node.find(doc! { "find": "fresh" }).await, [doc! { "_id": 7 }]);
        assert_eq!(node.code(doc! { "godinsert": "fresh" }).await, 10065);
        let echoed = node.ok(doc! { "echo": 1, "other": "x" }).await;
        let request = echoed.get("echo").and_then(|echo| echo.as_document()).unwrap();
        assert_eq!(request.get("other"), Some(Value::String("x".into())));
        node.ok_on("admin", doc! { "logMessage": "hello there", "severity": 1, "extra": { "a": 1 } }).await;
        assert_eq!(
            node.client.ask(with_database(&doc! { "logMessage": 1 }, "admin")).await.get("code"),
            Some(Value::Int32(14))
        );
        node.ok(doc! { "cpuload": 1, "cpuFactor": 0.01 }).await;
    });
}

#[test]
fn u14_plans_and_filters_heed_their_fail_points() {
    run(async {
        let mut node = filled(3).await;
        let set = |name: &str, mode: Doc| doc! { "configureFailPoint": name, "mode": mode };
        let once = || doc! { "times": 1 };
        let find = doc! { "find": "c", "filter": { "$or": [{ "a": 1 }] } };
        node.ok_on("admin", set("planExecutorAlwaysFails", once())).await;
        assert_eq!(node.code(find.clone()).await, 4382101);
        assert_eq!(node.find(find.clone()).await.len(), 1);
        let parsed = |reply: &Doc| {
            let planner = reply.get("queryPlanner").and_then(|planner| planner.as_document()).unwrap();
            planner.get("parsedQuery").unwrap().to_string()
        };
        let explain = doc! { "explain": (&find) };
        let short = parsed(&node.ok(explain.clone()).await);
        let on = doc! { "configureFailPoint": "disableMatchExpressionOptimization", "mode": "alwaysOn" };
        node.ok_on("admin", on).await;
        let long = parsed(&node.ok(explain).await);
        let off = doc! { "configureFailPoint": "disableMatchExpressionOptimization", "mode": "off" };
        node.ok_on("admin", off).await;
        assert!(!short.contains("$or") && long.contains("$or"), "{short} {long}");
        let scan = doc! { "configureFailPoint": "hangCollScanDoWork", "mode": "alwaysOn" };
        node.ok_on("admin", scan).await;
        assert_eq!(node.find(doc! { "find": "c", "filter": { "a": 1 } }).await.len(), 1, "it scans an index");
        let slow = doc! { "find": "c", "filter": { "text": "y" }, "maxTimeMS": 50 };
        assert_eq!(node.code(slow).await, 50);
        node.ok_on("admin", doc! { "configureFailPoint": "hangCollScanDoWork", "mode": "off" }).await;
    });
}

/// What the health log has, once the last check has ended.
async fn health_log(node: &mut Node, checks: usize) -> Vec<Doc> {
    for _ in 0..100 {
        let found = node.find_on("local", doc! { "find": "system.healthlog", "batchSize": 1000 }).await;
        let is_end = |entry: &&Doc| entry.get("operation") == Some(Value::String("dbCheckStop".into()));
        if found.iter().filter(is_end).count() == checks {
            return found;
        }
        node.fixture.env.clock().sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("the check does not end");
}

#[test]
fn r1_db_check_hashes_documents_in_batches() {
    run(async {
        let mut node = filled(25).await;
        // Nodes of tests do nothing by themselves.
        let data = node.fixture.server.node().data.clone().unwrap();
        let serving = pando_commands::db_check::keep_checking(Arc::downgrade(&data), Log::silent());
        node.fixture.env.tasks().spawn(Box::pin(serving)).unwrap();
        node.ok_on("admin", doc! { "setParameter": 1, "dbCheckHealthLogEveryNBatches": 1 }).await;
        node.ok(doc! { "dbCheck": "c", "maxDocsPerBatch": 10 }).await;
        let found = health_log(&mut node, 1).await;
        let told: Vec<String> = found.iter().map(ToString::to_string).collect();
        let counts: Vec<f64> =
            found[1..4].iter().map(|entry| number(&super::node::part(entry, "data"), "count")).collect();
        assert_eq!((found.len(), counts), (5, vec![10.0, 10.0, 5.0]), "{told:?}");
        assert_eq!(super::node::part(&found[1], "data").get("maxKey"), Some(Value::Int32(9)));
        assert_eq!(super::node::part(&found[3], "data").get("maxKey"), Some(Value::MaxKey));
        let logged = doc! { "find": "oplog.rs", "filter": { "op": "c", "o.dbCheck": { "$exists": true } } };
        let entries = node.find_on("local", logged).await;
        let kinds: Vec<String> =
            entries.iter().map(|entry| super::node::part(entry, "o").get("type").unwrap().to_string()).collect();
        assert_eq!(kinds.len(), 5, "{kinds:?}");
        assert_eq!(entries[1].get("ns"), Some(Value::String("d.c".into())));
        // A part of it, and a whole database.
        node.ok(doc! { "dbCheck": "c", "minKey": 4, "maxKey": 7 }).await;
        let found = health_log(&mut node, 2).await;
        assert_eq!(number(&super::node::part(&found[6], "data"), "count"), 3.0);
        node.ok(doc! { "dbCheck": 1 }).await;
        node.ok(doc! { "create": "v", "viewOn": "c" }).await;
        health_log(&mut node, 3).await;
        for (body, code) in [
            (doc! { "dbCheck": "nowhere" }, 26),
            (doc! { "dbCheck": "v" }, 166),
            (doc! { "dbCheck": true }, 14),
            (doc! { "dbCheck": "c", "maxDocsPerBatch": 0 }, 51024),
            (doc! { "dbCheck": "c", "snapshotRead": false }, 6769500),
            (doc! { "dbCheck": 1, "minKey": 1 }, 40415),
        ] {
            assert_eq!(node.code(body.clone()).await, code, "{body}");
        }
        assert_eq!(node.code_on("local", doc! { "dbCheck": 1 }).await, 73);
        assert_eq!(node.code_on("local", doc! { "dbCheck": "oplog.rs" }).await, 40619);
    });
}
