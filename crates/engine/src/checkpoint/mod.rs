//! Checkpoints: what is committed and stable goes from the overlay to the base, in one atomic step.
//!
//! The steps: (1) under the log's lock take the *cut*: the last published sequence, the log's end, the stable timestamp and
//! the tables' sizes at it; (2) flush the log, so that nothing in the base is without its oplog entry; (3) write a run of
//! the dirty versions that the cut takes; (4) install the run and the mark in one manifest edit; (5) mark those versions as
//! in the base and let go of the old ones. Until (4) nothing has happened; a crash before it leaves the last checkpoint.
//!
//! While a checkpoint works, the cut counts as an open snapshot and its stable timestamp as stable, so that writers keep
//! every version that it may still have to write.
//!
//! A *spill* also takes versions above stable, when memory runs short while stable stands still. They are behind the
//! checkpoint's fence: dead after a crash, and after a rollback to stable.
//!
//! A checkpoint that nobody waits for stands back ([`haste`]).

mod cut;
mod haste;
mod settle;
mod write;

use crate::core::Core;
use crate::failure::of_log;
use crate::memory::Advice;
use crate::registry::record_of;
use bytes::Bytes;
use cut::Cut;
use pando_base::Timestamp;
use pando_engine_runs::{CheckpointMark, Edit};
use pando_storage::{CheckpointKind, CheckpointOutcome, EngineEvent, Result, Work};

pub use cut::Target;
pub use haste::{Haste, Pace};
pub use write::table_write_options;

/// What the last checkpoint left.
#[derive(Clone, Debug, Default)]
pub struct CheckpointState {
    /// As in the manifest.
    pub mark: Option<CheckpointMark>,
    /// The engine's count of changes at the last cut.
    pub changes: u64,
    /// Log bytes at the last cut.
    pub log_bytes: u64,
}

impl Core {
    /// Takes a checkpoint if there is something to do.
    pub fn take_checkpoint(&self, kind: CheckpointKind, spill: bool) -> Result<CheckpointOutcome> {
        self.take_checkpoint_at(Pace::Full, kind, spill)
    }

    /// Takes a checkpoint that nobody waits for, if there is something to do.
    pub fn take_leisurely_checkpoint(&self) -> Result<CheckpointOutcome> {
        self.take_checkpoint_at(Pace::Leisurely, CheckpointKind::Automatic, false)
    }

    fn take_checkpoint_at(&self, pace: Pace, kind: CheckpointKind, spill: bool) -> Result<CheckpointOutcome> {
        self.check_running()?;
        let frozen = self.frozen.read();
        if *frozen > 0 {
            return Ok(CheckpointOutcome::default());
        }
        let mut state = self.lock_checkpoint();
        let Some(target) = self.target(kind, spill, &state) else { return Ok(CheckpointOutcome::default()) };
        let cut = self.take_cut(target, spill);
        if kind == CheckpointKind::Automatic && !spill && self.is_idle(&cut, &state) {
            self.keeper.end_checkpoint();
            return Ok(CheckpointOutcome::default());
        }
        let outcome = self.checkpoint_at(&cut, pace, &mut state);
        self.keeper.end_checkpoint();
        self.worked(Work::Checkpoint, &outcome);
        outcome
    }

    /// What a checkpoint is to stand at; none if the rules say to wait.
    fn target(&self, kind: CheckpointKind, spill: bool, state: &CheckpointState) -> Option<Target> {
        let now = self.keeper.all();
        if kind == CheckpointKind::Full || now.initial_data.is_none() {
            return Some(Target::Full);
        }
        if now.stable.is_some() && now.stable >= now.initial_data {
            return Some(Target::Stable);
        }
        // Stable has not reached the data: the base may grow, but it stays at the last checkpoint's time. One of everything
        // has no time to stay at: a fence would kill what it holds.
        let before = state.mark.as_ref().map_or(Timestamp::NONE, |mark| mark.stable);
        spill.then_some(if before.is_some() { Target::At(before) } else { Target::Full })
    }

    fn is_idle(&self, cut: &Cut, state: &CheckpointState) -> bool {
        let unmoved = state.mark.as_ref().is_some_and(|mark| mark.stable == cut.recorded_stable());
        unmoved && cut.changes == state.changes && self.registry.dropped().is_empty()
    }

    fn checkpoint_at(&self, cut: &Cut, pace: Pace, state: &mut CheckpointState) -> Result<CheckpointOutcome> {
        let started_ns = self.env.clock().monotonic_ns();
        self.flush()?;
        let written = self.write_run(cut, pace)?;
        let (keys, bytes) = (written.keys, written.bytes);
        let dropped = self.registry.dropped();
        let mark = self.mark(cut);
        let mut edit = Edit { add: written.runs, mark: Some(mark.clone()), drop: dropped.clone(), ..Edit::default() };
        for (table, book) in &cut.sizes {
            match table.is_in_manifest() {
                true => edit.update.push(record_of(table, book)),
                false => edit.create.push(record_of(table, book)),
            }
        }
        self.install(edit)?;
        for (table, book) in &cut.sizes {
            table.set_in_manifest();
            *table.checkpointed.lock() = book.clone();
        }
        self.registry.forget_dropped(&dropped);
        *state = CheckpointState { mark: Some(mark), changes: cut.changes, log_bytes: cut.log_bytes };
        self.settle(cut);
        self.after_checkpoint(cut)?;
        self.counters.checkpoints.increment();
        self.counters.checkpoint_keys.add(keys);
        self.counters.checkpoint_bytes.add(bytes);
        if cut.spill {
            self.counters.spills.increment();
        }
        let took_ns = self.env.clock().monotonic_ns().saturating_sub(started_ns);
        self.counters.checkpoint_microseconds.add(took_ns / 1000);
        let interval = self.options.checkpoint_interval;
        self.tell(&EngineEvent::CheckpointTaken {
            timestamp: cut.recorded_stable(),
            keys,
            bytes,
            elapsed_ms: took_ns / 1_000_000,
            is_long: !interval.is_zero() && u128::from(took_ns) > interval.as_nanos(),
        });
        Ok(CheckpointOutcome { taken: true, timestamp: cut.recorded_stable(), keys, bytes })
    }

    fn mark(&self, cut: &Cut) -> CheckpointMark {
        let extra = MarkExtra { mode: self.options.mode, full: cut.stable.is_none(), last_table: cut.last_table };
        CheckpointMark {
            sequence_cut: cut.sequence,
            log_segment: u64::from(cut.position.segment),
            log_offset: u64::from(cut.position.offset),
            stable: cut.recorded_stable(),
            oldest: cut.oldest,
            extra: extra.encode(),
        }
    }

    /// The log before the cut is no longer needed for recovery, except for oplog entries after stable.
    fn after_checkpoint(&self, cut: &Cut) -> Result<()> {
        self.keeper.set_checkpoint(cut.recorded_stable(), cut.oldest);
        if self.has_oplog() {
            self.log.pin("checkpoint", cut.recorded_stable().next());
        }
        self.log.checkpointed(cut.position).map_err(|error| self.noted(of_log(error)))?;
        self.balance_memory();
        self.merge_alarm.ring();
        Ok(())
    }

    /// Makes room when writers are being slowed: first what is stable, then, if that is not enough, everything committed.
    /// Where running transactions fill the memory there is nothing to be done, and nothing is.
    pub fn relieve(&self) -> Result<()> {
        if self.memory.advice() == Advice::Go || !self.memory.is_worth_taking() {
            return Ok(());
        }
        self.take_checkpoint(CheckpointKind::Automatic, false)?;
        if self.memory.advice() != Advice::Go && self.memory.is_worth_taking() {
            self.take_checkpoint(CheckpointKind::Automatic, true)?;
        }
        Ok(())
    }
}

use crate::options::Mode;

/// What the engine keeps in the mark beside what the base knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkExtra {
    /// How the log before the mark was written.
    pub mode: Mode,
    /// Everything committed is in it: there is no fence.
    pub full: bool,
    /// The last table number given.
    pub last_table: u64,
}

impl MarkExtra {
    /// For the manifest.
    pub fn encode(&self) -> Bytes {
        let mut bytes = vec![u8::from(self.mode == Mode::ReplicaSet), u8::from(self.full)];
        bytes.extend_from_slice(&self.last_table.to_le_bytes());
        Bytes::from(bytes)
    }

    /// From the manifest.
    pub fn decode(bytes: &[u8]) -> Option<MarkExtra> {
        let (head, number) = bytes.split_at_checked(2)?;
        let last_table = u64::from_le_bytes(number.try_into().ok()?);
        let mode = if head[0] == 0 { Mode::StandAlone } else { Mode::ReplicaSet };
        Some(MarkExtra { mode, full: head[1] != 0, last_table })
    }
}
