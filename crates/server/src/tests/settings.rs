//! What a deployment is set to: its version, the concerns of commands that give none, cluster parameters.

use super::node::{Node, node, node_as, node_on, part};
use super::*;
use pando_doc::{DocRef, Value};
use pando_engine_model::ModelDisk;

async fn version(node: &mut Node) -> Doc {
    let shown = node.ok_on("admin", doc! { "getParameter": 1, "featureCompatibilityVersion": 1 }).await;
    part(&shown, "featureCompatibilityVersion")
}

fn only(mut documents: Vec<Doc>) -> Doc {
    assert_eq!(documents.len(), 1, "{documents:?}");
    documents.remove(0)
}

#[test]
fn u17_the_version_is_changed_with_a_confirmation_and_kept() {
    run(async {
        let disk = ModelDisk::new();
        let set = || ReplicationMode::OneMember("rs0".into());
        let mut first = node_on(&disk, set()).await;
        assert_eq!(version(&mut first).await, doc! { "version": "7.0" });
        let admin = |body: Doc| super::node::with_database(&body, "admin");
        first
            .client
            .expect_error(
                admin(doc! { "setFeatureCompatibilityVersion": "6.0" }),
                7369100,
                "Once you have downgraded the FCV, if you choose to downgrade the binary version, it will require support \
                 assistance. Please re-run this command with 'confirm: true' to acknowledge this and continue with the FCV \
                 downgrade.",
            )
            .await;
        for (wrong, code) in [
            (doc! { "setFeatureCompatibilityVersion": "5.0", "confirm": true }, 4926900),
            (doc! { "setFeatureCompatibilityVersion": 7, "confirm": true }, 14),
            (doc! { "setFeatureCompatibilityVersion": "6.3", "confirm": true }, 5147403),
            (doc! { "setFeatureCompatibilityVersion": "6.0", "confirm": true, "phase": "start" }, 5563600),
            (doc! { "setFeatureCompatibilityVersion": "6.0", "confirm": true, "nonsense": 1 }, 40415),
        ] {
            assert_eq!(first.code_on("admin", wrong).await, code);
        }
        first.ok_on("admin", doc! { "setFeatureCompatibilityVersion": "7.0", "confirm": true }).await;
        first.ok_on("admin", doc! { "setFeatureCompatibilityVersion": "6.0", "confirm": true }).await;
        let lower = doc! { "version": "6.0" };
        assert_eq!(version(&mut first).await, lower);
        let filter = doc! { "find": "system.version", "filter": { "_id": "featureCompatibilityVersion" } };
        let kept = only(first.find_on("admin", filter).await);
        assert_eq!(kept, doc! { "_id": "featureCompatibilityVersion", "version": "6.0" });
        let filter = doc! { "ns": "admin.system.version", "op": "u" };
        let entries = first.find_on("local", doc! { "find": "oplog.rs", "filter": (filter) }).await;
        assert_eq!(entries.len(), 2, "the way is written down as well: {entries:?}");
        first.fixture.server.shut_down().await.unwrap();
        let mut second = node_on(&disk, set()).await;
        assert_eq!(version(&mut second).await, lower);
        second.ok_on("admin", doc! { "setFeatureCompatibilityVersion": "7.0", "confirm": true }).await;
        assert_eq!(version(&mut second).await, doc! { "version": "7.0" });
    });
}

#[test]
fn u12_a_node_starts_with_what_mongodbs_test_runner_says() {
    run(async {
        let mut options = options(ReplicationMode::OneMember("rs0".into()));
        for (name, value) in [
            ("requireConfirmInSetFcv", "false"),
            ("disableTransitionFromLatestToLastContinuous", "false"),
            ("backtraceLogFile", "some.stacktrace"),
            ("reshardingMinimumOperationDurationMillis", "5000"),
            ("reshardingDelayBeforeRemainingOperationTimeQueryMillis", "0"),
            ("coordinateCommitReturnImmediatelyAfterPersistingDecision", "false"),
            ("oplogApplicationEnforcesSteadyStateConstraints", "true"),
            ("orphanCleanupDelaySecs", "1"),
            ("receiveChunkWaitForRangeDeleterTimeoutMS", "90000"),
            ("disableLogicalSessionCacheRefresh", "true"),
            ("testingDiagnosticsEnabled", "1"),
            ("writePeriodicNoops", "false"),
            ("numInitialSyncAttempts", "1"),
            ("numInitialSyncConnectAttempts", "60"),
        ] {
            options.parameters.push((name.into(), value.into()));
        }
        let engine: Arc<dyn Engine> =
            pando_engine_model::ModelEngine::open(&ModelDisk::new(), pando_engine_model::Mode::ReplicaSet).unwrap();
        let fixture = start_on(Some(engine), options).await;
        let client = fixture.connect().await;
        let mut node = Node { fixture, client };
        node.ok_on("admin", doc! { "setFeatureCompatibilityVersion": "6.3" }).await;
        assert_eq!(version(&mut node).await, doc! { "version": "6.3" });
        // What has no effect is said to have none, and is no parameter afterwards.
        for (name, _) in pando_commands::FOREIGN_PARAMETERS {
            assert!(
                !crate::parameters().any(|known| known.name() == *name || known.aliases().contains(name)),
                "{name}"
            );
        }
        let warned = startup_warnings(&mut node).await;
        for name in ["orphanCleanupDelaySecs", "writePeriodicNoops", "numInitialSyncAttempts"] {
            assert!(warned.iter().any(|line| line.contains("has no effect") && line.contains(name)), "{warned:?}");
        }
        assert!(!warned.iter().any(|line| line.contains("testingDiagnosticsEnabled")), "{warned:?}");
        node.ok_on("admin", doc! { "setParameter": 1, "orphanCleanupDelaySecs": 1 }).await;
        let log = node.ok_on("admin", doc! { "getLog": "global" }).await.to_string();
        assert!(log.contains("A parameter that was set has no effect"), "{log}");
        let asked = doc! { "getParameter": 1, "orphanCleanupDelaySecs": 1 };
        assert_eq!(node.code_on("admin", asked).await, 72);
    });
}

async fn startup_warnings(node: &mut Node) -> Vec<String> {
    let told = node.ok_on("admin", doc! { "getLog": "startupWarnings" }).await;
    let lines = told.get("log").and_then(|lines| lines.as_array()).expect("lines");
    lines.values().filter_map(|line| line.as_str().map(str::to_owned)).collect()
}

#[test]
fn u12_what_was_asked_for_and_is_not_so_is_warned_of() {
    run(async {
        let options = ServerOptions {
            ignored: vec![("storage.directoryPerDB", "all databases lie in the same files")],
            parameters: vec![("internalQueryFrameworkControl".into(), "trySbeEngine".into())],
            ..options(ReplicationMode::StandAlone)
        };
        let fixture = start_with(options).await;
        let client = fixture.connect().await;
        let mut node = Node { fixture, client };
        let warned = startup_warnings(&mut node).await;
        for part in ["storage.directoryPerDB", "all databases lie in the same files", "\"id\":9473500"] {
            assert!(warned.iter().any(|line| line.contains(part)), "{part}: {warned:?}");
        }
    });
}

#[test]
fn u17_default_concerns_are_set_kept_and_used() {
    run(async {
        let disk = ModelDisk::new();
        let set = || ReplicationMode::OneMember("rs0".into());
        let mut first = node_on(&disk, set()).await;
        let implicit = first.ok_on("admin", doc! { "getDefaultRWConcern": 1 }).await;
        assert_eq!(part(&implicit, "defaultReadConcern"), doc! { "level": "local" });
        assert_eq!(part(&implicit, "defaultWriteConcern"), doc! { "w": "majority", "wtimeout": 0 });
        let source = |shown: &Doc, of: &str| text(shown, &format!("default{of}ConcernSource"));
        assert_eq!((source(&implicit, "Read"), source(&implicit, "Write")), ("implicit".into(), "implicit".into()));
        for (wrong, code) in [
            (doc! { "setDefaultRWConcern": 1 }, 2),
            (doc! { "setDefaultRWConcern": 1, "defaultReadConcern": { "level": "linearizable" } }, 2),
            (doc! { "setDefaultRWConcern": 1, "defaultReadConcern": { "level": "snapshot" } }, 2),
            (doc! { "setDefaultRWConcern": 1, "defaultWriteConcern": { "w": 0 } }, 2),
            (doc! { "setDefaultRWConcern": 1, "defaultWriteConcern": { "j": true } }, 2),
            (doc! { "setDefaultRWConcern": 1, "defaultWriteConcern": { "w": 5 } }, 100),
            (doc! { "setDefaultRWConcern": 1, "defaultWriteConcern": { "w": "nobody" } }, 79),
        ] {
            assert_eq!(first.code_on("admin", wrong.clone()).await, code, "{wrong}");
        }
        let change = doc! {
            "setDefaultRWConcern": 1, "defaultReadConcern": { "level": "majority" }, "defaultWriteConcern": { "w": 1, "wtimeout": 7 }
        };
        let reply = first.ok_on("admin", change).await;
        assert_eq!((source(&reply, "Read"), source(&reply, "Write")), ("global".into(), "global".into()));
        assert!(reply.get("updateOpTime").is_some() && reply.get("localUpdateWallClockTime").is_some());
        let unset = doc! { "setDefaultRWConcern": 1, "defaultWriteConcern": {} };
        assert_eq!(first.code_on("admin", unset).await, 20);
        // The profiler tells which concerns a command had.
        first.ok(doc! { "profile": 2 }).await;
        first.insert(vec![doc! { "_id": 1 }]).await;
        first.find(doc! { "find": "c" }).await;
        first.find(doc! { "find": "c", "readConcern": { "level": "local" } }).await;
        let profiled = first.find(doc! { "find": "system.profile", "filter": { "op": "query", "ns": "d.c" } }).await;
        let concerns: Vec<(String, String)> = profiled
            .iter()
            .map(|profiled| part(profiled, "readConcern"))
            .map(|concern| (text(&concern, "level"), text(&concern, "provenance")))
            .collect();
        let expected = [("majority", "customDefault"), ("local", "")];
        assert_eq!(concerns, expected.map(|(level, source)| (level.to_owned(), source.to_owned())));
        first.fixture.server.shut_down().await.unwrap();
        let mut second = node_on(&disk, set()).await;
        let kept = second.ok_on("admin", doc! { "getDefaultRWConcern": 1, "inMemory": true }).await;
        assert_eq!(part(&kept, "defaultWriteConcern"), doc! { "w": 1, "wtimeout": 7 });
        assert_eq!(kept.get("inMemory"), Some(Value::Bool(true)));
        let status = second.ok_on("admin", doc! { "serverStatus": 1 }).await;
        assert_eq!(part(&part(&status, "defaultRWConcern"), "defaultReadConcern"), doc! { "level": "majority" });
        second.ok_on("admin", doc! { "setDefaultRWConcern": 1, "defaultReadConcern": {} }).await;
        let shown = second.ok_on("admin", doc! { "getDefaultRWConcern": 1 }).await;
        assert_eq!((source(&shown, "Read"), source(&shown, "Write")), ("implicit".into(), "global".into()));
        // Whoever writes the document changes the defaults; what cannot be read is not written.
        let id = doc! { "_id": "ReadWriteConcernDefaults" };
        let wrong = doc! { "q": (id.clone()), "u": { "$set": { "defaultWriteConcern": { "w": 0 } } } };
        let refused = second.run_on("config", doc! { "update": "settings", "updates": [wrong] }).await;
        assert!(refused.get("writeErrors").is_some(), "{refused}");
        second.ok_on("config", doc! { "delete": "settings", "deletes": [{ "q": (id), "limit": 1 }] }).await;
        let shown = second.ok_on("admin", doc! { "getDefaultRWConcern": 1 }).await;
        assert_eq!(source(&shown, "Write"), "implicit");
        let mut alone = node_as(ReplicationMode::StandAlone).await;
        assert_eq!(alone.code_on("admin", doc! { "getDefaultRWConcern": 1 }).await, 51300);
        // What a member has left behind means nothing to a node that stands alone.
        let left = doc! { "_id": "ReadWriteConcernDefaults", "defaultReadConcern": { "level": "majority" }, "defaultWriteConcern": { "w": 2 } };
        alone.ok_on("config", doc! { "insert": "settings", "documents": [left] }).await;
        let reply = alone.insert(vec![doc! { "_id": 1 }]).await;
        assert!(reply.get("writeConcernError").is_none(), "{reply}");
        alone.ok(doc! { "profile": 2 }).await;
        alone.find(doc! { "find": "c" }).await;
        let profiled = alone.find(doc! { "find": "system.profile", "filter": { "op": "query", "ns": "d.c" } }).await;
        assert!(profiled.len() == 1 && profiled[0].get("readConcern").is_none(), "{profiled:?}");
    });
}

#[test]
fn u17_a_write_waits_for_the_default_write_concern() {
    run(async {
        let mut node = node().await;
        let slow = doc! { "setDefaultRWConcern": 1, "defaultWriteConcern": { "w": "majority", "wtimeout": 1 } };
        node.ok_on("admin", slow).await;
        // A majority of one is there at once; the error of a concern that nobody can fulfil shows whose it was.
        let stopped = doc! {
            "configureFailPoint": "failCommand", "mode": { "times": 1 },
            "data": { "failCommands": ["insert"], "writeConcernError": { "code": 64, "errmsg": "x" } }
        };
        node.ok_on("admin", stopped).await;
        let reply = node.ok(doc! { "insert": "c", "documents": [{ "_id": 1 }] }).await;
        assert!(reply.get("writeConcernError").is_some());
        let reply = node.ok(doc! { "insert": "c", "documents": [{ "_id": 2 }] }).await;
        assert!(reply.get("writeConcernError").is_none());
    });
}

fn parameters(reply: &Doc) -> Vec<Doc> {
    let all = reply.get("clusterParameters").and_then(|all| all.as_array()).unwrap();
    all.values().filter_map(|value| value.as_document()).map(DocRef::to_doc).collect()
}

#[test]
fn u17_cluster_parameters_are_set_kept_and_shown() {
    run(async {
        let disk = ModelDisk::new();
        let set = || ReplicationMode::OneMember("rs0".into());
        let mut first = node_on(&disk, set()).await;
        let get = |name: &str| doc! { "getClusterParameter": (name) };
        let shown = only(parameters(&first.ok_on("admin", get("changeStreamOptions")).await));
        assert_eq!(part(&shown, "preAndPostImages"), doc! { "expireAfterSeconds": "off" });
        assert_eq!(
            shown.get("clusterParameterTime").and_then(|time| time.as_timestamp()).map(|time| time.is_none()),
            Some(true)
        );
        let set_images = |expiry: Value<'_>| {
            doc! { "setClusterParameter": { "changeStreamOptions": { "preAndPostImages": { "expireAfterSeconds": (expiry) } } } }
        };
        for (wrong, code) in [
            (get("nonsense"), 4),
            (doc! { "getClusterParameter": [] }, 2),
            (doc! { "getClusterParameter": 1 }, 14),
            (doc! { "setClusterParameter": { "nonsense": {} } }, 4),
            (doc! { "setClusterParameter": { "changeStreamOptions": 1 } }, 2),
            (doc! { "setClusterParameter": { "changeStreamOptions": {} } }, 2),
            (doc! { "setClusterParameter": 1 }, 14),
            (set_images(Value::Int32(0)), 2),
            (set_images(Value::String("never".into())), 2),
            (doc! { "setClusterParameter": { "testIntClusterParameter": { "intData": "x" } } }, 14),
            (doc! { "setClusterParameter": { "testIntClusterParameter": { "nonsense": 1 } } }, 40415),
        ] {
            assert_eq!(first.code_on("admin", wrong.clone()).await, code, "{wrong}");
        }
        first.ok_on("admin", set_images(Value::Int32(30))).await;
        first.ok_on("admin", doc! { "setClusterParameter": { "testStrClusterParameter": { "strData": "on" } } }).await;
        let kept = first.find_on("config", doc! { "find": "clusterParameters", "sort": { "_id": 1 } }).await;
        assert_eq!(
            kept.iter().map(|kept| text(kept, "_id")).collect::<Vec<_>>(),
            ["changeStreamOptions", "testStrClusterParameter"]
        );
        first.fixture.server.shut_down().await.unwrap();
        let mut second = node_on(&disk, set()).await;
        let both = doc! { "getClusterParameter": ["testStrClusterParameter", "changeStreamOptions"] };
        let shown = parameters(&second.ok_on("admin", both).await);
        assert_eq!(text(&shown[0], "strData"), "on");
        assert_eq!(part(&shown[1], "preAndPostImages"), doc! { "expireAfterSeconds": 30_i64 });
        let all = parameters(&second.ok_on("admin", get("*")).await);
        assert_eq!(all.len(), 9, "{all:?}");
        second.ok_on("config", doc! { "drop": "clusterParameters" }).await;
        let shown = only(parameters(&second.ok_on("admin", get("testStrClusterParameter")).await));
        assert_eq!(text(&shown, "strData"), "off");
        let mut alone = node_as(ReplicationMode::StandAlone).await;
        let change = doc! { "setClusterParameter": { "testIntClusterParameter": { "intData": 5 } } };
        assert_eq!(alone.code_on("admin", change).await, 20);
        let shown = only(parameters(&alone.ok_on("admin", get("testIntClusterParameter")).await));
        assert_eq!(shown, doc! { "_id": "testIntClusterParameter", "intData": 16_i64 });
    });
}

#[test]
fn u17_a_lower_version_keeps_what_is_new_out_of_the_catalog() {
    run(async {
        let mut node = node().await;
        let set = |version: &str| doc! { "setFeatureCompatibilityVersion": version, "confirm": true };
        let create = |name: &str, size: i32| doc! { "create": name, "capped": true, "size": size };
        node.ok(create("log", 1000)).await;
        // The way down is refused and stays unfinished; meanwhile nothing new comes.
        assert_eq!(node.code_on("admin", set("6.0")).await, 332);
        let unfinished = doc! { "version": "6.0", "targetVersion": "6.0", "previousVersion": "7.0" };
        assert_eq!(version(&mut node).await, unfinished);
        let wildcard = |key: Doc| doc! { "createIndexes": "c", "indexes": [{ "key": key, "name": "w", "wildcardProjection": { "b": 0 } }] };
        assert_eq!(node.code(wildcard(doc! { "$**": 1, "b": 1 })).await, 67);
        node.ok(doc! { "collMod": "log", "cappedSize": 1000 }).await;
        node.ok_on("admin", set("6.0")).await;
        let median = doc! { "$median": { "input": "$a", "method": "approximate" } };
        let view = |field: Doc| doc! { "create": "v", "viewOn": "c", "pipeline": [{ "$project": { "m": field } }] };
        assert_eq!(node.code(view(median.clone())).await, 224);
        let validator = doc! { "create": "d", "validator": { "$expr": { "$eq": ["$$USER_ROLES", 1] } } };
        assert_eq!(node.code(validator).await, 224);
        // What is not kept is not gated.
        node.ok(doc! { "aggregate": "c", "pipeline": [{ "$project": { "m": (median.clone()) } }], "cursor": {} }).await;
        node.ok(view(doc! { "$literal": (median.clone()) })).await;
        node.ok(create("rounded", 257)).await;
        let listed = node.find(doc! { "listCollections": 1, "filter": { "options.size": 512 } }).await;
        assert_eq!(listed.len(), 1);
        node.ok_on("admin", set("7.0")).await;
        node.ok(doc! { "collMod": "v", "viewOn": "c", "pipeline": [{ "$project": { "m": median } }] }).await;
        node.ok(wildcard(doc! { "$**": 1, "b": 1 })).await;
    });
}

#[test]
fn u17_writes_of_users_are_blocked_until_they_are_not_also_over_a_restart() {
    run(async {
        let disk = ModelDisk::new();
        let set = || ReplicationMode::OneMember("rs0".into());
        let mut first = node_on(&disk, set()).await;
        first.insert(vec![doc! { "_id": 1 }]).await;
        let block = |is_blocking: bool| doc! { "setUserWriteBlockMode": 1, "global": is_blocking };
        assert_eq!(first.code_on("admin", doc! { "setUserWriteBlockMode": 1 }).await, 40414);
        assert_eq!(first.code_on("admin", doc! { "setUserWriteBlockMode": 1, "global": 1 }).await, 14);
        first.ok_on("admin", block(true)).await;
        first.ok_on("admin", block(true)).await;
        let refused = [
            doc! { "insert": "c", "documents": [{ "_id": 2 }] },
            doc! { "update": "c", "updates": [{ "q": {}, "u": { "$set": { "a": 1 } } }] },
            doc! { "delete": "c", "deletes": [{ "q": {}, "limit": 1 }] },
            doc! { "findAndModify": "c", "query": {}, "remove": true },
            doc! { "create": "d" },
            doc! { "drop": "c" },
            doc! { "createIndexes": "c", "indexes": [{ "key": { "a": 1 }, "name": "a" }] },
            doc! { "dropDatabase": 1 },
            doc! { "aggregate": "c", "pipeline": [{ "$out": "d" }], "cursor": {} },
        ];
        for body in &refused {
            assert_eq!(first.code(body.clone()).await, 371, "{body}");
        }
        assert_eq!(first.find(doc! { "find": "c" }).await.len(), 1, "reading goes on");
        first.ok_on("admin", doc! { "insert": "own", "documents": [{}] }).await;
        first.fixture.server.shut_down().await.unwrap();
        let mut second = node_on(&disk, set()).await;
        assert_eq!(second.code(doc! { "insert": "c", "documents": [{}] }).await, 371);
        second.ok_on("admin", block(false)).await;
        second.insert(vec![doc! { "_id": 2 }]).await;
        assert_eq!(second.find(doc! { "find": "c" }).await.len(), 2);
    });
}

#[test]
fn u17_the_time_of_the_cluster_is_there_in_a_set_alone() {
    run(async {
        let stages = doc! { "aggregate": 1, "pipeline": [{ "$documents": [{ "t": "$$CLUSTER_TIME" }] }], "cursor": {} };
        let mut alone = node_as(ReplicationMode::StandAlone).await;
        assert_eq!(alone.code(stages.clone()).await, 51144);
        let mut member = node_as(ReplicationMode::OneMember("rs0".into())).await;
        let found = member.find(stages).await;
        assert!(matches!(found.first().unwrap().get("t"), Some(Value::Timestamp(time)) if time.is_some()), "{found:?}");
        let validator = doc! { "$expr": { "$lte": ["$t", "$$CLUSTER_TIME"] } };
        member.ok(doc! { "create": "v", "validator": (&validator) }).await;
        let insert = |time: pando_base::Timestamp| doc! { "insert": "v", "documents": [{ "_id": 1, "t": time }] };
        let late = member.run(insert(pando_base::Timestamp::new(u32::MAX, 1))).await;
        assert!(late.get("writeErrors").is_some(), "{late}");
        let early = member.run(insert(pando_base::Timestamp::new(1, 1))).await;
        assert!(early.get("writeErrors").is_none(), "{early}");
    });
}
