//! The oplog's index: timestamp → place, for every segment.
//!
//! Each segment has its rows sorted by timestamp. The one that is written has them in memory; a sealed one has them in an
//! index record on disk, read when wanted. Entries commit out of order, so neighbouring segments may overlap; lookups merge.
//!
//! Truncations are bounds on segments that are no longer written (`lower < timestamp ≤ upper`) and removals of rows from
//! the one that is; new rows with timestamps that were truncated are therefore live again. `first`, `last`, `count` and
//! `bytes` of a segment always describe its live rows only, exactly.
//!
//! Invariants: segments ascend by id; the last one is the one that is written; `generation` changes whenever a row that
//! was live ceases to be. Nothing here reads a file: where rows are missing the caller is told which to load.

use crate::LogPosition;
use crate::control::Summary;
use crate::record::EntryPlace;
use crate::segment::Segment;
use pando_base::Timestamp;
use std::ops::Range;
use std::sync::Arc;

/// Where an entry's bytes lie in its segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) timestamp: Timestamp,
    pub(crate) offset: u32,
    pub(crate) length: u32,
    pub(crate) hash: u32,
}

/// The rows of one segment.
pub(crate) enum Rows {
    /// Of the segment that is written.
    Growing(Vec<Row>),
    /// Of a closed segment, in memory.
    Shared(Arc<Vec<Row>>),
    /// Of a closed segment, in the index record of some segment.
    OnDisk {
        /// The segment that holds the index record.
        holder: Arc<Segment>,
        /// Where it starts.
        offset: u32,
    },
}

/// One segment as the oplog sees it.
pub(crate) struct SegmentRows {
    pub(crate) segment: Arc<Segment>,
    pub(crate) rows: Rows,
    /// Live rows are above this…
    pub(crate) lower: Timestamp,
    /// …and not above this.
    pub(crate) upper: Timestamp,
    pub(crate) first: Timestamp,
    pub(crate) last: Timestamp,
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    /// When its newest entry was written, at the latest.
    pub(crate) wall_ms: u64,
    /// Where its records end.
    pub(crate) end_offset: u32,
    /// The length of its file with index and seal, once it is sealed.
    pub(crate) sealed_bytes: Option<u64>,
    /// Truncations that were recorded in this segment.
    pub(crate) cut_above: Timestamp,
    pub(crate) cut_below: Timestamp,
    /// As of its end: commits in it, the last recorded no-holes point, the last sequence.
    pub(crate) records: u64,
    pub(crate) no_holes: Timestamp,
    pub(crate) last_sequence: u64,
}

/// An entry that was found.
#[derive(Clone)]
pub(crate) struct Found {
    pub(crate) segment: Arc<Segment>,
    pub(crate) row: Row,
}

/// Rows that must be loaded before a question can be answered.
pub(crate) struct Missing {
    pub(crate) segment: u32,
    pub(crate) holder: Arc<Segment>,
    pub(crate) offset: u32,
}

/// Gives the rows of closed segments that are at hand.
pub(crate) trait RowSource {
    /// The rows of a segment, if loaded.
    fn rows(&self, segment: u32) -> Option<Arc<Vec<Row>>>;
}

/// All segments.
#[derive(Default)]
pub(crate) struct OplogIndex {
    pub(crate) segments: Vec<SegmentRows>,
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    pub(crate) generation: u64,
}

/// Rows of one segment that are kept alive while they are looked at.
enum View<'a> {
    Borrowed(&'a [Row]),
    Shared(Arc<Vec<Row>>),
}

/// The row with this timestamp. Whoever asks mostly asks for what is near the new end, so the search begins there.
fn row_from_end(rows: &[Row], timestamp: Timestamp) -> Option<Row> {
    let mut width = 1;
    while width < rows.len() && rows[rows.len() - width].timestamp > timestamp {
        width *= 2;
    }
    let near = &rows[rows.len().saturating_sub(width)..];
    near.binary_search_by_key(&timestamp, |row| row.timestamp).ok().map(|at| near[at])
}

impl View<'_> {
    fn rows(&self) -> &[Row] {
        match self {
            View::Borrowed(rows) => rows,
            View::Shared(rows) => rows,
        }
    }
}

impl SegmentRows {
    /// A segment that starts to be written.
    pub(crate) fn growing(segment: Arc<Segment>) -> SegmentRows {
        SegmentRows {
            segment,
            rows: Rows::Growing(Vec::new()),
            lower: Timestamp::NONE,
            upper: Timestamp::MAX,
            first: Timestamp::NONE,
            last: Timestamp::NONE,
            count: 0,
            bytes: 0,
            wall_ms: 0,
            end_offset: 0,
            sealed_bytes: None,
            cut_above: Timestamp::MAX,
            cut_below: Timestamp::NONE,
            records: 0,
            no_holes: Timestamp::NONE,
            last_sequence: 0,
        }
    }

    /// A closed segment as its summary tells, before later truncations are applied.
    pub(crate) fn closed(segment: Arc<Segment>, rows: Rows, summary: &Summary) -> SegmentRows {
        SegmentRows {
            rows,
            first: summary.first,
            last: summary.last,
            count: summary.count,
            bytes: summary.bytes,
            wall_ms: summary.wall_ms,
            end_offset: summary.end_offset,
            cut_above: summary.cut_above,
            cut_below: summary.cut_below,
            records: summary.records,
            no_holes: summary.no_holes,
            last_sequence: summary.last_sequence,
            ..SegmentRows::growing(segment)
        }
    }

    fn view(&self, source: &dyn RowSource) -> Result<View<'_>, Missing> {
        match &self.rows {
            Rows::Growing(rows) => Ok(View::Borrowed(rows)),
            Rows::Shared(rows) => Ok(View::Shared(Arc::clone(rows))),
            Rows::OnDisk { holder, offset } => match source.rows(self.segment.id) {
                Some(rows) => Ok(View::Shared(rows)),
                None => Err(Missing { segment: self.segment.id, holder: Arc::clone(holder), offset: *offset }),
            },
        }
    }

    fn live(&self, rows: &[Row]) -> Range<usize> {
        // Mostly there are no bounds.
        let up_to = |bound: Timestamp| rows.partition_point(|row| row.timestamp <= bound);
        let start = if self.lower.is_none() { 0 } else { up_to(self.lower) };
        let end = if self.upper == Timestamp::MAX { rows.len() } else { up_to(self.upper) };
        start..end.max(start)
    }

    /// True if bounds would take rows away.
    fn is_cut_by(&self, lower: Timestamp, upper: Timestamp) -> bool {
        self.count > 0 && (self.first <= lower || self.last > upper)
    }

    /// Narrows the bounds and counts anew.
    fn cut(&mut self, lower: Timestamp, upper: Timestamp, source: &dyn RowSource) -> Result<(), Missing> {
        if !self.is_cut_by(lower, upper) {
            if !matches!(self.rows, Rows::Growing(_)) {
                self.lower = self.lower.max(lower);
                self.upper = self.upper.min(upper);
            }
            return Ok(());
        }
        if let Rows::Growing(rows) = &mut self.rows {
            rows.retain(|row| row.timestamp > lower && row.timestamp <= upper);
        } else {
            self.view(source)?;
            self.lower = self.lower.max(lower);
            self.upper = self.upper.min(upper);
        }
        let view = self.view(source)?;
        let rows = &view.rows()[self.live(view.rows())];
        let (first, last) = (rows.first(), rows.last());
        let first = first.map_or(Timestamp::NONE, |row| row.timestamp);
        let last = last.map_or(Timestamp::NONE, |row| row.timestamp);
        let (count, bytes) = (rows.len() as u64, rows.iter().map(|row| u64::from(row.length)).sum());
        drop(view);
        (self.first, self.last, self.count, self.bytes) = (first, last, count, bytes);
        Ok(())
    }

    /// Puts the rows of one commit in at once, if they ascend and none there is lies between them; false if not.
    fn insert_run(&mut self, run: impl Iterator<Item = Row>, places: &[EntryPlace]) -> bool {
        let (Rows::Growing(rows), [first, .., last]) = (&mut self.rows, places) else { return false };
        let after = rows.last().is_some_and(|row| row.timestamp >= first.timestamp);
        let at = if after { rows.partition_point(|row| row.timestamp < first.timestamp) } else { rows.len() };
        if !places.is_sorted_by(|one, next| one.timestamp < next.timestamp)
            || rows.get(at).is_some_and(|next| next.timestamp <= last.timestamp)
        {
            return false;
        }
        rows.splice(at..at, run);
        self.first = if self.count == 0 { first.timestamp } else { self.first.min(first.timestamp) };
        self.last = self.last.max(last.timestamp);
        self.count += places.len() as u64;
        self.bytes += places.iter().map(|place| u64::from(place.length)).sum::<u64>();
        true
    }

    fn insert(&mut self, row: Row) {
        let Rows::Growing(rows) = &mut self.rows else {
            debug_assert!(false, "only the last segment grows");
            return;
        };
        if rows.last().is_none_or(|last| last.timestamp < row.timestamp) {
            rows.push(row);
        } else {
            let at = rows.partition_point(|other| other.timestamp <= row.timestamp);
            rows.insert(at, row);
        }
        self.first = if self.count == 0 { row.timestamp } else { self.first.min(row.timestamp) };
        self.last = self.last.max(row.timestamp);
        self.count += 1;
        self.bytes += u64::from(row.length);
    }

    /// Its rows stop growing.
    pub(crate) fn close(&mut self, end_offset: u32, wall_ms: u64) {
        if let Rows::Growing(rows) = &mut self.rows {
            self.rows = Rows::Shared(Arc::new(std::mem::take(rows)));
        }
        self.end_offset = end_offset;
        self.wall_ms = wall_ms;
    }

    /// What its index record says: all its rows, for later truncations are recorded elsewhere.
    pub(crate) fn summary(&self, rows: &[Row], known_synced: LogPosition) -> Summary {
        Summary {
            segment: self.segment.id,
            end_offset: self.end_offset,
            first: rows.first().map_or(Timestamp::NONE, |row| row.timestamp),
            last: rows.last().map_or(Timestamp::NONE, |row| row.timestamp),
            count: rows.len() as u64,
            bytes: rows.iter().map(|row| u64::from(row.length)).sum(),
            wall_ms: self.wall_ms,
            cut_above: self.cut_above,
            cut_below: self.cut_below,
            no_holes: self.no_holes,
            known_synced,
            last_sequence: self.last_sequence,
            records: self.records,
        }
    }
}

impl OplogIndex {
    /// Adds the entries of a record that starts at `start` in the segment that is written.
    #[inline]
    pub(crate) fn insert(&mut self, start: u32, places: &[EntryPlace]) {
        let Some(segment) = self.segments.last_mut() else {
            debug_assert!(false, "there is always a segment that is written");
            return;
        };
        let rows = places.iter().map(|place| Row {
            timestamp: place.timestamp,
            offset: start + place.offset,
            length: place.length,
            hash: place.hash,
        });
        let before = segment.bytes;
        if places.len() < 2 || !segment.insert_run(rows.clone(), places) {
            rows.for_each(|row| segment.insert(row));
        }
        self.count += places.len() as u64;
        self.bytes += segment.bytes - before;
    }

    /// Takes away the live rows outside the bounds in all segments. All or nothing.
    pub(crate) fn cut(&mut self, lower: Timestamp, upper: Timestamp, source: &dyn RowSource) -> Result<bool, Missing> {
        for segment in &self.segments {
            if segment.is_cut_by(lower, upper) {
                segment.view(source)?;
            }
        }
        let mut changed = false;
        for segment in &mut self.segments {
            changed |= segment.is_cut_by(lower, upper);
            segment.cut(lower, upper, source)?;
        }
        self.recount();
        if changed {
            self.generation += 1;
        }
        Ok(changed)
    }

    /// Forgets the oldest segments.
    pub(crate) fn drop_oldest(&mut self, count: usize) -> Vec<SegmentRows> {
        let dropped: Vec<SegmentRows> = self.segments.drain(..count.min(self.segments.len())).collect();
        self.recount();
        self.generation += 1;
        dropped
    }

    pub(crate) fn recount(&mut self) {
        self.count = self.segments.iter().map(|segment| segment.count).sum();
        self.bytes = self.segments.iter().map(|segment| segment.bytes).sum();
    }

    /// The lowest live timestamp.
    pub(crate) fn first(&self) -> Option<Timestamp> {
        self.segments.iter().filter(|segment| segment.count > 0).map(|segment| segment.first).min()
    }

    /// The highest live timestamp.
    pub(crate) fn last(&self) -> Option<Timestamp> {
        self.segments.iter().filter(|segment| segment.count > 0).map(|segment| segment.last).max()
    }

    /// The entry with exactly this timestamp.
    pub(crate) fn exact(&self, timestamp: Timestamp, source: &dyn RowSource) -> Result<Option<Found>, Missing> {
        for segment in self.segments.iter().rev() {
            if segment.count == 0 || timestamp < segment.first || timestamp > segment.last {
                continue;
            }
            let view = segment.view(source)?;
            let rows = &view.rows()[segment.live(view.rows())];
            if let Some(row) = row_from_end(rows, timestamp) {
                return Ok(Some(Found { segment: Arc::clone(&segment.segment), row }));
            }
        }
        Ok(None)
    }

    /// About `limit` of the lowest entries in `from..=to`, ascending, without a gap between them.
    pub(crate) fn forward(
        &self,
        from: Timestamp,
        to: Timestamp,
        limit: usize,
        source: &dyn RowSource,
    ) -> Result<Vec<Found>, Missing> {
        let touches = |segment: &&SegmentRows| segment.count > 0 && segment.last >= from && segment.first <= to;
        let mut segments: Vec<&SegmentRows> = self.segments.iter().filter(touches).collect();
        segments.sort_by_key(|segment| segment.first.max(from));
        let mut found: Vec<Found> = Vec::new();
        // How far this batch reaches: no segment gives more than it was asked for, and none is left out below.
        let mut reach = to;
        for segment in segments {
            if segment.first > reach {
                break;
            }
            let before = found.len();
            segment.take_forward(from, reach, limit, source, &mut found)?;
            if found.len() - before == limit {
                reach = reach.min(found.last().map_or(reach, |found| found.row.timestamp));
            }
            if found.len() >= limit {
                reach = reach.min(found.iter().map(|found| found.row.timestamp).max().unwrap_or(reach));
            }
        }
        found.retain(|found| found.row.timestamp <= reach);
        found.sort_by_key(|found| found.row.timestamp);
        Ok(found)
    }

    /// About `limit` of the highest entries at or below `to`, descending, without a gap between them.
    pub(crate) fn backward(&self, to: Timestamp, limit: usize, source: &dyn RowSource) -> Result<Vec<Found>, Missing> {
        let touches = |segment: &&SegmentRows| segment.count > 0 && segment.first <= to;
        let mut segments: Vec<&SegmentRows> = self.segments.iter().filter(touches).collect();
        segments.sort_by_key(|segment| std::cmp::Reverse(segment.last.min(to)));
        let mut found: Vec<Found> = Vec::new();
        let mut reach = Timestamp::NONE;
        for segment in segments {
            if segment.last < reach {
                break;
            }
            let before = found.len();
            segment.take_backward(reach, to, limit, source, &mut found)?;
            if found.len() - before == limit {
                reach = reach.max(found.last().map_or(reach, |found| found.row.timestamp));
            }
            if found.len() >= limit {
                reach = reach.max(found.iter().map(|found| found.row.timestamp).min().unwrap_or(reach));
            }
        }
        found.retain(|found| found.row.timestamp >= reach);
        found.sort_by_key(|found| std::cmp::Reverse(found.row.timestamp));
        Ok(found)
    }
}

impl SegmentRows {
    fn take_forward(
        &self,
        from: Timestamp,
        to: Timestamp,
        limit: usize,
        source: &dyn RowSource,
        out: &mut Vec<Found>,
    ) -> Result<(), Missing> {
        let view = self.view(source)?;
        let rows = &view.rows()[self.live(view.rows())];
        let start = rows.partition_point(|row| row.timestamp < from);
        let rows = rows[start..].iter().take_while(|row| row.timestamp <= to).take(limit);
        out.extend(rows.map(|row| Found { segment: Arc::clone(&self.segment), row: *row }));
        Ok(())
    }

    fn take_backward(
        &self,
        from: Timestamp,
        to: Timestamp,
        limit: usize,
        source: &dyn RowSource,
        out: &mut Vec<Found>,
    ) -> Result<(), Missing> {
        let view = self.view(source)?;
        let rows = &view.rows()[self.live(view.rows())];
        let end = rows.partition_point(|row| row.timestamp <= to);
        let rows = rows[..end].iter().rev().take_while(|row| row.timestamp >= from).take(limit);
        out.extend(rows.map(|row| Found { segment: Arc::clone(&self.segment), row: *row }));
        Ok(())
    }
}
