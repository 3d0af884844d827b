//! Bit rot: a flipped byte anywhere in a store is named with its file, or changes nothing; it is never returned as data and
//! never panics. What salvage makes of the store then has everything but the damaged block.
//!
//! Every byte of the small files and a sample of the large ones is flipped, each in a copy of the machine. The sweep over a
//! store that was shut down tolerates no silence at all. After a power cut one thing cannot be told from a torn write: damage
//! in what the very last flush, or the very last edit of the manifest, wrote. There the state before it may come back.

#[path = "support/mod.rs"]
mod support;
#[path = "support/world/mod.rs"]
mod world;

use pando_base::Timestamp;
use pando_engine::{DurableEngine, EngineOptions, Heir, Mode, salvage};
use pando_env::simulated::Simulation;
use pando_storage::{
    BeginOptions, CheckpointKind, Durability, Engine, LogPosition, Maintenance, ReadAt, Result, StorageError,
    TableOptions, TableRegistry, TableSize, TimestampControl, TransactionSource,
};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use world::observe::{Sight, rows_of, see, see_oplog};
use world::{Chance, DIRECTORY, open};

/// A table with redo, one that is replicated, and one with values larger than a block.
const TABLES: [(&str, bool, usize); 3] = [("logged", false, 260), ("replicated", true, 180), ("large", false, 30_000)];
const ROUNDS: u64 = 3;

fn options() -> EngineOptions {
    EngineOptions { log_segment_bytes: 64 << 10, ..EngineOptions::stepped(Mode::ReplicaSet) }
}

/// A store and everything that it ever held.
struct Store {
    simulation: Simulation,
    engine: Option<Arc<DurableEngine>>,
    chance: Chance,
    newest: u64,
    /// Every value that a key ever had.
    values: BTreeMap<(String, Vec<u8>), BTreeSet<Vec<u8>>>,
    /// What could be seen after each commit and each checkpoint.
    sights: Vec<Sight>,
    /// What was durable before the last flush, and how long the manifest was before its last edit.
    before_last_flush: LogPosition,
    manifest_before: usize,
}

impl Store {
    fn new() -> Store {
        let simulation = Simulation::new(3);
        let engine = open(&simulation, &options()).expect("a new store");
        engine.set_initial_data(Timestamp(1));
        for (ident, replicated, _) in TABLES {
            engine.create_table(ident, &TableOptions { replicated, ..TableOptions::default() }).expect("a table");
        }
        let mut store = Store {
            simulation,
            engine: Some(engine),
            chance: Chance::new(11),
            newest: 1,
            values: BTreeMap::new(),
            sights: Vec::new(),
            before_last_flush: LogPosition::default(),
            manifest_before: 0,
        };
        for round in 0..ROUNDS {
            store.write_round(round).expect("a round of writes");
            store.manifest_before = store.manifest_bytes();
            store.engine().checkpoint(CheckpointKind::Automatic).expect("a checkpoint");
            store.look();
        }
        store
    }

    fn engine(&self) -> &DurableEngine {
        self.engine.as_ref().expect("it is open")
    }

    fn look(&mut self) {
        self.sights.push(see(self.engine()).expect("everything"));
    }

    fn manifest_bytes(&self) -> usize {
        let disk = self.simulation.disk();
        let manifests = disk.files().into_iter().filter(|path| kind(path) == Kind::Manifest);
        manifests.filter_map(|path| disk.contents(&path)).map(|bytes| bytes.len()).max().unwrap_or(0)
    }

    /// New rows, changed rows, deleted rows, a deleted range; all at timestamps, each with its oplog entry.
    fn write_round(&mut self, round: u64) -> Result<()> {
        for (ident, _, length) in TABLES {
            let count = if length > 1000 { 6 } else { 600 };
            for batch in 0..4 {
                let keys: Vec<u64> =
                    (0..count).filter(|key| key % 4 == batch && (round == 0 || key % 3 == 0)).collect();
                self.write_batch(ident, &keys, length)?;
            }
        }
        self.truncate("logged", round)?;
        self.before_last_flush = self.engine().flush_log()?;
        self.engine().set_stable(Timestamp(self.newest))?;
        self.engine().set_oldest(Timestamp(self.newest.saturating_sub(4).max(1)), false)
    }

    fn write_batch(&mut self, ident: &str, keys: &[u64], length: usize) -> Result<()> {
        self.newest += 1;
        let timestamp = Timestamp(self.newest);
        let engine = self.engine.clone().expect("it is open");
        let table = engine.open_table(ident)?;
        let mut transaction = engine.begin(BeginOptions::default())?;
        transaction.set_commit_timestamp(timestamp)?;
        for key in keys {
            let key = format!("key {key:06}").into_bytes();
            let before = transaction.get(&table, &key)?.map_or(0, |value| value.len() as i64);
            let records = i64::from(before == 0);
            let value: Vec<u8> = (0..length).map(|_| self.chance.next() as u8).collect();
            if before > 0 && self.chance.one_in(8) {
                transaction.delete(&table, &key)?;
                transaction.adjust_size(&table, TableSize::new(-1, -before))?;
                continue;
            }
            transaction.put(&table, &key, &value)?;
            transaction.adjust_size(&table, TableSize::new(records, value.len() as i64 - before))?;
            self.values.entry((ident.to_owned(), key)).or_default().insert(value);
        }
        transaction.append_oplog(timestamp, format!("batch at {timestamp}").as_bytes())?;
        transaction.commit()?;
        self.look();
        Ok(())
    }

    fn truncate(&mut self, ident: &str, round: u64) -> Result<()> {
        let engine = self.engine.clone().expect("it is open");
        let table = engine.open_table(ident)?;
        let mut transaction = engine.begin(BeginOptions::default())?;
        let (start, end) = (format!("key {:06}", 40 + round * 20), format!("key {:06}", 46 + round * 20));
        let rows = rows_of(&*engine, ident, ReadAt::Latest)?;
        for value in rows.range(start.clone().into_bytes()..end.clone().into_bytes()).map(|(_, value)| value) {
            transaction.adjust_size(&table, TableSize::new(-1, -(value.len() as i64)))?;
        }
        transaction.truncate(&table, start.as_bytes(), Some(end.as_bytes()))?;
        transaction.commit()?;
        self.look();
        Ok(())
    }

    /// Ends in good order.
    fn shut_down(mut self) -> Store {
        self.before_last_flush = self.engine().log_end();
        self.engine.take().expect("it is open").shut_down().expect("a shutdown");
        self.simulation.kill();
        self
    }

    /// A last flush, and then the process is gone.
    fn die(mut self) -> Store {
        let keys: Vec<u64> = (0..40).collect();
        self.write_batch("logged", &keys, 200).expect("writes");
        self.before_last_flush = self.engine().flush_log().expect("a flush");
        self.write_batch("logged", &keys, 200).expect("writes");
        self.write_batch("replicated", &keys, 200).expect("writes");
        self.engine().flush_log().expect("a flush");
        self.engine = None;
        self.simulation.kill();
        // What a sound start makes of it.
        let fork = self.simulation.fork(1);
        let engine = open(&fork, &options()).expect("the store opens");
        self.sights.push(see(&*engine).expect("everything"));
        self
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
enum Kind {
    Run,
    Manifest,
    Pointer,
    Log,
    Other,
}

fn kind(path: &Path) -> Kind {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("log") => Kind::Log,
        _ if name.starts_with("MANIFEST") => Kind::Manifest,
        _ if name == "CURRENT" => Kind::Pointer,
        _ if name == pando_env::LOCK_FILE_NAME => Kind::Other,
        _ => Kind::Run,
    }
}

/// The places to flip: all of the small files, a sample of the large ones.
fn places(store: &Store, most_per_file: u64) -> Vec<(PathBuf, u64)> {
    let mut places = Vec::new();
    for path in store.simulation.disk().files() {
        let length = store.simulation.disk().contents(&path).map_or(0, |bytes| bytes.len() as u64);
        let step = length.div_ceil(most_per_file).max(1);
        // An odd stride, so that a sample does not stick to one place of aligned things.
        let step = if step > 1 { step | 1 } else { 1 };
        places.extend((0..length).step_by(step as usize).map(|offset| (path.clone(), offset)));
    }
    places
}

/// Why a flip was noticed, or what could be seen.
enum Verdict {
    Named,
    Seen(Sight),
}

/// The error must name the damaged file, and a place at or before the damage.
fn named(error: &StorageError, path: &Path, offset: u64) {
    match error {
        StorageError::Corruption { file, offset: at, .. } => {
            assert_eq!(Path::new(file), path, "another file is named: {error}");
            assert!(*at <= offset, "a place after the damage is named: {error}");
        }
        other => panic!("not named as corruption: {other}"),
    }
}

/// Opens, reads and verifies a copy of the store with the byte flipped.
fn examine(store: &Store, path: &Path, offset: u64) -> Verdict {
    let fork = store.simulation.fork(offset);
    fork.disk().flip_byte(path, offset).expect("a byte");
    let engine = match open(&fork, &options()) {
        Ok(engine) => engine,
        Err(error) => {
            named(&error, path, offset);
            return Verdict::Named;
        }
    };
    let mut noticed = false;
    let mut notice = |error: StorageError| {
        named(&error, path, offset);
        noticed = true;
    };
    let mut sight = Sight::default();
    for ident in engine.idents() {
        let size = engine.table_size(&engine.open_table(&ident).expect("a table")).expect("a size");
        match rows_of(&*engine, &ident, ReadAt::Latest) {
            Ok(rows) => _ = sight.tables.insert(ident.clone(), (rows, size)),
            Err(error) => notice(error),
        }
    }
    match see_oplog(&*engine) {
        Ok(entries) => sight.oplog = entries,
        Err(error) => notice(error),
    }
    match check_gets(&*engine, store) {
        Ok(()) => {}
        Err(error) => notice(error),
    }
    let report = engine.verify().expect("verification goes on after damage");
    for damage in &report.damage {
        assert_eq!(Path::new(&damage.file), path, "another file is blamed: {damage:?}");
        assert!(damage.offset <= offset, "a place after the damage: {damage:?}");
        noticed = true;
    }
    if noticed {
        // What could be read all the same must be what was there.
        let sound = store.sights.last().expect("a sight");
        for (ident, found) in &sight.tables {
            assert!(Some(found) == sound.tables.get(ident), "{ident} has other data, and something else was named");
        }
        return Verdict::Named;
    }
    Verdict::Seen(sight)
}

/// Single reads, which go through filters: each gives a value that the key once had, or none where that may be.
fn check_gets(engine: &dyn Engine, store: &Store) -> Result<()> {
    let sound = store.sights.last().expect("a sight");
    let transaction = engine.begin(BeginOptions::default())?;
    for (ident, (rows, _)) in &sound.tables {
        let table = engine.open_table(ident)?;
        for (key, _) in rows.iter().step_by(5) {
            if let Some(value) = transaction.get(&table, key)? {
                let known = store.values.get(&(ident.clone(), key.clone()));
                assert!(known.is_some_and(|known| known.contains(&value[..])), "a value that was never written");
            }
        }
        assert_eq!(transaction.get(&table, b"no such key")?, None);
    }
    Ok(())
}

/// Plays one flip; a panic says which.
fn play(store: &Store, path: &Path, offset: u64) -> Verdict {
    catch_unwind(AssertUnwindSafe(|| examine(store, path, offset))).unwrap_or_else(|panic| {
        eprintln!("flipped: {} at {offset}", path.display());
        std::panic::resume_unwind(panic)
    })
}

#[test]
fn x20_every_flipped_byte_of_a_store_at_rest_is_named() {
    let store = Store::new().shut_down();
    let mut flips: BTreeMap<Kind, usize> = BTreeMap::new();
    for (path, offset) in places(&store, support::seeds(500).min(3000)) {
        if kind(&path) == Kind::Other {
            continue;
        }
        *flips.entry(kind(&path)).or_default() += 1;
        match play(&store, &path, offset) {
            Verdict::Named => {}
            Verdict::Seen(sight) if is_summary(&store, &path, offset) => {
                assert!(Some(&sight) == store.sights.last(), "{} at {offset}: other data", path.display());
            }
            Verdict::Seen(_) => panic!("{} at {offset}: nobody noticed", path.display()),
        }
    }
    assert!(flips.len() == 4, "every kind of file was damaged: {flips:?}");
}

/// Bytes that a start does without and replaces: one of the two records of the manifest's synced length (the other one
/// holds), and the index and seal behind the last commit of the log (which is then read as after a crash).
fn is_summary(store: &Store, path: &Path, offset: u64) -> bool {
    match kind(path) {
        Kind::Manifest => (512..1536).contains(&offset),
        Kind::Log => is_tail(store, path, offset),
        _ => false,
    }
}

#[test]
fn x20_a_flipped_byte_after_a_crash_is_named_or_looks_torn() {
    let store = Store::new().die();
    let sound = store.sights.last().expect("a sight").clone();
    for (path, offset) in places(&store, support::seeds(300).min(3000)) {
        let Verdict::Seen(sight) = play(&store, &path, offset) else { continue };
        if sight == sound {
            continue;
        }
        assert!(is_tail(&store, &path, offset), "{} at {offset}: other data, and nobody noticed", path.display());
        assert!(is_past(&store, &sight), "{} at {offset}: a state that never was", path.display());
    }
}

/// What the last flush or the last edit wrote: nothing on disk says that it was ever acknowledged.
fn is_tail(store: &Store, path: &Path, offset: u64) -> bool {
    match kind(path) {
        Kind::Log => {
            path.ends_with(format!("{:010}.log", store.before_last_flush.segment))
                && offset >= store.before_last_flush.offset
        }
        Kind::Manifest => offset as usize >= store.manifest_before,
        _ => false,
    }
}

/// Each table is as it once was, the oplog is a beginning of what it is.
fn is_past(store: &Store, sight: &Sight) -> bool {
    let once = |ident: &String, found| store.sights.iter().any(|sight| sight.tables.get(ident) == Some(found));
    let sound = store.sights.last().expect("a sight");
    sight.tables.iter().all(|(ident, found)| once(ident, found))
        && sight.oplog.iter().all(|(timestamp, entry)| sound.oplog.get(timestamp) == Some(entry))
}

/// Salvages a copy of the store with the byte flipped; how many rows are missing or older than they were.
fn lost_by_salvage(store: &Store, path: &Path, offset: u64) -> usize {
    let fork = store.simulation.fork(offset);
    fork.disk().flip_byte(path, offset).expect("a byte");
    let target = Path::new("/saved");
    let report = salvage(&fork.env(), Path::new(DIRECTORY), target, Heir::Member).expect("salvage");
    let engine = DurableEngine::open(&fork.env(), target, options()).expect("the salvaged store opens");
    let verified = engine.verify().expect("verification");
    assert!(verified.damage.is_empty(), "the salvaged store is damaged: {:?}", verified.damage);
    let found = see(&*engine).expect("the salvaged store is whole");
    let sound = store.sights.last().expect("a sight");
    let mut lost = 0;
    for (ident, (rows, _)) in &sound.tables {
        let Some((saved, _)) = found.tables.get(ident) else { panic!("table {ident} is lost") };
        for (key, value) in saved {
            let known = store.values.get(&(ident.clone(), key.clone()));
            assert!(known.is_some_and(|known| known.contains(value)), "salvage made up a value of {ident}");
        }
        let keys: BTreeSet<&Vec<u8>> = rows.keys().chain(saved.keys()).collect();
        lost += keys.into_iter().filter(|key| rows.get(*key) != saved.get(*key)).count();
    }
    lost += sound.oplog.iter().filter(|(timestamp, entry)| found.oplog.get(timestamp) != Some(entry)).count();
    assert!(lost == 0 || !report.damage.is_empty(), "something is lost and nothing is reported");
    lost
}

#[test]
fn x16_x20_salvage_after_a_flipped_byte_keeps_all_other_blocks() {
    let store = Store::new().shut_down();
    // Rows that share a block of the base, or a record of the log, with the damaged byte, of 1,200.
    const LOST_MAX: usize = 40;
    for (path, offset) in places(&store, support::seeds(25).min(300)) {
        let lost = catch_unwind(AssertUnwindSafe(|| lost_by_salvage(&store, &path, offset))).unwrap_or_else(|panic| {
            eprintln!("flipped: {} at {offset}", path.display());
            std::panic::resume_unwind(panic)
        });
        let most = if matches!(kind(&path), Kind::Run | Kind::Log) { LOST_MAX } else { 0 };
        assert!(lost <= most, "{} at {offset}: {lost} rows are lost", path.display());
    }
}
