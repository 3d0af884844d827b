//! OP_COMPRESSED: which algorithms there are, which of them two sides agree on, and how a message is wrapped.
//!
//! The wrapped message is everything after its header; header fields other than length and kind stay the same. A message
//! inside is never compressed again. All sizes are judged before a buffer is reserved: what the wrapper claims against
//! the message limit and against what the algorithm can reach at best; what the data itself claims against the wrapper.
//! A stream that yields more than it claimed is cut off there.
//!
//! A server answers a compressed request with the same algorithm and an uncompressed one plainly; a client compresses
//! with the first algorithm that both sides named, and never the commands in `NEVER_COMPRESSED`, which carry secrets or
//! come before the agreement.

mod algorithm;

use crate::header::{Header, OpCode};
use crate::limits::{HEADER_SIZE_BYTES, MESSAGE_SIZE_BYTES_MAX};
use crate::reader::Reader;
pub use algorithm::Compressor;
use bytes::Bytes;
use pando_base::{Error, ErrorCode, Result};

/// What OP_COMPRESSED puts between the header and the data: the kind inside, its size, the algorithm.
const WRAPPER_SIZE_BYTES: usize = 9;

/// Commands whose requests are sent plainly.
const NEVER_COMPRESSED: &[&str] = &[
    "hello",
    "isMaster",
    "ismaster",
    "saslStart",
    "saslContinue",
    "getnonce",
    "authenticate",
    "createUser",
    "updateUser",
    "copydbSaslStart",
    "copydbgetnonce",
    "copydb",
];

/// May a command with this name be sent compressed?
pub fn may_compress(command_name: &str) -> bool {
    !NEVER_COMPRESSED.contains(&command_name)
}

/// The algorithms that this side allows, in its order of preference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compressors(Vec<Compressor>);

impl Default for Compressors {
    /// What a server offers unless it is told otherwise.
    fn default() -> Compressors {
        Compressors(vec![Compressor::Snappy, Compressor::Zstd, Compressor::Zlib])
    }
}

impl Compressors {
    /// None at all: compressed messages are refused.
    pub fn disabled() -> Compressors {
        Compressors(Vec::new())
    }

    /// Every algorithm, the one that changes nothing included.
    pub fn all() -> Compressors {
        Compressors(vec![Compressor::Snappy, Compressor::Zstd, Compressor::Zlib, Compressor::Noop])
    }

    /// Those named in a setting such as `snappy,zstd,zlib`; `disabled` is none.
    pub fn from_setting(setting: &str) -> Result<Compressors> {
        if setting == "disabled" {
            return Ok(Compressors::disabled());
        }
        let named = setting.split(',').map(str::trim).map(|name| {
            Compressor::from_name(name)
                .ok_or_else(|| Error::new(ErrorCode::BadValue, format!("Invalid network message compressor: {name}")))
        });
        named.collect::<Result<Vec<_>>>().map(Compressors)
    }

    /// Those that both sides allow, in the order in which the other side named them. The first is used.
    pub fn negotiate<'a>(&self, offered: impl IntoIterator<Item = &'a str>) -> Vec<Compressor> {
        let common = offered.into_iter().filter_map(Compressor::from_name).filter(|offer| self.allow(*offer));
        let mut agreed = Vec::new();
        for compressor in common {
            if !agreed.contains(&compressor) {
                agreed.push(compressor);
            }
        }
        agreed
    }

    /// Is this algorithm allowed?
    pub fn allow(&self, compressor: Compressor) -> bool {
        self.0.contains(&compressor)
    }

    /// In order of preference.
    pub fn iter(&self) -> impl Iterator<Item = Compressor> + '_ {
        self.0.iter().copied()
    }
}

/// Unwraps OP_COMPRESSED: the message inside with a header of its own, and the algorithm it came
/// in. The message inside may be as long as one that comes plainly.
pub(crate) fn decompress(
    header: Header,
    message: &[u8],
    allowed: &Compressors,
    size_bytes_max: usize,
) -> Result<(Bytes, Compressor)> {
    let mut reader = Reader::new(message.get(HEADER_SIZE_BYTES..).unwrap_or_default());
    let wrapper = (|| Some((OpCode::from_number(reader.int32()?), reader.int32()?, reader.byte()?)))();
    let (op_code, size, number) = wrapper.ok_or_else(|| Error::bad_value("Invalid compressed message header"))?;
    let compressor = Compressor::from_number(number).filter(|found| allowed.allow(*found)).ok_or_else(|| {
        Error::new(ErrorCode::InternalError, "Compression algorithm specified in message is not available")
    })?;
    if op_code == OpCode::Compressed {
        return Err(Error::bad_value("A compressed message must not contain another one"));
    }
    let size = usize::try_from(size).map_err(|_| Error::bad_value("Decompressed message would be negative in size"))?;
    let length = size + HEADER_SIZE_BYTES;
    if length > size_bytes_max {
        return Err(Error::bad_value("Decompressed message would be larger than maximum message size"));
    }
    compressor.judge(reader.rest(), size)?;
    let mut plain = Vec::with_capacity(length);
    plain.extend_from_slice(&Header { length_bytes: length as i32, op_code, ..header }.to_bytes());
    compressor.decompress(reader.rest(), size, &mut plain)?;
    if plain.len() != length {
        return Err(Error::bad_value("Decompressing message returned less data than expected"));
    }
    Ok((Bytes::from(plain), compressor))
}

/// Wraps a whole message. One that would not get smaller than the message limit, or that cannot be compressed, is
/// returned as it was.
pub(crate) fn compress(message: Vec<u8>, compressor: Compressor) -> Vec<u8> {
    let Some((header, content)) = Header::read(&message).zip(message.get(HEADER_SIZE_BYTES..)) else {
        debug_assert!(false, "a message has a header");
        return message;
    };
    let bound = HEADER_SIZE_BYTES + WRAPPER_SIZE_BYTES + compressor.compressed_size_bytes_max(content.len());
    if bound > MESSAGE_SIZE_BYTES_MAX {
        return message;
    }
    let mut wrapped = Vec::with_capacity(bound);
    wrapped.extend_from_slice(&Header { op_code: OpCode::Compressed, ..header }.to_bytes());
    wrapped.extend_from_slice(&header.op_code.number().to_le_bytes());
    wrapped.extend_from_slice(&(content.len() as i32).to_le_bytes());
    wrapped.push(compressor.number());
    if compressor.compress(content, &mut wrapped).is_none() {
        return message;
    }
    let length = (wrapped.len() as i32).to_le_bytes();
    wrapped[..length.len()].copy_from_slice(&length);
    wrapped
}
