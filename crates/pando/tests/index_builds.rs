//! A real server that is told to end, or killed, in each phase of an index build: after a clean end the build is resumed, after a
//! kill it begins anew, and both end with an index that is right.

mod support;

use pando_doc::{Doc, DocBuilder, Value, doc};
use pando_env::Env;
use std::path::Path;
use support::{Client, Scratch, Server, block_on, free_port, number};

/// Where a build is held, and the phase that it is in there.
const PHASES: [(&str, &str); 4] = [
    ("hangIndexBuildDuringCollectionScanPhaseBeforeInsertion", "collection scan"),
    ("hangIndexBuildDuringBulkLoadPhase", "bulk load"),
    ("hangIndexBuildDuringDrainWritesPhase", "drain writes"),
    ("hangAfterIndexBuildFirstDrain", "drain writes"),
];
const ROWS: i64 = 4000;

struct Held {
    server: Server,
    /// It waits for the answer of the build.
    _builder: Box<dyn pando_env::ThreadHandle>,
}

fn start(env: &Env, directory: &Path, port: u16) -> Server {
    let log = directory.with_extension("log");
    let log = log.to_str().expect("text");
    let words = ["--setParameter", "enableTestCommands=1", "--logpath", log, "--logappend"];
    Server::start(env, directory, port, &words)
}

async fn fill(client: &mut Client, ids: std::ops::Range<i64>) {
    let rows: Vec<Doc> = ids.map(|id| doc! { "_id": id, "b": [(id % 97), (id * 31 % 1009)] }).collect();
    for rows in rows.chunks(1000) {
        let mut insert = DocBuilder::new();
        insert.append("insert", "c");
        insert.array("documents", |array| rows.iter().for_each(|row| array.push(row)));
        client.ok(insert.finish()).await;
    }
}

/// In the middle of the phase, where the point counts.
fn data_of(point: &str) -> Doc {
    match point.contains("ScanPhase") || point.contains("BulkLoad") {
        true => doc! { "iteration": 100 },
        false => Doc::new(),
    }
}

/// Starts a build that is held at a point, and writes beside it.
fn hold(env: &Env, directory: &Path, port: u16, point: &str) -> Held {
    let address = format!("127.0.0.1:{port}");
    let server = start(env, directory, port);
    block_on(async {
        let mut client = Client::connect(env, &address).await.expect("the server listens");
        fill(&mut client, 0..ROWS).await;
        let on = doc! { "configureFailPoint": point, "mode": "alwaysOn", "data": (data_of(point)) };
        let set = client.ask_on("admin", &on).await.expect("the server is there");
        assert_eq!(number(&set, "ok"), 1, "{set}");
    });
    let (env_of, address_of) = (env.clone(), address.clone());
    let build = async move {
        let mut client = Client::connect(&env_of, &address_of).await.expect("the server listens");
        let create = doc! { "createIndexes": "c", "indexes": [{ "key": { "b": 1 }, "name": "b" }] };
        drop(client.ask(&create).await);
    };
    let builder = env.tasks().spawn_thread("builder", Box::new(move || block_on(build))).expect("a thread");
    block_on(async {
        let mut client = Client::connect(env, &address).await.expect("the server listens");
        let mut id = ROWS;
        loop {
            // Side writes, for those points that wait for some.
            fill(&mut client, id..id + 50).await;
            id += 50;
            assert!(id < ROWS + 20_000, "the build was not held at {point}");
            let asked = doc! { "waitForFailPoint": point, "timesEntered": 1, "maxTimeMS": 20 };
            if number(&client.ask_on("admin", &asked).await.expect("the server is there"), "ok") == 1 {
                break;
            }
        }
        client.ok(doc! { "delete": "c", "deletes": [{ "q": { "_id": 7 }, "limit": 1 }] }).await;
        let note = doc! { "insert": "other", "documents": [{}], "writeConcern": { "w": 1, "j": true } };
        client.ok(note).await;
    });
    Held { server, _builder: builder }
}

/// The build ends by itself, and the index is what the documents say.
fn check(env: &Env, directory: &Path, port: u16, what: &str) {
    let server = start(env, directory, port);
    block_on(async {
        let mut client = Client::connect(env, &format!("127.0.0.1:{port}")).await.expect("the server listens");
        loop {
            let count = doc! { "count": "c", "query": { "b": { "$gte": 0 } }, "hint": "b" };
            if number(&client.ask(&count).await.expect("the server is there"), "ok") == 1 {
                break;
            }
            env.clock().pause(std::time::Duration::from_millis(20));
        }
        let report = client.ok(doc! { "validate": "c", "full": true }).await;
        assert_eq!(report.get("valid"), Some(Value::Bool(true)), "{what}: {report}");
        let builds = client.ask_on("config", &doc! { "count": "system.indexBuilds" }).await.expect("a count");
        assert_eq!(number(&builds, "n"), 0, "{what}");
    });
    assert!(server.terminate());
}

fn log_of(env: &Env, directory: &Path) -> String {
    let bytes = env.disk().read_all(&directory.with_extension("log")).expect("a log");
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn i7_a_real_server_resumes_builds_in_every_phase() {
    let env = Env::real();
    for (point, phase) in PHASES {
        let scratch = Scratch::new(&env);
        let directory = scratch.0.join("data");
        env.disk().create_directory(&directory).expect("a directory");
        let port = block_on(free_port(&env));
        let held = hold(&env, &directory, port, point);
        assert!(held.server.terminate(), "{point}");
        check(&env, &directory, port, point);
        let log = log_of(&env, &directory);
        let resumed = log.lines().find(|line| line.contains("Index build: resuming")).unwrap_or_default();
        assert!(resumed.contains(phase), "{point}: {resumed:?}");
        assert!(!log.contains("failed to resume"), "{point}");
    }
}

#[test]
fn i7_a_real_server_that_was_killed_begins_builds_anew() {
    let env = Env::real();
    for (point, _) in PHASES {
        let scratch = Scratch::new(&env);
        let directory = scratch.0.join("data");
        env.disk().create_directory(&directory).expect("a directory");
        let port = block_on(free_port(&env));
        let held = hold(&env, &directory, port, point);
        drop(held.server);
        check(&env, &directory, port, point);
        assert!(!log_of(&env, &directory).contains("Index build: resuming"), "{point}");
    }
}
