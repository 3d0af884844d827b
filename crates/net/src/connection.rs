//! The life of one connection.
//!
//! Read a message, have it answered, write the answer, and again. While a request is being served the socket is watched,
//! so that the handler hears when nobody waits for the answer any more.
//!
//! A connection begins with what has to be answered whatever else goes on: those that only ask how the node is stay there for
//! all their life. With its first request of another kind it moves to the requests, for good. What encryption costs in the beginning
//! is done there as well.

use crate::answer::Answer;
use crate::books::{Books, Counted};
use crate::buffers::BufferPool;
use crate::counters::{ConnectionCounters, NetworkCounters};
use crate::handler::{Next, Peer, Request, RequestHandler, Response};
use crate::reader::MessageReader;
use crate::stop::Stop;
use crate::tls::{Accepted, Tls};
use bytes::Bytes;
use pando_base::{Component, ErrorCode, Log, Severity, log};
use pando_doc::Doc;
use pando_env::{Connection, Env, Place};
use pando_wire::{
    Command, Compressor, Compressors, MsgFlags, Reaction, Refusal, RequestBuilder, legacy_failure, unpacked_bytes,
};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::task::Poll;
use tokio::sync::oneshot;

/// To read a message of more than this takes longer than to have it read by another thread, and so does whatever it asks for.
const LARGE_BYTES: usize = 1 << 20;

/// What all connections share.
pub(crate) struct Shared<H> {
    pub(crate) env: Env,
    pub(crate) books: Arc<Books>,
    pub(crate) handler: H,
    pub(crate) tls: Option<Arc<Tls>>,
    pub(crate) log: Log,
    pub(crate) stop: Stop,
    pub(crate) connections: Arc<ConnectionCounters>,
    pub(crate) network: Arc<NetworkCounters>,
    pub(crate) compressors: Compressors,
    pub(crate) buffers: BufferPool,
    pub(crate) last_reply_id: AtomicI32,
}

/// A connection that was accepted.
pub(crate) struct Arrival {
    pub(crate) stream: Box<dyn Connection>,
    pub(crate) peer: Peer,
    pub(crate) counted: Counted,
}

/// One connection at work.
struct Conversation<H: RequestHandler> {
    shared: Arc<Shared<H>>,
    connection: H::Connection,
    stream: Box<dyn Connection>,
    reader: MessageReader,
    connection_id: i64,
    /// How people know the client.
    name: String,
    /// Read where the connection began, to be answered with the requests.
    unanswered: Option<Decoded>,
    /// The command that last took long, by its number: the next of its kind begins on a lane.
    long_command: Option<usize>,
    counted: Counted,
}

/// A message, as far as it could be read.
struct Decoded {
    command: Result<Command, Refusal>,
    physical_bytes: usize,
}

/// What came of a message.
struct Answered {
    next: Next,
    reply_id: i32,
    compressor: Option<Compressor>,
}

/// Why a connection ends before the client closes it.
enum End {
    /// The client closed, or it was time.
    Done,
    /// The socket failed.
    Broken,
}

/// What comes of a conversation.
enum Outcome {
    /// It is over.
    Over,
    /// It goes on with the requests.
    Moves,
}

/// Serves a connection to its end.
pub(crate) fn serve<H: RequestHandler>(shared: Arc<Shared<H>>, arrival: Arrival) {
    if shared.tls.is_none() {
        let Arrival { stream, peer, counted } = arrival;
        return begin(shared, Accepted { stream, subject: None }, peer, counted);
    }
    let env = shared.env.clone();
    let task = async move {
        let Arrival { mut stream, peer, counted } = arrival;
        if stream.move_here().is_err() {
            return;
        }
        let agreed = {
            let _registered = shared.stop.register().await;
            agreed(&shared, stream, peer.connection_id).await
        };
        match agreed {
            Some(accepted) => begin(shared, accepted, peer, counted),
            None => ended(&shared.log, peer.connection_id, &peer.remote.to_string(), &shared.connections, counted),
        }
    };
    start(&env, Place::Requests, task);
}

/// Agrees on encryption with the client; none if that failed or the node ends.
async fn agreed<H>(shared: &Shared<H>, stream: Box<dyn Connection>, connection_id: i64) -> Option<Accepted> {
    let Some(tls) = &shared.tls else { return Some(Accepted { stream, subject: None }) };
    let accepted = tokio::select! {
        biased;
        () = shared.stop.stopped() => return None,
        accepted = tls.accept(stream) => accepted,
    };
    match accepted {
        Ok(accepted) => Some(accepted),
        Err(error) => {
            let log = shared.log.with_context(format!("conn{connection_id}"));
            let message = "Error receiving request from client. Ending connection from remote";
            log!(log, Severity::Info, Component::Network, 22988, message, "error" = &error);
            None
        }
    }
}

/// Begins the conversation.
fn begin<H: RequestHandler>(shared: Arc<Shared<H>>, accepted: Accepted, peer: Peer, counted: Counted) {
    let Accepted { stream, subject } = accepted;
    let (connection_id, name) = (peer.connection_id, peer.remote.to_string());
    let connection = shared.handler.connected(Peer { certificate_subject: subject, ..peer });
    let reader = MessageReader::default();
    talk(
        Place::Control,
        Conversation {
            shared,
            connection,
            stream,
            reader,
            connection_id,
            name,
            unanswered: None,
            long_command: None,
            counted,
        },
    );
}

/// Goes on with a conversation at a place, until it is over or moves.
fn talk<H: RequestHandler>(place: Place, mut conversation: Conversation<H>) {
    let env = conversation.shared.env.clone();
    let task = async move {
        if let Outcome::Moves = conversation.run().await {
            return talk(Place::Requests, conversation);
        }
        let Conversation { shared, connection, connection_id, name, stream, counted, .. } = conversation;
        shared.handler.closed(&connection);
        // The socket and what is kept of the client go before the connection is said to have ended.
        drop((stream, connection));
        ended(&shared.log, connection_id, &name, &shared.connections, counted);
    };
    start(&env, place, task);
}

fn start(env: &Env, place: Place, task: impl Future<Output = ()> + Send + 'static) {
    // Without a runtime nobody could have accepted.
    let spawned = env.tasks().spawn_at(place, Box::pin(task));
    debug_assert!(spawned.is_ok(), "accepting runs on a runtime");
}

/// Says that a connection has ended.
fn ended(log: &Log, connection_id: i64, name: &str, connections: &ConnectionCounters, counted: Counted) {
    let left = connections.current.get() - 1;
    drop(counted);
    let log = log.with_context(format!("conn{connection_id}"));
    log!(
        log,
        log.client_severity(),
        Component::Network,
        22944,
        "Connection ended",
        "remote" = name,
        "connectionId" = connection_id,
        "connectionCount" = left
    );
}

/// Reads a message of one who may send so much: a large one on a lane.
async fn decoded<H>(shared: &Shared<H>, message: Bytes, size_bytes_max: usize) -> Decoded {
    let (physical_bytes, tasks) = (message.len(), shared.env.tasks());
    let is_large = unpacked_bytes(&message) > LARGE_BYTES;
    if !is_large || !matches!(tasks.place(), Some(Place::Requests | Place::Control)) {
        let command = Command::decode_within(message, &shared.compressors, size_bytes_max);
        return Decoded { command, physical_bytes };
    }
    let (sender, receiver) = oneshot::channel();
    let (copy, compressors) = (message.clone(), shared.compressors.clone());
    let read = async move { _ = sender.send(Command::decode_within(copy, &compressors, size_bytes_max)) };
    // A task that cannot be started is dropped: the receiver hears of it.
    _ = tasks.spawn_at(Place::Lanes, Box::pin(read));
    let command = match receiver.await {
        Ok(command) => command,
        Err(_) => Command::decode_within(message, &shared.compressors, size_bytes_max),
    };
    Decoded { command, physical_bytes }
}

impl<H: RequestHandler> Conversation<H> {
    async fn run(&mut self) -> Outcome {
        if self.stream.move_here().is_err() {
            return Outcome::Over;
        }
        let shared = Arc::clone(&self.shared);
        let _registered = shared.stop.register().await;
        let begins_here = shared.env.tasks().place() == Some(Place::Control);
        let mut again = None;
        loop {
            let decoded = match (self.unanswered.take(), again.take()) {
                (Some(decoded), _) => decoded,
                (None, Some(message)) => decoded(&shared, message, self.size_bytes_max()).await,
                (None, None) => match self.next_message().await {
                    Some(message) => decoded(&shared, message, self.size_bytes_max()).await,
                    None => return Outcome::Over,
                },
            };
            if begins_here && !self.is_urgent(&decoded) {
                self.unanswered = Some(decoded);
                return Outcome::Moves;
            }
            match self.answer(decoded).await {
                Ok(Answered { next: Next::Read, .. }) => {}
                Ok(Answered { next: Next::Again(body), reply_id, compressor }) if !self.reader.is_at_end() => {
                    again = as_sent_again(&body, reply_id, compressor);
                }
                _ => return Outcome::Over,
            }
            if shared.stop.is_stopping() {
                return Outcome::Over;
            }
        }
    }

    /// Is it answered where connections begin? What cannot be read is refused there.
    fn is_urgent(&self, decoded: &Decoded) -> bool {
        let Ok(command) = &decoded.command else { return true };
        self.shared.handler.kind(command).place == Place::Control
    }

    /// How long a message of the client may be now.
    fn size_bytes_max(&self) -> usize {
        self.shared.handler.message_size_bytes_max(&self.connection)
    }

    /// The next message; none if the connection is to end.
    async fn next_message(&mut self) -> Option<Bytes> {
        let size_bytes_max = self.size_bytes_max();
        let (shared, stream, reader) = (&self.shared, &mut self.stream, &mut self.reader);
        let read = poll_fn(|context| match reader.poll_message(&mut **stream, size_bytes_max, context) {
            Poll::Pending if shared.stop.is_stopping() => Poll::Ready(Ok(None)),
            poll => poll,
        });
        read.await.unwrap_or_else(|error| {
            if error.code() == ErrorCode::ProtocolError && !self.reader.is_at_end() {
                self.shared.network.count_wrong_length(size_bytes_max);
            }
            let message = "Session from remote encountered a network error during SourceMessage";
            self.told(Severity::Debug(1), 22986, message, &error);
            None
        })
    }

    async fn answer(&mut self, decoded: Decoded) -> Result<Answered, End> {
        let Decoded { command, physical_bytes } = decoded;
        let reply_id = self.shared.last_reply_id.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        let (response, compressor) = match command {
            Ok(command) => {
                let compressor = command.compressor();
                self.shared.network.count_request(compressor, physical_bytes, command.size_bytes());
                let buffer = self.shared.buffers.take();
                (self.handled(Request { command, buffer, reply_id }).await?, compressor)
            }
            Err(refusal) => {
                self.shared.network.count_request(None, physical_bytes, physical_bytes);
                (self.refused(&refusal, reply_id), None)
            }
        };
        let next = self.sent(response, compressor).await?;
        Ok(Answered { next, reply_id, compressor })
    }

    /// Has the request answered, and watches the client meanwhile.
    async fn handled(&mut self, request: Request) -> Result<Response, End> {
        let Conversation { shared, connection, stream, reader, long_command, .. } = self;
        let size_bytes_max = shared.handler.message_size_bytes_max(connection);
        let Shared { env, books, .. } = &**shared;
        shared.connections.active.add(1);
        let kind = shared.handler.kind(&request.command);
        let is_large = request.command.size_bytes() > LARGE_BYTES;
        let work = shared.handler.handle(connection, request);
        let mut answer = match is_large || kind.place == Place::Lanes || *long_command == Some(kind.number) {
            true => Answer::on_lane(work, env, books),
            false => Answer::here(work),
        };
        let mut is_gone = false;
        let response = poll_fn(|context| {
            if let Poll::Ready(response) = answer.poll(context, env, books) {
                return Poll::Ready(response.ok_or(End::Broken));
            }
            if shared.stop.is_aborting() {
                return Poll::Ready(Err(End::Done));
            }
            if !is_gone && reader.poll_gone(&mut **stream, size_bytes_max, context).is_ready() {
                is_gone = true;
                shared.handler.abandoned(connection);
                return answer.poll(context, env, books).map(|response| response.ok_or(End::Broken));
            }
            Poll::Pending
        })
        .await;
        if answer.was_long() {
            *long_command = Some(kind.number);
        } else if *long_command == Some(kind.number) {
            *long_command = None;
        }
        shared.connections.active.add(-1);
        response
    }

    fn refused(&self, refusal: &Refusal, reply_id: i32) -> Response {
        let silent = |next| Response { message: None, logical_bytes: 0, next };
        let response_to = refusal.header.map_or(0, |header| header.request_id);
        match refusal.reaction {
            Reaction::ReplyMsg | Reaction::ReplyLegacy => {
                let buffer = self.shared.buffers.take();
                self.shared.handler.refused(&self.connection, refusal, buffer, reply_id)
            }
            Reaction::ReplyLegacyFailure => match legacy_failure(response_to, reply_id, &refusal.error) {
                Ok(message) => Response { logical_bytes: message.len(), message: Some(message), next: Next::Read },
                Err(_) => silent(Next::Close),
            },
            Reaction::Ignore => {
                self.told(Severity::Info, 21968, "Operation is not supported", &refusal.error);
                silent(Next::Read)
            }
            Reaction::Close => {
                let message = "Terminating session due to an error in the message that was received";
                self.told(Severity::Info, 5127900, message, &refusal.error);
                silent(Next::Close)
            }
        }
    }

    /// Writes a reply and gives its buffer back.
    async fn sent(&mut self, response: Response, compressor: Option<Compressor>) -> Result<Next, End> {
        let Some(message) = response.message else { return Ok(response.next) };
        self.write(&message).await.map_err(|_| End::Broken)?;
        self.shared.network.count_reply(compressor, message.len(), response.logical_bytes);
        self.shared.buffers.give(message);
        Ok(response.next)
    }

    async fn write(&mut self, message: &[u8]) -> io::Result<()> {
        let (shared, stream) = (&self.shared, &mut self.stream);
        let mut rest = message;
        poll_fn(|context| {
            while !rest.is_empty() {
                match Pin::new(&mut **stream).poll_write(context, rest) {
                    Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                    Poll::Ready(Ok(written)) => rest = rest.get(written..).unwrap_or_default(),
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Pending if shared.stop.is_aborting() => {
                        return Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()));
                    }
                    Poll::Pending => return Poll::Pending,
                }
            }
            Pin::new(&mut **stream).poll_flush(context)
        })
        .await
    }

    fn told(&self, severity: Severity, id: i32, message: &'static str, error: &pando_base::Error) {
        let log = self.shared.log.with_context(format!("conn{}", self.connection_id));
        log!(log, severity, Component::Network, id, message, "error" = error);
    }
}

/// The message that a client would send to get the next reply of a stream: each reply answers the reply before.
fn as_sent_again(body: &Doc, reply_id: i32, compressor: Option<Compressor>) -> Option<Bytes> {
    let request = RequestBuilder::new(MsgFlags::EXHAUST_ALLOWED, Vec::new()).body(body.view());
    request.finish(reply_id, compressor).ok().map(Bytes::from)
}
