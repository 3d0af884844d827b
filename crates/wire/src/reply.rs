//! Writing replies: OP_MSG for OP_MSG, OP_REPLY for OP_QUERY.
//!
//! A reply is built in one buffer, the room for header and flags first, so the body is written where it stays. The buffer
//! may be one that was used before; `finish` gives it back filled. Compression alone needs a second buffer.
//!
//! Order at the end: length, checksum over everything before it, then compression of the whole.

use crate::command::Protocol;
use crate::compression::{Compressor, compress};
use crate::header::{Header, OpCode};
use crate::limits::{DOCUMENT_SIZE_BYTES_MAX_INTERNAL, HEADER_SIZE_BYTES, MESSAGE_SIZE_BYTES_MAX};
use crate::op_msg::{CHECKSUM_SIZE_BYTES, KIND_BODY, MsgFlags, checksum};
use pando_base::{Error, ErrorCode, Result};
use pando_doc::DocBuilder;

/// Where the body of an OP_MSG reply starts: header, flags, section kind.
const MSG_BODY_START: usize = HEADER_SIZE_BYTES + 4 + 1;
/// Where the document of an OP_REPLY starts: header, flags, cursor id, first document's number, count.
const LEGACY_BODY_START: usize = HEADER_SIZE_BYTES + 4 + 8 + 4 + 4;

/// OP_REPLY: the query failed, the document says why.
pub(crate) const LEGACY_QUERY_FAILURE: i32 = 1 << 1;
/// OP_REPLY: the server can await data; set in every good reply.
const LEGACY_AWAIT_CAPABLE: i32 = 1 << 3;

/// What a reply has to know about its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyTo {
    /// The number of the message that is answered. In an exhaust stream, that of the reply before.
    pub request_id: i32,
    /// The family of messages.
    pub protocol: Protocol,
    /// Shall the reply have a checksum? It does if the request had one.
    pub checksum: bool,
    /// Shall the reply be compressed? It is if the request was, in the same way.
    pub compressor: Option<Compressor>,
}

/// A reply under construction.
#[derive(Debug)]
pub struct ReplyBuilder {
    to: ReplyTo,
    body: DocBuilder,
}

impl ReplyBuilder {
    /// Starts a reply in this buffer, whose contents are dropped.
    pub fn new(to: ReplyTo, mut buffer: Vec<u8>) -> ReplyBuilder {
        buffer.clear();
        buffer.resize(body_start(to.protocol), 0);
        ReplyBuilder { to, body: DocBuilder::behind(buffer) }
    }

    /// The body, to append fields to.
    pub fn body(&mut self) -> &mut DocBuilder {
        &mut self.body
    }

    /// Completes the reply, which gets this number. `more_to_come` announces another reply (OP_MSG only).
    pub fn finish(self, request_id: i32, more_to_come: bool) -> Result<Vec<u8>> {
        self.finish_with(request_id, more_to_come, LEGACY_AWAIT_CAPABLE)
    }

    fn finish_with(self, request_id: i32, more_to_come: bool, legacy_flags: i32) -> Result<Vec<u8>> {
        let body_size = self.body.size_bytes();
        if body_size > DOCUMENT_SIZE_BYTES_MAX_INTERNAL {
            return Err(too_large(body_size, DOCUMENT_SIZE_BYTES_MAX_INTERNAL));
        }
        let mut message = self.body.finish_buffer();
        let op_code = match self.to.protocol {
            Protocol::Msg => {
                let more = if more_to_come { MsgFlags::MORE_TO_COME } else { MsgFlags::NONE };
                write(&mut message, HEADER_SIZE_BYTES, &more.bits().to_le_bytes());
                write(&mut message, MSG_BODY_START - 1, &[KIND_BODY]);
                OpCode::Msg
            }
            Protocol::Query => {
                write(&mut message, HEADER_SIZE_BYTES, &legacy_flags.to_le_bytes());
                write(&mut message, LEGACY_BODY_START - 4, &1_i32.to_le_bytes());
                OpCode::Reply
            }
        };
        let header = Header { length_bytes: 0, request_id, response_to: self.to.request_id, op_code };
        seal(message, header, self.to.checksum, self.to.compressor)
    }
}

/// OP_REPLY for a legacy read, which fails (`Reaction::ReplyLegacyFailure`).
pub fn legacy_failure(response_to: i32, request_id: i32, error: &Error) -> Result<Vec<u8>> {
    let to = ReplyTo { request_id: response_to, protocol: Protocol::Query, checksum: false, compressor: None };
    let mut reply = ReplyBuilder::new(to, Vec::new());
    reply.body().append("$err", error.reason());
    reply.body().append("code", error.code().number());
    reply.body().append("ok", 0.0);
    reply.finish_with(request_id, false, LEGACY_QUERY_FAILURE)
}

/// Completes a message in whose first bytes there is room for the header.
pub(crate) fn seal(
    mut message: Vec<u8>,
    header: Header,
    with_checksum: bool,
    compressor: Option<Compressor>,
) -> Result<Vec<u8>> {
    let with_checksum = with_checksum && header.op_code == OpCode::Msg;
    if with_checksum {
        message.extend_from_slice(&[0; CHECKSUM_SIZE_BYTES]);
        if let Some(flags) = message.get_mut(HEADER_SIZE_BYTES) {
            *flags |= MsgFlags::CHECKSUM_PRESENT.bits() as u8;
        }
    }
    let length = message.len();
    if length > MESSAGE_SIZE_BYTES_MAX {
        return Err(too_large(length, MESSAGE_SIZE_BYTES_MAX));
    }
    write(&mut message, 0, &Header { length_bytes: length as i32, ..header }.to_bytes());
    if with_checksum {
        let sum = checksum(&message).to_le_bytes();
        write(&mut message, length - CHECKSUM_SIZE_BYTES, &sum);
    }
    Ok(match compressor {
        Some(compressor) => compress(message, compressor),
        None => message,
    })
}

fn body_start(protocol: Protocol) -> usize {
    match protocol {
        Protocol::Msg => MSG_BODY_START,
        Protocol::Query => LEGACY_BODY_START,
    }
}

fn write(buffer: &mut [u8], start: usize, bytes: &[u8]) {
    match buffer.get_mut(start..start + bytes.len()) {
        Some(place) => place.copy_from_slice(bytes),
        None => debug_assert!(false, "the room was made before"),
    }
}

fn too_large(size_bytes: usize, size_bytes_max: usize) -> Error {
    let reason = format!("BSON size limit hit while building Message. Size: {size_bytes}; maxSize: {size_bytes_max}");
    Error::new(ErrorCode::BSONObjectTooLarge, reason)
}
