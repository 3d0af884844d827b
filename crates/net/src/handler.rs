//! Who answers: the trait through which requests leave this crate.

use pando_doc::Doc;
use pando_env::{Address, BoxedFuture, Place};
use pando_wire::{Command, Refusal};

/// The two ends of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// The connection's number, from 1 up.
    pub connection_id: i64,
    /// The client's address.
    pub remote: Address,
    /// The address that the client reached.
    pub local: Address,
    /// The subject of the client's certificate, which was checked.
    pub certificate_subject: Option<String>,
}

/// A request, and what its reply is built with.
#[derive(Debug)]
pub struct Request {
    /// What was asked.
    pub command: Command,
    /// A buffer for the reply; what is in it is of no interest.
    pub buffer: Vec<u8>,
    /// The number that the reply gets.
    pub reply_id: i32,
}

/// What is known of a request before it is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestKind {
    /// The same for all requests of a command.
    pub number: usize,
    /// Where it is to be answered, as far as its command tells.
    pub place: Place,
}

/// What to send, and what to do then.
#[derive(Debug)]
pub struct Response {
    /// The whole message; none if the request wanted no reply.
    pub message: Option<Vec<u8>>,
    /// How long the message was before it was compressed.
    pub logical_bytes: usize,
    /// What comes next.
    pub next: Next,
}

/// What a connection does after a reply.
#[derive(Debug, PartialEq)]
pub enum Next {
    /// It waits for a request.
    Read,
    /// The reply announced another one: this command is run as if the client had sent it in answer to the reply.
    Again(Doc),
    /// It closes.
    Close,
}

/// Answers requests.
pub trait RequestHandler: Send + Sync + 'static {
    /// What the handler keeps of a connection.
    type Connection: Send + Sync + 'static;

    /// A connection was accepted.
    fn connected(&self, peer: Peer) -> Self::Connection;

    /// How long a message of this client may be now, decompressed if it comes compressed.
    fn message_size_bytes_max(&self, connection: &Self::Connection) -> usize;

    /// What is known of a request before it is answered.
    fn kind(&self, command: &Command) -> RequestKind;

    /// Answers a request. The answer may be worked on at another place than its connection. Boxed, so that a waiting connection does
    /// not carry the room for one.
    fn handle(&self, connection: &Self::Connection, request: Request) -> BoxedFuture<'static, Response>;

    /// A message cannot be served, but wants an error in reply.
    fn refused(&self, connection: &Self::Connection, refusal: &Refusal, buffer: Vec<u8>, reply_id: i32) -> Response;

    /// The client went away while its request is being served; [`handle`](RequestHandler::handle) goes on all the same.
    fn abandoned(&self, connection: &Self::Connection);

    /// The connection is closed.
    fn closed(&self, connection: &Self::Connection);
}
