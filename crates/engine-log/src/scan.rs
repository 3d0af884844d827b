//! Reading a segment from front to back.
//!
//! A [`Scanner`] yields the records that are sound, in order, and says how they end: in zeros that were never written, or
//! in something else. It does not judge whether the end is a torn tail or corruption; that needs to know what was synced
//! (see `chain`). After an end it can look for the next sound header, for salvage and for that judgement.
//!
//! Records are slices of one large read, so scanning copies nothing.

use crate::record::{ALIGNMENT, HEADER_BYTES, Header, MAGIC, body_matches};
use crate::segment::{FIRST_RECORD, Segment};
use crate::{LogError, LogPosition, Result};
use bytes::Bytes;
use pando_env::File;
use std::sync::Arc;

/// How much is read at once.
const READ_BYTES: u64 = 1 << 20;
/// How much is read where one record is wanted.
const READ_BYTES_SINGLE: u64 = 512;

/// One sound record.
pub(crate) struct Frame {
    pub(crate) at: LogPosition,
    pub(crate) end: LogPosition,
    pub(crate) header: Header,
    /// With its padding.
    pub(crate) body: Bytes,
}

/// What comes next.
pub(crate) enum Step {
    /// A record.
    Frame(Frame),
    /// Nothing more: the limit, or zeros.
    Blank,
    /// Something that is not a record.
    Damaged(&'static str),
}

/// A reader of one segment.
pub(crate) struct Scanner {
    segment: Arc<Segment>,
    file: Arc<dyn File>,
    offset: u64,
    limit: u64,
    buffer: Bytes,
    buffer_start: u64,
    read_bytes: u64,
}

impl Scanner {
    /// Reads from an offset (at the earliest the first record's) up to a limit (at most the file's length).
    pub(crate) fn new(segment: &Arc<Segment>, offset: u64, limit: u64) -> Result<Scanner> {
        let file = segment.file().map_err(|error| LogError::io(&segment.path, error))?;
        let length = file.length().map_err(|error| LogError::io(&segment.path, error))?;
        Ok(Scanner {
            segment: Arc::clone(segment),
            file,
            offset: offset.max(FIRST_RECORD),
            limit: limit.min(length).min(u64::from(u32::MAX)),
            buffer: Bytes::new(),
            buffer_start: 0,
            read_bytes: READ_BYTES,
        })
    }

    /// Where the next record would start.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Where reading ends.
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// The segment that is read.
    pub(crate) fn segment(&self) -> &Arc<Segment> {
        &self.segment
    }

    /// The next record. After an end the scanner stays where it is.
    pub(crate) fn step(&mut self) -> Result<Step> {
        let left = self.limit.saturating_sub(self.offset);
        if left == 0 {
            return Ok(Step::Blank);
        }
        let head = self.bytes(left.min(HEADER_BYTES as u64))?;
        if head.iter().all(|byte| *byte == 0) {
            return Ok(Step::Blank);
        }
        let at = self.segment.at(self.offset);
        let Some(header) = Header::decode(&head, at) else {
            return Ok(Step::Damaged("not a record header"));
        };
        if header.epoch != self.segment.epoch {
            return Ok(Step::Damaged("a record of another life"));
        }
        let record_bytes = header.record_bytes();
        if record_bytes > left {
            return Ok(Step::Damaged("the record passes the end"));
        }
        let record = self.bytes(record_bytes)?;
        let body = record.slice(HEADER_BYTES..);
        if !body_matches(&header, &body) {
            return Ok(Step::Damaged("the checksum of the record's body does not match"));
        }
        self.offset += record_bytes;
        Ok(Step::Frame(Frame { at, end: self.segment.at(self.offset), header, body }))
    }

    /// Moves on to the next place, after the present one, where a sound header of this life lies; false if there is none.
    pub(crate) fn resync(&mut self) -> Result<bool> {
        let mut offset = self.offset + ALIGNMENT;
        while offset + HEADER_BYTES as u64 <= self.limit {
            self.offset = offset;
            let window = self.bytes((self.limit - offset).min(READ_BYTES))?;
            let last = window.len() - HEADER_BYTES;
            for at in (0..=last).step_by(ALIGNMENT as usize) {
                if window[at..at + 4] != MAGIC.to_le_bytes() {
                    continue;
                }
                let place = self.segment.at(offset + at as u64);
                if Header::decode(&window[at..], place).is_some_and(|header| header.epoch == self.segment.epoch) {
                    self.offset = offset + at as u64;
                    return Ok(true);
                }
            }
            offset += (last as u64 / ALIGNMENT + 1) * ALIGNMENT;
        }
        self.offset = self.limit;
        Ok(false)
    }

    /// Lets [`Scanner::resync`] find the record right at the present place.
    pub(crate) fn step_back(&mut self) {
        self.offset -= ALIGNMENT;
    }

    /// The bytes from the present offset on; the caller has checked that they lie below the limit.
    fn bytes(&mut self, length: u64) -> Result<Bytes> {
        let start = self.offset.saturating_sub(self.buffer_start);
        if self.offset < self.buffer_start || start + length > self.buffer.len() as u64 {
            let wanted = length.max(self.read_bytes).min(self.limit - self.offset);
            let mut buffer = vec![0; wanted as usize];
            let read = self.file.read_exact_at(&mut buffer, self.offset);
            read.map_err(|error| LogError::io(&self.segment.path, error))?;
            self.buffer = Bytes::from(buffer);
            self.buffer_start = self.offset;
            return Ok(self.buffer.slice(..length as usize));
        }
        Ok(self.buffer.slice(start as usize..(start + length) as usize))
    }
}

/// Reads what is at one place and no more than that.
pub(crate) fn step_at(segment: &Arc<Segment>, offset: u64) -> Result<Step> {
    let mut scanner = Scanner::new(segment, offset, u64::MAX)?;
    scanner.read_bytes = READ_BYTES_SINGLE;
    scanner.step()
}

/// Reads one record at a place, if a sound one starts there.
pub(crate) fn read_record(segment: &Arc<Segment>, offset: u64) -> Result<Option<Frame>> {
    match step_at(segment, offset)? {
        Step::Frame(frame) => Ok(Some(frame)),
        Step::Blank | Step::Damaged(_) => Ok(None),
    }
}
