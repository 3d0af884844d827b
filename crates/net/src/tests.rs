//! A node on the simulated network that echoes, and clients that behave well or badly.

mod places;

use super::*;
use bytes::Bytes;
use pando_base::Log;
use pando_doc::{Doc, DocRef, Value, doc};
use pando_env::simulated::Simulation;
use pando_env::{BoxedFuture, Connection, Env, Place};
use pando_wire::limits::MESSAGE_SIZE_BYTES_MAX;
use pando_wire::{Command, Compressors, MsgFlags, Refusal, Reply, ReplyBuilder, RequestBuilder};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;

const ADDRESS: &str = "node1:27017";
/// What clients may send that are not known.
const STRANGERS_BYTES_MAX: usize = 16 * 1024;

/// Echoes the body. `login: 1` waits for [`Echo::release`], and then nobody is a stranger any more.
/// `stream: n` streams n more replies; `hang: 1` waits for [`Echo::release`]; `close: 1` closes.
#[derive(Default)]
struct Echo {
    release: Notify,
    abandoned: AtomicUsize,
    closed: AtomicUsize,
    is_stranger: AtomicBool,
}

impl Echo {
    fn replied(request: Request, more: bool, next: Next) -> Response {
        let Request { command, buffer, reply_id } = request;
        let mut reply = ReplyBuilder::new(command.reply_to(), buffer);
        reply.body().append("echo", command.body());
        let logical_bytes = reply.body().size_bytes();
        let message = (!command.is_fire_and_forget()).then(|| reply.finish(reply_id, more).unwrap());
        Response { message, logical_bytes, next }
    }
}

/// Shared with the test, which steers it.
struct Shared(Arc<Echo>);

impl RequestHandler for Shared {
    type Connection = i64;

    fn connected(&self, peer: Peer) -> i64 {
        peer.connection_id
    }

    fn message_size_bytes_max(&self, _: &i64) -> usize {
        match self.0.is_stranger.load(Ordering::Relaxed) {
            true => STRANGERS_BYTES_MAX,
            false => MESSAGE_SIZE_BYTES_MAX,
        }
    }

    fn kind(&self, _: &Command) -> RequestKind {
        RequestKind { number: 0, place: Place::Requests }
    }

    fn handle(&self, _: &i64, request: Request) -> BoxedFuture<'static, Response> {
        let echo = Arc::clone(&self.0);
        Box::pin(async move {
            let body: Doc = request.command.body().to_doc();
            if body.get("login").is_some() {
                echo.release.notified().await;
                echo.is_stranger.store(false, Ordering::Relaxed);
            }
            if body.get("hang").is_some() {
                echo.release.notified().await;
            }
            match body.get("stream") {
                Some(Value::Int32(left)) if left > 0 && request.command.allows_exhaust() => {
                    let next = Next::Again(doc! { "ping": 1, "stream": left - 1, "$db": "x" });
                    Echo::replied(request, true, next)
                }
                _ if body.get("close").is_some() => Echo::replied(request, false, Next::Close),
                _ => Echo::replied(request, false, Next::Read),
            }
        })
    }

    fn refused(&self, _: &i64, refusal: &Refusal, buffer: Vec<u8>, reply_id: i32) -> Response {
        let to = pando_wire::ReplyTo {
            request_id: refusal.header.unwrap().request_id,
            protocol: pando_wire::Protocol::Msg,
            checksum: false,
            compressor: None,
        };
        let mut reply = ReplyBuilder::new(to, buffer);
        reply.body().append("code", refusal.error.code().number());
        let message = reply.finish(reply_id, false).unwrap();
        Response { logical_bytes: message.len(), message: Some(message), next: Next::Read }
    }

    fn abandoned(&self, _: &i64) {
        self.0.abandoned.fetch_add(1, Ordering::Relaxed);
        self.0.release.notify_one();
    }

    fn closed(&self, _: &i64) {
        self.0.closed.fetch_add(1, Ordering::Relaxed);
    }
}

struct Fixture {
    env: Env,
    net: Net<Shared>,
    echo: Arc<Echo>,
    connections: Arc<ConnectionCounters>,
    network: Arc<NetworkCounters>,
}

async fn fixture(connections_max: u64) -> Fixture {
    let env = Simulation::new(1).env();
    let echo = Arc::new(Echo::default());
    let options = NetOptions {
        addresses: vec![ADDRESS.into()],
        connections_max,
        compressors: Compressors::all(),
        ..NetOptions::default()
    };
    let (connections, network) = (Arc::new(ConnectionCounters::default()), Arc::new(NetworkCounters::default()));
    let handler = Shared(Arc::clone(&echo));
    let listening = Net::listen(&env, &options, handler, None, Log::silent(), connections.clone(), network.clone());
    let net = listening.await.unwrap();
    Fixture { env, net, echo, connections, network }
}

impl Fixture {
    async fn connect(&self) -> Box<dyn Connection> {
        self.env.network().connect(ADDRESS).await.unwrap()
    }
}

fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(test);
}

fn message(flags: MsgFlags, body: &Doc, id: i32) -> Vec<u8> {
    RequestBuilder::new(flags, Vec::new()).body(body.view()).finish(id, None).unwrap()
}

async fn read_reply(stream: &mut dyn Connection) -> Option<Reply> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).await.ok()?;
    let mut message = vec![0; i32::from_le_bytes(length) as usize];
    message[..4].copy_from_slice(&length);
    stream.read_exact(&mut message[4..]).await.ok()?;
    Some(Reply::decode(Bytes::from(message), &Compressors::all()).unwrap())
}

async fn ask(stream: &mut dyn Connection, body: &Doc) -> Option<Reply> {
    stream.write_all(&message(MsgFlags::NONE, body, 7)).await.ok()?;
    read_reply(stream).await
}

fn echoed(reply: &Reply) -> DocRef<'_> {
    reply.body().get("echo").unwrap().as_document().unwrap()
}

#[test]
fn u1_messages_are_answered_in_order_however_they_are_cut() {
    run(async {
        let fixture = fixture(10).await;
        let mut stream = fixture.connect().await;
        let bodies: Vec<Doc> = (0..50).map(|n| doc! { "ping": n, "pad": "x".repeat(n as usize * 97) }).collect();
        let bytes: Vec<u8> =
            bodies.iter().enumerate().flat_map(|(id, body)| message(MsgFlags::NONE, body, id as i32)).collect();
        let (mut reading, mut writing) = tokio::io::split(&mut *stream);
        let write = async {
            for (number, chunk) in bytes.chunks(1013).enumerate() {
                writing.write_all(chunk).await.unwrap();
                if number % 3 == 0 {
                    tokio::task::yield_now().await;
                }
            }
        };
        let read = async {
            for (id, body) in bodies.iter().enumerate() {
                let mut length = [0; 4];
                reading.read_exact(&mut length).await.unwrap();
                let mut message = vec![0; i32::from_le_bytes(length) as usize];
                message[..4].copy_from_slice(&length);
                reading.read_exact(&mut message[4..]).await.unwrap();
                let reply = Reply::decode(Bytes::from(message), &Compressors::all()).unwrap();
                assert_eq!((reply.header().response_to, echoed(&reply)), (id as i32, body.view()));
            }
        };
        tokio::join!(write, read);
        assert_eq!(fixture.network.requests.get(), 50);
        assert_eq!(fixture.network.bytes_in.get(), bytes.len() as u64);
    });
}

#[test]
fn u1_a_message_of_many_megabytes_comes_through() {
    run(async {
        let fixture = fixture(10).await;
        let mut stream = fixture.connect().await;
        let body = doc! { "ping": 1, "pad": "y".repeat(5 << 20) };
        let (mut reading, mut writing) = tokio::io::split(&mut *stream);
        let request = message(MsgFlags::NONE, &body, 1);
        let write = async { writing.write_all(&request).await.unwrap() };
        let mut reply = vec![0; request.len()];
        let read = async { reading.read_exact(&mut reply).await.map(|_| ()).unwrap() };
        tokio::join!(write, read);
        assert!(reply.iter().filter(|byte| **byte == b'y').count() > (5 << 20) - 100);
    });
}

#[test]
fn u1_more_to_come_gets_no_reply_and_exhaust_gets_many() {
    run(async {
        let fixture = fixture(10).await;
        let mut stream = fixture.connect().await;
        stream.write_all(&message(MsgFlags::MORE_TO_COME, &doc! { "silent": 1 }, 1)).await.unwrap();
        stream
            .write_all(&message(MsgFlags::EXHAUST_ALLOWED, &doc! { "ping": 1, "stream": 3, "$db": "x" }, 2))
            .await
            .unwrap();
        let mut answers_to = 2;
        for left in [3, 2, 1, 0] {
            let reply = read_reply(&mut *stream).await.unwrap();
            assert_eq!(echoed(&reply).get("stream"), Some(Value::Int32(left)));
            assert_eq!((reply.more_to_come(), reply.header().response_to), (left > 0, answers_to));
            answers_to = reply.header().request_id;
        }
        assert!(ask(&mut *stream, &doc! { "ping": 1 }).await.is_some());
    });
}

#[test]
fn u1_bytes_without_sense_close_the_connection_and_nothing_else() {
    run(async {
        let fixture = fixture(10).await;
        let mut sound = fixture.connect().await;
        let huge = [&48_000_001_i32.to_le_bytes()[..], &[0; 12]].concat();
        let tiny = [&15_i32.to_le_bytes()[..], &[0; 12]].concat();
        let mut wrong_sum = message(MsgFlags::CHECKSUM_PRESENT, &doc! { "ping": 1 }, 1);
        *wrong_sum.last_mut().unwrap() ^= 1;
        for garbage in [&b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..], &huge, &tiny, &[0xff; 64], &wrong_sum] {
            let mut stream = fixture.connect().await;
            stream.write_all(garbage).await.unwrap();
            assert!(read_reply(&mut *stream).await.is_none());
        }
        let mut cut = fixture.connect().await;
        cut.write_all(&message(MsgFlags::NONE, &doc! { "ping": 1 }, 1)[..20]).await.unwrap();
        cut.shutdown().await.unwrap();
        assert!(read_reply(&mut *cut).await.is_none());
        assert!(ask(&mut *sound, &doc! { "ping": 1 }).await.is_some());
        let mut refused = message(MsgFlags::NONE, &doc! { "ping": 1 }, 9);
        refused[20] = 9;
        sound.write_all(&refused).await.unwrap();
        let reply = read_reply(&mut *sound).await.unwrap();
        assert_eq!((reply.body().get("code"), reply.header().response_to), (Some(Value::Int32(40432)), 9));
        assert!(ask(&mut *sound, &doc! { "ping": 1 }).await.is_some());
    });
}

#[test]
fn u1_a_compressed_request_gets_a_compressed_reply() {
    run(async {
        let fixture = fixture(10).await;
        let mut stream = fixture.connect().await;
        for compressor in NetworkCounters::COMPRESSORS {
            let body = doc! { "ping": 1, "pad": "z".repeat(10_000) };
            let request = RequestBuilder::new(MsgFlags::NONE, Vec::new()).body(body.view()).finish(1, Some(compressor));
            stream.write_all(&request.unwrap()).await.unwrap();
            assert_eq!(echoed(&read_reply(&mut *stream).await.unwrap()), body.view());
        }
        let network = &fixture.network;
        assert!(network.physical_bytes_in.get() < network.bytes_in.get() / 5);
        assert!(network.physical_bytes_out.get() < network.bytes_out.get() / 5);
        for counters in &network.compression {
            assert!(counters.compressor_out.get() < counters.compressor_in.get());
            assert!(counters.decompressor_in.get() < counters.decompressor_out.get());
        }
    });
}

#[test]
fn u1_who_has_not_logged_in_sends_short_messages_only() {
    run(async {
        let fixture = fixture(10).await;
        fixture.echo.is_stranger.store(true, Ordering::Relaxed);
        let padded = |length: usize| doc! { "ping": 1, "pad": "y".repeat(length) };
        let mut stream = fixture.connect().await;
        let longest = STRANGERS_BYTES_MAX - message(MsgFlags::NONE, &padded(0), 7).len();
        assert!(ask(&mut *stream, &padded(longest)).await.is_some());
        assert!(ask(&mut *stream, &padded(longest + 1)).await.is_none());
        // Only the header has to come.
        let mut stream = fixture.connect().await;
        stream.write_all(&message(MsgFlags::NONE, &padded(40 << 20), 7)[..16]).await.unwrap();
        assert!(read_reply(&mut *stream).await.is_none());
        let wrong_lengths = || {
            let network = &fixture.network;
            (network.wrong_lengths_before_login.get(), network.wrong_lengths_after_login.get())
        };
        assert_eq!(wrong_lengths(), (2, 0));
        for compressor in NetworkCounters::COMPRESSORS {
            let compressed = |body: &Doc| {
                let request = RequestBuilder::new(MsgFlags::NONE, Vec::new()).body(body.view());
                request.finish(7, Some(compressor)).unwrap()
            };
            let mut stream = fixture.connect().await;
            stream.write_all(&compressed(&padded(longest))).await.unwrap();
            assert!(read_reply(&mut *stream).await.is_some());
            let bomb = compressed(&padded(longest + 1));
            assert!(bomb.len() < STRANGERS_BYTES_MAX / 4, "it is short until it is decompressed");
            stream.write_all(&bomb).await.unwrap();
            assert!(read_reply(&mut *stream).await.is_none());
        }
    });
}

#[test]
fn u1_what_comes_behind_a_login_is_judged_after_it() {
    run(async {
        let fixture = fixture(10).await;
        fixture.echo.is_stranger.store(true, Ordering::Relaxed);
        let mut stream = fixture.connect().await;
        stream.write_all(&message(MsgFlags::NONE, &doc! { "login": 1 }, 1)).await.unwrap();
        let long = doc! { "ping": 1, "pad": "y".repeat(4 * STRANGERS_BYTES_MAX) };
        stream.write_all(&message(MsgFlags::NONE, &long, 2)).await.unwrap();
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert_eq!(fixture.echo.abandoned.load(Ordering::Relaxed), 0);
        fixture.echo.release.notify_one();
        assert!(echoed(&read_reply(&mut *stream).await.unwrap()).contains("login"));
        assert_eq!(echoed(&read_reply(&mut *stream).await.unwrap()), long.view());
    });
}

#[test]
fn u1_connections_beyond_the_limit_are_closed() {
    run(async {
        let fixture = fixture(2).await;
        let mut first = fixture.connect().await;
        let mut second = fixture.connect().await;
        for stream in [&mut first, &mut second] {
            assert!(ask(&mut **stream, &doc! { "ping": 1 }).await.is_some());
        }
        assert!(ask(&mut *fixture.connect().await, &doc! { "ping": 1 }).await.is_none());
        let counters = &fixture.connections;
        assert_eq!((counters.current.get(), counters.rejected.get(), counters.created.get()), (2, 1, 2));
        drop(first);
        while counters.current.get() == 2 {
            tokio::task::yield_now().await;
        }
        assert!(ask(&mut *fixture.connect().await, &doc! { "ping": 1 }).await.is_some());
    });
}

#[test]
fn a_client_that_goes_away_is_told_to_the_handler() {
    run(async {
        let fixture = fixture(10).await;
        let mut stream = fixture.connect().await;
        stream.write_all(&message(MsgFlags::NONE, &doc! { "hang": 1 }, 1)).await.unwrap();
        while fixture.connections.active.get() == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(fixture.echo.abandoned.load(Ordering::Relaxed), 0);
        drop(stream);
        while fixture.connections.current.get() != 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(fixture.echo.abandoned.load(Ordering::Relaxed), 1);
        assert_eq!(fixture.echo.closed.load(Ordering::Relaxed), 1);
        assert_eq!(fixture.connections.active.get(), 0);
    });
}

#[test]
fn u12_shutdown_closes_idle_connections_and_lets_busy_ones_finish() {
    run(async {
        let fixture = fixture(10).await;
        let (mut idle, mut busy) = (fixture.connect().await, fixture.connect().await);
        assert!(ask(&mut *idle, &doc! { "ping": 1 }).await.is_some());
        busy.write_all(&message(MsgFlags::NONE, &doc! { "hang": 1 }, 1)).await.unwrap();
        while fixture.connections.active.get() == 0 {
            tokio::task::yield_now().await;
        }
        let finish = async {
            assert!(read_reply(&mut *idle).await.is_none());
            fixture.echo.release.notify_one();
            assert!(read_reply(&mut *busy).await.is_some());
            assert!(read_reply(&mut *busy).await.is_none());
        };
        tokio::join!(fixture.net.shut_down(Duration::from_secs(10)), finish);
        assert_eq!(fixture.connections.current.get(), 0);
        assert!(fixture.env.network().connect(ADDRESS).await.is_err());
    });
}

#[test]
fn u12_shutdown_does_not_wait_for_ever() {
    run(async {
        let fixture = fixture(10).await;
        let mut busy = fixture.connect().await;
        busy.write_all(&message(MsgFlags::NONE, &doc! { "hang": 1 }, 1)).await.unwrap();
        while fixture.connections.active.get() == 0 {
            tokio::task::yield_now().await;
        }
        fixture.net.shut_down(Duration::from_secs(10)).await;
        assert!(read_reply(&mut *busy).await.is_none());
        assert_eq!((fixture.connections.current.get(), fixture.connections.active.get()), (0, 0));
    });
}
