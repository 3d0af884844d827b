//! Requests about the catalog that are refused, and with which code; and values that are taken though they look odd.

use super::*;

async fn set() -> Node {
    node_as(ReplicationMode::OneMember("rs0".into())).await
}

/// The code of the answer; zero if it is no error.
async fn code_on(node: &mut Node, database: &str, body: Doc) -> i32 {
    let reply = node.run_on(database, body).await;
    reply.get("code").map_or(0, |code| i32::try_from(code.to_i64_or_zero()).unwrap_or(i32::MAX))
}

#[test]
fn u9_options_of_collections_are_checked_as_mongodb_does() {
    run(async {
        let mut node = set().await;
        node.insert(vec![doc! { "_id": 1, "a": 1 }]).await;
        let engine = |options: Doc| doc! { "create": "k", "storageEngine": options };
        let defaults = |options: Doc| doc! { "create": "k", "indexOptionDefaults": { "storageEngine": options } };
        let configured = |text: &str| doc! { "wiredTiger": { "configString": text } };
        let clustered = |name: Value<'_>| doc! { "create": "k", "clusteredIndex": name };
        let view = |stage: Doc| doc! { "create": "v", "viewOn": "c", "pipeline": [stage] };
        let far = 1_i64 << 31;
        for (body, code) in [
            (engine(doc! { "unknown": {} }), 72),
            (engine(doc! { "wiredTiger": { "bad": 1 } }), 72),
            (engine(configured("invalid=bad")), 2),
            (defaults(doc! { "unknown": {} }), 72),
            (defaults(configured("invalid=bad")), 2),
            (doc! { "create": "k", "indexOptionDefaults": { "other": 1 } }, 40415),
            (clustered(Value::Null), 14),
            (doc! { "create": "k", "clusteredIndex": false, "capped": true, "size": 4096 }, 6049200),
            (doc! { "create": "k", "clusteredIndex": { "key": { "_id": 1 }, "unique": true, "name": "" } }, 0),
            (doc! { "create": "l", "collation": {} }, 40414),
            (doc! { "create": "v", "pipeline": [] }, 72),
            (doc! { "create": "v", "viewOn": "c", "pipeline": [{}] }, 40323),
            (view(doc! { "$listSessions": {} }), 73),
            (view(doc! { "$listLocalSessions": {} }), 73),
            (view(doc! { "$documents": [{ "x": 1 }] }), 73),
            (view(doc! { "$unionWith": { "coll": "c", "pipeline": [{ "$out": "x" }] } }), 31441),
            (doc! { "create": "t", "timeseries": { "timeField": "t" }, "expireAfterSeconds": far }, 72),
            (doc! { "dropDatabase": null }, 5255100),
            (doc! { "profile": null }, 0),
            (doc! { "dataSize": "d.c", "min": { "b": 1 }, "max": { "b": 2 } }, 96),
            (doc! { "dataSize": "d.c", "min": { "_id": 2 }, "max": { "_id": 1 } }, 0),
            (doc! { "dataSize": null }, 73),
        ] {
            assert_eq!(code_on(&mut node, "d", body.clone()).await, code, "{body}");
        }
        node.ok(view(doc! { "$match": {} })).await;
        assert_eq!(code_on(&mut node, "d", doc! { "dataSize": "d.v" }).await, 166);
        let stage = doc! { "$match": { "x": ("A".repeat(16_000_000)) } };
        let huge = doc! { "create": "w", "viewOn": "c", "pipeline": [stage] };
        assert_eq!(code_on(&mut node, "d", huge).await, 195);
    });
}

#[test]
fn u7_options_of_indexes_are_checked_as_mongodb_does() {
    run(async {
        let mut node = set().await;
        node.insert(vec![doc! { "_id": 1, "a": 1 }]).await;
        let index = |key: Doc, more: Doc| {
            let mut index = DocBuilder::new();
            index.append("key", key);
            index.append("name", "i");
            index.append_all(more.view());
            doc! { "createIndexes": "c", "indexes": [index.finish()] }
        };
        let all = |projection: Doc| index(doc! { "$**": 1 }, doc! { "wildcardProjection": projection });
        let text = |more: Doc| index(doc! { "a": "text" }, more);
        for (body, code) in [
            (index(doc! { "$**": "wildcard" }, doc! {}), 67),
            (all(doc! { "a": 1, "b": 0 }), 31254),
            (all(doc! { "a": { "b": 1, "c": 0 } }), 31254),
            (all(doc! { "a": 1, "a.b": 0 }), 31249),
            (all(doc! { "a": "yes" }), 51271),
            (text(doc! { "weights": "a" }), 67),
            (text(doc! { "weights": [1] }), 67),
            (text(doc! { "weights": 1 }), 14),
            (text(doc! { "textIndexVersion": 0.5 }), 67),
            (index(doc! { "a": 1 }, doc! { "storageEngine": {} }), 67),
            (index(doc! { "a": 1 }, doc! { "storageEngine": { "unknown": {} } }), 72),
        ] {
            assert_eq!(code_on(&mut node, "d", body.clone()).await, code, "{body}");
        }
        node.ok(all(doc! { "a": { "b": 0 }, "c": 0 })).await;
        let again = node.ok(all(doc! { "_id": 0, "c": false, "a.b": 0 })).await;
        assert_eq!(again.get("note"), Some(Value::String("all indexes already exist".into())), "{again}");
        node.ok(doc! { "dropIndexes": "c", "index": "i" }).await;
        node.ok(index(doc! { "a": 1 }, doc! { "expireAfterSeconds": 100 })).await;
        let change = |change: Doc| doc! { "collMod": "c", "index": change };
        let reply = node.ok(change(doc! { "name": "i", "expireAfterSeconds": 200 })).await;
        assert_eq!(reply.get("expireAfterSeconds_old"), Some(Value::Int64(100)), "{reply}");
        assert_eq!(reply.get("expireAfterSeconds_new"), Some(Value::Int64(200)), "{reply}");
        let both = change(doc! { "name": "i", "prepareUnique": true, "hidden": true });
        assert_eq!(code_on(&mut node, "d", both).await, 72);
        node.ok(change(doc! { "name": "i", "prepareUnique": true })).await;
        let without = index(doc! { "a": 1 }, doc! { "expireAfterSeconds": 200 });
        assert_eq!(code_on(&mut node, "d", without).await, 85, "whether duplicates are refused is compared");
        node.ok(doc! { "create": "t", "timeseries": { "timeField": "t" } }).await;
        node.ok(doc! { "collMod": "t", "timeseries": {}, "cappedSize": 100_000 }).await;
    });
}

#[test]
fn u9_names_and_ids_that_cannot_be_are_refused() {
    run(async {
        let mut node = set().await;
        node.insert(vec![doc! { "_id": 1 }]).await;
        let rename = |more: Doc| {
            let mut body = DocBuilder::new();
            body.append("renameCollection", "d.c");
            body.append_all(more.view());
            body.finish()
        };
        let id = |subtype: u8, bytes: &'static [u8]| {
            rename(doc! { "to": "d.e", "dropTarget": (Value::Binary { subtype, bytes }) })
        };
        for (body, code) in [
            (rename(doc! { "to": null }), 40414),
            (id(3, &[0; 16]), 207),
            (id(4, &[0; 8]), 207),
            (doc! { "dropConnections": 1, "hostAndPort": ["host:port:extra"] }, 9),
            (doc! { "hello": 1, "saslSupportedMechs": { "user": "a", "db": "b" } }, 0),
            (doc! { "hello": 1, "saslSupportedMechs": { "user": "a" } }, 2),
            (doc! { "hello": 1, "saslSupportedMechs": null }, 14),
            (doc! { "hello": 1, "saslSupportedMechs": 1 }, 14),
            (doc! { "setDefaultRWConcern": 1, "defaultWriteConcern": { "w": null } }, 79),
            (doc! { "applyOps": [{}] }, 4),
            (doc! { "setParameter": 1, "automationServiceDescriptor": 1 }, 14),
            (doc! { "setParameter": 1, "logComponentVerbosity": "x" }, 14),
            (doc! { "setParameter": 1, "quiet": [1] }, 0),
            (doc! { "killSessions": [null] }, 0),
            (doc! { "killAllSessions": [null] }, 0),
            (doc! { "killSessions": null }, 10065),
            (doc! { "getLog": null }, 96),
        ] {
            assert_eq!(code_on(&mut node, "admin", body.clone()).await, code, "{body}");
        }
        let api = doc! { "version": "1", "strict": true };
        for (name, code) in [("", 28539), ("a b", 13280), ("a/b", 13280), ("a.b", 73), ("a", 0)] {
            let body = doc! { "validateDBMetadata": 1, "db": name, "apiParameters": (&api) };
            assert_eq!(code_on(&mut node, "d", body).await, code, "{name}");
        }
        let status = node.ok_on("admin", doc! { "serverStatus": 1, "mirroredReads": 1 }).await;
        assert!(status.get("mirroredReads").is_some_and(|section| section.as_document().is_some()), "{status}");
        let catalog = status.get("catalogStats").and_then(|section| section.as_document()).unwrap();
        assert_eq!(catalog.get("views"), Some(Value::Int32(0)));
    });
}
