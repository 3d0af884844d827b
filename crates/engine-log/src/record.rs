//! The form of a record: a header of 48 bytes, a body, zeros up to the next multiple of 8.
//!
//! ```text
//! header  magic u32 | class u8 | kind u8 | 0 u16 | epoch u32 | entries u32 | body bytes u32 | 0 u32 | sequence u64 |
//!         hash of the body u64 | hash of the header u64
//! body    bytes of the oplog entries | payload | one row for each entry: timestamp u64, length u32, hash u32 | padding
//! ```
//!
//! All numbers are little-endian. The body with its padding is hashed before the lock is taken ([`PreparedRecord`]); the
//! header's hash is seeded with segment, epoch and offset and covers the body's, so a record is valid only at its place, in
//! its file, in its life. Each entry has a hash of its own, seeded with its timestamp, so that a reader of one entry need
//! not read the whole record.
//!
//! Invariants: nothing here touches a file; every length that comes from outside is checked against the bytes at hand.

use crate::{LogError, LogPosition, Result};
use pando_base::Timestamp;
use smallvec::SmallVec;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// The size of a record's header.
pub(crate) const HEADER_BYTES: usize = 48;
/// The size of an entry's row at the end of a body.
const ROW_BYTES: usize = 16;
/// The largest body.
pub(crate) const BODY_BYTES_MAX: u64 = 1 << 30;
/// The first bytes of each record.
pub(crate) const MAGIC: u32 = 0x314c_6e50;
/// Records start at multiples of this.
pub(crate) const ALIGNMENT: u64 = 8;

/// What a record is to the log itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// A commit of the core.
    Commit = 1,
    /// The end of a flush: no-holes point and what was known to be synced.
    Mark = 2,
    /// The first record of a segment: where the one before ended.
    Link = 3,
    /// Oplog entries after a timestamp are gone.
    TruncateAfter = 4,
    /// Oplog entries up to a timestamp are gone.
    TruncateOld = 5,
    /// The sorted rows of a segment's oplog entries.
    Index = 6,
    /// The last record of a sealed segment.
    Seal = 7,
}

impl Class {
    fn from_u8(number: u8) -> Option<Class> {
        Some(match number {
            1 => Class::Commit,
            2 => Class::Mark,
            3 => Class::Link,
            4 => Class::TruncateAfter,
            5 => Class::TruncateOld,
            6 => Class::Index,
            7 => Class::Seal,
            _ => return None,
        })
    }
}

/// A record's header without its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) class: Class,
    pub(crate) kind: u8,
    pub(crate) epoch: u32,
    pub(crate) entries: u32,
    pub(crate) body_bytes: u32,
    pub(crate) sequence: u64,
    pub(crate) body_hash: u64,
}

impl Header {
    /// The header's bytes at a place.
    #[inline]
    pub(crate) fn encode(&self, at: LogPosition) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0..4].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[4] = self.class as u8;
        bytes[5] = self.kind;
        bytes[8..12].copy_from_slice(&self.epoch.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.entries.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.body_bytes.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.body_hash.to_le_bytes());
        let hash = xxh3_64_with_seed(&bytes[..40], seed(at, self.epoch));
        bytes[40..48].copy_from_slice(&hash.to_le_bytes());
        bytes
    }

    /// The header at a place, if these bytes are one. The caller compares the epoch.
    pub(crate) fn decode(bytes: &[u8], at: LogPosition) -> Option<Header> {
        let bytes: &[u8; HEADER_BYTES] = bytes.get(..HEADER_BYTES)?.try_into().ok()?;
        if u32_at(bytes, 0) != MAGIC {
            return None;
        }
        let epoch = u32_at(bytes, 8);
        if xxh3_64_with_seed(&bytes[..40], seed(at, epoch)) != u64_at(bytes, 40) {
            return None;
        }
        let header = Header {
            class: Class::from_u8(bytes[4])?,
            kind: bytes[5],
            epoch,
            entries: u32_at(bytes, 12),
            body_bytes: u32_at(bytes, 16),
            sequence: u64_at(bytes, 24),
            body_hash: u64_at(bytes, 32),
        };
        let rows_bytes = u64::from(header.entries) * ROW_BYTES as u64;
        (u64::from(header.body_bytes) <= BODY_BYTES_MAX && rows_bytes <= u64::from(header.body_bytes)).then_some(header)
    }

    /// The size of the whole record on disk.
    pub(crate) fn record_bytes(&self) -> u64 {
        HEADER_BYTES as u64 + padded(u64::from(self.body_bytes))
    }
}

/// True if the padded body is the one that was hashed.
pub(crate) fn body_matches(header: &Header, padded_body: &[u8]) -> bool {
    xxh3_64(padded_body) == header.body_hash
}

/// A length with the zeros that follow it.
pub(crate) const fn padded(bytes: u64) -> u64 {
    bytes.next_multiple_of(ALIGNMENT)
}

/// The hash of one oplog entry.
#[inline]
pub(crate) fn entry_hash(timestamp: Timestamp, bytes: &[u8]) -> u32 {
    xxh3_64_with_seed(bytes, timestamp.0) as u32
}

#[inline]
fn seed(at: LogPosition, epoch: u32) -> u64 {
    at.to_u64() ^ u64::from(epoch).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn u32_at(bytes: &[u8; HEADER_BYTES], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8; HEADER_BYTES], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

/// Where an entry lies in its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntryPlace {
    pub(crate) timestamp: Timestamp,
    /// From the record's start, header included.
    pub(crate) offset: u32,
    pub(crate) length: u32,
    pub(crate) hash: u32,
}

/// A commit that is encoded and hashed and only lacks its place. Build it before the lock is taken; it may be rebuilt for
/// the next commit to save the allocations.
#[derive(Debug, Default, Clone)]
pub struct PreparedRecord {
    pub(crate) kind: u8,
    /// Room for the header, then the body with its padding; empty before anything is there.
    pub(crate) bytes: Vec<u8>,
    pub(crate) body_bytes: u32,
    pub(crate) body_hash: u64,
    pub(crate) places: SmallVec<[EntryPlace; 1]>,
    pub(crate) highest: Timestamp,
}

impl PreparedRecord {
    /// A record of the core: its kind, its oplog entries and its redo.
    pub fn new<E: AsRef<[u8]>>(kind: u8, entries: &[(Timestamp, E)], payload: &[u8]) -> Result<PreparedRecord> {
        let mut record = PreparedRecord::default();
        record.rebuild(kind, entries, payload)?;
        Ok(record)
    }

    /// Makes this another record.
    pub fn rebuild<E: AsRef<[u8]>>(&mut self, kind: u8, entries: &[(Timestamp, E)], payload: &[u8]) -> Result<()> {
        self.bytes.clear();
        self.places.clear();
        self.highest = Timestamp::NONE;
        for (timestamp, bytes) in entries {
            self.push_entry(*timestamp, bytes.as_ref());
        }
        self.complete(kind, &[payload])
    }

    /// Adds an oplog entry; the record is [completed](PreparedRecord::complete) later.
    pub fn push_entry(&mut self, timestamp: Timestamp, bytes: &[u8]) {
        let append = |mut record: Vec<u8>| {
            // A single entry, as most commits have, is the body with its row and padding.
            record.reserve(bytes.len() + ROW_BYTES + ALIGNMENT as usize);
            record.extend_from_slice(bytes);
            record
        };
        let added = self.build_entry(timestamp, usize::MAX, append);
        debug_assert_eq!(added, Ok(bytes.len()));
    }

    /// Adds the oplog entry that `build` puts behind the bytes that it gets; its length. One that is longer than it may be is not
    /// added, and its length is the error.
    pub fn build_entry(
        &mut self,
        timestamp: Timestamp,
        length_max: usize,
        build: impl FnOnce(Vec<u8>) -> Vec<u8>,
    ) -> std::result::Result<usize, usize> {
        debug_assert!(timestamp.is_some(), "an oplog entry has a timestamp");
        self.make_header_room();
        let start = self.bytes.len();
        self.bytes = build(std::mem::take(&mut self.bytes));
        debug_assert!(self.bytes.len() >= start, "an entry is put behind what is there");
        let entry = self.bytes.get(start..).unwrap_or_default();
        let length = entry.len();
        if length > length_max {
            self.bytes.truncate(start);
            return Err(length);
        }
        let hash = entry_hash(timestamp, entry);
        self.places.push(EntryPlace { timestamp, offset: start as u32, length: length as u32, hash });
        self.highest = self.highest.max(timestamp);
        Ok(length)
    }

    /// Makes room for so many more entries of so many bytes together.
    pub(crate) fn reserve(&mut self, entries: usize, bytes: usize) {
        self.make_header_room();
        self.places.reserve(entries);
        self.bytes.reserve_exact(PreparedRecord::bytes_with(self.places.len() + entries, bytes) - HEADER_BYTES);
    }

    /// The bytes of a record with so many entries of so many bytes together, at most.
    pub(crate) fn bytes_with(entries: usize, bytes: usize) -> usize {
        HEADER_BYTES + bytes + entries * ROW_BYTES + ALIGNMENT as usize
    }

    fn make_header_room(&mut self) {
        if self.bytes.is_empty() {
            self.bytes.resize(HEADER_BYTES, 0);
        }
    }

    /// The body with its padding.
    pub(crate) fn body(&self) -> &[u8] {
        self.bytes.get(HEADER_BYTES..).unwrap_or_default()
    }

    /// True if it has an entry with this timestamp.
    pub fn has_entry(&self, timestamp: Timestamp) -> bool {
        // Entries mostly come in order.
        timestamp <= self.highest && self.places.iter().any(|place| place.timestamp == timestamp)
    }

    /// Completes a record whose entries are there, with a payload in parts.
    pub fn complete(&mut self, kind: u8, payload: &[&[u8]]) -> Result<()> {
        let payload_bytes: usize = payload.iter().map(|part| part.len()).sum();
        self.make_header_room();
        let bytes = (self.body().len() + payload_bytes + self.places.len() * ROW_BYTES) as u64;
        if bytes > BODY_BYTES_MAX {
            return Err(LogError::RecordTooLarge { bytes, limit_bytes: BODY_BYTES_MAX });
        }
        self.kind = kind;
        self.body_bytes = bytes as u32;
        self.bytes.reserve_exact(padded(bytes) as usize - self.body().len());
        payload.iter().for_each(|part| self.bytes.extend_from_slice(part));
        for place in &self.places {
            self.bytes.extend_from_slice(&place.timestamp.0.to_le_bytes());
            self.bytes.extend_from_slice(&place.length.to_le_bytes());
            self.bytes.extend_from_slice(&place.hash.to_le_bytes());
        }
        debug_assert_eq!(self.body().len(), self.body_bytes as usize);
        self.bytes.resize(HEADER_BYTES + padded(bytes) as usize, 0);
        self.body_hash = xxh3_64(self.body());
        Ok(())
    }

    /// The size of the record in the log.
    pub fn record_bytes(&self) -> u64 {
        (HEADER_BYTES + self.body().len()) as u64
    }

    /// The whole record with this header, which it gives away.
    pub(crate) fn take_bytes(&mut self, header: &[u8; HEADER_BYTES]) -> Vec<u8> {
        if let Some(room) = self.bytes.first_chunk_mut() {
            *room = *header;
        }
        std::mem::take(&mut self.bytes)
    }

    /// The highest timestamp of its oplog entries, or none.
    pub fn highest_timestamp(&self) -> Timestamp {
        self.highest
    }

    /// How many oplog entries it has.
    pub fn entry_count(&self) -> usize {
        self.places.len()
    }

    /// The header at a place in the log.
    #[inline]
    pub(crate) fn header(&self, class: Class, epoch: u32, sequence: u64) -> Header {
        Header {
            class,
            kind: self.kind,
            epoch,
            entries: self.places.len() as u32,
            body_bytes: self.body_bytes,
            sequence,
            body_hash: self.body_hash,
        }
    }
}

/// The parts of a commit's body as it was read.
pub(crate) struct CommitBody {
    pub(crate) places: Vec<EntryPlace>,
    /// Where the payload lies in the body.
    pub(crate) payload: std::ops::Range<usize>,
}

impl CommitBody {
    /// Takes a body apart; none if its rows do not fit it.
    pub(crate) fn decode(header: &Header, body: &[u8]) -> Option<CommitBody> {
        let body_bytes = header.body_bytes as usize;
        let rows_start = body_bytes.checked_sub((header.entries as usize).checked_mul(ROW_BYTES)?)?;
        let rows = body.get(rows_start..body_bytes)?;
        let mut places = Vec::with_capacity(header.entries as usize);
        let mut at = 0usize;
        for row in rows.chunks_exact(ROW_BYTES) {
            let (timestamp, rest) = row.split_at(8);
            let length = u32::from_le_bytes(rest[..4].try_into().ok()?);
            places.push(EntryPlace {
                timestamp: Timestamp(u64::from_le_bytes(timestamp.try_into().ok()?)),
                offset: u32::try_from(HEADER_BYTES + at).ok()?,
                length,
                hash: u32::from_le_bytes(rest[4..].try_into().ok()?),
            });
            at = at.checked_add(length as usize).filter(|end| *end <= rows_start)?;
        }
        Some(CommitBody { places, payload: at..rows_start })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_valid_only_at_its_place() {
        let record =
            PreparedRecord::new(3, &[(Timestamp(5), b"five".as_slice()), (Timestamp(4), b"")], b"redo").unwrap();
        assert_eq!((record.highest_timestamp(), record.entry_count()), (Timestamp(5), 2));
        let at = LogPosition::new(2, 64);
        let header = record.header(Class::Commit, 9, 77);
        let bytes = header.encode(at);
        assert_eq!(Header::decode(&bytes, at), Some(header));
        assert_eq!(Header::decode(&bytes, LogPosition::new(2, 72)), None);
        assert_eq!(Header::decode(&bytes, LogPosition::new(3, 64)), None);
        assert!(body_matches(&header, record.body()));
        let body = CommitBody::decode(&header, record.body()).unwrap();
        assert_eq!(body.places.as_slice(), record.places.as_slice());
        assert_eq!(&record.body()[body.payload], b"redo");
        for byte in 0..HEADER_BYTES {
            for bit in 0..8 {
                let mut damaged = bytes;
                damaged[byte] ^= 1 << bit;
                assert_eq!(Header::decode(&damaged, at), None, "byte {byte} bit {bit}");
            }
        }
    }

    #[test]
    fn a_record_can_be_rebuilt() {
        let mut record = PreparedRecord::new(1, &[(Timestamp(9), vec![7; 100])], &[1; 33]).unwrap();
        record.rebuild::<&[u8]>(2, &[], b"x").unwrap();
        let fresh = PreparedRecord::new::<&[u8]>(2, &[], b"x").unwrap();
        assert_eq!((record.body_hash, record.bytes), (fresh.body_hash, fresh.bytes));
        assert_eq!(record.highest, Timestamp::NONE);
    }
}
