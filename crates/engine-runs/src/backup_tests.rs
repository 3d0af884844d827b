//! Backups, restores and imports.

use crate::store::testing::*;
use crate::*;
use pando_base::Timestamp;
use pando_env::simulated::Simulation;
use pando_env::{Env, OpenMode};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const LATEST: ReadPoint = ReadPoint::LATEST;

fn write(env: &Env, path: &Path, bytes: &[u8]) {
    let _ = env.disk().remove(path);
    let file = env.disk().open(path, OpenMode::CreateNew).unwrap();
    file.write_at(bytes, 0).unwrap();
    file.sync().unwrap();
}

/// Copies what the pins say into a directory.
fn copy(env: &Env, pins: &Pins, files: &[PinnedFile], to: &Path) {
    env.disk().create_directory(to).unwrap();
    for file in files {
        let bytes = env.disk().read_all(&file.path).unwrap();
        assert_eq!(bytes.len() as u64, file.length_bytes);
        write(env, &to.join(&file.name), &bytes);
    }
    pins.manifest_files().iter().for_each(|(name, bytes)| write(env, &to.join(name), bytes));
    env.disk().sync_directory(to).unwrap();
}

fn batch(range: std::ops::Range<u64>, text: &str) -> BTreeMap<TableId, Batch> {
    let pairs: Vec<(u64, Option<&str>)> = range.map(|number| (number, Some(text))).collect();
    BTreeMap::from([(1, Batch::settled(&pairs)), (2, Batch::settled(&pairs[..1]))])
}

fn store(seed: u64) -> (Simulation, Runs, Model) {
    let simulation = Simulation::new(seed);
    let (runs, _) = open(&simulation.env()).unwrap();
    let mut model = Model::default();
    create(&runs, &mut model, &[1, 2]).unwrap();
    (simulation, runs, model)
}

#[test]
fn b3_pins_keep_files_until_they_are_copied_and_the_copy_opens() {
    let (simulation, runs, mut model) = store(1);
    let env = simulation.env();
    checkpoint(&runs, &mut model, &batch(0..100, "first")).unwrap();
    let pins = runs.pin();
    let backed_up = model.clone();
    for round in 0..6 {
        checkpoint(&runs, &mut model, &batch(round..100, "later")).unwrap();
    }
    runs.merge_all(&KeepNothing).unwrap();
    drop_table(&runs, &mut model, 2).unwrap();
    runs.reclaim().unwrap();
    let backup = PathBuf::from("/backup");
    copy(&env, &pins, &pins.files(), &backup);
    let held = run_files(&env).len();
    drop(pins);
    runs.reclaim().unwrap();
    assert!(run_files(&env).len() < held, "unpinned files go");
    let (restored, opened) = Runs::open(&env, &backup, small_options()).unwrap();
    assert!(agrees(&restored, Some(&opened), &backed_up, &LATEST).unwrap());
    assert_eq!(restored.identity(), runs.identity());
    assert_eq!(restored.verify(&mut |_| ()).unwrap().problems, []);
    assert!(agrees(&runs, None, &model, &LATEST).unwrap());
}

#[test]
fn b3_an_incremental_backup_copies_only_new_files() {
    let (simulation, runs, mut model) = store(2);
    let env = simulation.env();
    checkpoint(&runs, &mut model, &batch(0..500, "first text of some length")).unwrap();
    let backup = PathBuf::from("/backup");
    let pins = runs.pin();
    copy(&env, &pins, &pins.files(), &backup);
    let earlier = pins.list().clone();
    drop(pins);
    checkpoint(&runs, &mut model, &batch(0..3, "second")).unwrap();
    let mut pins = runs.pin();
    checkpoint(&runs, &mut model, &batch(3..5, "third")).unwrap();
    pins.extend(&runs);
    let increment = pins.files_since(&earlier);
    assert!(!increment.is_empty() && increment.iter().all(|file| !earlier.files.contains(&file.id)));
    assert!(increment.len() < pins.files().len());
    copy(&env, &pins, &increment, &backup);
    assert_eq!(pins.files_since(&BackupList { identity: 1, ..earlier.clone() }).len(), pins.files().len());
    let (restored, opened) = Runs::open(&env, &backup, small_options()).unwrap();
    assert!(agrees(&restored, Some(&opened), &model, &LATEST).unwrap());
}

#[test]
fn b3_import_takes_tables_under_new_ids() {
    let (simulation, runs, mut model) = store(3);
    let env = simulation.env();
    let version = |sequence: u64, timestamp: u64, value: Option<&str>| ModelVersion {
        stamp: Stamp::new(sequence, Timestamp(timestamp)),
        value: value.map(|value| value.as_bytes().to_vec()),
    };
    let mut history = Batch::default();
    history.keys.insert(key(1), vec![version(9, 20, Some("new")), version(8, 10, Some("old"))]);
    history.keys.insert(key(2), vec![version(10, 21, None), version(7, 9, Some("gone"))]);
    history.keys.insert(key(3), vec![version(11, 50, Some("not stable"))]);
    checkpoint(&runs, &mut model, &BTreeMap::from([(1, history)])).unwrap();
    let mark = CheckpointMark { stable: Timestamp(30), ..Default::default() };
    runs.install(Edit { mark: Some(mark), ..Default::default() }).unwrap();
    let backup = PathBuf::from("/backup");
    let pins = runs.pin();
    copy(&env, &pins, &pins.files(), &backup);

    let other = PathBuf::from("/other");
    let (target, _) = Runs::open(&env, &other, small_options()).unwrap();
    let source = ImportSource::open(&env, &backup).unwrap();
    assert_eq!(source.tables().len(), 2);
    assert_eq!(source.mark().unwrap().stable, Timestamp(30));
    let wanted = [ImportTable { from: 1, to: record(71) }, ImportTable { from: 2, to: record(72) }];
    let imported = target.import(&source, &wanted, ImportHistory::Keep).unwrap();
    assert_eq!((imported.tables, imported.versions), (2, 4));
    assert!(
        matches!(target.import(&source, &wanted, ImportHistory::Keep), Err(RunsError::Invalid(_))),
        "is there already"
    );
    let at = |timestamp| ReadPoint { sequence: 0, timestamp: Timestamp(timestamp) };
    assert_eq!(scan(&target, 71, &at(15)).unwrap(), [(key(1), b"old".to_vec()), (key(2), b"gone".to_vec())]);
    assert_eq!(scan(&target, 71, &at(60)).unwrap(), [(key(1), b"new".to_vec())]);
    let newest = [ImportTable { from: 1, to: record(81) }];
    target.import(&source, &newest, ImportHistory::Newest).unwrap();
    assert_eq!(scan(&target, 81, &at(1)).unwrap(), [(key(1), b"new".to_vec())]);
    let unknown = [ImportTable { from: 9, to: record(82) }];
    assert!(matches!(target.import(&source, &unknown, ImportHistory::Keep), Err(RunsError::Invalid(_))));
    drop(target);
    let (target, opened) = Runs::open(&env, &other, small_options()).unwrap();
    assert_eq!(opened.tables.len(), 3);
    assert_eq!(target.verify(&mut |_| ()).unwrap().problems, []);
}

#[test]
fn the_description_names_tables_runs_and_files() {
    let (_simulation, runs, mut model) = store(4);
    checkpoint(&runs, &mut model, &batch(0..100, "text")).unwrap();
    let text = runs.describe().to_string();
    for wanted in ["table 1 \"table-1\"", "run 0", "0000000000000001.run", "checkpoint up to sequence 1", "MANIFEST-"] {
        assert!(text.contains(wanted), "{wanted} in {text}");
    }
    assert_eq!(runs.describe().table("table-2").map(|record| record.id), Some(2));
    assert!(!runs.describe().only(2).to_string().contains("table-1"));
}
