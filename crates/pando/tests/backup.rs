//! Backups of a real server under writes: the files of a backup cursor are copied as a tool made for MongoDB copies them, whole
//! and each to the same place, and the copy is opened by another server.
//!
//! Two collections are written in turns, so that a copy shows whether it is of one moment: the second never has what the first
//! has not, and lacks one document at most.

mod support;

use pando_doc::{Doc, Value, doc};
use pando_env::{Env, OpenMode};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use support::{Client, Scratch, Server, block_on, free_port, number};

/// Somebody who writes until told to stop.
struct Writer {
    stop: Arc<AtomicBool>,
    /// Everything up to here is acknowledged as durable.
    acknowledged: Arc<AtomicI64>,
    thread: Option<Box<dyn pando_env::ThreadHandle>>,
}

impl Writer {
    fn start(env: &Env, address: &str) -> Writer {
        let (stop, acknowledged) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicI64::new(-1)));
        let (told, done, env_of, address) =
            (Arc::clone(&stop), Arc::clone(&acknowledged), env.clone(), address.to_owned());
        let write = async move {
            let mut client = Client::connect(&env_of, &address).await.expect("the server listens");
            for id in 0_i64.. {
                if told.load(Ordering::Acquire) {
                    return;
                }
                for collection in ["first", "second"] {
                    let row =
                        doc! { "_id": id, "text": (format!("row {id} {}", "x".repeat(200))), "even": (id % 2 == 0) };
                    client
                        .ok(doc! { "insert": collection, "documents": [row], "writeConcern": { "w": 1, "j": true } })
                        .await;
                }
                done.store(id, Ordering::Release);
            }
        };
        let thread = env.tasks().spawn_thread("writer", Box::new(move || block_on(write))).expect("a thread");
        Writer { stop, acknowledged, thread: Some(thread) }
    }

    fn acknowledged(&self) -> i64 {
        self.acknowledged.load(Ordering::Acquire)
    }

    /// Waits until so many are written.
    fn await_rows(&self, env: &Env, count: i64) {
        while self.acknowledged() < count {
            env.clock().pause(std::time::Duration::from_millis(5));
        }
    }

    fn stop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            assert!(thread.join().is_ok());
        }
    }
}

/// A backup cursor with what it told.
struct Cursor {
    id: i64,
    metadata: Doc,
    files: Vec<Doc>,
}

fn text<'a>(document: &'a Doc, name: &str) -> &'a str {
    document.get(name).and_then(|value| value.as_str()).unwrap_or_else(|| panic!("no text {name}: {document}"))
}

async fn aggregate(client: &mut Client, stage: Doc) -> Doc {
    let body = doc! { "aggregate": 1, "pipeline": [stage], "cursor": { "batchSize": 1 } };
    client.ask_on("admin", &body).await.expect("the server is there")
}

async fn more(client: &mut Client, id: i64) -> (i64, Vec<Doc>) {
    let reply = client.ask_on("admin", &doc! { "getMore": id, "collection": "$cmd.aggregate" }).await;
    let reply = reply.expect("the server is there");
    assert_eq!(number(&reply, "ok"), 1, "{reply}");
    support::batch(&reply, "nextBatch")
}

async fn open(client: &mut Client, options: Doc) -> Cursor {
    let reply = aggregate(client, doc! { "$backupCursor": options }).await;
    assert_eq!(number(&reply, "ok"), 1, "{reply}");
    let (id, mut first) = support::batch(&reply, "firstBatch");
    assert_eq!(first.len(), 1);
    let metadata = first.remove(0).get("metadata").and_then(|found| found.as_document()).expect("metadata").to_doc();
    let (again, files) = more(client, id).await;
    // It stays when everything is told; asking again is how a client keeps it.
    assert_eq!((again, more(client, id).await), (id, (id, Vec::new())));
    Cursor { id, metadata, files }
}

async fn close(client: &mut Client, cursor: &Cursor) {
    let kill = doc! { "killCursors": "$cmd.aggregate", "cursors": [(cursor.id)] };
    let reply = client.ask_on("admin", &kill).await.expect("the server is there");
    assert_eq!(number(&reply, "ok"), 1, "{reply}");
}

/// Copies what is told to the same places below another directory; how many bytes that were.
fn copy(env: &Env, directory: &Path, files: &[Doc], to: &Path) -> u64 {
    let mut copied = 0;
    for file in files {
        let from = PathBuf::from(text(file, "filename"));
        let target = to.join(from.strip_prefix(directory).expect("below the data directory"));
        if file.get("length").is_some() && number(file, "length") == 0 {
            assert!(env.disk().exists(&target).expect("it works"), "what is unchanged is there: {file}");
            continue;
        }
        env.disk().create_directory(target.parent().expect("it works")).expect("it works");
        let bytes = env.disk().read_all(&from).expect("it works");
        copied += bytes.len() as u64;
        if env.disk().exists(&target).expect("it works") {
            env.disk().remove(&target).expect("it works");
        }
        env.disk().open(&target, OpenMode::CreateNew).expect("it works").write_at(&bytes, 0).expect("it works");
    }
    copied
}

/// Opens a copy: it is of one moment, has everything up to `least`, and its indexes are sound. How much it has.
fn check_copy(env: &Env, directory: &Path, least: i64) -> i64 {
    let port = block_on(free_port(env));
    let server = Server::start(env, directory, port, &[]);
    let highest = block_on(async {
        let mut client = Client::connect(env, &format!("127.0.0.1:{port}")).await.expect("the server listens");
        let first = ids(&mut client, "first").await;
        let second = ids(&mut client, "second").await;
        assert!(first.iter().copied().eq(0..first.len() as i64), "no holes");
        assert!(second.is_subset(&first) && first.len() - second.len() <= 1, "{} {}", first.len(), second.len());
        assert!(second.len() as i64 > least, "{} documents, {least} were acknowledged", second.len());
        for collection in ["first", "second"] {
            let report = client.ok(doc! { "validate": collection, "full": true }).await;
            assert_eq!(report.get("valid"), Some(Value::Bool(true)), "{report}");
        }
        client.ok(doc! { "insert": "first", "documents": [{ "_id": "new" }] }).await;
        first.len() as i64
    });
    assert!(server.terminate());
    highest
}

async fn ids(client: &mut Client, collection: &str) -> BTreeSet<i64> {
    let found = client.all(collection, doc! { "find": collection, "projection": { "_id": 1 } }).await;
    found.iter().map(|row| number(row, "_id")).collect()
}

async fn prepare(client: &mut Client) {
    for collection in ["first", "second"] {
        client.ok(doc! { "createIndexes": collection, "indexes": [{ "key": { "text": 1 }, "name": "text" }] }).await;
    }
}

#[test]
fn x19_files_copied_while_writes_go_on_are_the_data_of_one_moment() {
    let env = Env::real();
    let (source, target, extended) = (Scratch::new(&env), Scratch::new(&env), Scratch::new(&env));
    let port = block_on(free_port(&env));
    let address = format!("127.0.0.1:{port}");
    let server = Server::start(&env, &source.0, port, &[]);
    let mut client = block_on(Client::connect(&env, &address)).expect("the server listens");
    block_on(prepare(&mut client));
    let mut writer = Writer::start(&env, &address);
    writer.await_rows(&env, 300);
    let least = writer.acknowledged();
    let cursor = block_on(open(&mut client, Doc::new()));
    assert_eq!(text(&cursor.metadata, "dbpath"), source.0.to_str().expect("it works"));
    assert!(cursor.metadata.get("checkpointTimestamp").is_some() && cursor.metadata.get("oplogEnd").is_some());
    // Life goes on between the opening and the copy; files that go in that time are there for the copy.
    writer.await_rows(&env, least + 300);
    copy(&env, &source.0, &cursor.files, &target.0);
    copy(&env, &source.0, &cursor.files, &extended.0);
    let before_extend = writer.acknowledged();
    let reached = block_on(client.ok(doc! { "hello": 1 }));
    let time = reached.get("operationTime").and_then(|time| time.as_timestamp()).expect("a time");
    let id = cursor.metadata.get("backupId").expect("an id").to_owned();
    let extend = doc! { "$backupCursorExtend": { "backupId": (id.view()), "timestamp": time } };
    let reply = block_on(aggregate(&mut client, extend));
    assert_eq!(number(&reply, "ok"), 1, "{reply}");
    let (id, mut again) = support::batch(&reply, "firstBatch");
    if id != 0 {
        again.extend(block_on(more(&mut client, id)).1);
    }
    copy(&env, &source.0, &again, &extended.0);
    block_on(close(&mut client, &cursor));
    writer.stop();
    assert!(server.terminate());
    let plain = check_copy(&env, &target.0, least);
    let longer = check_copy(&env, &extended.0, before_extend);
    assert!(plain < longer, "{plain} {longer}");
}

#[test]
fn x19_an_incremental_copy_is_smaller_and_gives_the_same() {
    let env = Env::real();
    let (source, target) = (Scratch::new(&env), Scratch::new(&env));
    let port = block_on(free_port(&env));
    let address = format!("127.0.0.1:{port}");
    let server = Server::start(&env, &source.0, port, &[]);
    let mut client = block_on(Client::connect(&env, &address)).expect("the server listens");
    block_on(prepare(&mut client));
    // Something large that does not change.
    for batch in 0..20_i64 {
        let rows = (0..500_i64).map(|place| {
            let id = batch * 500 + place;
            let noise: String = (0..20).map(|_| format!("{:016x}", env.random().next_u64())).collect();
            doc! { "_id": id, "noise": noise }
        });
        let rows: Vec<Doc> = rows.collect();
        let mut insert = pando_doc::DocBuilder::new();
        insert.append("insert", "still");
        insert.array("documents", |array| rows.iter().for_each(|row| array.push(row)));
        block_on(client.ok(insert.finish()));
    }
    block_on(client.ask_on("admin", &doc! { "fsync": 1 })).expect("the server is there");
    let mut writer = Writer::start(&env, &address);
    writer.await_rows(&env, 100);
    let names = |name: &str| doc! { "incrementalBackup": true, "thisBackupName": name };
    let full = block_on(open(&mut client, names("monday")));
    let whole = copy(&env, &source.0, &full.files, &target.0);
    block_on(close(&mut client, &full));
    let least = writer.acknowledged() + 100;
    writer.await_rows(&env, least);
    let options = doc! { "incrementalBackup": true, "thisBackupName": "tuesday", "srcBackupName": "monday" };
    let added = block_on(open(&mut client, options));
    assert!(added.files.iter().any(|file| number(file, "length") == 0), "{:?}", added.files);
    let difference = copy(&env, &source.0, &added.files, &target.0);
    block_on(close(&mut client, &added));
    assert!(difference < whole, "{difference} of {whole} bytes");
    writer.stop();
    let forget = block_on(open(&mut client, doc! { "disableIncrementalBackup": true }));
    assert!(forget.files.is_empty());
    block_on(close(&mut client, &forget));
    let unknown = doc! { "incrementalBackup": true, "thisBackupName": "w", "srcBackupName": "tuesday" };
    let refused = block_on(aggregate(&mut client, doc! { "$backupCursor": unknown }));
    assert_eq!(number(&refused, "ok"), 0, "{refused}");
    assert!(server.terminate());
    check_copy(&env, &target.0, least);
}

#[test]
fn x19_one_thing_at_a_time_keeps_the_files() {
    let env = Env::real();
    let source = Scratch::new(&env);
    let port = block_on(free_port(&env));
    let server = Server::start(&env, &source.0, port, &[]);
    block_on(async {
        let mut client = Client::connect(&env, &format!("127.0.0.1:{port}")).await.expect("the server listens");
        let code = |reply: &Doc| number(reply, "code");
        let cursor = open(&mut client, Doc::new()).await;
        assert_eq!(code(&aggregate(&mut client, doc! { "$backupCursor": {} }).await), 50886);
        let lock = doc! { "fsync": 1, "lock": true };
        assert_eq!(code(&client.ask_on("admin", &lock).await.expect("it works")), 50884);
        close(&mut client, &cursor).await;
        assert_eq!(number(&client.ask_on("admin", &lock).await.expect("it works"), "lockCount"), 1);
        assert_eq!(code(&aggregate(&mut client, doc! { "$backupCursor": {} }).await), 50887);
        client.ask_on("admin", &doc! { "fsyncUnlock": 1 }).await.expect("it works");
        let cursor = open(&mut client, Doc::new()).await;
        let id = pando_base::Uuid::from_random([7; 16]);
        let other = doc! { "backupId": (Value::Binary { subtype: 4, bytes: id.as_bytes() }), "timestamp": (Value::Timestamp(pando_base::Timestamp::new(1, 1))) };
        assert_eq!(code(&aggregate(&mut client, doc! { "$backupCursorExtend": other }).await), 51011);
        for (wrong, expected) in [
            (doc! { "$backupCursor": 1 }, 9),
            (doc! { "$backupCursor": { "nonsense": 1 } }, 40415),
            (doc! { "$backupCursor": { "incrementalBackup": true } }, 72),
            (doc! { "$backupCursor": { "thisBackupName": "a" } }, 72),
            (doc! { "$backupCursorExtend": {} }, 40414),
        ] {
            let reply = aggregate(&mut client, wrong.clone()).await;
            assert_eq!(code(&reply), expected, "{wrong}: {reply}");
        }
        let elsewhere = doc! { "aggregate": 1, "pipeline": [{ "$backupCursor": {} }], "cursor": {} };
        assert_eq!(code(&client.ask(&elsewhere).await.expect("it works")), 73);
        close(&mut client, &cursor).await;
        // What it wrote for itself is gone with it.
        assert_eq!(env.disk().list(&source.0.join("backup")).expect("it works"), Vec::<PathBuf>::new());
    });
    assert!(server.terminate());
}

/// Copies a directory with everything in it, as `cp -r` does.
fn copy_tree(from: &Path, to: &Path) {
    let done = std::process::Command::new("cp").arg("-r").arg(format!("{}/.", from.display())).arg(to).status();
    assert!(done.is_ok_and(|status| status.success()));
}

#[test]
fn x19_a_copy_made_under_fsync_lock_opens_also_for_reading_only() {
    let env = Env::real();
    let (source, target) = (Scratch::new(&env), Scratch::new(&env));
    let port = block_on(free_port(&env));
    let address = format!("127.0.0.1:{port}");
    let server = Server::start(&env, &source.0, port, &[]);
    let mut client = block_on(Client::connect(&env, &address)).expect("the server listens");
    block_on(prepare(&mut client));
    let mut writer = Writer::start(&env, &address);
    writer.await_rows(&env, 200);
    let locked = block_on(client.ask_on("admin", &doc! { "fsync": 1, "lock": true })).expect("the server is there");
    assert_eq!(number(&locked, "lockCount"), 1, "{locked}");
    let least = writer.acknowledged();
    copy_tree(&source.0, &target.0);
    assert!(writer.acknowledged() <= least + 1, "nothing is acknowledged under the lock");
    block_on(client.ask_on("admin", &doc! { "fsyncUnlock": 1 })).expect("the server is there");
    writer.await_rows(&env, least + 50);
    writer.stop();
    assert!(server.terminate());
    let port = block_on(free_port(&env));
    let reading = Server::start(&env, &target.0, port, &["--queryableBackupMode"]);
    block_on(async {
        let mut client = Client::connect(&env, &format!("127.0.0.1:{port}")).await.expect("the server listens");
        // It is as of the checkpoint that the lock took.
        let (first, second) = (ids(&mut client, "first").await, ids(&mut client, "second").await);
        assert!(second.is_subset(&first) && first.len() - second.len() <= 1 && !second.is_empty());
        let refused = client.ask(&doc! { "insert": "first", "documents": [{}] }).await.expect("it works");
        assert_eq!(number(&refused, "n"), 0, "{refused}");
    });
    assert!(reading.terminate());
    check_copy(&env, &target.0, least);
}
