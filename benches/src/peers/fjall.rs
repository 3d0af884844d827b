//! fjall.
//!
//! Settings: lz4 on every level (its default leaves the upper ones raw), as many workers as cores, the given block cache,
//! its ingestion for the bulk load, both tables at once. A checkpoint rotates the memtables and waits for their flush.

use super::{Change, Direction, Peer, Reader, Table, Wait, Writer};
use crate::Error;
use crate::workload::BulkInput;
use fjall::config::CompressionPolicy;
use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode, Readable, Snapshot};
use std::path::Path;
use std::time::{Duration, Instant};

/// Its background work is over when nothing was seen for so long.
const QUIET: Duration = Duration::from_millis(400);
const LOOK_EVERY: Duration = Duration::from_millis(5);

struct Fjall {
    database: Database,
    documents: Keyspace,
    index: Keyspace,
}

pub fn open(directory: &Path, cache_bytes: u64) -> Result<Box<dyn Peer>, Error> {
    let database = Database::builder(directory).cache_size(cache_bytes).open()?;
    let options =
        || KeyspaceCreateOptions::default().data_block_compression_policy(CompressionPolicy::all(CompressionType::Lz4));
    let documents = database.keyspace("documents", options)?;
    let index = database.keyspace("index", options)?;
    Ok(Box::new(Fjall { database, documents, index }))
}

impl Fjall {
    fn table(&self, table: Table) -> &Keyspace {
        match table {
            Table::Documents => &self.documents,
            Table::Index => &self.index,
        }
    }

    fn load_documents(&self, input: &BulkInput) -> Result<(), Error> {
        let mut ingestion = self.documents.start_ingestion()?;
        for (key, document) in input.documents() {
            ingestion.write(key, document)?;
        }
        Ok(ingestion.finish()?)
    }

    fn load_index(&self, input: &BulkInput) -> Result<(), Error> {
        let mut ingestion = self.index.start_ingestion()?;
        for (key, value) in input.index() {
            ingestion.write(*key, *value)?;
        }
        Ok(ingestion.finish()?)
    }
}

impl Peer for Fjall {
    fn bulk_load(&self, input: &BulkInput) -> Result<(), Error> {
        std::thread::scope(|scope| {
            let index = scope.spawn(|| self.load_index(input));
            self.load_documents(input)?;
            index.join().map_err(|_| "a loading thread panicked")?
        })?;
        self.flush_log()
    }

    fn reader(&self) -> Result<Box<dyn Reader + '_>, Error> {
        Ok(Box::new(FjallReader { fjall: self, snapshot: self.database.snapshot() }))
    }

    fn writer(&self) -> Result<Box<dyn Writer + '_>, Error> {
        Ok(Box::new(FjallWriter { fjall: self }))
    }

    fn flush_log(&self) -> Result<(), Error> {
        Ok(self.database.persist(PersistMode::SyncAll)?)
    }

    fn checkpoint(&self) -> Result<(), Error> {
        self.documents.rotate_memtable()?;
        self.index.rotate_memtable()?;
        while self.documents.sealed_memtable_count() + self.index.sealed_memtable_count() > 0 {
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    fn settle(&self) -> Result<Instant, Error> {
        let mut last_seen = Instant::now();
        let mut completed = self.database.compactions_completed();
        while last_seen.elapsed() < QUIET {
            let now_completed = self.database.compactions_completed();
            let busy = self.database.active_compactions() > 0 || self.database.outstanding_flushes() > 0;
            if busy || now_completed != completed {
                (last_seen, completed) = (Instant::now(), now_completed);
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(last_seen)
    }

    fn is_log_file(&self, path: &Path) -> bool {
        path.extension().is_some_and(|extension| extension == "jnl")
    }

    fn close(self: Box<Self>) -> Result<(), Error> {
        self.flush_log()
    }
}

struct FjallReader<'a> {
    fjall: &'a Fjall,
    snapshot: Snapshot,
}

impl Reader for FjallReader<'_> {
    fn refresh(&mut self) -> Result<(), Error> {
        self.snapshot = self.fjall.database.snapshot();
        Ok(())
    }

    fn get(&mut self, table: Table, key: &[u8], see: &mut dyn FnMut(&[u8])) -> Result<bool, Error> {
        let value = self.snapshot.get(self.fjall.table(table), key)?;
        Ok(value.map(|value| see(&value)).is_some())
    }

    fn scan(&mut self, table: Table, direction: Direction, see: &mut dyn FnMut(&[u8], &[u8])) -> Result<u64, Error> {
        let mut pairs = self.snapshot.iter(self.fjall.table(table));
        let mut count = 0;
        loop {
            let pair = match direction {
                Direction::Forward => pairs.next(),
                Direction::Reverse => pairs.next_back(),
            };
            let Some(pair) = pair else { return Ok(count) };
            let (key, value) = pair.into_inner()?;
            see(&key, &value);
            count += 1;
        }
    }
}

struct FjallWriter<'a> {
    fjall: &'a Fjall,
}

impl Writer for FjallWriter<'_> {
    fn commit(&mut self, changes: &[Change<'_>], wait: Wait) -> Result<(), Error> {
        let durability = (wait == Wait::ForDisk).then_some(PersistMode::SyncData);
        let mut batch = self.fjall.database.batch().durability(durability);
        for change in changes {
            match *change {
                Change::Put(table, key, value) => batch.insert(self.fjall.table(table), key, value),
                Change::Delete(table, key) => batch.remove(self.fjall.table(table), key),
            }
        }
        Ok(batch.commit()?)
    }
}
