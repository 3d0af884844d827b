//! Writing the run of a checkpoint.

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
use std::ops::Bound;
use std::sync::Arc;

/// What was written.
#[derive(Default)]
pub(super) struct Written {
    pub runs: Option<NewRuns>,
    pub keys: u64,
    pub bytes: u64,
}

/// A key's versions that go into the run, newest first.
struct Row {
    key: Vec<u8>,
    versions: Vec<(Stamp, Option<Bytes>)>,
}

impl Core {
    /// Writes the dirty versions that the cut takes. The run's files are durable but not yet part of the base.
    pub(super) fn write_run(&self, cut: &Cut) -> Result<Written> {
        let retention = self.retention_now();
        let mut writer: Option<RunWriter> = None;
        let mut keys = 0;
        for table in &cut.tables {
            if table.is_dropped() || (table.overlay.is_empty() && table.ranges.is_empty()) {
                continue;
            }
            keys += self.write_table(&mut writer, cut, &retention, table)?;
        }
        let Some(writer) = writer else { return Ok(Written::default()) };
        let runs = writer.finish().map_err(|error| self.noted(of_runs(self.runs.note_failure(error))))?;
        let bytes = runs.files().iter().map(|file| file.length_bytes).sum();
        Ok(Written { runs: Some(runs), keys, bytes })
    }

    fn write_table(
        &self,
        writer: &mut Option<RunWriter>,
        cut: &Cut,
        retention: &RetentionPoint,
        table: &EngineTable,
    ) -> Result<u64> {
        let ranges = taken_ranges(cut, table);
        let base_is_empty = table.slot.load().is_empty();
        let mut section = Section { core: self, writer, table, begun: false, keys: 0 };
        for range in &ranges {
            let settled = RangeTombstone { stamp: retention.settle(&range.stamp), ..range.clone() };
            section.writer()?.add_range_tombstone(settled).map_err(of_runs)?;
        }
        let mut from: Option<Arc<[u8]>> = None;
        let mut rows = Vec::new();
        loop {
            let bound = from.as_deref().map_or(Bound::Unbounded, Bound::Included);
            let next = table.overlay.scan_forward(bound, |entry| {
                rows.extend(row(cut, retention, table, &ranges, entry, base_is_empty));
            });
            for row in rows.drain(..) {
                section.add(&row)?;
            }
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
    core: &'a Core,
    writer: &'a mut Option<RunWriter>,
    table: &'a EngineTable,
    begun: bool,
    keys: u64,
}

impl Section<'_> {
    fn writer(&mut self) -> Result<&mut RunWriter> {
        if self.writer.is_none() {
            *self.writer = Some(self.core.runs.writer(WriterOptions::default()).map_err(of_runs)?);
        }
        let Some(writer) = self.writer.as_mut() else { unreachable!("it was made just now") };
        if !self.begun {
            self.begun = true;
            let options = table_write_options(self.table);
            writer.begin_table(self.table.id(), options).map_err(of_runs)?;
        }
        Ok(writer)
    }

    fn add(&mut self, row: &Row) -> Result<()> {
        self.keys += 1;
        let writer = self.writer()?;
        for (stamp, value) in &row.versions {
            let version = Version { stamp: *stamp, value: value.as_deref() };
            writer.add_version(&row.key, version).map_err(of_runs)?;
        }
        Ok(())
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

/// The versions of an entry that go into the run; none if nothing does.
fn row(
    cut: &Cut,
    retention: &RetentionPoint,
    table: &EngineTable,
    ranges: &[RangeTombstone],
    entry: &LeafEntry,
    base_is_empty: bool,
) -> Option<Row> {
    let mut taken: Vec<(Stamp, Option<Bytes>)> = Vec::new();
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
            taken.push((stamp, version.value().cloned()));
        }
        newer = Some(stamp);
    }
    if taken.is_empty() {
        return None;
    }
    // A range acts on older runs only; within this run it is a deletion at its place in the order.
    for range in ranges.iter().filter(|range| range.covers(entry.key())) {
        let place = taken.iter().position(|(stamp, _)| stamp.sequence < range.stamp.sequence).unwrap_or(taken.len());
        taken.insert(place, (range.stamp, None));
    }
    for (stamp, _) in &mut taken {
        *stamp = retention.settle(stamp);
    }
    let pointless = base_is_empty && taken.iter().all(|(stamp, value)| value.is_none() && stamp.is_settled());
    (!pointless).then(|| Row { key: entry.key().to_vec(), versions: taken })
}
