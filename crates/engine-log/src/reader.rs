//! Cursors over the oplog.
//!
//! A reader fetches the places of some hundred entries at a time from the index, and their bytes from the log's memory or,
//! through a window of its own, from the files. The places it holds stay right as long as no live entry vanished (the
//! index's generation): below the no-holes point nothing new can appear.
//!
//! After a truncation the reader looks whether the entry on which it stands is still the same one, at the same place. If
//! not, it has lost its position and says so until it is sent elsewhere.

use crate::index::Found;
use crate::log::Inner;
use crate::oplog::Oplog;
use crate::record::entry_hash;
use crate::{LogError, LogPosition, Result};
use bytes::Bytes;
use pando_base::Timestamp;
use pando_env::File;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

/// How many places are fetched at once.
const BATCH: usize = 256;
/// How much is read from a file at once.
const WINDOW_BYTES: u64 = 256 * 1024;

/// Which way a reader goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Ascending, up to the no-holes point.
    Forward,
    /// Descending, from the very end.
    Backward,
}

/// Bytes of a file that were read ahead.
#[derive(Default)]
pub(crate) struct Window {
    file: Option<(u32, Arc<dyn File>)>,
    segment: u32,
    start: u64,
    bytes: Bytes,
}

/// A cursor.
pub struct OplogReader {
    oplog: Oplog,
    direction: Direction,
    /// The entry that was returned last.
    standing: Option<Found>,
    /// Where to go on when standing nowhere: at this timestamp or beyond it.
    start: Timestamp,
    batch: VecDeque<Found>,
    generation: u64,
    lost: Option<Timestamp>,
    window: Window,
}

impl OplogReader {
    pub(crate) fn new(oplog: Oplog, direction: Direction) -> OplogReader {
        let start = match direction {
            Direction::Forward => Timestamp::NONE,
            Direction::Backward => Timestamp::MAX,
        };
        let generation = oplog.inner.index.read().generation;
        let (batch, window) = (VecDeque::new(), Window::default());
        OplogReader { oplog, direction, standing: None, start, batch, generation, lost: None, window }
    }

    /// Goes to the nearest entry at or beyond a timestamp, in the reader's direction, and returns it.
    pub fn seek(&mut self, timestamp: Timestamp) -> Result<Option<(Timestamp, Bytes)>> {
        self.place(timestamp);
        self.advance()
    }

    /// Goes to the entry with exactly this timestamp and returns it. If there is none (or it is not visible yet) the reader
    /// stands where [`OplogReader::seek`] would have searched.
    pub fn seek_exact(&mut self, timestamp: Timestamp) -> Result<Option<(Timestamp, Bytes)>> {
        self.place(timestamp);
        if self.direction == Direction::Forward && timestamp > self.oplog.visible() {
            return Ok(None);
        }
        let generation = self.oplog.inner.index.read().generation;
        let Some(found) = self.oplog.exact(timestamp)? else { return Ok(None) };
        self.generation = generation;
        self.take(found)
    }

    /// The next entry in the reader's direction; none at the end, from where the reader can be asked again.
    pub fn advance(&mut self) -> Result<Option<(Timestamp, Bytes)>> {
        if let Some(lost) = self.lost {
            return Err(LogError::PositionLost(lost));
        }
        loop {
            self.check_position()?;
            if self.batch.is_empty() {
                self.fetch()?;
            }
            let Some(found) = self.batch.pop_front() else { return Ok(None) };
            match self.take(found.clone()) {
                // The segment was dropped between look-up and read: the check at the start of the round says what it means.
                Err(_) if self.oplog.inner.index.read().generation != self.generation => {}
                Err(error) => {
                    // Asking again does not step over what could not be read.
                    self.batch.push_front(found);
                    return Err(error);
                }
                taken => return taken,
            }
        }
    }

    /// The timestamp of the entry on which the reader stands.
    pub fn position(&self) -> Option<Timestamp> {
        self.standing.as_ref().map(|found| found.row.timestamp)
    }

    fn place(&mut self, timestamp: Timestamp) {
        self.standing = None;
        self.start = timestamp;
        self.batch.clear();
        self.lost = None;
    }

    fn take(&mut self, found: Found) -> Result<Option<(Timestamp, Bytes)>> {
        let bytes = self.oplog.inner.read_entry(&found, &mut self.window, self.direction)?;
        let timestamp = found.row.timestamp;
        self.standing = Some(found);
        Ok(Some((timestamp, bytes)))
    }

    /// After a truncation: is the entry on which the reader stands still there?
    fn check_position(&mut self) -> Result<()> {
        let generation = self.oplog.inner.index.read().generation;
        if generation == self.generation {
            return Ok(());
        }
        self.batch.clear();
        if let Some(standing) = &self.standing {
            let now = self.oplog.exact(standing.row.timestamp)?;
            let same = now.is_some_and(|now| now.row == standing.row && now.segment.id == standing.segment.id);
            if !same {
                let timestamp = standing.row.timestamp;
                self.lost = Some(timestamp);
                return Err(LogError::PositionLost(timestamp));
            }
        }
        self.generation = generation;
        Ok(())
    }

    fn fetch(&mut self) -> Result<()> {
        let standing = self.position();
        let found = match self.direction {
            Direction::Forward => {
                let from = standing.map_or(self.start, Timestamp::next);
                let to = self.oplog.visible();
                if from > to {
                    return Ok(());
                }
                self.oplog.inner.ask(|index, rows| index.forward(from, to, BATCH, rows))?
            }
            Direction::Backward => {
                let to = standing.map_or(self.start, Timestamp::previous);
                self.oplog.inner.ask(|index, rows| index.backward(to, BATCH, rows))?
            }
        };
        self.batch = found.into();
        Ok(())
    }
}

impl Inner {
    /// The bytes of an entry, checked.
    pub(crate) fn read_entry(&self, found: &Found, window: &mut Window, direction: Direction) -> Result<Bytes> {
        let at = LogPosition::new(found.segment.id, found.row.offset);
        let in_memory = if at >= self.memory_start.load() { self.tail.lock().read(at, found.row.length) } else { None };
        let bytes = match in_memory {
            Some(bytes) => bytes,
            None => {
                let read = window.read(found, self.written.load(), direction);
                read.map_err(|error| LogError::io(&found.segment.path, error))?
            }
        };
        if entry_hash(found.row.timestamp, &bytes) != found.row.hash {
            let offset = u64::from(found.row.offset);
            let detail = format!("the checksum of the oplog entry at {} does not match", found.row.timestamp);
            return Err(LogError::corruption(&found.segment.path, offset, detail));
        }
        Ok(bytes)
    }
}

impl Window {
    /// The bytes of an entry, from the window or by moving it there. Only what is written may be read ahead.
    fn read(&mut self, found: &Found, written: LogPosition, direction: Direction) -> io::Result<Bytes> {
        let (offset, length) = (u64::from(found.row.offset), u64::from(found.row.length));
        if !self.covers(found.segment.id, offset, length) {
            let end = match direction {
                Direction::Forward => offset + length.max(WINDOW_BYTES),
                Direction::Backward => offset + length,
            };
            let start = match direction {
                Direction::Forward => offset,
                Direction::Backward => offset.min((offset + length).saturating_sub(WINDOW_BYTES)),
            };
            let end = if written.segment == found.segment.id { end.min(u64::from(written.offset)) } else { end };
            self.fill(found, start, end)?;
        }
        if !self.covers(found.segment.id, offset, length) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let from = (offset - self.start) as usize;
        Ok(self.bytes.slice(from..from + length as usize))
    }

    fn covers(&self, segment: u32, offset: u64, length: u64) -> bool {
        self.segment == segment && offset >= self.start && offset + length <= self.start + self.bytes.len() as u64
    }

    fn fill(&mut self, found: &Found, start: u64, end: u64) -> io::Result<()> {
        let file = match &self.file {
            Some((segment, file)) if *segment == found.segment.id => Arc::clone(file),
            _ => found.segment.file()?,
        };
        let end = end.min(file.length()?).max(start);
        let mut bytes = vec![0; (end - start) as usize];
        file.read_exact_at(&mut bytes, start)?;
        self.file = Some((found.segment.id, file));
        (self.segment, self.start, self.bytes) = (found.segment.id, start, Bytes::from(bytes));
        Ok(())
    }
}
