//! A real server on a real disk, and a client that speaks to it over the wire.

#![allow(dead_code, reason = "each test uses its part")]

use bytes::Bytes;
use pando_doc::{Doc, DocBuilder, doc};
use pando_env::{Connection, Env};
use pando_wire::{Compressors, MsgFlags, Reply, RequestBuilder};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Where clients work unless they say otherwise.
pub const DATABASE: &str = "kill";

/// Names the server that is tested: `PANDO_BINARY`, or else the one that was built with the tests.
pub fn binary() -> PathBuf {
    std::env::var_os("PANDO_BINARY").map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_pando")), PathBuf::from)
}

/// A directory that is removed with everything in it, unless the test failed.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new(env: &Env) -> Scratch {
        let name = format!("server-{:016x}", env.random().next_u64());
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        env.disk().create_directory(&directory).expect("a directory");
        Scratch(directory)
    }
}

impl Drop for Scratch {
    #[allow(clippy::disallowed_methods, reason = "the directory is on the real disk")]
    fn drop(&mut self) {
        match std::thread::panicking() {
            true => eprintln!("the data is left in {}", self.0.display()),
            false => drop(std::fs::remove_dir_all(&self.0)),
        }
    }
}

/// A server, killed when dropped.
pub struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Server {
    pub fn spawn(directory: &Path, port: u16, more: &[&str]) -> Server {
        let child = Command::new(binary())
            .arg("--dbpath")
            .arg(directory)
            .args(["--port", &port.to_string(), "--bind_ip", "127.0.0.1", "--syncdelay", "0.1"])
            .args(more)
            .stdout(Stdio::piped())
            .spawn();
        Server(child.expect("the server's process"))
    }

    pub fn start(env: &Env, directory: &Path, port: u16, more: &[&str]) -> Server {
        let mut server = Server::spawn(directory, port, more);
        server.await_listening(env);
        server
    }

    /// Tells it to end, and waits until it has; true if it says that all is well.
    pub fn terminate(mut self) -> bool {
        let told = Command::new("kill").args(["-TERM", &self.0.id().to_string()]).status();
        assert!(told.is_ok_and(|status| status.success()));
        self.0.wait().is_ok_and(|status| status.success())
    }

    /// Waits until it listens.
    fn await_listening(&mut self, env: &Env) {
        let output = self.0.stdout.take().expect("a pipe");
        let (sender, receiver) = mpsc::channel();
        let read = move || {
            let mut lines = BufReader::new(output).lines();
            let mut log = Vec::new();
            for line in lines.by_ref().map_while(Result::ok) {
                let is_ready = line.contains("is listening on");
                log.push(line);
                if is_ready {
                    break;
                }
            }
            let _ = sender.send(log);
            // The pipe must not fill up.
            lines.for_each(drop);
        };
        let _reader = env.tasks().spawn_thread("server's log", Box::new(read)).expect("a thread");
        let log = receiver.recv_timeout(Duration::from_secs(120)).expect("the server starts");
        let is_ready = log.last().is_some_and(|line| line.contains("is listening on"));
        assert!(is_ready, "the server ended: {log:#?}");
    }
}

pub struct Client {
    stream: Box<dyn Connection>,
    last_id: i32,
}

impl Client {
    pub async fn connect(env: &Env, address: &str) -> Option<Client> {
        let stream = env.network().connect(address).await.ok()?;
        Some(Client { stream, last_id: 0 })
    }

    /// The reply; none if the server is gone.
    pub async fn ask(&mut self, body: &Doc) -> Option<Doc> {
        self.ask_on(DATABASE, body).await
    }

    pub async fn ask_on(&mut self, database: &str, body: &Doc) -> Option<Doc> {
        let mut whole = DocBuilder::new();
        whole.append_all(body.view());
        whole.append("$db", database);
        self.last_id += 1;
        let request = RequestBuilder::new(MsgFlags::NONE, Vec::new()).body(whole.finish().view());
        let message = request.finish(self.last_id, None).expect("a request");
        self.stream.write_all(&message).await.ok()?;
        let mut length = [0; 4];
        self.stream.read_exact(&mut length).await.ok()?;
        let mut message = vec![0; i32::from_le_bytes(length) as usize];
        message[..4].copy_from_slice(&length);
        self.stream.read_exact(&mut message[4..]).await.ok()?;
        let reply = Reply::decode(Bytes::from(message), &Compressors::all()).expect("a reply");
        Some(reply.body().to_doc())
    }

    /// The reply of a server that is there, which must say yes.
    pub async fn ok(&mut self, body: Doc) -> Doc {
        let reply = self.ask(&body).await.unwrap_or_else(|| panic!("the server is gone at {body}"));
        assert_eq!(number(&reply, "ok"), 1, "{body}: {reply}");
        reply
    }

    /// All documents of a cursor.
    pub async fn all(&mut self, collection: &str, body: Doc) -> Vec<Doc> {
        let reply = self.ok(body).await;
        let (mut id, mut found) = batch(&reply, "firstBatch");
        while id != 0 {
            let reply = self.ok(doc! { "getMore": id, "collection": collection }).await;
            let (next, more) = batch(&reply, "nextBatch");
            id = next;
            found.extend(more);
        }
        found
    }
}

pub fn number(document: &Doc, name: &str) -> i64 {
    let value = document.get(name).and_then(|value| value.as_number());
    value.map(|number| number.truncated_i64()).unwrap_or_else(|| panic!("no number {name}: {document}"))
}

pub fn batch(reply: &Doc, name: &str) -> (i64, Vec<Doc>) {
    let cursor = reply.get("cursor").and_then(|cursor| cursor.as_document()).expect("a cursor").to_doc();
    let array = cursor.get(name).and_then(|batch| batch.as_array()).expect("a batch");
    let documents = array.values().filter_map(|value| value.as_document()).map(|found| found.to_doc()).collect();
    (number(&cursor, "id"), documents)
}

/// A port that nobody has.
pub async fn free_port(env: &Env) -> u16 {
    let listener = env.network().listen("127.0.0.1:0").await.expect("a free port");
    listener.local_address().expect("an address").internet().expect("a port").port()
}

/// Runs it to its end. A thread has one runtime, so that connections outlive a call.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    thread_local! {
        static RUNTIME: tokio::runtime::Runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    }
    RUNTIME.with(|runtime| runtime.block_on(future))
}
