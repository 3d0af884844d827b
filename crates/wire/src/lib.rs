//! The wire protocol: bytes to commands, replies to bytes. No sockets, no clock, no knowledge of any command's meaning.
//!
//! A connection reads sixteen bytes, asks `next_length` how long the message is, fills a buffer and hands it to
//! `Command::decode`. That validates every document once and copies none (a compressed message is unpacked into one new
//! buffer). What cannot be served is a `Refusal`, which says how MongoDB reacts to it. The reply is written by
//! `ReplyBuilder` into one buffer, in the request's own family of messages.
//!
//! Invariants:
//! - No length is believed before it is compared with what arrived and with `limits`.
//! - No input panics; `tests` feeds truncated, corrupted and random messages.
//! - A `Command` or `Reply` holds validated documents only.
//! - A message inside OP_COMPRESSED is never compressed itself.

mod command;
mod compression;
mod documents;
mod frame;
mod header;
pub mod limits;
mod op_msg;
mod op_query;
mod reader;
mod refusal;
mod reply;
mod request;

pub use command::{Command, Protocol};
pub use compression::{Compressor, Compressors, may_compress};
pub use documents::{Documents, DocumentsIter};
pub use frame::FrameDecoder;
pub use header::{Header, OpCode, next_length, unpacked_bytes};
pub use op_msg::MsgFlags;
pub use refusal::{Decoded, Reaction, Refusal};
pub use reply::{ReplyBuilder, ReplyTo, legacy_failure};
pub use request::{Reply, RequestBuilder, legacy_request};

#[cfg(test)]
mod tests;
