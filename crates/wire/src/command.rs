//! A request: one command, as a body and perhaps document sequences, whatever message carried it.
//!
//! It holds the message's bytes and the places of its parts. Everything was validated when it was decoded, so no look at
//! it can fail for the bytes' sake.

use crate::compression::{Compressor, Compressors, decompress};
use crate::documents::Documents;
use crate::header::{Header, OpCode, next_length};
use crate::limits::{HEADER_SIZE_BYTES, MESSAGE_SIZE_BYTES_MAX, SEQUENCES_MAX};
use crate::op_msg::{self, MsgFlags, SequenceRange};
use crate::op_query;
use crate::refusal::{Decoded, Reaction, Refusal, malformed};
use crate::reply::ReplyTo;
use bstr::{BStr, ByteSlice};
use bytes::Bytes;
use pando_base::Result;
use pando_doc::{DocRef, Value};
use std::ops::Range;

/// Which kind of message a command came in; its reply has to be of the same family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// OP_MSG.
    Msg,
    /// OP_QUERY, answered by OP_REPLY.
    Query,
}

/// A decoded request.
#[derive(Clone, Debug)]
pub struct Command {
    header: Header,
    protocol: Protocol,
    flags: MsgFlags,
    compressor: Option<Compressor>,
    message: Bytes,
    body: Range<usize>,
    sequences: [Option<SequenceRange>; SEQUENCES_MAX],
    query: Option<op_query::Query>,
}

impl Command {
    /// Decodes a whole message, header included, that a client sent to a server.
    pub fn decode(message: Bytes, allowed: &Compressors) -> Decoded<Command> {
        Command::decode_within(message, allowed, MESSAGE_SIZE_BYTES_MAX)
    }

    /// The same for a client whose messages may only be so long, compressed or not.
    pub fn decode_within(message: Bytes, allowed: &Compressors, size_bytes_max: usize) -> Decoded<Command> {
        let header = checked_header(&message, size_bytes_max)?;
        if header.op_code != OpCode::Compressed {
            return Command::decode_plain(header, message, None);
        }
        let (plain, compressor) = decompress(header, &message, allowed, size_bytes_max).map_err(|error| Refusal {
            error,
            reaction: Reaction::Close,
            header: Some(header),
        })?;
        let header = checked_header(&plain, size_bytes_max)?;
        Command::decode_plain(header, plain, Some(compressor))
    }

    fn decode_plain(header: Header, message: Bytes, compressor: Option<Compressor>) -> Decoded<Command> {
        match header.op_code {
            OpCode::Msg => {
                let parts =
                    op_msg::decode(&message).map_err(|error| Refusal::new(error, Reaction::ReplyMsg, header))?;
                let op_msg::Sections { flags, body, sequences } = parts;
                Ok(Command {
                    header,
                    protocol: Protocol::Msg,
                    flags,
                    compressor,
                    message,
                    body,
                    sequences,
                    query: None,
                })
            }
            OpCode::Query => {
                let query = op_query::decode(header, &message)?;
                let (protocol, flags, body) = (Protocol::Query, MsgFlags::NONE, query.body.clone());
                let (sequences, query) = ([None, None], Some(query));
                Ok(Command { header, protocol, flags, compressor, message, body, sequences, query })
            }
            _ => Err(op_query::refuse(header)),
        }
    }

    /// The header; that of the inner message if it came compressed.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The kind of message it came in.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// The flags of OP_MSG; none for OP_QUERY.
    pub fn flags(&self) -> MsgFlags {
        self.flags
    }

    /// Does the client want no reply?
    pub fn is_fire_and_forget(&self) -> bool {
        self.flags.contains(MsgFlags::MORE_TO_COME)
    }

    /// May the reply announce another one?
    pub fn allows_exhaust(&self) -> bool {
        self.flags.contains(MsgFlags::EXHAUST_ALLOWED)
    }

    /// The algorithm that the request was compressed with.
    pub fn compressor(&self) -> Option<Compressor> {
        self.compressor
    }

    /// The length of the uncompressed message.
    pub fn size_bytes(&self) -> usize {
        self.message.len()
    }

    /// The command document, without its sequences.
    #[inline]
    pub fn body(&self) -> DocRef<'_> {
        DocRef::trusted(self.part(&self.body))
    }

    /// The command document as bytes that outlive this value.
    pub fn body_bytes(&self) -> Bytes {
        self.message.slice(self.body.clone())
    }

    /// A part of this message, such as one of its documents, as bytes that outlive this value.
    pub fn share(&self, part: &[u8]) -> Bytes {
        let start = (part.as_ptr() as usize).wrapping_sub(self.message.as_ptr() as usize);
        let end = start.checked_add(part.len());
        debug_assert!(end.is_some_and(|end| end <= self.message.len()), "not a part of this message");
        match end {
            Some(end) if end <= self.message.len() => self.message.slice(start..end),
            _ => Bytes::copy_from_slice(part),
        }
    }

    /// The command's name: the first field of the body. Empty if there is none.
    pub fn name(&self) -> &BStr {
        self.body().raw_elements().next().map_or(b"".as_bstr(), |element| element.name)
    }

    /// The database it is for: `$db`, or the namespace of OP_QUERY. None if `$db` is missing or no string.
    pub fn database(&self) -> Option<&BStr> {
        match (&self.query, self.body()) {
            (Some(query), _) => Some(self.part(&query.database).as_bstr()),
            (None, body) => match body.get("$db") {
                Some(Value::String(database)) => Some(database),
                _ => None,
            },
        }
    }

    /// Did OP_QUERY allow a secondary to answer? OP_MSG says so with `$readPreference`.
    pub fn secondary_ok(&self) -> bool {
        self.query.as_ref().is_some_and(|query| query.secondary_ok)
    }

    /// The documents with this name, sent as a sequence or as an array in the body. An error if the body's field is
    /// something else.
    pub fn sequence(&self, name: &str) -> Result<Option<Documents<'_>>> {
        if let Some(sequence) = self.sequences.iter().flatten().find(|found| self.part(&found.name) == name.as_bytes())
        {
            return Ok(Some(Documents::in_sequence(self.part(&sequence.documents), sequence.count)));
        }
        let Some(value) = self.body().get(name) else {
            return Ok(None);
        };
        Documents::in_array(value, || format!("{}.{name}", self.name())).map(Some)
    }

    /// The document sequences by name, in the order in which they were sent.
    pub fn sequences(&self) -> impl Iterator<Item = (&BStr, Documents<'_>)> {
        self.sequences.iter().flatten().map(|sequence| {
            let documents = Documents::in_sequence(self.part(&sequence.documents), sequence.count);
            (self.part(&sequence.name).as_bstr(), documents)
        })
    }

    /// What a reply has to know about this request.
    pub fn reply_to(&self) -> ReplyTo {
        ReplyTo {
            request_id: self.header.request_id,
            protocol: self.protocol,
            checksum: self.flags.contains(MsgFlags::CHECKSUM_PRESENT),
            compressor: self.compressor,
        }
    }

    fn part(&self, range: &Range<usize>) -> &[u8] {
        self.message.get(range.clone()).unwrap_or_default()
    }
}

/// The header of a whole message, if the length in it is that of the message.
pub(crate) fn checked_header(message: &[u8], size_bytes_max: usize) -> Decoded<Header> {
    let wrong = || Refusal::closing(malformed("The length in a message's header is not that of the message"));
    let first = message.first_chunk::<HEADER_SIZE_BYTES>().ok_or_else(wrong)?;
    if next_length(first, size_bytes_max).map_err(Refusal::closing)? != message.len() {
        return Err(wrong());
    }
    Header::read(message).ok_or_else(wrong)
}
