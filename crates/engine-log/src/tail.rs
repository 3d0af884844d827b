//! The end of the log in memory: where the next record goes, and the bytes that are not on disk yet.
//!
//! Appending completes a header and copies the record behind the others in a chunk of memory; a large record is not copied but
//! becomes a piece itself. Chunks are handed to the writer as they are (shared, not copied) and, under an oplog, stay for tailing readers until a budget is used up.
//!
//! When a record does not fit, the next reserved segment takes over at once; sealing the old one is the writer's work.
//! The space behind a segment's commits belongs to its index, its seal and a margin for records that the log writes on its
//! own account (marks without commits, truncations): so these succeed on a full disk.
//!
//! Invariants: `written ≤ offset`; chunks ascend by position without gaps within a segment; only what is written leaves
//! memory. All of it lives under one lock, the log's innermost but for the index.

use crate::LogPosition;
use crate::control::{ControlRecord, INDEX_BASE_BYTES, INDEX_ROW_BYTES, LINK_BYTES, MARK_BYTES, SEAL_BYTES};
use crate::record::{Class, PreparedRecord};
use crate::segment::{FIRST_RECORD, Segment};
use bytes::{Bytes, BytesMut};
use pando_base::Timestamp;
use std::collections::VecDeque;
use std::sync::Arc;

/// How much memory is taken at once.
const CHUNK_BYTES: usize = 1 << 20;
/// From this size on a commit's bytes are not copied into a chunk.
const OWN_PIECE_BYTES_MIN: u64 = 32 << 10;
/// Such buffers are made in steps of this, so that they fit other records as well.
const BUFFER_STEP_BYTES: usize = 16 << 10;
/// Buffers of large records kept for reuse. What the allocator gets back it gives away in small pieces, to what stays.
const BUFFERS_MAX: usize = 16;
/// Chunks kept for reuse: fresh memory would have to be cleared by the system first.
const SPARE_CHUNKS_MAX: usize = 8;
/// What a segment keeps for the log's own records, at most.
const MARGIN_BYTES_MAX: u64 = 64 * 1024;

/// Consecutive bytes of the log.
#[derive(Clone)]
pub(crate) struct Piece {
    pub(crate) segment: Arc<Segment>,
    pub(crate) offset: u64,
    pub(crate) bytes: Bytes,
    /// It is one record, in memory of its own.
    is_record: bool,
}

impl Piece {
    fn start(&self) -> LogPosition {
        self.segment.at(self.offset)
    }

    fn end_offset(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }
}

/// See the module.
pub(crate) struct Tail {
    pub(crate) segment: Arc<Segment>,
    /// Where the next record goes.
    pub(crate) offset: u64,
    /// Reserved segments that come next.
    pub(crate) ready: VecDeque<Arc<Segment>>,
    /// Bytes of the log's own records that no reservation paid for.
    uncharged_bytes: u64,
    /// Rows that the index of this segment will have.
    index_rows: u64,
    chunk: BytesMut,
    chunk_offset: u64,
    spare: Vec<BytesMut>,
    /// Of large records that have left memory, to be used again.
    buffers: Vec<Vec<u8>>,
    pub(crate) pieces: VecDeque<Piece>,
    pieces_bytes: u64,
    pub(crate) written: LogPosition,
    /// Commits since the last mark; a mark is paid for by the first of them.
    pub(crate) unmarked_commits: u64,
    /// So many flushes have taken what they write.
    pub(crate) flushes: u64,
    /// How far the last of them reaches.
    pub(crate) captured: LogPosition,
    /// The no-holes point in the last mark, lowered by truncations since.
    pub(crate) no_holes: Timestamp,
    /// The highest entry that was appended and not truncated since. No mark claims more: a core without open slots may tell
    /// any point, but slots that are opened later lie above this.
    pub(crate) highest: Timestamp,
    /// How many truncations of the new end there were.
    pub(crate) truncations: u64,
    pub(crate) last_sequence: u64,
    pub(crate) appended_records: u64,
    pub(crate) appended_bytes: u64,
    /// Commits in the segment that is written.
    pub(crate) segment_records: u64,
}

/// The bytes that a new segment can take from commits.
pub(crate) fn commit_capacity(allocated_bytes: u64) -> u64 {
    allocated_bytes.saturating_sub(overhead(allocated_bytes))
}

/// The bytes of a segment that commits cannot have.
pub(crate) fn overhead(allocated_bytes: u64) -> u64 {
    FIRST_RECORD + LINK_BYTES + INDEX_BASE_BYTES + SEAL_BYTES + 16 + margin(allocated_bytes)
}

fn margin(allocated_bytes: u64) -> u64 {
    (allocated_bytes / 8).min(MARGIN_BYTES_MAX)
}

impl Tail {
    pub(crate) fn new(segment: Arc<Segment>, no_holes: Timestamp, last_sequence: u64) -> Tail {
        let written = segment.at(FIRST_RECORD);
        Tail {
            segment,
            offset: FIRST_RECORD,
            ready: VecDeque::new(),
            uncharged_bytes: 0,
            index_rows: 0,
            chunk: BytesMut::new(),
            chunk_offset: FIRST_RECORD,
            spare: Vec::new(),
            buffers: Vec::new(),
            pieces: VecDeque::new(),
            pieces_bytes: 0,
            written,
            unmarked_commits: 0,
            flushes: 0,
            captured: written,
            no_holes,
            highest: Timestamp::NONE,
            truncations: 0,
            last_sequence,
            appended_records: 0,
            appended_bytes: 0,
            segment_records: 0,
        }
    }

    /// Where the next record goes.
    pub(crate) fn position(&self) -> LogPosition {
        self.segment.at(self.offset)
    }

    /// What commits may still put into the segment that is written.
    pub(crate) fn left_bytes(&self) -> u64 {
        let used = self.offset - FIRST_RECORD - self.uncharged_bytes.min(margin(self.segment.allocated_bytes));
        let used = used.saturating_sub(LINK_BYTES) + self.index_rows * INDEX_ROW_BYTES + self.due_mark_bytes();
        commit_capacity(self.segment.allocated_bytes).saturating_sub(used)
    }

    /// The commits since the last mark have paid for one that is still to come.
    fn due_mark_bytes(&self) -> u64 {
        if self.unmarked_commits > 0 { MARK_BYTES } else { 0 }
    }

    /// True if the record has to go to the next segment, and there is one.
    #[inline]
    pub(crate) fn must_roll(&self, record: &PreparedRecord) -> bool {
        let fits = record.reserved_bytes() - self.due_mark_bytes() <= self.left_bytes();
        debug_assert!(fits || !self.ready.is_empty(), "a record without a reservation");
        !fits && !self.ready.is_empty()
    }

    /// True if the log's own record has to go to the next segment, and there is one.
    pub(crate) fn must_roll_for(&self, bytes: u64) -> bool {
        self.uncharged_bytes + bytes > margin(self.segment.allocated_bytes) && !self.ready.is_empty()
    }

    /// Goes on in the next reserved segment; gives the one that was left and where it ended.
    pub(crate) fn roll(&mut self) -> Option<(Arc<Segment>, u32)> {
        let next = self.ready.pop_front()?;
        self.split();
        let end = self.offset as u32;
        let left = std::mem::replace(&mut self.segment, next);
        self.offset = FIRST_RECORD;
        self.chunk_offset = FIRST_RECORD;
        self.uncharged_bytes = 0;
        self.index_rows = 0;
        self.segment_records = 0;
        Some((left, end))
    }

    /// Appends a commit and gives its start.
    #[inline]
    pub(crate) fn push_commit(&mut self, record: &PreparedRecord, sequence: u64) -> LogPosition {
        let at = self.position();
        let header = record.header(Class::Commit, self.segment.epoch, sequence).encode(at);
        self.make_room(header.len() + record.body().len());
        self.chunk.extend_from_slice(&header);
        self.chunk.extend_from_slice(record.body());
        self.offset += record.record_bytes();
        self.count_commit(record, sequence, record.record_bytes());
        at
    }

    /// The same, but the bytes of a large record are taken from it instead of copied: they are a piece of their own.
    pub(crate) fn push_commit_taking(&mut self, record: &mut PreparedRecord, sequence: u64) -> LogPosition {
        let bytes = record.record_bytes();
        if bytes < OWN_PIECE_BYTES_MIN {
            return self.push_commit(record, sequence);
        }
        let at = self.position();
        let header = record.header(Class::Commit, self.segment.epoch, sequence).encode(at);
        self.split();
        debug_assert_eq!(self.chunk_offset, self.offset, "what was appended is in pieces");
        let piece = Bytes::from(record.take_bytes(&header));
        self.pieces_bytes += bytes;
        self.pieces.push_back(Piece {
            segment: Arc::clone(&self.segment),
            offset: self.offset,
            bytes: piece,
            is_record: true,
        });
        self.offset += bytes;
        self.chunk_offset = self.offset;
        self.count_commit(record, sequence, bytes);
        at
    }

    #[inline]
    fn count_commit(&mut self, record: &PreparedRecord, sequence: u64, bytes: u64) {
        self.index_rows += record.places.len() as u64;
        self.unmarked_commits += 1;
        self.last_sequence = sequence;
        self.highest = self.highest.max(record.highest);
        self.segment_records += 1;
        self.appended_records += 1;
        self.appended_bytes += bytes;
    }

    /// Appends a record of the log's own. Whoever calls has decided where, with [`Tail::must_roll_for`].
    pub(crate) fn push_control(&mut self, record: &ControlRecord, charged: bool) -> LogPosition {
        let at = self.position();
        let bytes = record.encode(at, self.segment.epoch);
        self.make_room(bytes.len());
        self.chunk.extend_from_slice(&bytes);
        self.offset += bytes.len() as u64;
        self.appended_bytes += bytes.len() as u64;
        if !charged {
            self.uncharged_bytes += bytes.len() as u64;
        }
        at
    }

    #[inline]
    fn make_room(&mut self, bytes: usize) {
        if self.chunk.capacity() - self.chunk.len() < bytes {
            self.split();
            let spare = if bytes <= CHUNK_BYTES { self.spare.pop() } else { None };
            self.chunk = spare.unwrap_or_else(|| BytesMut::with_capacity(bytes.max(CHUNK_BYTES)));
        }
    }

    /// Turns what the chunk has into a piece.
    fn split(&mut self) {
        if self.chunk.is_empty() {
            return;
        }
        let bytes = self.chunk.split().freeze();
        self.pieces_bytes += bytes.len() as u64;
        self.pieces.push_back(Piece {
            segment: Arc::clone(&self.segment),
            offset: self.chunk_offset,
            bytes,
            is_record: false,
        });
        self.chunk_offset = self.offset;
    }

    /// The pieces that are not written yet.
    pub(crate) fn capture(&mut self) -> Vec<Piece> {
        self.split();
        let first = self.pieces.partition_point(|piece| piece.start() < self.written);
        self.pieces.range(first..).cloned().collect()
    }

    /// Notes what was written and forgets written pieces over the budget.
    pub(crate) fn written_up_to(&mut self, position: LogPosition, cache_bytes: u64) {
        debug_assert!(position >= self.written);
        self.written = position;
        while self.pieces_bytes > cache_bytes {
            let is_written = |piece: &mut Piece| piece.start() < position;
            let Some(first) = self.pieces.pop_front_if(is_written) else { break };
            self.pieces_bytes -= first.bytes.len() as u64;
            self.recycle(first);
        }
    }

    /// Keeps a chunk whose last piece this was, unless a reader has some of it.
    fn recycle(&mut self, piece: Piece) {
        if !piece.is_record {
            return self.recycle_chunk(piece.bytes);
        }
        if self.buffers.len() < BUFFERS_MAX
            && piece.bytes.len() <= CHUNK_BYTES
            && let Ok(buffer) = piece.bytes.try_into_mut()
        {
            self.buffers.push(Vec::from(buffer));
        }
    }

    /// A buffer for a record of this size that will be taken instead of copied, used before if there is one; none for a small one.
    pub(crate) fn take_buffer(&mut self, bytes: usize) -> Option<Vec<u8>> {
        if (bytes as u64) < OWN_PIECE_BYTES_MIN {
            return None;
        }
        let fits = |buffer: &Vec<u8>| (bytes..=bytes.saturating_mul(2)).contains(&buffer.capacity());
        let mut buffer = match self.buffers.iter().rposition(fits) {
            Some(place) => self.buffers.swap_remove(place),
            None => Vec::with_capacity(bytes.next_multiple_of(BUFFER_STEP_BYTES)),
        };
        buffer.clear();
        Some(buffer)
    }

    fn recycle_chunk(&mut self, bytes: Bytes) {
        if self.spare.len() < SPARE_CHUNKS_MAX
            && let Ok(mut chunk) = bytes.try_into_mut()
        {
            chunk.clear();
            if chunk.try_reclaim(CHUNK_BYTES) {
                self.spare.push(chunk);
            }
        }
    }

    /// The first place whose bytes are in memory.
    pub(crate) fn memory_start(&self) -> LogPosition {
        self.pieces.front().map_or_else(|| self.segment.at(self.chunk_offset), Piece::start)
    }

    /// Bytes of the log that are in memory.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.pieces_bytes + self.chunk.len() as u64
    }

    /// Bytes from memory, if they are there.
    pub(crate) fn read(&self, at: LogPosition, length: u32) -> Option<Bytes> {
        let (offset, length) = (u64::from(at.offset), u64::from(length));
        if at.segment == self.segment.id && offset >= self.chunk_offset {
            let start = (offset - self.chunk_offset) as usize;
            return self.chunk.get(start..start + length as usize).map(Bytes::copy_from_slice);
        }
        let after = self.pieces.partition_point(|piece| piece.start() <= at);
        let piece = self.pieces.get(after.checked_sub(1)?)?;
        if piece.segment.id != at.segment || offset + length > piece.end_offset() {
            return None;
        }
        let start = (offset - piece.offset) as usize;
        Some(piece.bytes.slice(start..start + length as usize))
    }
}
