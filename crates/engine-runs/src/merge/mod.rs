//! Merges: turning several runs of a table into one, a little at a time.
//!
//! [`policy`] decides from sizes alone, [`due`] keeps the decisions current, [`segments`] finds what need not be rewritten,
//! and [`job`] does the work: it streams the versions of the chosen runs through retention and fences into a writer, at
//! most a budget's worth per call, holding nothing but the job's own lock. New runs may arrive meanwhile (they are newer
//! and stay above), fences too (they are laid upon the result), and a dropped table simply leaves the job. The end is one
//! edit that replaces the inputs by the verified output; the inputs' files go when their last reader does.
//!
//! A job is either one large table or a batch of small ones that share their output files. It stands back (its threads take what others leave of
//! the processors) unless somebody has asked for it, the store is about to end, or a table has [`DEEP_FACTOR`] times as many runs as it should.

pub(crate) mod due;
pub(crate) mod job;
pub(crate) mod policy;
#[cfg(test)]
mod policy_tests;
pub(crate) mod segments;
#[cfg(test)]
mod tests;

pub use policy::MergePolicy;

use crate::manifest::state::State;
use crate::store::Runs;
use crate::store::statistics::count;
use crate::{IsHurried, Result, RetentionPoint, RetentionSource, RunsError, TableId};
use due::{Batch, Due};
use job::Job;
use pando_base::Timestamp;
use parking_lot::Mutex;
use policy::Choice;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Small merges are put together up to about one file.
const BATCH: Batch = Batch { small_bytes: 4 << 20, bytes_max: 64 << 20, tables_max: 4096 };

/// A table with so many times the runs that start a merge makes merges hurry: readers pay for each.
const DEEP_FACTOR: usize = 2;

/// The store's merges: the one in progress and those that are due.
pub(crate) struct Merges {
    haste: Arc<Haste>,
    job: Mutex<Option<Job>>,
    due: Mutex<Due>,
    /// The lowest fence since the job in progress began.
    fence: Mutex<Timestamp>,
    /// Merges that somebody has asked for, so far.
    compactions: AtomicU64,
}

/// Why merges do not stand back.
#[derive(Default)]
struct Haste {
    is_deep: AtomicBool,
    is_ending: AtomicBool,
}

impl Haste {
    fn is_called_for(&self) -> bool {
        self.is_deep.load(Ordering::Relaxed) || self.is_ending.load(Ordering::Relaxed)
    }
}

impl Default for Merges {
    fn default() -> Merges {
        Merges {
            haste: Arc::default(),
            job: Mutex::new(None),
            due: Mutex::new(Due::default()),
            fence: Mutex::new(Timestamp::MAX),
            compactions: AtomicU64::new(0),
        }
    }
}

impl Merges {
    /// A fence was installed; it holds for the output of the job in progress, too.
    pub fn note_fence(&self, fence: Option<Timestamp>) {
        if let Some(fence) = fence {
            let mut lowest = self.fence.lock();
            *lowest = fence.min(*lowest);
        }
    }

    /// An edit has touched these tables.
    pub fn consider(
        &self,
        policy: &MergePolicy,
        state: &State,
        touched: &BTreeSet<TableId>,
        dropped: &BTreeSet<TableId>,
    ) {
        let mut due = self.due.lock();
        due.consider(policy, state, touched, dropped);
        self.haste.is_deep.store(due.runs_max() > policy.runs_max * DEEP_FACTOR, Ordering::Relaxed);
    }

    /// Says whether the merge in progress must not stand back any longer.
    pub fn is_hurried(&self) -> IsHurried {
        let haste = self.haste.clone();
        Arc::new(move || haste.is_called_for())
    }

    pub fn fence(&self) -> Timestamp {
        *self.fence.lock()
    }
}

/// What a call of `merge_step` did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeStep {
    /// There is nothing to merge.
    Idle,
    /// Work was done and there is more.
    Working {
        /// Bytes read, before compression.
        bytes: u64,
    },
    /// A merge was completed and installed; there may be another.
    Installed {
        /// Bytes read by this step.
        bytes: u64,
    },
}

/// A merge of a whole table that somebody has asked for.
#[derive(Debug)]
pub struct Compaction {
    number: u64,
}

/// What would be merged next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergeCandidate {
    /// The table.
    pub table: TableId,
    /// How many of its runs, ...
    pub runs: usize,
    /// ... counted from the newest, after so many that stay.
    pub skipped: usize,
}

impl Runs {
    /// What a merge would do next, if anything.
    pub fn merge_candidate(&self, retention: &RetentionPoint) -> Option<MergeCandidate> {
        let (table, choice) = self.choose(retention).into_iter().next()?;
        Some(MergeCandidate { table, runs: choice.count, skipped: choice.first })
    }

    /// About how many bytes the merges that are due will write.
    pub fn debt_bytes(&self) -> u64 {
        self.shared.merges.due.lock().debt_bytes()
    }

    /// Has merges stand back no longer: somebody waits for the step in progress to end.
    pub fn hurry(&self) {
        self.shared.merges.haste.is_ending.store(true, Ordering::Relaxed);
    }

    /// True if merges must not stand back.
    pub fn is_hurried(&self) -> bool {
        self.shared.merges.haste.is_called_for()
    }

    /// True if one is in progress.
    pub fn is_merging(&self) -> bool {
        self.shared.merges.job.lock().is_some()
    }

    /// Works on a merge until about `budget_bytes` were read; starts one if one is due. Only one caller merges at a time.
    pub fn merge_step(&self, source: &dyn RetentionSource, budget_bytes: u64) -> Result<MergeStep> {
        self.shared.refuse_if_stopped()?;
        let mut slot = self.shared.merges.job.lock();
        if slot.as_ref().is_some_and(Job::is_moot) {
            *slot = None;
            count(&self.shared.counters.merges_abandoned, 1);
        }
        if slot.is_none() {
            *slot = self.start_job(source)?;
        }
        let Some(job) = slot.as_mut() else { return Ok(MergeStep::Idle) };
        let stepped = job.step(budget_bytes);
        let finished = matches!(stepped, Ok(job::Progress { finished: true, .. }) | Err(_));
        let ended = if finished { slot.take() } else { None };
        let outcome = stepped.and_then(|progress| {
            count(&self.shared.counters.merge_read_bytes, progress.bytes);
            match ended {
                None => Ok(MergeStep::Working { bytes: progress.bytes }),
                Some(job) => self.install_merge(job).map(|()| MergeStep::Installed { bytes: progress.bytes }),
            }
        });
        outcome.map_err(|error| self.after_failure(error))
    }

    /// Merges until nothing is due.
    pub fn merge_all(&self, source: &dyn RetentionSource) -> Result<()> {
        while self.merge_step(source, u64::MAX)? != MergeStep::Idle {}
        Ok(())
    }

    /// Merges all runs of a table into one, whatever the policy thinks: everything dead and superseded goes.
    pub fn compact(&self, table: TableId, source: &dyn RetentionSource) -> Result<()> {
        let Some(compaction) = self.begin_compaction(table, source)? else { return Ok(()) };
        while !self.compaction_step(&compaction, source, u64::MAX)? {}
        Ok(())
    }

    /// Begins such a merge; none if the table has no runs. It takes the place of the merge in progress, if any, which may be on
    /// this very table; whose inputs are still there.
    pub fn begin_compaction(&self, table: TableId, source: &dyn RetentionSource) -> Result<Option<Compaction>> {
        self.shared.refuse_if_stopped()?;
        let mut slot = self.shared.merges.job.lock();
        *slot = None;
        let runs = self.slot(table).load().runs_count();
        if runs == 0 {
            return Ok(None);
        }
        let choice = Choice { first: 0, count: runs, reason: policy::Reason::Dead };
        let Some(mut job) = self.job_for(&[(table, choice)], source.retention(), true)? else { return Ok(None) };
        let number = self.shared.merges.compactions.fetch_add(1, Ordering::Relaxed);
        job.compaction = Some(number);
        *slot = Some(job);
        Ok(Some(Compaction { number }))
    }

    /// Works on it until about `budget_bytes` were read. True if it is over: installed, by whoever merges, or gone with its table.
    pub fn compaction_step(
        &self,
        compaction: &Compaction,
        source: &dyn RetentionSource,
        budget_bytes: u64,
    ) -> Result<bool> {
        if !self.is_compacting(compaction) {
            return Ok(true);
        }
        self.merge_step(source, budget_bytes)?;
        Ok(!self.is_compacting(compaction))
    }

    /// Gives it up, if it is not over.
    pub fn abandon_compaction(&self, compaction: &Compaction) {
        let mut slot = self.shared.merges.job.lock();
        if slot.as_ref().is_some_and(|job| job.compaction == Some(compaction.number)) {
            *slot = None;
            count(&self.shared.counters.merges_abandoned, 1);
        }
    }

    fn is_compacting(&self, compaction: &Compaction) -> bool {
        let slot = self.shared.merges.job.lock();
        slot.as_ref().is_some_and(|job| job.compaction == Some(compaction.number))
    }

    /// Gives up the merge in progress, if any; its output is removed.
    pub fn abandon_merge(&self) {
        if self.shared.merges.job.lock().take().is_some() {
            count(&self.shared.counters.merges_abandoned, 1);
        }
    }

    fn start_job(&self, source: &dyn RetentionSource) -> Result<Option<Job>> {
        let retention = source.retention();
        let chosen = self.choose(&retention);
        if chosen.is_empty() {
            return Ok(None);
        }
        self.job_for(&chosen, retention, false)
    }

    fn choose(&self, retention: &RetentionPoint) -> Vec<(TableId, Choice)> {
        let shared = &self.shared;
        let policy = &shared.options.policy;
        let squeezed = shared.options.ballast_bytes > 0 && !shared.ballast.is_held();
        let bytes_max = if squeezed { shared.options.ballast_bytes } else { u64::MAX };
        let manifest = shared.manifest.lock();
        let due = shared.merges.due.lock();
        let chosen = due.most_urgent(bytes_max, &BATCH);
        if !chosen.is_empty() {
            return chosen;
        }
        let tables = &manifest.state().tables;
        let ripe = due.suspects().iter().find_map(|id| {
            let choice = due::ripe_run(policy, tables.get(id)?, retention)?;
            Some((*id, choice))
        });
        ripe.into_iter().collect()
    }

    /// A full disk is helped by the ballast, after which small merges that free space are tried; a failed sync stops all.
    fn after_failure(&self, error: RunsError) -> RunsError {
        count(&self.shared.counters.merges_abandoned, 1);
        if matches!(error, RunsError::OutOfSpace { .. })
            && let Err(other) = self.shared.release_ballast()
        {
            return other;
        }
        self.shared.stop_on_failed_sync(error)
    }
}
