//! Our engine, through the storage interface alone.
//!
//! Settings: stand-alone (no timestamps, every table has redo in the log), the given memory as the engine's one budget. A
//! bulk load takes both tables at once. Only [`engine`] names the concrete engine.

use super::{Change, Direction, Peer, Reader, Wait, Writer};
use crate::Error;
use crate::measure::{CountedDisk, written_bytes};
use crate::workload::{BulkInput, DOCUMENT_BYTES};
use pando_storage::{BeginOptions, CheckpointKind, Engine, Statistic, Table, TableOptions, TableSize, Transaction};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Its background work is over when nothing was seen for so long.
const QUIET: Duration = Duration::from_millis(400);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// What only the concrete engine can say.
pub mod engine {
    use super::*;

    /// How the engine is opened for a benchmark.
    pub struct Options {
        /// Its one memory budget.
        pub memory_bytes: u64,
        /// False: no checkpoint but those asked for, so that the log can grow.
        pub checkpoints: bool,
    }

    /// Opens or creates a store.
    pub fn open(directory: &Path, options: &Options) -> Result<Arc<dyn Engine>, Error> {
        let mut engine_options =
            pando_engine::EngineOptions { memory_bytes: options.memory_bytes, ..Default::default() };
        if !options.checkpoints {
            engine_options.checkpoint_interval = Duration::ZERO;
            engine_options.checkpoint_log_bytes = u64::MAX;
        }
        let env = pando_env::Env::real();
        let env = env.with_disk(Arc::new(CountedDisk(Arc::clone(env.disk()))));
        Ok(pando_engine::DurableEngine::open(&env, directory, engine_options)?)
    }

    /// Statistics that are above zero while background work waits or runs.
    pub const BACKGROUND_GAUGES: [&str; 1] = ["base.merge_debt_bytes"];
    /// A file of the log, by its name.
    pub fn is_log_file(path: &Path) -> bool {
        path.extension().is_some_and(|extension| extension == "log")
    }
}

struct Pando {
    engine: Arc<dyn Engine>,
    documents: Table,
    index: Table,
}

pub fn open(directory: &Path, cache_bytes: u64) -> Result<Box<dyn Peer>, Error> {
    let engine = engine::open(directory, &engine::Options { memory_bytes: cache_bytes, checkpoints: true })?;
    over(engine)
}

/// Any engine as a peer.
pub fn over(engine: Arc<dyn Engine>) -> Result<Box<dyn Peer>, Error> {
    let documents = table(&*engine, "documents")?;
    let index = table(&*engine, "index")?;
    Ok(Box::new(Pando { engine, documents, index }))
}

/// Finds a table or makes it.
pub fn table(engine: &dyn Engine, ident: &str) -> Result<Table, Error> {
    if engine.idents().iter().any(|known| known == ident) {
        return Ok(engine.open_table(ident)?);
    }
    Ok(engine.create_table(ident, &TableOptions::default())?)
}

/// Loads documents into an empty table.
pub fn load_documents(engine: &dyn Engine, table: &Table, input: &BulkInput) -> Result<(), Error> {
    let mut loader = engine.bulk_load(table)?;
    let mut records = 0;
    for (key, document) in input.documents() {
        loader.add(&key, document)?;
        records += 1;
    }
    Ok(loader.finish(TableSize::new(records, records * DOCUMENT_BYTES as i64))?)
}

fn load_index(engine: &dyn Engine, table: &Table, input: &BulkInput) -> Result<(), Error> {
    let mut loader = engine.bulk_load(table)?;
    for (key, value) in input.index() {
        loader.add(key, value)?;
    }
    let records = input.index().len() as i64;
    Ok(loader.finish(TableSize::new(records, records * 8))?)
}

impl Pando {
    fn table(&self, table: super::Table) -> &Table {
        match table {
            super::Table::Documents => &self.documents,
            super::Table::Index => &self.index,
        }
    }
}

impl Peer for Pando {
    fn bulk_load(&self, input: &BulkInput) -> Result<(), Error> {
        std::thread::scope(|scope| {
            let index = scope.spawn(|| load_index(&*self.engine, &self.index, input));
            load_documents(&*self.engine, &self.documents, input)?;
            index.join().map_err(|_| "a loading thread panicked")?
        })?;
        self.flush_log()
    }

    fn reader(&self) -> Result<Box<dyn Reader + '_>, Error> {
        Ok(Box::new(PandoReader { pando: self, snapshot: self.engine.begin(BeginOptions::default())? }))
    }

    fn writer(&self) -> Result<Box<dyn Writer + '_>, Error> {
        Ok(Box::new(PandoWriter { pando: self }))
    }

    fn flush_log(&self) -> Result<(), Error> {
        self.engine.flush_log()?;
        Ok(())
    }

    fn checkpoint(&self) -> Result<(), Error> {
        self.engine.checkpoint(CheckpointKind::Automatic)?;
        Ok(())
    }

    /// Work is seen by the engine's gauges, and by any byte that the process writes: nobody else writes in this phase.
    fn settle(&self) -> Result<Instant, Error> {
        let mut last_seen = Instant::now();
        let mut written = written_bytes()?.passed;
        while last_seen.elapsed() < QUIET {
            let statistics = self.engine.statistics();
            let now_written = written_bytes()?.passed;
            let busy = engine::BACKGROUND_GAUGES.iter().any(|gauge| statistics.value(gauge) > 0);
            if busy || written != now_written {
                (last_seen, written) = (Instant::now(), now_written);
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(last_seen)
    }

    fn is_log_file(&self, path: &Path) -> bool {
        engine::is_log_file(path)
    }

    fn close(self: Box<Self>) -> Result<(), Error> {
        Ok(self.engine.shut_down()?)
    }

    fn figures(&self) -> Vec<(String, f64)> {
        let value = |statistic: Statistic| match statistic {
            Statistic::Counter(value) => value as f64,
            Statistic::Gauge(value) => value as f64,
        };
        self.engine.statistics().0.into_iter().map(|(name, statistic)| (name, value(statistic))).collect()
    }
}

struct PandoReader<'a> {
    pando: &'a Pando,
    snapshot: Box<dyn Transaction>,
}

impl Reader for PandoReader<'_> {
    fn refresh(&mut self) -> Result<(), Error> {
        self.snapshot = self.pando.engine.begin(BeginOptions::default())?;
        Ok(())
    }

    fn get(&mut self, table: super::Table, key: &[u8], see: &mut dyn FnMut(&[u8])) -> Result<bool, Error> {
        let value = self.snapshot.get(self.pando.table(table), key)?;
        Ok(value.map(|value| see(&value)).is_some())
    }

    fn scan(
        &mut self,
        table: super::Table,
        direction: Direction,
        see: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<u64, Error> {
        let mut cursor = self.snapshot.cursor(self.pando.table(table))?;
        let mut count = 0;
        loop {
            let entry = match direction {
                Direction::Forward => cursor.next()?,
                Direction::Reverse => cursor.previous()?,
            };
            let Some(entry) = entry else { return Ok(count) };
            see(entry.key, entry.value);
            count += 1;
        }
    }
}

struct PandoWriter<'a> {
    pando: &'a Pando,
}

impl Writer for PandoWriter<'_> {
    fn commit(&mut self, changes: &[Change<'_>], wait: Wait) -> Result<(), Error> {
        let mut transaction = self.pando.engine.begin(BeginOptions::default())?;
        for change in changes {
            match *change {
                Change::Put(table, key, value) => transaction.put(self.pando.table(table), key, value)?,
                Change::Delete(table, key) => transaction.delete(self.pando.table(table), key)?,
            }
        }
        let committed = transaction.commit()?;
        if wait == Wait::ForDisk {
            self.pando.engine.wait_durable(committed.position).block()?;
        }
        Ok(())
    }
}
