//! Looking without touching, copying, taking in and saving: on a simulated disk whose every byte can be compared.

#![allow(clippy::unwrap_used)]

mod support;

use pando_base::Timestamp;
use pando_engine::{DurableEngine, EngineOptions, Heir, salvage};
use pando_storage::conformance::{EngineFactory, Mode};
use pando_storage::{
    BackupOptions, BeginOptions, CheckpointKind, DamagedPart, Engine, Result, Statistic, StorageError, Table,
    TableOptions, TableSize,
};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use support::{DIRECTORY, SimulatedStore, engine_mode, seeds};

type Contents = BTreeMap<PathBuf, Vec<u8>>;
type Pairs = BTreeMap<String, String>;

/// Every file below a directory.
fn files(store: &SimulatedStore, below: &str) -> Contents {
    let machine = store.machine();
    let paths = machine.disk().files().into_iter().filter(|path| path.starts_with(below));
    paths.filter_map(|path| machine.disk().contents(&path).map(|bytes| (path, bytes))).collect()
}

fn open_read_only(store: &SimulatedStore, mode: Mode) -> Result<Arc<dyn Engine>> {
    let options = EngineOptions { read_only: true, ..EngineOptions::stepped(engine_mode(mode)) };
    Ok(DurableEngine::open(&store.env(), Path::new(DIRECTORY), options)?)
}

fn open_at(store: &SimulatedStore, directory: &Path, mode: Mode) -> Result<Arc<dyn Engine>> {
    Ok(DurableEngine::open(&store.env(), directory, EngineOptions::stepped(engine_mode(mode)))?)
}

fn put(engine: &dyn Engine, table: &Table, key: &str, value: &str, timestamp: u64) -> Result<()> {
    let mut transaction = engine.begin(BeginOptions::default())?;
    if timestamp > 0 {
        transaction.set_commit_timestamp(Timestamp(timestamp))?;
        if engine.oplog().is_some() {
            transaction.append_oplog(Timestamp(timestamp), key.as_bytes())?;
        }
    }
    transaction.put(table, key.as_bytes(), value.as_bytes())?;
    transaction.adjust_size(table, TableSize::new(1, value.len() as i64))?;
    transaction.commit().map(drop)
}

fn dump(engine: &dyn Engine, ident: &str) -> Result<Pairs> {
    let table = engine.open_table(ident)?;
    let mut cursor = engine.committed_cursor(&table)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut pairs = Pairs::new();
    let mut entry = cursor.first()?;
    while let Some(pair) = entry {
        pairs.insert(text(pair.key), text(pair.value));
        entry = cursor.next()?;
    }
    Ok(pairs)
}

fn replicated() -> TableOptions {
    TableOptions { replicated: true, ..TableOptions::default() }
}

/// A value that can be told from its key, and does not compress away.
fn value_of(key: &str) -> String {
    let mut state = key.bytes().fold(7u64, |state, byte| state.wrapping_mul(0x100_0000_01b3) ^ u64::from(byte));
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        format!("{:08x}", state >> 32)
    };
    (0..12).map(|_| next()).collect()
}

fn is_illegal<T>(result: Result<T>) -> bool {
    matches!(result, Err(StorageError::IllegalOperation(text)) if text.contains("reading only"))
}

/// A checkpoint, then writes that only the log has, then the end of the process.
fn killed_store(mode: Mode) -> SimulatedStore {
    killed_store_with_history(mode, None)
}

/// The same; what it has of before the oldest time has no history.
fn killed_store_with_history(mode: Mode, oldest: Option<u64>) -> SimulatedStore {
    let store = SimulatedStore::new(mode);
    let engine = store.open();
    let local = engine.create_table("local", &TableOptions::default()).unwrap();
    let documents = engine.create_table("documents", &replicated()).unwrap();
    for number in 1..=50 {
        put(&*engine, &documents, &format!("{number:03}"), "x", number).unwrap();
        put(&*engine, &local, &format!("{number:03}"), "x", 0).unwrap();
    }
    engine.set_initial_data(Timestamp(20));
    engine.set_stable(Timestamp(20)).unwrap();
    if let Some(oldest) = oldest {
        engine.set_oldest(Timestamp(oldest), false).unwrap();
    }
    engine.checkpoint(CheckpointKind::Automatic).unwrap();
    put(&*engine, &local, "late", "x", 0).unwrap();
    engine.flush_log().unwrap();
    drop((engine, local, documents));
    store.machine().kill();
    store
}

#[test]
fn x19_a_read_only_engine_shows_all_and_changes_nothing() {
    for (mode, other) in [(Mode::ReplicaSet, Mode::StandAlone), (Mode::StandAlone, Mode::ReplicaSet)] {
        let store = killed_store(mode);
        store.machine().disk().plant(Path::new("/data/base/00000000000000ff.run"), b"left over").unwrap();
        let before = files(&store, DIRECTORY);
        let engine = open_read_only(&store, other).unwrap();
        assert_eq!(dump(&*engine, "local").unwrap().len(), 51);
        let documents = if mode == Mode::ReplicaSet { 20 } else { 50 };
        assert_eq!(dump(&*engine, "documents").unwrap().len(), documents);
        assert_eq!(engine.oplog().is_some(), mode == Mode::ReplicaSet, "the mode is the store's own");
        if let Some(oplog) = engine.oplog() {
            assert_eq!(oplog.last(), Some(Timestamp(50)));
            assert_eq!(oplog.size().records, 50);
        }
        refuses_every_write(&*engine);
        assert_eq!(engine.verify().unwrap().damage, []);
        engine.shut_down().unwrap();
        drop(engine);
        assert!(before == files(&store, DIRECTORY), "a file was changed");
        assert_eq!(dump(&*store.open(), "local").unwrap().len(), 51);
    }
}

#[test]
fn x17_a_member_s_directory_is_stand_alone_only_once_nothing_is_in_the_oplog_alone() {
    let alone = |store: &SimulatedStore| open_at(store, Path::new(DIRECTORY), Mode::StandAlone);
    let refused = |store: &SimulatedStore| matches!(alone(store), Err(StorageError::OplogNotApplied(_)));
    // Writes after the stable timestamp are in no checkpoint.
    let store = killed_store(Mode::ReplicaSet);
    assert!(refused(&store));
    let engine = store.open();
    assert_eq!(engine.oplog().and_then(|oplog| oplog.last()), Some(Timestamp(50)), "nothing was lost by the refusal");
    // A full checkpoint has everything, until something is written after it.
    engine.set_initial_data(Timestamp::NONE);
    engine.checkpoint(CheckpointKind::Full).unwrap();
    let documents = engine.open_table("documents").unwrap();
    put(&*engine, &documents, "060", "x", 60).unwrap();
    engine.flush_log().unwrap();
    drop((engine, documents));
    store.machine().kill();
    assert!(refused(&store));
    let engine = store.open();
    engine.set_initial_data(Timestamp::NONE);
    engine.checkpoint(CheckpointKind::Full).unwrap();
    engine.shut_down().unwrap();
    drop(engine);
    let engine = alone(&store).unwrap();
    assert!(engine.oplog().is_none());
    assert!(dump(&*engine, "documents").unwrap().len() >= 20);
}

fn refuses_every_write(engine: &dyn Engine) {
    let table = engine.open_table("local").unwrap();
    assert!(is_illegal(put(engine, &table, "new", "x", 0)));
    assert!(is_illegal(engine.create_table("new", &TableOptions::default())));
    assert!(is_illegal(engine.drop_table("local")));
    assert!(is_illegal(engine.set_table_size(&table, TableSize::default())));
    assert!(is_illegal(engine.bulk_load(&table)));
    assert!(is_illegal(engine.checkpoint(CheckpointKind::Full)));
    assert!(is_illegal(engine.checkpoint(CheckpointKind::Automatic)));
    assert!(is_illegal(engine.flush_log()));
    assert!(is_illegal(engine.roll_back_to_stable()));
    assert!(is_illegal(engine.maintain()));
    assert!(is_illegal(engine.begin_backup(&BackupOptions::default())));
    assert!(is_illegal(engine.import(Path::new("/elsewhere"), &|_| None)));
    if let Some(oplog) = engine.oplog() {
        assert!(is_illegal(oplog.truncate_after(Timestamp(1), false)));
        assert!(is_illegal(oplog.reset()));
        assert!(is_illegal(oplog.truncate_old()));
    }
    // A transaction that only reads ends well, and has nothing to wait for.
    let position = engine.begin(BeginOptions::default()).unwrap().commit().unwrap().position;
    engine.wait_durable(position).block().unwrap();
}

#[test]
fn x19_a_read_only_engine_needs_a_store() {
    let store = SimulatedStore::new(Mode::StandAlone);
    assert!(matches!(open_read_only(&store, Mode::StandAlone), Err(StorageError::BadDirectory(_))));
    assert_eq!(files(&store, "/"), Contents::new());
}

#[test]
fn x19_a_read_only_engine_does_not_see_what_was_spilled_above_stable() {
    let store = SimulatedStore::new(Mode::ReplicaSet);
    let small = EngineOptions { memory_bytes: 4 << 20, ..EngineOptions::stepped(engine_mode(Mode::ReplicaSet)) };
    let engine: Arc<dyn Engine> = DurableEngine::open(&store.env(), Path::new(DIRECTORY), small).unwrap();
    let documents = engine.create_table("documents", &replicated()).unwrap();
    put(&*engine, &documents, "kept", "x", 5).unwrap();
    engine.set_initial_data(Timestamp(5));
    engine.set_stable(Timestamp(5)).unwrap();
    let spilled = |engine: &dyn Engine| {
        engine.statistics().0.get("checkpoint.spills").is_some_and(|figure| *figure != Statistic::Counter(0))
    };
    let value = "y".repeat(64 << 10);
    for number in 6.. {
        put(&*engine, &documents, "dead", &value, 2 * number).unwrap();
        put(&*engine, &documents, &format!("dead {number}"), &value, 2 * number + 1).unwrap();
        if spilled(&*engine) {
            break;
        }
        assert!(number < 1000, "nothing was spilled");
    }
    drop((engine, documents));
    store.machine().kill();
    let before = files(&store, DIRECTORY);
    let engine = open_read_only(&store, Mode::ReplicaSet).unwrap();
    assert_eq!(dump(&*engine, "documents").unwrap(), Pairs::from([("kept".into(), "x".into())]));
    assert_eq!(engine.verify().unwrap().damage, []);
    drop(engine);
    assert!(before == files(&store, DIRECTORY), "a file was changed");
}

#[test]
fn x19_a_store_that_was_not_shut_down_is_imported_with_its_log() {
    for mode in [Mode::ReplicaSet, Mode::StandAlone] {
        let store = killed_store(mode);
        let before = files(&store, DIRECTORY);
        let target = open_at(&store, Path::new("/target"), mode).unwrap();
        let imported = target.import(Path::new(DIRECTORY), &|ident| Some(format!("{ident}-2"))).unwrap();
        let sizes: BTreeMap<&str, i64> = imported
            .iter()
            .map(|imported| (imported.table.ident(), target.table_size(&imported.table).unwrap().records))
            .collect();
        let documents = if mode == Mode::ReplicaSet { 20 } else { 50 };
        assert_eq!(sizes, BTreeMap::from([("documents-2", documents), ("local-2", 51)]));
        assert!(before == files(&store, DIRECTORY), "the source was changed");
        let again = target.import(Path::new(DIRECTORY), &|ident| Some(format!("{ident}-2")));
        assert!(matches!(again, Err(StorageError::IdentExists(_))));
        drop((target, imported));
        store.crash();
        let target = open_at(&store, Path::new("/target"), mode).unwrap();
        assert_eq!(dump(&*target, "local-2").unwrap().len(), 51);
        assert_eq!(dump(&*target, "documents-2").unwrap().len() as i64, documents);
        assert_eq!(target.verify().unwrap().damage, []);
    }
}

#[test]
fn x19_named_backups_survive_restarts_and_leftovers_do_not() {
    let store = killed_store(Mode::ReplicaSet);
    let engine = store.open();
    let named = |name: &str, since: Option<&str>| BackupOptions {
        name: Some(name.to_owned()),
        since: since.map(str::to_owned),
        ..BackupOptions::default()
    };
    drop(engine.begin_backup(&named("monday", None)).unwrap());
    engine.shut_down().unwrap();
    drop(engine);
    let engine = store.open();
    let tuesday = engine.begin_backup(&named("tuesday", Some("monday"))).unwrap();
    assert!(tuesday.files().iter().any(|file| file.unchanged));
    assert!(!files(&store, "/data/backup").is_empty());
    // The power goes while the backup is running.
    std::mem::forget(tuesday);
    drop(engine);
    store.crash();
    let engine = store.open();
    assert_eq!(files(&store, "/data/backup"), Contents::new());
    let wednesday = engine.begin_backup(&named("wednesday", Some("tuesday"))).unwrap();
    assert!(wednesday.files().iter().any(|file| file.unchanged));
    assert!(engine.begin_backup(&named("thursday", Some("never"))).is_err());
}

#[test]
fn x24_one_table_is_verified_alone() {
    let (store, _) = store_to_damage(11);
    let engine = store.open();
    let tables = TABLES.map(|ident| engine.open_table(ident).unwrap());
    let damage = |table: &Table| engine.verify_table(table, &mut || true).unwrap().damage;
    assert!(tables.iter().all(|table| damage(table).is_empty()));
    let runs = files(&store, "/data/base").into_iter().filter(|(path, _)| path.to_string_lossy().ends_with(".run"));
    for (path, bytes) in runs {
        store.machine().disk().flip_byte(&path, bytes.len() as u64 / 3).unwrap();
    }
    let damaged: Vec<&str> =
        tables.iter().filter(|table| !damage(table).is_empty()).map(|table| table.ident()).collect();
    assert!(!damaged.is_empty() && damaged.len() < TABLES.len(), "{damaged:?}");
    for found in tables.iter().flat_map(damage) {
        assert!(found.ident.is_some_and(|ident| damaged.contains(&ident.as_str())));
    }
}

#[test]
fn x24_verification_of_a_table_ends_when_it_is_told_to() {
    let (store, _) = store_to_damage(11);
    let engine = store.open();
    for ident in TABLES {
        let table = engine.open_table(ident).unwrap();
        let (mut asked, mut limit) = (0, 0);
        engine.verify_table(&table, &mut || (asked += 1, true).1).unwrap();
        let all = std::mem::take(&mut asked);
        let report = engine.verify_table(&table, &mut || (limit += 1, false).1).unwrap();
        assert!(report.damage.is_empty(), "what was not counted is not missing: {report:?}");
        assert!(limit <= all && limit <= 1, "{limit} questions of {all}");
    }
}

#[test]
fn x16_without_a_manifest_the_runs_tell_from_where_on_the_oplog_counts() {
    check_oplog_start(None, 20);
    // What has no times any more tells nothing: all of the oplog is applied once more.
    check_oplog_start(Some(20), 1);
}

fn check_oplog_start(oldest: Option<u64>, expected: u64) {
    let store = killed_store_with_history(Mode::ReplicaSet, oldest);
    let is_guide = |path: &Path| path.to_string_lossy().contains("MANIFEST-") || path.ends_with("CURRENT");
    let guides: Vec<PathBuf> = files(&store, "/data/base").into_keys().filter(|path| is_guide(path)).collect();
    assert!(guides.len() >= 2);
    for path in guides {
        store.env().disk().remove(&path).unwrap();
    }
    let target = Path::new("/salvaged");
    let report = salvage(&store.env(), Path::new(DIRECTORY), target, Heir::Member).unwrap();
    assert_eq!(report.oplog_start, Some(Timestamp(expected)));
    assert!(report.damage.iter().any(|damage| damage.part == DamagedPart::Manifest), "{report:?}");
    let engine = open_at(&store, target, Mode::ReplicaSet).unwrap();
    assert_eq!(engine.timestamps().recovery, Timestamp(expected));
    assert_eq!((dump(&*engine, "documents").unwrap().len(), dump(&*engine, "local").unwrap().len()), (20, 51));
    let oplog = engine.oplog().unwrap();
    assert_eq!((oplog.first(), oplog.last()), (Some(Timestamp(1)), Some(Timestamp(50))));
}

#[test]
fn u9_a_table_is_compacted_whole_or_not_at_all() {
    let store = SimulatedStore::with_seed(Mode::StandAlone, 3);
    let engine = store.open();
    let [table, other] = ["t", "u"].map(|ident| engine.create_table(ident, &TableOptions::default()).unwrap());
    // Every round writes the same keys: all but the last are dead.
    for round in 0..6 {
        for number in 0..400 {
            let key = format!("{number:05}");
            put(&*engine, &table, &key, &value_of(&format!("{key} {round}")), 0).unwrap();
            put(&*engine, &other, &key, "x", 0).unwrap();
        }
        engine.checkpoint(CheckpointKind::Full).unwrap();
    }
    put(&*engine, &table, "late", "x", 0).unwrap();
    let expected = dump(&*engine, "t").unwrap();
    let before_bytes = engine.table_disk_bytes(&table).unwrap();
    let mut asked = 0;
    let mut never = || {
        asked += 1;
        false
    };
    engine.compact_table(&table, &mut never).unwrap();
    assert_eq!((asked, dump(&*engine, "t").unwrap()), (1, expected.clone()));
    engine.compact_table(&table, &mut || true).unwrap();
    let after_bytes = engine.table_disk_bytes(&table).unwrap();
    assert!(after_bytes < before_bytes, "{after_bytes} of {before_bytes} bytes are left");
    assert_eq!(dump(&*engine, "t").unwrap(), expected);
    let still = engine.freeze().unwrap();
    assert!(matches!(engine.compact_table(&table, &mut || true), Err(StorageError::IllegalOperation(_))));
    drop(still);
    // What is there survives, however the store ends.
    engine.compact_table(&other, &mut || true).unwrap();
    engine.flush_log().unwrap();
    drop((engine, table, other));
    store.machine().kill();
    let engine = store.open();
    assert_eq!(dump(&*engine, "t").unwrap(), expected);
    assert_eq!((dump(&*engine, "u").unwrap().len(), engine.verify().unwrap().damage), (400, vec![]));
}

#[test]
fn x19_names_of_backups_are_forgotten_when_asked() {
    let store = killed_store(Mode::ReplicaSet);
    let engine = store.open();
    let monday = BackupOptions { name: Some("monday".into()), ..BackupOptions::default() };
    drop(engine.begin_backup(&monday).unwrap());
    drop(engine.begin_backup(&BackupOptions { forgets_names: true, ..BackupOptions::default() }).unwrap());
    let since = BackupOptions { since: Some("monday".into()), ..BackupOptions::default() };
    assert!(matches!(engine.begin_backup(&since), Err(StorageError::IllegalOperation(_))));
}

#[test]
fn x19_frozen_files_stay_as_they_are() {
    let store = killed_store(Mode::StandAlone);
    let engine = store.open();
    let table = engine.create_table("late", &TableOptions::default()).unwrap();
    let mut transaction = engine.begin(BeginOptions::default()).unwrap();
    transaction.put(&table, b"key", b"value").unwrap();
    transaction.commit().unwrap();
    engine.flush_log().unwrap();
    let (one, other) = (engine.freeze().unwrap(), engine.freeze().unwrap());
    let before = files(&store, "/data/base");
    assert!(!engine.checkpoint(CheckpointKind::Full).unwrap().taken && !engine.maintain().unwrap());
    drop(one);
    assert!(!engine.checkpoint(CheckpointKind::Full).unwrap().taken);
    assert!(before == files(&store, "/data/base"));
    drop(other);
    assert!(engine.checkpoint(CheckpointKind::Full).unwrap().taken);
    assert!(before != files(&store, "/data/base"));
}

#[test]
fn x26_a_damaged_list_of_backups_is_told_and_replaced() {
    let store = killed_store(Mode::StandAlone);
    let engine = store.open();
    let monday = BackupOptions { name: Some("monday".into()), ..BackupOptions::default() };
    drop(engine.begin_backup(&monday).unwrap());
    engine.shut_down().unwrap();
    drop(engine);
    store.machine().disk().flip_byte(Path::new("/data/backups"), 30).unwrap();
    let engine = store.open();
    let damage = engine.verify().unwrap().damage;
    assert_eq!(damage.len(), 1);
    assert_eq!(damage[0].file, "/data/backups");
    let since = BackupOptions { since: Some("monday".into()), ..BackupOptions::default() };
    assert!(matches!(engine.begin_backup(&since), Err(StorageError::IllegalOperation(_))));
    drop(engine.begin_backup(&monday).unwrap());
    assert_eq!(engine.verify().unwrap().damage, []);
}

const TABLES: [&str; 3] = ["birch", "aspen", "cedar"];

/// Two checkpoints and a log behind them; every key is written once.
fn store_to_damage(seed: u64) -> (SimulatedStore, BTreeMap<&'static str, Pairs>) {
    let store = SimulatedStore::with_seed(Mode::StandAlone, seed);
    // Small segments: those that say how the tables were made are gone when the damage comes.
    let options =
        EngineOptions { log_segment_bytes: 64 << 10, ..EngineOptions::stepped(engine_mode(Mode::StandAlone)) };
    let engine: Arc<dyn Engine> = DurableEngine::open(&store.env(), Path::new(DIRECTORY), options).unwrap();
    let mut expected: BTreeMap<&'static str, Pairs> = BTreeMap::new();
    let tables = TABLES.map(|ident| engine.create_table(ident, &TableOptions::default()).unwrap());
    for round in 0..3 {
        for (ident, table) in TABLES.into_iter().zip(&tables) {
            for number in 0..if round < 2 { 800 } else { 20 } {
                let key = format!("{ident} {number:05} {round}");
                put(&*engine, table, &key, &value_of(&key), 0).unwrap();
                expected.entry(ident).or_default().insert(key.clone(), value_of(&key));
            }
        }
        if round < 2 {
            engine.checkpoint(CheckpointKind::Full).unwrap();
        }
    }
    engine.flush_log().unwrap();
    drop((engine, tables));
    store.machine().kill();
    (store, expected)
}

/// Salvages, opens the result, and counts what is missing; whatever is there must be right.
fn missing_after_salvage(store: &SimulatedStore, expected: &BTreeMap<&'static str, Pairs>, what: &str) -> usize {
    let target = Path::new("/salvaged");
    let before = files(store, DIRECTORY);
    let report = salvage(&store.env(), Path::new(DIRECTORY), target, Heir::Member)
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(before == files(store, DIRECTORY), "{what}: the damaged store was changed");
    let engine = open_at(store, target, Mode::StandAlone).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!(engine.verify().unwrap().damage, [], "{what}");
    let mut missing = 0;
    for (ident, pairs) in expected {
        let found = dump(&*engine, ident).unwrap_or_else(|error| panic!("{what}: {error}; {report:?}"));
        for (key, value) in &found {
            assert_eq!(pairs.get(key), Some(value), "{what}: {ident} {key}");
        }
        missing += pairs.len() - found.len();
    }
    assert!(missing == 0 || !report.damage.is_empty(), "{what}: {missing} keys are missing without a word");
    let table = engine.open_table("birch").unwrap();
    put(&*engine, &table, "life goes on", "x", 0).unwrap();
    engine.shut_down().unwrap();
    missing
}

#[test]
fn x16_salvage_of_a_sound_store_loses_nothing() {
    let (store, expected) = store_to_damage(1);
    assert_eq!(missing_after_salvage(&store, &expected, "nothing"), 0);
    let again = salvage(&store.env(), Path::new(DIRECTORY), Path::new("/salvaged"), Heir::Member);
    assert!(matches!(again, Err(StorageError::BadDirectory(_))), "the target is not empty");
    let nothing = salvage(&store.env(), Path::new("/nowhere"), Path::new("/other"), Heir::Member);
    assert!(matches!(nothing, Err(StorageError::BadDirectory(_))));
}

fn salvage_after_a_flip(kind: &str, seed: u64, is_wanted: fn(&Path) -> bool) -> usize {
    let (store, expected) = store_to_damage(seed);
    let flipped = store.machine().disk().flip_random_bit(is_wanted);
    let (path, offset) = flipped.unwrap_or_else(|| panic!("no {kind} to damage"));
    missing_after_salvage(&store, &expected, &format!("seed {seed}, {} at {offset}", path.display()))
}

fn has_extension(path: &Path, wanted: &str) -> bool {
    path.starts_with("/data") && path.extension().is_some_and(|extension| extension == wanted)
}

#[test]
fn x16_salvage_keeps_all_but_the_damaged_log_record() {
    for seed in 0..seeds(15) {
        let missing = salvage_after_a_flip("log", seed, |path| has_extension(path, "log"));
        assert!(missing <= 1, "seed {seed}: {missing} keys for one log record");
    }
}

#[test]
fn x16_salvage_keeps_all_but_the_damaged_block() {
    for seed in 0..seeds(25) {
        let missing = salvage_after_a_flip("run", seed, |path| has_extension(path, "run"));
        assert!(missing <= 800, "seed {seed}: {missing} keys for one block");
    }
}

#[test]
fn x16_salvage_does_without_a_manifest() {
    for seed in 0..seeds(25) {
        let is_manifest = |path: &Path| path.starts_with("/data/base") && path.extension().is_none();
        let missing = salvage_after_a_flip("manifest", seed, is_manifest);
        assert_eq!(missing, 0, "seed {seed}: run files and log are sound");
    }
    let (store, expected) = store_to_damage(99);
    let manifests: Vec<PathBuf> =
        files(&store, "/data/base").into_keys().filter(|path| path.extension().is_none()).collect();
    for path in manifests {
        store.env().disk().remove(&path).unwrap();
    }
    assert_eq!(missing_after_salvage(&store, &expected, "no manifest at all"), 0);
}
