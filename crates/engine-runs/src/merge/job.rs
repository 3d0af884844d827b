//! A merge in progress: inputs, position, output.
//!
//! The job owns everything it needs: handles of its inputs (which pins their files), a stream at its position and the
//! writer. It knows no lock and can be dropped at any time; the writer then removes what it wrote. The retention point is
//! taken once, at the start: an older point only keeps more. The fences, too, are those of the start; what was fenced
//! since is laid upon the output when it is installed.

use super::due;
use super::policy::{Choice, Reason};
use super::segments::{self, Segment};
use crate::lineage::{self, Ages, Lineage};
use crate::manifest::change::{Change, RunId};
use crate::manifest::state::State;
use crate::store::install::{Plan, keeps_files, plan_files};
use crate::store::slot::NumberedRun;
use crate::store::statistics::count;
use crate::store::{Runs, TableSlot};
use crate::{
    FileId, NewRuns, Part, PartDescriptor, Result, RetentionPoint, Run, RunDescriptor, RunWriter, StreamOptions,
    TableId, TableWriteOptions, Version, VersionStream, WriterOptions,
};
use pando_base::Timestamp;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// What a table gives to a job.
struct Inputs {
    slot: Arc<TableSlot>,
    ident: String,
    runs: Vec<NumberedRun>,
    bottom: bool,
    reason: Reason,
}

/// One table's share of a job.
struct TableJob {
    table: TableId,
    slot: Arc<TableSlot>,
    removed: Vec<RunId>,
    runs: Vec<Arc<Run>>,
    /// No older run is left below: deletions can go.
    bottom: bool,
    options: TableWriteOptions,
    segments: VecDeque<Segment>,
    output: Vec<Piece>,
}

/// A finished piece of an output run, in key order.
enum Piece {
    Kept(PartDescriptor),
    /// What the writer made under this label.
    Written(u64),
}

/// A merge in progress.
pub(crate) struct Job {
    writer: RunWriter,
    retention: RetentionPoint,
    waiting: VecDeque<TableJob>,
    current: Option<TableJob>,
    done: Vec<TableJob>,
    stream: Option<VersionStream>,
    next_label: u64,
    /// The number of the compaction that it is, if somebody has asked for it.
    pub compaction: Option<u64>,
}

/// What a step did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    pub bytes: u64,
    pub finished: bool,
}

impl Job {
    /// True if all the job's tables were dropped.
    pub fn is_moot(&self) -> bool {
        let tables = self.waiting.iter().chain(&self.current).chain(&self.done);
        tables.into_iter().all(|table| table.slot.is_dropped())
    }

    /// Works until the budget is used up or nothing is left but the installation.
    pub fn step(&mut self, budget_bytes: u64) -> Result<Progress> {
        let mut bytes = 0;
        while bytes < budget_bytes {
            if self.stream.is_some() {
                bytes += self.copy_version()?;
            } else if !self.next_segment()? {
                return Ok(Progress { bytes, finished: true });
            }
        }
        Ok(Progress { bytes, finished: false })
    }

    /// Copies one version; returns its size. At the end of the segment, closes it.
    fn copy_version(&mut self) -> Result<u64> {
        let Some(stream) = &mut self.stream else { return Ok(0) };
        if !stream.next()? {
            self.stream = None;
            self.writer.finish_table()?;
            return Ok(0);
        }
        let value = stream.value()?;
        let version = Version { stamp: stream.stamp(), value: value.as_deref() };
        self.writer.add_version(stream.key(), version)?;
        Ok((stream.key().len() + value.map_or(0, |value| value.len())) as u64 + 1)
    }

    /// Goes on to the next segment or table. False if there is none.
    fn next_segment(&mut self) -> Result<bool> {
        loop {
            let Some(table) = &mut self.current else {
                self.current = self.waiting.pop_front();
                if self.current.is_none() {
                    return Ok(false);
                }
                continue;
            };
            match table.segments.pop_front() {
                _ if table.slot.is_dropped() => self.current = None,
                Some(Segment::Keep(part)) => table.output.push(Piece::Kept(part.descriptor().clone())),
                Some(Segment::Rewrite { start, end }) => {
                    let retention = Some(self.retention.clone());
                    let options = StreamOptions { start: Some(start), end, retention, is_bottom: table.bottom };
                    let stream = VersionStream::new(&table.runs, options)?;
                    self.writer.begin_table(self.next_label, table.options.clone())?;
                    for tombstone in stream.range_tombstones() {
                        self.writer.add_range_tombstone(tombstone)?;
                    }
                    self.stream = Some(stream);
                    table.output.push(Piece::Written(self.next_label));
                    self.next_label += 1;
                    return Ok(true);
                }
                None => self.done.extend(self.current.take()),
            }
        }
    }
}

impl Runs {
    /// A job for these choices; `None` if none of the tables is as it was. `rewrite_all` takes nothing over.
    pub(crate) fn job_for(
        &self,
        chosen: &[(TableId, Choice)],
        retention: RetentionPoint,
        rewrite_all: bool,
    ) -> Result<Option<Job>> {
        let mut waiting = VecDeque::new();
        for inputs in self.take_inputs(chosen) {
            waiting.extend(self.table_job(inputs, &retention, rewrite_all)?);
        }
        if waiting.is_empty() {
            return Ok(None);
        }
        let mut writer = self.writer(WriterOptions::default())?;
        if !rewrite_all {
            writer = writer.standing_back_until(self.shared.merges.is_hurried());
        }
        let (current, done) = (None, Vec::new());
        Ok(Some(Job { writer, retention, waiting, current, done, stream: None, next_label: 0, compaction: None }))
    }

    /// The inputs as of one moment, under the manifest's lock: every fence before it is in them, and every fence after it
    /// is noted for the output.
    fn take_inputs(&self, chosen: &[(TableId, Choice)]) -> Vec<Inputs> {
        let manifest = self.shared.manifest.lock();
        *self.shared.merges.fence.lock() = Timestamp::MAX;
        let take = |(table, choice): &(TableId, Choice)| {
            let slot = self.shared.slot_in(manifest.state(), *table);
            let numbered = slot.numbered();
            let end = choice.first + choice.count;
            let runs = numbered.get(choice.first..end)?.to_vec();
            let ident = manifest.state().tables.get(table)?.record.ident.clone();
            Some(Inputs { slot, ident, runs, bottom: end == numbered.len(), reason: choice.reason })
        };
        chosen.iter().filter_map(take).collect()
    }

    fn table_job(&self, inputs: Inputs, retention: &RetentionPoint, rewrite_all: bool) -> Result<Option<TableJob>> {
        let Inputs { slot, ident, runs, bottom, reason } = inputs;
        let ages = runs.iter().map(|input| input.ages).reduce(Ages::union).unwrap_or_default();
        let removed = runs.iter().map(|input| input.id).collect();
        let runs: Vec<Arc<Run>> = runs.into_iter().map(|input| input.run).collect();
        let Some(first_part) = runs.iter().flat_map(|run| run.parts()).next() else { return Ok(None) };
        let policy = &self.shared.options.policy;
        let sparse = self.shared.merges.due.lock().sparse().clone();
        let worth_keeping = |part: &Part| {
            let part = part.descriptor();
            let is_dead = reason == Reason::Dead && due::is_ripe_and_spare(policy, part, bottom, retention);
            let is_large = part.length_bytes >= policy.takeover_bytes_min || reason == Reason::Dead;
            !rewrite_all && is_large && !is_dead && !sparse.contains(&part.file) && part.fence >= part.max_durable
        };
        let segments: VecDeque<Segment> = segments::plan(&runs, worth_keeping)?.into();
        let lineage = lineage(&runs, &segments, ages);
        let ident = lineage::hint(&ident, slot.table(), &lineage);
        let options = TableWriteOptions { filter_prefix: first_part.core.root()?.filter_prefix, ident };
        Ok(Some(TableJob { table: slot.table(), slot, removed, runs, bottom, options, segments, output: Vec::new() }))
    }

    /// Finishes the output and replaces the inputs by it.
    pub(crate) fn install_merge(&self, job: Job) -> Result<()> {
        let shared = &self.shared;
        let Job { writer, done, .. } = job;
        let new = writer.finish()?;
        let mut manifest = shared.manifest.lock();
        shared.refuse_if_stopped()?;
        let plan = self.plan_merge(manifest.state(), &done, &new);
        let written: u64 = new.files().iter().map(|file| file.length_bytes).sum();
        let committed = self.commit(&mut manifest, &plan);
        if keeps_files(&committed) {
            new.keep();
        }
        committed?;
        count(&shared.counters.merges, 1);
        count(&shared.counters.merge_written_bytes, written);
        Ok(())
    }

    fn plan_merge(&self, state: &State, done: &[TableJob], new: &NewRuns) -> Plan {
        let fence = self.shared.merges.fence();
        let written: BTreeMap<u64, &RunDescriptor> = new.tables().iter().map(|(label, run)| (*label, run)).collect();
        let mut replacements = Vec::new();
        for job in done {
            if let Some(run) = assemble(state, job, &written, fence) {
                replacements.push((job, run));
            } else {
                count(&self.shared.counters.merges_abandoned, 1);
            }
        }
        let mut plan = Plan::default();
        plan_files(&mut plan, new.files(), replacements.iter().map(|(_, run)| run));
        let first_run = state.next_run;
        plan.changes.push(self.numbers(first_run + replacements.len() as u64));
        for (id, (job, run)) in (first_run..).zip(replacements) {
            let kept = run.parts.iter().filter(|part| job.keeps(part)).map(|part| part.length_bytes).sum();
            count(&self.shared.counters.merge_taken_over_bytes, kept);
            let run = (!run.parts.is_empty()).then_some(run);
            plan.changes.push(Change::Replace { table: job.table, removed: job.removed.clone(), id, run });
            plan.touched.insert(job.table);
        }
        plan
    }
}

impl TableJob {
    fn keeps(&self, part: &PartDescriptor) -> bool {
        let same = |kept: &PartDescriptor| kept.file == part.file && kept.offset == part.offset;
        self.output.iter().any(|piece| matches!(piece, Piece::Kept(kept) if same(kept)))
    }
}

/// The output run; `None` if the table has gone or its runs are not the inputs any more.
fn assemble(
    state: &State,
    job: &TableJob,
    written: &BTreeMap<u64, &RunDescriptor>,
    fence: Timestamp,
) -> Option<RunDescriptor> {
    if job.slot.is_dropped() {
        return None;
    }
    let table = state.tables.get(&job.table)?;
    let fence = if table.record.unfenced { Timestamp::MAX } else { fence };
    let runs = &table.runs;
    let first = runs.iter().position(|run| Some(&run.id) == job.removed.first())?;
    let inputs = runs.get(first..first + job.removed.len())?;
    if !inputs.iter().map(|run| &run.id).eq(&job.removed) {
        return None;
    }
    let present: BTreeMap<(u64, u64), &PartDescriptor> =
        inputs.iter().flat_map(|run| &run.run.parts).map(|part| ((part.file, part.offset), part)).collect();
    let mut parts = Vec::new();
    for piece in &job.output {
        match piece {
            // As it is now: a fence may have come down on it.
            Piece::Kept(part) => parts.push((*present.get(&(part.file, part.offset))?).clone()),
            Piece::Written(label) => {
                let run = written.get(label).map(|run| run.parts.as_slice()).unwrap_or_default();
                parts.extend(run.iter().cloned().map(|part| fenced(part, fence)));
            }
        }
    }
    Some(RunDescriptor { parts })
}

/// What the output's files will say about themselves.
fn lineage(runs: &[Arc<Run>], segments: &VecDeque<Segment>, ages: Ages) -> Lineage {
    let kept_parts = segments.iter().filter_map(|segment| match segment {
        Segment::Keep(part) => Some((part.descriptor().file, part.descriptor().offset)),
        Segment::Rewrite { .. } => None,
    });
    let kept_parts: BTreeSet<(FileId, u64)> = kept_parts.collect();
    let parts = runs.iter().flat_map(|run| run.parts()).map(|part| (part.descriptor().file, part.descriptor().offset));
    let inputs = parts.filter(|place| !kept_parts.contains(place)).map(|(file, _)| file).collect();
    Lineage { ages, inputs, kept: kept_parts.into_iter().map(|(file, _)| file).collect() }
}

fn fenced(mut part: PartDescriptor, fence: Timestamp) -> PartDescriptor {
    if part.max_durable > fence {
        part.fence = part.fence.min(fence);
    }
    part
}
