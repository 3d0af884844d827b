//! The unit of work inside a recovery unit: its changes, its hooks and its end. `WriteUnitOfWork` drives it.

use super::RecoveryUnit;
use crate::{Committed, Result, StorageError, TableSize};
use pando_base::Timestamp;
use smallvec::SmallVec;
use std::collections::VecDeque;

/// Something to do when a unit of work ends. Neither end may fail.
pub trait Change: Send {
    /// The unit has committed, at its last commit timestamp if it had one.
    fn on_commit(self: Box<Self>, timestamp: Option<Timestamp>);
    /// The unit was rolled back.
    fn on_rollback(self: Box<Self>);
}

/// Runs just before the engine's commit; an error rolls the unit back.
pub type PreCommitHook = Box<dyn FnOnce(&mut RecoveryUnit) -> Result<()> + Send>;

/// What belongs to the unit of work in progress.
#[derive(Default)]
pub(crate) struct Unit {
    /// A nested unit was rolled back: only rollback is left.
    pub(crate) failed: bool,
    /// Left open by `WriteUnitOfWork::release`.
    pub(crate) released: bool,
    pub(super) group_oplog_entries: bool,
    pub(super) changes: SmallVec<[Box<dyn Change>; 4]>,
    pub(super) hooks: VecDeque<PreCommitHook>,
    /// The last commit timestamp asked for inside the unit.
    pub(super) timestamp: Timestamp,
    /// The last commit timestamp that the transaction was given.
    pub(super) applied: Timestamp,
    /// Size changes not committed yet, by table id.
    pub(super) sizes: SmallVec<[(u64, TableSize); 2]>,
}

impl RecoveryUnit {
    /// Registers what is to happen when the unit ends.
    pub fn register_change(&mut self, change: Box<dyn Change>) -> Result<()> {
        self.unit_in_progress()?.changes.push(change);
        Ok(())
    }

    /// Registers a change that only has a commit.
    pub fn on_commit(&mut self, call: impl FnOnce(Option<Timestamp>) + Send + 'static) -> Result<()> {
        self.register_change(Box::new(OnCommit(call)))
    }

    /// Registers a change that only has a rollback.
    pub fn on_rollback(&mut self, call: impl FnOnce() + Send + 'static) -> Result<()> {
        self.register_change(Box::new(OnRollback(call)))
    }

    /// Registers a call that runs just before the engine's commit.
    pub fn register_pre_commit_hook(&mut self, hook: PreCommitHook) -> Result<()> {
        self.unit_in_progress()?.hooks.push_back(hook);
        Ok(())
    }

    pub(super) fn unit_in_progress(&mut self) -> Result<&mut Unit> {
        self.unit.as_mut().ok_or_else(|| StorageError::IllegalOperation("there is no unit of work".into()))
    }

    /// True inside a unit of work.
    pub fn in_unit_of_work(&self) -> bool {
        self.unit.is_some()
    }

    /// True if the unit's writes are to become one oplog entry.
    pub fn groups_oplog_entries(&self) -> bool {
        self.unit.as_ref().is_some_and(|unit| unit.group_oplog_entries)
    }

    /// True once the unit is prepared.
    pub fn is_prepared(&self) -> bool {
        self.open.as_ref().is_some_and(|(_, transaction)| transaction.is_prepared())
    }

    /// True if a nested unit was rolled back, so that only rollback is left.
    pub fn is_unit_doomed(&self) -> bool {
        self.unit.as_ref().is_some_and(|unit| unit.failed)
    }

    /// Bytes that the transaction holds uncommitted in the cache.
    pub fn dirty_bytes(&self) -> u64 {
        self.open.as_ref().map_or(0, |(_, transaction)| transaction.dirty_bytes())
    }

    pub(crate) fn begin_unit_of_work(&mut self, group_oplog_entries: bool) {
        debug_assert!(self.unit.is_none(), "nesting is the business of WriteUnitOfWork");
        self.unit = Some(Unit { group_oplog_entries, ..Unit::default() });
    }

    pub(crate) fn commit_unit_of_work(&mut self) -> Result<Committed> {
        if let Err(error) = self.require_writable_unit().and_then(|()| self.run_pre_commit_hooks()) {
            self.abort_unit_of_work();
            return Err(error);
        }
        let timestamp = self.timestamp_of_changes();
        let outcome = match self.open.take() {
            Some((_, transaction)) => transaction.commit(),
            None => Ok(Committed { position: self.engine.log_end() }),
        };
        let changes = self.unit.take().map_or_else(SmallVec::new, |unit| unit.changes);
        match &outcome {
            Ok(_) => changes.into_iter().for_each(|change| change.on_commit(timestamp)),
            Err(_) => changes.into_iter().rev().for_each(|change| change.on_rollback()),
        }
        outcome
    }

    fn run_pre_commit_hooks(&mut self) -> Result<()> {
        while let Some(hook) = self.unit_in_progress()?.hooks.pop_front() {
            hook(self)?;
        }
        Ok(())
    }

    pub(crate) fn abort_unit_of_work(&mut self) {
        if let Some((_, transaction)) = self.open.take() {
            transaction.roll_back();
        }
        let changes = self.unit.take().map_or_else(SmallVec::new, |unit| unit.changes);
        changes.into_iter().rev().for_each(|change| change.on_rollback());
    }
}

struct OnCommit<F>(F);

impl<F: FnOnce(Option<Timestamp>) + Send> Change for OnCommit<F> {
    fn on_commit(self: Box<Self>, timestamp: Option<Timestamp>) {
        (self.0)(timestamp);
    }

    fn on_rollback(self: Box<Self>) {}
}

struct OnRollback<F>(F);

impl<F: FnOnce() + Send> Change for OnRollback<F> {
    fn on_commit(self: Box<Self>, _timestamp: Option<Timestamp>) {}

    fn on_rollback(self: Box<Self>) {
        (self.0)();
    }
}
