//! Steps of background work, verification, statistics and the description for a human.

use crate::core::Core;
use crate::engine::DurableEngine;
use crate::failure::{of_log, of_runs};
use crate::open::LOG_DIRECTORY;
use crate::table::EngineTable;
use pando_engine_log::Dropped;
use pando_engine_runs::{Edit, MergeStep, Problem, TableId};
use pando_storage::{
    CheckpointKind, Damage, DamagedPart, Durability, Maintenance, Result, Statistics, StorageError, Table, TableBody,
    VerifyReport, Work,
};
use std::fmt::Write;

/// How much a merge reads before it looks up.
const MERGE_STEP_BYTES: u64 = 4 << 20;

impl Core {
    /// One bounded step; false if there was nothing to do.
    pub fn maintain_step(&self) -> Result<bool> {
        self.check_running()?;
        let frozen = self.frozen.read();
        if *frozen > 0 {
            return Ok(false);
        }
        let mut worked = self.forget_dropped_tables()?;
        if self.has_oplog() && self.is_past_recovery() {
            worked |= self.truncate_oplog()?.segments > 0;
        }
        let step = self.merge_step().map_err(|error| self.of_base(error))?;
        worked |= step != MergeStep::Idle;
        let reclaimed = self.runs.reclaim().map_err(|error| self.of_base(error))?;
        Ok(worked || reclaimed.files > 0)
    }

    /// Beside clients a merge stands back as a whole, unless it must hurry.
    fn merge_step(&self) -> pando_engine_runs::Result<MergeStep> {
        if !self.options.background || self.runs.is_hurried() {
            return self.runs.merge_step(self, MERGE_STEP_BYTES);
        }
        if !self.runs.is_merging() {
            // Whether there is one to begin is soon known: no thread is needed for that.
            return self.runs.merge_step(self, 0);
        }
        let mut step = Ok(MergeStep::Idle);
        self.env.tasks().aside(&mut || step = self.runs.merge_step(self, MERGE_STEP_BYTES));
        step
    }

    /// Until stable has moved somebody may still be bringing the data up to the oplog's end, and may need entries older than the
    /// checkpoint: those of transactions that were prepared before it.
    fn is_past_recovery(&self) -> bool {
        let timestamps = self.keeper.all();
        timestamps.recovery.is_none() || timestamps.stable > timestamps.recovery
    }

    /// Drops what the oplog need not keep, by whole markers.
    pub fn truncate_oplog(&self) -> Result<Dropped> {
        let start_ns = self.env.clock().monotonic_ns();
        let dropped = self.log.truncate_oplog_old().map_err(|error| self.noted(of_log(error)))?;
        if dropped.segments > 0 {
            let elapsed_ns = self.env.clock().monotonic_ns().saturating_sub(start_ns);
            self.counters.oplog_markers_dropped.add(dropped.markers);
            self.counters.oplog_truncation_microseconds.add(elapsed_ns / 1000);
        }
        Ok(dropped)
    }

    /// Merges all runs of a table into one, in pieces; a piece is left out while files are frozen.
    fn compact(&self, table: TableId, goes_on: &mut dyn FnMut() -> bool) -> Result<()> {
        self.check_running()?;
        let begun = {
            let frozen = self.frozen.read();
            if *frozen > 0 {
                return Err(StorageError::IllegalOperation("files are kept still".into()));
            }
            self.runs.begin_compaction(table, self).map_err(|error| self.of_base(error))?
        };
        let Some(compaction) = begun else { return Ok(()) };
        while goes_on() {
            self.check_running()?;
            let frozen = self.frozen.read();
            if *frozen > 0 {
                break;
            }
            let step = self.runs.compaction_step(&compaction, self, MERGE_STEP_BYTES);
            if step.map_err(|error| self.of_base(error))? {
                self.runs.reclaim().map_err(|error| self.of_base(error))?;
                return Ok(());
            }
        }
        self.runs.abandon_compaction(&compaction);
        Ok(())
    }

    /// Dropped tables leave the manifest, and their space is given back. The log must know of the drop first, or a crash
    /// could bring back a table without its data.
    fn forget_dropped_tables(&self) -> Result<bool> {
        if self.registry.dropped().is_empty() {
            return Ok(false);
        }
        // A checkpoint takes them along, and may take its time: merges need not wait for it.
        let Some(_checkpoint) = self.checkpoint.try_lock() else { return Ok(false) };
        let dropped = self.registry.dropped();
        self.flush()?;
        self.install(Edit { drop: dropped.clone(), ..Edit::default() })?;
        self.registry.forget_dropped(&dropped);
        Ok(true)
    }

    /// Log bytes since the last checkpoint.
    pub fn log_bytes_since_checkpoint(&self) -> u64 {
        self.log.statistics().appended_bytes.saturating_sub(self.checkpoint_log_bytes())
    }

    fn checkpoint_log_bytes(&self) -> u64 {
        self.checkpoint.try_lock().map_or(u64::MAX, |state| state.log_bytes)
    }
}

impl Core {
    /// Problems of the base, with the idents of their tables.
    fn note_problems(&self, problems: Vec<Problem>, report: &mut VerifyReport) {
        for problem in problems {
            let ident = problem.tables.first().and_then(|id| self.registry.by_id(*id));
            report.damage.push(Damage {
                part: DamagedPart::Base,
                file: problem.file.display().to_string(),
                offset: problem.offset,
                ident: ident.map(|table| table.description().ident.clone()),
                detail: problem.detail,
            });
        }
    }
}

impl Maintenance for DurableEngine {
    fn verify(&self) -> Result<VerifyReport> {
        let base = self.core.runs.verify(&mut |_| {}).map_err(of_runs)?;
        let mut report = VerifyReport { blocks: base.frames, bytes: base.bytes, ..VerifyReport::default() };
        self.core.note_problems(base.problems, &mut report);
        let log = self.core.log.verify().map_err(of_log)?;
        report.log_records = log.records;
        report.bytes += log.bytes;
        for damage in log.damages {
            report.damage.push(Damage {
                part: DamagedPart::Log,
                file: damage.file.display().to_string(),
                offset: damage.offset,
                ident: None,
                detail: damage.detail,
            });
        }
        let backups = crate::backup_list::load(&**self.core.env.disk(), &self.core.directory);
        match backups {
            Err(StorageError::Corruption { file, offset, detail }) => {
                report.damage.push(Damage { part: DamagedPart::Backups, file, offset, ident: None, detail });
            }
            loaded => drop(loaded?),
        }
        Ok(report)
    }

    fn verify_table(&self, table: &Table, goes_on: &mut dyn FnMut() -> bool) -> Result<VerifyReport> {
        let body = EngineTable::of(table, self.core.id)?;
        let base = self.core.runs.verify_table(body.id(), goes_on).map_err(of_runs)?;
        let mut report = VerifyReport { blocks: base.frames, bytes: base.bytes, ..VerifyReport::default() };
        self.core.note_problems(base.problems, &mut report);
        Ok(report)
    }

    fn compact_table(&self, table: &Table, goes_on: &mut dyn FnMut() -> bool) -> Result<()> {
        let id = EngineTable::of(table, self.core.id)?.id();
        self.checkpoint(CheckpointKind::Automatic)?;
        self.core.compact(id, goes_on)
    }

    fn statistics(&self) -> Statistics {
        let mut statistics = Statistics::default();
        self.core.engine_statistics(&mut statistics);
        self.core.log_statistics(&mut statistics);
        self.core.base_statistics(&mut statistics);
        statistics
    }

    fn describe(&self, out: &mut dyn Write) -> Result<()> {
        let core = &self.core;
        let now = core.keeper.all();
        let told = writeln!(out, "engine in {}", core.directory.display())
            .and_then(|()| writeln!(out, "  mode {:?}, {} tables", core.options.mode, core.registry.idents().len()))
            .and_then(|()| {
                writeln!(
                    out,
                    "  oldest {}, stable {}, all_durable {}, initial data {}, recovery {}, checkpoint {}",
                    now.oldest, now.stable, now.all_durable, now.initial_data, now.recovery, now.checkpoint
                )
            })
            .and_then(|()| write!(out, "{}", core.runs.describe()))
            .and_then(|()| writeln!(out, "log in {}", core.directory.join(LOG_DIRECTORY).display()));
        told.map_err(|_| StorageError::Io("the description could not be written".into()))?;
        pando_engine_log::describe(&core.env, &core.directory.join(LOG_DIRECTORY), false, out).map_err(of_log)
    }

    fn set_memory_bytes(&self, bytes: u64) {
        self.core.memory.set_budget_bytes(bytes);
        self.core.balance_memory();
    }

    fn set_transaction_too_large_threshold(&self, share: f64) {
        self.core.memory.set_too_large_threshold(share);
    }
}

impl Core {
    fn engine_statistics(&self, statistics: &mut Statistics) {
        let counters = &self.counters;
        for (name, counter) in [
            ("transactions.begun", &counters.begun),
            ("transactions.committed", &counters.committed),
            ("transactions.rolled_back", &counters.rolled_back),
            ("transactions.prepared", &counters.prepared),
            ("conflicts.write", &counters.write_conflicts),
            ("conflicts.prepare", &counters.prepare_conflicts),
            ("memory.temporarily_unavailable", &counters.temporarily_unavailable),
            ("memory.transaction_too_large", &counters.transaction_too_large),
            ("memory.slowed_writes", &counters.slowed),
            ("memory.stalls", &counters.stalls),
            ("reads.gets", &counters.gets),
            ("reads.overlay_hits", &counters.overlay_hits),
            ("checkpoint.taken", &counters.checkpoints),
            ("checkpoint.spills", &counters.spills),
            ("checkpoint.keys", &counters.checkpoint_keys),
            ("checkpoint.written_bytes", &counters.checkpoint_bytes),
            ("checkpoint.time_us", &counters.checkpoint_microseconds),
            ("rollback_to_stable.done", &counters.rollbacks_to_stable),
            ("overlay.evicted_rows", &counters.evicted_rows),
            ("recovery.records", &counters.recovered_records),
            ("oplog.markers_dropped", &counters.oplog_markers_dropped),
            ("oplog.truncation_us", &counters.oplog_truncation_microseconds),
            ("oplog.opening_us", &counters.oplog_opening_microseconds),
        ] {
            statistics.counter(name, counter.value());
        }
        let health = &self.health;
        for (name, work) in [
            ("log.failed_flushes", Work::Flush),
            ("log.failed_growths", Work::LogSpace),
            ("checkpoint.failed", Work::Checkpoint),
            ("base.failed_merges", Work::Merge),
        ] {
            statistics.counter(name, health.failures_ever(work));
        }
        let failing = health.failures_in_a_row(Work::Checkpoint);
        statistics.gauge("checkpoint.failed_in_a_row", i64::try_from(failing).unwrap_or(i64::MAX));
        statistics.gauge("checkpoint.refuses_writes", i64::from(health.refuses_writes()));
        statistics.counter("damage.places", health.damaged_places() as u64);
        statistics.gauge("memory.budget_bytes", self.memory.budget_bytes() as i64);
        statistics.gauge("overlay.bytes", self.memory.overlay_bytes() as i64);
        statistics.gauge("overlay.dirty_bytes", self.memory.dirty_bytes() as i64);
        statistics.gauge("snapshots.open", self.snapshots.count() as i64);
        statistics.gauge("tables.count", self.registry.count() as i64);
    }

    fn log_statistics(&self, statistics: &mut Statistics) {
        let log = self.log.statistics();
        for (name, value) in [
            ("log.appended_records", log.appended_records),
            ("log.appended_bytes", log.appended_bytes),
            ("log.written_bytes", log.written_bytes),
            ("log.syncs", log.syncs),
            ("log.flushed_commits", log.flushed_commits),
            ("log.dropped_segments", log.dropped_segments),
        ] {
            statistics.counter(name, value);
        }
        statistics.gauge("log.segments", log.segments as i64);
        statistics.gauge("log.buffered_bytes", log.buffered_bytes as i64);
        statistics.gauge("log.tail_memory_bytes", log.tail_memory_bytes as i64);
    }

    fn base_statistics(&self, statistics: &mut Statistics) {
        let base = self.runs.statistics();
        for (name, value) in [
            ("base.installs", base.installs),
            ("base.merges", base.merges),
            ("base.merge_read_bytes", base.merge_read_bytes),
            ("base.merge_written_bytes", base.merge_written_bytes),
            ("base.ballast_releases", base.ballast_releases),
            ("base.files_removed", base.files_removed),
            ("cache.misses", base.cache.misses),
        ] {
            statistics.counter(name, value);
        }
        statistics.gauge("base.files", base.files as i64);
        statistics.gauge("base.file_bytes", base.file_bytes as i64);
        statistics.gauge("base.live_bytes", base.live_bytes as i64);
        statistics.gauge("base.obsolete_bytes", base.obsolete_bytes as i64);
        statistics.gauge("base.runs_per_table_max", base.runs_per_table_max as i64);
        statistics.gauge("base.merge_debt_bytes", base.merge_debt_bytes as i64);
        let table_bytes = base.memory_bytes.saturating_add(self.registry.memory_bytes() as u64);
        statistics.gauge("tables.memory_bytes", i64::try_from(table_bytes).unwrap_or(i64::MAX));
        statistics.gauge("cache.used_bytes", self.runs.cache_bytes_used() as i64);
    }
}
