//! The commit timestamps of a unit of work.
//!
//! Invariant: of `set_timestamp` and `set_commit_timestamp` at most one is in force for a unit. A timestamp that is set
//! before the transaction has begun waits here until the first write.

use super::RecoveryUnit;
use crate::{Result, StorageError};
use pando_base::Timestamp;

impl RecoveryUnit {
    /// Sets the commit timestamp of the unit's writes that follow, and of earlier ones that have none. May be called again
    /// with a later one for later writes.
    pub fn set_timestamp(&mut self, timestamp: Timestamp) -> Result<()> {
        require_some(timestamp)?;
        self.require_writable_unit()?;
        if self.commit_timestamp.is_some() {
            return illegal("the commit timestamp is set for all units");
        }
        if self.is_prepared() {
            return illegal("a prepared unit gets its commit timestamp through set_commit_timestamp");
        }
        if let Some((_, transaction)) = &mut self.open {
            transaction.set_commit_timestamp(timestamp)?;
            self.unit_in_progress()?.applied = timestamp;
        }
        self.unit_in_progress()?.timestamp = timestamp;
        Ok(())
    }

    /// Sets the commit timestamp of every unit that follows, or of the prepared unit in progress.
    pub fn set_commit_timestamp(&mut self, timestamp: Timestamp) -> Result<()> {
        require_some(timestamp)?;
        if self.is_prepared() {
            let Some((_, transaction)) = &mut self.open else { return Ok(()) };
            transaction.set_commit_timestamp(timestamp)?;
            let unit = self.unit_in_progress()?;
            (unit.timestamp, unit.applied) = (timestamp, timestamp);
            return Ok(());
        }
        if self.unit.is_some() {
            return illegal("the commit timestamp of all units cannot change inside one");
        }
        if self.commit_timestamp.is_some() {
            return illegal("the commit timestamp of all units is set already");
        }
        self.commit_timestamp = timestamp;
        Ok(())
    }

    /// Takes back what [`RecoveryUnit::set_commit_timestamp`] set for all units.
    pub fn clear_commit_timestamp(&mut self) -> Result<()> {
        if self.unit.is_some() {
            return illegal("the commit timestamp of all units cannot change inside one");
        }
        self.commit_timestamp = Timestamp::NONE;
        Ok(())
    }

    /// The commit timestamp in force: of this unit, or of all.
    pub fn commit_timestamp(&self) -> Option<Timestamp> {
        self.timestamp_of_changes()
    }

    /// Sets when the prepared unit's commit counts as stable-able; at or after its commit timestamp.
    pub fn set_durable_timestamp(&mut self, timestamp: Timestamp) -> Result<()> {
        match &mut self.open {
            Some((_, transaction)) if transaction.is_prepared() => transaction.set_durable_timestamp(timestamp),
            _ => illegal("only a prepared unit has a durable timestamp of its own"),
        }
    }

    /// Makes the unit prepared: afterwards it only commits or rolls back.
    pub(crate) fn prepare_unit_of_work(&mut self, timestamp: Timestamp) -> Result<()> {
        self.require_writable_unit()?;
        if self.timestamp_of_changes().is_some() {
            return illegal("a unit with a commit timestamp cannot be prepared");
        }
        self.opened()?.1.prepare(timestamp)
    }

    pub(super) fn timestamp_of_changes(&self) -> Option<Timestamp> {
        let own = self.unit.as_ref().map_or(Timestamp::NONE, |unit| unit.timestamp);
        [own, self.commit_timestamp].into_iter().find(|timestamp| timestamp.is_some())
    }

    /// Gives the transaction the timestamp that waits for it, if one does.
    pub(super) fn apply_timestamp(&mut self) -> Result<()> {
        let Some(timestamp) = self.timestamp_of_changes() else { return Ok(()) };
        let (Some((_, transaction)), Some(unit)) = (&mut self.open, &mut self.unit) else { return Ok(()) };
        if unit.applied != timestamp {
            transaction.set_commit_timestamp(timestamp)?;
            unit.applied = timestamp;
        }
        Ok(())
    }
}

fn require_some(timestamp: Timestamp) -> Result<()> {
    match timestamp {
        Timestamp::NONE => Err(StorageError::TimestampRule("a commit timestamp cannot be none".into())),
        _ => Ok(()),
    }
}

fn illegal(what: &str) -> Result<()> {
    Err(StorageError::IllegalOperation(what.into()))
}
