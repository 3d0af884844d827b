//! Everything that can be seen of an engine at one moment.

use super::operation::key;
use bytes::Bytes;
use pando_base::Timestamp;
use pando_storage::*;

/// What was seen. Two engines are equal if these are.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Observation {
    /// Told first, since it says most about a crash: names and values of everything but the tables' contents.
    pub facts: Vec<(String, String)>,
    /// Each table at each read point.
    pub contents: Vec<(String, Pairs)>,
}

type Pairs = std::result::Result<Vec<(Vec<u8>, Bytes)>, String>;

/// Sees names, sizes, timestamps and the oplog.
pub fn observe_facts(engine: &dyn Engine) -> Observation {
    let mut facts = Vec::new();
    let timestamps = engine.timestamps();
    for ident in engine.idents() {
        let fact = match engine.open_table(&ident) {
            Ok(table) => {
                let size = engine.table_size(&table);
                // Without a stable timestamp it is not said what is stable.
                let stable_size = timestamps.stable.is_some().then(|| engine.stable_table_size(&table));
                format!("{:?}, size {size:?}, stable {stable_size:?}", table.options())
            }
            Err(error) => format!("{error:?}"),
        };
        facts.push((format!("table {ident}"), fact));
    }
    facts.push(("timestamps".into(), format!("{timestamps:?}")));
    if let Some(oplog) = engine.oplog() {
        facts.push(("oplog forward".into(), format!("{:?}", walk(oplog.forward()))));
        facts.push(("oplog backward".into(), format!("{:?}", walk(oplog.backward()))));
        facts.push(("oplog ends".into(), format!("{:?} {:?}", oplog.first(), oplog.last())));
        facts.push(("oplog visible".into(), format!("{:?}", oplog.visible())));
        facts.push(("oplog size".into(), format!("{:?}", oplog.size())));
    }
    Observation { facts, contents: Vec::new() }
}

/// Sees all that, and the tables at these read points.
pub fn observe(engine: &dyn Engine, points: &[ReadAt], keys: u8) -> Observation {
    let mut observation = observe_facts(engine);
    for ident in engine.idents() {
        let Ok(table) = engine.open_table(&ident) else { continue };
        for point in points {
            let pairs = pairs_at(engine, &table, *point, keys);
            observation.contents.push((format!("{ident} at {point:?}"), pairs));
        }
        let committed = engine.committed_cursor(&table).and_then(|mut cursor| forward(&mut *cursor));
        observation.contents.push((format!("{ident} as committed"), committed.map_err(|error| format!("{error:?}"))));
    }
    observation
}

/// The first difference, in words.
pub fn difference(expected: &Observation, found: &Observation) -> Option<String> {
    for (place, (name, value)) in expected.facts.iter().enumerate() {
        match found.facts.get(place) {
            Some((_, other)) if other == value && found.facts[place].0 == *name => {}
            other => return Some(format!("{name}: expected {value}\n  found {other:?}")),
        }
    }
    if let Some(more) = found.facts.get(expected.facts.len()) {
        return Some(format!("not expected: {more:?}"));
    }
    for ((name, pairs), (_, other)) in expected.contents.iter().zip(&found.contents) {
        if pairs != other {
            return Some(format!("{name}: {}", pairs_difference(pairs, other)));
        }
    }
    (expected.contents.len() != found.contents.len()).then(|| "another number of tables".into())
}

fn pairs_difference(expected: &Pairs, found: &Pairs) -> String {
    let (Ok(expected), Ok(found)) = (expected, found) else {
        return format!("expected {expected:?}\n  found {found:?}");
    };
    let missing: Vec<_> = expected.iter().filter(|pair| !found.contains(pair)).collect();
    let surplus: Vec<_> = found.iter().filter(|pair| !expected.contains(pair)).collect();
    format!("missing {missing:?}\n  not expected {surplus:?}")
}

fn walk(cursor: Result<Box<dyn OplogCursor>>) -> Result<Vec<(Timestamp, Bytes)>> {
    let mut cursor = cursor?;
    let mut entries = Vec::new();
    while let Some(entry) = cursor.next()? {
        entries.push((entry.timestamp, entry.entry));
    }
    Ok(entries)
}

/// Reads a table in three ways, which must agree.
fn pairs_at(engine: &dyn Engine, table: &Table, read: ReadAt, keys: u8) -> Pairs {
    let read_all = || -> Result<Pairs> {
        let options = BeginOptions { read, prepare: PrepareBehaviour::Ignore, ..BeginOptions::default() };
        let transaction = engine.begin(options)?;
        let mut cursor = transaction.cursor(table)?;
        let pairs = forward(&mut *cursor)?;
        let mut reversed = backward(&mut *cursor)?;
        reversed.reverse();
        if reversed != pairs {
            return Ok(Err(format!("forward {pairs:?}, backward {reversed:?}")));
        }
        for key in (0..keys).map(key) {
            let got = transaction.get(table, &key)?;
            let walked = pairs.iter().find(|(other, _)| *other == key).map(|(_, value)| value.clone());
            if got != walked {
                return Ok(Err(format!("get of {key:?} gives {got:?}, a walk {walked:?}")));
            }
        }
        Ok(Ok(pairs))
    };
    read_all().unwrap_or_else(|error| Err(format!("{error:?}")))
}

fn forward(cursor: &mut dyn Cursor) -> Result<Vec<(Vec<u8>, Bytes)>> {
    let mut pairs = Vec::new();
    let mut entry = cursor.first()?;
    while let Some(Entry { key, value }) = entry {
        pairs.push((key.to_vec(), Bytes::copy_from_slice(value)));
        entry = cursor.next()?;
    }
    Ok(pairs)
}

fn backward(cursor: &mut dyn Cursor) -> Result<Vec<(Vec<u8>, Bytes)>> {
    let mut pairs = Vec::new();
    let mut entry = cursor.last()?;
    while let Some(Entry { key, value }) = entry {
        pairs.push((key.to_vec(), Bytes::copy_from_slice(value)));
        entry = cursor.previous()?;
    }
    Ok(pairs)
}
