//! Backup, import and verification. Engines that cannot do one of these refuse with `IllegalOperation`, and its cases end.

use super::factory::EngineFactoryMaker;
use super::support::*;
use crate::*;

fn backup_of(store: &Store, options: &BackupOptions) -> Option<Box<dyn Backup>> {
    match store.begin_backup(options) {
        Err(StorageError::IllegalOperation(_)) => None,
        other => Some(other.unwrap()),
    }
}

/// A store with a checkpoint at 20 and writes after it.
fn filled(maker: &dyn EngineFactoryMaker) -> (Store, Table) {
    let store = Store::replica_set(maker);
    let table = store.replicated("t");
    for timestamp in 1..=30 {
        store.replicate(&table, &format!("{timestamp:02}"), "x", timestamp);
    }
    store.stable_from_start(20);
    store.checkpoint_now();
    (store, table)
}

fn expected(range: std::ops::RangeInclusive<u64>) -> String {
    range.map(|number| format!("{number:02}=x")).collect::<Vec<_>>().join(" ")
}

pub(super) fn x19_a_copy_is_the_store_at_its_checkpoint(maker: &dyn EngineFactoryMaker) {
    let (store, table) = filled(maker);
    let Some(backup) = backup_of(&store, &BackupOptions::default()) else { return };
    assert_eq!(backup.checkpoint_timestamp(), ts(20));
    assert!(!backup.files().is_empty());
    // Life goes on while the files are copied.
    for timestamp in 31..=60 {
        store.replicate(&table, &format!("{timestamp:02}"), "x", timestamp);
    }
    store.delete(&table, "01", 61);
    store.set_stable(ts(60)).unwrap();
    store.checkpoint_now();
    store.settle();
    store.flush_log().unwrap();
    let Some(copy) = store.factory.copy(backup.files()) else { return };
    let (oplog_end, copied) = (backup.oplog_end(), Store::new(copy));
    drop(backup);
    assert_eq!(copied.dump_ident("t"), expected(1..=20));
    assert_eq!(copied.timestamps().recovery, ts(20));
    assert_eq!(copied.log().last(), Some(oplog_end));
    store.settle();
    assert_eq!(store.dump(&table), expected(2..=60));
}

pub(super) fn x19_a_backup_can_be_extended(maker: &dyn EngineFactoryMaker) {
    let (store, table) = filled(maker);
    let Some(mut backup) = backup_of(&store, &BackupOptions::default()) else { return };
    for timestamp in 31..=40 {
        store.replicate(&table, &format!("{timestamp:02}"), "x", timestamp);
    }
    let more = backup.extend(ts(40)).unwrap();
    assert!(backup.oplog_end() >= ts(40));
    let mut files = backup.files().to_vec();
    for file in more {
        files.retain(|known| known.name != file.name);
        files.push(file);
    }
    let Some(copy) = store.factory.copy(&files) else { return };
    let copied = Store::new(copy);
    assert_eq!(copied.dump_ident("t"), expected(1..=20));
    assert!(copied.log().last() >= Some(ts(40)));
}

pub(super) fn x19_an_incremental_backup_marks_what_is_unchanged(maker: &dyn EngineFactoryMaker) {
    let (store, table) = filled(maker);
    let first = BackupOptions { name: Some("first".into()), ..BackupOptions::default() };
    let Some(backup) = backup_of(&store, &first) else { return };
    assert!(backup.files().iter().all(|file| !file.unchanged));
    let known: Vec<BackupFile> = backup.files().to_vec();
    drop(backup);
    store.replicate(&table, "31", "x", 31);
    store.set_stable(ts(31)).unwrap();
    store.checkpoint_now();
    let options =
        BackupOptions { name: Some("second".into()), since: Some("first".into()), ..BackupOptions::default() };
    let second = backup_of(&store, &options).unwrap();
    for file in second.files().iter().filter(|file| file.unchanged) {
        assert!(known.iter().any(|old| old.name == file.name && old.length == file.length), "{file:?}");
    }
    if let Some(copy) = store.factory.copy(second.files()) {
        assert_eq!(Store::new(copy).dump_ident("t"), expected(1..=31));
    }
    drop(second);
    let unknown = BackupOptions { since: Some("never made".into()), ..BackupOptions::default() };
    assert!(store.begin_backup(&unknown).is_err());
}

pub(super) fn x19_tables_of_another_store_are_imported(maker: &dyn EngineFactoryMaker) {
    let source = Store::replica_set(maker);
    let (table, other) = (source.replicated("t"), source.replicated("other"));
    for number in 0..100 {
        source.put(&table, &format!("{number:02}"), "x", 10);
    }
    source.put(&other, "a", "1", 10);
    source.grow(&table, (100, 100), 10);
    let before = source.dump(&table);
    source.stable_from_start(10);
    source.shut_down().unwrap();
    let Some(directory) = source.factory.directory() else { return };
    let factory = source.close();
    drop((table, other));
    // A copy of nothing is a fresh store where the source's files can be reached.
    let Some(beside) = factory.copy(&[]) else { return };
    let mut target = Store::new(beside);
    target.replicated("t");
    let rename = |ident: &str| (ident == "t").then(|| "imported".to_owned());
    let imported = target.import(&directory, &rename).unwrap();
    assert_eq!(imported.len(), 1);
    assert_eq!((imported[0].ident.as_str(), imported[0].table.ident()), ("t", "imported"));
    assert_eq!(target.idents(), ["imported", "t"]);
    assert_eq!((target.dump_ident("imported"), target.dump_ident("t")), (before.clone(), "".into()));
    assert_eq!(target.size(&imported[0].table), (100, 100));
    target.put(&imported[0].table, "new", "x", 20);
    drop(imported);
    target.flush_log().unwrap();
    target.crash();
    assert_eq!(target.dump_ident("imported"), before);
    // The source is as it was.
    assert_eq!(Store::new(factory).dump_ident("t"), before);
}

pub(super) fn x24_a_sound_store_verifies(maker: &dyn EngineFactoryMaker) {
    for store in Store::both(maker) {
        let table = store.local("t");
        for number in 0..200 {
            store.put(&table, &number.to_string(), "x", 0);
        }
        store.checkpoint(CheckpointKind::Full).unwrap();
        store.put(&table, "more", "x", 0);
        store.flush_log().unwrap();
        let report = store.verify().unwrap();
        assert_eq!(report.damage, []);
    }
}
