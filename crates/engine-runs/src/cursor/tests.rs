//! Random histories against the oracle: point reads, scans both ways, turns, estimates, and all of it again after a merge.

use crate::oracle::{Bench, Oracle, Shape, make, seeded_options, small_options};
use crate::{
    FilterPrefix, Lookup, ReadPoint, RetentionPoint, StreamOptions, TableRuns, TableWriteOptions, Version,
    VersionStream, WriterOptions,
};
use bytes::Bytes;
use pando_base::Timestamp;
use pando_env::Random;
use pando_env::simulated::{SimulatedRandom, Simulation};
use std::sync::Arc;

fn shape(seed: u64) -> Shape {
    Shape {
        keys: [5, 60, 200][seed as usize % 3],
        runs: [1, 2, 5][seed as usize / 3 % 3],
        operations_per_run: [40, 150, 400][seed as usize / 5 % 3],
        erases: seed.is_multiple_of(2),
        fences: seed % 4 < 2,
        value_bytes_max: [30, 700][seed as usize / 7 % 2],
    }
}

fn check_gets(table: &TableRuns, oracle: &Oracle, point: &ReadPoint, settled: bool) {
    let strangers = oracle.keys.iter().map(|key| Bytes::from([key.as_ref(), b"!"].concat()));
    for key in oracle.keys.iter().cloned().chain(strangers) {
        let expected = oracle.lookup(&key, point);
        let found = table.get(&key, point).unwrap();
        match (&found, expected) {
            (Lookup::Found { value, stamp }, Some((expected_stamp, Some(expected)))) => {
                assert_eq!(*value, expected, "{key:?} at {point:?}");
                assert!(settled || *stamp == expected_stamp);
            }
            (Lookup::Deleted { stamp }, Some((expected_stamp, None))) => assert!(settled || *stamp == expected_stamp),
            (Lookup::Absent, None) => {}
            (Lookup::Absent, Some((_, None))) if settled => {}
            (found, expected) => panic!("{key:?} at {point:?}: {found:?} instead of {expected:?}"),
        }
    }
}

/// Walks at random, in both directions and with seeks, next to a sorted list.
fn check_cursor(table: &Arc<TableRuns>, oracle: &Oracle, point: &ReadPoint, random: &dyn Random, steps: usize) {
    let expected = oracle.visible(point);
    let mut cursor = table.cursor(*point);
    let mut forward = Vec::new();
    while cursor.next().unwrap() {
        forward.push((Bytes::copy_from_slice(cursor.key()), cursor.value().unwrap()));
        assert_eq!(cursor.value_slice().unwrap(), cursor.value().unwrap());
        assert_eq!(cursor.value_length(), cursor.value().unwrap().len() as u64);
    }
    assert_eq!(forward, expected, "forward at {point:?}");
    let mut backward = Vec::new();
    while cursor.prev().unwrap() {
        backward.push((Bytes::copy_from_slice(cursor.key()), cursor.value().unwrap()));
    }
    backward.reverse();
    assert_eq!(backward, expected, "backward at {point:?}");
    let mut shortest = Vec::new();
    while cursor.step_in_block(true) || cursor.next().unwrap() {
        shortest.push((Bytes::copy_from_slice(cursor.key()), cursor.value().unwrap()));
    }
    assert_eq!(shortest, expected, "forward by short steps at {point:?}");
    shortest.clear();
    while cursor.step_in_block(false) || cursor.prev().unwrap() {
        shortest.push((Bytes::copy_from_slice(cursor.key()), cursor.value().unwrap()));
    }
    shortest.reverse();
    assert_eq!(shortest, expected, "backward by short steps at {point:?}");
    let mut at: i64 = -1;
    for _ in 0..steps {
        let mut key = oracle.keys[random.below(oracle.keys.len() as u64) as usize].to_vec();
        if random.below(3) == 0 {
            key.push(0);
        }
        let below = expected.partition_point(|(known, _)| **known < *key) as i64;
        let through = expected.partition_point(|(known, _)| **known <= *key) as i64;
        let end = expected.len() as i64;
        let found = match random.below(14) {
            0 => (cursor.seek(&key).unwrap(), at = below).0,
            1 => (cursor.seek_after(&key).unwrap(), at = through).0,
            2 => (cursor.seek_back(&key).unwrap(), at = through - 1).0,
            3 => (cursor.seek_before(&key).unwrap(), at = below - 1).0,
            4 => (cursor.first().unwrap(), at = 0).0,
            5 => (cursor.last().unwrap(), at = end - 1).0,
            6..8 => (cursor.next().unwrap(), at = (at + 1).min(end)).0,
            8..10 => (cursor.step_in_block(true) || cursor.next().unwrap(), at = (at + 1).min(end)).0,
            10..12 => (cursor.step_in_block(false) || cursor.prev().unwrap(), at = (at - 1).max(-1)).0,
            _ => (cursor.prev().unwrap(), at = (at - 1).max(-1)).0,
        };
        assert_eq!(found, at >= 0 && at < end, "at {at} of {end}");
        assert_eq!(found, cursor.is_valid());
        if found {
            let (key, value) = &expected[at as usize];
            assert_eq!((cursor.key(), cursor.value_slice().unwrap()), (key.as_ref(), value.as_ref()));
            assert_eq!(Some(cursor.stamp()), oracle.lookup(key, point).map(|(stamp, _)| stamp));
        }
    }
}

fn check_all(table: &Arc<TableRuns>, oracle: &Oracle, random: &dyn Random, points: usize) {
    check_gets(table, oracle, &ReadPoint::LATEST, false);
    for _ in 0..points {
        let point = oracle.point(random);
        check_gets(table, oracle, &point, false);
        check_cursor(table, oracle, &point, random, 60);
    }
    for key in &oracle.keys {
        let newest = oracle.lookup(key, &ReadPoint::LATEST).map(|(stamp, _)| stamp);
        assert_eq!(table.newest_stamp(key).unwrap(), newest);
    }
}

#[test]
fn x20_random_histories_read_like_the_oracle() {
    for seed in 0..120 {
        let random = SimulatedRandom::new(seed);
        let oracle = make(&random, &shape(seed));
        let cache_bytes = if seed % 2 == 0 { 1 << 20 } else { 3000 };
        let bench = Bench::new(Simulation::new(seed).env(), cache_bytes);
        let options = if seed % 5 == 4 { WriterOptions::default() } else { seeded_options(seed / 2) };
        let table = Arc::new(bench.write(&oracle, &options));
        check_all(&table, &oracle, &random, 4);
    }
}

#[test]
fn x20_a_cursor_that_passes_by_leaves_no_blocks_in_the_cache() {
    let random = SimulatedRandom::new(6);
    let oracle = make(&random, &Shape { keys: 200, runs: 2, operations_per_run: 400, ..shape(6) });
    let bench = Bench::new(Simulation::new(6).env(), 1 << 20);
    let table = Arc::new(bench.write(&oracle, &small_options()));
    let walk = |passes_by: bool| {
        let mut cursor = table.cursor(ReadPoint::LATEST);
        if passes_by {
            cursor.pass_by();
        }
        let (mut keys, mut is_on) = (Vec::new(), cursor.seek(b"").unwrap());
        while is_on {
            keys.push(cursor.key().to_vec());
            is_on = cursor.next().unwrap();
        }
        keys
    };
    // Partitions of indexes do stay.
    let keys = walk(true);
    let used_bytes = bench.cache.used_bytes();
    assert_eq!(keys.len(), oracle.visible(&ReadPoint::LATEST).len());
    assert_eq!((walk(true), bench.cache.used_bytes()), (keys.clone(), used_bytes));
    assert_eq!(walk(false), keys);
    assert!(bench.cache.used_bytes() > used_bytes, "a walk that stays fills the cache");
}

/// Reads a table through a stream and writes what comes out as one run.
fn rewrite(bench: &Bench, table: &TableRuns, retention: Option<RetentionPoint>, is_bottom: bool) -> TableRuns {
    let options = StreamOptions { retention, is_bottom, ..StreamOptions::default() };
    TableRuns::new(rewrite_runs(bench, table.runs(), options))
}

fn rewrite_runs(bench: &Bench, runs: &[Arc<crate::Run>], options: StreamOptions) -> Vec<Arc<crate::Run>> {
    let mut stream = VersionStream::new(runs, options).unwrap();
    let mut writer = bench.writer(small_options());
    writer.begin_table(1, TableWriteOptions { filter_prefix: FilterPrefix::Whole, ident: String::new() }).unwrap();
    stream.range_tombstones().into_iter().for_each(|tombstone| writer.add_range_tombstone(tombstone).unwrap());
    let mut last: Option<(Vec<u8>, crate::Stamp)> = None;
    while stream.next().unwrap() {
        let same_key = last.as_ref().is_some_and(|(key, _)| key == stream.key());
        assert_eq!(stream.is_new_key(), !same_key);
        let value = stream.value().unwrap();
        writer.add_version(stream.key(), Version { stamp: stream.stamp(), value: value.as_deref() }).unwrap();
        last = Some((stream.key().to_vec(), stream.stamp()));
    }
    bench.open(writer.finish().unwrap(), Timestamp::MAX)
}

/// Merges in stages as a store does: first some of the younger runs, each half of the keys by itself, then everything.
#[test]
fn r20_merges_in_stages_read_like_the_oracle() {
    for seed in 0..120 {
        let random = SimulatedRandom::new(3000 + seed);
        let oracle = make(&random, &Shape { runs: 4, ..shape(seed) });
        let bench = Bench::new(Simulation::new(seed).env(), 1 << 20);
        let mut runs = bench.write(&oracle, &seeded_options(seed)).runs().to_vec();
        let snapshots = vec![random.below(oracle.sequence + 1)];
        let horizon = oracle.sequence.max(snapshots[0]);
        let oldest = Timestamp(1 + random.below(oracle.clock));
        let retention = RetentionPoint {
            oldest,
            stable: Timestamp(oldest.0 + random.below(10)),
            read_timestamp_min: Timestamp::MAX,
            snapshots,
            horizon,
        };
        while !runs.is_empty() {
            let count = 1 + random.below(runs.len() as u64) as usize;
            let is_bottom = count == runs.len();
            let middle = oracle.keys[random.below(oracle.keys.len() as u64) as usize].clone();
            let half = |start: Option<&Bytes>, end: Option<&Bytes>| StreamOptions {
                start: start.cloned(),
                end: end.cloned(),
                retention: Some(retention.clone()),
                is_bottom,
            };
            let low = rewrite_runs(&bench, &runs[..count], half(None, Some(&middle)));
            let high = rewrite_runs(&bench, &runs[..count], half(Some(&middle), None));
            let parts: Vec<_> = low.iter().chain(&high).flat_map(|run| run.parts()).cloned().collect();
            runs.splice(..count, (!parts.is_empty()).then(|| crate::Run::new(parts)));
            let table = Arc::new(TableRuns::new(runs.clone()));
            for sequence in [retention.snapshots[0], horizon, u64::MAX] {
                for timestamp in [Timestamp::MAX, oldest, retention.stable] {
                    check_reads(&table, &oracle, &ReadPoint { sequence, timestamp });
                }
            }
            if is_bottom {
                break;
            }
        }
    }
}

#[test]
fn merged_runs_read_like_the_oracle_at_every_point() {
    for seed in 0..60 {
        let random = SimulatedRandom::new(1000 + seed);
        let oracle = make(&random, &shape(seed));
        let bench = Bench::new(Simulation::new(seed).env(), 1 << 20);
        let table = bench.write(&oracle, &seeded_options(seed));
        let merged = Arc::new(rewrite(&bench, &table, None, false));
        // A bottom run's tombstones have nothing to act on: compare only what is there.
        for _ in 0..4 {
            let point = oracle.point(&random);
            check_cursor(&merged, &oracle, &point, &random, 30);
            check_gets(&merged, &oracle, &point, true);
        }
    }
}

#[test]
fn r20_merges_keep_what_readers_and_rollbacks_need() {
    for seed in 0..150 {
        let random = SimulatedRandom::new(2000 + seed);
        let oracle = make(&random, &shape(seed));
        let bench = Bench::new(Simulation::new(seed).env(), 1 << 20);
        let table = bench.write(&oracle, &seeded_options(seed));
        let mut snapshots: Vec<u64> = (0..random.below(3)).map(|_| random.below(oracle.sequence + 1)).collect();
        snapshots.sort_unstable();
        let oldest = Timestamp(1 + random.below(oracle.clock));
        let stable = Timestamp(oldest.0 + random.below(10));
        let retention = RetentionPoint {
            oldest,
            stable,
            read_timestamp_min: if random.below(2) == 0 {
                Timestamp::MAX
            } else {
                Timestamp(1 + random.below(oldest.0))
            },
            horizon: snapshots.last().copied().unwrap_or(0).max(random.below(oracle.sequence + 1)),
            snapshots: snapshots.clone(),
        };
        let is_bottom = seed % 3 != 0;
        let merged = Arc::new(rewrite(&bench, &table, Some(retention.clone()), is_bottom));
        let mut allowed = snapshots;
        allowed.extend([retention.horizon, retention.horizon + random.below(5), u64::MAX]);
        for sequence in allowed {
            let floor = retention.read_floor().0;
            for timestamp in [u64::MAX, floor, floor + random.below(20), stable.0] {
                let timestamp = Timestamp(timestamp.max(floor));
                check_reads(&merged, &oracle, &ReadPoint { sequence, timestamp });
            }
        }
        // Then everything after some point not before stable is rolled back.
        let fence = Timestamp(stable.0 + random.below(10));
        let parts = merged.runs().iter().flat_map(|run| run.parts()).map(|part| part.with_fence(fence)).collect();
        let fenced = Arc::new(TableRuns::new(vec![crate::Run::new(parts)]));
        let fences = oracle.fences.iter().map(|old| fence.min(*old)).collect();
        let rolled_back = Oracle { fences, operations: oracle.operations.clone(), keys: oracle.keys.clone(), ..oracle };
        check_reads(&fenced, &rolled_back, &ReadPoint::LATEST);
    }
}

fn check_reads(table: &Arc<TableRuns>, oracle: &Oracle, point: &ReadPoint) {
    check_gets(table, oracle, point, true);
    let mut cursor = table.cursor(*point);
    let mut found = Vec::new();
    while cursor.next().unwrap() {
        found.push((Bytes::copy_from_slice(cursor.key()), cursor.value().unwrap()));
    }
    assert_eq!(found, oracle.visible(point), "at {point:?}");
}

#[test]
fn estimates_of_one_run_are_exact_and_random_keys_exist() {
    for seed in 0..20 {
        let random = SimulatedRandom::new(seed);
        let shape = Shape { runs: 1, erases: false, fences: false, ..shape(seed) };
        let oracle = make(&random, &shape);
        let bench = Bench::new(Simulation::new(seed).env(), 1 << 20);
        let table = Arc::new(bench.write(&oracle, &seeded_options(seed)));
        let written: std::collections::BTreeSet<&Bytes> = oracle
            .operations
            .iter()
            .filter_map(|operation| match &operation.change {
                crate::oracle::Change::Write { key, .. } => Some(key),
                crate::oracle::Change::Erase { .. } => None,
            })
            .collect();
        for _ in 0..20 {
            let pick = || oracle.keys[random.below(oracle.keys.len() as u64) as usize].clone();
            let (start, end) = (pick(), pick());
            let expected = written.iter().filter(|key| ***key >= start && ***key < end).count();
            let estimate = table.estimate(Some(&start), Some(&end)).unwrap();
            assert_eq!(estimate.records, expected as u64);
        }
        assert_eq!(table.estimate(None, None).unwrap().records, written.len() as u64);
        let visible = oracle.visible(&ReadPoint::LATEST);
        for _ in 0..20 {
            let key = table.random_key(&random, &ReadPoint::LATEST).unwrap();
            assert_eq!(key.is_some(), !visible.is_empty());
            assert!(key.is_none_or(|key| visible.iter().any(|(known, _)| *known == key)));
        }
    }
}
