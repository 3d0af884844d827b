//! `pando demo`: a small store to look at.
//!
//! It is written the way a replica set's primary writes: each document goes with its index entry and its oplog entry into
//! one unit of work at the entry's timestamp. The checkpoint at the end covers all of it.

use crate::error::Result;
use crate::store;
use pando_base::Timestamp;
use pando_env::Env;
use pando_storage::{
    CheckpointKind, Engine, IndexFormat, NoReplication, OplogRecordStore, RecordIdKind, RecordStore, RecoveryUnit,
    SortedData, TableOptions, WriteUnitOfWork,
};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

const TABLE: &str = "people";
const INDEX: &str = "people.by_town";
const TOWNS: [&str; 5] = ["Fish Lake", "Koosharem", "Loa", "Richfield", "Salina"];

pub fn run(env: &Env, directory: &Path, documents: u32, out: &mut dyn Write) -> Result<()> {
    let engine = store::create(env, directory)?;
    let seconds = u32::try_from(env.clock().wall_ms() / 1000).unwrap_or(u32::MAX);
    fill(&engine, seconds, documents)?;
    engine.shut_down()?;
    let place = directory.display();
    writeln!(out, "{place} now has {documents} documents, an index and an oplog. Have a look:")?;
    Ok(writeln!(out, "    pando inspect --data-directory {place}")?)
}

/// Writes documents with timestamps of one second, and checkpoints them.
pub fn fill(engine: &Arc<dyn Engine>, seconds: u32, documents: u32) -> pando_storage::Result<()> {
    let long = RecordIdKind::Long;
    let replicated = TableOptions { replicated: true, ..TableOptions::default() };
    let people = RecordStore::new(engine.clone(), engine.create_table(TABLE, &replicated)?, long);
    let index_options = SortedData::table_options(IndexFormat::Standard, long, true);
    let index_table = engine.create_table(INDEX, &index_options)?;
    let by_town = SortedData::new(engine.clone(), index_table, IndexFormat::Standard, long);
    let oplog = OplogRecordStore::new(engine.clone())?;
    let mut unit = RecoveryUnit::new(engine.clone(), Arc::new(NoReplication));
    for (number, town) in (1..=documents).zip(TOWNS.iter().cycle()) {
        let timestamp = Timestamp::new(seconds, number);
        let document = format!("{{ number: {number}, town: '{town}' }}");
        let entry = format!("{{ op: 'i', ns: 'demo.people', o: {document} }}");
        let slot = engine.reserve_slot(timestamp)?;
        let mut work = WriteUnitOfWork::begin(&mut unit);
        work.set_timestamp(timestamp)?;
        work.hold_slot(slot)?;
        let id = people.insert(&mut work, document.as_bytes())?;
        by_town.insert(&mut work, format!("{town}\0").as_bytes(), &id, &[], true)?;
        oplog.insert(&mut work, timestamp, entry.as_bytes())?;
        work.commit()?;
    }
    engine.flush_log()?;
    let newest = Timestamp::new(seconds, documents);
    engine.set_initial_data(newest);
    engine.set_stable(newest)?;
    engine.checkpoint(CheckpointKind::Automatic)?;
    Ok(())
}
