//! LMDB through `heed`.
//!
//! Settings: its defaults (a commit syncs), a map that is large enough, append mode for the bulk load. It has no cache of
//! its own and no log: updates go in one durable transaction, as its users do.

use super::{Change, Direction, Peer, Reader, Table, Wait, Writer};
use crate::Error;
use crate::workload::BulkInput;
use heed::types::Bytes;
use heed::{Database, Env, EnvFlags, EnvOpenOptions, FlagSetMode, PutFlags, RoTxn, WithTls};
use std::path::Path;
use std::time::Instant;

/// Address space, not memory.
const MAP_BYTES: usize = 64 << 30;

type Pairs = Database<Bytes, Bytes>;

struct Lmdb {
    env: Env,
    documents: Pairs,
    index: Pairs,
}

pub fn open(directory: &Path, _cache_bytes: u64) -> Result<Box<dyn Peer>, Error> {
    // SAFETY: no other process opens this directory while the map lives.
    let env = unsafe { EnvOpenOptions::new().map_size(MAP_BYTES).max_dbs(2).max_readers(126).open(directory)? };
    let mut transaction = env.write_txn()?;
    let documents = env.create_database(&mut transaction, Some("documents"))?;
    let index = env.create_database(&mut transaction, Some("index"))?;
    transaction.commit()?;
    Ok(Box::new(Lmdb { env, documents, index }))
}

impl Lmdb {
    fn table(&self, table: Table) -> &Pairs {
        match table {
            Table::Documents => &self.documents,
            Table::Index => &self.index,
        }
    }
}

impl Peer for Lmdb {
    fn bulk_load(&self, input: &BulkInput) -> Result<(), Error> {
        let mut transaction = self.env.write_txn()?;
        for (key, document) in input.documents() {
            self.documents.put_with_flags(&mut transaction, PutFlags::APPEND, &key, document)?;
        }
        for (key, value) in input.index() {
            self.index.put_with_flags(&mut transaction, PutFlags::APPEND, key, value)?;
        }
        Ok(transaction.commit()?)
    }

    fn reader(&self) -> Result<Box<dyn Reader + '_>, Error> {
        Ok(Box::new(LmdbReader { lmdb: self, snapshot: None }))
    }

    fn writer(&self) -> Result<Box<dyn Writer + '_>, Error> {
        Ok(Box::new(LmdbWriter { lmdb: self }))
    }

    fn flush_log(&self) -> Result<(), Error> {
        Ok(self.env.force_sync()?)
    }

    fn checkpoint(&self) -> Result<(), Error> {
        Ok(())
    }

    fn settle(&self) -> Result<Instant, Error> {
        Ok(Instant::now())
    }

    fn is_log_file(&self, _path: &Path) -> bool {
        false
    }

    fn close(self: Box<Self>) -> Result<(), Error> {
        self.env.prepare_for_closing().wait();
        Ok(())
    }

    fn relax(&self, relaxed: bool) -> Result<(), Error> {
        let mode = if relaxed { FlagSetMode::Enable } else { FlagSetMode::Disable };
        // SAFETY: called between phases, when no other thread uses the environment.
        unsafe { self.env.set_flags(EnvFlags::NO_SYNC, mode)? };
        Ok(())
    }

    fn has_log(&self) -> bool {
        false
    }

    fn has_cache(&self) -> bool {
        false
    }
}

struct LmdbReader<'a> {
    lmdb: &'a Lmdb,
    snapshot: Option<RoTxn<'a, WithTls>>,
}

impl LmdbReader<'_> {
    fn snapshot(&self) -> Result<&RoTxn<'_>, Error> {
        Ok(self.snapshot.as_ref().ok_or("no snapshot")?)
    }
}

impl Reader for LmdbReader<'_> {
    fn refresh(&mut self) -> Result<(), Error> {
        // A thread may have one read transaction only.
        self.snapshot = None;
        self.snapshot = Some(self.lmdb.env.read_txn()?);
        Ok(())
    }

    fn get(&mut self, table: Table, key: &[u8], see: &mut dyn FnMut(&[u8])) -> Result<bool, Error> {
        let value = self.lmdb.table(table).get(self.snapshot()?, key)?;
        Ok(value.map(see).is_some())
    }

    fn scan(&mut self, table: Table, direction: Direction, see: &mut dyn FnMut(&[u8], &[u8])) -> Result<u64, Error> {
        let (table, snapshot) = (self.lmdb.table(table), self.snapshot()?);
        match direction {
            Direction::Forward => show_all(table.iter(snapshot)?, see),
            Direction::Reverse => show_all(table.rev_iter(snapshot)?, see),
        }
    }
}

fn show_all<'a>(
    pairs: impl Iterator<Item = heed::Result<(&'a [u8], &'a [u8])>>,
    see: &mut dyn FnMut(&[u8], &[u8]),
) -> Result<u64, Error> {
    let mut count = 0;
    for pair in pairs {
        let (key, value) = pair?;
        see(key, value);
        count += 1;
    }
    Ok(count)
}

struct LmdbWriter<'a> {
    lmdb: &'a Lmdb,
}

impl Writer for LmdbWriter<'_> {
    /// Whether the commit syncs is the environment's flag: see `relax`.
    fn commit(&mut self, changes: &[Change<'_>], _wait: Wait) -> Result<(), Error> {
        let mut transaction = self.lmdb.env.write_txn()?;
        for change in changes {
            match change {
                Change::Put(table, key, value) => self.lmdb.table(*table).put(&mut transaction, key, value)?,
                Change::Delete(table, key) => _ = self.lmdb.table(*table).delete(&mut transaction, key)?,
            }
        }
        Ok(transaction.commit()?)
    }
}
