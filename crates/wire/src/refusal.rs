//! What is wrong with a message, and how the connection has to react.
//!
//! MongoDB's reactions differ: a malformed OP_MSG gets an ordinary error reply; a few errors end the connection, since
//! client and server no longer agree on what the bytes mean; legacy reads get OP_REPLY with the failure flag; legacy writes
//! have no reply, so the connection is closed; unknown kinds of message are noted and ignored.

use crate::header::Header;
use pando_base::{Category, Error, ErrorCode};

/// What was decoded, or why nothing was.
pub type Decoded<T> = std::result::Result<T, Refusal>;

/// A message that cannot be served.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// Why.
    pub error: Error,
    /// What to do about it.
    pub reaction: Reaction,
    /// The header, where there was one; a reply needs its `request_id`.
    pub header: Option<Header>,
}

/// What the connection does about a message that it cannot serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// Answer with OP_MSG that carries the error.
    ReplyMsg,
    /// Answer with OP_REPLY that carries the error as a command's reply.
    ReplyLegacy,
    /// Answer with OP_REPLY whose failure flag is set (`legacy_failure`).
    ReplyLegacyFailure,
    /// Log it, answer nothing, go on.
    Ignore,
    /// Close the connection without an answer.
    Close,
}

impl Refusal {
    pub(crate) fn new(error: Error, reaction: Reaction, header: Header) -> Refusal {
        let reaction = if error.is(Category::ConnectionFatalMessageParseError) { Reaction::Close } else { reaction };
        Refusal { error, reaction, header: Some(header) }
    }

    pub(crate) fn closing(error: Error) -> Refusal {
        Refusal { error, reaction: Reaction::Close, header: None }
    }
}

/// An error inside a message whose frame is intact.
pub(crate) fn malformed(reason: impl Into<String>) -> Error {
    Error::new(ErrorCode::ProtocolError, reason)
}
