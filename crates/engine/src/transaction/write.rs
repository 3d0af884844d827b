//! Writes: into the overlay at once, checked against everyone else.

use super::{EngineTransaction, Written, illegal};
use crate::memory::{Advice, RUNNING_STEP_BYTES};
use crate::overlay::{ENTRY_OVERHEAD_BYTES, Freed, Leaf, NewValue, Version, WriteObstacle, write_obstacle};
use crate::redo::{self, Redo};
use crate::table::EngineTable;
use crate::visibility::{Outcome, ReadView};
use bytes::Bytes;
use pando_base::Timestamp;
use pando_engine_runs::{Stamp, TableRuns};
use pando_storage::{KEY_LENGTH_MAX, Result, StorageError, Table, TableSize, Urgency, VALUE_LENGTH_MAX};
use std::sync::Arc;
use std::time::Duration;

/// Chains longer than this are pruned when they grow.
const PRUNE_LENGTH: usize = 4;
/// How long a writer pauses while memory is short, and how often it looks again before it is refused.
const SLOW_PAUSE: Duration = Duration::from_micros(500);
const REFUSE_PAUSE: Duration = Duration::from_millis(10);
const REFUSE_PAUSES: usize = 100;

/// What came of an attempt under the leaf's lock.
enum Attempt {
    /// Written; what was added and what was freed.
    Done {
        added: usize,
        overhead: usize,
        freed: Freed,
        predecessor: Timestamp,
        new: bool,
    },
    Obstacle(WriteObstacle),
    Rule(String),
    /// The base must be asked first, without the lock.
    AskBase,
}

/// What the base said about a key, and which base that was.
struct BaseAnswer {
    generation: u64,
    newest: Option<Stamp>,
}

/// The newest deleted range over a key.
enum RangeOver {
    None,
    /// The transaction's own: what it covers was checked when it was made.
    Own,
    Of(Outcome),
}

impl RangeOver {
    fn of(body: &EngineTable, key: &[u8], view: &ReadView) -> RangeOver {
        match body.ranges.is_empty() {
            true => RangeOver::None,
            false => match body.ranges.newest_at(key, view) {
                None => RangeOver::None,
                Some((true, _)) => RangeOver::Own,
                Some((false, outcome)) => RangeOver::Of(outcome),
            },
        }
    }

    /// What stands against a write if the range is what is written over.
    fn obstacle(&self, view: &ReadView) -> Option<WriteObstacle> {
        match self {
            RangeOver::Of(outcome) => write_obstacle(outcome, view),
            RangeOver::None | RangeOver::Own => None,
        }
    }

    /// When it is durable, if it is committed by another transaction.
    fn durable(&self) -> Timestamp {
        match self {
            RangeOver::Of(Outcome::Committed { stamp, .. }) => stamp.durable,
            _ => Timestamp::NONE,
        }
    }

    /// When a version that it is not newer than is durable, and it with it if one transaction made both: that may have
    /// deleted the key first and the range around it later.
    fn durable_beside(&self, version: &Stamp) -> Timestamp {
        match self {
            RangeOver::Of(Outcome::Committed { stamp, .. }) if stamp.sequence == version.sequence => {
                version.durable.max(stamp.durable)
            }
            _ => version.durable,
        }
    }

    /// A range whose fate is open stands above everything.
    fn pending_obstacle(&self, view: &ReadView) -> Option<WriteObstacle> {
        match self {
            RangeOver::Of(Outcome::Committed { .. }) => None,
            other => other.obstacle(view),
        }
    }

    /// True if the range is newer than a committed version; an uncommitted version is newer than any range.
    fn is_newer(&self, version: Option<&Stamp>) -> bool {
        match (self, version) {
            (RangeOver::Own, Some(_)) => true,
            (RangeOver::Of(Outcome::Committed { stamp, .. }), Some(version)) => version.sequence < stamp.sequence,
            _ => false,
        }
    }
}

impl EngineTransaction {
    /// Writes a value or a deletion. What is to be kept of the value may be given, or is copied.
    pub(super) fn write_key(
        &mut self,
        table: &Table,
        key: &[u8],
        value: Option<&[u8]>,
        kept: Option<NewValue>,
    ) -> Result<()> {
        self.check_writable()?;
        check_lengths(key, value.unwrap_or_default())?;
        let body = self.body(table)?;
        self.admit()?;
        if value.is_some() && self.options.urgency == Urgency::Normal {
            self.core.check_checkpoints()?;
        }
        let mut answer: Option<BaseAnswer> = None;
        let mut kept = kept.or_else(|| value.map(NewValue::copied));
        loop {
            let attempt =
                body.overlay.write(key, |leaf, place| self.attempt(body, leaf, place, key, &mut kept, answer.as_ref()));
            match attempt {
                Attempt::Done { added, overhead, freed, predecessor, new } => {
                    self.account(added, overhead, freed);
                    if !new {
                        // It replaced a value of its own.
                        self.dirty_bytes = self.dirty_bytes.saturating_sub(freed.dirty as u64);
                    }
                    self.tell_running(self.dirty_bytes - self.dirty_bytes % RUNNING_STEP_BYTES);
                    if self.first_commit.is_none() {
                        self.predecessor_max = self.predecessor_max.max(predecessor);
                    }
                    self.record_write(table, body, key, value, new);
                    return Ok(());
                }
                Attempt::Obstacle(WriteObstacle::Conflict) => return Err(self.conflict()),
                Attempt::Obstacle(WriteObstacle::Prepared) => {
                    self.core.counters.prepare_conflicts.increment();
                    return Err(StorageError::PrepareConflict);
                }
                Attempt::Rule(text) => return Err(StorageError::TimestampRule(text)),
                Attempt::AskBase => {
                    let generation = body.slot.generation();
                    let newest = body.slot.load().newest_stamp(key).map_err(|error| self.core.of_base(error))?;
                    answer = Some(BaseAnswer { generation, newest });
                }
            }
        }
    }

    /// Under the leaf's lock. Deleted ranges are looked at here too, so that a truncation and a write cannot miss each other.
    /// The value is taken when it is written.
    fn attempt(
        &self,
        body: &EngineTable,
        leaf: &mut Leaf,
        place: std::result::Result<usize, usize>,
        key: &[u8],
        value: &mut Option<NewValue>,
        answer: Option<&BaseAnswer>,
    ) -> Attempt {
        let range = RangeOver::of(body, key, &self.view);
        if let Some(obstacle) = range.pending_obstacle(&self.view) {
            return Attempt::Obstacle(obstacle);
        }
        let own = self.own_timestamp();
        let newest = place.ok().and_then(|place| leaf.entries()[place].chain.newest());
        let mut replaces = false;
        let mut predecessor = Timestamp::NONE;
        match newest {
            Some(version) if version.is_own(&self.view) => {
                let before = version.own_timestamp();
                replaces = before == own;
                // A version without a timestamp of its own has the transaction's first.
                let (before, now) = (self.effective(before), self.effective(own));
                if now < before {
                    return Attempt::Rule(format!("this transaction wrote the key at {before}, after {now}"));
                }
            }
            Some(version) => {
                let outcome = version.outcome();
                let stamp = version.stamp();
                let (obstacle, durable) = match range.is_newer(stamp.as_ref()) {
                    true => (range.obstacle(&self.view), range.durable()),
                    false => {
                        let durable = stamp.map_or(Timestamp::NONE, |stamp| range.durable_beside(&stamp));
                        (write_obstacle(&outcome, &self.view), durable)
                    }
                };
                if let Some(obstacle) = obstacle {
                    return Attempt::Obstacle(obstacle);
                }
                predecessor = durable;
            }
            None => match self.judge_base(body, &range, answer) {
                Ok(durable) => predecessor = durable,
                Err(attempt) => return attempt,
            },
        }
        if self.commit.is_some() && predecessor > self.commit {
            return Attempt::Rule(format!("commit timestamp {} is before the key's {predecessor}", self.commit));
        }
        self.enter(leaf, place, key, value, replaces, predecessor)
    }

    fn effective(&self, own: Timestamp) -> Timestamp {
        if own.is_some() { own } else { self.first_commit }
    }

    /// The overlay has no version of the key to judge by. Mostly the base as a whole is old enough.
    fn judge_base(
        &self,
        body: &EngineTable,
        range: &RangeOver,
        answer: Option<&BaseAnswer>,
    ) -> std::result::Result<Timestamp, Attempt> {
        let generation = body.slot.generation();
        let hidden = body.base_is_hidden(self.view.point().sequence);
        if let Some(answer) = answer.filter(|answer| answer.generation == generation) {
            let (obstacle, durable) = match answer.newest {
                Some(stamp) if hidden => (Some(WriteObstacle::Conflict), stamp.durable),
                Some(stamp) if !range.is_newer(Some(&stamp)) => {
                    let hides = !self.view.point().sees(&stamp);
                    (hides.then_some(WriteObstacle::Conflict), range.durable_beside(&stamp))
                }
                _ => (range.obstacle(&self.view), range.durable()),
            };
            return obstacle.map_or(Ok(durable), |obstacle| Err(Attempt::Obstacle(obstacle)));
        }
        match hidden || range.obstacle(&self.view).is_some() || self.must_ask(&body.slot.load()) {
            true => Err(Attempt::AskBase),
            false => Ok(range.durable()),
        }
    }

    fn must_ask(&self, base: &Arc<TableRuns>) -> bool {
        let point = self.view.point();
        let durable = base.max_durable();
        let ordered_until = if self.commit.is_some() { self.commit } else { self.core.keeper.stable() };
        base.max_sequence() > point.sequence || durable > point.timestamp || durable > ordered_until
    }

    fn enter(
        &self,
        leaf: &mut Leaf,
        place: std::result::Result<usize, usize>,
        key: &[u8],
        value: &mut Option<NewValue>,
        replaces: bool,
        predecessor: Timestamp,
    ) -> Attempt {
        leaf.dirty = true;
        let length = value.as_ref().map_or(0, |value| value.bytes.len());
        let (entry, overhead) = match place {
            Ok(place) => (leaf.entry_mut(place), 0),
            Err(place) => (Some(leaf.insert(place, key)), ENTRY_OVERHEAD_BYTES + key.len()),
        };
        // `place` came from `find` under the same lock, so the entry is there.
        let Some(entry) = entry else { return Attempt::AskBase };
        if replaces && let Some(version) = entry.chain.newest_mut() {
            let before = version.value().map_or(0, Bytes::len);
            version.replace_value(value.take());
            let freed = Freed { clean: 0, dirty: before };
            return Attempt::Done { added: length, overhead, freed, predecessor, new: false };
        }
        let version = Version::pending(self.view.own_state().clone(), self.own_timestamp(), value.take());
        let added = version.size_bytes();
        entry.chain.push(version);
        let mut freed = Freed::default();
        if entry.chain.len() > PRUNE_LENGTH {
            freed = entry.chain.prune(&self.core.recent_retention());
        }
        Attempt::Done { added, overhead, freed, predecessor, new: true }
    }

    fn account(&mut self, added: usize, overhead: usize, freed: Freed) {
        self.dirty_bytes += added as u64;
        self.core.memory.add(added);
        self.core.memory.add_overhead(overhead);
        self.core.memory.free(freed);
        self.view.count_own_write();
    }

    /// Tells how much of the memory is this transaction's while it runs.
    pub(super) fn tell_running(&mut self, bytes: u64) {
        if bytes != self.told_bytes {
            self.core.memory.tell_running(bytes, self.told_bytes);
            self.told_bytes = bytes;
        }
    }

    fn record_write(&mut self, table: &Table, body: &EngineTable, key: &[u8], value: Option<&[u8]>, new: bool) {
        let place = self.enlist(table);
        if new {
            let start = self.keys.len();
            self.keys.extend_from_slice(key);
            self.written.push(Written { table: place, start, end: self.keys.len() });
        }
        if body.logged {
            self.wrote_logged = true;
            let own = self.own_timestamp();
            redo::put(&mut self.redo, &Redo::Write { table: table.id(), own, key, value });
        }
    }

    pub(super) fn resize(&mut self, table: &Table, change: TableSize) -> Result<()> {
        self.check_writable()?;
        let body = self.body(table)?;
        let own = self.own_timestamp();
        if body.logged {
            self.wrote_logged = true;
            redo::put(&mut self.redo, &Redo::Size { table: table.id(), own, change });
        }
        let place = self.enlist(table);
        match self.resized.last_mut() {
            Some(last) if last.table == place && last.own == own => last.change += change,
            _ => self.resized.push(super::Resized { table: place, own, change }),
        }
        Ok(())
    }

    /// Adds the oplog entry that `build` appends to the record's bytes; how long it is.
    pub(super) fn add_oplog_entry(
        &mut self,
        timestamp: Timestamp,
        build: impl FnOnce(Vec<u8>) -> Vec<u8>,
    ) -> Result<usize> {
        self.check_readable()?;
        if !self.core.has_oplog() {
            return Err(illegal("there is no oplog in stand-alone mode"));
        }
        self.check_writable()?;
        if timestamp.is_none() {
            return Err(StorageError::TimestampRule("an oplog entry needs a timestamp".into()));
        }
        if self.record.has_entry(timestamp) || self.core.oplog_contains(timestamp)? {
            return Err(StorageError::DuplicateKey);
        }
        // Readers must not pass the entry before it is there.
        if !self.holds_back(timestamp) {
            self.core.keeper.reserve(timestamp)?;
            self.oplog_holds.push(timestamp);
        }
        let added = self.record.build_entry(timestamp, VALUE_LENGTH_MAX, build);
        let length = added.map_err(|length| StorageError::TooLarge("oplog entry", length, VALUE_LENGTH_MAX))?;
        self.oplog_newest = self.oplog_newest.max(timestamp);
        Ok(length)
    }

    /// True if an earlier timestamp that this transaction holds until it ends keeps readers before this one as well. A commit
    /// timestamp may lie behind all_durable, an oplog entry not.
    fn holds_back(&self, timestamp: Timestamp) -> bool {
        let commit = Some(&self.first_commit).filter(|commit| commit.is_some() && !self.was_prepared);
        let is_held = self.oplog_holds.iter().chain(commit).any(|hold| *hold <= timestamp);
        is_held && timestamp > self.core.keeper.all_durable()
    }

    /// Waits, or is refused, while memory is short.
    pub(super) fn admit(&mut self) -> Result<()> {
        match self.core.memory.advice() {
            Advice::Go => return Ok(()),
            // What running transactions have written no checkpoint can take: asking for one, or waiting, would help nobody.
            Advice::AskForCheckpoint | Advice::SlowDown if !self.core.memory.is_worth_taking() => return Ok(()),
            Advice::AskForCheckpoint => {
                self.core.ask_for_checkpoint();
                return Ok(());
            }
            _ if self.options.urgency == Urgency::Exempt => {
                self.core.ask_for_checkpoint();
                return Ok(());
            }
            Advice::SlowDown | Advice::Refuse => {}
        }
        self.core.counters.slowed.increment();
        self.wait_for_memory()
    }

    fn wait_for_memory(&mut self) -> Result<()> {
        if !self.core.options.background {
            // Nobody else will make room: do it here.
            self.core.relieve()?;
            return self.checked_for_memory();
        }
        self.core.ask_for_checkpoint();
        if self.core.memory.advice() == Advice::SlowDown {
            self.core.env.clock().pause(SLOW_PAUSE);
            return Ok(());
        }
        for _ in 0..REFUSE_PAUSES {
            self.core.env.clock().pause(REFUSE_PAUSE);
            if self.core.memory.advice() != Advice::Refuse {
                return Ok(());
            }
            self.core.ask_for_checkpoint();
        }
        self.checked_for_memory()
    }

    fn checked_for_memory(&mut self) -> Result<()> {
        let checked = self.core.memory.check(self.options.urgency, self.dirty_bytes);
        match &checked {
            Err(StorageError::TransactionTooLargeForCache(_)) => {
                self.core.counters.transaction_too_large.increment();
                self.phase = super::Phase::MustRollBack;
            }
            Err(_) => {
                self.core.counters.temporarily_unavailable.increment();
                self.phase = super::Phase::MustRollBack;
            }
            Ok(()) => {}
        }
        checked
    }
}

pub(crate) fn check_lengths(key: &[u8], value: &[u8]) -> Result<()> {
    if key.len() > KEY_LENGTH_MAX {
        return Err(StorageError::TooLarge("key", key.len(), KEY_LENGTH_MAX));
    }
    if value.len() > VALUE_LENGTH_MAX {
        return Err(StorageError::TooLarge("value", value.len(), VALUE_LENGTH_MAX));
    }
    Ok(())
}
