//! Loading the rows of sealed segments, and a small cache of them.
//!
//! The index answers questions under its lock and never reads; when rows are missing it says which. They are read without
//! any lock, kept for the length of the question, and offered to the cache. A damaged index record is no loss: the rows are
//! gathered from the segment's records instead.

use crate::chain::Digest;
use crate::control::{self, Link};
use crate::index::{Missing, OplogIndex, Row, RowSource};
use crate::log::Inner;
use crate::record::Class;
use crate::scan::{Scanner, Step, read_record};
use crate::segment::{FIRST_RECORD, Segment};
use crate::{LogError, LogPosition, Result};
use pando_base::Timestamp;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

/// The rows that were used last, up to a size.
pub(crate) struct RowCache {
    budget_bytes: u64,
    held_bytes: u64,
    /// Least recently used first.
    entries: VecDeque<(u32, Arc<Vec<Row>>)>,
}

fn size_of_rows(rows: &[Row]) -> u64 {
    std::mem::size_of_val(rows) as u64
}

impl RowCache {
    pub(crate) fn new(budget_bytes: u64) -> RowCache {
        RowCache { budget_bytes, held_bytes: 0, entries: VecDeque::new() }
    }

    fn get(&mut self, segment: u32) -> Option<Arc<Vec<Row>>> {
        let at = self.entries.iter().position(|(id, _)| *id == segment)?;
        let entry = self.entries.remove(at)?;
        let rows = Arc::clone(&entry.1);
        self.entries.push_back(entry);
        Some(rows)
    }

    pub(crate) fn insert(&mut self, segment: u32, rows: Arc<Vec<Row>>) {
        self.forget(segment);
        self.held_bytes += size_of_rows(&rows);
        self.entries.push_back((segment, rows));
        while self.held_bytes > self.budget_bytes {
            let Some((_, rows)) = self.entries.pop_front() else { break };
            self.held_bytes -= size_of_rows(&rows);
        }
    }

    pub(crate) fn forget(&mut self, segment: u32) {
        if let Some(at) = self.entries.iter().position(|(id, _)| *id == segment)
            && let Some((_, rows)) = self.entries.remove(at)
        {
            self.held_bytes -= size_of_rows(&rows);
        }
    }

    pub(crate) fn held_bytes(&self) -> u64 {
        self.held_bytes
    }
}

/// The cache, and what one question has loaded.
pub(crate) struct Loaded<'a> {
    cache: Option<&'a Mutex<RowCache>>,
    own: Vec<(u32, Arc<Vec<Row>>)>,
}

impl Loaded<'_> {
    /// Without a cache.
    pub(crate) fn uncached() -> Loaded<'static> {
        Loaded { cache: None, own: Vec::new() }
    }

    /// Reads what is missing.
    pub(crate) fn load(&mut self, missing: &Missing, segment: &Arc<Segment>, end_offset: u32) -> Result<()> {
        let rows = Arc::new(load_rows(missing, segment, end_offset)?);
        if let Some(cache) = self.cache {
            cache.lock().insert(missing.segment, Arc::clone(&rows));
        }
        self.own.push((missing.segment, rows));
        Ok(())
    }
}

impl RowSource for Loaded<'_> {
    fn rows(&self, segment: u32) -> Option<Arc<Vec<Row>>> {
        let own = self.own.iter().find(|(id, _)| *id == segment).map(|(_, rows)| Arc::clone(rows));
        own.or_else(|| self.cache?.lock().get(segment))
    }
}

fn load_rows(missing: &Missing, segment: &Arc<Segment>, end_offset: u32) -> Result<Vec<Row>> {
    if let Some(frame) = read_record(&missing.holder, u64::from(missing.offset))?
        && frame.header.class == Class::Index
        && let Some((summary, rows)) = control::decode_index(&frame.header, &frame.body)
        && summary.segment == missing.segment
    {
        return Ok(rows);
    }
    gather_rows(segment, end_offset)
}

/// The rows of a segment from its records.
fn gather_rows(segment: &Arc<Segment>, end_offset: u32) -> Result<Vec<Row>> {
    let nothing = LogPosition::START;
    let link = Link { previous_end: nothing, known_synced: nothing, no_holes: Timestamp::NONE, wall_ms: 0 };
    let mut digest = Digest::new(segment.id, &link);
    let mut scanner = Scanner::new(segment, FIRST_RECORD, u64::from(end_offset))?;
    while scanner.offset() < u64::from(end_offset) {
        match scanner.step()? {
            Step::Frame(frame) => digest.add(&frame, segment)?,
            Step::Blank => return Err(LogError::corruption(&segment.path, scanner.offset(), "a record is missing")),
            Step::Damaged(what) => return Err(LogError::corruption(&segment.path, scanner.offset(), what)),
        }
    }
    Ok(digest.finish().1)
}

impl Inner {
    /// Asks the index a question, loading rows until it can answer.
    pub(crate) fn ask<T>(
        &self,
        mut question: impl FnMut(&OplogIndex, &dyn RowSource) -> std::result::Result<T, Missing>,
    ) -> Result<T> {
        let mut loaded = self.loaded();
        loop {
            let missing = {
                let index = self.index.read();
                match question(&index, &loaded) {
                    Ok(answer) => return Ok(answer),
                    Err(missing) => missing,
                }
            };
            self.load_missing(&mut loaded, &missing)?;
        }
    }

    /// An empty hand over the cache.
    pub(crate) fn loaded(&self) -> Loaded<'_> {
        Loaded { cache: Some(&self.row_cache), own: Vec::new() }
    }

    /// Loads what a question misses; fine if the segment has been dropped meanwhile, for then it is not asked again.
    pub(crate) fn load_missing(&self, loaded: &mut Loaded<'_>, missing: &Missing) -> Result<()> {
        let entry = {
            let index = self.index.read();
            let entry = index.segments.iter().find(|entry| entry.segment.id == missing.segment);
            entry.map(|entry| (Arc::clone(&entry.segment), entry.end_offset))
        };
        let Some((segment, end_offset)) = entry else { return Ok(()) };
        match loaded.load(missing, &segment, end_offset) {
            Err(LogError::Io { source, .. })
                if source.kind() == io::ErrorKind::NotFound && !self.has_segment(missing.segment) =>
            {
                Ok(())
            }
            other => other,
        }
    }

    fn has_segment(&self, id: u32) -> bool {
        self.index.read().segments.iter().any(|entry| entry.segment.id == id)
    }
}
