//! What a history has done so far, and which steps make sense next.
//!
//! A step is left out where the interface's rules do not say what must happen: two engines may then both be right. All of
//! that is here, and depends on the oracle alone, so that a replayed or shortened history leaves out the same steps.

use super::operation::{Operation, Step};
use super::side::Answer;
use crate::{Mode, ModelEngine};
use pando_base::Timestamp;
use pando_storage::{PrepareBehaviour, ReadAt, TimestampControl};
use std::collections::BTreeMap;

/// What is known of an open transaction.
#[derive(Clone, Debug, Default)]
pub struct TransactionNote {
    pub(super) stamped: bool,
    pub(super) behaviour: PrepareBehaviour,
    recovering: bool,
    pub(super) doomed: bool,
    pub(super) prepared: Timestamp,
    /// The first and the last commit timestamp.
    pub(super) first: Timestamp,
    pub(super) last: Timestamp,
    durable: Timestamp,
    pub(super) wrote: bool,
    /// A commit timestamp was set and nothing written that has it.
    pub(super) bare: bool,
    truncated: bool,
    /// Wrote to a table with redo.
    logged: bool,
    entries: Vec<Timestamp>,
}

/// What is known of a table.
#[derive(Clone, Copy, Debug)]
pub struct TableNote {
    pub(super) live: bool,
    pub(super) replicated: bool,
    /// Which of the tables that had this number.
    generation: u64,
}

/// What is known of a cursor.
#[derive(Clone, Copy, Debug)]
pub struct CursorNote {
    /// None while detached.
    pub(super) transaction: Option<usize>,
    table: usize,
    table_generation: u64,
    place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Start,
    Standing,
    Past,
    /// A look-up found nothing; where that leaves the cursor is not said.
    Nowhere,
}

/// What is known of a reader of the oplog.
#[derive(Clone, Copy, Debug)]
pub struct OplogCursorNote {
    forward: bool,
    /// It is said which entry is next.
    defined: bool,
}

/// All of it.
pub struct Notes {
    pub(super) mode: Mode,
    pub(super) transactions: BTreeMap<usize, TransactionNote>,
    pub(super) tables: BTreeMap<usize, TableNote>,
    pub(super) cursors: BTreeMap<usize, CursorNote>,
    pub(super) slots: BTreeMap<usize, Timestamp>,
    pub(super) oplog_cursors: BTreeMap<usize, OplogCursorNote>,
    /// The greatest oldest there ever was: history before it may be gone, even if oldest itself went back.
    pub(super) history_start: Timestamp,
    /// The greatest stable there ever was: a full checkpoint forgets it, but nobody moves stable back over a crash.
    stable_ever: Timestamp,
    generations: u64,
}

impl Notes {
    /// Nothing done yet.
    pub fn new(mode: Mode) -> Notes {
        Notes {
            mode,
            transactions: BTreeMap::new(),
            tables: BTreeMap::new(),
            cursors: BTreeMap::new(),
            slots: BTreeMap::new(),
            oplog_cursors: BTreeMap::new(),
            history_start: Timestamp::NONE,
            stable_ever: Timestamp::NONE,
            generations: 0,
        }
    }

    /// After a restart nothing is open; these are the tables.
    pub fn restarted(&mut self, tables: impl Iterator<Item = (usize, bool)>) {
        self.transactions.clear();
        self.cursors.clear();
        self.slots.clear();
        self.oplog_cursors.clear();
        self.tables.clear();
        for (table, replicated) in tables {
            self.note_table(table, replicated);
        }
    }

    /// Cursors that are attached to this transaction.
    pub fn cursors_of(&self, transaction: usize) -> Vec<(usize, CursorNote)> {
        let own = self.cursors.iter().filter(|(_, note)| note.transaction == Some(transaction));
        own.map(|(cursor, note)| (*cursor, *note)).collect()
    }

    /// True if nothing is open that a rollback of the store would have to wait for.
    pub fn is_quiet(&self) -> bool {
        self.transactions.is_empty()
    }

    fn is_logged(&self, table: usize) -> bool {
        self.mode == Mode::StandAlone || self.tables.get(&table).is_some_and(|note| !note.replicated)
    }

    /// Whether the rules say what this step must do.
    pub fn allows(&self, operation: &Operation, oracle: &ModelEngine) -> bool {
        match operation {
            Operation::Begin { transaction, options, stamped } => {
                !self.transactions.contains_key(transaction)
                    && (!stamped || self.mode == Mode::ReplicaSet)
                    && self.allows_read(options.read, options.round_up_to_oldest, oracle)
            }
            operation if operation.transaction().is_some() => self.allows_in_transaction(operation, oracle),
            Operation::OpenCursor { cursor, transaction, table } => {
                !self.cursors.contains_key(cursor) && self.allows_use(*transaction, *table)
            }
            Operation::Move { cursor, step } => self.cursors.get(cursor).is_some_and(|note| note.allows(*step)),
            Operation::MoveRandom { cursor, .. } => {
                let no_prepared = self.transactions.values().all(|note| note.prepared.is_none());
                no_prepared && self.cursors.get(cursor).is_some_and(|note| note.transaction.is_some())
            }
            Operation::Detach { cursor } => self.cursors.get(cursor).is_some_and(CursorNote::can_detach),
            Operation::Attach { cursor, transaction } => self.allows_attach(*cursor, *transaction),
            Operation::CloseCursor { cursor } => self.cursors.contains_key(cursor),
            Operation::SetTableSize { table, .. } => self.tables.get(table).is_some_and(|note| note.live),
            Operation::SetOldest { timestamp, .. } => {
                let now = oracle.timestamps();
                now.stable.is_some() || *timestamp <= now.all_durable
            }
            Operation::SetStable { timestamp } => {
                *timestamp >= self.stable_ever || oracle.timestamps().stable.is_some()
            }
            Operation::ReserveSlot { slot, .. } => !self.slots.contains_key(slot),
            Operation::DropSlot { slot } => self.slots.contains_key(slot),
            Operation::WaitDurable => oracle.lowest_hold().is_none(),
            Operation::Checkpoint { full } => !full || oracle.timestamps().initial_data.is_none(),
            Operation::RollBackToStable => self.allows_rollback(oracle),
            Operation::OpenOplog { cursor, .. } => {
                self.mode == Mode::ReplicaSet && !self.oplog_cursors.contains_key(cursor)
            }
            Operation::OplogNext { cursor } => self.oplog_cursors.get(cursor).is_some_and(|note| note.defined),
            Operation::OplogSeek { cursor, .. } | Operation::CloseOplog { cursor } => {
                self.oplog_cursors.contains_key(cursor)
            }
            Operation::TruncateOplog { timestamp, .. } => {
                self.allows_cut(oracle) && *timestamp > oracle.timestamps().stable
            }
            Operation::ResetOplog => self.allows_cut(oracle),
            Operation::CrashDuring { operation, .. } => {
                let is_one_call = match &**operation {
                    Operation::Crash | Operation::CrashDuring { .. } | Operation::CompareAll => false,
                    Operation::BulkLoad { table, written_meanwhile, .. } => {
                        !written_meanwhile && !self.tables.get(table).is_some_and(|note| note.live)
                    }
                    _ => true,
                };
                is_one_call && self.allows(operation, oracle)
            }
            _ => true,
        }
    }

    /// A read below what history ever began at is either refused, or not to be trusted.
    fn allows_read(&self, read: ReadAt, round_up: bool, oracle: &ModelEngine) -> bool {
        let now = oracle.timestamps();
        let point = match read {
            ReadAt::Latest => return true,
            ReadAt::AllDurable => now.all_durable,
            ReadAt::Timestamp(timestamp) if timestamp < now.oldest && round_up => now.oldest,
            ReadAt::Timestamp(timestamp) if timestamp < now.oldest => return true,
            ReadAt::Timestamp(timestamp) => timestamp,
        };
        point.is_none() || point >= self.history_start
    }

    /// Rollback may meet a full checkpoint that has more than is stable; whether a crash brings that back is not said. Nor
    /// is which of two errors comes first.
    fn allows_rollback(&self, oracle: &ModelEngine) -> bool {
        let stable = oracle.timestamps().stable;
        match self.is_quiet() {
            true => !oracle.disk().checkpoint_goes_past(stable),
            false => stable.is_some(),
        }
    }

    fn allows_cut(&self, oracle: &ModelEngine) -> bool {
        self.mode == Mode::ReplicaSet && self.is_quiet() && oracle.lowest_hold().is_none()
    }

    /// A dropped table is used by healthy transactions only: otherwise it is not said which error comes first.
    fn allows_use(&self, transaction: usize, table: usize) -> bool {
        let (Some(note), Some(table)) = (self.transactions.get(&transaction), self.tables.get(&table)) else {
            return false;
        };
        let healthy = !note.doomed && note.prepared.is_none() && note.behaviour != PrepareBehaviour::Ignore;
        table.live || healthy
    }

    fn allows_write(&self, transaction: usize, table: usize) -> bool {
        let stamped = self.transactions.get(&transaction).is_some_and(|note| note.stamped);
        // What timestamps mean in a table with redo is not said.
        self.allows_use(transaction, table) && !(stamped && self.is_logged(table))
    }

    fn allows_attach(&self, cursor: usize, transaction: usize) -> bool {
        let Some(note) = self.cursors.get(&cursor) else { return false };
        let same_table =
            self.tables.get(&note.table).is_some_and(|table| table.live && table.generation == note.table_generation);
        let usable = self.transactions.get(&transaction).is_some_and(|note| note.prepared.is_none());
        note.transaction.is_none() && same_table && usable
    }

    fn allows_in_transaction(&self, operation: &Operation, oracle: &ModelEngine) -> bool {
        let Some(note) = operation.transaction().and_then(|number| self.transactions.get(&number)) else {
            return false;
        };
        match operation {
            Operation::Get { transaction, table, .. } => self.allows_use(*transaction, *table),
            Operation::Put { transaction, table, .. }
            | Operation::Delete { transaction, table, .. }
            | Operation::Truncate { transaction, table, .. } => self.allows_write(*transaction, *table),
            Operation::AdjustSize { transaction, table, .. } => {
                note.behaviour != PrepareBehaviour::Ignore && self.allows_write(*transaction, *table)
            }
            Operation::AppendOplog { timestamp, .. } => self.allows_append(note, *timestamp, oracle),
            Operation::SetCommit { timestamp, .. } => self.allows_commit_timestamp(note, *timestamp),
            Operation::SetDurable { .. } => note.prepared.is_none() || (note.first.is_some() && note.durable.is_none()),
            Operation::HoldSlot { slot, .. } => self.slots.contains_key(slot),
            Operation::Prepare { timestamp, .. } => self.allows_prepare(note, *timestamp, oracle),
            Operation::Commit { .. } => !note.bare,
            Operation::RollBack { .. } => true,
            _ => false,
        }
    }

    /// An entry that is pending elsewhere is a duplicate only later; which of two errors comes first is not said.
    fn allows_append(&self, note: &TransactionNote, timestamp: Timestamp, oracle: &ModelEngine) -> bool {
        let pending = self.transactions.values().any(|note| note.entries.contains(&timestamp));
        if note.behaviour == PrepareBehaviour::Ignore || pending || timestamp <= oracle.timestamps().stable {
            return false;
        }
        let reasons =
            [self.mode == Mode::StandAlone, note.doomed, note.prepared.is_some(), oracle.has_entry(timestamp)];
        reasons.iter().filter(|reason| **reason).count() <= 1
    }

    /// Timestamps of one transaction do not go back between its own writes; a prepared one has one commit timestamp, not
    /// before the start of history.
    fn allows_commit_timestamp(&self, note: &TransactionNote, timestamp: Timestamp) -> bool {
        let in_order = match note.prepared.is_some() {
            true => note.first.is_none() && timestamp >= self.history_start,
            false => timestamp < note.first || timestamp >= note.last,
        };
        // Whether a transaction that must not write may have timestamps is not said.
        note.stamped && note.behaviour != PrepareBehaviour::Ignore && !note.doomed && in_order
    }

    /// What a prepared truncation means to readers of keys that are not there is not said, nor which error comes first.
    fn allows_prepare(&self, note: &TransactionNote, timestamp: Timestamp, oracle: &ModelEngine) -> bool {
        if note.truncated || note.behaviour == PrepareBehaviour::Ignore {
            return false;
        }
        let late = timestamp > oracle.timestamps().stable;
        let bad_timestamp = timestamp.is_none() || (!late && !note.recovering);
        let illegal = self.mode == Mode::StandAlone
            || note.first.is_some()
            || note.logged
            || !note.entries.is_empty()
            || note.prepared.is_some();
        let reasons = [bad_timestamp, illegal, note.doomed].iter().filter(|reason| **reason).count();
        reasons <= 1 && !(timestamp.is_none() && note.recovering)
    }

    /// Remembers what a step did.
    pub fn learn(&mut self, operation: &Operation, answer: &Answer, oracle: &ModelEngine) {
        self.history_start = self.history_start.max(oracle.timestamps().oldest);
        self.stable_ever = self.stable_ever.max(oracle.timestamps().stable);
        let failed = matches!(answer, Answer::Failed(_));
        match operation {
            Operation::Begin { transaction, options, stamped } if !failed => {
                let note = TransactionNote {
                    stamped: *stamped,
                    behaviour: options.prepare,
                    recovering: options.recovering,
                    ..TransactionNote::default()
                };
                self.transactions.insert(*transaction, note);
            }
            Operation::Commit { transaction } | Operation::RollBack { transaction } => {
                let ended = self.transactions.remove(transaction);
                // Whether a backward reader meets entries that came after it began is not said.
                if ended.is_some_and(|note| !note.entries.is_empty()) {
                    let backward = self.oplog_cursors.values_mut().filter(|note| !note.forward);
                    backward.for_each(|note| note.defined = false);
                }
            }
            operation if operation.transaction().is_some() => self.learn_in_transaction(operation, answer),
            Operation::OpenCursor { cursor, transaction, table } if !failed => {
                let table_generation = self.tables.get(table).map_or(0, |note| note.generation);
                let transaction = Some(*transaction);
                let note = CursorNote { transaction, table: *table, table_generation, place: Place::Start };
                self.cursors.insert(*cursor, note);
            }
            Operation::Move { cursor, step } => {
                if let Some(note) = self.cursors.get_mut(cursor) {
                    note.learn(*step, answer);
                }
            }
            Operation::Detach { cursor } => self.attach(*cursor, None),
            Operation::Attach { cursor, transaction } if !failed => self.attach(*cursor, Some(*transaction)),
            Operation::CloseCursor { cursor } => {
                self.cursors.remove(cursor);
            }
            // A load that met another's write leaves the table behind all the same.
            Operation::CreateTable { table, replicated } | Operation::BulkLoad { table, replicated, .. }
                if *answer != Answer::Failed("IdentExists".into()) =>
            {
                self.note_table(*table, *replicated);
            }
            Operation::DropTable { table } if !failed => {
                if let Some(note) = self.tables.get_mut(table) {
                    note.live = false;
                }
            }
            Operation::ReserveSlot { slot, timestamp } if !failed => {
                self.slots.insert(*slot, *timestamp);
            }
            Operation::DropSlot { slot } => {
                self.slots.remove(slot);
            }
            operation => self.learn_oplog(operation, answer),
        }
    }

    fn learn_in_transaction(&mut self, operation: &Operation, answer: &Answer) {
        let logged = |table: &usize| self.is_logged(*table);
        let writes_log = match operation {
            Operation::Put { table, .. }
            | Operation::Delete { table, .. }
            | Operation::Truncate { table, .. }
            | Operation::AdjustSize { table, .. } => Some(logged(table)),
            _ => None,
        };
        let Some(note) = operation.transaction().and_then(|number| self.transactions.get_mut(&number)) else { return };
        if let Answer::Failed(kind) = answer {
            note.doomed |= kind == "WriteConflict";
            return;
        }
        if let Some(writes_log) = writes_log {
            note.wrote = true;
            note.bare = false;
            note.logged |= writes_log;
        }
        match operation {
            Operation::Truncate { .. } => note.truncated = true,
            Operation::AppendOplog { timestamp, .. } => note.entries.push(*timestamp),
            Operation::SetCommit { timestamp, .. } => {
                // Earlier writes take the first timestamp; later ones need a write of their own.
                note.bare = note.first.is_some() || !note.wrote;
                note.first = if note.first.is_none() { *timestamp } else { note.first };
                note.last = note.last.max(*timestamp);
            }
            Operation::SetDurable { timestamp, .. } => note.durable = *timestamp,
            Operation::Prepare { timestamp, .. } => note.prepared = *timestamp,
            Operation::HoldSlot { slot, .. } => {
                self.slots.remove(slot);
            }
            _ => {}
        }
    }

    fn learn_oplog(&mut self, operation: &Operation, answer: &Answer) {
        match operation {
            Operation::OpenOplog { cursor, forward } => {
                self.oplog_cursors.insert(*cursor, OplogCursorNote { forward: *forward, defined: true });
            }
            // Where a seek that found nothing leaves the reader is not said.
            Operation::OplogSeek { cursor, .. } => {
                if let Some(note) = self.oplog_cursors.get_mut(cursor) {
                    note.defined = matches!(answer, Answer::Entry(Some(_)));
                }
            }
            Operation::CloseOplog { cursor } => {
                self.oplog_cursors.remove(cursor);
            }
            _ => {}
        }
    }

    fn attach(&mut self, cursor: usize, transaction: Option<usize>) {
        if let Some(note) = self.cursors.get_mut(&cursor) {
            note.transaction = transaction;
        }
    }

    fn note_table(&mut self, table: usize, replicated: bool) {
        self.generations += 1;
        self.tables.insert(table, TableNote { live: true, replicated, generation: self.generations });
    }
}

impl CursorNote {
    /// Past an end it is not said what a detached cursor remembers.
    pub(super) fn can_detach(&self) -> bool {
        self.transaction.is_some() && matches!(self.place, Place::Start | Place::Standing)
    }

    fn allows(&self, step: Step) -> bool {
        match step {
            Step::Next | Step::Previous => self.place != Place::Nowhere,
            Step::SkipPrefix(_) => self.place == Place::Standing && self.transaction.is_some(),
            _ => true,
        }
    }

    fn learn(&mut self, step: Step, answer: &Answer) {
        match answer {
            Answer::Pair(Some(_)) => self.place = Place::Standing,
            Answer::Pair(None) if matches!(step, Step::SeekExact(_)) => self.place = Place::Nowhere,
            Answer::Pair(None) => self.place = Place::Past,
            // It has kept its place; only a skip may be made of two moves.
            _ if matches!(step, Step::SkipPrefix(_)) => self.place = Place::Nowhere,
            _ => {}
        }
    }
}
