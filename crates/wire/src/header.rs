//! The sixteen bytes in front of every message, and the kinds of message.

use crate::limits::HEADER_SIZE_BYTES;
use crate::reader::Reader;
use pando_base::{Error, ErrorCode, Result};

/// Where the kind of a message stands in its header.
const OP_CODE_AT: usize = 12;

/// What a message is. The numbers are the protocol's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpCode {
    /// OP_REPLY: the answer to a legacy query.
    Reply,
    /// OP_UPDATE, refused.
    Update,
    /// OP_INSERT, refused.
    Insert,
    /// OP_QUERY: served for the first hello of a connection and a few commands around it.
    Query,
    /// OP_GET_MORE, refused.
    GetMore,
    /// OP_DELETE, refused.
    Delete,
    /// OP_KILL_CURSORS, refused.
    KillCursors,
    /// OP_COMPRESSED: another message, compressed.
    Compressed,
    /// OP_MSG: what every driver speaks.
    Msg,
    /// A number that means nothing to us.
    Unknown(i32),
}

impl OpCode {
    /// The number on the wire.
    pub fn number(self) -> i32 {
        match self {
            OpCode::Reply => 1,
            OpCode::Update => 2001,
            OpCode::Insert => 2002,
            OpCode::Query => 2004,
            OpCode::GetMore => 2005,
            OpCode::Delete => 2006,
            OpCode::KillCursors => 2007,
            OpCode::Compressed => 2012,
            OpCode::Msg => 2013,
            OpCode::Unknown(number) => number,
        }
    }

    /// The kind that a number stands for.
    pub fn from_number(number: i32) -> OpCode {
        match number {
            1 => OpCode::Reply,
            2001 => OpCode::Update,
            2002 => OpCode::Insert,
            2004 => OpCode::Query,
            2005 => OpCode::GetMore,
            2006 => OpCode::Delete,
            2007 => OpCode::KillCursors,
            2012 => OpCode::Compressed,
            2013 => OpCode::Msg,
            other => OpCode::Unknown(other),
        }
    }
}

/// The header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The length of the whole message, this header included.
    pub length_bytes: i32,
    /// The sender's number for this message.
    pub request_id: i32,
    /// In a reply, the number of the message it answers; else 0.
    pub response_to: i32,
    /// What follows.
    pub op_code: OpCode,
}

impl Header {
    /// Reads a header; nothing but its presence is checked. `next_length` judges the length.
    pub fn read(bytes: &[u8]) -> Option<Header> {
        let mut reader = Reader::new(bytes.get(..HEADER_SIZE_BYTES)?);
        Some(Header {
            length_bytes: reader.int32()?,
            request_id: reader.int32()?,
            response_to: reader.int32()?,
            op_code: OpCode::from_number(reader.int32()?),
        })
    }

    /// The header as it goes over the wire.
    pub fn to_bytes(self) -> [u8; HEADER_SIZE_BYTES] {
        let mut bytes = [0; HEADER_SIZE_BYTES];
        let fields = [self.length_bytes, self.request_id, self.response_to, self.op_code.number()];
        for (place, field) in bytes.chunks_exact_mut(4).zip(fields) {
            place.copy_from_slice(&field.to_le_bytes());
        }
        bytes
    }
}

/// How long a message says to be when it is no longer compressed: what it costs to read it. Nothing is reserved by it.
pub fn unpacked_bytes(message: &[u8]) -> usize {
    let number = |at: usize| Some(i32::from_le_bytes(*message.get(at..)?.first_chunk::<4>()?));
    let announced = match number(OP_CODE_AT).map(OpCode::from_number) {
        // The code of the message inside stands before its length.
        Some(OpCode::Compressed) => number(HEADER_SIZE_BYTES + 4),
        _ => None,
    };
    message.len().max(usize::try_from(announced.unwrap_or(0)).unwrap_or(0))
}

/// The length of the message that a header opens, so that a reader can take exactly one message
/// into a buffer of its choice. A length that is impossible, or above what the sender may send, is
/// an error after which the connection cannot go on.
pub fn next_length(header: &[u8; HEADER_SIZE_BYTES], size_bytes_max: usize) -> Result<usize> {
    let [a, b, c, d, ..] = *header;
    let announced = i32::from_le_bytes([a, b, c, d]);
    match usize::try_from(announced) {
        Ok(length) if (HEADER_SIZE_BYTES..=size_bytes_max).contains(&length) => Ok(length),
        _ => Err(Error::new(
            ErrorCode::ProtocolError,
            format!("recv(): message msgLen {announced} is invalid. Min {HEADER_SIZE_BYTES} Max: {size_bytes_max}"),
        )),
    }
}
