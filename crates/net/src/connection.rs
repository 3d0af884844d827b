//! The life of one connection.
//!
//! Read a message, have it answered, write the answer, and again. While a request is being served the socket is watched,
//! so that the handler hears when nobody waits for the answer any more.

use crate::buffers::BufferPool;
use crate::counters::{ConnectionCounters, NetworkCounters};
use crate::handler::{Next, Peer, Request, RequestHandler, Response};
use crate::reader::MessageReader;
use crate::stop::Stop;
use crate::tls::{Accepted, Tls};
use bytes::Bytes;
use pando_base::{Component, Log, Severity, log};
use pando_doc::Doc;
use pando_env::Connection;
use pando_wire::{Command, Compressor, Compressors, MsgFlags, Reaction, Refusal, RequestBuilder, legacy_failure};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicI32, Ordering};
use std::task::Poll;

/// What all connections share.
pub(crate) struct Shared<H> {
    pub(crate) handler: H,
    pub(crate) tls: Option<std::sync::Arc<Tls>>,
    pub(crate) log: Log,
    pub(crate) stop: Stop,
    pub(crate) connections: std::sync::Arc<ConnectionCounters>,
    pub(crate) network: std::sync::Arc<NetworkCounters>,
    pub(crate) compressors: Compressors,
    pub(crate) buffers: BufferPool,
    pub(crate) last_reply_id: AtomicI32,
}

/// One connection at work.
struct Conversation<'a, H: RequestHandler> {
    shared: &'a Shared<H>,
    connection: H::Connection,
    stream: Box<dyn Connection>,
    reader: MessageReader,
    connection_id: i64,
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

/// Serves a connection to its end.
pub(crate) async fn serve<H: RequestHandler>(shared: &Shared<H>, stream: Box<dyn Connection>, peer: Peer) {
    let _registered = shared.stop.register().await;
    let connection_id = peer.connection_id;
    let Some(Accepted { stream, subject }) = accepted(shared, stream, connection_id).await else { return };
    let connection = shared.handler.connected(Peer { certificate_subject: subject, ..peer });
    let reader = MessageReader::default();
    let mut conversation = Conversation { shared, connection, stream, reader, connection_id };
    conversation.run().await;
    shared.handler.closed(&conversation.connection);
}

/// Agrees on encryption with the client; none if that failed or the node ends.
async fn accepted<H>(shared: &Shared<H>, stream: Box<dyn Connection>, connection_id: i64) -> Option<Accepted> {
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

impl<H: RequestHandler> Conversation<'_, H> {
    async fn run(&mut self) {
        let mut again = None;
        loop {
            let message = match again.take() {
                Some(message) => Some(message),
                None => self.next_message().await,
            };
            let Some(message) = message else { return };
            match self.answer(message).await {
                Ok(Answered { next: Next::Read, .. }) => {}
                Ok(Answered { next: Next::Again(body), reply_id, compressor }) if !self.reader.is_at_end() => {
                    again = as_sent_again(&body, reply_id, compressor);
                }
                _ => return,
            }
            if self.shared.stop.is_stopping() {
                return;
            }
        }
    }

    /// The next message; none if the connection is to end.
    async fn next_message(&mut self) -> Option<Bytes> {
        let (shared, stream, reader) = (self.shared, &mut self.stream, &mut self.reader);
        let read = poll_fn(|context| match reader.poll_message(&mut **stream, context) {
            Poll::Pending if shared.stop.is_stopping() => Poll::Ready(Ok(None)),
            poll => poll,
        });
        read.await.unwrap_or_else(|error| {
            let message = "Session from remote encountered a network error during SourceMessage";
            self.told(Severity::Debug(1), 22986, message, &error);
            None
        })
    }

    async fn answer(&mut self, message: Bytes) -> Result<Answered, End> {
        let physical_bytes = message.len();
        let reply_id = self.shared.last_reply_id.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        let (response, compressor) = match Command::decode(message, &self.shared.compressors) {
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
        let Conversation { shared, connection, stream, reader, .. } = self;
        shared.connections.active.add(1);
        let mut answer = shared.handler.handle(connection, request);
        let mut is_gone = false;
        let response = poll_fn(|context| {
            if let Poll::Ready(response) = answer.as_mut().poll(context) {
                return Poll::Ready(Ok(response));
            }
            if shared.stop.is_aborting() {
                return Poll::Ready(Err(End::Done));
            }
            if !is_gone && reader.poll_gone(&mut **stream, context).is_ready() {
                is_gone = true;
                shared.handler.abandoned(connection);
                return answer.as_mut().poll(context).map(Ok);
            }
            Poll::Pending
        })
        .await;
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
        let (shared, stream) = (self.shared, &mut self.stream);
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
