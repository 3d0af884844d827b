//! One life of an engine: what is open, and how its answers enter the model.

use super::Chance;
use super::model::{Checkpoint, Deed, Event, Model, TableInfo, Write};
use bytes::Bytes;
use pando_base::Timestamp;
use pando_engine::{DurableEngine, Mode};
use pando_env::simulated::Simulation;
use pando_storage::{
    Engine, LogPosition, Maintenance, Result, StorageError, Table, TableOptions, TableRegistry, TableSize,
    TimestampControl, Transaction,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The power went while a call was under way.
#[derive(Debug)]
pub struct PowerIsGone;

/// How a step ended.
pub type Step = std::result::Result<(), PowerIsGone>;

/// A transaction under way.
pub struct Open {
    pub transaction: Box<dyn Transaction>,
    pub marker: u64,
    pub writes: Vec<Write>,
    pub oplog: Vec<(Timestamp, Bytes)>,
    /// Its slots that are not commit timestamps yet.
    pub reserved: Vec<Timestamp>,
    pub commit: Timestamp,
    /// Will be prepared: replicated tables only, no oplog entries.
    pub to_prepare: bool,
    pub prepared: Timestamp,
}

/// A commit that may be waited for.
pub struct Done {
    pub position: LogPosition,
    pub events: usize,
    pub newest_entry: Timestamp,
}

/// One life.
pub struct Life<'a> {
    pub engine: Arc<DurableEngine>,
    pub simulation: &'a Simulation,
    pub chance: &'a mut Chance,
    pub model: &'a mut Model,
    pub mode: Mode,
    pub open: Vec<Open>,
    pub done: Vec<Done>,
    /// The newest timestamp given out.
    pub newest: u64,
    pub markers: u64,
    pub tables: BTreeMap<String, (Table, TableInfo)>,
    /// Truncation of the oplog's old end was under way.
    pub dropping_old: bool,
    /// A fault is planned: the engine may stop.
    pub may_stop: bool,
    taken: i64,
}

impl<'a> Life<'a> {
    pub fn new(
        engine: Arc<DurableEngine>,
        simulation: &'a Simulation,
        chance: &'a mut Chance,
        model: &'a mut Model,
        mode: Mode,
    ) -> Life<'a> {
        let taken = engine.statistics().value("checkpoint.taken");
        let newest = engine.timestamps().all_durable.max(model.stable_max).0.max(10);
        let markers = model.events.len() as u64 * 1000;
        let mut tables = BTreeMap::new();
        for (ident, info) in model.tables(model.events.len()) {
            let table = engine.open_table(&ident).expect("a table that is there");
            tables.insert(ident, (table, info));
        }
        Life {
            engine,
            simulation,
            chance,
            model,
            mode,
            open: Vec::new(),
            done: Vec::new(),
            newest,
            markers,
            tables,
            dropping_old: false,
            may_stop: false,
            taken,
        }
    }

    pub fn next_timestamp(&mut self) -> Timestamp {
        self.newest += 1;
        Timestamp(self.newest)
    }

    pub fn power_is_gone(&self) -> bool {
        self.simulation.disk().has_lost_power()
    }

    /// True if this error ends the life as planned.
    pub fn is_end(&self, error: &StorageError) -> bool {
        self.power_is_gone() || (self.may_stop && matches!(error, StorageError::Stopped(_)))
    }

    /// A call that must succeed unless the power goes.
    pub fn must<R>(&self, result: Result<R>, what: &str) -> std::result::Result<R, PowerIsGone> {
        match result {
            Ok(value) => Ok(value),
            Err(error) if self.is_end(&error) => Err(PowerIsGone),
            Err(error) => panic!("{what}: {error}"),
        }
    }

    /// A call of a transaction, which may have to be rolled back: false if so.
    pub fn may<R>(&self, result: Result<R>, what: &str) -> std::result::Result<bool, PowerIsGone> {
        match result {
            Ok(_) => Ok(true),
            Err(error) if self.is_end(&error) => Err(PowerIsGone),
            Err(
                StorageError::WriteConflict
                | StorageError::PrepareConflict
                | StorageError::TimestampRule(_)
                | StorageError::TemporarilyUnavailable(_)
                | StorageError::TransactionTooLargeForCache(_),
            ) => Ok(false),
            Err(error) => panic!("{what}: {error}"),
        }
    }

    /// The checkpoint that the engine would take now.
    fn would_take(&self, full: bool) -> Checkpoint {
        let now = self.engine.timestamps();
        if full || now.initial_data.is_none() {
            return self.model.checkpoint(None, now.oldest);
        }
        match now.stable.is_some() && now.stable >= now.initial_data {
            true => self.model.checkpoint(Some(now.stable), now.oldest),
            false => self.model.spill(now.oldest),
        }
    }

    /// Makes a call that may take a checkpoint, and notes if it did or may have.
    pub fn watched<R>(&mut self, full: bool, call: impl FnOnce(&dyn Engine) -> Result<R>) -> Result<R> {
        let operations = self.simulation.disk().operation_count();
        let result = call(&*self.engine);
        if self.simulation.disk().operation_count() == operations {
            return result;
        }
        let taken = self.engine.statistics().value("checkpoint.taken");
        if taken > self.taken {
            self.taken = taken;
            let checkpoint = self.would_take(full);
            assert_eq!(self.engine.timestamps().checkpoint, checkpoint.stable, "where the checkpoint stands");
            self.model.acknowledged = self.model.events.len();
            self.model.checkpoints = vec![checkpoint];
        }
        if result.as_ref().is_err_and(|error| self.is_end(error)) {
            let checkpoint = self.would_take(full);
            self.model.checkpoints.push(checkpoint);
        }
        result
    }

    pub fn create(&mut self, ident: &str, replicated: bool) -> Step {
        self.create_with(ident, &TableOptions { replicated, ..TableOptions::default() })
    }

    pub fn create_with(&mut self, ident: &str, options: &TableOptions) -> Step {
        let replicated = options.replicated;
        let created = self.engine.create_table(ident, options);
        let table = self.must(created, "create")?;
        let uid = self.model.next_uid();
        let replicated = replicated && self.mode == Mode::ReplicaSet;
        self.model.events.push(Event::Create { uid, ident: ident.to_owned(), replicated });
        self.tables.insert(ident.to_owned(), (table, TableInfo { uid, replicated }));
        Ok(())
    }

    pub fn drop_table(&mut self, ident: &str) -> Step {
        let dropped = self.engine.drop_table(ident);
        self.must(dropped, "drop")?;
        self.tables.remove(ident);
        self.model.events.push(Event::Drop { ident: ident.to_owned() });
        Ok(())
    }

    /// Writes one key, with the exact change of the table's size; false if the transaction must be rolled back.
    pub fn write(
        &mut self,
        open: &mut Open,
        ident: &str,
        key: &[u8],
        value: Option<Vec<u8>>,
    ) -> std::result::Result<bool, PowerIsGone> {
        let (table, info) = self.tables[ident].clone();
        let before = open.transaction.get(&table, key);
        if !self.may(before.as_ref().map_err(Clone::clone), "get")? {
            return Ok(false);
        }
        let before = before.ok().flatten();
        let written = self.watched(false, |_| match &value {
            Some(value) => open.transaction.put(&table, key, value),
            None => open.transaction.delete(&table, key),
        });
        if !self.may(written, "write")? {
            return Ok(false);
        }
        let records = i64::from(value.is_some()) - i64::from(before.is_some());
        let bytes = value.as_ref().map_or(0, Vec::len) as i64 - before.map_or(0, |value| value.len()) as i64;
        let deed = match value {
            Some(value) => Deed::Put(key.to_vec(), value),
            None => Deed::Delete(key.to_vec()),
        };
        self.enter(open, &table, info, deed, TableSize::new(records, bytes))
    }

    /// Deletes a range.
    pub fn truncate(
        &mut self,
        open: &mut Open,
        ident: &str,
        start: &[u8],
        end: &[u8],
    ) -> std::result::Result<bool, PowerIsGone> {
        let (table, info) = self.tables[ident].clone();
        let counted = count_range(&*open.transaction, &table, start, end);
        if !self.may(counted.as_ref().map_err(Clone::clone), "count")? {
            return Ok(false);
        }
        let Ok(size) = counted else { return Ok(false) };
        let truncated = self.watched(false, |_| open.transaction.truncate(&table, start, Some(end)));
        if !self.may(truncated, "truncate")? {
            return Ok(false);
        }
        self.enter(open, &table, info, Deed::Truncate(start.to_vec(), end.to_vec()), size)
    }

    fn enter(
        &mut self,
        open: &mut Open,
        table: &Table,
        info: TableInfo,
        deed: Deed,
        size: TableSize,
    ) -> std::result::Result<bool, PowerIsGone> {
        let resized = open.transaction.adjust_size(table, size);
        if !self.may(resized, "adjust_size")? {
            return Ok(false);
        }
        let number = self.simulation.disk().operation_count() * 1_000_000 + self.chance.below(1_000_000);
        let (commit, durable) = (open.commit, open.commit);
        open.writes.push(Write { table: info.uid, deed, commit, durable, size, number });
        Ok(true)
    }
}

fn count_range(transaction: &dyn Transaction, table: &Table, start: &[u8], end: &[u8]) -> Result<TableSize> {
    let mut cursor = transaction.cursor(table)?;
    let mut size = TableSize::default();
    let mut found = cursor.seek(start)?.map(|entry| (entry.key.to_vec(), entry.value.len()));
    while let Some((_, length)) = found.filter(|(key, _)| key.as_slice() < end) {
        size += TableSize::new(-1, -(length as i64));
        found = cursor.next()?.map(|entry| (entry.key.to_vec(), entry.value.len()));
    }
    Ok(size)
}
