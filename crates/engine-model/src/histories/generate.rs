//! Makes the steps of a history from its seed.
//!
//! Steps are made one at a time, looking at what is open. Some come in plans of several steps: a replicated write with its
//! slot and oplog entry, the rest before a rollback to stable. Other steps may come between those of a plan, unless it
//! needs quiet. Whatever makes no sense when its turn comes is skipped.

use super::operation::{Operation, Step, Value};
use super::world::World;
use super::{Config, TABLES};
use crate::Mode;
use pando_base::Timestamp;
use pando_env::Random;
use pando_env::simulated::SimulatedRandom;
use pando_storage::{BeginOptions, PrepareBehaviour, ReadAt, TimestampControl};
use std::collections::VecDeque;

const CURSORS: usize = 5;
const SLOTS: usize = 4;
/// Replicated, in the beginning.
const WANTED_TABLE: usize = 2;

/// The maker of steps.
pub struct Generator {
    config: Config,
    random: SimulatedRandom,
    plan: VecDeque<Operation>,
    /// Nothing may come between the steps of the plan.
    quiet_plan: bool,
    /// The newest timestamp given out.
    clock: u64,
    last_value: u32,
}

impl Generator {
    /// The maker for a seed. Every history begins with some tables.
    pub fn new(seed: u64, config: Config) -> Generator {
        let plan = (0..5).map(|table| Operation::CreateTable { table, replicated: table >= 2 }).collect();
        let random = SimulatedRandom::new(seed);
        Generator { config, random, plan, quiet_plan: true, clock: 0, last_value: 0 }
    }

    fn below(&self, bound: usize) -> usize {
        self.random.below(bound as u64) as usize
    }

    fn chance(&self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of the choices by weight.
    fn choose<T: Clone>(&self, choices: &[(usize, T)]) -> T {
        let total: usize = choices.iter().map(|(weight, _)| weight).sum();
        let mut left = self.below(total);
        for (weight, choice) in choices {
            if left < *weight {
                return choice.clone();
            }
            left -= weight;
        }
        choices[choices.len() - 1].1.clone()
    }

    /// The next step.
    pub fn next(&mut self, world: &World<'_>) -> Operation {
        if (self.quiet_plan || self.chance(70))
            && let Some(operation) = self.plan.pop_front()
        {
            self.quiet_plan &= !self.plan.is_empty();
            return operation;
        }
        let open: Vec<usize> = world.notes.transactions.keys().copied().collect();
        if open.is_empty() || (open.len() < self.config.transactions && self.chance(20)) {
            return self.begin(world);
        }
        match self.chance(75) {
            true => self.in_transaction(world, open[self.below(open.len())]),
            false => self.elsewhere(world),
        }
    }

    fn fresh(&mut self) -> Timestamp {
        self.clock += 1 + self.random.below(3);
        Timestamp(self.clock)
    }

    /// Any timestamp of this history, likely one after stable.
    fn any(&mut self, world: &World<'_>) -> Timestamp {
        let stable = world.oracle.timestamps().stable.0;
        match self.below(8) {
            0 => Timestamp(self.random.below(self.clock + 2)),
            1..=4 => Timestamp(stable + 1 + self.random.below(self.clock.saturating_sub(stable) + 2)),
            _ => self.fresh(),
        }
    }

    fn value(&mut self) -> Value {
        self.last_value += 1;
        let length = match self.below(20) {
            0 => 0,
            1..=3 => self.below(self.config.value_length_max + 1),
            _ => 1 + self.below(12),
        };
        Value { number: self.last_value, length }
    }

    /// A key, half of the time one of a few that are wanted by all.
    fn key(&self) -> u8 {
        let bound = if self.chance(50) { 3 } else { self.config.keys as usize };
        self.below(bound) as u8
    }

    /// A table, likely one that is there and that a stamped transaction may write, and often the one that all want.
    fn table(&self, world: &World<'_>, stamped: bool) -> usize {
        for _ in 0..6 {
            let table = if self.chance(40) { WANTED_TABLE } else { self.below(TABLES) };
            if let Some(note) = world.notes.tables.get(&table)
                && (note.live || self.chance(4))
                && (note.replicated || !stamped)
            {
                return table;
            }
        }
        self.below(TABLES)
    }

    /// A table that is likely not there.
    fn free_table(&self, world: &World<'_>) -> usize {
        let is_free = |table: &usize| !world.notes.tables.get(table).is_some_and(|note| note.live);
        (0..TABLES).rev().find(is_free).unwrap_or_else(|| self.below(TABLES))
    }

    fn begin(&mut self, world: &World<'_>) -> Operation {
        let transaction = self.below(self.config.transactions);
        let read = match self.below(10) {
            0..=4 => ReadAt::Latest,
            5..=6 => ReadAt::Timestamp(self.any(world)),
            7 => ReadAt::Timestamp(world.oracle.timestamps().oldest.previous()),
            _ => ReadAt::AllDurable,
        };
        let options = BeginOptions {
            read,
            round_up_to_oldest: self.chance(30),
            prepare: self.choose(&[
                (8, PrepareBehaviour::Enforce),
                (1, PrepareBehaviour::Ignore),
                (1, PrepareBehaviour::IgnoreAndWrite),
            ]),
            recovering: self.chance(5),
            ..BeginOptions::default()
        };
        let stamped = self.config.mode == Mode::ReplicaSet && self.chance(65);
        if stamped && self.chance(35) {
            self.plan_replicated_write(world, transaction);
        } else if stamped && self.config.prepares && self.chance(30) {
            self.plan_prepared(world, transaction);
        } else if !stamped && self.chance(25) {
            self.plan_local_write(transaction);
        }
        Operation::Begin { transaction, options, stamped }
    }

    /// What the server does for a replicated write: slot, entry, timestamp, writes with their size, commit.
    fn plan_replicated_write(&mut self, world: &World<'_>, transaction: usize) {
        let timestamp = self.fresh();
        let slot = self.below(SLOTS);
        let table = self.table(world, true);
        let value = self.value();
        let mut plan = vec![
            Operation::ReserveSlot { slot, timestamp },
            Operation::HoldSlot { transaction, slot },
            Operation::Put { transaction, table, key: self.key(), value },
            Operation::SetCommit { transaction, timestamp },
            Operation::AdjustSize { transaction, table, records: 1, bytes: value.bytes().len() as i64 },
            Operation::AppendOplog { transaction, timestamp, value },
        ];
        // Vectored inserts: a timestamp and an entry each.
        for _ in 0..self.below(3) {
            let timestamp = self.fresh();
            let value = self.value();
            plan.push(Operation::SetCommit { transaction, timestamp });
            plan.push(Operation::Put { transaction, table, key: self.key(), value });
            plan.push(Operation::AdjustSize { transaction, table, records: 1, bytes: 1 });
            plan.push(Operation::AppendOplog { transaction, timestamp, value });
        }
        plan.push(Operation::Commit { transaction });
        if self.chance(30) {
            plan.push(Operation::WaitDurable);
        }
        self.plan.extend(plan);
    }

    /// A write with redo and an oplog entry in one record.
    fn plan_local_write(&mut self, transaction: usize) {
        let (timestamp, value) = (self.fresh(), self.value());
        self.plan.push_back(Operation::Put { transaction, table: self.below(2), key: self.key(), value });
        self.plan.push_back(Operation::AppendOplog { transaction, timestamp, value });
        self.plan.push_back(Operation::Commit { transaction });
    }

    fn plan_prepared(&mut self, world: &World<'_>, transaction: usize) {
        let table = self.table(world, true);
        for _ in 0..=self.below(2) {
            let value = self.value();
            self.plan.push_back(Operation::Put { transaction, table, key: self.key(), value });
        }
        self.plan.push_back(Operation::Delete { transaction, table, key: self.key() });
        let timestamp = self.fresh();
        self.plan.push_back(Operation::AdjustSize { transaction, table, records: 2, bytes: 9 });
        self.plan.push_back(Operation::Prepare { transaction, timestamp });
    }

    /// Ends everything, then does something that needs quiet.
    fn plan_quiet(&mut self, world: &World<'_>, then: Operation) {
        for (transaction, note) in &world.notes.transactions {
            let commits = note.prepared.is_none() && !note.bare && self.chance(50);
            if commits {
                self.plan.push_back(Operation::Commit { transaction: *transaction });
            }
            self.plan.push_back(Operation::RollBack { transaction: *transaction });
        }
        self.plan.extend(world.notes.slots.keys().map(|slot| Operation::DropSlot { slot: *slot }));
        self.plan.extend([then, Operation::CompareAll]);
        self.quiet_plan = true;
    }

    fn in_transaction(&mut self, world: &World<'_>, transaction: usize) -> Operation {
        let note = &world.notes.transactions[&transaction];
        if note.prepared.is_some() {
            return self.in_prepared(world, transaction);
        }
        let stamped = note.stamped;
        let reads_only = note.behaviour == PrepareBehaviour::Ignore && !self.chance(10);
        let weights: &[(usize, usize)] = match (note.doomed, note.bare) {
            _ if reads_only => &[(10, 0), (10, 5), (2, 10), (2, 11)],
            (true, _) => &[(4, 0), (3, 1), (3, 9), (4, 10), (10, 11), (1, 12), (1, 4)],
            (false, true) => &[(5, 1), (10, 4), (1, 0), (1, 11)],
            (false, false) => &[
                (14, 0),
                (26, 1),
                (9, 2),
                (3, 3),
                (6, 4),
                (16, 5),
                (6, 6),
                (4, 7),
                (2, 8),
                (2, 9),
                (12, 10),
                (3, 11),
                (3, 12),
            ],
        };
        let table = self.table(world, stamped);
        let key = self.key();
        match self.choose(weights) {
            0 => Operation::Get { transaction, table: self.table(world, false), key },
            1 => Operation::Put { transaction, table, key, value: self.value() },
            2 => Operation::Delete { transaction, table, key },
            3 => {
                let end = self.chance(80).then(|| self.key());
                Operation::Truncate { transaction, table, start: key, end }
            }
            4 => {
                let records = self.below(5) as i64 - 2;
                Operation::AdjustSize { transaction, table, records, bytes: records * 7 }
            }
            5 => self.with_cursor(world, transaction),
            6 => Operation::SetCommit { transaction, timestamp: self.any(world) },
            7 => Operation::AppendOplog { transaction, timestamp: self.any(world), value: self.value() },
            8 => Operation::HoldSlot { transaction, slot: self.below(SLOTS) },
            9 if self.config.prepares => Operation::Prepare { transaction, timestamp: self.any(world) },
            10 => Operation::Commit { transaction },
            11 => Operation::RollBack { transaction },
            _ => Operation::SetDurable { transaction, timestamp: self.any(world) },
        }
    }

    fn in_prepared(&mut self, world: &World<'_>, transaction: usize) -> Operation {
        let note = &world.notes.transactions[&transaction];
        let later = |timestamp: Timestamp, by: u64| Timestamp(timestamp.0 + by);
        match self.below(20) {
            0..=3 if note.first.is_none() => {
                let timestamp = match self.below(8) {
                    0 => self.any(world),
                    _ => later(note.prepared, self.random.below(4)),
                };
                self.clock = self.clock.max(timestamp.0);
                Operation::SetCommit { transaction, timestamp }
            }
            4..=5 => {
                let stable = world.oracle.timestamps().stable;
                let timestamp = match self.below(6) {
                    0 => self.any(world),
                    _ => later(note.first.max(stable), 1 + self.random.below(3)),
                };
                self.clock = self.clock.max(timestamp.0);
                Operation::SetDurable { transaction, timestamp }
            }
            0..=7 if note.first.is_some() || self.chance(10) => Operation::Commit { transaction },
            8 => Operation::RollBack { transaction },
            9 => Operation::Get { transaction, table: self.table(world, true), key: self.key() },
            10 => Operation::Put { transaction, table: self.table(world, true), key: self.key(), value: self.value() },
            11..=13 => self.elsewhere(world),
            _ => self.meet_prepared(world),
        }
    }

    /// Something that may meet prepared data.
    fn meet_prepared(&mut self, world: &World<'_>) -> Operation {
        let open: Vec<usize> = world.notes.transactions.keys().copied().collect();
        let transaction = open[self.below(open.len())];
        let (table, key) = (WANTED_TABLE, self.key());
        match self.below(6) {
            0..=2 => Operation::Get { transaction, table, key },
            3 => Operation::Put { transaction, table, key, value: self.value() },
            4 => Operation::Truncate { transaction, table, start: key, end: Some(key.saturating_add(1)) },
            _ => self.with_cursor(world, transaction),
        }
    }

    fn with_cursor(&mut self, world: &World<'_>, transaction: usize) -> Operation {
        let cursor = self.below(CURSORS);
        let Some(note) = world.notes.cursors.get(&cursor) else {
            self.plan_walk(cursor);
            return Operation::OpenCursor { cursor, transaction, table: self.table(world, false) };
        };
        if note.transaction.is_none() && self.chance(90) {
            self.plan_walk(cursor);
            return Operation::Attach { cursor, transaction };
        }
        match self.below(24) {
            0 => Operation::CloseCursor { cursor },
            1..=3 => Operation::Detach { cursor },
            4 => Operation::MoveRandom { cursor, seed: self.random.next_u64() },
            _ => Operation::Move { cursor, step: self.cursor_step() },
        }
    }

    fn plan_walk(&mut self, cursor: usize) {
        for _ in 0..self.below(7) {
            self.plan.push_back(Operation::Move { cursor, step: self.cursor_step() });
        }
        if self.chance(25) {
            self.plan.push_back(Operation::Detach { cursor });
        }
    }

    fn cursor_step(&self) -> Step {
        let key = self.key();
        self.choose(&[
            (1, Step::First),
            (1, Step::Last),
            (2, Step::Seek(key)),
            (2, Step::SeekBack(key)),
            (1, Step::SeekExact(key)),
            (7, Step::Next),
            (6, Step::Previous),
            (1, Step::SkipPrefix(self.below(4))),
        ])
    }

    /// A step outside of transactions.
    fn elsewhere(&mut self, world: &World<'_>) -> Operation {
        let table = self.below(TABLES);
        let replicated = self.chance(60);
        match self.below(100) {
            0..=1 => Operation::CreateTable { table, replicated },
            2 => Operation::DropTable { table: if self.chance(60) { TABLES - 1 } else { table } },
            3..=5 => {
                let (table, written_meanwhile) = (self.free_table(world), self.chance(15));
                let keys = (0..self.below(8)).map(|_| self.key()).collect();
                Operation::BulkLoad { table, replicated, keys, value: self.value(), written_meanwhile }
            }
            6 => Operation::SetTableSize { table, records: self.below(50) as i64, bytes: self.below(500) as i64 },
            7..=17 => self.timestamps(world),
            18..=19 => Operation::ReserveSlot { slot: self.below(SLOTS), timestamp: self.any(world) },
            20..=25 => Operation::DropSlot { slot: self.below(SLOTS) },
            26..=31 => Operation::FlushLog,
            32..=34 => Operation::WaitDurable,
            35..=41 => Operation::Checkpoint { full: self.chance(15) },
            42..=47 => Operation::Maintain,
            48 => Operation::RollBackToStable,
            49..=51 if world.oracle.timestamps().stable.is_some() => {
                self.when_quiet(world, Operation::RollBackToStable)
            }
            52 => {
                let (timestamp, inclusive) = (self.any(world), self.chance(50));
                self.when_quiet(world, Operation::TruncateOplog { timestamp, inclusive })
            }
            53 if self.chance(30) => self.when_quiet(world, Operation::ResetOplog),
            54 if self.config.restarts => Operation::RestartClean,
            55 if self.config.crashes => Operation::Crash,
            56..=57 if self.config.crashes => self.crash_during(world),
            58..=61 => Operation::CompareAll,
            62..=76 => self.with_oplog(world),
            _ => self.begin(world),
        }
    }

    fn crash_during(&mut self, world: &World<'_>) -> Operation {
        let table = self.below(TABLES);
        let open: Vec<usize> = world.notes.transactions.keys().copied().collect();
        let operation = match self.below(16) {
            0..=4 => Operation::Checkpoint { full: false },
            5..=7 => Operation::Maintain,
            8 => Operation::FlushLog,
            9 => Operation::WaitDurable,
            10 => Operation::RestartClean,
            11 => Operation::CreateTable { table: self.free_table(world), replicated: true },
            12 => Operation::DropTable { table },
            13 => {
                let keys = (0..self.below(8)).map(|_| self.key()).collect();
                Operation::BulkLoad {
                    table: self.free_table(world),
                    replicated: true,
                    keys,
                    value: self.value(),
                    written_meanwhile: false,
                }
            }
            _ if open.is_empty() => Operation::RollBackToStable,
            _ => Operation::Commit { transaction: open[self.below(open.len())] },
        };
        // Most steps change the disk a few times only.
        let changes = self.random.below(1 << self.below(6));
        Operation::CrashDuring { operation: Box::new(operation), changes }
    }

    fn when_quiet(&mut self, world: &World<'_>, operation: Operation) -> Operation {
        if self.plan.is_empty() {
            self.plan_quiet(world, operation);
        }
        Operation::Maintain
    }

    fn timestamps(&mut self, world: &World<'_>) -> Operation {
        let now = world.oracle.timestamps();
        // Mostly what is allowed: between where it is and what lies above it.
        let between =
            |low: Timestamp, high: Timestamp| Timestamp(low.0 + self.random.below(high.0.saturating_sub(low.0) + 1));
        let sensible = self.chance(85);
        match self.below(10) {
            0..=5 => {
                let low = now.stable.max(Timestamp(1));
                let timestamp = if sensible { between(low, now.all_durable) } else { self.any(world) };
                Operation::SetStable { timestamp }
            }
            6..=8 => {
                let low = now.oldest.max(Timestamp(1));
                let timestamp = if sensible { between(low, now.stable) } else { self.any(world) };
                Operation::SetOldest { timestamp, force: self.chance(10) }
            }
            _ if now.initial_data.is_none() || self.chance(20) => {
                Operation::SetInitialData { timestamp: between(Timestamp(1), now.stable.max(Timestamp(3))) }
            }
            _ if self.chance(10) => Operation::SetInitialData { timestamp: Timestamp::NONE },
            _ => Operation::SetStable { timestamp: now.all_durable },
        }
    }

    fn with_oplog(&mut self, world: &World<'_>) -> Operation {
        let cursor = self.below(3);
        if !world.notes.oplog_cursors.contains_key(&cursor) {
            return Operation::OpenOplog { cursor, forward: self.chance(70) };
        }
        match self.below(12) {
            0 => Operation::CloseOplog { cursor },
            1..=2 => Operation::OplogSeek { cursor, timestamp: self.any(world) },
            _ => Operation::OplogNext { cursor },
        }
    }
}
