//! Damage to a real data directory, file by file, and `pando repair` afterwards: it ends, says what is lost, a node starts, what is
//! not damaged is there, and every collection is valid.

mod support;

use pando_doc::{Doc, DocBuilder, Value, doc};
use pando_env::{Env, OpenMode};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use support::{Client, Scratch, Server, block_on, free_port, number};

const COLLECTIONS: [(&str, i64); 3] = [("birch", 3000), ("aspen", 1000), ("cedar", 200)];

/// What can happen to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Damage {
    Truncated,
    ZeroedBlock,
    FlippedBytes,
    Deleted,
}

const DAMAGES: [Damage; 4] = [Damage::Truncated, Damage::ZeroedBlock, Damage::FlippedBytes, Damage::Deleted];

impl Damage {
    fn inflict(self, env: &Env, path: &Path) {
        if self == Damage::Deleted {
            return env.disk().remove(path).expect("it is there");
        }
        let file = env.disk().open(path, OpenMode::ReadWrite).expect("it is there");
        let length = file.length().expect("a length");
        match self {
            Damage::Truncated => file.set_length(length / 2).expect("it is cut"),
            Damage::ZeroedBlock => {
                let start = (length / 2) & !4095;
                let zeros = vec![0; usize::try_from((length - start).min(4096)).expect("small")];
                file.write_at(&zeros, start).expect("it is written");
            }
            Damage::FlippedBytes => {
                for place in [length / 5, length / 3, length / 2, length * 3 / 4] {
                    let mut byte = [0];
                    file.read_exact_at(&mut byte, place).expect("it is read");
                    file.write_at(&[byte[0] ^ 0x55], place).expect("it is written");
                }
            }
            Damage::Deleted => {}
        }
    }
}

fn copy_tree(from: &Path, to: &Path) {
    let done = Command::new("cp").arg("-r").arg(format!("{}/.", from.display())).arg(to).status();
    assert!(done.is_ok_and(|status| status.success()));
}

/// The files of the store itself.
fn files(env: &Env, directory: &Path) -> Vec<PathBuf> {
    let parts = ["base", "log"].into_iter().flat_map(|part| env.disk().list(&directory.join(part)).expect("a part"));
    parts.collect()
}

fn row(collection: &str, id: i64) -> Doc {
    let text = format!("{collection} {:08}", id * 7919 % 100_003);
    doc! { "_id": id, "text": text, "tags": [(id % 7), (id % 11)], "number": (id * 2) }
}

async fn fill(client: &mut Client, collection: &str, ids: std::ops::Range<i64>) {
    let rows: Vec<Doc> = ids.map(|id| row(collection, id)).collect();
    for rows in rows.chunks(500) {
        let mut insert = DocBuilder::new();
        insert.append("insert", collection);
        insert.array("documents", |array| rows.iter().for_each(|row| array.push(row)));
        client.ok(insert.finish()).await;
    }
}

/// Makes the store that is damaged: some of it in runs, some in the log alone.
fn make(env: &Env, directory: &Path, more: &[&str], is_killed: bool) {
    let port = block_on(free_port(env));
    let words: Vec<&str> = more.iter().copied().chain(["--syncdelay", "0"]).collect();
    let server = Server::start(env, directory, port, &words);
    block_on(async {
        let mut client = Client::connect(env, &format!("127.0.0.1:{port}")).await.expect("the server listens");
        for (collection, count) in COLLECTIONS {
            let indexes = doc! { "createIndexes": collection, "indexes": [
                { "key": { "text": 1 }, "name": "text", "unique": true }, { "key": { "tags": 1, "number": -1 }, "name": "tags" },
            ] };
            client.ok(indexes).await;
            fill(&mut client, collection, 0..count / 2).await;
        }
        client.ask_on("admin", &doc! { "fsync": 1 }).await.expect("the server is there");
        for (collection, count) in COLLECTIONS {
            fill(&mut client, collection, count / 2..count).await;
        }
        client.ok(doc! { "create": "seen", "viewOn": "birch", "pipeline": [] }).await;
        client.ask_on("admin", &doc! { "ping": 1, "writeConcern": { "j": true } }).await.expect("the server is there");
        client
            .ok(doc! { "insert": "cedar", "documents": [{ "_id": -1, "text": "last" }], "writeConcern": { "j": true } })
            .await;
    });
    if is_killed { drop(server) } else { assert!(server.terminate()) }
}

/// Repairs; what it says.
fn repair(directory: &Path) -> String {
    let mut command = Command::new(support::binary());
    let ended = command.arg("repair").arg("--dbpath").arg(directory).stdin(Stdio::null()).output().expect("it runs");
    let told = format!("{}{}", String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert!(ended.status.success(), "{told}");
    told
}

/// What a node finds after the repair: how many of the documents that were there, by collection, orphans among them.
fn found(env: &Env, directory: &Path, more: &[&str], what: &str) -> BTreeMap<String, i64> {
    let port = block_on(free_port(env));
    let server = Server::start(env, directory, port, more);
    let counts = block_on(async {
        let mut client = Client::connect(env, &format!("127.0.0.1:{port}")).await.expect("the server listens");
        let mut counts = BTreeMap::new();
        for database in ["admin", "config", "local", support::DATABASE] {
            let listed = doc! { "listCollections": 1, "filter": { "type": "collection" }, "nameOnly": true };
            let reply = client.ask_on(database, &listed).await.expect("the server is there");
            for listed in support::batch(&reply, "firstBatch").1 {
                let name = listed.get("name").and_then(|name| name.as_str()).expect("a name").to_owned();
                if name == "oplog.rs" {
                    continue;
                }
                let validate = doc! { "validate": (name.as_str()), "full": true };
                let report = client.ask_on(database, &validate).await.expect("the server is there");
                assert_eq!(report.get("valid"), Some(Value::Bool(true)), "{what}: {report}");
                if database == support::DATABASE || name.starts_with("orphan.") {
                    // An orphan may be one of the node's own collections.
                    let ours = doc! { "$or": [{ "text": { "$exists": true } }, { "pipeline": { "$exists": true } }] };
                    let count = doc! { "count": (name.as_str()), "query": ours };
                    let count = client.ask_on(database, &count).await.expect("a count");
                    counts.insert(name, number(&count, "n"));
                }
            }
        }
        for (collection, _) in COLLECTIONS {
            for found in client.all(collection, doc! { "find": collection }).await {
                let id = number(&found, "_id");
                assert!(id < 0 || found == row(collection, id), "{what}: {found}");
            }
        }
        client.ok(doc! { "insert": "after", "documents": [{ "_id": 1 }] }).await;
        counts
    });
    assert!(server.terminate());
    counts
}

fn check_every_file(more: &[&str], is_killed: bool) {
    let env = Env::real();
    let source = Scratch::new(&env);
    make(&env, &source.0, more, is_killed);
    // One that was written last, and the view.
    let expected: i64 = COLLECTIONS.iter().map(|(_, count)| count).sum::<i64>() + 2;
    let mut told = String::new();
    for path in files(&env, &source.0) {
        let name = path.strip_prefix(&source.0).expect("below").to_owned();
        for damage in DAMAGES {
            let copy = Scratch::new(&env);
            copy_tree(&source.0, &copy.0);
            damage.inflict(&env, &copy.0.join(&name));
            let what = format!("{} {damage:?}", name.display());
            let said = repair(&copy.0);
            let counts = found(&env, &copy.0, more, &what);
            let here: i64 = counts.values().sum();
            told.push_str(&format!("{what}: {here} of {expected}\n"));
            assert!(here <= expected, "{what}: {counts:?}");
            // What is lost is told.
            assert!(
                here == expected || said.contains("damaged: ") || said.contains("lost"),
                "{what}: {counts:?} {said}"
            );
            // What says where things are holds no documents: nothing that was acknowledged goes with it.
            let is_guide = ["CURRENT", "MANIFEST"].iter().any(|part| name.display().to_string().contains(part));
            assert!(!is_guide || here == expected, "{what}: {counts:?} {said}");
            let again = repair(&copy.0);
            assert!(again.contains("was damaged."), "{what}: {again}");
        }
    }
    println!("{told}");
}

#[test]
fn x16_every_damaged_file_of_a_node_that_stood_alone_is_repaired() {
    check_every_file(&["--standalone"], false);
}

#[test]
fn x16_every_damaged_file_of_a_killed_member_is_repaired() {
    check_every_file(&[], true);
}

#[test]
fn x16_a_repair_that_did_not_end_keeps_nodes_from_starting() {
    let env = Env::real();
    let source = Scratch::new(&env);
    make(&env, &source.0, &["--standalone"], false);
    drop(env.disk().open(&source.0.join("_repair_incomplete"), OpenMode::CreateNew).expect("a new file"));
    let started = Command::new(support::binary()).arg("--dbpath").arg(&source.0).output().expect("it runs");
    let told = String::from_utf8_lossy(&started.stderr).into_owned();
    assert!(!started.status.success() && told.contains("incomplete repair"), "{told}");
    assert!(repair(&source.0).contains("was damaged."));
    assert_eq!(found(&env, &source.0, &["--standalone"], "").get("birch"), Some(&3000));
}
