//! Bringing the log to disk: writing, group commit, waiting for durability.
//!
//! One leader at a time writes everything that is in memory and syncs once for all who wait; who comes meanwhile is taken
//! along by the next. Each flush ends in a mark with the no-holes point, which was computed *before* the bytes were
//! captured, so that every entry at or below it lies before the mark: a sound mark vouches for it.
//!
//! A wait ends when the record and a no-holes point at or past its timestamp are on disk. While a hole below is open the
//! record may be on disk already; the waiter then sleeps until the core says that the point has advanced.
//!
//! Order at the end of a segment: its records, its index and seal, sync; only then the link of the next. After any failure
//! of a write or sync the log stops.

use crate::control::{ControlRecord, Mark};
use crate::flushes::Side;
use crate::index::Rows;
use crate::log::Inner;
use crate::segment::Segment;
use crate::staging::Staging;
use crate::tail::Piece;
use crate::{DurablePoint, Log, LogError, LogPosition, Result};
use pando_base::Timestamp;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Groups smaller than this are not waited for.
const GROUP_MIN: u64 = 8;
/// How often a leader lets others run first.
const GATHER_YIELDS: u32 = 16;

/// What is on disk.
pub(crate) struct Durability {
    pub(crate) position: LogPosition,
    /// The no-holes point of the last flush.
    pub(crate) no_holes: Timestamp,
    /// Somebody is flushing.
    leading: bool,
    /// Why the log stopped.
    pub(crate) stopped: Option<String>,
    /// Truncations of the new end: where, and what stayed. Both ascend.
    truncations: Vec<(LogPosition, Timestamp)>,
}

/// The state of the writer: the segment whose seal is still to be written, and what goes there.
pub(crate) struct Writer {
    pub(crate) segment: Arc<Segment>,
    pub(crate) staging: Staging,
    /// What was written since the last sync.
    pub(crate) unsynced_bytes: u64,
}

/// What a flush takes along.
struct Capture {
    pieces: Vec<Piece>,
    end: LogPosition,
    no_holes: Timestamp,
    /// Of the flush.
    number: u64,
}

/// Where a durability wait stands.
enum Status {
    Done,
    NeedsFlush,
    Hole,
}

impl Durability {
    pub(crate) fn new(position: LogPosition, no_holes: Timestamp) -> Durability {
        Durability { position, no_holes, leading: false, stopped: None, truncations: Vec::new() }
    }

    /// Notes that entries above a timestamp vanished.
    pub(crate) fn truncated(&mut self, at: LogPosition, timestamp: Timestamp) {
        self.truncations.retain(|(_, other)| *other < timestamp);
        self.truncations.push((at, timestamp));
    }

    fn was_truncated(&self, point: DurablePoint) -> bool {
        self.truncations.iter().any(|(at, timestamp)| *at >= point.position && *timestamp < point.timestamp)
    }
}

impl Inner {
    /// Writes what is in memory; with `sync` it ends in a mark and becomes durable. Gives the number of the
    /// flush; none if there was nothing to do.
    pub(crate) fn write_out(&self, sync: bool) -> Result<Option<u64>> {
        let mut writer = self.io.lock();
        self.check_running()?;
        let Some(mut capture) = self.capture(sync) else { return Ok(None) };
        self.wait_for_filling(capture.end);
        if let Err(error) = self.write_capture(&mut writer, &capture, sync) {
            return Err(self.stop(format!("writing {} failed: {error}", writer.segment.path.display())));
        }
        writer.unsynced_bytes += capture.pieces.iter().map(|piece| piece.bytes.len() as u64).sum::<u64>();
        // The tail can use their memory again when nobody else has them.
        capture.pieces.clear();
        {
            let mut tail = self.tail.lock();
            let cache_bytes = if self.options.oplog { self.options.tail_cache_bytes } else { 0 };
            self.written.store(capture.end);
            tail.written_up_to(capture.end, cache_bytes);
            self.memory_start.store(tail.memory_start());
        }
        if sync {
            self.filler.synced(std::mem::take(&mut writer.unsynced_bytes));
            let mut durability = self.durability.lock();
            durability.position = capture.end;
            durability.no_holes = capture.no_holes;
            self.durable.store(capture.end);
        }
        Ok(Some(capture.number))
    }

    /// Takes what is not written yet, with a mark at its end if wanted; none if nothing is new.
    fn capture(&self, mark: bool) -> Option<Capture> {
        let truncations = self.truncations.load(Ordering::Acquire);
        let told = (self.no_holes)();
        let wall_ms = self.env.clock().wall_ms();
        let (known_synced, recorded) = {
            let durability = self.durability.lock();
            (durability.position, durability.no_holes)
        };
        let mut tail = self.tail.lock();
        // A truncation since makes what was told stale; its own record has lowered the tail's point.
        let fresh = tail.truncations == truncations;
        let no_holes = if fresh { told.min(tail.highest).max(tail.no_holes) } else { tail.no_holes };
        if mark {
            if tail.position() == known_synced && no_holes <= recorded {
                return None;
            }
            let commits = std::mem::take(&mut tail.unmarked_commits);
            let record = ControlRecord::mark(Mark { no_holes, known_synced, wall_ms });
            // The first of the commits has paid for the mark.
            self.push_control(&mut tail, &record, commits > 0);
            tail.no_holes = no_holes;
            if let Some(growing) = self.index.write().segments.last_mut() {
                growing.wall_ms = wall_ms;
            }
            self.note_group(commits);
            self.counters.flushed_commits.fetch_add(commits, Ordering::Relaxed);
        }
        let pieces = tail.capture();
        if mark {
            tail.flushes += 1;
            tail.captured = tail.position();
        }
        Some(Capture { pieces, end: tail.position(), no_holes, number: tail.flushes })
    }

    fn write_capture(&self, writer: &mut Writer, capture: &Capture, sync: bool) -> io::Result<()> {
        for piece in &capture.pieces {
            if piece.segment.id != writer.segment.id {
                self.count_written(writer.staging.write(&writer.segment, false)?);
                self.seal(&writer.segment)?;
                writer.segment = Arc::clone(&piece.segment);
            }
            self.count_written(writer.staging.take(&piece.segment, piece.offset, &piece.bytes)?);
            self.buffered_bytes.fetch_sub(piece.bytes.len() as u64, Ordering::Relaxed);
        }
        if sync {
            self.counters.syncs.fetch_add(1, Ordering::Relaxed);
        }
        self.count_written(writer.staging.write(&writer.segment, sync)?);
        Ok(())
    }

    pub(crate) fn count_written(&self, bytes: u64) {
        self.counters.written_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn sync(&self, segment: &Segment) -> io::Result<()> {
        self.counters.syncs.fetch_add(1, Ordering::Relaxed);
        segment.file()?.sync()
    }

    /// Writes the index and the seal of a segment that is left, gives back its unused space and makes all of it durable.
    pub(crate) fn seal(&self, segment: &Arc<Segment>) -> io::Result<()> {
        let known_synced = self.durable.load();
        let (rows, summary) = {
            let index = self.index.read();
            let Some(entry) = index.segments.iter().find(|entry| entry.segment.id == segment.id) else {
                return Ok(());
            };
            let Rows::Shared(rows) = &entry.rows else { return Ok(()) };
            (Arc::clone(rows), entry.summary(rows, known_synced))
        };
        let offset = u64::from(summary.end_offset);
        let index_record = ControlRecord::index(&summary, &rows);
        let seal_offset = offset + index_record.record_bytes();
        let mut bytes = index_record.encode(segment.at(offset), segment.epoch);
        bytes.extend(ControlRecord::seal(offset, &summary).encode(segment.at(seal_offset), segment.epoch));
        let file = segment.file()?;
        file.write_at(&bytes, offset)?;
        file.set_length(offset + bytes.len() as u64)?;
        self.count_written(bytes.len() as u64);
        self.sync(segment)?;
        segment.release();
        let mut index = self.index.write();
        if let Some(entry) = index.segments.iter_mut().find(|entry| entry.segment.id == segment.id) {
            entry.rows = Rows::OnDisk { holder: Arc::clone(segment), offset: summary.end_offset };
            entry.sealed_bytes = Some(offset + bytes.len() as u64);
        }
        drop(index);
        self.row_cache.lock().insert(segment.id, rows);
        Ok(())
    }

    /// Flushes, or waits for whoever is flushing; true if this thread did it.
    fn lead_or_wait(&self) -> Result<bool> {
        self.lead_after(|| self.gather())
    }

    /// The same for the flusher, which does not gather: it is woken late enough on a busy machine, and whoever yields goes to
    /// the end of the queue there.
    pub(crate) fn lead_for_others(&self) -> Result<()> {
        self.lead_after(|| ()).map(drop)
    }

    fn lead_after(&self, prepare: impl FnOnce()) -> Result<bool> {
        let listener = self.flushed.listen();
        if !self.try_lead()? {
            listener.wait();
            return Ok(false);
        }
        drop(listener);
        prepare();
        self.lead(Side::Thread)?;
        Ok(true)
    }

    /// Threads that the last flush woke are about to commit again: lets them run before the next flush leaves without them.
    fn gather(&self) {
        let hoped = self.group.load(Ordering::Relaxed);
        if hoped < GROUP_MIN || self.env.tasks().parallelism() == 1 {
            return;
        }
        for _ in 0..GATHER_YIELDS {
            if self.tail.lock().unmarked_commits >= hoped {
                break;
            }
            std::thread::yield_now();
        }
    }

    /// True if somebody is flushing.
    pub(crate) fn is_led(&self) -> bool {
        self.durability.lock().leading
    }

    /// Becomes the one who flushes, if nobody is.
    pub(crate) fn try_lead(&self) -> Result<bool> {
        let mut durability = self.durability.lock();
        if let Some(reason) = &durability.stopped {
            return Err(LogError::Stopped(reason.clone()));
        }
        Ok(!std::mem::replace(&mut durability.leading, true))
    }

    /// Flushes, as the one who leads.
    pub(crate) fn lead(&self, side: Side) -> Result<()> {
        self.flusher.withdraw();
        let began_ns = self.env.clock().monotonic_ns();
        let result = self.write_out(true);
        self.flusher.note_time(began_ns, self.env.clock().monotonic_ns());
        self.durability.lock().leading = false;
        match &result {
            Ok(Some(number)) => self.flushes.end(*number, side),
            // Whoever waits has to look again.
            Ok(None) | Err(_) => self.flushes.ring(),
        }
        self.flushed.ring_from(side);
        self.hole_closed.ring_from(side);
        if result.is_ok() {
            self.look_ahead();
        }
        result.map(drop)
    }

    fn status(&self, point: DurablePoint) -> Result<Status> {
        let recorded = {
            let durability = self.durability.lock();
            if durability.position >= point.position && durability.no_holes >= point.timestamp {
                return Ok(Status::Done);
            }
            if let Some(reason) = &durability.stopped {
                return Err(LogError::Stopped(reason.clone()));
            }
            if durability.was_truncated(point) {
                return Err(LogError::Truncated(point.timestamp));
            }
            if durability.position < point.position {
                return Ok(Status::NeedsFlush);
            }
            durability.no_holes
        };
        let told = (self.no_holes)();
        Ok(if told >= point.timestamp && told > recorded { Status::NeedsFlush } else { Status::Hole })
    }
}

impl Log {
    /// Makes everything that was appended before this call durable, with the no-holes point as of now, and tells how far
    /// the durable log reaches. Many callers share one sync.
    pub fn flush(&self) -> Result<LogPosition> {
        let inner = &self.inner;
        let no_holes = (inner.no_holes)();
        let target = inner.appended.load();
        let mut led = false;
        loop {
            {
                let durability = inner.durability.lock();
                if let Some(reason) = &durability.stopped {
                    return Err(LogError::Stopped(reason.clone()));
                }
                if durability.position >= target && (led || durability.no_holes >= no_holes) {
                    return Ok(durability.position);
                }
            }
            led |= inner.lead_or_wait()?;
        }
    }

    /// Writes what is in memory to the files without making it durable.
    pub fn write_back(&self) -> Result<()> {
        self.inner.write_out(false).map(drop)
    }

    /// Blocks until a commit is durable, flushing if nobody else does.
    pub fn wait_durable(&self, point: impl Into<DurablePoint>) -> Result<()> {
        let point = point.into();
        loop {
            let listener = self.inner.hole_closed.listen();
            match self.inner.status(point)? {
                Status::Done => return Ok(()),
                Status::Hole => listener.wait(),
                Status::NeedsFlush => {
                    drop(listener);
                    self.inner.lead_or_wait()?;
                }
            }
        }
    }

    /// Like [`Log::wait_durable`] without blocking the asynchronous worker.
    pub async fn wait_durable_async(&self, point: impl Into<DurablePoint>) -> Result<()> {
        let point = point.into();
        let inner = &self.inner;
        loop {
            let hole = inner.hole_closed.listen();
            match inner.status(point)? {
                Status::Done => return Ok(()),
                Status::Hole => hole.wait_async().await,
                Status::NeedsFlush => {
                    drop(hole);
                    inner.flush_for_task(point.position).await?;
                }
            }
        }
    }

    /// How far the log is on disk.
    pub fn durable_position(&self) -> LogPosition {
        self.inner.durable.load()
    }

    /// The no-holes point that is on disk.
    pub fn durable_no_holes(&self) -> Timestamp {
        self.inner.durability.lock().no_holes
    }

    /// Ends the log in good order: all durable, the last segment sealed, reserved files removed.
    pub fn close(&self) -> Result<()> {
        self.flush()?;
        let inner = &self.inner;
        let mut next = inner.growth.lock();
        let ready = inner.close_tail(&mut next)?;
        inner.stop("it was closed".to_owned());
        for segment in ready {
            inner.env.disk().remove(&segment.path).map_err(|error| LogError::io(&segment.path, error))?;
        }
        Ok(())
    }
}

impl Inner {
    /// Seals the segment that is written. The caller has flushed.
    fn close_tail(&self, _growth: &mut u32) -> Result<Vec<Arc<Segment>>> {
        let writer = self.io.lock();
        self.check_running()?;
        let ready = {
            let mut tail = self.tail.lock();
            if tail.position() != self.durable.load() {
                return Err(LogError::Stopped("it was closed while commits were entering".to_owned()));
            }
            let wall_ms = self.env.clock().wall_ms();
            let mut index = self.index.write();
            if let Some(closing) = index.segments.last_mut() {
                closing.close(tail.offset as u32, wall_ms);
                closing.records = tail.segment_records;
                closing.no_holes = tail.no_holes;
                closing.last_sequence = tail.last_sequence;
            }
            std::mem::take(&mut tail.ready)
        };
        self.seal(&writer.segment).map_err(|error| self.stop(format!("sealing the log failed: {error}")))?;
        Ok(ready.into())
    }
}
