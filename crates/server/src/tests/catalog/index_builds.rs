//! Index builds beside other clients, over the wire: held at fail points, ended, put down by a shutdown, cut off by a crash.
//!
//! Fail points belong to the process: these tests take turns, and their points mean the indexes of the one alone.

use super::super::node::node_on;
use super::*;
use pando_engine_model::ModelDisk;

/// Whose turn it is.
static TURN: parking_lot::Mutex<()> = parking_lot::Mutex::new(());

/// Runs a test that has the fail points for itself.
fn run_alone(test: impl Future<Output = ()>) {
    let _turn = TURN.lock();
    for point in pando_index_build::FAIL_POINTS {
        point.turn_off();
    }
    run(test);
}

fn create(name: &str, field: &str, unique: bool) -> Doc {
    let mut key = DocBuilder::new();
    key.append(field, 1);
    doc! { "createIndexes": "c", "indexes": [{ "key": (key.finish()), "name": name, "unique": unique }] }
}

impl Node {
    /// Makes builds of an index wait at a point.
    async fn hold(&mut self, point: &str, index: &str) -> i64 {
        let data = doc! { "indexNames": [index] };
        let reply = self.client.admin(doc! { "configureFailPoint": point, "mode": "alwaysOn", "data": data }).await;
        number(&reply, "count") as i64
    }

    async fn release(&mut self, point: &str) {
        self.client.admin(doc! { "configureFailPoint": point, "mode": "off" }).await;
    }

    /// Waits until a build has come to the point. Simulated time does not wait for tasks, so `waitForFailPoint` would not.
    async fn held(&mut self, point: &str, entered_before: i64) {
        let point = pando_index_build::FAIL_POINTS.iter().find(|candidate| candidate.name() == point).unwrap();
        for _ in 0..1_000_000 {
            if point.status().times_entered as i64 > entered_before {
                return;
            }
            pando_query::executor::yield_now().await;
        }
        panic!("no build has come to {}", point.name());
    }

    /// Another client asks; the reply is for later.
    async fn ask_aside(&mut self, body: Doc) -> Client {
        let mut client = self.fixture.connect().await;
        client.send(MsgFlags::NONE, &with_database(&body, "d")).await;
        client
    }

    /// Begins a build and waits until it is held at the point.
    async fn begin_held(&mut self, point: &str, index: &str, body: Doc) -> Client {
        let before = self.hold(point, index).await;
        let client = self.ask_aside(body).await;
        self.held(point, before).await;
        client
    }

    fn ident_of(&self, index: &str) -> String {
        let data = self.fixture.server.node().data.clone().unwrap();
        let namespace = pando_base::Namespace::of("d", "c").unwrap();
        let latest = data.catalog.latest();
        latest.collection(&namespace).unwrap().index(index).unwrap().ident().to_owned()
    }

    async fn until_ready(&mut self, index: &str) {
        let data = self.fixture.server.node().data.clone().unwrap();
        for build in data.index_builds.active() {
            build.wait().await.unwrap();
        }
        assert!(self.index_names("c").await.contains(&index.to_owned()));
        let namespace = pando_base::Namespace::of("d", "c").unwrap();
        assert!(data.catalog.latest().collection(&namespace).unwrap().index(index).unwrap().ready);
    }
}

fn with(field: &str, value: impl pando_doc::ToValue) -> Doc {
    let mut document = DocBuilder::new();
    document.append(field, value);
    document.finish()
}

async fn reply_of(client: &mut Client) -> Doc {
    client.read().await.unwrap().body().to_doc()
}

#[test]
fn i1_readers_and_writers_go_on_during_a_build() {
    run_alone(async {
        let mut node = node().await;
        node.insert_into("c", &numbered(1200)).await;
        for (place, point) in [
            "hangAfterInitializingIndexBuild",
            "hangAfterStartingIndexBuild",
            "hangAfterIndexBuildDumpsInsertsFromBulk",
            "hangAfterIndexBuildFirstDrain",
            "hangIndexBuildBeforeCommit",
        ]
        .into_iter()
        .enumerate()
        {
            let name = format!("goes_on_{place}");
            let field = format!("b{place}");
            let first = with(&field, pando_doc::array![1, 2]);
            node.ok(doc! { "update": "c", "updates": [{ "q": { "_id": 1 }, "u": { "$set": first } }] }).await;
            let mut client = node.begin_held(point, &name, create(&name, &field, false)).await;
            let id = 10_000 + i32::try_from(place).unwrap();
            let mut inserted = DocBuilder::new();
            inserted.append("_id", id);
            inserted.append(field.as_str(), pando_doc::array![5, 6, 7]);
            node.insert_into("c", &[inserted.finish()]).await;
            let second = with(&field, 9);
            node.ok(doc! { "update": "c", "updates": [{ "q": { "_id": 2 }, "u": { "$set": second } }] }).await;
            node.ok(doc! { "delete": "c", "deletes": [{ "q": { "_id": 1 }, "limit": 1 }] }).await;
            assert_eq!(node.documents_of("c", with(&field, 6)).await.len(), 1);
            node.release(point).await;
            let reply = reply_of(&mut client).await;
            assert_eq!(number(&reply, "ok"), 1.0, "{point}: {reply}");
            assert_eq!(number(&reply, "numIndexesAfter"), number(&reply, "numIndexesBefore") + 1.0);
            node.valid("c").await;
            node.insert_into("c", &[doc! { "_id": 1 }]).await;
        }
    });
}

#[test]
fn i2_duplicates_come_and_go_and_stay() {
    run_alone(async {
        let mut node = node().await;
        node.insert_into("c", &[doc! { "_id": 1, "k": 1 }, doc! { "_id": 2, "k": 1 }, doc! { "_id": 3, "k": 3 }]).await;
        let point = "hangAfterIndexBuildFirstDrain";
        let mut client = node.begin_held(point, "dup_goes", create("dup_goes", "k", true)).await;
        node.ok(doc! { "update": "c", "updates": [{ "q": { "_id": 2 }, "u": { "$set": { "k": 2 } } }] }).await;
        node.insert_into("c", &[doc! { "_id": 4, "k": 3 }]).await;
        node.ok(doc! { "delete": "c", "deletes": [{ "q": { "_id": 4 }, "limit": 1 }] }).await;
        node.release(point).await;
        let reply = reply_of(&mut client).await;
        assert_eq!(number(&reply, "ok"), 1.0, "{reply}");
        node.valid("c").await;
        node.ok(doc! { "dropIndexes": "c", "index": "dup_goes" }).await;
        let mut client = node.begin_held(point, "dup_stays", create("dup_stays", "k", true)).await;
        node.insert_into("c", &[doc! { "_id": 5, "k": 3 }]).await;
        node.release(point).await;
        let reply = reply_of(&mut client).await;
        assert_eq!((number(&reply, "code"), part(&reply, "keyValue")), (11000.0, doc! { "k": 3 }), "{reply}");
        assert_eq!(node.index_names("c").await, ["_id_"]);
        node.valid("c").await;
    });
}

#[test]
fn i5_a_build_ends_when_its_index_its_collection_or_its_database_goes() {
    run_alone(async {
        for (name, body) in [
            ("ends_by_index", doc! { "dropIndexes": "c", "index": "ends_by_index" }),
            ("ends_by_star", doc! { "dropIndexes": "c", "index": "*" }),
            ("ends_by_key", doc! { "dropIndexes": "c", "index": { "a": 1 } }),
            ("ends_by_drop", doc! { "drop": "c" }),
            ("ends_by_database", doc! { "dropDatabase": 1 }),
        ] {
            let mut node = node().await;
            node.insert_into("c", &numbered(50)).await;
            let point = "hangAfterInitializingIndexBuild";
            let mut client = node.begin_held(point, name, create(name, "a", false)).await;
            node.ok(body).await;
            node.release(point).await;
            let reply = reply_of(&mut client).await;
            assert_eq!(number(&reply, "code"), 276.0, "{name}: {reply}");
            let commands = node.oplog_commands();
            assert_eq!(commands[1..3], ["startIndexBuild c", "abortIndexBuild c"], "{name}");
            let data = node.fixture.server.node().data.clone().unwrap();
            let leftovers = data.services.engine.idents().into_iter().filter(|ident| ident.starts_with("internal-"));
            assert_eq!(leftovers.count(), 0, "{name}");
            if name.starts_with("ends_by_d") {
                continue;
            }
            assert_eq!(node.index_names("c").await, ["_id_"]);
            node.valid("c").await;
        }
    });
}

#[test]
fn i5_changes_that_cannot_end_a_build_are_refused() {
    run_alone(async {
        let mut node = node().await;
        node.insert_into("c", &numbered(50)).await;
        let point = "hangAfterInitializingIndexBuild";
        let both = doc! { "createIndexes": "c", "indexes": [
            { "key": { "a": 1 }, "name": "refuses_1" }, { "key": { "b": 1 }, "name": "refuses_2" }
        ] };
        let mut client = node.begin_held(point, "refuses_1", both).await;
        assert_eq!(node.code(doc! { "dropIndexes": "c", "index": "refuses_1" }).await, 12587);
        let rename = doc! { "renameCollection": "d.c", "to": "d.x" };
        assert_eq!(node.code_on("admin", rename).await, 12587);
        // Whoever wants the same waits for it.
        let mut other = node.ask_aside(create("refuses_1", "a", false)).await;
        node.release(point).await;
        let reply = reply_of(&mut client).await;
        assert_eq!(number(&reply, "ok"), 1.0, "{reply}");
        let reply = reply_of(&mut other).await;
        assert_eq!((number(&reply, "ok"), text(&reply, "note")), (1.0, "all indexes already exist".into()), "{reply}");
        node.valid("c").await;
    });
}

#[test]
fn i9_a_build_shows_its_progress_and_can_be_killed() {
    run_alone(async {
        let mut node = node().await;
        node.insert_into("c", &numbered(50)).await;
        let point = "hangIndexBuildDuringCollectionScanPhaseBeforeInsertion";
        let mut client = node.begin_held(point, "shows", create("shows", "a", false)).await;
        let pipeline = doc! { "aggregate": 1, "pipeline": [
            { "$currentOp": { "allUsers": true } }, { "$match": { "progress": { "$exists": true } } }
        ], "cursor": {} };
        let shown = node.find_on("admin", pipeline).await;
        let [operation] = shown.as_slice() else { panic!("one build: {shown:?}") };
        assert_eq!(part(operation, "progress"), doc! { "done": 0_i64, "total": 50_i64 });
        assert!(text(operation, "msg").starts_with("Index Build: scanning collection"), "{operation}");
        assert_eq!(text(&part(operation, "command"), "createIndexes"), "c");
        let id = operation.get("opid").unwrap();
        node.client.admin(doc! { "killOp": 1, "op": id }).await;
        let reply = reply_of(&mut client).await;
        node.release(point).await;
        assert_eq!(number(&reply, "code"), 11601.0, "{reply}");
        assert_eq!(node.index_names("c").await, ["_id_"]);
        node.valid("c").await;
    });
}

#[test]
fn i6_a_build_needs_disk_space() {
    run_alone(async {
        let mut options = super::super::options(ReplicationMode::OneMember("rs0".into()));
        options.data_directory = Some("/data".into());
        let engine: Arc<dyn Engine> =
            pando_engine_model::ModelEngine::open(&ModelDisk::new(), pando_engine_model::Mode::ReplicaSet).unwrap();
        let fixture = start_on(Some(engine), options).await;
        fixture.env.disk().create_directory(std::path::Path::new("/data")).unwrap();
        let client = fixture.connect().await;
        let mut node = Node { fixture, client };
        node.insert_into("c", &numbered(50)).await;
        let least = |megabytes: i64| doc! { "setParameter": 1, "indexBuildMinAvailableDiskSpaceMB": megabytes };
        node.client.admin(least(8_796_093_022_207)).await;
        assert_eq!(node.code(create("space_1", "a", false)).await, 14031);
        node.client.admin(least(0)).await;
        let point = "hangAfterInitializingIndexBuild";
        let mut client = node.begin_held(point, "space_2", create("space_2", "a", false)).await;
        node.client.admin(least(8_796_093_022_207)).await;
        node.release(point).await;
        let reply = reply_of(&mut client).await;
        assert_eq!(number(&reply, "code"), 14031.0, "{reply}");
        assert_eq!(node.index_names("c").await, ["_id_"]);
        node.client.admin(least(0)).await;
        node.ok(create("space_3", "a", false)).await;
        node.valid("c").await;
    });
}

const PHASES: [(&str, &str); 4] = [
    ("hangAfterInitializingIndexBuild", "initialized"),
    ("hangIndexBuildDuringCollectionScanPhaseAfterInsertion", "collection scan"),
    ("hangIndexBuildDuringBulkLoadPhase", "bulk load"),
    ("hangAfterIndexBuildFirstDrain", "drain writes"),
];

#[test]
fn i7_a_build_is_resumed_in_every_phase_after_a_clean_shutdown() {
    run_alone(async {
        for (place, (point, phase)) in PHASES.into_iter().enumerate() {
            let disk = ModelDisk::new();
            let replication = ReplicationMode::OneMember("rs0".into());
            let mut options = super::super::options(replication.clone());
            options.data_directory = Some("/data".into());
            options.parameters.push(("indexBuildMinAvailableDiskSpaceMB".into(), "0".into()));
            let simulation = Simulation::new(11);
            let mut node = start_node(&simulation, &disk, options.clone()).await;
            node.insert_into("c", &numbered(300)).await;
            let name = format!("resumed_{place}");
            let mut client = node.begin_held(point, &name, create(&name, "b", false)).await;
            node.insert_into("c", &[doc! { "_id": 5000, "b": [1, 2, 3] }]).await;
            node.ok(doc! { "delete": "c", "deletes": [{ "q": { "_id": 7 }, "limit": 1 }] }).await;
            let ident = node.ident_of(&name);
            node.fixture.server.shut_down().await.unwrap();
            let reply = client.read().await.map(|reply| reply.body().to_doc());
            assert!(reply.is_none_or(|reply| number(&reply, "ok") == 0.0), "{phase}");
            drop(node);
            let held = pando_base::FailPointSet::new(&[pando_index_build::FAIL_POINTS]).unwrap();
            held.set(point, pando_base::FailPointMode::Off, Bytes::new(), 0).unwrap();
            let mut node = start_node(&simulation, &disk, options).await;
            node.until_ready(&name).await;
            assert_eq!(node.ident_of(&name), ident, "{phase}: it went on and did not begin anew");
            let validated = node.valid("c").await;
            assert_eq!(part(&validated, "keysPerIndex").get(name.as_str()), Some(Value::Int64(601)), "{phase}");
            let entries = node.find_on("config", doc! { "find": "system.indexBuilds" }).await;
            assert_eq!(entries, Vec::<Doc>::new(), "{phase}");
        }
    });
}

async fn start_node(simulation: &Simulation, disk: &Arc<ModelDisk>, options: ServerOptions) -> Node {
    let engine: Arc<dyn Engine> =
        pando_engine_model::ModelEngine::open(disk, pando_engine_model::Mode::ReplicaSet).unwrap();
    start_node_on(simulation, engine, options).await
}

async fn start_node_on(simulation: &Simulation, engine: Arc<dyn Engine>, options: ServerOptions) -> Node {
    let env = simulation.env();
    env.disk().create_directory(std::path::Path::new("/data")).unwrap();
    let control = Arc::new(ProcessControl::new(Arc::new(Nowhere)));
    let machine = Arc::new(SimulatedMachine::new("node1"));
    let server =
        Server::start(&env, machine, Some(engine), options, Log::silent(), Arc::clone(&control)).await.unwrap();
    let fixture = Fixture { simulation: Simulation::new(12), env, server: Arc::new(server), control };
    let client = fixture.connect().await;
    Node { fixture, client }
}

/// Writes that nobody waits for stay behind stable: nothing flushes them.
fn unstable(body: Doc) -> Doc {
    let mut builder = DocBuilder::new();
    builder.append_all(body.view());
    builder.append("writeConcern", doc! { "w": 1, "j": false });
    builder.finish()
}

/// Builds an index, held at the point, over a recovery to stable that takes back the newest writes, and perhaps the start of the
/// build; did it go on where it was?
async fn build_over_recovery(point: &str, name: &str, is_start_stable: bool, is_durable: bool) -> bool {
    let simulation = Simulation::new(13);
    let engine: Arc<dyn Engine> = match is_durable {
        true => {
            let options = pando_engine::EngineOptions::stepped(pando_engine::Mode::ReplicaSet);
            pando_engine::DurableEngine::open(&simulation.env(), std::path::Path::new("/store"), options).unwrap()
        }
        false => {
            pando_engine_model::ModelEngine::open(&ModelDisk::new(), pando_engine_model::Mode::ReplicaSet).unwrap()
        }
    };
    let mut options = super::super::options(ReplicationMode::OneMember("rs0".into()));
    options.data_directory = Some("/data".into());
    options.parameters.push(("indexBuildMinAvailableDiskSpaceMB".into(), "0".into()));
    let mut node = start_node_on(&simulation, engine, options).await;
    node.insert_into("c", &numbered(300)).await;
    let mut client = node.begin_held(point, name, create(name, "b", false)).await;
    // Waits for a majority, which has everything before it then.
    if is_start_stable {
        node.insert_into("c", &[doc! { "_id": 5000, "b": [1, 2, 3] }]).await;
    }
    node.ok(unstable(doc! { "delete": "c", "deletes": [{ "q": { "_id": 7 }, "limit": 1 }] })).await;
    node.ok(unstable(doc! { "insert": "c", "documents": [{ "_id": 6000, "b": [1, 2, 3, 4] }] })).await;
    let update = doc! { "q": { "_id": 8 }, "u": { "$set": { "b": [70, 71, 72] } } };
    node.ok(unstable(doc! { "update": "c", "updates": [update] })).await;
    let ident = node.ident_of(name);
    let rollback_id = number(&node.ok_on("admin", doc! { "replSetGetRBID": 1 }).await, "rbid");
    let recovered = node.ok_on("admin", doc! { "testRecoverToStable": 1 }).await;
    assert!(number(&recovered, "numOpsApplied") >= 3.0, "{recovered}");
    assert_eq!(number(&node.ok_on("admin", doc! { "replSetGetRBID": 1 }).await, "rbid"), rollback_id + 1.0);
    assert_eq!(number(&reply_of(&mut client).await, "code"), 11602.0);
    node.release(point).await;
    node.until_ready(name).await;
    let validated = node.valid("c").await;
    let expected = if is_start_stable { 606 } else { 603 };
    assert_eq!(part(&validated, "keysPerIndex").get(name), Some(Value::Int64(expected)), "{point}: {validated}");
    assert_eq!(node.documents_of("c", doc! { "b": 72 }).await.len(), 3, "{point}");
    let entries = node.find_on("config", doc! { "find": "system.indexBuilds" }).await;
    assert_eq!(entries, Vec::<Doc>::new(), "{point}");
    node.ident_of(name) == ident
}

#[test]
fn x18_builds_are_resumed_in_every_phase_after_a_recovery_to_stable() {
    run_alone(async {
        for (place, (point, phase)) in PHASES.into_iter().enumerate() {
            for is_durable in [false, true] {
                let name = format!("recovered_{place}_{is_durable}");
                let went_on = build_over_recovery(point, &name, true, is_durable).await;
                assert!(went_on, "{phase}: it went on and did not begin anew, durable: {is_durable}");
            }
        }
    });
}

#[test]
fn x18_a_build_that_is_younger_than_stable_begins_anew() {
    run_alone(async {
        for (place, (point, phase)) in PHASES.into_iter().enumerate() {
            for is_durable in [false, true] {
                let name = format!("younger_{place}_{is_durable}");
                let went_on = build_over_recovery(point, &name, false, is_durable).await;
                assert!(!went_on, "{phase}: its start was taken back, durable: {is_durable}");
            }
        }
    });
}

#[test]
fn x18_a_build_that_has_read_what_was_not_stable_begins_anew() {
    run_alone(async {
        let mut node = node().await;
        node.insert_into("c", &numbered(300)).await;
        let point = "hangAfterIndexBuildDumpsInsertsFromBulk";
        let name = "has_read";
        let mut client = node.begin_held(point, name, create(name, "b", false)).await;
        node.insert_into("c", &[doc! { "_id": 5000 }]).await;
        let ident = node.ident_of(name);
        node.ok(unstable(doc! { "insert": "c", "documents": [{ "_id": 6000, "b": [1, 2, 3, 4] }] })).await;
        let drained = "hangAfterIndexBuildFirstDrain";
        let before = node.hold(drained, name).await;
        node.release(point).await;
        node.held(drained, before).await;
        node.ok_on("admin", doc! { "testRecoverToStable": 1 }).await;
        assert_eq!(number(&reply_of(&mut client).await, "code"), 11602.0);
        node.release(drained).await;
        node.until_ready(name).await;
        assert_ne!(node.ident_of(name), ident);
        let validated = node.valid("c").await;
        assert_eq!(part(&validated, "keysPerIndex").get(name), Some(Value::Int64(605)), "{validated}");
    });
}

#[test]
fn x18_a_recovery_to_stable_loses_nothing() {
    run_alone(async {
        let mut node = node().await;
        node.insert_into("c", &numbered(20)).await;
        node.ok(unstable(doc! { "create": "other" })).await;
        node.ok(unstable(doc! { "insert": "other", "documents": [{ "_id": 1 }] })).await;
        node.ok_on("admin", unstable(doc! { "renameCollection": "d.other", "to": "d.third" })).await;
        node.ok(unstable(create("empty_1", "x", false))).await;
        node.ok_on("admin", doc! { "testRecoverToStable": 1 }).await;
        assert_eq!(node.names().await, ["c", "third"]);
        assert_eq!(node.documents_of("third", doc! {}).await.len(), 1);
        assert_eq!(node.index_names("c").await, ["_id_", "empty_1"]);
        node.valid("c").await;
        node.insert_into("third", &[doc! { "_id": 2 }]).await;
        assert_eq!(node.documents_of("third", doc! {}).await.len(), 2);
        let mut alone = node_as(ReplicationMode::StandAlone).await;
        assert_eq!(alone.code_on("admin", doc! { "testRecoverToStable": 1 }).await, 76);
    });
}

#[test]
fn i7_a_build_begins_anew_in_every_phase_after_a_crash() {
    run_alone(async {
        for (place, (point, phase)) in PHASES.into_iter().enumerate() {
            let disk = ModelDisk::new();
            let replication = || ReplicationMode::OneMember("rs0".into());
            let mut node = node_on(&disk, replication()).await;
            node.insert_into("c", &numbered(300)).await;
            let name = format!("crashed_{place}");
            let _client = node.begin_held(point, &name, create(&name, "b", false)).await;
            node.insert_into("c", &[doc! { "_id": 5000, "b": [1, 2, 3] }]).await;
            // The task of a process that is gone does nothing more.
            let data = node.fixture.server.node().data.clone().unwrap();
            data.services.operations.shut_down(None);
            for build in data.index_builds.active() {
                build.wait().await.unwrap_err();
            }
            disk.crash();
            let held = pando_base::FailPointSet::new(&[pando_index_build::FAIL_POINTS]).unwrap();
            held.set(point, pando_base::FailPointMode::Off, Bytes::new(), 0).unwrap();
            let mut again = node_on(&disk, replication()).await;
            again.until_ready(&name).await;
            let validated = again.valid("c").await;
            let keys = part(&validated, "keysPerIndex");
            assert!(matches!(keys.get(name.as_str()), Some(Value::Int64(600 | 603))), "{phase}: {keys}");
        }
    });
}

#[test]
fn i4_members_vote_and_the_quorum_can_be_changed() {
    run_alone(async {
        let mut node = node().await;
        node.insert_into("c", &numbered(20)).await;
        let point = "hangAfterInitializingIndexBuild";
        let mut client = node.begin_held(point, "votes", create("votes", "a", false)).await;
        let entries = node.find_on("config", doc! { "find": "system.indexBuilds" }).await;
        let [entry] = entries.as_slice() else { panic!("one entry: {entries:?}") };
        assert_eq!(text(entry, "commitQuorum"), "votingMembers");
        assert!(entry.get("commitReadyMembers").is_none());
        let set =
            |quorum: Value<'_>| doc! { "setIndexCommitQuorum": "c", "indexNames": ["votes"], "commitQuorum": quorum };
        assert_eq!(node.code(set(Value::Int32(9))).await, 278);
        assert_eq!(node.code(set(Value::Int32(0))).await, 2);
        node.ok(set(Value::Int32(1))).await;
        let other = doc! { "setIndexCommitQuorum": "c", "indexNames": ["other"], "commitQuorum": 1 };
        assert_eq!(node.code(other).await, 27);
        let entries = node.find_on("config", doc! { "find": "system.indexBuilds" }).await;
        assert_eq!(entries[0].get("commitQuorum"), Some(Value::Int32(1)));
        let vote = doc! { "voteCommitIndexBuild": (entries[0].get("_id").unwrap()), "hostAndPort": "node2:27017" };
        node.client.admin(vote).await;
        let entries = node.find_on("config", doc! { "find": "system.indexBuilds" }).await;
        assert_eq!(entries[0].get("commitReadyMembers").unwrap().as_array().unwrap().len(), 1);
        node.release(point).await;
        let reply = reply_of(&mut client).await;
        assert_eq!(number(&reply, "ok"), 1.0, "{reply}");
        assert_eq!(node.find_on("config", doc! { "find": "system.indexBuilds" }).await, Vec::<Doc>::new());
        let more = doc! { "createIndexes": "c", "indexes": [{ "key": { "b": 1 }, "name": "x" }], "commitQuorum": 5 };
        assert_eq!(node.code(more).await, 278);
    });
}

#[test]
fn i4_votes_count_by_the_name_that_the_set_knows_a_member_by() {
    run_alone(async {
        let mut options = super::super::options(ReplicationMode::ReplicaSet("rs0".into()));
        options.net.addresses.insert(0, "127.0.0.1:27017".into());
        let engine: Arc<dyn Engine> =
            pando_engine_model::ModelEngine::open(&ModelDisk::new(), pando_engine_model::Mode::ReplicaSet).unwrap();
        let fixture = start_on(Some(engine), options).await;
        let client = fixture.connect().await;
        let mut node = Node { fixture, client };
        let config = doc! { "_id": "rs0", "members": [{ "_id": 0, "host": "localhost:27017" }] };
        node.ok_on("admin", doc! { "replSetInitiate": config }).await;
        node.insert_into("c", &numbered(20)).await;
        node.ok(create("by_name", "a", false)).await;
        node.valid("c").await;
    });
}

#[test]
fn i4_a_quorum_may_be_a_mode_of_the_configuration() {
    run_alone(async {
        let mut node = node().await;
        node.insert_into("c", &numbered(20)).await;
        let build = |name: &str, mode: &str| {
            doc! { "createIndexes": "c", "indexes": [{ "key": { "a": 1 }, "name": name }], "commitQuorum": mode }
        };
        assert_eq!(node.code(build("a_1", "one")).await, 79);
        let current = part(&node.ok_on("admin", doc! { "replSetGetConfig": 1 }).await, "config");
        let member = current.get("members").and_then(|members| members.as_array()?.get(0)?.as_document()).unwrap();
        let host = member.get("host").unwrap();
        let config = doc! {
            "_id": "rs0", "version": (number(&current, "version") as i32 + 1), "protocolVersion": 1_i64,
            "members": [{ "_id": 0, "host": host, "tags": { "place": "east" } }],
            "settings": { "getLastErrorModes": { "one": { "place": 1 }, "two": { "place": 2 } } },
        };
        node.ok_on("admin", doc! { "replSetReconfig": config }).await;
        node.ok(build("a_1", "one")).await;
        assert_eq!(node.code(build("a_2", "two")).await, 278);
        assert_eq!(node.index_names("c").await, ["_id_", "a_1"]);
        node.valid("c").await;
    });
}

#[test]
fn i9_no_more_builds_than_allowed_run_at_once() {
    run_alone(async {
        let mut node = node().await;
        node.insert_into("c", &numbered(20)).await;
        node.client.admin(doc! { "setParameter": 1, "maxNumActiveUserIndexBuilds": 1 }).await;
        let point = "hangAfterInitializingIndexBuild";
        let mut first = node.begin_held(point, "turn_1", create("turn_1", "a", false)).await;
        let mut second = node.ask_aside(create("turn_2", "b", false)).await;
        node.ok(doc! { "ping": 1 }).await;
        let data = node.fixture.server.node().data.clone().unwrap();
        assert_eq!(data.index_builds.active().len(), 1);
        node.release(point).await;
        for client in [&mut first, &mut second] {
            let reply = reply_of(client).await;
            assert_eq!(number(&reply, "ok"), 1.0, "{reply}");
        }
        node.valid("c").await;
    });
}

#[test]
fn i8_an_index_of_an_empty_collection_is_one_entry() {
    run_alone(async {
        let mut node = node().await;
        node.ok(doc! { "create": "c" }).await;
        node.ok(create("at_once", "a", true)).await;
        assert_eq!(node.oplog_commands(), ["create c", "createIndexes c"]);
        node.insert_into("c", &numbered(10)).await;
        node.valid("c").await;
    });
}

#[test]
fn i1_a_scan_that_a_capped_collection_overtakes_begins_anew() {
    run_alone(async {
        let mut node = node().await;
        node.ok(doc! { "create": "c", "capped": true, "size": 1_000_000, "max": 5 }).await;
        node.insert_into("c", &numbered(5)).await;
        let point = "hangIndexBuildDuringCollectionScanPhaseAfterInsertion";
        let mut client = node.begin_held(point, "overtaken", create("overtaken", "a", false)).await;
        let later: Vec<Doc> = (100..105).map(|id| doc! { "_id": id, "a": id }).collect();
        node.insert_into("c", &later).await;
        node.release(point).await;
        let reply = reply_of(&mut client).await;
        assert_eq!(number(&reply, "ok"), 1.0, "{reply}");
        let validated = node.valid("c").await;
        assert_eq!(part(&validated, "keysPerIndex").get("overtaken"), Some(Value::Int64(5)), "{validated}");
    });
}

#[test]
fn i9_the_status_counts_builds_and_what_their_sorters_did() {
    run_alone(async {
        let mut node = node().await;
        node.insert_into("c", &numbered(50)).await;
        node.ok(create("counted", "a", false)).await;
        let status = node.ok_on("admin", doc! { "serverStatus": 1 }).await;
        let builds = part(&status, "indexBuilds");
        assert_eq!(number(&builds, "total"), 1.0, "{builds}");
        let phases = part(&builds, "phases");
        for phase in ["scanCollection", "drainSideWritesTable", "waitForCommitQuorum", "commit"] {
            assert_eq!(number(&phases, phase), 1.0, "{phase}: {phases}");
        }
        assert!(number(&phases, "lastCommittedMillis") >= 1.0, "{phases}");
        let sorting = part(&status, "indexBulkBuilder");
        assert_eq!((number(&sorting, "count"), number(&sorting, "numSorted")), (1.0, 50.0), "{sorting}");
        assert_eq!(number(&sorting, "memUsage"), 0.0, "{sorting}");
        let features = part(&part(&status, "indexStats"), "features");
        assert_eq!(number(&part(&features, "single"), "count"), 1.0, "{features}");
        assert_eq!(number(&part(&features, "id"), "count"), 1.0, "{features}");
    });
}

#[test]
fn i1_a_build_behind_a_prepared_transaction_makes_way_for_a_step_down() {
    use super::super::transactions::{ONE, insert};
    run_alone(async {
        let mut node = node().await;
        node.insert_into("c", &numbered(10)).await;
        let point = "hangAfterIndexBuildDumpsInsertsFromBulk";
        let mut client = node.begin_held(point, "makes_way", create("makes_way", "b", false)).await;
        ONE.start(&mut node, insert(100)).await;
        let prepare = doc! { "prepareTransaction": 1, "writeConcern": { "w": "majority" } };
        node.ok_on("admin", ONE.statement(&prepare, false)).await;
        // Whoever wants to end the build waits as well, and has ended nothing when it is told to stop.
        let mut dropping = node.ask_aside(doc! { "dropIndexes": "c", "index": "makes_way" }).await;
        node.release(point).await;
        node.ok_on("admin", doc! { "replSetStepDown": 60, "force": true }).await;
        assert_eq!(number(&reply_of(&mut client).await, "code"), 11602.0);
        assert_eq!(number(&reply_of(&mut dropping).await, "code"), 11602.0);
        node.ok_on("admin", doc! { "replSetFreeze": 0 }).await;
        assert_eq!(number(&ONE.abort(&mut node).await, "ok"), 1.0);
        node.until_ready("makes_way").await;
        node.valid("c").await;
    });
}

#[test]
fn i1_a_list_of_names_ends_a_build_of_just_these_indexes() {
    run_alone(async {
        let mut node = node().await;
        node.insert_into("c", &numbered(10)).await;
        node.ok(create("ready", "a", false)).await;
        let point = "hangAfterIndexBuildFirstDrain";
        let mut client = node.begin_held(point, "under_way", create("under_way", "b", false)).await;
        let drop = |names: pando_doc::Array| doc! { "dropIndexes": "c", "index": names };
        assert_eq!(node.code(drop(pando_doc::array!["ready", "under_way"])).await, 27);
        node.ok(drop(pando_doc::array!["under_way"])).await;
        assert_eq!(number(&reply_of(&mut client).await, "code"), 276.0);
        node.release(point).await;
        assert_eq!(node.index_names("c").await, ["_id_", "ready"]);
    });
}
