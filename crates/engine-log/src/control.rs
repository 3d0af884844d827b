//! The bodies of the log's own records: marks, links, truncations, indexes and seals.
//!
//! Each is a fixed list of 64-bit numbers; an index has its rows after them.

use crate::LogPosition;
use crate::index::Row;
use crate::record::{Class, HEADER_BYTES, Header, padded};
use pando_base::Timestamp;
use xxhash_rust::xxh3::xxh3_64;

/// The size of a mark's record.
pub(crate) const MARK_BYTES: u64 = HEADER_BYTES as u64 + 24;
/// The size of a link's record.
pub(crate) const LINK_BYTES: u64 = HEADER_BYTES as u64 + 32;
/// The size of an index record without its rows.
pub(crate) const INDEX_BASE_BYTES: u64 = (HEADER_BYTES + SUMMARY_NUMBERS * 8) as u64;
/// The size of a row in an index record.
pub(crate) const INDEX_ROW_BYTES: u64 = 20;
/// The size of a seal's record.
pub(crate) const SEAL_BYTES: u64 = (HEADER_BYTES + 8 + SUMMARY_NUMBERS * 8) as u64;

const SUMMARY_NUMBERS: usize = 13;

/// The end of a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Every oplog entry at or below has been written before this mark.
    pub(crate) no_holes: Timestamp,
    /// What had been synced when the mark was written.
    pub(crate) known_synced: LogPosition,
    /// When.
    pub(crate) wall_ms: u64,
}

/// The start of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    /// Where the records of the segment before end; all of them are synced.
    pub(crate) previous_end: LogPosition,
    /// What had been synced.
    pub(crate) known_synced: LogPosition,
    /// The last recorded no-holes point.
    pub(crate) no_holes: Timestamp,
    /// When.
    pub(crate) wall_ms: u64,
}

/// What there is to know of a segment without reading its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Summary {
    pub(crate) segment: u32,
    /// Where its commits end.
    pub(crate) end_offset: u32,
    /// Of the rows in its index.
    pub(crate) first: Timestamp,
    pub(crate) last: Timestamp,
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    /// When its newest entry was written, at the latest.
    pub(crate) wall_ms: u64,
    /// The lowest truncation of the new end that this segment records: older segments end there.
    pub(crate) cut_above: Timestamp,
    /// The highest truncation of the old end that this segment records: older segments start after it.
    pub(crate) cut_below: Timestamp,
    /// The last no-holes point it records.
    pub(crate) no_holes: Timestamp,
    pub(crate) known_synced: LogPosition,
    pub(crate) last_sequence: u64,
    /// How many commits it has.
    pub(crate) records: u64,
}

/// A record of the log's own, encoded but for its place.
pub(crate) struct ControlRecord {
    class: Class,
    body: Vec<u8>,
    body_bytes: u32,
    body_hash: u64,
}

impl ControlRecord {
    fn from_numbers(class: Class, numbers: &[u64]) -> ControlRecord {
        ControlRecord::from_body(class, numbers.iter().flat_map(|number| number.to_le_bytes()).collect())
    }

    fn from_body(class: Class, mut body: Vec<u8>) -> ControlRecord {
        let body_bytes = body.len() as u32;
        body.resize(padded(body.len() as u64) as usize, 0);
        let body_hash = xxh3_64(&body);
        ControlRecord { class, body, body_bytes, body_hash }
    }

    pub(crate) fn mark(mark: Mark) -> ControlRecord {
        ControlRecord::from_numbers(Class::Mark, &[mark.no_holes.0, mark.known_synced.to_u64(), mark.wall_ms])
    }

    pub(crate) fn link(link: Link) -> ControlRecord {
        let numbers = [link.previous_end.to_u64(), link.known_synced.to_u64(), link.no_holes.0, link.wall_ms];
        ControlRecord::from_numbers(Class::Link, &numbers)
    }

    pub(crate) fn truncate_after(timestamp: Timestamp) -> ControlRecord {
        ControlRecord::from_numbers(Class::TruncateAfter, &[timestamp.0])
    }

    pub(crate) fn truncate_old(timestamp: Timestamp) -> ControlRecord {
        ControlRecord::from_numbers(Class::TruncateOld, &[timestamp.0])
    }

    pub(crate) fn index(summary: &Summary, rows: &[Row]) -> ControlRecord {
        let mut body = Vec::with_capacity(SUMMARY_NUMBERS * 8 + rows.len() * INDEX_ROW_BYTES as usize + 8);
        summary.encode(&mut body);
        for row in rows {
            body.extend_from_slice(&row.timestamp.0.to_le_bytes());
            body.extend_from_slice(&row.offset.to_le_bytes());
            body.extend_from_slice(&row.length.to_le_bytes());
            body.extend_from_slice(&row.hash.to_le_bytes());
        }
        ControlRecord::from_body(Class::Index, body)
    }

    pub(crate) fn seal(index_offset: u64, summary: &Summary) -> ControlRecord {
        let mut body = index_offset.to_le_bytes().to_vec();
        summary.encode(&mut body);
        ControlRecord::from_body(Class::Seal, body)
    }

    /// The size of the record.
    pub(crate) fn record_bytes(&self) -> u64 {
        (HEADER_BYTES + self.body.len()) as u64
    }

    /// The record's bytes for a place.
    pub(crate) fn encode(&self, at: LogPosition, epoch: u32) -> Vec<u8> {
        let header = Header {
            class: self.class,
            kind: 0,
            epoch,
            entries: 0,
            body_bytes: self.body_bytes,
            sequence: 0,
            body_hash: self.body_hash,
        };
        let mut bytes = Vec::with_capacity(HEADER_BYTES + self.body.len());
        bytes.extend_from_slice(&header.encode(at));
        bytes.extend_from_slice(&self.body);
        bytes
    }
}

fn numbers<const N: usize>(body: &[u8]) -> Option<[u64; N]> {
    let mut numbers = [0; N];
    for (number, bytes) in numbers.iter_mut().zip(body.get(..N * 8)?.chunks_exact(8)) {
        *number = u64::from_le_bytes(bytes.try_into().ok()?);
    }
    Some(numbers)
}

impl Mark {
    pub(crate) fn decode(body: &[u8]) -> Option<Mark> {
        let [no_holes, synced, wall_ms] = numbers(body)?;
        Some(Mark { no_holes: Timestamp(no_holes), known_synced: LogPosition::from_u64(synced), wall_ms })
    }
}

impl Link {
    pub(crate) fn decode(body: &[u8]) -> Option<Link> {
        let [previous, synced, no_holes, wall_ms] = numbers(body)?;
        Some(Link {
            previous_end: LogPosition::from_u64(previous),
            known_synced: LogPosition::from_u64(synced),
            no_holes: Timestamp(no_holes),
            wall_ms,
        })
    }
}

/// The timestamp of a truncation.
pub(crate) fn decode_truncation(body: &[u8]) -> Option<Timestamp> {
    numbers(body).map(|[timestamp]| Timestamp(timestamp))
}

/// A seal's index offset and summary.
pub(crate) fn decode_seal(body: &[u8]) -> Option<(u64, Summary)> {
    let [offset] = numbers(body)?;
    Some((offset, Summary::decode(body.get(8..)?)?))
}

/// An index's rows; none unless they are sorted and as many as the summary says.
pub(crate) fn decode_index(header: &Header, body: &[u8]) -> Option<(Summary, Vec<Row>)> {
    let summary = Summary::decode(body)?;
    let bytes = body.get(SUMMARY_NUMBERS * 8..header.body_bytes as usize)?;
    if !bytes.len().is_multiple_of(INDEX_ROW_BYTES as usize) {
        return None;
    }
    let mut rows = Vec::with_capacity(bytes.len() / INDEX_ROW_BYTES as usize);
    for row in bytes.chunks_exact(INDEX_ROW_BYTES as usize) {
        rows.push(Row {
            timestamp: Timestamp(u64::from_le_bytes(row[..8].try_into().ok()?)),
            offset: u32::from_le_bytes(row[8..12].try_into().ok()?),
            length: u32::from_le_bytes(row[12..16].try_into().ok()?),
            hash: u32::from_le_bytes(row[16..20].try_into().ok()?),
        });
    }
    (rows.len() as u64 == summary.count && rows.is_sorted_by_key(|row| row.timestamp)).then_some((summary, rows))
}

impl Summary {
    fn encode(&self, out: &mut Vec<u8>) {
        let numbers: [u64; SUMMARY_NUMBERS] = [
            u64::from(self.segment),
            u64::from(self.end_offset),
            self.first.0,
            self.last.0,
            self.count,
            self.bytes,
            self.wall_ms,
            self.cut_above.0,
            self.cut_below.0,
            self.no_holes.0,
            self.known_synced.to_u64(),
            self.last_sequence,
            self.records,
        ];
        numbers.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
    }

    pub(crate) fn decode(body: &[u8]) -> Option<Summary> {
        let numbers: [u64; SUMMARY_NUMBERS] = numbers(body)?;
        let [
            segment,
            end_offset,
            first,
            last,
            count,
            bytes,
            wall_ms,
            above,
            below,
            no_holes,
            synced,
            sequence,
            records,
        ] = numbers;
        Some(Summary {
            segment: u32::try_from(segment).ok()?,
            end_offset: u32::try_from(end_offset).ok()?,
            first: Timestamp(first),
            last: Timestamp(last),
            count,
            bytes,
            wall_ms,
            cut_above: Timestamp(above),
            cut_below: Timestamp(below),
            no_holes: Timestamp(no_holes),
            known_synced: LogPosition::from_u64(synced),
            last_sequence: sequence,
            records,
        })
    }
}
