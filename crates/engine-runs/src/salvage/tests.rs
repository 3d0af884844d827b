//! Salvage of damaged blocks, lost files and lost manifests.

use crate::manifest::current;
use crate::store::testing::*;
use crate::*;
use bytes::Bytes;
use pando_base::Timestamp;
use pando_env::simulated::Simulation;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

const LATEST: ReadPoint = ReadPoint::LATEST;

/// A store with several tables, histories, truncations, large values, merges and files shared and not.
fn populated(seed: u64) -> (Simulation, Model) {
    let simulation = Simulation::new(seed);
    let (runs, _) = open(&simulation.env()).unwrap();
    let mut model = Model::default();
    create(&runs, &mut model, &[1, 2, 3]).unwrap();
    for round in 0..7u64 {
        let mut batches: BTreeMap<TableId, Batch> = BTreeMap::new();
        for table in 1..=3u64 {
            let batch = batches.entry(table).or_default();
            for number in (0..60).filter(|number| (number + round) % table == 0) {
                let length = if number == 30 && round == 6 { 20_000 } else { 12 + (number * round % 17) as usize };
                let stamp = |back: u64| Stamp::new(round * 10 + 9 - back, Timestamp(round * 10 + 9 - back));
                let value = |back: u8| Some(vec![(number + round) as u8 ^ back; length]);
                let newest = if (number + round) % 11 == 3 { None } else { value(0) };
                let versions = [(stamp(0), newest), (stamp(1), value(1))];
                let versions = versions.map(|(stamp, value)| ModelVersion { stamp, value }).to_vec();
                batch.keys.insert(key(number), versions);
            }
            if round == 5 && table == 2 {
                batch.truncations.push((key(10), Some(key(20)), Stamp::new(50, Timestamp(50))));
            }
        }
        checkpoint(&runs, &mut model, &batches).unwrap();
        let retention = RetentionPoint {
            oldest: Timestamp(round * 10),
            stable: Timestamp(round * 10),
            read_timestamp_min: Timestamp::MAX,
            snapshots: Vec::new(),
            horizon: round * 10,
        };
        runs.merge_all(&Fixed(retention)).unwrap();
    }
    runs.reclaim().unwrap();
    runs.close().unwrap();
    (simulation, model)
}

fn salvaged(simulation: &Simulation) -> (SalvageReport, Runs, Opened) {
    let report = salvage(&simulation.env(), &directory()).unwrap();
    let (runs, opened) = open(&simulation.env()).unwrap();
    (report, runs, opened)
}

/// True if the report says that the key may have been lost.
fn is_reported(report: &SalvageReport, table: TableId, key: &[u8]) -> bool {
    let above = |bound: &Option<Bytes>| bound.as_ref().is_none_or(|bound| bound.as_ref() <= key);
    let below = |bound: &Option<Bytes>| bound.as_ref().is_none_or(|bound| key <= bound.as_ref());
    report.lost.iter().any(|lost| lost.table == Some(table) && above(&lost.after) && below(&lost.before))
}

/// Every key that the report does not name is as it was. Returns how many differ.
fn check_survivors(report: &SalvageReport, runs: &Runs, model: &Model) -> usize {
    let mut lost = 0;
    for (table, keys) in &model.tables {
        let found: BTreeMap<Vec<u8>, Vec<u8>> = scan(runs, *table, &LATEST).unwrap().into_iter().collect();
        for key in keys.keys() {
            if found.get(key) != model.get(*table, key, &LATEST).as_ref() {
                let key_text = String::from_utf8_lossy(key);
                assert!(
                    is_reported(report, *table, key),
                    "table {table} {key_text} is silently lost: {:?}",
                    report.lost
                );
                lost += 1;
            }
        }
        assert!(found.keys().all(|key| keys.contains_key(key)), "nothing is invented");
    }
    lost
}

#[test]
fn b3_salvage_of_an_intact_store_changes_nothing() {
    let (simulation, model) = populated(1);
    let (report, runs, opened) = salvaged(&simulation);
    assert!(report.lost.is_empty() && report.manifest_damage.is_none() && report.parts_rescued == 0);
    assert!(agrees(&runs, Some(&opened), &model, &LATEST).unwrap());
    assert_eq!(report.mark, opened.mark);
}

#[test]
fn b3_a_flipped_byte_in_a_run_file_is_found_and_everything_else_is_saved() {
    let (simulation, model) = populated(2);
    let keys: usize = model.tables.values().map(BTreeMap::len).sum();
    let mut most_lost = 0;
    for path in run_files(&simulation.env()) {
        let length = simulation.disk().contents(&path).unwrap().len() as u64;
        for offset in (0..length).step_by(97) {
            let copy = simulation.fork(offset);
            copy.disk().flip_byte(&path, offset).unwrap();
            let (runs, _) = open(&copy.env()).unwrap();
            let problems = runs.verify(&mut |_| ()).unwrap().problems;
            assert!(problems.iter().any(|problem| problem.file == path && problem.offset <= offset), "{offset}");
            drop(runs);
            let (report, runs, _) = salvaged(&copy);
            let lost = check_survivors(&report, &runs, &model);
            assert!(lost < keys / 3, "{path:?} {offset}: {lost} of {keys} lost: {:?}", report.lost);
            assert_eq!(runs.verify(&mut |_| ()).unwrap().problems, []);
            most_lost = most_lost.max(lost);
        }
    }
    assert!(most_lost > 0);
}

#[test]
fn b3_a_missing_file_is_reported_with_its_keys() {
    let (simulation, model) = populated(3);
    for path in run_files(&simulation.env()) {
        let copy = simulation.fork(1);
        copy.env().disk().remove(&path).unwrap();
        assert!(open(&copy.env()).err().unwrap().is_corruption());
        let (report, runs, _) = salvaged(&copy);
        assert!(report.lost.iter().all(|lost| lost.file == path) && !report.lost.is_empty());
        check_survivors(&report, &runs, &model);
        assert_eq!(runs.verify(&mut |_| ()).unwrap().problems, []);
    }
}

#[test]
fn b3_a_lost_manifest_is_rebuilt_from_the_files() {
    let (simulation, mut model) = populated(4);
    let env = simulation.env();
    let manifests: Vec<PathBuf> = simulation.disk().files().into_iter().filter(|path| is_manifest(path)).collect();
    assert_eq!(manifests.len(), 1);
    for keep_pointer in [false, true] {
        let copy = simulation.fork(7);
        copy.env().disk().remove(&manifests[0]).unwrap();
        if !keep_pointer {
            copy.env().disk().remove(&directory().join(current::NAME)).unwrap();
        }
        assert!(open(&copy.env()).err().unwrap().is_corruption());
        let (report, runs, opened) = salvaged(&copy);
        assert!(report.manifest_damage.is_some() && report.lost.is_empty());
        let idents: BTreeSet<String> = opened.tables.iter().map(|table| table.ident.clone()).collect();
        assert_eq!(idents, BTreeSet::from(["table-1".into(), "table-2".into(), "table-3".into()]));
        let ids: BTreeMap<TableId, TableId> =
            opened.tables.iter().map(|table| (table.ident[6..].parse().unwrap(), table.id)).collect();
        for table in model.tables.keys() {
            assert_eq!(scan(&runs, ids[table], &LATEST).unwrap(), model.scan(*table, &LATEST));
        }
        let files = runs.statistics().files;
        assert_eq!(run_files(&copy.env()).len() as u64, files);
    }
    // With the records still readable, ids and the mark are known as well.
    simulation.disk().flip_byte(&manifests[0], 3).unwrap();
    assert!(open(&env).err().unwrap().is_corruption());
    let (report, runs, opened) = salvaged(&simulation);
    assert!(report.manifest_damage.is_some());
    model.mark = opened.mark.as_ref().map_or(0, |mark| mark.sequence_cut);
    assert_eq!(model.mark, 7);
    assert!(agrees(&runs, Some(&opened), &model, &LATEST).unwrap());
}

fn is_manifest(path: &std::path::Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("MANIFEST-"))
}

#[test]
fn b3_leftovers_of_an_unfinished_or_finished_merge_do_no_harm_to_a_rebuild() {
    let simulation = Simulation::new(5);
    let (runs, _) = open(&simulation.env()).unwrap();
    let mut model = Model::default();
    create(&runs, &mut model, &[1]).unwrap();
    for round in 0..5u64 {
        let pairs: Vec<(u64, Option<&str>)> = (0..200)
            .filter(|n| n % (round + 1) == 0)
            .map(|n| (n, (n % 7 != round).then_some("text of a length")))
            .collect();
        checkpoint(&runs, &mut model, &BTreeMap::from([(1, Batch::settled(&pairs))])).unwrap();
    }
    let rebuild = |simulation: &Simulation, model: &Model| {
        let env = simulation.crash();
        for path in simulation.disk().files() {
            if is_manifest(&path) || path.ends_with(current::NAME) {
                env.disk().remove(&path).unwrap();
            }
        }
        let (report, runs, _) = salvaged(simulation);
        assert!(report.lost.is_empty());
        assert_eq!(scan(&runs, 1, &LATEST).unwrap(), model.scan(1, &LATEST));
    };
    let reader = runs.slot(1).load();
    runs.merge_all(&KeepNothing).unwrap();
    runs.reclaim().unwrap();
    rebuild(&simulation.fork(1), &model);
    drop(reader);
    checkpoint(&runs, &mut model, &BTreeMap::from([(1, Batch::settled(&[(3, Some("newer"))]))])).unwrap();
    rebuild(&simulation.fork(2), &model);
    runs.reclaim().unwrap();
    rebuild(&simulation.fork(3), &model);
    // Only some of the inputs are gone.
    let (copy, victim) = (simulation.fork(4), run_files(&simulation.env()).remove(0));
    runs.compact(1, &KeepNothing).unwrap();
    let partial = simulation.fork(5);
    partial.env().disk().remove(&victim).unwrap();
    rebuild(&partial, &model);
    rebuild(&copy, &model);
}

#[test]
fn b3_salvage_cut_short_can_be_repeated() {
    let (simulation, model) = populated(6);
    let path = run_files(&simulation.env()).remove(0);
    simulation.disk().flip_byte(&path, 300).unwrap();
    let whole = simulation.fork(0);
    let (_, runs, _) = salvaged(&whole);
    let expected: Vec<_> = model.tables.keys().map(|table| scan(&runs, *table, &LATEST).unwrap()).collect();
    for crash_after in 0..40 {
        let copy = simulation.fork(crash_after);
        copy.disk().crash_after(crash_after);
        let first = salvage(&copy.env(), &directory());
        copy.crash();
        if first.is_err() {
            salvage(&copy.env(), &directory()).unwrap();
        }
        let (runs, _) = open(&copy.env()).unwrap();
        let found: Vec<_> = model.tables.keys().map(|table| scan(&runs, *table, &LATEST).unwrap()).collect();
        assert_eq!(found, expected, "{crash_after}");
    }
}
