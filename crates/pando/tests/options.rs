//! Options that promise what is not so: a node that is started with one does not start, or says in its log what is so instead.

mod support;

use pando_doc::{Doc, doc};
use pando_env::{Env, OpenMode};
use std::process::Command;
use support::{Client, Scratch, Server, block_on, free_port};

/// What a node says that does not start.
fn refusal(scratch: &Scratch, words: &[&str]) -> String {
    let ended = Command::new(support::binary()).arg("--dbpath").arg(&scratch.0).args(words).output();
    let ended = ended.expect("the program runs");
    let told = format!("{}{}", String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert!(!ended.status.success(), "{words:?}: it started: {told}");
    told
}

/// The lines of a log.
async fn lines(client: &mut Client, log: &str) -> String {
    let told = client.ask_on("admin", &doc! { "getLog": log }).await.expect("an answer");
    let lines = |told: &Doc| {
        let array = told.get("log").and_then(|lines| lines.as_array()).expect("lines");
        array.values().filter_map(|line| line.as_str().map(str::to_owned)).collect::<Vec<_>>().join("\n")
    };
    lines(&told)
}

/// A configuration file with this text.
fn file(scratch: &Scratch, name: &str, text: &str) -> String {
    let path = scratch.0.join(name);
    let file = Env::real().disk().open(&path, OpenMode::CreateNew).expect("a file");
    file.write_at(text.as_bytes(), 0).expect("its bytes");
    path.to_str().expect("a path that is text").to_owned()
}

#[test]
fn u12_starts_that_promise_what_cannot_be_had_are_refused() {
    let scratch = Scratch::new(&Env::real());
    let role = file(&scratch, "role.conf", "sharding: { clusterRole: shardsvr }");
    let journal = file(&scratch, "journal.conf", "storage: { journal: { enabled: false } }");
    let expand = file(&scratch, "expand.conf", "net: { port: { __exec: \"echo 27017\", trim: whitespace } }");
    let unknown = file(&scratch, "unknown.conf", "net: { port: { __exec: \"echo 27017\", how: loud } }");
    for (words, parts) in [
        (&["--nojournal"][..], &["storage.journal.disabled", "there is always a journal"][..]),
        (&["--config", &journal], &["storage.journal.enabled", "there is always a journal"]),
        (&["--shardsvr"], &["sharding.shardsvr", "sharding is not there yet"]),
        (&["--configsvr"], &["sharding.configsvr", "sharding is not there yet"]),
        (&["--config", &role], &["sharding.clusterRole", "shardsvr", "sharding is not there yet"]),
        (&["--enableMajorityReadConcern", "false"], &["replication.enableMajorityReadConcern", "always there"]),
        (&["--config", &expand], &["net.port.__exec support has not been enabled"]),
        (&["--config", &expand, "--configExpand", "everything"], &["Invalid value for --configExpand: 'everything'"]),
        (&["--config", &unknown, "--configExpand", "exec"], &["expansion block must contain only '__exec'"]),
    ] {
        let told = refusal(&scratch, words);
        for part in parts {
            assert!(told.contains(part), "{words:?}: {part:?} is not in: {told}");
        }
    }
}

#[test]
fn u12_starts_that_ask_for_what_is_not_so_say_what_is() {
    let env = Env::real();
    for (words, warning) in [
        (&["--directoryperdb"][..], Some(["storage.directoryPerDB", "the same files"])),
        (&["--wiredTigerCollectionBlockCompressor", "zlib"], Some(["blockCompressor", "chooses itself"])),
        (&["--wiredTigerEngineConfigString", "x=y"], Some(["engineConfig.configString", "another storage engine"])),
        (
            &["--setParameter", "recoverFromOplogAsStandalone=true"],
            Some(["recoverFromOplogAsStandalone", "always applies"]),
        ),
        (&["--setParameter", "numInitialSyncAttempts=3"], Some(["numInitialSyncAttempts", "one member"])),
        (&["--timeStampFormat", "iso8601-local"], Some(["systemLog.timeStampFormat", "universal time"])),
        (&["--journal", "--objcheck", "--enableMajorityReadConcern", "true"], None),
        (&["--quiet", "--networkMessageCompressors", "disabled"], None),
    ] {
        block_on(async {
            let scratch = Scratch::new(&env);
            let port = free_port(&env).await;
            let server = Server::start(&env, &scratch.0, port, words);
            let mut client = Client::connect(&env, &format!("127.0.0.1:{port}")).await.expect("it listens");
            let told = lines(&mut client, "startupWarnings").await;
            match warning {
                Some(parts) => {
                    for part in parts {
                        assert!(told.contains(part), "{words:?}: {part:?} is not in: {told}");
                    }
                }
                None => assert!(!told.contains("no effect"), "{words:?}: {told}"),
            }
            let log = lines(&mut client, "global").await;
            assert!(log.contains("Storage engine opened"), "the engine tells that it is open: {log}");
            // Whoever wants quiet hears nothing of clients that come and go.
            assert_eq!(log.contains("Connection accepted"), !words.contains(&"--quiet"), "{words:?}: {log}");
            assert!(server.terminate());
        });
    }
}
