//! A record id at the end of an index key: among equal keys it sorts like the ids, and it can be split off from the end.
//!
//! * long: eight bytes, big-endian with the sign bit flipped. The fixed length is what lets a table's filter leave it out.
//! * bytes: `escaped 00 length`. In `escaped` each `00` of the id is followed by `FF`. `length` counts the escaped bytes in
//!   groups of seven bits, most significant group first, read from the end: a set high bit says that another group comes
//!   before. The first byte of `length` is therefore below `80`, so where one id is a prefix of another, the shorter one's
//!   `00 length` sorts before the longer one's next byte: before `00 FF`, and before anything above `00`.
//!
//! Splitting gives none for anything that [`append`] did not write; it never panics.

use super::{RecordId, RecordIdKind};

/// The length of a long.
pub const LONG_LENGTH: usize = 8;
const SIGN_BIT: u64 = 1 << 63;
/// Enough for 28 bits, and ids are below 2^24 bytes even if every byte is escaped.
const LENGTH_GROUP_COUNT_MAX: u32 = 4;

/// A number so that memcmp order is numeric order.
pub fn long_to_bytes(number: i64) -> [u8; LONG_LENGTH] {
    (number as u64 ^ SIGN_BIT).to_be_bytes()
}

/// The number that [`long_to_bytes`] wrote.
pub fn long_from_bytes(bytes: [u8; LONG_LENGTH]) -> i64 {
    (u64::from_be_bytes(bytes) ^ SIGN_BIT) as i64
}

/// Writes the suffix, piece by piece.
pub fn append(id: &RecordId, write: &mut impl FnMut(&[u8])) {
    match id {
        RecordId::Long(number) => write(&long_to_bytes(*number)),
        RecordId::Bytes(bytes) => {
            debug_assert!(bytes.len() <= RecordId::BYTES_LENGTH_MAX);
            let mut length = bytes.len();
            for piece in bytes.split_inclusive(|&byte| byte == 0) {
                write(piece);
                if piece.last() == Some(&0) {
                    write(&[u8::MAX]);
                    length += 1;
                }
            }
            write(&[0]);
            append_length(length, write);
        }
    }
}

fn append_length(length: usize, write: &mut impl FnMut(&[u8])) {
    let groups = (usize::BITS - length.leading_zeros()).div_ceil(7).max(1);
    for group in (0..groups).rev() {
        let more = if group + 1 == groups { 0 } else { 0x80 };
        write(&[(length >> (7 * group)) as u8 & 0x7f | more]);
    }
}

/// The key proper and the record id behind it.
pub fn split(kind: RecordIdKind, key: &[u8]) -> Option<(&[u8], RecordId)> {
    match kind {
        RecordIdKind::Long => {
            let (start, number) = key.split_last_chunk::<LONG_LENGTH>()?;
            Some((start, RecordId::Long(long_from_bytes(*number))))
        }
        RecordIdKind::Bytes => {
            let (start, escaped) = split_escaped(key)?;
            Some((start, RecordId::Bytes(unescape(escaped)?)))
        }
    }
}

fn split_escaped(key: &[u8]) -> Option<(&[u8], &[u8])> {
    let (rest, length) = split_length(key)?;
    let (0, rest) = rest.split_last().map(|(last, rest)| (*last, rest))? else { return None };
    rest.split_at_checked(rest.len().checked_sub(length)?)
}

fn split_length(mut key: &[u8]) -> Option<(&[u8], usize)> {
    let mut length = 0;
    for group in 0..LENGTH_GROUP_COUNT_MAX {
        let (last, rest) = key.split_last()?;
        length |= usize::from(last & 0x7f) << (7 * group);
        key = rest;
        if last & 0x80 == 0 {
            return Some((key, length));
        }
    }
    None
}

fn unescape(escaped: &[u8]) -> Option<Box<[u8]>> {
    let mut bytes = Vec::with_capacity(escaped.len());
    let mut rest = escaped.iter();
    while let Some(byte) = rest.next() {
        bytes.push(*byte);
        if *byte == 0 && rest.next() != Some(&u8::MAX) {
            return None;
        }
    }
    Some(bytes.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_that_overflow_and_broken_escapes_are_refused() {
        assert_eq!(split_length(&[0xff; 20]), None);
        assert_eq!(split(RecordIdKind::Bytes, &[1, 0, 9]), None);
        assert_eq!(split(RecordIdKind::Bytes, &[0, 1, 0, 2]), None);
        assert_eq!(split(RecordIdKind::Long, &[1, 2, 3]), None);
    }
}
