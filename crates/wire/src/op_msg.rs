//! OP_MSG: flags, a body, document sequences, perhaps a checksum.
//!
//! Every document is validated here, once; what is kept are ranges, so nothing is copied. The low sixteen flag bits are
//! required: one that we do not know changes the meaning of the message, so it is refused. The high ones may be ignored.
//! The checksum is verified before anything else is believed; a peer that sends none is trusted with its own bytes.

use crate::limits::{DOCUMENT_SIZE_BYTES_MAX_INTERNAL, HEADER_SIZE_BYTES, SEQUENCES_MAX};
use crate::reader::Reader;
use crate::refusal::malformed;
use bstr::{BStr, ByteSlice};
use pando_base::{Error, ErrorCode, Result};
use pando_doc::{DocRef, Limits, depth_max};
use std::ops::Range;

const FLAGS_SIZE_BYTES: usize = 4;
pub(crate) const CHECKSUM_SIZE_BYTES: usize = 4;

pub(crate) const KIND_BODY: u8 = 0;
pub(crate) const KIND_SEQUENCE: u8 = 1;
const KIND_SECURITY_TOKEN: u8 = 2;

/// The bounds of a document in a message.
pub(crate) fn limits() -> Limits {
    Limits { depth_max: depth_max(), size_bytes_max: DOCUMENT_SIZE_BYTES_MAX_INTERNAL }
}

/// The flag bits of OP_MSG.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MsgFlags(u32);

impl MsgFlags {
    /// No bit set.
    pub const NONE: MsgFlags = MsgFlags(0);
    /// The message ends with a checksum.
    pub const CHECKSUM_PRESENT: MsgFlags = MsgFlags(1);
    /// In a request: no reply is wanted. In a reply: another one follows without being asked for.
    pub const MORE_TO_COME: MsgFlags = MsgFlags(1 << 1);
    /// In a request: the reply may have `MORE_TO_COME`.
    pub const EXHAUST_ALLOWED: MsgFlags = MsgFlags(1 << 16);

    const REQUIRED: u32 = 0xffff;
    const KNOWN: u32 = MsgFlags::CHECKSUM_PRESENT.0 | MsgFlags::MORE_TO_COME.0 | MsgFlags::EXHAUST_ALLOWED.0;

    /// The bits as they are on the wire. Unknown optional bits are kept.
    pub fn from_bits(bits: u32) -> Result<MsgFlags> {
        if bits & MsgFlags::REQUIRED & !MsgFlags::KNOWN == 0 {
            return Ok(MsgFlags(bits));
        }
        let reason = format!("Message contains illegal flags value: Ob{bits:032b}");
        Err(Error::new(ErrorCode::IllegalOpMsgFlag, reason))
    }

    /// The bits for the wire.
    pub fn bits(self) -> u32 {
        self.0
    }

    /// Are all these bits set?
    pub fn contains(self, other: MsgFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// The bits of both.
    #[must_use]
    pub fn with(self, other: MsgFlags) -> MsgFlags {
        MsgFlags(self.0 | other.0)
    }
}

/// A document sequence inside a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SequenceRange {
    pub(crate) name: Range<usize>,
    pub(crate) documents: Range<usize>,
    pub(crate) count: usize,
}

/// Where the parts of an OP_MSG are in its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sections {
    pub(crate) flags: MsgFlags,
    pub(crate) body: Range<usize>,
    pub(crate) sequences: [Option<SequenceRange>; SEQUENCES_MAX],
}

/// Finds and validates the parts of a whole message, header included.
pub(crate) fn decode(message: &[u8]) -> Result<Sections> {
    let bits = Reader::new(message.get(HEADER_SIZE_BYTES..).unwrap_or_default()).int32();
    let flags = MsgFlags::from_bits(bits.ok_or_else(|| malformed("OP_MSG without flags"))? as u32)?;
    let end = if flags.contains(MsgFlags::CHECKSUM_PRESENT) { verified_end(message)? } else { message.len() };
    let mut walk =
        Walk { message, place: HEADER_SIZE_BYTES + FLAGS_SIZE_BYTES, end, body: None, sequences: [None, None] };
    while walk.place < walk.end {
        walk.section()?;
    }
    let body = walk.body.ok_or_else(|| Error::location(40587, "OP_MSG messages must have a body"))?;
    let sections = Sections { flags, body, sequences: walk.sequences };
    refuse_duplicates(message, &sections)?;
    Ok(sections)
}

/// The checksum of a whole message whose last four bytes are, or will be, that checksum.
pub(crate) fn checksum(message: &[u8]) -> u32 {
    crc32c::crc32c(message.get(..message.len().saturating_sub(CHECKSUM_SIZE_BYTES)).unwrap_or_default())
}

/// Where the sections end, if the checksum behind them is right.
fn verified_end(message: &[u8]) -> Result<usize> {
    let too_short = || Error::location(51252, "Invalid message size for an OpMsg containing a checksum");
    let end = message.len().checked_sub(CHECKSUM_SIZE_BYTES).ok_or_else(too_short)?;
    if end <= HEADER_SIZE_BYTES + FLAGS_SIZE_BYTES {
        return Err(too_short());
    }
    let stored = Reader::new(message.get(end..).unwrap_or_default()).int32().ok_or_else(too_short)? as u32;
    if stored != checksum(message) {
        return Err(Error::new(ErrorCode::ChecksumMismatch, "OP_MSG checksum does not match contents"));
    }
    Ok(end)
}

/// A name must not be both in the body and a sequence.
fn refuse_duplicates(message: &[u8], sections: &Sections) -> Result<()> {
    let body = DocRef::trusted(message.get(sections.body.clone()).unwrap_or_default());
    for sequence in sections.sequences.iter().flatten() {
        let name = message.get(sequence.name.clone()).unwrap_or_default().as_bstr();
        if has_path(body, name) {
            let reason = format!("Duplicate field between body and document sequence {name}");
            return Err(Error::location(40433, reason));
        }
    }
    Ok(())
}

/// Is there something at this dotted path?
fn has_path(document: DocRef<'_>, path: &BStr) -> bool {
    if document.contains(path) {
        return true;
    }
    let Some((first, rest)) = path.split_once_str(".") else {
        return false;
    };
    match document.get(first) {
        Some(pando_doc::Value::Document(inner)) => has_path(inner, rest.as_bstr()),
        Some(pando_doc::Value::Array(inner)) => has_path(inner.as_doc(), rest.as_bstr()),
        _ => false,
    }
}

/// The sections of a message, one after the other.
struct Walk<'a> {
    message: &'a [u8],
    place: usize,
    end: usize,
    body: Option<Range<usize>>,
    sequences: [Option<SequenceRange>; SEQUENCES_MAX],
}

impl<'a> Walk<'a> {
    fn section(&mut self) -> Result<()> {
        let kind = self.rest().first().copied();
        self.place += 1;
        match kind {
            Some(KIND_BODY) if self.body.is_some() => Err(Error::location(40430, "Multiple body sections in message")),
            Some(KIND_BODY) => {
                self.body = Some(self.document(self.end)?);
                Ok(())
            }
            Some(KIND_SEQUENCE) => self.sequence(),
            Some(KIND_SECURITY_TOKEN) => {
                Err(Error::new(ErrorCode::Unauthorized, "Unsupported Security Token provided"))
            }
            other => Err(Error::location(40432, format!("Unknown section kind {}", other.unwrap_or_default()))),
        }
    }

    fn sequence(&mut self) -> Result<()> {
        let Some(slot) = self.sequences.iter().position(Option::is_none) else {
            let reason = "Too many document sequences in OP_MSG";
            return Err(Error::new(ErrorCode::TooManyDocumentSequences, reason));
        };
        let end = self.sequence_end()?;
        let mut reader = Reader::new(self.message.get(self.place..end).unwrap_or_default());
        let name = reader.text().ok_or_else(|| malformed("Document sequence without a name"))?;
        if self.sequences.iter().flatten().any(|other| self.message.get(other.name.clone()) == Some(name)) {
            return Err(Error::location(40431, format!("Duplicate document sequence: {name}")));
        }
        let name = self.place..self.place + name.len();
        self.place = name.end + 1;
        let start = self.place;
        let mut count = 0;
        while self.place < end {
            self.document(end)?;
            count += 1;
        }
        if let Some(slot) = self.sequences.get_mut(slot) {
            *slot = Some(SequenceRange { name, documents: start..end, count });
        }
        Ok(())
    }

    /// Reads the size of a sequence, which counts itself; where does the sequence end?
    fn sequence_end(&mut self) -> Result<usize> {
        let wrong = || malformed("Document sequence with a wrong size");
        let size = usize::try_from(Reader::new(self.rest()).int32().ok_or_else(wrong)?).map_err(|_| wrong())?;
        let end = self.place.checked_add(size).filter(|end| *end <= self.end).ok_or_else(wrong)?;
        self.place += size_of::<i32>();
        if end < self.place { Err(wrong()) } else { Ok(end) }
    }

    /// Validates the document that starts here and ends before `end`.
    fn document(&mut self, end: usize) -> Result<Range<usize>> {
        let bytes = self.message.get(self.place..end).unwrap_or_default();
        let (document, _) = DocRef::parse_prefix(bytes, &limits())?;
        let range = self.place..self.place + document.size_bytes();
        self.place = range.end;
        Ok(range)
    }

    fn rest(&self) -> &'a [u8] {
        self.message.get(self.place..self.end).unwrap_or_default()
    }
}
