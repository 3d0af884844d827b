//! One of the two engines that are compared, with everything that is open on it.
//!
//! Both sides run this same code, so a difference in the answers is a difference between the engines.

use super::operation::{Operation, Step, Value, ident, key};
use bytes::Bytes;
use pando_base::Timestamp;
use pando_env::simulated::SimulatedRandom;
use pando_storage::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a step gave, as far as it must be equal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It went well.
    Done,
    /// The read timestamp of a new transaction.
    Begun(Option<Timestamp>),
    /// A value.
    Value(Option<Bytes>),
    /// Where a cursor stands.
    Pair(Option<(Vec<u8>, Bytes)>),
    /// An oplog entry.
    Entry(Option<OplogEntry>),
    /// What a checkpoint did.
    Checkpoint(bool, Timestamp),
    /// It failed, with this kind of error.
    Failed(String),
    /// What the step is about is not there; the other side must agree.
    Missing,
}

impl From<StorageError> for Answer {
    fn from(error: StorageError) -> Answer {
        let text = format!("{error:?}");
        Answer::Failed(text.chars().take_while(char::is_ascii_alphanumeric).collect())
    }
}

/// An engine and what is open on it.
pub struct Side {
    pub(super) engine: Arc<dyn Engine>,
    pub(super) tables: BTreeMap<usize, Table>,
    pub(super) transactions: BTreeMap<usize, Box<dyn Transaction>>,
    pub(super) cursors: BTreeMap<usize, Box<dyn Cursor>>,
    slots: BTreeMap<usize, Slot>,
    oplog_cursors: BTreeMap<usize, Box<dyn OplogCursor>>,
    /// Of the last commit.
    position: LogPosition,
}

impl Side {
    /// A side with the tables that the engine has.
    pub fn new(engine: Arc<dyn Engine>, table_count: usize) -> Side {
        let tables = (0..table_count).filter_map(|table| Some((table, engine.open_table(&ident(table)).ok()?)));
        Side {
            tables: tables.collect(),
            transactions: BTreeMap::new(),
            cursors: BTreeMap::new(),
            slots: BTreeMap::new(),
            oplog_cursors: BTreeMap::new(),
            position: LogPosition::default(),
            engine,
        }
    }

    /// Closes everything that is open.
    pub fn close_all(&mut self) {
        self.cursors.clear();
        self.oplog_cursors.clear();
        self.transactions.clear();
        self.slots.clear();
        self.tables.clear();
    }

    /// Does a step.
    pub fn perform(&mut self, operation: &Operation) -> Answer {
        let result = match operation {
            Operation::OpenCursor { .. }
            | Operation::Move { .. }
            | Operation::MoveRandom { .. }
            | Operation::Detach { .. }
            | Operation::Attach { .. }
            | Operation::CloseCursor { .. } => self.perform_cursor(operation),
            Operation::OpenOplog { .. }
            | Operation::OplogNext { .. }
            | Operation::OplogSeek { .. }
            | Operation::CloseOplog { .. }
            | Operation::TruncateOplog { .. }
            | Operation::ResetOplog => self.perform_oplog(operation),
            operation if operation.transaction().is_some() => self.perform_transaction(operation),
            operation => self.perform_engine(operation),
        };
        match result {
            Ok(Some(answer)) => answer,
            Ok(None) => Answer::Missing,
            Err(error) => Answer::from(error),
        }
    }

    fn perform_transaction(&mut self, operation: &Operation) -> Result<Option<Answer>> {
        match operation {
            Operation::Begin { transaction, options, .. } => {
                let begun = self.engine.begin(*options)?;
                // No read timestamp and the greatest one are the same.
                let read = begun.read_timestamp().filter(|timestamp| *timestamp != Timestamp::MAX);
                self.transactions.insert(*transaction, begun);
                return Ok(Some(Answer::Begun(read)));
            }
            Operation::Commit { transaction } => {
                let Some(ended) = self.transactions.remove(transaction) else { return Ok(None) };
                self.position = ended.commit()?.position;
                return Ok(Some(Answer::Done));
            }
            Operation::RollBack { transaction } => {
                let Some(ended) = self.transactions.remove(transaction) else { return Ok(None) };
                ended.roll_back();
                return Ok(Some(Answer::Done));
            }
            _ => {}
        }
        let Some(number) = operation.transaction() else { return Ok(None) };
        let Some(transaction) = self.transactions.get_mut(&number) else { return Ok(None) };
        let table = |number: &usize| self.tables.get(number);
        match operation {
            Operation::Get { table: of, key: number, .. } => {
                let Some(table) = table(of) else { return Ok(None) };
                let value = transaction.get(table, &key(*number))?;
                let mut each = Vec::new();
                transaction.get_each(table, &[&key(*number)], usize::MAX, &mut |value| each.push(value))?;
                assert_eq!(each, std::slice::from_ref(&value), "the two ways to read a key differ");
                return Ok(Some(Answer::Value(value)));
            }
            Operation::Put { table: of, key: number, value, .. } => {
                let Some(table) = table(of) else { return Ok(None) };
                transaction.put(table, &key(*number), &value.bytes())?;
            }
            Operation::Delete { table: of, key: number, .. } => {
                let Some(table) = table(of) else { return Ok(None) };
                transaction.delete(table, &key(*number))?;
            }
            Operation::Truncate { table: of, start, end, .. } => {
                let Some(table) = table(of) else { return Ok(None) };
                transaction.truncate(table, &key(*start), end.map(key).as_deref())?;
            }
            Operation::AdjustSize { table: of, records, bytes, .. } => {
                let Some(table) = table(of) else { return Ok(None) };
                transaction.adjust_size(table, TableSize::new(*records, *bytes))?;
            }
            Operation::AppendOplog { timestamp, value, .. } => transaction.append_oplog(*timestamp, &value.bytes())?,
            Operation::SetCommit { timestamp, .. } => transaction.set_commit_timestamp(*timestamp)?,
            Operation::SetDurable { timestamp, .. } => transaction.set_durable_timestamp(*timestamp)?,
            Operation::Prepare { timestamp, .. } => transaction.prepare(*timestamp)?,
            Operation::HoldSlot { slot, .. } => {
                let Some(slot) = self.slots.remove(slot) else { return Ok(None) };
                transaction.hold_slot(slot);
            }
            _ => return Ok(None),
        }
        Ok(Some(Answer::Done))
    }

    fn perform_cursor(&mut self, operation: &Operation) -> Result<Option<Answer>> {
        match operation {
            Operation::OpenCursor { cursor, transaction, table } => {
                let (Some(transaction), Some(table)) = (self.transactions.get(transaction), self.tables.get(table))
                else {
                    return Ok(None);
                };
                self.cursors.insert(*cursor, transaction.cursor(table)?);
            }
            Operation::Move { cursor, step } => {
                let Some(cursor) = self.cursors.get_mut(cursor) else { return Ok(None) };
                let pair = pair(move_cursor(&mut **cursor, *step)?);
                let value = cursor.value_bytes();
                let agrees = value.as_ref() == pair.as_ref().map(|(_, value)| value);
                return Ok(agrees.then_some(Answer::Pair(pair)));
            }
            Operation::MoveRandom { cursor, seed } => {
                let Some(cursor) = self.cursors.get_mut(cursor) else { return Ok(None) };
                return Ok(Some(Answer::Pair(pair(cursor.random(&SimulatedRandom::new(*seed))?))));
            }
            Operation::Detach { cursor } => {
                let Some(cursor) = self.cursors.get_mut(cursor) else { return Ok(None) };
                cursor.detach();
            }
            Operation::Attach { cursor, transaction } => {
                let (Some(cursor), Some(transaction)) =
                    (self.cursors.get_mut(cursor), self.transactions.get(transaction))
                else {
                    return Ok(None);
                };
                cursor.attach(&**transaction)?;
            }
            Operation::CloseCursor { cursor } => {
                self.cursors.remove(cursor);
            }
            _ => return Ok(None),
        }
        Ok(Some(Answer::Done))
    }

    fn perform_oplog(&mut self, operation: &Operation) -> Result<Option<Answer>> {
        let Some(oplog) = self.engine.oplog() else { return Ok(None) };
        match operation {
            Operation::OpenOplog { cursor, forward } => {
                let opened = if *forward { oplog.forward()? } else { oplog.backward()? };
                self.oplog_cursors.insert(*cursor, opened);
            }
            Operation::OplogNext { cursor } => {
                let Some(cursor) = self.oplog_cursors.get_mut(cursor) else { return Ok(None) };
                return Ok(Some(Answer::Entry(cursor.next()?)));
            }
            Operation::OplogSeek { cursor, timestamp } => {
                let Some(cursor) = self.oplog_cursors.get_mut(cursor) else { return Ok(None) };
                return Ok(Some(Answer::Entry(cursor.seek(*timestamp)?)));
            }
            Operation::CloseOplog { cursor } => {
                self.oplog_cursors.remove(cursor);
            }
            Operation::TruncateOplog { timestamp, inclusive } => {
                oplog.truncate_after(*timestamp, *inclusive)?;
                // What was cut off can no longer be waited for.
                self.position = LogPosition::default();
            }
            Operation::ResetOplog => {
                oplog.reset()?;
                self.position = LogPosition::default();
            }
            _ => return Ok(None),
        }
        Ok(Some(Answer::Done))
    }

    fn perform_engine(&mut self, operation: &Operation) -> Result<Option<Answer>> {
        match operation {
            Operation::CreateTable { table, replicated } => {
                self.create(*table, *replicated)?;
            }
            Operation::DropTable { table } => self.engine.drop_table(&ident(*table))?,
            Operation::BulkLoad { table, replicated, keys, value, written_meanwhile } => {
                self.create(*table, *replicated)?;
                self.bulk_load(*table, keys, *value, *written_meanwhile)?;
            }
            Operation::SetTableSize { table, records, bytes } => {
                let Some(table) = self.tables.get(table) else { return Ok(None) };
                self.engine.set_table_size(table, TableSize::new(*records, *bytes))?;
            }
            Operation::SetOldest { timestamp, force } => self.engine.set_oldest(*timestamp, *force)?,
            Operation::SetStable { timestamp } => self.engine.set_stable(*timestamp)?,
            Operation::SetInitialData { timestamp } => self.engine.set_initial_data(*timestamp),
            Operation::ReserveSlot { slot, timestamp } => {
                let reserved = self.engine.reserve_slot(*timestamp)?;
                self.slots.insert(*slot, reserved);
            }
            Operation::DropSlot { slot } => {
                self.slots.remove(slot);
            }
            Operation::FlushLog => {
                self.engine.flush_log()?;
            }
            Operation::WaitDurable => self.engine.wait_durable(self.position).block()?,
            Operation::Checkpoint { full } => {
                let kind = if *full { CheckpointKind::Full } else { CheckpointKind::Automatic };
                let outcome = self.engine.checkpoint(kind)?;
                return Ok(Some(Answer::Checkpoint(outcome.taken, outcome.timestamp)));
            }
            Operation::Maintain => {
                self.engine.maintain()?;
            }
            Operation::RollBackToStable => self.engine.roll_back_to_stable()?,
            _ => return Ok(None),
        }
        Ok(Some(Answer::Done))
    }

    fn create(&mut self, table: usize, replicated: bool) -> Result<()> {
        let options = TableOptions { replicated, ..TableOptions::default() };
        let created = self.engine.create_table(&ident(table), &options)?;
        self.tables.insert(table, created);
        Ok(())
    }

    fn bulk_load(&mut self, table: usize, keys: &[u8], value: Value, written_meanwhile: bool) -> Result<()> {
        let Some(table) = self.tables.get(&table) else { return Ok(()) };
        let mut loader = self.engine.bulk_load(table)?;
        let mut sorted: Vec<Vec<u8>> = keys.iter().copied().map(key).collect();
        sorted.sort();
        sorted.dedup();
        for key in &sorted {
            loader.add(key, &value.bytes())?;
        }
        if written_meanwhile {
            let mut other = self.engine.begin(BeginOptions::default())?;
            other.put(table, b"other", b"other")?;
            other.commit()?;
        }
        let records = sorted.len() as i64;
        loader.finish(TableSize::new(records, records * value.bytes().len() as i64))
    }
}

fn pair(entry: Option<Entry<'_>>) -> Option<(Vec<u8>, Bytes)> {
    entry.map(|entry| (entry.key.to_vec(), Bytes::copy_from_slice(entry.value)))
}

fn move_cursor(cursor: &mut dyn Cursor, step: Step) -> Result<Option<Entry<'_>>> {
    match step {
        Step::First => cursor.first(),
        Step::Last => cursor.last(),
        Step::Seek(number) => cursor.seek(&key(number)),
        Step::SeekBack(number) => cursor.seek_back(&key(number)),
        Step::SeekExact(number) => cursor.seek_exact(&key(number)),
        Step::Next => cursor.next(),
        Step::Previous => cursor.previous(),
        Step::SkipPrefix(length) => cursor.skip_prefix(length),
    }
}
