//! Reading everything an engine has.

use super::model::Rows;
use bytes::Bytes;
use pando_base::Timestamp;
use pando_storage::{BeginOptions, Engine, ReadAt, Result, TableSize};
use std::collections::BTreeMap;

/// Everything that can be seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sight {
    pub tables: BTreeMap<String, (Rows, TableSize)>,
    pub oplog: BTreeMap<Timestamp, Bytes>,
}

/// Rows of a table at a timestamp, or the newest.
pub fn rows_of(engine: &dyn Engine, ident: &str, read: ReadAt) -> Result<Rows> {
    let table = engine.open_table(ident)?;
    let transaction = engine.begin(BeginOptions { read, ..BeginOptions::default() })?;
    let mut cursor = transaction.cursor(&table)?;
    let mut rows = Rows::new();
    while let Some(entry) = cursor.next()? {
        assert!(rows.insert(entry.key.to_vec(), entry.value.to_vec()).is_none(), "a key twice in {ident}");
    }
    Ok(rows)
}

/// Reads all tables and the oplog.
pub fn see(engine: &dyn Engine) -> Result<Sight> {
    let mut sight = Sight::default();
    for ident in engine.idents() {
        let table = engine.open_table(&ident)?;
        let rows = rows_of(engine, &ident, ReadAt::Latest)?;
        sight.tables.insert(ident, (rows, engine.table_size(&table)?));
    }
    sight.oplog = see_oplog(engine)?;
    Ok(sight)
}

/// Reads the oplog both ways; they must agree where there is no hole.
pub fn see_oplog(engine: &dyn Engine) -> Result<BTreeMap<Timestamp, Bytes>> {
    let mut entries = BTreeMap::new();
    let Some(oplog) = engine.oplog() else { return Ok(entries) };
    let mut forward = oplog.forward()?;
    while let Some(entry) = forward.next()? {
        let newest = entries.last_key_value().map_or(Timestamp::NONE, |(last, _)| *last);
        assert!(entry.timestamp > newest, "the oplog goes back from {newest} to {}", entry.timestamp);
        entries.insert(entry.timestamp, entry.entry);
    }
    let mut backward = oplog.backward()?;
    let mut expected = entries.iter().rev();
    while let Some(entry) = backward.next()? {
        if entry.timestamp > oplog.visible() {
            continue;
        }
        let (timestamp, bytes) = expected.next().expect("backward has no more than forward");
        assert_eq!((timestamp, bytes), (&entry.timestamp, &entry.entry), "backward differs from forward");
    }
    assert!(expected.next().is_none(), "backward has less than forward");
    Ok(entries)
}
