//! redb.
//!
//! Settings: its defaults and the given cache. It has no log: updates go in one durable transaction, as its users do.

use super::{Change, Direction, Peer, Reader, Wait, Writer};
use crate::Error;
use crate::workload::BulkInput;
use redb::{Database, Durability, ReadOnlyTable, ReadableDatabase, ReadableTable, TableDefinition};
use std::path::Path;
use std::time::Instant;

type Pairs = TableDefinition<'static, &'static [u8], &'static [u8]>;
type OpenPairs = ReadOnlyTable<&'static [u8], &'static [u8]>;

const DOCUMENTS: Pairs = TableDefinition::new("documents");
const INDEX: Pairs = TableDefinition::new("index");

struct Redb {
    database: Database,
}

pub fn open(directory: &Path, cache_bytes: u64) -> Result<Box<dyn Peer>, Error> {
    let database = Database::builder().set_cache_size(cache_bytes as usize).create(directory.join("store.redb"))?;
    let transaction = database.begin_write()?;
    transaction.open_table(DOCUMENTS)?;
    transaction.open_table(INDEX)?;
    transaction.commit()?;
    Ok(Box::new(Redb { database }))
}

impl Peer for Redb {
    fn bulk_load(&self, input: &BulkInput) -> Result<(), Error> {
        let transaction = self.database.begin_write()?;
        let mut documents = transaction.open_table(DOCUMENTS)?;
        for (key, document) in input.documents() {
            documents.insert(key.as_slice(), document)?;
        }
        let mut index = transaction.open_table(INDEX)?;
        for (key, value) in input.index() {
            index.insert(key.as_slice(), value.as_slice())?;
        }
        drop((documents, index));
        Ok(transaction.commit()?)
    }

    fn reader(&self) -> Result<Box<dyn Reader + '_>, Error> {
        Ok(Box::new(RedbReader { redb: self, documents: None, index: None }))
    }

    fn writer(&self) -> Result<Box<dyn Writer + '_>, Error> {
        Ok(Box::new(RedbWriter { redb: self }))
    }

    fn flush_log(&self) -> Result<(), Error> {
        Ok(self.database.begin_write()?.commit()?)
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
        Ok(())
    }

    fn has_log(&self) -> bool {
        false
    }
}

/// An open table keeps its snapshot, so a table is opened when it is first asked for.
struct RedbReader<'a> {
    redb: &'a Redb,
    documents: Option<OpenPairs>,
    index: Option<OpenPairs>,
}

impl RedbReader<'_> {
    fn table(&mut self, table: super::Table) -> Result<&OpenPairs, Error> {
        let (slot, definition) = match table {
            super::Table::Documents => (&mut self.documents, DOCUMENTS),
            super::Table::Index => (&mut self.index, INDEX),
        };
        let opened = match slot.take() {
            Some(opened) => opened,
            None => self.redb.database.begin_read()?.open_table(definition)?,
        };
        Ok(slot.insert(opened))
    }
}

impl Reader for RedbReader<'_> {
    fn refresh(&mut self) -> Result<(), Error> {
        (self.documents, self.index) = (None, None);
        Ok(())
    }

    fn get(&mut self, table: super::Table, key: &[u8], see: &mut dyn FnMut(&[u8])) -> Result<bool, Error> {
        let value = self.table(table)?.get(key)?;
        Ok(value.map(|value| see(value.value())).is_some())
    }

    fn scan(
        &mut self,
        table: super::Table,
        direction: Direction,
        see: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<u64, Error> {
        let mut pairs = self.table(table)?.iter()?;
        let mut count = 0;
        loop {
            let pair = match direction {
                Direction::Forward => pairs.next(),
                Direction::Reverse => pairs.next_back(),
            };
            let Some(pair) = pair else { return Ok(count) };
            let (key, value) = pair?;
            see(key.value(), value.value());
            count += 1;
        }
    }
}

struct RedbWriter<'a> {
    redb: &'a Redb,
}

impl Writer for RedbWriter<'_> {
    fn commit(&mut self, changes: &[Change<'_>], wait: Wait) -> Result<(), Error> {
        let mut transaction = self.redb.database.begin_write()?;
        if wait == Wait::No {
            transaction.set_durability(Durability::None)?;
        }
        let mut documents = transaction.open_table(DOCUMENTS)?;
        let mut index = transaction.open_table(INDEX)?;
        for change in changes {
            match *change {
                Change::Put(super::Table::Documents, key, value) => _ = documents.insert(key, value)?,
                Change::Put(super::Table::Index, key, value) => _ = index.insert(key, value)?,
                Change::Delete(super::Table::Documents, key) => _ = documents.remove(key)?,
                Change::Delete(super::Table::Index, key) => _ = index.remove(key)?,
            }
        }
        drop((documents, index));
        Ok(transaction.commit()?)
    }
}
