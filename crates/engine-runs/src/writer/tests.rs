//! Files as a whole: damage anywhere is found and named, large things fit, failures leave nothing behind.

use crate::oracle::{Bench, Oracle, Shape, make, phrase_options, small_options};
use crate::{
    BlockCache, FilterPrefix, Lookup, Part, PartDescriptor, RangeTombstone, ReadPoint, Run, RunFile, RunsError, Stamp,
    TableRuns, TableWriteOptions, Version, WriterOptions, check_file, read_file_directory,
};
use bytes::Bytes;
use pando_base::Timestamp;
use pando_env::Random;
use pando_env::simulated::{Fault, FaultKind, SimulatedRandom, Simulation};
use std::sync::Arc;

/// The same runs with nothing loaded.
fn reopened(bench: &Bench, table: &TableRuns) -> Arc<TableRuns> {
    let cache = BlockCache::new(1 << 20);
    let reopen = |part: &Arc<Part>| {
        let file = part.file();
        let descriptor = crate::FileDescriptor { id: file.id(), length_bytes: file.length_bytes() };
        let file = RunFile::new(&bench.env, &bench.directory, descriptor);
        Part::new(file, part.descriptor().clone(), cache.clone())
    };
    let runs = table.runs().iter().map(|run| Run::new(run.parts().iter().map(reopen).collect())).collect();
    Arc::new(TableRuns::new(runs))
}

/// Reads everything; each answer must be right, or an error that names a file and an offset in it.
fn read_everything(table: &Arc<TableRuns>, oracle: &Oracle, points: &[ReadPoint]) -> usize {
    let mut errors = 0;
    let mut judge = |error: RunsError| match error {
        RunsError::Corruption { file, offset, .. } => {
            assert!(file.to_string_lossy().contains("/base/") && offset < 1 << 20);
            errors += 1;
        }
        other => panic!("{other}"),
    };
    for point in points {
        for key in &oracle.keys {
            match table.get(key, point) {
                Ok(Lookup::Found { value, .. }) => assert_eq!(oracle.lookup(key, point).unwrap().1, Some(value)),
                Ok(_) => assert!(oracle.lookup(key, point).is_none_or(|(_, value)| value.is_none())),
                Err(error) => judge(error),
            }
        }
        let expected = oracle.visible(point);
        let mut cursor = table.cursor(*point);
        for (key, value) in &expected {
            match cursor.next() {
                Ok(found) => {
                    assert!(found && cursor.key() == key);
                    match cursor.value_slice() {
                        Ok(found) => assert_eq!(found, value),
                        Err(error) => judge(error),
                    }
                }
                Err(error) => {
                    judge(error);
                    break;
                }
            }
        }
        let mut cursor = table.cursor(*point);
        for (key, _) in expected.iter().rev() {
            match cursor.prev() {
                Ok(found) => assert!(found && cursor.key() == key),
                Err(error) => {
                    judge(error);
                    break;
                }
            }
        }
    }
    errors
}

#[test]
fn a_flipped_byte_anywhere_is_named_and_never_believed() {
    flip_everywhere(small_options());
    flip_everywhere(phrase_options());
}

fn flip_everywhere(options: WriterOptions) {
    let simulation = Simulation::new(5);
    let random = SimulatedRandom::new(5);
    let shape = Shape { keys: 30, runs: 2, operations_per_run: 60, erases: true, fences: false, value_bytes_max: 600 };
    let oracle = make(&random, &shape);
    let bench = Bench::new(simulation.env(), 1 << 20);
    let options = WriterOptions { file_bytes: 64 << 20, ..options };
    let table = bench.write(&oracle, &options);
    let points = [ReadPoint::LATEST, ReadPoint { sequence: oracle.sequence / 2, timestamp: Timestamp::MAX }];
    assert_eq!(read_everything(&reopened(&bench, &table), &oracle, &points), 0);
    for path in simulation.disk().files() {
        let length = simulation.disk().contents(&path).unwrap().len() as u64;
        for offset in 0..length {
            simulation.disk().flip_byte(&path, offset).unwrap();
            let damaged = reopened(&bench, &table);
            read_everything(&damaged, &oracle, &points);
            let file = damaged.runs().iter().flat_map(|run| run.parts()).map(|part| part.file());
            let found = file.clone().find(|file| file.path() == path).map(|file| check_file(file));
            match found {
                Some(Err(RunsError::Corruption { file, offset: named, .. })) => {
                    assert_eq!(file, path);
                    assert!(named <= offset && offset < named + 2000, "byte {offset} was named as {named}");
                }
                other => panic!("the flipped byte {offset} of {path:?} gave {other:?}"),
            }
            simulation.disk().flip_byte(&path, offset).unwrap();
        }
    }
    assert_eq!(read_everything(&reopened(&bench, &table), &oracle, &points), 0);
}

#[test]
fn the_file_knows_its_sections_without_a_manifest() {
    let bench = Bench::new(Simulation::new(1).env(), 1 << 20);
    let mut writer = bench.writer(WriterOptions::default());
    for table in 0..3u64 {
        writer.begin_table(table, TableWriteOptions { ident: format!("table-{table}"), ..Default::default() }).unwrap();
        let version = Version { stamp: Stamp::SETTLED, value: Some(b"value") };
        (0..table * 10).for_each(|key| writer.add(&key.to_be_bytes(), &[version]).unwrap());
        writer.finish_table().unwrap();
    }
    let new = writer.finish().unwrap();
    assert_eq!((new.files().len(), new.tables().len()), (1, 2), "small tables share a file, empty ones leave no trace");
    let file = RunFile::new(&bench.env, &bench.directory, new.files()[0].clone());
    let sections = read_file_directory(&file).unwrap();
    let idents: Vec<&str> = sections.iter().map(|(ident, _)| ident.as_str()).collect();
    assert_eq!(idents, ["table-1", "table-2"]);
    for ((_, section), (_, run)) in sections.iter().zip(new.tables()) {
        assert_eq!(*section, run.parts[0]);
    }
}

#[test]
fn a_table_that_begins_behind_a_full_file_gets_the_next_one() {
    let bench = Bench::new(Simulation::new(1).env(), 1 << 20);
    let mut writer = bench.writer(WriterOptions { file_bytes: 100, ..small_options() });
    let version = Version { stamp: Stamp::SETTLED, value: Some(b"value") };
    for table in 0..4u64 {
        writer.begin_table(table, TableWriteOptions::default()).unwrap();
        if table == 2 {
            let tombstone = RangeTombstone { start: Bytes::new(), end: None, stamp: Stamp::new(3, Timestamp::NONE) };
            writer.add_range_tombstone(tombstone).unwrap();
        }
        (0..50u64).for_each(|key| writer.add(&key.to_be_bytes(), &[version]).unwrap());
        writer.finish_table().unwrap();
    }
    let new = writer.finish().unwrap();
    assert!(new.tables().iter().all(|(_, run)| run.check().is_ok() && run.parts.iter().all(|part| part.keys > 0)));
    for run in bench.open(new, Timestamp::MAX) {
        let table = Arc::new(TableRuns::new(vec![run]));
        let mut cursor = table.cursor(ReadPoint::LATEST);
        (0..50u64).for_each(|key| assert!(cursor.next().unwrap() && cursor.key() == key.to_be_bytes()));
        assert!(!cursor.next().unwrap());
    }
}

#[test]
fn large_keys_and_values_fit() {
    let bench = Bench::new(Simulation::new(1).env(), 1 << 20);
    let random = SimulatedRandom::new(9);
    let mut large = vec![0; 17 << 20];
    random.fill(&mut large[..1 << 20]);
    let entries: Vec<(Vec<u8>, Vec<u8>)> = vec![
        (Vec::new(), Vec::new()),
        (b"a".to_vec(), large.clone()),
        (large.iter().map(|byte| byte | 0x80).collect(), b"small".to_vec()),
        ([large.iter().map(|byte| byte | 0x80).collect(), vec![7]].concat(), large.clone()),
    ];
    let mut writer = bench.writer(WriterOptions::default());
    writer.begin_table(1, TableWriteOptions::default()).unwrap();
    for (key, value) in &entries {
        let version = Version { stamp: Stamp::SETTLED, value: Some(value) };
        let older = Version { stamp: Stamp::SETTLED, value: Some(b"older") };
        writer.add(key, &[version, older]).unwrap();
    }
    let table = Arc::new(TableRuns::new(bench.open(writer.finish().unwrap(), Timestamp::MAX)));
    let mut cursor = table.cursor(ReadPoint::LATEST);
    for (key, value) in &entries {
        assert!(
            matches!(table.get(key, &ReadPoint::LATEST).unwrap(), Lookup::Found { value: found, .. } if found == value)
        );
        assert!(cursor.next().unwrap() && cursor.key() == key && cursor.value_slice().unwrap() == value);
    }
}

#[test]
fn a_hot_key_with_many_versions_is_found_by_bisection() {
    let bench = Bench::new(Simulation::new(1).env(), 64 << 20);
    let options = WriterOptions { history_block_bytes: 500, history_versions_min: 1, ..WriterOptions::default() };
    let mut writer = bench.writer(options);
    writer.begin_table(1, TableWriteOptions::default()).unwrap();
    let count = 100_000u64;
    for key in [b"cold-a".as_slice(), b"hot", b"low"] {
        let newest = if key == b"hot" { count } else { 3 };
        for number in (1..=newest).rev() {
            let value = number.to_be_bytes();
            let version = Version { stamp: Stamp::new(number, Timestamp(number * 2)), value: Some(&value) };
            writer.add_version(key, version).unwrap();
        }
    }
    let table = TableRuns::new(bench.open(writer.finish().unwrap(), Timestamp::MAX));
    let before = bench.cache.statistics().misses;
    for number in (1..=count).step_by(9973) {
        for point in [
            ReadPoint { sequence: number, timestamp: Timestamp::MAX },
            ReadPoint { sequence: u64::MAX, timestamp: Timestamp(number * 2 + 1) },
        ] {
            match table.get(b"hot", &point).unwrap() {
                Lookup::Found { value, .. } => assert_eq!(value.as_ref(), number.to_be_bytes()),
                other => panic!("{other:?}"),
            }
        }
    }
    let misses = bench.cache.statistics().misses - before;
    assert!(misses < 60, "{misses} units read");
}

/// The run of some keys with so many versions each; those of a key differ in a few bytes only, and no keys are alike.
fn history_of(bench: &Bench, versions: u64, options: WriterOptions) -> PartDescriptor {
    let mut writer = bench.writer(options);
    writer.begin_table(1, TableWriteOptions::default()).unwrap();
    let mut random = 7u64;
    for key in 0..20u8 {
        let noise = std::iter::repeat_with(|| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 56) as u8
        });
        let mut value: Vec<u8> = noise.take(2500).collect();
        for number in (1..=versions).rev() {
            value[..8].copy_from_slice(&number.to_be_bytes());
            let stamp = Stamp::new(number, Timestamp(number));
            writer.add_version(&[key], Version { stamp, value: Some(&value) }).unwrap();
        }
    }
    let new = writer.finish().unwrap();
    new.tables()[0].1.parts[0].clone()
}

#[test]
fn a_part_tells_what_its_history_takes() {
    let bench = Bench::new(Simulation::new(1).env(), 64 << 20);
    assert_eq!(history_of(&bench, 1, WriterOptions::default()).history_bytes, 0);
    let part = history_of(&bench, 60, WriterOptions::default());
    assert!(part.history_bytes > 40_000 && part.history_bytes < part.length_bytes - 40_000, "{part:?}");
}

#[test]
fn large_versions_that_are_alike_share_a_block() {
    let bench = Bench::new(Simulation::new(1).env(), 64 << 20);
    let together = history_of(&bench, 60, WriterOptions::default());
    let apart = history_of(&bench, 60, WriterOptions { history_versions_min: 1, ..WriterOptions::default() });
    assert!(together.history_bytes * 2 < apart.history_bytes, "{} {}", together.history_bytes, apart.history_bytes);
}

#[test]
fn rules_of_the_writer_are_checked() {
    let bench = Bench::new(Simulation::new(1).env(), 1 << 20);
    let value = Version { stamp: Stamp::new(5, Timestamp::NONE), value: Some(b"v") };
    let mut writer = bench.writer(WriterOptions::default());
    assert!(matches!(writer.add(b"k", &[value]), Err(RunsError::Invalid(_))));
    writer.begin_table(1, TableWriteOptions::default()).unwrap();
    assert!(matches!(writer.begin_table(2, TableWriteOptions::default()), Err(RunsError::Invalid(_))));
    writer.add(b"k", &[value]).unwrap();
    assert!(matches!(writer.add(b"j", &[value]), Err(RunsError::Invalid(_))));
    let newer = Version { stamp: Stamp::new(6, Timestamp::NONE), value: None };
    assert!(matches!(writer.add(b"k", &[newer]), Err(RunsError::Invalid(_))));
    let tombstone = RangeTombstone { start: Bytes::new(), end: None, stamp: Stamp::SETTLED };
    assert!(matches!(writer.add_range_tombstone(tombstone), Err(RunsError::Invalid(_))));
}

#[test]
fn unfinished_and_unwanted_files_are_removed() {
    let simulation = Simulation::new(1);
    let bench = Bench::new(simulation.env(), 1 << 20);
    let value = Version { stamp: Stamp::SETTLED, value: Some(b"v") };
    let begin = || {
        let mut writer = bench.writer(small_options());
        writer.begin_table(1, TableWriteOptions { filter_prefix: FilterPrefix::None, ident: String::new() }).unwrap();
        (0..2000u64).for_each(|key| writer.add(&key.to_be_bytes(), &[value]).unwrap());
        writer
    };
    let writer = begin();
    assert!(!simulation.disk().files().is_empty());
    drop(writer);
    assert_eq!(simulation.disk().files().len(), 0);
    let new = begin().finish().unwrap();
    assert!(simulation.disk().files().len() > 1 && new.files().len() == simulation.disk().files().len());
    drop(new);
    assert_eq!(simulation.disk().files().len(), 0);
}

#[test]
fn failures_of_the_disk_are_reported_as_what_they_are() {
    for (kind, is_expected) in [
        (FaultKind::SpaceRunsOut, (|error| matches!(error, RunsError::OutOfSpace { .. })) as fn(&RunsError) -> bool),
        (FaultKind::SyncFails, RunsError::is_failed_sync),
        (FaultKind::DirectorySyncFails, RunsError::is_failed_sync),
    ] {
        let simulation = Simulation::new(1);
        let bench = Bench::new(simulation.env(), 1 << 20);
        simulation.disk().inject(Fault::new(kind));
        let mut writer = bench.writer(small_options());
        writer.begin_table(1, TableWriteOptions::default()).unwrap();
        let value = Version { stamp: Stamp::SETTLED, value: Some(b"v") };
        let written = (0..3000u64).try_for_each(|key| writer.add(&key.to_be_bytes(), &[value]));
        let error = written.and_then(|()| writer.finish().map(drop)).unwrap_err();
        assert!(is_expected(&error), "{error}");
    }
}
