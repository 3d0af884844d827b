//! Filling ahead: the place where the log will go on is written with zeros before.
//!
//! The space of a segment is reserved, but a file system notes for each block whether it was ever written. A sync after a
//! write to a block that was not has to write these notes too, and waits for whatever else writes there: it takes half as
//! long again, and now and then milliseconds. So a thread that the core lends keeps some megabytes ahead of the log's
//! end written, and reserves the next segment, off the way of commits. Where commits are large and syncs few, as in a bulk
//! load, it would only double what is written, and is left.
//!
//! Invariants: where zeros go is decided under the lock of the writer (`io`), behind everything that was appended, and a writer that comes there
//! waits for them, so they are never written over a record. What is filled reads as it did before: zeros. A failure stops the log,
//! since the system tells of a failed sync only once.

use crate::flush::Writer;
use crate::log::Inner;
use crate::segment::Segment;
use crate::{Log, LogPosition, Result};
use pando_env::{Alarm, Block};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// So much ahead of the log's end is filled.
const AHEAD_BYTES: u64 = 16 << 20;
/// Filling goes on when less than this is left of it.
const AHEAD_BYTES_MIN: u64 = 8 << 20;
/// What is filled at once; the disk may have a sync that comes in between wait for so much.
const STEP_BYTES: u64 = 512 << 10;
/// File systems have blocks of this size or a divisor of it.
const BLOCK_BYTES: u64 = pando_env::BLOCK_BYTES as u64;
/// What is filled with.
static ZEROS: [Block; (STEP_BYTES / BLOCK_BYTES) as usize] = [Block::ZEROS; (STEP_BYTES / BLOCK_BYTES) as usize];
/// A sync of less than this is small.
const SMALL_SYNC_BYTES: u64 = 128 << 10;
/// So long others have the disk between two steps.
const PAUSE: Duration = Duration::from_millis(1);
/// How long the thread sleeps if nobody asks.
const IDLE: Duration = Duration::from_secs(1);

/// The requests to the thread, and what is known for them.
pub(crate) struct Filler {
    is_present: AtomicBool,
    is_asked: AtomicBool,
    alarm: Alarm,
    /// What a sync takes along, on the average of the last ones.
    sync_bytes: AtomicU64,
}

impl Default for Filler {
    fn default() -> Filler {
        let sync_bytes = AtomicU64::new(2 * SMALL_SYNC_BYTES);
        Filler { is_present: AtomicBool::default(), is_asked: AtomicBool::default(), alarm: Alarm::new(), sync_bytes }
    }
}

impl Filler {
    /// Notes what a sync took along. Called by one thread at a time.
    pub(crate) fn synced(&self, bytes: u64) {
        let average = self.sync_bytes.load(Ordering::Relaxed);
        self.sync_bytes.store((average.saturating_mul(7).saturating_add(bytes)) / 8, Ordering::Relaxed);
    }

    pub(crate) fn has_small_syncs(&self) -> bool {
        self.sync_bytes.load(Ordering::Relaxed) < SMALL_SYNC_BYTES
    }

    /// Has the thread work; false if there is none.
    fn ask(&self) -> bool {
        if !self.is_present.load(Ordering::SeqCst) {
            return false;
        }
        if !self.is_asked.swap(true, Ordering::SeqCst) {
            self.alarm.ring();
        }
        true
    }
}

impl Inner {
    /// After a flush: sees to it that there is room to go on.
    pub(crate) fn look_ahead(&self) {
        if self.needs_segment() {
            if !self.filler.ask() {
                self.grow_ahead();
            }
        } else if self.filler.has_small_syncs() && self.is_filled_too_little() {
            self.filler.ask();
        }
    }

    fn is_filled_too_little(&self) -> bool {
        let (filled, end) = (self.filled.load(), self.appended.load());
        match filled.segment == end.segment {
            true => u64::from(filled.offset) < u64::from(end.offset) + AHEAD_BYTES_MIN && !self.is_filled_whole(),
            false => filled < end,
        }
    }

    /// The segment is filled to its end; the next one follows when there is one.
    fn is_filled_whole(&self) -> bool {
        let tail = self.tail.lock();
        self.filled.load() >= tail.segment.at(tail.segment.whole_blocks_bytes()) && tail.ready.is_empty()
    }

    /// Fills some more; false if enough is filled.
    pub(crate) fn fill_step(&self) -> Result<bool> {
        let (segment, from, to, filling) = {
            let writer = self.io.lock();
            self.check_running()?;
            let Some((segment, from, to)) = self.next_to_fill(&writer) else { return Ok(false) };
            self.filled.store(segment.at(to));
            self.filling_from.store(segment.at(from));
            (segment, from, to, self.filling.lock())
        };
        let blocks = ZEROS.get(..((to - from) / BLOCK_BYTES) as usize).unwrap_or_default();
        let written = segment.file().and_then(|file| file.write_blocks(blocks, from, true));
        written.map_err(|error| self.stop(format!("filling {} failed: {error}", segment.path.display())))?;
        drop(filling);
        self.count_written(to - from);
        Ok(true)
    }

    /// Before the writer writes up to a place: waits for zeros that are on their way to where it goes. They are megabytes ahead of it,
    /// so it nearly never waits.
    pub(crate) fn wait_for_filling(&self, end: LogPosition) {
        if self.filling_from.load() < end {
            drop(self.filling.lock());
        }
    }

    /// The next step: behind what was appended and what is filled, in the segment that is written or the next one.
    fn next_to_fill(&self, _writer: &Writer) -> Option<(Arc<Segment>, u64, u64)> {
        let (filled, tail) = (self.filled.load(), self.tail.lock());
        let mut ahead = AHEAD_BYTES;
        let start = tail.offset.next_multiple_of(BLOCK_BYTES);
        for (segment, start) in std::iter::once((&tail.segment, start)).chain(tail.ready.iter().map(|next| (next, 0))) {
            let end = segment.whole_blocks_bytes().min(start.saturating_add(ahead));
            let from = match filled.segment.cmp(&segment.id) {
                std::cmp::Ordering::Less => start.max(BLOCK_BYTES),
                std::cmp::Ordering::Equal => start.max(u64::from(filled.offset)),
                std::cmp::Ordering::Greater => end,
            };
            // Less than a step only at a segment's end: whoever followed the log's end would never be done.
            let is_worth_while = from + STEP_BYTES <= end || end == segment.whole_blocks_bytes();
            if from < end && is_worth_while {
                return Some((Arc::clone(segment), from, end.min(from + STEP_BYTES)));
            }
            ahead = ahead.saturating_sub(end.saturating_sub(start));
        }
        None
    }
}

impl Log {
    /// Lends this thread to the log while `goes_on`: it prepares the space where the log will go on. Fails when the log
    /// stopped.
    pub fn serve_fills(&self, goes_on: &dyn Fn() -> bool) -> Result<()> {
        let inner = &self.inner;
        inner.filler.is_present.store(true, Ordering::SeqCst);
        let mut outcome = Ok(());
        while outcome.is_ok() && goes_on() {
            inner.filler.alarm.wait(IDLE);
            if inner.filler.is_asked.swap(false, Ordering::SeqCst) {
                outcome = self.prepare_space(goes_on);
            }
        }
        inner.filler.is_present.store(false, Ordering::SeqCst);
        outcome
    }

    fn prepare_space(&self, goes_on: &dyn Fn() -> bool) -> Result<()> {
        let inner = &self.inner;
        inner.grow_ahead();
        while goes_on() && inner.filler.has_small_syncs() && inner.fill_step()? {
            inner.env.clock().pause(PAUSE);
            inner.grow_ahead();
        }
        Ok(())
    }

    /// Has the threads in [`Log::serve_flushes`] and [`Log::serve_fills`] look whether they go on.
    pub fn wake_threads(&self) {
        self.inner.flusher.wake();
        self.inner.filler.alarm.ring();
    }
}
