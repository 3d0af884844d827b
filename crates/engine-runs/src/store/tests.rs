//! Stores under ordinary use, power loss, full disks and failed syncs.

use super::testing::*;
use super::{Edit, Runs};
use crate::{ReadPoint, Result, RunsError, Stamp, TableId};
use pando_base::Timestamp;
use pando_env::Env;
use pando_env::simulated::{Fault, FaultKind, Loss, Simulation};
use std::collections::BTreeMap;

const LATEST: ReadPoint = ReadPoint::LATEST;

fn batch_of(table: TableId, pairs: &[(u64, Option<&str>)]) -> BTreeMap<TableId, Batch> {
    BTreeMap::from([(table, Batch::settled(pairs))])
}

#[test]
fn a_new_store_is_empty_and_what_is_installed_is_there_after_a_restart() {
    let simulation = Simulation::new(1);
    let mut model = Model::default();
    let (runs, opened) = open(&simulation.env()).unwrap();
    assert!(opened.created && opened.tables.is_empty() && opened.mark.is_none());
    let slot = runs.slot(1);
    let generation = slot.generation();
    create(&runs, &mut model, &[1, 2]).unwrap();
    checkpoint(&runs, &mut model, &batch_of(1, &[(1, Some("one")), (2, Some("two"))])).unwrap();
    assert!(slot.generation() > generation, "the slot of before the creation is the table's");
    checkpoint(&runs, &mut model, &batch_of(1, &[(2, None), (3, Some("three"))])).unwrap();
    assert!(agrees(&runs, None, &model, &LATEST).unwrap());
    assert_eq!(slot.load().runs_count(), 2);
    drop(runs);
    let (runs, opened) = open(&simulation.crash_with(Loss::Everything)).unwrap();
    assert!(!opened.created && !opened.cut_torn_edit);
    assert!(agrees(&runs, Some(&opened), &model, &LATEST).unwrap());
}

#[test]
fn edits_that_make_no_sense_change_nothing() {
    let simulation = Simulation::new(2);
    let (runs, _) = open(&simulation.env()).unwrap();
    let mut model = Model::default();
    create(&runs, &mut model, &[1]).unwrap();
    let invalid = |edit: Edit| assert!(matches!(runs.install(edit), Err(RunsError::Invalid(_))));
    invalid(Edit { create: vec![record(1)], ..Default::default() });
    invalid(Edit { create: vec![record(5), record(5)], ..Default::default() });
    invalid(Edit { drop: vec![9], ..Default::default() });
    invalid(Edit { update: vec![record(9)], ..Default::default() });
    let unknown = checkpoint(&runs, &mut model.clone(), &batch_of(9, &[(1, Some("x"))]));
    assert!(matches!(unknown, Err(RunsError::Invalid(_))));
    assert!(run_files(&simulation.env()).is_empty(), "the refused run's file is gone");
    let (runs, opened) = open(&simulation.crash()).unwrap();
    assert!(agrees(&runs, Some(&opened), &model, &LATEST).unwrap());
}

#[test]
fn a_checkpoint_need_not_stop_for_a_drop() {
    let simulation = Simulation::new(3);
    let (runs, _) = open(&simulation.env()).unwrap();
    let mut model = Model::default();
    create(&runs, &mut model, &[1, 2]).unwrap();
    drop_table(&runs, &mut model, 2).unwrap();
    let both =
        BTreeMap::from([(1, Batch::settled(&[(1, Some("kept"))])), (2, Batch::settled(&[(1, Some("dropped"))]))]);
    checkpoint(&runs, &mut model, &both).unwrap();
    model.tables.remove(&2);
    let (runs, opened) = open(&simulation.crash()).unwrap();
    assert!(agrees(&runs, Some(&opened), &model, &LATEST).unwrap());
}

#[test]
fn x18_drop_gives_the_space_back_when_the_last_reader_goes() {
    let simulation = Simulation::new(4);
    let env = simulation.env();
    let (runs, _) = open(&env).unwrap();
    let mut model = Model::default();
    create(&runs, &mut model, &[1, 2]).unwrap();
    checkpoint(&runs, &mut model, &batch_of(1, &[(1, Some("one"))])).unwrap();
    checkpoint(&runs, &mut model, &batch_of(2, &[(1, Some("two"))])).unwrap();
    assert_eq!(run_files(&env).len(), 2);
    let reader = runs.slot(2).load();
    drop_table(&runs, &mut model, 2).unwrap();
    assert_eq!(runs.reclaim().unwrap().files, 0, "a reader holds it");
    assert_eq!(runs.statistics().obsolete_files, 1);
    assert!(reader.get(&key(1), &LATEST).is_ok());
    drop(reader);
    assert_eq!(runs.reclaim().unwrap().files, 1);
    assert_eq!(run_files(&env).len(), 1);
    assert!(runs.slot(2).load().is_empty());
    let mut again = Model::default();
    create(&runs, &mut again, &[2]).unwrap();
    assert!(runs.slot(2).load().is_empty());
}

/// A history with every kind of edit. After each acknowledged step the model is pushed.
fn work(env: &Env, states: &mut Vec<Model>) -> Result<()> {
    let (runs, _) = open(env)?;
    let mut model = states.last().cloned().unwrap_or_default();
    let mut step = |model: &Model, result: Result<()>| {
        result?;
        states.push(model.clone());
        Ok::<(), RunsError>(())
    };
    let created = create(&runs, &mut model, &[1, 2, 3]);
    step(&model, created)?;
    for round in 0..6u64 {
        let pairs: Vec<(u64, Option<&str>)> = (0..8)
            .map(|n| (n * (round + 1) % 20, if n % 5 == 4 { None } else { Some("value of some length") }))
            .collect();
        let mut batches = batch_of(1, &pairs);
        batches.insert(2 + round % 2, Batch::settled(&pairs[..3]));
        if round > 3 {
            batches.remove(&2);
        }
        let installed = checkpoint(&runs, &mut model, &batches);
        step(&model, installed)?;
        while runs.merge_step(&KeepNothing, 100)? != crate::MergeStep::Idle {}
        if round == 3 {
            let dropped = drop_table(&runs, &mut model, 2);
            step(&model, dropped)?;
        }
        runs.reclaim()?;
    }
    runs.close()
}

/// The states that the work goes through, with the one before it began.
fn expected() -> Vec<Model> {
    let mut states = vec![Model::default()];
    let simulation = Simulation::new(0);
    work(&simulation.env(), &mut states).unwrap();
    states
}

#[test]
fn x20_power_loss_at_every_operation_of_installs_merges_rotations_and_drops() {
    let all = expected();
    let whole = Simulation::new(0);
    let mut states = vec![Model::default()];
    work(&whole.env(), &mut states).unwrap();
    let operations = whole.disk().operation_count();
    assert!(operations > 100, "{operations}");
    for crash_after in 0..operations {
        for seed in 0..3 {
            let simulation = Simulation::new(seed * 1000 + crash_after);
            simulation.disk().crash_after(crash_after);
            let mut states = vec![Model::default()];
            let result = work(&simulation.env(), &mut states);
            assert!(result.is_err());
            let env = if seed == 2 { simulation.kill() } else { simulation.crash() };
            let (runs, opened) = open(&env).unwrap_or_else(|error| panic!("{crash_after} {seed}: {error}"));
            let acknowledged = states.len() - 1;
            let possible = &all[acknowledged..all.len().min(acknowledged + 2)];
            let found = possible.iter().any(|model| agrees(&runs, Some(&opened), model, &LATEST).unwrap());
            assert!(found, "crash after {crash_after}, seed {seed}, acknowledged {acknowledged}");
            let report = runs.verify(&mut |_| ()).unwrap();
            assert_eq!(report.problems, []);
            assert_eq!(run_files(&env).len() as u64, runs.statistics().files, "nothing is left over");
        }
    }
}

#[test]
fn x20_a_failed_sync_stops_the_store_and_the_next_start_is_consistent() {
    let all = expected();
    for kind in [FaultKind::SyncFails, FaultKind::DirectorySyncFails] {
        for number in 1..60 {
            let simulation = Simulation::new(number);
            simulation.disk().inject(Fault::new(kind).from_call(number).times(1));
            let mut states = vec![Model::default()];
            let Err(error) = work(&simulation.env(), &mut states) else { continue };
            assert!(matches!(error, RunsError::Stopped(_)) || error.is_failed_sync(), "{error}");
            let (runs, opened) = open(&simulation.crash()).unwrap();
            let possible = &all[states.len() - 1..all.len().min(states.len() + 1)];
            assert!(possible.iter().any(|model| agrees(&runs, Some(&opened), model, &LATEST).unwrap()), "{number}");
        }
    }
}

#[test]
fn x20_after_a_failed_sync_writes_are_refused_and_reads_go_on() {
    let simulation = Simulation::new(11);
    let (runs, _) = open(&simulation.env()).unwrap();
    let mut model = Model::default();
    create(&runs, &mut model, &[1]).unwrap();
    checkpoint(&runs, &mut model, &batch_of(1, &[(1, Some("one"))])).unwrap();
    simulation.disk().inject(Fault::new(FaultKind::SyncFails).times(1));
    let error = runs.install(Edit { drop: vec![1], ..Default::default() }).unwrap_err();
    assert!(matches!(&error, RunsError::Stopped(reason) if reason.contains("sync")), "{error}");
    assert!(matches!(runs.install(Edit::default()), Err(RunsError::Stopped(_))));
    assert!(matches!(runs.merge_step(&KeepNothing, 1), Err(RunsError::Stopped(_))));
    assert!(runs.stopped().is_some());
    assert!(agrees(&runs, None, &model, &LATEST).unwrap());
}

#[test]
fn x20_on_a_full_disk_drops_go_on_and_so_does_everything_when_space_is_back() {
    let simulation = Simulation::new(12);
    let env = simulation.env();
    let (runs, _) = open(&env).unwrap();
    assert!(runs.statistics().ballast_held);
    let mut model = Model::default();
    create(&runs, &mut model, &[1, 2]).unwrap();
    let many: Vec<(u64, Option<&str>)> = (0..200).map(|n| (n, Some("some text that takes its space"))).collect();
    checkpoint(&runs, &mut model, &batch_of(1, &many)).unwrap();
    checkpoint(&runs, &mut model, &batch_of(2, &many[..20])).unwrap();
    simulation.disk().set_capacity_bytes(simulation.disk().used_bytes());
    let refused = checkpoint(&runs, &mut model.clone(), &batch_of(2, &many));
    assert!(matches!(refused, Err(RunsError::OutOfSpace { .. })));
    assert!(agrees(&runs, None, &model, &LATEST).unwrap());
    // Small edits may fit in what the manifest's last page has left; go on until they need the ballast.
    for round in 0..60 {
        let table = 10 + round;
        create(&runs, &mut model, &[table]).unwrap();
    }
    assert!(runs.statistics().ballast_releases > 0);
    drop_table(&runs, &mut model, 1).unwrap();
    runs.reclaim().unwrap();
    checkpoint(&runs, &mut model, &batch_of(2, &many[..50])).unwrap();
    simulation.disk().set_capacity_bytes(1 << 30);
    runs.reclaim().unwrap();
    assert!(runs.statistics().ballast_held, "the reserve is back");
    let (runs, opened) = open(&simulation.crash()).unwrap();
    assert!(agrees(&runs, Some(&opened), &model, &LATEST).unwrap());
}

#[test]
fn a_missing_file_is_named_at_open() {
    let simulation = Simulation::new(13);
    let env = simulation.env();
    let (runs, _) = open(&env).unwrap();
    let mut model = Model::default();
    create(&runs, &mut model, &[1]).unwrap();
    checkpoint(&runs, &mut model, &batch_of(1, &[(1, Some("one"))])).unwrap();
    let path = run_files(&env).remove(0);
    env.disk().remove(&path).unwrap();
    assert!(matches!(open(&simulation.kill()).err(), Some(RunsError::Corruption { file, .. }) if file == path));
}

#[test]
fn x21_a_fence_kills_what_is_durable_later_and_survives_a_restart() {
    let simulation = Simulation::new(14);
    let (runs, _) = open(&simulation.env()).unwrap();
    let mut model = Model::default();
    create(&runs, &mut model, &[1]).unwrap();
    let version = |sequence, timestamp, value: &str| ModelVersion {
        stamp: Stamp::new(sequence, Timestamp(timestamp)),
        value: Some(value.as_bytes().to_vec()),
    };
    let mut batch = Batch::default();
    batch.keys.insert(key(1), vec![version(3, 30, "late"), version(2, 20, "early")]);
    batch.keys.insert(key(2), vec![version(4, 40, "late")]);
    batch.keys.insert(key(3), vec![version(5, 0, "untimestamped")]);
    checkpoint(&runs, &mut model, &BTreeMap::from([(1, batch)])).unwrap();
    let held = runs.slot(1).load();
    runs.install(Edit { fence: Some(Timestamp(25)), ..Default::default() }).unwrap();
    assert_eq!(held.newest_stamp(&key(1)).unwrap().map(|stamp| stamp.commit), Some(Timestamp(30)));
    model.fence(Timestamp(25));
    assert!(agrees(&runs, None, &model, &LATEST).unwrap());
    let mut later = Batch::default();
    later.keys.insert(key(2), vec![version(6, 41, "again")]);
    checkpoint(&runs, &mut model, &BTreeMap::from([(1, later)])).unwrap();
    assert!(agrees(&runs, None, &model, &LATEST).unwrap());
    let (runs, opened) = open(&simulation.crash()).unwrap();
    assert!(agrees(&runs, Some(&opened), &model, &LATEST).unwrap());
    runs.compact(1, &KeepNothing).unwrap();
    assert!(agrees(&runs, Some(&opened), &model, &LATEST).unwrap());
    assert_eq!(runs.slot(1).load().runs_count(), 1);
}

#[test]
fn x20_twenty_thousand_tables_open_by_the_manifest_alone() {
    let simulation = Simulation::new(15);
    let mut model = Model::default();
    let (runs, _) = Runs::open(&simulation.env(), &directory(), crate::RunsOptions::default()).unwrap();
    let tables: Vec<TableId> = (1..=20_000).collect();
    create(&runs, &mut model, &tables).unwrap();
    let batches = tables.iter().map(|table| (*table, Batch::settled(&[(*table, Some("v"))]))).collect();
    checkpoint_with(&runs, &mut model, &batches, crate::WriterOptions::default()).unwrap();
    let env = simulation.crash();
    simulation.disk().reset_statistics();
    let (runs, opened) = Runs::open(&env, &directory(), crate::RunsOptions::default()).unwrap();
    assert_eq!(opened.tables.len(), 20_000);
    let read = simulation.disk().statistics(|path| crate::file_number(path).is_some());
    assert_eq!(read.reads, 0, "no run file is touched");
    assert!(runs.statistics().files < 10);
    let each_bytes = runs.statistics().memory_bytes / 20_000;
    assert!((500..5_000).contains(&each_bytes), "{each_bytes} bytes of memory for a table");
    model.tables.retain(|table, _| table % 501 == 0);
    assert!(agrees(&runs, None, &model, &LATEST).unwrap());
}

#[test]
fn announced_keys_read_as_before_and_announcing_reads_nothing() {
    let simulation = Simulation::new(11);
    let (runs, _) = open(&simulation.env()).unwrap();
    let mut model = Model::default();
    create(&runs, &mut model, &[1]).unwrap();
    for from in [0, 40, 80] {
        let pairs: Vec<(u64, Option<&str>)> =
            (from..from + 120).map(|number| (number, (number % 7 != 0).then_some("value"))).collect();
        checkpoint(&runs, &mut model, &batch_of(1, &pairs)).unwrap();
    }
    let table = runs.slot(1).load();
    let keys: Vec<Vec<u8>> = (0..300).rev().map(key).chain([b"".to_vec(), b"other".to_vec()]).collect();
    let announced: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
    for _ in 0..2 {
        let before = runs.statistics().cache;
        let seats = table.announce(&announced);
        assert_eq!(runs.statistics().cache, before);
        for (number, key) in keys.iter().enumerate() {
            assert_eq!(seats.get(number, &LATEST).unwrap(), table.get(key, &LATEST).unwrap());
        }
        // The second time everything is in memory.
        assert!(agrees(&runs, None, &model, &LATEST).unwrap());
    }
}

/// Where keys only grow, a scan takes the short step but at the ends of blocks.
#[test]
fn runs_that_follow_each_other_are_scanned_as_one() {
    let simulation = Simulation::new(12);
    let (runs, _) = open(&simulation.env()).unwrap();
    let mut model = Model::default();
    create(&runs, &mut model, &[1]).unwrap();
    for from in [0, 100, 200] {
        let pairs: Vec<(u64, Option<&str>)> = (from..from + 100).map(|number| (number, Some("value"))).collect();
        checkpoint(&runs, &mut model, &batch_of(1, &pairs)).unwrap();
    }
    let table = runs.slot(1).load();
    assert_eq!(table.runs_count(), 3);
    let mut cursor = table.cursor(LATEST);
    for forward in [true, false] {
        let (mut short, mut long) = (0, 0);
        loop {
            if cursor.step_in_block(forward) {
                short += 1;
            } else if if forward { cursor.next() } else { cursor.prev() }.unwrap() {
                long += 1;
            } else {
                break;
            }
        }
        assert_eq!(short + long, 300);
        assert!(short > 4 * long, "{short} short and {long} long steps, forward: {forward}");
    }
}
