//! Merges against a model: random histories, and the cases that have to be looked at one by one.

use crate::store::Edit;
use crate::store::testing::*;
use crate::{MergePolicy, MergeStep, ReadPoint, Result, RetentionPoint, Runs, RunsError, RunsOptions, Stamp, TableId};
use pando_base::Timestamp;
use pando_env::simulated::{Fault, FaultKind, Simulation};
use std::collections::BTreeMap;

const LATEST: ReadPoint = ReadPoint::LATEST;

/// Numbers from a seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % bound
    }

    fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }
}

/// A store, its model, and the engine's clocks around it.
struct World {
    simulation: Simulation,
    runs: Runs,
    model: Model,
    chance: Chance,
    sequence: u64,
    clock: u64,
    stable: u64,
    oldest: u64,
    snapshots: Vec<u64>,
    merged: u64,
}

impl World {
    fn new(seed: u64) -> World {
        let simulation = Simulation::new(seed);
        let (runs, _) = open(&simulation.env()).unwrap();
        let mut model = Model::default();
        create(&runs, &mut model, &[1, 2, 3]).unwrap();
        let chance = Chance(seed);
        World {
            simulation,
            runs,
            model,
            chance,
            sequence: 0,
            clock: 10,
            stable: 5,
            oldest: 3,
            snapshots: Vec::new(),
            merged: 0,
        }
    }

    fn retention(&self) -> RetentionPoint {
        RetentionPoint {
            oldest: Timestamp(self.oldest),
            stable: Timestamp(self.stable),
            read_timestamp_min: Timestamp::MAX,
            snapshots: self.snapshots.clone(),
            horizon: self.sequence,
        }
    }

    /// Table 1 is timestamped, table 2 is not, table 3 mixes both.
    fn stamp(&mut self, table: TableId) -> Stamp {
        self.sequence += 1;
        if table == 2 || (table == 3 && self.chance.one_in(3)) {
            return Stamp { sequence: self.sequence, ..Stamp::SETTLED };
        }
        self.clock += 1 + self.chance.below(2);
        let commit = Timestamp(self.clock);
        if self.chance.one_in(4) {
            self.clock += self.chance.below(4);
        }
        Stamp { sequence: self.sequence, commit, durable: Timestamp(self.clock) }
    }

    fn batch(&mut self, table: TableId) -> Batch {
        let mut batch = Batch::default();
        if self.chance.one_in(4) {
            let start = self.chance.below(40);
            let end = (!self.chance.one_in(5)).then(|| key(start + self.chance.below(15)));
            let stamp = self.stamp(table);
            batch.truncations.push((key(start), end, stamp));
        }
        // A focus now and then, so that parts stay untouched.
        let (low, width) = if self.chance.one_in(2) { (self.chance.below(35), 5) } else { (0, 40) };
        for _ in 0..self.chance.below(25) {
            let key = key(low + self.chance.below(width));
            let stamp = self.stamp(table);
            let length = if self.chance.one_in(50) { 20_000 } else { self.chance.below(60) as usize };
            let value = (!self.chance.one_in(4)).then(|| vec![stamp.sequence as u8; length]);
            batch.keys.entry(key).or_default().insert(0, ModelVersion { stamp, value });
        }
        batch
    }

    fn step(&mut self) {
        match self.chance.below(20) {
            0..=6 => {
                let tables: Vec<TableId> = (1..=3).filter(|_| !self.chance.one_in(3)).collect();
                let batches: BTreeMap<TableId, Batch> =
                    tables.into_iter().map(|table| (table, self.batch(table))).collect();
                let faulty = self.plan_fault();
                let installed = checkpoint(&self.runs, &mut self.model, &batches);
                self.end_fault(faulty, installed.map(|()| MergeStep::Idle));
            }
            7 | 8 => {
                self.stable += self.chance.below(self.clock - self.stable + 1);
                self.oldest += self.chance.below(self.stable - self.oldest + 1);
            }
            9 => {
                let stable = Timestamp(self.stable);
                self.runs.install(Edit { fence: Some(stable), ..Default::default() }).unwrap();
                self.model.fence(stable);
            }
            10 => self.snapshots.push(self.sequence),
            11 if !self.snapshots.is_empty() => drop(self.snapshots.remove(0)),
            12 if self.chance.one_in(4) => {
                let table = 1 + self.chance.below(3);
                drop_table(&self.runs, &mut self.model, table).unwrap();
                create(&self.runs, &mut self.model, &[table]).unwrap();
            }
            13 if self.chance.one_in(2) => {
                self.snapshots.clear();
                let env = if self.chance.one_in(2) { self.simulation.crash() } else { self.simulation.kill() };
                self.runs = open(&env).unwrap().0;
            }
            14 => drop(self.runs.reclaim().unwrap()),
            _ => {
                let budget = 50 + self.chance.below(2000);
                let faulty = self.plan_fault();
                let step = self.runs.merge_step(&Fixed(self.retention()), budget);
                self.merged += u64::from(matches!(step, Ok(MergeStep::Installed { .. })));
                self.end_fault(faulty, step);
            }
        }
    }

    /// Now and then the disk refuses something once.
    fn plan_fault(&mut self) -> bool {
        if !self.chance.one_in(8) {
            return false;
        }
        let kinds = [FaultKind::SpaceRunsOut, FaultKind::WriteFails, FaultKind::ReadFails];
        let kind = kinds[self.chance.below(3) as usize];
        self.simulation.disk().inject(Fault::new(kind).from_call(1 + self.chance.below(6)).times(1));
        true
    }

    /// What was refused has changed nothing.
    fn end_fault(&mut self, faulty: bool, result: Result<MergeStep>) {
        self.simulation.disk().clear_faults();
        assert!(faulty || result.is_ok(), "{result:?}");
        assert!(!matches!(result, Err(RunsError::Stopped(_) | RunsError::Corruption { .. })), "{result:?}");
    }

    fn check(&self) {
        let mut sequences = self.snapshots.clone();
        sequences.push(self.sequence);
        for sequence in sequences {
            let timestamps = [self.oldest, self.stable, (self.oldest + self.clock) / 2, self.clock, u64::MAX];
            for timestamp in timestamps {
                let point = ReadPoint { sequence, timestamp: Timestamp(timestamp) };
                assert_eq!(difference(&self.runs, &self.model, &point).unwrap(), None, "{:?}", self.retention());
            }
        }
    }
}

#[test]
fn x20_random_histories_read_like_the_model() {
    let mut merged = 0;
    for seed in 0..40 {
        let mut world = World::new(seed);
        for step in 0..120 {
            world.step();
            if step % 10 == 9 {
                world.check();
            }
        }
        world.runs.merge_all(&Fixed(world.retention())).unwrap();
        world.check();
        let report = world.runs.verify(&mut |_| ()).unwrap();
        assert_eq!(report.problems, [], "seed {seed}");
        assert!(world.runs.statistics().runs_per_table_max <= 5);
        merged += world.merged;
    }
    assert!(merged > 50, "{merged}");
}

fn numbers(range: std::ops::Range<u64>, text: &str) -> BTreeMap<TableId, Batch> {
    let pairs: Vec<(u64, Option<&str>)> = range.map(|number| (number, Some(text))).collect();
    BTreeMap::from([(1, Batch::settled(&pairs))])
}

fn store(seed: u64) -> (Simulation, Runs, Model) {
    let simulation = Simulation::new(seed);
    let (runs, _) = open(&simulation.env()).unwrap();
    let mut model = Model::default();
    create(&runs, &mut model, &[1]).unwrap();
    (simulation, runs, model)
}

#[test]
fn runs_that_do_not_overlap_are_joined_without_writing() {
    let (_simulation, runs, mut model) = store(1);
    for round in 0..9 {
        checkpoint(&runs, &mut model, &numbers(round * 100..round * 100 + 100, "text that takes some space")).unwrap();
        runs.merge_all(&KeepNothing).unwrap();
        assert!(runs.slot(1).load().runs_count() <= 4);
    }
    let statistics = runs.statistics();
    assert!(statistics.merges > 0 && statistics.merge_taken_over_bytes > 0);
    assert_eq!(statistics.merge_written_bytes, 0);
    assert!(agrees(&runs, None, &model, &LATEST).unwrap());
}

#[test]
fn merges_hurry_while_a_table_is_deep_and_when_they_are_told_to() {
    let (_simulation, runs, mut model) = store(1);
    let is_hurried = runs.shared.merges.is_hurried();
    for round in 0..8 {
        checkpoint(&runs, &mut model, &numbers(0..10, &format!("round {round}"))).unwrap();
        assert!(!is_hurried(), "round {round}");
    }
    checkpoint(&runs, &mut model, &numbers(0..10, "one more")).unwrap();
    assert!(is_hurried());
    runs.merge_all(&KeepNothing).unwrap();
    assert!(!is_hurried());
    runs.hurry();
    assert!(is_hurried());
}

#[test]
fn parts_that_a_young_run_leaves_alone_are_taken_over() {
    let (_simulation, runs, mut model) = store(2);
    checkpoint(&runs, &mut model, &numbers(0..2000, "text that takes some space")).unwrap();
    let before = runs.slot(1).load().bytes_on_disk();
    assert!(runs.slot(1).load().runs()[0].parts().len() > 3);
    for round in 0..5 {
        // The ends of the table and nothing between: the bounds span all of it.
        let mut batch = numbers(0..5, if round % 2 == 0 { "even" } else { "odd" });
        batch.get_mut(&1).unwrap().keys.extend(numbers(1995..2000, "end").remove(&1).unwrap().keys);
        checkpoint(&runs, &mut model, &batch).unwrap();
    }
    while runs.slot(1).load().runs_count() > 1 {
        let retention = crate::RetentionSource::retention(&KeepNothing);
        let chosen = [(1, super::Choice { first: 0, count: 6, reason: super::policy::Reason::Depth })];
        let mut job = runs.job_for(&chosen, retention, false).unwrap().unwrap();
        assert!(job.step(u64::MAX).unwrap().finished);
        runs.install_merge(job).unwrap();
    }
    assert!(agrees(&runs, None, &model, &LATEST).unwrap());
    let statistics = runs.statistics();
    assert!(statistics.merge_written_bytes < before / 2, "{} of {before}", statistics.merge_written_bytes);
    assert!(statistics.merge_taken_over_bytes > before / 3);
    runs.reclaim().unwrap();
    assert_eq!(runs.verify(&mut |_| ()).unwrap().problems, []);
}

#[test]
fn a_table_dropped_during_its_merge_ends_the_merge() {
    let (simulation, runs, mut model) = store(3);
    for _ in 0..6 {
        checkpoint(&runs, &mut model, &numbers(0..300, "text")).unwrap();
    }
    assert!(matches!(runs.merge_step(&KeepNothing, 100).unwrap(), MergeStep::Working { .. }));
    drop_table(&runs, &mut model, 1).unwrap();
    assert_eq!(runs.merge_step(&KeepNothing, 100).unwrap(), MergeStep::Idle);
    assert_eq!(runs.statistics().merges_abandoned, 1);
    runs.reclaim().unwrap();
    assert!(run_files(&simulation.env()).is_empty());
}

#[test]
fn runs_and_fences_that_arrive_during_a_merge_hold() {
    let (_simulation, runs, mut model) = store(4);
    let timestamped = |sequence: u64, numbers: std::ops::Range<u64>| {
        let version =
            ModelVersion { stamp: Stamp::new(sequence, Timestamp(sequence)), value: Some(vec![sequence as u8]) };
        let keys = numbers.map(|number| (key(number), vec![version.clone()])).collect();
        BTreeMap::from([(1, Batch { keys, ..Default::default() })])
    };
    for sequence in 1..=6 {
        checkpoint(&runs, &mut model, &timestamped(sequence, 0..100)).unwrap();
    }
    let retention = || {
        Fixed(RetentionPoint {
            oldest: Timestamp(1),
            stable: Timestamp(4),
            read_timestamp_min: Timestamp::MAX,
            snapshots: vec![],
            horizon: 6,
        })
    };
    assert!(matches!(runs.merge_step(&retention(), 100).unwrap(), MergeStep::Working { .. }));
    runs.install(Edit { fence: Some(Timestamp(4)), ..Default::default() }).unwrap();
    model.fence(Timestamp(4));
    checkpoint(&runs, &mut model, &timestamped(7, 0..50)).unwrap();
    assert!(matches!(runs.merge_step(&retention(), u64::MAX).unwrap(), MergeStep::Installed { .. }));
    for timestamp in 1..9 {
        let point = ReadPoint { sequence: 9, timestamp: Timestamp(timestamp) };
        assert!(agrees(&runs, None, &model, &point).unwrap());
    }
    assert_eq!(runs.slot(1).load().runs_count(), 2);
}

#[test]
fn a_run_of_deletions_and_history_is_rewritten_once_nobody_needs_them() {
    let (_simulation, runs, mut model) = store(5);
    let version = |sequence: u64, value: Option<&str>| ModelVersion {
        stamp: Stamp::new(sequence, Timestamp(sequence)),
        value: value.map(|value| value.as_bytes().to_vec()),
    };
    let keys =
        (0..100).map(|n| (key(n), vec![version(3, None), version(2, Some("b")), version(1, Some("a"))])).collect();
    checkpoint(&runs, &mut model, &BTreeMap::from([(1, Batch { keys, ..Default::default() })])).unwrap();
    let point = |oldest| RetentionPoint {
        oldest: Timestamp(oldest),
        stable: Timestamp(3),
        read_timestamp_min: Timestamp::MAX,
        snapshots: vec![],
        horizon: 3,
    };
    assert_eq!(runs.merge_candidate(&point(2)), None, "the deletions are in the window");
    assert!(runs.merge_candidate(&point(3)).is_some());
    runs.merge_all(&Fixed(point(3))).unwrap();
    assert!(runs.slot(1).load().is_empty());
    assert!(agrees(&runs, None, &model, &LATEST).unwrap());
}

#[test]
fn shared_files_of_dropped_tables_are_emptied() {
    let simulation = Simulation::new(6);
    let (runs, _) = open(&simulation.env()).unwrap();
    let mut model = Model::default();
    let tables: Vec<TableId> = (1..=40).collect();
    create(&runs, &mut model, &tables).unwrap();
    let mut writer = runs.writer(crate::WriterOptions { dictionary_bytes: 0, ..Default::default() }).unwrap();
    for table in &tables {
        writer.begin_table(*table, Default::default()).unwrap();
        for number in 0..40u64 {
            let noise: Vec<u8> = (0..60u64).map(|n| ((n * number * table * 2654435761) >> 7) as u8).collect();
            let version = crate::Version { stamp: Stamp::SETTLED, value: Some(&noise) };
            writer.add_version(&key(number), version).unwrap();
            let stored = ModelVersion { stamp: Stamp::SETTLED, value: Some(noise.clone()) };
            model.tables.get_mut(table).unwrap().insert(key(number), vec![stored]);
        }
        writer.finish_table().unwrap();
    }
    runs.install(Edit { add: Some(writer.finish().unwrap()), ..Default::default() }).unwrap();
    let before = runs.statistics().file_bytes;
    assert_eq!(runs.statistics().files, 1);
    assert_eq!(runs.merge_step(&KeepNothing, u64::MAX).unwrap(), MergeStep::Idle);
    for table in 1..=30 {
        drop_table(&runs, &mut model, table).unwrap();
    }
    runs.merge_all(&KeepNothing).unwrap();
    runs.reclaim().unwrap();
    assert!(runs.statistics().file_bytes < before / 2, "{} of {before}", runs.statistics().file_bytes);
    assert!(agrees(&runs, None, &model, &LATEST).unwrap());
}

#[test]
fn small_tables_are_merged_together() {
    let simulation = Simulation::new(7);
    let (runs, _) =
        Runs::open(&simulation.env(), &directory(), RunsOptions { policy: MergePolicy::default(), ..small_options() })
            .unwrap();
    let mut model = Model::default();
    let tables: Vec<TableId> = (1..=50).collect();
    create(&runs, &mut model, &tables).unwrap();
    for round in 0..5u64 {
        let batch = Batch::settled(&[(round, Some("x"))]);
        let batches = tables.iter().map(|table| (*table, batch.clone())).collect();
        checkpoint(&runs, &mut model, &batches).unwrap();
    }
    assert!(runs.debt_bytes() > 0);
    assert!(matches!(runs.merge_step(&KeepNothing, u64::MAX).unwrap(), MergeStep::Installed { .. }));
    assert_eq!(runs.merge_step(&KeepNothing, u64::MAX).unwrap(), MergeStep::Idle);
    runs.reclaim().unwrap();
    assert_eq!(runs.statistics().files, 1);
    assert_eq!(runs.statistics().runs, 50);
    assert!(agrees(&runs, None, &model, &LATEST).unwrap());
}

#[test]
fn x20_readers_merges_and_checkpoints_go_on_side_by_side() {
    let simulation = Simulation::new(8);
    let env = pando_env::Env::real().with_disk(simulation.disk().handle());
    let (runs, _) = open(&env).unwrap();
    let mut model = Model::default();
    create(&runs, &mut model, &[1]).unwrap();
    let done = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let spawn = |name: &str, body: fn(&Runs)| {
        let (runs, done) = (runs.clone(), done.clone());
        let body = move || {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                body(&runs);
            }
        };
        env.tasks().spawn_thread(name, Box::new(body)).unwrap()
    };
    let merger = spawn("merger", |runs| {
        runs.merge_step(&KeepNothing, 500).unwrap();
        runs.reclaim().unwrap();
    });
    let reader = spawn("reader", |runs| {
        let found = scan(runs, 1, &LATEST).unwrap();
        assert!(found.is_empty() || found.len() == 50);
        assert!(found.windows(2).all(|pair| pair[0].1 == pair[1].1), "every checkpoint writes all keys");
    });
    for round in 0..60u64 {
        let text = format!("value of round {round}");
        let pairs: Vec<(u64, Option<&str>)> = (0..50).map(|number| (number, Some(text.as_str()))).collect();
        checkpoint(&runs, &mut model, &BTreeMap::from([(1, Batch::settled(&pairs))])).unwrap();
    }
    done.store(true, std::sync::atomic::Ordering::Relaxed);
    merger.join().unwrap();
    reader.join().unwrap();
    runs.merge_all(&KeepNothing).unwrap();
    assert!(agrees(&runs, None, &model, &LATEST).unwrap());
    runs.reclaim().unwrap();
    assert_eq!(run_files(&env).len() as u64, runs.statistics().files);
}

#[test]
fn a_version_settled_earlier_does_not_hide_a_truncation_below_it() {
    let (_simulation, runs, mut model) = store(9);
    let version = |sequence: u64| ModelVersion {
        stamp: Stamp::new(sequence, Timestamp(sequence)),
        value: Some(vec![sequence as u8]),
    };
    let put = |sequence| {
        BTreeMap::from([(1, Batch { keys: [(key(1), vec![version(sequence)])].into(), ..Default::default() })])
    };
    let truncation = Batch { truncations: vec![(key(0), None, Stamp::new(2, Timestamp(2)))], ..Default::default() };
    checkpoint(&runs, &mut model, &put(1)).unwrap();
    checkpoint(&runs, &mut model, &BTreeMap::from([(1, truncation)])).unwrap();
    checkpoint(&runs, &mut model, &put(3)).unwrap();
    let retention = |oldest| RetentionPoint {
        oldest: Timestamp(oldest),
        stable: Timestamp(3),
        read_timestamp_min: Timestamp::MAX,
        snapshots: vec![],
        horizon: 3,
    };
    let merge = |first, count| {
        let chosen = [(1, super::Choice { first, count, reason: super::policy::Reason::Depth })];
        let mut job = runs.job_for(&chosen, retention(1), true).unwrap().unwrap();
        assert!(job.step(u64::MAX).unwrap().finished);
        runs.install_merge(job).unwrap();
    };
    merge(0, 1);
    merge(0, 3);
    for timestamp in 1..4 {
        let point = ReadPoint { sequence: 3, timestamp: Timestamp(timestamp) };
        assert_eq!(difference(&runs, &model, &point).unwrap(), None);
    }
}
