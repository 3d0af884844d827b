//! A whole node on the simulated network, asked over the wire.

mod apply_ops;
mod byte_limits;
mod cache_pressure;
mod catalog;
mod change_streams;
mod cluster_fields;
mod commands;
mod concurrency;
mod crud;
mod engine_events;
mod fail_command;
mod field_types;
mod fsync_lock;
mod garbage;
mod given_plans;
mod handshake;
mod insert_times;
mod internal_transactions;
mod isolation;
mod knobs;
mod life;
mod metrics_page;
mod node;
mod planning;
mod prepared;
mod repair;
mod replication;
mod resources;
mod scripts;
mod security;
mod sessions;
mod settings;
mod stable_api;
mod stages;
mod testing_commands;
mod text_search;
mod timeseries;
mod timeseries_order;
mod timeseries_places;
mod transactions;
mod ttl;
mod watch;

use crate::{LogTarget, ProcessControl, ReplicationMode, Server, ServerOptions};
use bytes::Bytes;
use pando_base::{Log, LogLine};
use pando_doc::{Doc, doc};
use pando_env::simulated::{SimulatedMachine, Simulation};
use pando_env::{Connection, Env};
use pando_net::NetOptions;
use pando_storage::Engine;
use pando_wire::{Compressors, MsgFlags, Reply, RequestBuilder};
use std::future::Future;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const ADDRESS: &str = "node1:27017";

/// Lines that nobody reads.
struct Nowhere;

impl LogTarget for Nowhere {
    fn write(&self, _: &LogLine, _: &str) {}
}

struct Fixture {
    simulation: Simulation,
    env: Env,
    server: Arc<Server>,
    control: Arc<ProcessControl>,
}

fn options(replication: ReplicationMode) -> ServerOptions {
    ServerOptions {
        net: NetOptions { addresses: vec![ADDRESS.into()], ..NetOptions::default() },
        replication,
        parameters: vec![("enableTestCommands".into(), "1".into())],
        arguments: vec!["mongod".into(), "--replSet".into(), "x".into()],
        parsed: doc! { "replication": { "replSet": "x" } },
        runs_tasks: false,
        ..ServerOptions::default()
    }
}

async fn start_with(options: ServerOptions) -> Fixture {
    start_on(None, options).await
}

async fn start_on(engine: Option<Arc<dyn Engine>>, options: ServerOptions) -> Fixture {
    // A node that starts again does not draw the numbers of its life before: ids of collections would come twice.
    let written = engine.as_ref().and_then(|engine| engine.oplog()?.last()).map_or(0, |last| last.0);
    let simulation = Simulation::new(written.wrapping_add(3));
    let env = simulation.env();
    let control = Arc::new(ProcessControl::new(Arc::new(Nowhere)));
    let machine = Arc::new(SimulatedMachine::new("node1"));
    let log = Log::silent();
    let server = Server::start(&env, machine, engine, options, log, Arc::clone(&control)).await.unwrap();
    Fixture { simulation, env, server: Arc::new(server), control }
}

async fn start() -> Fixture {
    start_with(options(ReplicationMode::StandAlone)).await
}

impl Fixture {
    async fn connect(&self) -> Client {
        Client { stream: self.env.network().connect(ADDRESS).await.unwrap(), last_id: 0 }
    }
}

struct Client {
    stream: Box<dyn Connection>,
    last_id: i32,
}

impl Client {
    async fn send(&mut self, flags: MsgFlags, body: &Doc) {
        self.last_id += 1;
        let message = RequestBuilder::new(flags, Vec::new()).body(body.view()).finish(self.last_id, None).unwrap();
        self.send_bytes(&message).await;
    }

    async fn send_bytes(&mut self, message: &[u8]) {
        self.stream.write_all(message).await.unwrap();
    }

    async fn read(&mut self) -> Option<Reply> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length).await.ok()?;
        let mut message = vec![0; i32::from_le_bytes(length) as usize];
        message[..4].copy_from_slice(&length);
        self.stream.read_exact(&mut message[4..]).await.ok()?;
        Some(Reply::decode(Bytes::from(message), &Compressors::all()).unwrap())
    }

    /// The reply to a command; none if the connection was closed.
    async fn try_ask(&mut self, body: Doc) -> Option<Doc> {
        self.send(MsgFlags::NONE, &body).await;
        self.read().await.map(|reply| reply.body().to_doc())
    }

    async fn ask(&mut self, body: Doc) -> Doc {
        self.try_ask(body).await.expect("the connection stays open")
    }

    /// Asks on the database "admin" and expects success.
    async fn admin(&mut self, body: Doc) -> Doc {
        let reply = self.ask(node::with_database(&body, "admin")).await;
        assert_eq!(number(&reply, "ok"), 1.0, "{reply:?}");
        reply
    }

    /// Asks and expects this error.
    async fn expect_error(&mut self, body: Doc, code: i32, reason: &str) -> Doc {
        let reply = self.ask(body).await;
        assert_eq!((number(&reply, "code"), text(&reply, "errmsg")), (f64::from(code), reason.to_owned()), "{reply:?}");
        assert_eq!(number(&reply, "ok"), 0.0);
        reply
    }
}

fn number(document: &Doc, name: &str) -> f64 {
    document.get(name).and_then(|value| value.to_double()).unwrap_or_else(|| panic!("no number {name}: {document:?}"))
}

fn text(document: &Doc, name: &str) -> String {
    document.get(name).and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
}
