//! The record id at the end of a key: among equal keys it sorts like the ids, and it can be read from the end.
//!
//! This is the suffix under which the storage layer keeps index entries, byte for byte, so that a key with its record id is
//! the table's key.
//!
//! * long: eight bytes, big-endian with the sign bit flipped. Of fixed length, so that a table's filter can leave it out.
//! * bytes (clustered collections): `escaped 00 length`. In `escaped` each `00` of the id is followed by `FF`. `length`
//!   counts the escaped bytes in groups of seven bits, most significant first, read from the end: a set high bit says that
//!   another group comes before. Its first byte is below `80`, so an id sorts before those that continue it.

use crate::buffer::KeyBuffer;
use crate::{Error, Result};
use pando_base::RecordId;

/// What kind of record ids an index leads to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RecordIdKind {
    /// Numbers.
    #[default]
    Long,
    /// Byte strings: clustered collections.
    Bytes,
}

const LONG_LENGTH: usize = 8;
const SIGN_BIT: u64 = 1 << 63;
/// Enough for 28 bits, and ids are below 2^24 bytes even if every byte is escaped.
const LENGTH_GROUP_COUNT_MAX: u32 = 4;

/// Appends the suffix.
pub(crate) fn append_record_id(out: &mut impl KeyBuffer, id: &RecordId) {
    match id {
        RecordId::Long(number) => out.extend(&(*number as u64 ^ SIGN_BIT).to_be_bytes()),
        RecordId::Bytes(bytes) => {
            debug_assert!(bytes.len() <= RecordId::BYTES_LENGTH_MAX);
            let start = out.bytes().len();
            let mut rest = &bytes[..];
            while let Some(zero) = memchr::memchr(0, rest) {
                let (escaped, behind) = rest.split_at(zero + 1);
                out.extend(escaped);
                out.push(u8::MAX);
                rest = behind;
            }
            out.extend(rest);
            let length = out.bytes().len() - start;
            out.push(0);
            append_length(out, length);
        }
    }
}

fn append_length(out: &mut impl KeyBuffer, length: usize) {
    let groups = (usize::BITS - length.leading_zeros()).div_ceil(7).max(1);
    for group in (0..groups).rev() {
        let more = if group + 1 == groups { 0 } else { 0x80 };
        out.push((length >> (7 * group)) as u8 & 0x7f | more);
    }
}

/// How long the key is without the record id at its end.
pub fn size_without_record_id(key: &[u8], kind: RecordIdKind) -> Result<usize> {
    match kind {
        RecordIdKind::Long => key.len().checked_sub(LONG_LENGTH).ok_or(Error::BadRecordId),
        RecordIdKind::Bytes => split_escaped(key).map(|(start, _)| start.len()),
    }
}

/// The record id at the end of a key.
pub fn decode_record_id_at_end(key: &[u8], kind: RecordIdKind) -> Result<RecordId> {
    split_record_id(key, kind).map(|(_, id)| id)
}

/// The key proper and the record id behind it.
pub fn split_record_id(key: &[u8], kind: RecordIdKind) -> Result<(&[u8], RecordId)> {
    match kind {
        RecordIdKind::Long => {
            let (start, number) = key.split_last_chunk::<LONG_LENGTH>().ok_or(Error::BadRecordId)?;
            Ok((start, RecordId::Long((u64::from_be_bytes(*number) ^ SIGN_BIT) as i64)))
        }
        RecordIdKind::Bytes => {
            let (start, escaped) = split_escaped(key)?;
            Ok((start, RecordId::Bytes(unescape(escaped)?)))
        }
    }
}

fn split_escaped(key: &[u8]) -> Result<(&[u8], &[u8])> {
    let (rest, length) = split_length(key)?;
    let Some((0, rest)) = rest.split_last() else { return Err(Error::BadRecordId) };
    let start = rest.len().checked_sub(length).ok_or(Error::BadRecordId)?;
    Ok(rest.split_at(start))
}

fn split_length(mut key: &[u8]) -> Result<(&[u8], usize)> {
    let mut length = 0;
    for group in 0..LENGTH_GROUP_COUNT_MAX {
        let (last, rest) = key.split_last().ok_or(Error::BadRecordId)?;
        length |= usize::from(last & 0x7f) << (7 * group);
        key = rest;
        if last & 0x80 == 0 {
            return Ok((key, length));
        }
    }
    Err(Error::BadRecordId)
}

fn unescape(escaped: &[u8]) -> Result<Box<[u8]>> {
    let mut bytes = Vec::with_capacity(escaped.len());
    let mut rest = escaped;
    while let Some(zero) = memchr::memchr(0, rest) {
        bytes.extend_from_slice(&rest[..=zero]);
        rest = rest[zero + 1..].strip_prefix(&[u8::MAX]).ok_or(Error::BadRecordId)?;
    }
    bytes.extend_from_slice(rest);
    Ok(bytes.into())
}
