//! Writing the run of a checkpoint.

use super::Pace;
use super::cut::Cut;
use crate::core::Core;
use crate::failure::of_runs;
use crate::overlay::LeafEntry;
use crate::table::EngineTable;
use bytes::Bytes;
use pando_engine_runs::{
    FilterPrefix, NewRuns, RangeTombstone, RetentionPoint, RunWriter, Stamp, TableWriteOptions, Version, WriterOptions,
    table_hint,
};
use pando_storage::{KeyFilter, Result, TableBody};
use std::ops::{Bound, Range};
use std::sync::Arc;

/// What was written.
#[derive(Default)]
pub(super) struct Written {
    pub runs: Option<NewRuns>,
    pub keys: u64,
    pub bytes: u64,
}

/// Rows of one leaf that go into the run, copied out so that its lock is not held while they are compressed and written.
#[derive(Default)]
struct Rows {
    /// Keys and small values.
    bytes: Vec<u8>,
    keys: Vec<Range<usize>>,
    /// Newest first for each key.
    versions: Vec<TakenVersion>,
}

struct TakenVersion {
    /// Which key, by its place in the list.
    row: usize,
    stamp: Stamp,
    value: Option<TakenValue>,
}

/// A small value is copied, which costs less than counting who shares it.
enum TakenValue {
    Copied(Range<usize>),
    Shared(Bytes),
}

/// Values up to this size are copied.
const COPIED_BYTES_MAX: usize = 2048;

impl Rows {
    fn clear(&mut self) {
        self.bytes.clear();
        self.keys.clear();
        self.versions.clear();
    }

    fn copy(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len()
    }

    fn push_version(&mut self, stamp: Stamp, value: Option<&Bytes>) {
        let value = value.map(|value| match value.len() <= COPIED_BYTES_MAX {
            true => TakenValue::Copied(self.copy(value)),
            false => TakenValue::Shared(value.clone()),
        });
        self.versions.push(TakenVersion { row: self.keys.len(), stamp, value });
    }

    /// Shows every version with its key.
    fn try_for_each(&self, mut show: impl FnMut(&[u8], Version<'_>) -> Result<()>) -> Result<()> {
        for TakenVersion { row, stamp, value } in &self.versions {
            let value = match value {
                None => None,
                Some(TakenValue::Copied(range)) => Some(&self.bytes[range.clone()]),
                Some(TakenValue::Shared(bytes)) => Some(&bytes[..]),
            };
            show(&self.bytes[self.keys[*row].clone()], Version { stamp: *stamp, value })?;
        }
        Ok(())
    }
}

impl Core {
    /// Writes the dirty versions that the cut takes. The run's files are durable but not yet part of the base.
    pub(super) fn write_run(&self, cut: &Cut, pace: Pace) -> Result<Written> {
        let retention = self.retention_now();
        let is_hurried = self.is_hurried(cut, pace);
        let begin = || -> Result<RunWriter> {
            let writer = self.runs.writer(WriterOptions::default()).map_err(of_runs)?;
            Ok(match &is_hurried {
                Some(is_hurried) => writer.standing_back_until(is_hurried.clone()),
                None => writer,
            })
        };
        let mut writer: Option<RunWriter> = None;
        let mut keys = 0;
        for table in &cut.tables {
            if table.is_dropped() || (table.overlay.is_empty() && table.ranges.is_empty()) {
                continue;
            }
            keys += self.write_table(&begin, &mut writer, cut, &retention, table)?;
        }
        let Some(writer) = writer else { return Ok(Written::default()) };
        let runs = writer.finish().map_err(|error| self.noted(of_runs(self.runs.note_failure(error))))?;
        let bytes = runs.files().iter().map(|file| file.length_bytes).sum();
        Ok(Written { runs: Some(runs), keys, bytes })
    }

    fn write_table(
        &self,
        begin: &dyn Fn() -> Result<RunWriter>,
        writer: &mut Option<RunWriter>,
        cut: &Cut,
        retention: &RetentionPoint,
        table: &EngineTable,
    ) -> Result<u64> {
        let ranges = taken_ranges(cut, table);
        let base_is_empty = table.slot.load().is_empty();
        let mut section = Section { begin, writer, table, begun: false, keys: 0 };
        for range in &ranges {
            let settled = RangeTombstone { stamp: retention.settle(&range.stamp), ..range.clone() };
            section.writer()?.add_range_tombstone(settled).map_err(of_runs)?;
        }
        let mut from: Option<Arc<[u8]>> = None;
        let mut rows = Rows::default();
        loop {
            let bound = from.as_deref().map_or(Bound::Unbounded, Bound::Included);
            let next = table.overlay.scan_forward(bound, |entry| {
                take_row(&mut rows, cut, retention, table, &ranges, entry, base_is_empty);
            });
            section.add(&rows)?;
            rows.clear();
            match next {
                Some(lower) => from = Some(lower),
                None => break,
            }
        }
        section.finish()
    }
}

/// One table's part of the run, begun when there is something to write.
struct Section<'a> {
    begin: &'a dyn Fn() -> Result<RunWriter>,
    writer: &'a mut Option<RunWriter>,
    table: &'a EngineTable,
    begun: bool,
    keys: u64,
}

impl Section<'_> {
    fn writer(&mut self) -> Result<&mut RunWriter> {
        if self.writer.is_none() {
            *self.writer = Some((self.begin)()?);
        }
        let Some(writer) = self.writer.as_mut() else { unreachable!("it was made just now") };
        if !self.begun {
            self.begun = true;
            let options = table_write_options(self.table);
            writer.begin_table(self.table.id(), options).map_err(of_runs)?;
        }
        Ok(writer)
    }

    fn add(&mut self, rows: &Rows) -> Result<()> {
        if rows.keys.is_empty() {
            return Ok(());
        }
        self.keys += rows.keys.len() as u64;
        let writer = self.writer()?;
        rows.try_for_each(|key, version| writer.add_version(key, version).map_err(of_runs))
    }

    fn finish(mut self) -> Result<u64> {
        if self.begun {
            self.writer()?.finish_table().map_err(of_runs)?;
        }
        Ok(self.keys)
    }
}

/// How a table's runs are written.
pub fn table_write_options(table: &EngineTable) -> TableWriteOptions {
    let filter_prefix = match table.options().filter {
        KeyFilter::Whole => FilterPrefix::Whole,
        KeyFilter::ExceptLast(bytes) => FilterPrefix::AllBut(u32::from(bytes)),
        KeyFilter::Nothing => FilterPrefix::None,
    };
    TableWriteOptions { filter_prefix, ident: table_hint(table.ident(), table.id()) }
}

/// The deleted ranges that the cut takes.
fn taken_ranges(cut: &Cut, table: &EngineTable) -> Vec<RangeTombstone> {
    if table.ranges.is_empty() {
        return Vec::new();
    }
    table.ranges.with(|list| {
        let taken = list.iter().filter_map(|range| {
            let stamp = cut.takes(table, &range.version)?;
            Some(RangeTombstone { start: range.start.clone(), end: range.end.clone(), stamp })
        });
        taken.collect()
    })
}

/// Takes the versions of an entry that go into the run, if any does.
fn take_row(
    rows: &mut Rows,
    cut: &Cut,
    retention: &RetentionPoint,
    table: &EngineTable,
    ranges: &[RangeTombstone],
    entry: &LeafEntry,
    base_is_empty: bool,
) {
    let (bytes_before, versions_before) = (rows.bytes.len(), rows.versions.len());
    let mut newer: Option<Stamp> = None;
    let covering = ranges.iter().filter(|range| range.covers(entry.key())).map(|range| range.stamp.sequence).max();
    for version in entry.chain.newest_first() {
        if version.in_base() {
            break;
        }
        // Of one key the base has the older part: below what is taken (a version without a timestamp, say) everything is.
        let is_below = |stamp: &Stamp| newer.is_some() || covering.is_some_and(|sequence| stamp.sequence < sequence);
        let stamp = cut.takes(table, version).or_else(|| version.stamp().filter(is_below));
        let Some(stamp) = stamp else { continue };
        if newer.is_none_or(|newer| retention.needs(&stamp, &newer)) {
            rows.push_version(stamp, version.value());
        }
        newer = Some(stamp);
    }
    if rows.versions.len() == versions_before {
        return;
    }
    let row = rows.keys.len();
    // A range acts on older runs only; within this run it is a deletion at its place in the order.
    for range in ranges.iter().filter(|range| range.covers(entry.key())) {
        let older = |version: &TakenVersion| version.stamp.sequence < range.stamp.sequence;
        let place = rows.versions[versions_before..].iter().position(older);
        let place = place.map_or(rows.versions.len(), |place| versions_before + place);
        rows.versions.insert(place, TakenVersion { row, stamp: range.stamp, value: None });
    }
    let taken = &mut rows.versions[versions_before..];
    for version in taken.iter_mut() {
        version.stamp = retention.settle(&version.stamp);
    }
    if base_is_empty && taken.iter().all(|version| version.value.is_none() && version.stamp.is_settled()) {
        rows.versions.truncate(versions_before);
        rows.bytes.truncate(bytes_before);
        return;
    }
    let key = rows.copy(entry.key());
    rows.keys.push(key);
}
