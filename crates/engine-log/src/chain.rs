//! Making sense of the segment files that an earlier life left.
//!
//! Each segment that was ever used starts with a link that names the end of the one before, and is written only after that
//! one was synced. So the used segments form a chain; everything below a link's `previous_end` is known to be durable and
//! damage there is corruption. Only the last segment may have a torn tail, and only above the highest position that any
//! sound mark in it states as synced: a mark further on that vouches for the damaged place makes it corruption too.
//!
//! A file whose first record is not a link was reserved but never used with success. If it is blank it may be removed; if
//! not, it is left alone and passed over.

use crate::control::{self, Link, Mark, Summary};
use crate::index::Row;
use crate::record::{Class, CommitBody};
use crate::scan::{Frame, Scanner, Step, read_record, step_at};
use crate::segment::{FIRST_RECORD, Opened, Segment, list_segments};
use crate::walk::vouched;
use crate::{LogError, LogPosition, Result};
use pando_base::Timestamp;
use pando_env::Env;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A used segment and its first record.
pub(crate) struct ChainSegment {
    pub(crate) segment: Arc<Segment>,
    pub(crate) link: Link,
}

/// The used segments, oldest first.
pub(crate) struct Chain {
    pub(crate) segments: Vec<ChainSegment>,
    /// Reserved files that nothing was written to.
    pub(crate) blank: Vec<PathBuf>,
    /// The highest number that any file has.
    pub(crate) id_max: u32,
}

/// What a segment holds.
pub(crate) struct Contents {
    pub(crate) summary: Summary,
    /// Its rows, where they had to be read; else they are in the index record named by `index`.
    pub(crate) rows: Option<Vec<Row>>,
    /// The segment and offset of the index record.
    pub(crate) index: Option<(Arc<Segment>, u32)>,
    /// It was sealed.
    pub(crate) sealed: bool,
    /// Where a torn tail was cut.
    pub(crate) torn: Option<u64>,
}

/// Reads headers and links.
pub(crate) fn read_chain(env: &Env, directory: &Path) -> Result<Chain> {
    let mut chain = Chain { segments: Vec::new(), blank: Vec::new(), id_max: 0 };
    // Files that are neither used nor blank: whoever links to one says that it was damaged.
    let mut passed_over: Vec<(u32, PathBuf)> = Vec::new();
    for (id, path) in list_segments(env.disk(), directory)? {
        chain.id_max = id;
        let Opened::Segment(segment) = Segment::open(env.disk(), &path, id)? else {
            chain.blank.push(path);
            continue;
        };
        let segment = Arc::new(segment);
        match step_at(&segment, FIRST_RECORD)? {
            Step::Frame(frame) if frame.header.class == Class::Link => {
                let link = Link::decode(&frame.body);
                let link = link.ok_or_else(|| LogError::corruption(&path, FIRST_RECORD, "the link is malformed"))?;
                check_link(&chain, &passed_over, &path, &link)?;
                chain.segments.push(ChainSegment { segment, link });
            }
            Step::Blank => chain.blank.push(path),
            Step::Frame(_) | Step::Damaged(_) => passed_over.push((id, path)),
        }
    }
    if let Some((id, path)) = passed_over.last()
        && chain.segments.last().is_none_or(|last| last.segment.id < *id)
    {
        refuse_if_vouched(env, *id, path)?;
    }
    Ok(chain)
}

/// A segment must follow the one that its link names.
fn check_link(chain: &Chain, passed_over: &[(u32, PathBuf)], path: &Path, link: &Link) -> Result<()> {
    let Some(previous) = chain.segments.last() else {
        return match passed_over.iter().find(|(id, _)| *id == link.previous_end.segment) {
            Some((_, damaged)) => Err(LogError::corruption(damaged, FIRST_RECORD, "the first record is damaged")),
            None => Ok(()),
        };
    };
    if previous.segment.id == link.previous_end.segment {
        return Ok(());
    }
    match passed_over.iter().find(|(id, _)| *id == link.previous_end.segment) {
        Some((_, damaged)) => Err(LogError::corruption(damaged, FIRST_RECORD, "the first record is damaged")),
        None => {
            let detail = format!("it follows segment {}, which is missing", link.previous_end.segment);
            Err(LogError::corruption(path, FIRST_RECORD, detail))
        }
    }
}

/// The newest file has no sound link: an unfinished first flush, unless something in it was known to be synced.
fn refuse_if_vouched(env: &Env, id: u32, path: &Path) -> Result<()> {
    if let Opened::Segment(segment) = Segment::open(env.disk(), path, id)? {
        let segment = Arc::new(segment);
        let mut scanner = Scanner::new(&segment, FIRST_RECORD, u64::MAX)?;
        if vouched_beyond(&mut scanner)? {
            return Err(LogError::corruption(path, FIRST_RECORD, "the first record is damaged"));
        }
    }
    Ok(())
}

/// True if a sound mark after the scanner's place states that the place had been synced.
fn vouched_beyond(scanner: &mut Scanner) -> Result<bool> {
    let damaged = scanner.segment().at(scanner.offset());
    while scanner.resync()? {
        let Step::Frame(frame) = scanner.step()? else { continue };
        if vouched(&frame).is_some_and(|synced| synced > damaged) {
            return Ok(true);
        }
        // The scanner stands after this record; look again from its last 8 bytes on, so that the next one is seen.
        scanner.step_back();
    }
    Ok(false)
}

impl Chain {
    /// Where the records of a segment must reach, unless it is the last.
    pub(crate) fn required_end(&self, at: usize) -> Option<u64> {
        self.segments.get(at + 1).map(|next| u64::from(next.link.previous_end.offset))
    }

    /// What a segment holds: from its seal, from the index that its successor keeps for it, or by reading it.
    pub(crate) fn contents(&self, at: usize) -> Result<Contents> {
        let ChainSegment { segment, link } = &self.segments[at];
        if let Some((index_offset, summary)) = read_seal(segment)?
            && self.may_trust(at, index_offset, &summary)?
        {
            let index = Some((Arc::clone(segment), index_offset));
            return Ok(Contents { summary, rows: None, index, sealed: true, torn: None });
        }
        if let Some(next) = self.segments.get(at + 1) {
            let after_link = FIRST_RECORD + control::LINK_BYTES;
            if let Some(frame) = read_record(&next.segment, after_link)?
                && let Some(summary) = index_of(&frame, segment.id)
            {
                let index = Some((Arc::clone(&next.segment), after_link as u32));
                return Ok(Contents { summary, rows: None, index, sealed: false, torn: None });
            }
        }
        self.read_contents(at, link)
    }

    /// A seal says nothing of the bytes before it unless these were synced first: because the next segment was begun, or
    /// because the log was closed in good order.
    fn may_trust(&self, at: usize, index_offset: u32, summary: &Summary) -> Result<bool> {
        if let Some(required) = self.required_end(at) {
            // Where the seal outlived a torn tail, recovery has linked to an earlier end.
            return Ok(u64::from(summary.end_offset) == required);
        }
        let segment = &self.segments[at].segment;
        if summary.known_synced < LogPosition::new(segment.id, summary.end_offset) {
            return Ok(false);
        }
        let index = read_record(segment, u64::from(index_offset))?;
        Ok(index.is_some_and(|frame| index_of(&frame, segment.id).is_some()))
    }

    fn read_contents(&self, at: usize, link: &Link) -> Result<Contents> {
        let segment = &self.segments[at].segment;
        let required = self.required_end(at);
        let mut scanner = Scanner::new(segment, FIRST_RECORD, required.unwrap_or(u64::MAX))?;
        let mut digest = Digest::new(segment.id, link);
        let end = loop {
            match scanner.step()? {
                Step::Frame(frame)
                    if matches!(frame.header.class, Class::Index | Class::Seal) && digest.is_own(&frame) =>
                {
                    break None;
                }
                Step::Frame(frame) => digest.add(&frame, segment)?,
                Step::Blank => break None,
                Step::Damaged(what) => break Some(what),
            }
        };
        let end_offset = u64::from(digest.summary.end_offset);
        if let Some(required) = required {
            if end_offset < required {
                let detail = end.unwrap_or("the records end too early");
                return Err(LogError::corruption(&segment.path, end_offset, detail));
            }
        } else {
            self.judge_tail(segment, &digest, end)?;
        }
        let torn = end.map(|_| end_offset);
        let (summary, rows) = digest.finish();
        Ok(Contents { summary, rows: Some(rows), index: None, sealed: false, torn })
    }

    /// Decides whether the end of the last segment is a torn tail.
    fn judge_tail(&self, segment: &Arc<Segment>, digest: &Digest, end: Option<&'static str>) -> Result<()> {
        let end_offset = u64::from(digest.summary.end_offset);
        let damaged = segment.at(end_offset);
        let detail = end.unwrap_or("the records end too early");
        let mut scanner = Scanner::new(segment, end_offset, u64::MAX)?;
        if digest.summary.known_synced > damaged || vouched_beyond(&mut scanner)? {
            return Err(LogError::corruption(&segment.path, end_offset, detail));
        }
        Ok(())
    }
}

/// The seal at the end of a file, if there is one.
fn read_seal(segment: &Arc<Segment>) -> Result<Option<(u32, Summary)>> {
    let file = segment.file().map_err(|error| LogError::io(&segment.path, error))?;
    let length = file.length().map_err(|error| LogError::io(&segment.path, error))?;
    let Some(offset) = length.checked_sub(control::SEAL_BYTES).filter(|offset| *offset >= FIRST_RECORD) else {
        return Ok(None);
    };
    let Some(frame) = read_record(segment, offset)? else { return Ok(None) };
    if frame.header.class != Class::Seal {
        return Ok(None);
    }
    Ok(control::decode_seal(&frame.body)
        .filter(|(index_offset, summary)| summary.segment == segment.id && *index_offset < offset)
        .map(|(index_offset, summary)| (index_offset as u32, summary)))
}

/// The summary, if the record is the index of this segment.
fn index_of(frame: &Frame, segment: u32) -> Option<Summary> {
    let summary = (frame.header.class == Class::Index).then(|| Summary::decode(&frame.body))??;
    (summary.segment == segment).then_some(summary)
}

/// Gathers what a segment holds, record by record.
pub(crate) struct Digest {
    pub(crate) summary: Summary,
    rows: Vec<Row>,
}

impl Digest {
    /// Of a segment with this link.
    pub(crate) fn new(segment: u32, link: &Link) -> Digest {
        let summary = Summary {
            segment,
            end_offset: FIRST_RECORD as u32,
            first: Timestamp::NONE,
            last: Timestamp::NONE,
            count: 0,
            bytes: 0,
            wall_ms: link.wall_ms,
            cut_above: Timestamp::MAX,
            cut_below: Timestamp::NONE,
            no_holes: link.no_holes,
            known_synced: link.known_synced,
            last_sequence: 0,
            records: 0,
        };
        Digest { summary, rows: Vec::new() }
    }

    /// True if the index or seal is about the segment it lies in.
    fn is_own(&self, frame: &Frame) -> bool {
        frame.header.class == Class::Seal || index_of(frame, self.summary.segment).is_some()
    }

    /// Takes a record in.
    pub(crate) fn add(&mut self, frame: &Frame, segment: &Segment) -> Result<()> {
        let malformed = || LogError::corruption(&segment.path, u64::from(frame.at.offset), "the record is malformed");
        let summary = &mut self.summary;
        match frame.header.class {
            Class::Commit => {
                let body = CommitBody::decode(&frame.header, &frame.body).ok_or_else(malformed)?;
                summary.records += 1;
                summary.last_sequence = frame.header.sequence;
                self.rows.extend(body.places.iter().map(|place| Row {
                    timestamp: place.timestamp,
                    offset: frame.at.offset.saturating_add(place.offset),
                    length: place.length,
                    hash: place.hash,
                }));
            }
            Class::Mark => {
                let mark = Mark::decode(&frame.body).ok_or_else(malformed)?;
                summary.no_holes = mark.no_holes;
                summary.known_synced = summary.known_synced.max(mark.known_synced);
                summary.wall_ms = summary.wall_ms.max(mark.wall_ms);
            }
            Class::TruncateAfter => {
                let timestamp = control::decode_truncation(&frame.body).ok_or_else(malformed)?;
                self.rows.retain(|row| row.timestamp <= timestamp);
                summary.cut_above = summary.cut_above.min(timestamp);
                summary.no_holes = summary.no_holes.min(timestamp);
            }
            Class::TruncateOld => {
                let timestamp = control::decode_truncation(&frame.body).ok_or_else(malformed)?;
                self.rows.retain(|row| row.timestamp > timestamp);
                summary.cut_below = summary.cut_below.max(timestamp);
            }
            Class::Link | Class::Index | Class::Seal => {}
        }
        summary.end_offset = frame.end.offset;
        Ok(())
    }

    /// The result.
    pub(crate) fn finish(mut self) -> (Summary, Vec<Row>) {
        self.rows.sort_by_key(|row| row.timestamp);
        let summary = &mut self.summary;
        summary.first = self.rows.first().map_or(Timestamp::NONE, |row| row.timestamp);
        summary.last = self.rows.last().map_or(Timestamp::NONE, |row| row.timestamp);
        summary.count = self.rows.len() as u64;
        summary.bytes = self.rows.iter().map(|row| u64::from(row.length)).sum();
        (self.summary, self.rows)
    }
}

/// The place up to which a chain's last segment reaches.
pub(crate) fn end_of(contents: &Contents) -> LogPosition {
    LogPosition::new(contents.summary.segment, contents.summary.end_offset)
}
