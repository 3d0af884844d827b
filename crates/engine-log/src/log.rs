//! The log itself: what it is made of, reserving room, appending.
//!
//! The way of a commit: build a [`PreparedRecord`], [`Log::reserve`] room for it, take [`Log::lock`], append, publish the
//! transaction while the guard is held (so that log order is sequence order), let go, and wait for durability if asked to.
//!
//! Lock order, outermost first: `truncating`, `io`, `growth`, `space`, `tail`, `index`, then the leaves (`durability`,
//! `row_cache`, `retention`, `filling`). The lock of the tail is the one that every commit takes; nothing under it touches a file.

use crate::backup::BackupPins;
use crate::bell::Bell;
use crate::control::{ControlRecord, Link};
use crate::fill::Filler;
use crate::flush::{Durability, Writer};
use crate::flusher::Flusher;
use crate::flushes::Flushes;
use crate::index::{OplogIndex, SegmentRows};
use crate::pace::Pace;
use crate::position::AtomicPosition;
use crate::record::PreparedRecord;
use crate::retention::Retention;
use crate::rows::RowCache;
use crate::segment::Segment;
use crate::solitude::Solitude;
use crate::space::{Reservation, Space};
use crate::staging::Staging;
use crate::statistics::Counters;
use crate::tail::{Tail, commit_capacity};
use crate::{DurablePoint, LogError, LogPosition, Result};
use pando_base::Timestamp;
use pando_env::Env;
use parking_lot::{Mutex, MutexGuard, RwLock};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Tells a timestamp at or below which no oplog entry can appear any more: those there are have been appended. It never
/// goes back, except after a truncation of the new end.
pub type NoHoles = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// How a log is set up.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// The size of a segment's file; a record that is larger gets a segment of its own.
    pub segment_bytes: u64,
    /// The log is an oplog: segments are kept for their entries. Without, they go when a checkpoint has passed them.
    pub oplog: bool,
    /// How large the oplog may become before its old end is dropped.
    pub oplog_max_bytes: u64,
    /// How long entries are kept however large the oplog is.
    pub oplog_min_retention_ms: u64,
    /// How many bytes may wait in memory before committers help to write them.
    pub buffer_bytes_max: u64,
    /// How many bytes of the log stay in memory for tailing readers.
    pub tail_cache_bytes: u64,
    /// How many bytes of sealed segments' indexes stay in memory.
    pub index_cache_bytes: u64,
}

impl Default for LogOptions {
    fn default() -> LogOptions {
        LogOptions {
            segment_bytes: 64 << 20,
            oplog: false,
            oplog_max_bytes: 1 << 30,
            oplog_min_retention_ms: 0,
            buffer_bytes_max: 32 << 20,
            tail_cache_bytes: 16 << 20,
            index_cache_bytes: 16 << 20,
        }
    }
}

impl LogOptions {
    /// The size of a segment when the oplog has this limit: a small oplog has small segments, or dropping one would drop
    /// most of it.
    pub(crate) fn segment_bytes_under(&self, oplog_max_bytes: u64) -> u64 {
        let largest = self.segment_bytes.max(SEGMENT_BYTES_MIN);
        if !self.oplog {
            return largest;
        }
        (oplog_max_bytes / SEGMENTS_WANTED).clamp(SEGMENT_BYTES_ADAPTED_MIN.min(largest), largest)
    }
}

/// The smallest segment that makes sense.
const SEGMENT_BYTES_MIN: u64 = 4096;
/// Where segments follow a small oplog's size, they are at least this large.
const SEGMENT_BYTES_ADAPTED_MIN: u64 = 1 << 20;
/// An oplog at its full size has about this many segments.
const SEGMENTS_WANTED: u64 = 16;
/// When so much is not written it is worth a write of its own, ahead of the flush that will be asked for, if there is a processor for it: where all are busy, fewer
/// and larger writes take less of them.
const MUCH_BYTES: u64 = 256 << 10;

/// An open log. Clones share it.
#[derive(Clone)]
pub struct Log {
    pub(crate) inner: Arc<Inner>,
}

/// What the clones share.
pub(crate) struct Inner {
    pub(crate) env: Env,
    pub(crate) directory: PathBuf,
    pub(crate) options: LogOptions,
    pub(crate) no_holes: NoHoles,
    /// One truncation of the old end at a time.
    pub(crate) truncating: Mutex<()>,
    /// One writer at a time.
    pub(crate) io: Mutex<Writer>,
    /// The number of the next segment.
    pub(crate) growth: Mutex<u32>,
    pub(crate) space: Mutex<Space>,
    pub(crate) tail: Mutex<Tail>,
    pub(crate) index: RwLock<OplogIndex>,
    pub(crate) durability: Mutex<Durability>,
    pub(crate) row_cache: Mutex<RowCache>,
    pub(crate) retention: Mutex<Retention>,
    pub(crate) backups: Mutex<BackupPins>,
    /// Where the next record goes.
    pub(crate) appended: AtomicPosition,
    /// What has been handed to the files.
    pub(crate) written: AtomicPosition,
    /// What has been synced.
    pub(crate) durable: AtomicPosition,
    /// The first place whose bytes are in memory.
    pub(crate) memory_start: AtomicPosition,
    /// [`Tail::left_bytes`], to be read without its lock.
    pub(crate) left_bytes: AtomicU64,
    /// [`Tail::appended_bytes`] less what was written.
    pub(crate) buffered_bytes: AtomicU64,
    pub(crate) truncations: AtomicU64,
    /// How many commits a flush takes along at most, of late.
    pub(crate) group: AtomicU64,
    /// How fast they come.
    pub(crate) pace: Pace,
    /// How many flushes in a row took at most one commit along.
    pub(crate) lone_flushes: AtomicU64,
    /// Whether such a committer is all that happens.
    pub(crate) solitude: Solitude,
    pub(crate) stopped: AtomicBool,
    /// What is written with zeros ahead of the log's end, or is about to be; stored under `io`.
    pub(crate) filled: AtomicPosition,
    /// Where the last zeros began; stored under `io`.
    pub(crate) filling_from: AtomicPosition,
    /// Held while zeros are written.
    pub(crate) filling: Mutex<()>,
    pub(crate) filler: Filler,
    pub(crate) flusher: Flusher,
    /// A flush has ended.
    pub(crate) flushed: Bell,
    pub(crate) flushes: Flushes,
    pub(crate) hole_closed: Bell,
    pub(crate) visibility: Bell,
    pub(crate) counters: Counters,
}

impl Inner {
    /// A log that goes on in a fresh segment after whatever `index` tells of.
    pub(crate) fn new(
        env: &Env,
        directory: PathBuf,
        options: LogOptions,
        no_holes: NoHoles,
        mut index: OplogIndex,
        start: Start,
    ) -> Inner {
        let mut tail = Tail::new(Arc::clone(&start.segment), start.no_holes, start.last_sequence);
        tail.highest = start.highest;
        index.segments.push(SegmentRows::growing(Arc::clone(&start.segment)));
        index.recount();
        let position = tail.position();
        Inner {
            env: env.clone(),
            directory,
            no_holes,
            truncating: Mutex::new(()),
            io: Mutex::new(Writer {
                segment: Arc::clone(&start.segment),
                staging: Staging::default(),
                unsynced_bytes: 0,
            }),
            growth: Mutex::new(start.segment.id + 1),
            space: Mutex::default(),
            left_bytes: AtomicU64::new(tail.left_bytes()),
            tail: Mutex::new(tail),
            index: RwLock::new(index),
            durability: Mutex::new(Durability::new(start.previous_end, start.no_holes)),
            row_cache: Mutex::new(RowCache::new(options.index_cache_bytes)),
            retention: Mutex::new(Retention::new(&options)),
            backups: Mutex::default(),
            appended: AtomicPosition::new(position),
            written: AtomicPosition::new(position),
            durable: AtomicPosition::new(start.previous_end),
            memory_start: AtomicPosition::new(position),
            buffered_bytes: AtomicU64::new(0),
            truncations: AtomicU64::new(0),
            group: AtomicU64::new(0),
            pace: Pace::default(),
            lone_flushes: AtomicU64::new(0),
            solitude: Solitude::default(),
            stopped: AtomicBool::new(false),
            filled: AtomicPosition::new(position),
            filling_from: AtomicPosition::new(position),
            filling: Mutex::default(),
            filler: Filler::default(),
            flusher: Flusher::default(),
            flushed: Bell::default(),
            flushes: Flushes::default(),
            hole_closed: Bell::default(),
            visibility: Bell::default(),
            counters: Counters::default(),
            options,
        }
    }

    /// The size of the next segment.
    pub(crate) fn segment_bytes(&self) -> u64 {
        self.options.segment_bytes_under(self.retention.lock().max_bytes)
    }

    /// Fails once the log has stopped.
    pub(crate) fn check_running(&self) -> Result<()> {
        if self.stopped.load(Ordering::Acquire) {
            return Err(self.stopped_error());
        }
        Ok(())
    }

    /// The reason for the stop.
    pub(crate) fn stopped_error(&self) -> LogError {
        LogError::Stopped(self.durability.lock().stopped.clone().unwrap_or_default())
    }

    /// Ends the log's work for good.
    pub(crate) fn stop(&self, reason: String) -> LogError {
        let first = self.durability.lock().stopped.get_or_insert(reason).clone();
        self.stopped.store(true, Ordering::Release);
        self.flushed.ring();
        self.flushes.stop();
        self.hole_closed.ring();
        self.visibility.ring();
        LogError::Stopped(first)
    }

    /// Publishes what others read without the tail's lock.
    #[inline]
    pub(crate) fn publish(&self, tail: &Tail, bytes: u64) {
        self.buffered_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.left_bytes.store(tail.left_bytes(), Ordering::Release);
        self.appended.store(tail.position());
    }

    /// Goes on in the next segment.
    #[cold]
    pub(crate) fn roll(&self, tail: &mut Tail) {
        let (records, last_sequence) = (tail.segment_records, tail.last_sequence);
        let Some((left, end)) = tail.roll() else { return };
        let wall_ms = self.env.clock().wall_ms();
        let previous_end = LogPosition::new(left.id, end);
        // The writer syncs the segment that is left before it writes this link.
        let link = Link { previous_end, known_synced: previous_end, no_holes: tail.no_holes, wall_ms };
        let record = ControlRecord::link(link);
        tail.push_control(&record, true);
        self.buffered_bytes.fetch_add(record.record_bytes(), Ordering::Relaxed);
        let mut index = self.index.write();
        if let Some(closing) = index.segments.last_mut() {
            closing.close(end, wall_ms);
            closing.records = records;
            closing.no_holes = tail.no_holes;
            closing.last_sequence = last_sequence;
        }
        index.segments.push(SegmentRows::growing(Arc::clone(&tail.segment)));
        self.counters.rolls.fetch_add(1, Ordering::Relaxed);
    }

    /// Appends a record of the log's own on the margin's account.
    pub(crate) fn push_control(&self, tail: &mut Tail, record: &ControlRecord, charged: bool) -> LogPosition {
        if !charged && tail.must_roll_for(record.record_bytes()) {
            self.roll(tail);
        }
        let at = tail.push_control(record, charged);
        self.publish(tail, record.record_bytes());
        at
    }

    /// Reserves another segment if what is promised and `charge` may not fit into those there are.
    fn grow(&self, charge: u64) -> Result<()> {
        let mut next = self.growth.lock();
        self.check_running()?;
        let needed = {
            let space = self.space.lock();
            if space.admits(charge, self.room(&self.tail.lock()).into_iter()) {
                return Ok(());
            }
            space.promised_bytes + charge + space.largest_with(charge)
        };
        let least = allocation_for(needed);
        if least > u64::from(u32::MAX) {
            return Err(LogError::RecordTooLarge { bytes: charge, limit_bytes: u64::from(u32::MAX) });
        }
        self.create_ready(&mut next, least.max(self.segment_bytes()), least)
    }

    /// Creates a segment of the size that is wanted or, on a full disk, of the size that will do.
    fn create_ready(&self, next: &mut u32, wanted: u64, least: u64) -> Result<()> {
        let mut created = Segment::create(&self.env, &self.directory, *next, wanted);
        if wanted > least && created.as_ref().is_err_and(crate::error::is_out_of_space) {
            *next += 1;
            created = Segment::create(&self.env, &self.directory, *next, least);
        }
        *next += 1;
        match created {
            Ok(segment) => {
                self.tail.lock().ready.push_back(Arc::new(segment));
                Ok(())
            }
            Err(error) if crate::error::is_out_of_space(&error) => Err(LogError::OutOfSpace { needed_bytes: least }),
            Err(error) => Err(self.stop(format!("creating a log segment failed: {error}"))),
        }
    }

    /// What each segment can still take from commits.
    fn room(&self, tail: &Tail) -> Vec<u64> {
        let ready = tail.ready.iter().map(|segment| commit_capacity(segment.allocated_bytes));
        std::iter::once(tail.left_bytes()).chain(ready).collect()
    }

    /// True if the next segment should be reserved.
    pub(crate) fn needs_segment(&self) -> bool {
        let half = commit_capacity(self.segment_bytes()) / 2;
        self.left_bytes.load(Ordering::Acquire) < half && self.tail.lock().ready.is_empty()
    }

    /// Reserves the next segment before it is needed; failing is not an error yet, but counted, so that it can be told.
    pub(crate) fn grow_ahead(&self) {
        if self.needs_segment() {
            let mut next = self.growth.lock();
            if self.tail.lock().ready.is_empty() && self.check_running().is_ok() {
                let bytes = self.segment_bytes();
                if self.create_ready(&mut next, bytes, bytes).is_err() {
                    self.counters.failed_growths.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }
}

/// Where a log goes on.
pub(crate) struct Start {
    pub(crate) segment: Arc<Segment>,
    pub(crate) previous_end: LogPosition,
    pub(crate) no_holes: Timestamp,
    /// The highest oplog entry.
    pub(crate) highest: Timestamp,
    pub(crate) last_sequence: u64,
}

/// The size of a segment that can take this much from commits.
pub(crate) fn allocation_for(capacity: u64) -> u64 {
    // A margin of an eighth, up to its largest, lies on top of the fixed parts.
    let estimate = capacity + capacity / 7 + 1024;
    let bytes = if commit_capacity(estimate) >= capacity { estimate } else { capacity + 128 * 1024 };
    let bytes = bytes.min(capacity + 128 * 1024).next_multiple_of(4096);
    debug_assert!(commit_capacity(bytes) >= capacity);
    bytes
}

impl Log {
    /// Promises room for `bytes` (of [`PreparedRecord::reserved_bytes`], or the sum over several records). Fails with
    /// [`LogError::OutOfSpace`] without consequences when the disk is full. Waits, by writing, while too much is unwritten.
    pub fn reserve(&self, bytes: u64) -> Result<Reservation> {
        let inner = &self.inner;
        inner.check_running()?;
        let buffered_bytes = inner.buffered_bytes.load(Ordering::Relaxed);
        if buffered_bytes > inner.options.buffer_bytes_max {
            inner.write_out(false)?;
        } else if buffered_bytes >= MUCH_BYTES && inner.env.tasks().has_spare_worker() {
            inner.flusher.call_to_write();
        }
        loop {
            {
                let mut space = inner.space.lock();
                let left = inner.left_bytes.load(Ordering::Acquire);
                if space.admits(bytes, [left].into_iter())
                    || space.admits(bytes, inner.room(&inner.tail.lock()).into_iter())
                {
                    space.promise(bytes);
                    return Ok(Reservation::new(Arc::clone(inner), bytes));
                }
            }
            inner.grow(bytes)?;
        }
    }

    /// Takes the lock under which commits enter, one after the other.
    #[inline]
    pub fn lock(&self) -> LogGuard<'_> {
        LogGuard { inner: &self.inner, tail: self.inner.tail.lock() }
    }

    /// Makes room in a record for so many entries of so many bytes together; in memory that was used before if they are many.
    pub fn make_room_in(&self, record: &mut PreparedRecord, entries: usize, bytes: usize) {
        let needed = PreparedRecord::bytes_with(entries, bytes);
        if record.entry_count() == 0
            && let Some(buffer) = self.inner.tail.lock().take_buffer(needed)
        {
            record.bytes = buffer;
        }
        record.reserve(entries, bytes);
    }

    /// Where the next record will go, as of now.
    pub fn position(&self) -> LogPosition {
        self.inner.appended.load()
    }

    /// The core calls this after its no-holes point has advanced.
    #[inline]
    pub fn no_holes_advanced(&self) {
        self.inner.hole_closed.ring();
        self.inner.visibility.ring();
    }
}

/// The right to append.
pub struct LogGuard<'a> {
    inner: &'a Inner,
    tail: MutexGuard<'a, Tail>,
}

impl LogGuard<'_> {
    /// Appends a record for which room is reserved. Does not fail and does not touch the disk. Sequences must ascend.
    #[inline]
    pub fn append(&mut self, record: &PreparedRecord, sequence: u64) -> DurablePoint {
        self.make_place(record, sequence);
        let at = self.tail.push_commit(record, sequence);
        self.enter(record, at, record.record_bytes())
    }

    /// The same, but the bytes of a large record are taken from it, which spares their copy.
    #[inline]
    pub fn append_taking(&mut self, record: &mut PreparedRecord, sequence: u64) -> DurablePoint {
        self.make_place(record, sequence);
        let bytes = record.record_bytes();
        let at = self.tail.push_commit_taking(record, sequence);
        self.enter(record, at, bytes)
    }

    /// Sees to it that the record fits where it goes.
    fn make_place(&mut self, record: &PreparedRecord, sequence: u64) {
        let tail = &mut *self.tail;
        debug_assert!(sequence > tail.last_sequence, "{sequence} after {}", tail.last_sequence);
        // More than once where a small segment comes before the one that was reserved for a large record.
        while tail.must_roll(record) {
            self.inner.roll(tail);
        }
    }

    /// Tells of a record that was appended.
    fn enter(&mut self, record: &PreparedRecord, at: LogPosition, bytes: u64) -> DurablePoint {
        if !record.places.is_empty() {
            self.inner.index.write().insert(at.offset, &record.places);
        }
        self.inner.publish(&self.tail, bytes);
        DurablePoint { position: self.tail.position(), timestamp: record.highest }
    }

    /// Where the next record will go. Everything before has been appended; a checkpoint that covers it names this place.
    pub fn position(&self) -> LogPosition {
        self.tail.position()
    }

    /// The sequence of the last record.
    pub fn last_sequence(&self) -> u64 {
        self.tail.last_sequence
    }
}
