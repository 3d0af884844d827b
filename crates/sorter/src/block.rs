//! Blocks: how entries lie in a file.
//!
//! ```text
//! checksum 8 | stored length 4 | raw length 4 | content
//! ```
//!
//! The content is compressed if the lengths differ. The checksum covers the offset of the block, both lengths and the content as it is stored.

use crate::file::SpillFile;
use crate::{Result, SorterError};
use xxhash_rust::xxh3::Xxh3;

/// How much goes into a block before it is written; one entry may make it longer.
pub(crate) const BLOCK_BYTES: usize = 64 * 1024;
const HEADER_BYTES: usize = 16;
/// No entry, hence no block, is near this: a document has at most 16 MB, and few of them go into one entry.
const RAW_BYTES_MAX: usize = 1 << 30;

/// Writes a block at an offset; says where it ends, and its checksum.
pub(crate) fn write(file: &SpillFile, offset: u64, raw: &[u8], compressor: &mut Compressor) -> Result<(u64, u64)> {
    let Compressor { encoder, buffer } = compressor;
    buffer.clear();
    buffer.resize(HEADER_BYTES + snap::raw::max_compress_len(raw.len()), 0);
    let (header, content) = buffer.split_at_mut(HEADER_BYTES);
    let stored_length = match encoder.compress(raw, content) {
        Ok(length) if length < raw.len() => length,
        _ => {
            let content = content.get_mut(..raw.len()).unwrap_or_default();
            content.copy_from_slice(raw);
            raw.len()
        }
    };
    let content = content.get(..stored_length).unwrap_or_default();
    let lengths = lengths(stored_length, raw.len());
    let checksum = checksum(offset, lengths, content);
    header.copy_from_slice(&[checksum.to_le_bytes(), lengths].concat());
    let end = HEADER_BYTES + stored_length;
    file.write_at(buffer.get(..end).unwrap_or_default(), offset)?;
    Ok((offset + end as u64, checksum))
}

/// Reads the block at an offset into `raw`; says where it ends, and its checksum.
pub(crate) fn read(file: &SpillFile, offset: u64, raw: &mut Vec<u8>, stored: &mut Vec<u8>) -> Result<(u64, u64)> {
    let mut header = [0; HEADER_BYTES];
    read_or_damaged(file, &mut header, offset, offset)?;
    let (sum, lengths) = split(&header);
    let (stored_length, raw_length) = (low(lengths), high(lengths));
    if stored_length > raw_length || raw_length > RAW_BYTES_MAX {
        return Err(file.damaged(offset));
    }
    stored.resize(stored_length, 0);
    read_or_damaged(file, stored, offset + HEADER_BYTES as u64, offset)?;
    if checksum(offset, lengths, stored) != sum {
        return Err(file.damaged(offset));
    }
    if stored_length == raw_length {
        std::mem::swap(raw, stored);
    } else {
        raw.resize(raw_length, 0);
        let length = snap::raw::Decoder::new().decompress(stored, raw).map_err(|_| file.damaged(offset))?;
        if length != raw_length {
            return Err(file.damaged(offset));
        }
    }
    Ok((offset + (HEADER_BYTES + stored_length) as u64, sum))
}

/// A file that ends too early is damaged, too.
fn read_or_damaged(file: &SpillFile, buffer: &mut [u8], offset: u64, block: u64) -> Result<()> {
    file.read_exact_at(buffer, offset).map_err(|error| match error {
        SorterError::Read { source, .. } if source.kind() == std::io::ErrorKind::UnexpectedEof => file.damaged(block),
        other => other,
    })
}

/// Compresses one block after the other.
pub(crate) struct Compressor {
    encoder: snap::raw::Encoder,
    buffer: Vec<u8>,
}

impl Compressor {
    pub(crate) fn new() -> Compressor {
        Compressor { encoder: snap::raw::Encoder::new(), buffer: Vec::new() }
    }
}

fn checksum(offset: u64, lengths: [u8; 8], content: &[u8]) -> u64 {
    let mut digest = Xxh3::with_seed(offset);
    digest.update(&lengths);
    digest.update(content);
    digest.digest()
}

fn lengths(stored: usize, raw: usize) -> [u8; 8] {
    debug_assert!(stored <= raw && raw <= RAW_BYTES_MAX, "a block of {raw} bytes");
    ((raw as u64) << 32 | stored as u64).to_le_bytes()
}

fn low(lengths: [u8; 8]) -> usize {
    u64::from_le_bytes(lengths) as u32 as usize
}

fn high(lengths: [u8; 8]) -> usize {
    (u64::from_le_bytes(lengths) >> 32) as usize
}

fn split(header: &[u8; HEADER_BYTES]) -> (u64, [u8; 8]) {
    let [a, b, c, d, e, f, g, h, lengths @ ..] = *header;
    (u64::from_le_bytes([a, b, c, d, e, f, g, h]), lengths)
}

/// Appends a length in as few bytes as it needs.
pub(crate) fn put_length(out: &mut Vec<u8>, length: usize) {
    let mut rest = length as u64;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Takes bytes with their length in front off a slice; none if they are not all there.
pub(crate) fn take_bytes<'b>(rest: &mut &'b [u8]) -> Option<&'b [u8]> {
    let mut length = 0_u64;
    for shift in (0..35).step_by(7) {
        let (byte, behind) = rest.split_first()?;
        *rest = behind;
        length |= u64::from(byte & 0x7F) << shift;
        if byte & 0x80 == 0 {
            let (bytes, behind) = rest.split_at_checked(usize::try_from(length).ok()?)?;
            *rest = behind;
            return Some(bytes);
        }
    }
    None
}
