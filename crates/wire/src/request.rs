//! The client's side: writing requests and reading replies. Members of a replica set, routers, load generators and
//! tests speak it.

use crate::command::checked_header;
use crate::compression::{Compressor, Compressors, decompress};
use crate::header::{Header, OpCode};
use crate::limits::{HEADER_SIZE_BYTES, MESSAGE_SIZE_BYTES_MAX};
use crate::op_msg::{self, KIND_BODY, KIND_SEQUENCE, MsgFlags, limits};
use crate::reader::Reader;
use crate::refusal::malformed;
use crate::reply::{LEGACY_QUERY_FAILURE, seal};
use bytes::Bytes;
use pando_base::Result;
use pando_doc::DocRef;
use std::ops::Range;

/// An OP_MSG request under construction.
#[derive(Debug)]
pub struct RequestBuilder {
    flags: MsgFlags,
    buffer: Vec<u8>,
}

impl RequestBuilder {
    /// Starts a request in this buffer, whose contents are dropped. `CHECKSUM_PRESENT` asks for a checksum.
    pub fn new(flags: MsgFlags, mut buffer: Vec<u8>) -> RequestBuilder {
        buffer.clear();
        buffer.resize(HEADER_SIZE_BYTES, 0);
        buffer.extend_from_slice(&flags.bits().to_le_bytes());
        RequestBuilder { flags, buffer }
    }

    /// Adds the command document.
    #[must_use]
    pub fn body(mut self, body: DocRef<'_>) -> RequestBuilder {
        self.buffer.push(KIND_BODY);
        self.buffer.extend_from_slice(body.bytes());
        self
    }

    /// Adds a document sequence.
    #[must_use]
    pub fn sequence<'a>(mut self, name: &str, documents: impl IntoIterator<Item = DocRef<'a>>) -> RequestBuilder {
        self.buffer.push(KIND_SEQUENCE);
        let start = self.buffer.len();
        self.buffer.extend_from_slice(&[0; 4]);
        self.buffer.extend_from_slice(name.as_bytes());
        self.buffer.push(0);
        for document in documents {
            self.buffer.extend_from_slice(document.bytes());
        }
        let size = (self.buffer.len() - start) as i32;
        if let Some(place) = self.buffer.get_mut(start..start + 4) {
            place.copy_from_slice(&size.to_le_bytes());
        }
        self
    }

    /// Completes the request, which gets this number. The caller asks `may_compress` before it names a compressor.
    pub fn finish(self, request_id: i32, compressor: Option<Compressor>) -> Result<Vec<u8>> {
        let header = Header { length_bytes: 0, request_id, response_to: 0, op_code: OpCode::Msg };
        seal(self.buffer, header, self.flags.contains(MsgFlags::CHECKSUM_PRESENT), compressor)
    }
}

/// A command as OP_QUERY, as drivers send their first hello.
pub fn legacy_request(database: &str, command: DocRef<'_>, request_id: i32) -> Result<Vec<u8>> {
    let mut message = vec![0; HEADER_SIZE_BYTES];
    message.extend_from_slice(&0_i32.to_le_bytes());
    message.extend_from_slice(format!("{database}.$cmd\0").as_bytes());
    message.extend_from_slice(&0_i32.to_le_bytes());
    message.extend_from_slice(&(-1_i32).to_le_bytes());
    message.extend_from_slice(command.bytes());
    let header = Header { length_bytes: 0, request_id, response_to: 0, op_code: OpCode::Query };
    seal(message, header, false, None)
}

/// A decoded reply.
#[derive(Clone, Debug)]
pub struct Reply {
    header: Header,
    more_to_come: bool,
    is_query_failure: bool,
    message: Bytes,
    body: Range<usize>,
}

impl Reply {
    /// Decodes a whole message, header included, that a server sent to a client.
    pub fn decode(message: Bytes, allowed: &Compressors) -> Result<Reply> {
        let header = checked_header(&message, MESSAGE_SIZE_BYTES_MAX).map_err(|refusal| refusal.error)?;
        if header.op_code != OpCode::Compressed {
            return Reply::decode_plain(header, message);
        }
        let (plain, _) = decompress(header, &message, allowed, MESSAGE_SIZE_BYTES_MAX)?;
        let header = checked_header(&plain, MESSAGE_SIZE_BYTES_MAX).map_err(|refusal| refusal.error)?;
        Reply::decode_plain(header, plain)
    }

    fn decode_plain(header: Header, message: Bytes) -> Result<Reply> {
        match header.op_code {
            OpCode::Msg => {
                let op_msg::Sections { flags, body, .. } = op_msg::decode(&message)?;
                let more_to_come = flags.contains(MsgFlags::MORE_TO_COME);
                Ok(Reply { header, more_to_come, is_query_failure: false, message, body })
            }
            OpCode::Reply => {
                let (flags, body) = decode_legacy(&message)?;
                let is_query_failure = flags & LEGACY_QUERY_FAILURE != 0;
                Ok(Reply { header, more_to_come: false, is_query_failure, message, body })
            }
            other => Err(malformed(format!("A reply of kind {}", other.number()))),
        }
    }

    /// The header; `response_to` says which request this answers.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Does another reply follow by itself?
    pub fn more_to_come(&self) -> bool {
        self.more_to_come
    }

    /// Has OP_REPLY the failure flag?
    pub fn is_query_failure(&self) -> bool {
        self.is_query_failure
    }

    /// The reply document.
    pub fn body(&self) -> DocRef<'_> {
        DocRef::trusted(self.message.get(self.body.clone()).unwrap_or_default())
    }
}

/// The flags and the one document of an OP_REPLY.
fn decode_legacy(message: &[u8]) -> Result<(i32, Range<usize>)> {
    let mut reader = Reader::new(message.get(HEADER_SIZE_BYTES..).unwrap_or_default());
    let fields = (|| Some((reader.int32()?, reader.int64()?, reader.int32()?, reader.int32()?)))();
    let Some((flags, _, _, 1)) = fields else {
        return Err(malformed("OP_REPLY without exactly one document"));
    };
    let start = message.len() - reader.rest().len();
    let body = DocRef::parse_with(reader.rest(), &limits())?;
    Ok((flags, start..start + body.size_bytes()))
}
