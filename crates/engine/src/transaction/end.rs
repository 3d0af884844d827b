//! Timestamps, prepare, commit and rollback.

use super::{EngineTransaction, Phase, illegal};
use crate::overlay::Freed;
use crate::redo::{self, kind};
use crate::table::EngineTable;
use pando_base::Timestamp;
use pando_storage::{Committed, Result, StorageError};

fn rule(text: String) -> StorageError {
    StorageError::TimestampRule(text)
}

impl EngineTransaction {
    pub(super) fn choose_commit_timestamp(&mut self, timestamp: Timestamp) -> Result<()> {
        if let Phase::Prepared(prepared) = self.phase {
            return self.choose_prepared_commit(timestamp, prepared);
        }
        self.check_writable()?;
        if timestamp < self.first_commit {
            return Err(rule(format!("commit timestamp {timestamp} is before the first one, {}", self.first_commit)));
        }
        let first = self.first_commit.is_none();
        if first && timestamp < self.predecessor_max {
            let newest = self.predecessor_max;
            return Err(rule(format!("commit timestamp {timestamp} is before a written key's {newest}")));
        }
        if first {
            self.core.keeper.set_commit(timestamp)?;
            self.first_commit = timestamp;
        }
        // A later one needs no look at the keeper: stable stays before the first, which is held, and oldest before stable.
        self.commit = timestamp;
        Ok(())
    }

    fn choose_prepared_commit(&mut self, timestamp: Timestamp, prepared: Timestamp) -> Result<()> {
        if timestamp.is_none() || timestamp < prepared {
            return Err(rule(format!("commit timestamp {timestamp} is before the prepare timestamp {prepared}")));
        }
        if timestamp < self.predecessor_max {
            let newest = self.predecessor_max;
            return Err(rule(format!("commit timestamp {timestamp} is before a written key's {newest}")));
        }
        self.first_commit = timestamp;
        self.commit = timestamp;
        Ok(())
    }

    pub(super) fn choose_durable_timestamp(&mut self, timestamp: Timestamp) -> Result<()> {
        if !matches!(self.phase, Phase::Prepared(_)) {
            return Err(illegal("only a prepared transaction has a durable timestamp of its own"));
        }
        let stable = self.core.keeper.stable();
        if timestamp.is_none() || timestamp < self.commit || timestamp <= stable {
            let commit = self.commit;
            return Err(rule(format!("durable {timestamp} must not be before {commit} and be after stable {stable}")));
        }
        self.durable = timestamp;
        Ok(())
    }

    pub(super) fn make_prepared(&mut self, timestamp: Timestamp) -> Result<()> {
        self.check_writable()?;
        if !self.core.has_oplog() {
            return Err(illegal("there are no prepared transactions in stand-alone mode"));
        }
        if self.commit.is_some() {
            return Err(illegal("a transaction with a commit timestamp cannot be prepared"));
        }
        if self.wrote_logged || self.record.entry_count() > 0 {
            return Err(illegal("a transaction that wrote to the log cannot be prepared"));
        }
        let stable = self.core.keeper.stable();
        if timestamp.is_none() || (timestamp <= stable && !self.options.recovering) {
            return Err(rule(format!("prepare timestamp {timestamp} must be after stable {stable}")));
        }
        let state = self.view.own_state().clone();
        self.core.in_sequence(None, |sequence| state.prepare(sequence, timestamp))?;
        self.core.counters.prepared.increment();
        self.phase = Phase::Prepared(timestamp);
        self.was_prepared = true;
        Ok(())
    }

    /// Commits, or rolls back and says why not.
    pub(super) fn finish(&mut self) -> Result<Committed> {
        let committed = self.check_commit().and_then(|()| self.commit_checked());
        if committed.is_err() {
            self.undo();
        }
        committed
    }

    fn check_commit(&mut self) -> Result<()> {
        let stable = self.core.keeper.stable();
        match self.phase {
            Phase::MustRollBack => return Err(StorageError::WriteConflict),
            Phase::Ended => return Err(illegal("the transaction has ended")),
            Phase::Prepared(_) => {
                if self.commit.is_none() {
                    return Err(rule("a prepared transaction needs a commit timestamp".into()));
                }
                if self.durable.is_none() {
                    self.durable = self.commit;
                }
                if self.durable < self.commit || self.durable <= stable {
                    return Err(rule(format!("durable timestamp {} must be after stable {stable}", self.durable)));
                }
            }
            Phase::Active => self.durable = self.first_commit,
        }
        Ok(())
    }

    fn wrote_nothing(&self) -> bool {
        self.written.is_empty()
            && self.truncated.is_empty()
            && self.resized.is_empty()
            && self.record.entry_count() == 0
    }

    fn commit_checked(&mut self) -> Result<Committed> {
        if self.wrote_nothing() && !self.was_prepared {
            self.release(Timestamp::NONE);
            self.phase = Phase::Ended;
            return Ok(Committed { position: self.core.log_end() });
        }
        self.core.check_running()?;
        let record = self.log_record()?;
        let state = self.view.own_state().clone();
        let (commit, durable) = (self.first_commit, self.durable);
        let position = self.core.change_in_sequence(record, |sequence| {
            state.commit(sequence, commit, durable);
            self.enter_sizes();
        })?;
        self.core.counters.committed.increment();
        self.phase = Phase::Ended;
        self.release(self.newest_timestamp());
        if self.was_prepared {
            self.core.prepared_ended();
        }
        Ok(Committed { position })
    }

    fn log_record(&mut self) -> Result<Option<crate::core::PendingRecord>> {
        if self.redo.is_empty() && self.record.entry_count() == 0 {
            return Ok(None);
        }
        let mut header = Vec::new();
        if !self.redo.is_empty() {
            redo::put_header(&mut header, self.first_commit, self.durable);
        }
        self.core.prepare_record(kind::COMMIT, std::mem::take(&mut self.record), &[&header, &self.redo]).map(Some)
    }

    /// Under the log's lock: sizes change together with the commit.
    fn enter_sizes(&self) {
        let stable = self.core.keeper.stable();
        // Each document of an insert has a change of its own.
        for of_table in self.resized.chunk_by(|left, right| left.table == right.table) {
            let Some(table) = of_table.first().and_then(|first| self.tables.get(first.table)) else { continue };
            let Some(table) = table.as_any().downcast_ref::<EngineTable>() else { continue };
            let mut ledger = table.ledger.lock();
            for resized in of_table {
                let durable = if resized.own.is_some() { resized.own } else { self.durable };
                ledger.enter(durable, resized.change, stable);
            }
        }
    }

    fn newest_timestamp(&self) -> Timestamp {
        self.commit.max(self.durable).max(self.oplog_newest)
    }

    /// Gives back the hold and the slots, and lets waiting readers look.
    fn release(&mut self, committed: Timestamp) {
        self.tell_running(0);
        let mut holds = std::mem::take(&mut self.oplog_holds);
        if self.first_commit.is_some() && !self.was_prepared {
            holds.push(self.first_commit);
        }
        if holds.is_empty() && self.slots.is_empty() && committed.is_none() {
            return; // a reader: it held nothing back
        }
        self.core.keeper.end(&holds, committed);
        // In the order in which they were taken: the point without holes moves with each.
        self.slots.drain(..).for_each(drop);
        self.core.no_holes_moved();
    }

    /// Rolls back, unless it has ended.
    pub(super) fn undo(&mut self) {
        if self.phase == Phase::Ended {
            return;
        }
        self.phase = Phase::Ended;
        self.core.counters.rolled_back.increment();
        if let Some(state) = self.view.own_state_if_any().cloned() {
            state.abort();
            self.remove_writes(&state);
        }
        self.release(Timestamp::NONE);
        if self.was_prepared {
            self.core.prepared_ended();
        }
    }

    fn remove_writes(&self, state: &std::sync::Arc<crate::visibility::TransactionState>) {
        let body = |place: usize| self.tables.get(place).and_then(|table| table.as_any().downcast_ref::<EngineTable>());
        for written in &self.written {
            let (Some(table), Some(key)) = (body(written.table), self.keys.get(written.start..written.end)) else {
                continue;
            };
            let freed = table.overlay.write(key, |leaf, place| {
                let Some(entry) = place.ok().and_then(|place| leaf.entry_mut(place)) else { return Freed::default() };
                let mut freed = entry.chain.remove_of(state);
                if entry.chain.is_empty() {
                    freed.clean += entry.overhead_bytes();
                    place.into_iter().for_each(|place| leaf.remove(place));
                }
                freed
            });
            self.core.memory.free(freed);
        }
        for place in &self.truncated {
            if let Some(table) = body(*place) {
                table.ranges.remove_of(state);
            }
        }
    }
}
