//! Small promises to those who watch and tune a node: numbers of serverStatus, parameters, what is refused where.

use super::node::{Node, node, node_with};
use super::*;
use pando_doc::{DocBuilder, Value};

/// A number of serverStatus, by its path.
async fn shown(node: &mut Node, path: &str) -> f64 {
    let status = node.ok_on("admin", doc! { "serverStatus": 1 }).await;
    let mut parts = path.split('.').peekable();
    let mut inside = status;
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return inside.get(part).and_then(|value| value.to_double()).unwrap_or_else(|| panic!("{path}: {inside}"));
        }
        inside = inside.get(part).and_then(|value| value.as_document()).unwrap_or_else(|| panic!("{path}")).to_doc();
    }
    0.0
}

#[test]
fn plans_of_the_cache_are_counted_and_forgotten_with_their_indexes() {
    run(async {
        let mut node = node().await;
        for (name, key) in [("a", doc! { "a": 1 }), ("ab", doc! { "a": 1, "b": 1 })] {
            node.ok(doc! { "createIndexes": "c", "indexes": [{ "name": name, "key": key }] }).await;
        }
        let before = shown(&mut node, "metrics.query.planCacheTotalSizeEstimateBytes").await;
        for (hits, misses) in [(0.0, 1.0), (0.0, 2.0), (1.0, 2.0)] {
            node.ok(doc! { "find": "c", "filter": { "a": 1, "b": 1 } }).await;
            assert_eq!(shown(&mut node, "metrics.query.planCache.classic.hits").await, hits);
            assert_eq!(shown(&mut node, "metrics.query.planCache.classic.misses").await, misses);
        }
        assert!(shown(&mut node, "metrics.query.planCacheTotalSizeEstimateBytes").await > before);
        assert_eq!(shown(&mut node, "metrics.query.planCacheTotalQueryShapes").await, 1.0);
        node.ok(doc! { "dropIndexes": "c", "index": "ab" }).await;
        assert_eq!(shown(&mut node, "metrics.query.planCacheTotalSizeEstimateBytes").await, before);
        // What asks for everything is not looked up.
        node.ok(doc! { "find": "c" }).await;
        assert_eq!(shown(&mut node, "metrics.query.planCache.classic.misses").await, 2.0);
        node.ok(doc! { "find": "c", "filter": { "_id": 1 } }).await;
        assert_eq!(shown(&mut node, "metrics.query.planCache.classic.misses").await, 3.0);
        for allowed in [true, false] {
            node.ok(doc! { "find": "c", "allowDiskUse": allowed }).await;
            node.ok(doc! { "aggregate": "c", "pipeline": [], "cursor": {}, "allowDiskUse": allowed }).await;
        }
        assert_eq!(shown(&mut node, "metrics.query.allowDiskUseFalse").await, 2.0);
    });
}

#[test]
fn versions_of_features_and_of_the_api_are_told() {
    run(async {
        let mut node = node().await;
        assert_eq!(shown(&mut node, "featureCompatibilityVersion.major").await, 7.0);
        assert_eq!(shown(&mut node, "featureCompatibilityVersion.transitioning").await, 0.0);
        let internal = doc! { "minWireVersion": 0, "maxWireVersion": 7 };
        let as_server = doc! { "hello": 1, "internalClient": internal };
        for (version, oldest) in [("7.0", 21.0), ("6.0", 17.0)] {
            node.ok_on("admin", doc! { "setFeatureCompatibilityVersion": version, "confirm": true }).await;
            let mut other = node.fixture.connect().await;
            let reply = other.ask(node::with_database(&as_server, "admin")).await;
            assert_eq!((number(&reply, "minWireVersion"), number(&reply, "maxWireVersion")), (oldest, 21.0));
        }
        assert_eq!(shown(&mut node, "featureCompatibilityVersion.major").await, 6.0);
        let client = doc! {
            "application": { "name": "app" }, "driver": { "name": "d", "version": "1" }, "os": { "type": "Linux" },
        };
        let mut other = node.fixture.connect().await;
        other.ask(doc! { "hello": 1, "client": client, "$db": "admin" }).await;
        other.ask(doc! { "ping": 1, "$db": "admin" }).await;
        other.ask(doc! { "ping": 1, "apiVersion": "1", "$db": "admin" }).await;
        let status = node.ok_on("admin", doc! { "serverStatus": 1 }).await;
        let metrics = status.get("metrics").unwrap().as_document().unwrap();
        assert_eq!(
            metrics.get("apiVersions").unwrap().to_string(),
            doc! { "x": { "app": ["default", "1"] } }.get("x").unwrap().to_string()
        );
    });
}

#[test]
fn a_hello_of_nobody_waits_a_while_or_is_refused() {
    run(async {
        let mut node = node_with(&[("minWaitForStreamingHelloMillis", "2000")]).await;
        let hello = node.ok_on("admin", doc! { "hello": 1 }).await;
        let version = hello.get("topologyVersion").unwrap().as_document().unwrap().to_doc();
        let wait = doc! { "hello": 1, "topologyVersion": version, "maxAwaitTimeMS": 0 };
        let before = node.fixture.env.clock().monotonic_ns();
        node.ok_on("admin", wait.clone()).await;
        assert!(node.fixture.env.clock().monotonic_ns() - before >= 2_000_000_000);
        node.ok_on("admin", doc! { "setParameter": 1, "abortStreamingHelloWithSmallTimeout": true }).await;
        assert_eq!(node.code_on("admin", wait).await, 72);
    });
}

#[test]
fn what_has_no_meaning_at_a_place_is_refused_there() {
    run(async {
        let mut node = node().await;
        let time = Value::Timestamp(pando_base::Timestamp::new(1, 1));
        let concern = |level: &str, field: &str, time: Value<'_>| {
            let mut concern = DocBuilder::new();
            concern.append("level", level);
            concern.append(field, time);
            concern.finish()
        };
        // Commands whose answers belong to no time.
        for name in ["ping", "serverStatus", "currentOp"] {
            let body = doc! { (name): 1, "readConcern": (concern("local", "afterClusterTime", time)) };
            assert_eq!(node.code_on("admin", body).await, 72, "{name}");
        }
        let zero = Value::Timestamp(pando_base::Timestamp::new(0, 1));
        let body = doc! { "find": "c", "readConcern": (concern("snapshot", "atClusterTime", zero)) };
        assert_eq!(node.code(body).await, 72);
        let body = doc! { "find": "transactions", "readConcern": (concern("majority", "afterClusterTime", time)) };
        assert_eq!(node.code_on("config", body).await, 5_557_800);
        let body = doc! { "find": "transactions", "readConcern": { "level": "snapshot" } };
        assert_eq!(node.code_on("config", body).await, 5_557_800);
        node.ok_on("config", doc! { "find": "transactions", "readConcern": { "level": "majority" } }).await;
        for database in ["admin", "config", "local"] {
            let images = doc! { "enabled": true };
            let create = doc! { "create": "images", "changeStreamPreAndPostImages": (images.clone()) };
            assert_eq!(node.code_on(database, create).await, 72, "{database}");
            node.ok_on(database, doc! { "create": "images" }).await;
            let modify = doc! { "collMod": "images", "changeStreamPreAndPostImages": images };
            assert_eq!(node.code_on(database, modify).await, 72, "{database}");
        }
        // Words for another engine are kept if they could be words at all.
        for (words, code) in [("a\0b", 9), ("x=1,type=lsm", 6_627_201)] {
            let options = doc! { "wiredTiger": { "configString": words } };
            assert_eq!(node.code(doc! { "create": "w", "storageEngine": (options.clone()) }).await, code);
            let index = doc! { "name": "w", "key": { "w": 1 }, "storageEngine": options };
            assert_eq!(node.code(doc! { "createIndexes": "c", "indexes": [index] }).await, code);
        }
        node.ok_on("admin", doc! { "setParameter": 1, "notablescan": true }).await;
        let natural = doc! { "find": "c", "filter": { "a": 1 }, "hint": { "$natural": 1 } };
        node.ok(doc! { "create": "c" }).await;
        let refused = node.run(natural).await;
        let reason = text(&refused, "errmsg");
        assert!(reason.contains("hint $natural is not allowed, because 'notablescan' is enabled"), "{reason}");
        let clustered = doc! { "key": { "_id": 1 }, "unique": true };
        node.ok(doc! { "create": "k", "clusteredIndex": clustered }).await;
        node.ok(doc! { "find": "k", "filter": { "_id": { "$gt": 1 } } }).await;
    });
}

#[test]
fn keywords_that_nobody_knows_may_be_passed_over() {
    run(async {
        let mut node = node_with(&[("internalQueryIgnoreUnknownJSONSchemaKeywords", "true")]).await;
        let schema = doc! { "my_keyword": "ignored", "minProperties": 2 };
        node.ok(doc! { "create": "c", "validator": { "$jsonSchema": (schema.clone()) } }).await;
        let refused = node.run(doc! { "insert": "c", "documents": [{ "_id": 1 }] }).await;
        assert!(refused.to_string().contains("121"), "{refused}");
        node.ok(doc! { "find": "c", "filter": { "$jsonSchema": schema } }).await;
    });
}

#[test]
fn whole_transactions_are_timed_and_messages_logged() {
    run(async {
        let mut node = node_with(&[("enableTestCommands", "true")]).await;
        node.ok(doc! { "create": "c" }).await;
        let session = doc! { "id": (Value::Binary { subtype: 4, bytes: &[7; 16] }) };
        let of = |name: &str, number: i64| {
            let mut body = DocBuilder::new();
            body.append(name, if name == "insert" { Value::String("c".into()) } else { Value::Int32(1) });
            if name == "insert" {
                body.array("documents", |array| array.push(doc! { "_id": number }));
                body.append("startTransaction", true);
            }
            body.append("lsid", &session);
            body.append("txnNumber", number);
            body.append("autocommit", false);
            body.finish()
        };
        for (number, end) in [(1, "commitTransaction"), (2, "abortTransaction")] {
            node.ok(of("insert", number)).await;
            node.ok_on("admin", of(end, number)).await;
            assert_eq!(shown(&mut node, "opLatencies.transactions.ops").await, number as f64);
        }
        node.ok_on("admin", doc! { "logMessage": "hello there" }).await;
        let log = node.ok_on("admin", doc! { "getLog": "global" }).await.to_string();
        assert!(log.contains("hello there") && log.contains("5060500"));
    });
}
