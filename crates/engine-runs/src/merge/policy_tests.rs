//! The policy on simulated histories of runs.

use super::policy::*;
use std::collections::BTreeSet;

const MEGABYTE: u64 = 1 << 20;

fn shapes(megabytes: &[u64]) -> Vec<RunShape> {
    megabytes.iter().map(|size| RunShape { bytes: size * MEGABYTE, ..RunShape::default() }).collect()
}

fn choose_of(megabytes: &[u64]) -> Option<(usize, usize, Reason)> {
    choose(&MergePolicy::default(), &shapes(megabytes)).map(|choice| (choice.first, choice.count, choice.reason))
}

#[test]
fn few_runs_are_left_alone() {
    assert_eq!(choose_of(&[]), None);
    assert_eq!(choose_of(&[100]), None);
    assert_eq!(choose_of(&[10, 10, 10, 100]), None);
}

#[test]
fn young_runs_as_large_as_the_oldest_are_merged_with_it() {
    assert_eq!(choose_of(&[50, 50, 100]), Some((0, 3, Reason::Space)));
}

#[test]
fn history_does_not_make_young_runs_large() {
    let oldest = RunShape { bytes: 100 * MEGABYTE, ..RunShape::default() };
    let hot = RunShape { bytes: 150 * MEGABYTE, history_bytes: 100 * MEGABYTE, dead_bytes: 0 };
    assert_eq!(choose(&MergePolicy::default(), &[hot, oldest]), None);
    let choice = choose(&MergePolicy::default(), &[hot, hot, oldest]).unwrap();
    assert_eq!((choice.first, choice.count, choice.reason), (0, 3, Reason::Space));
    assert!(choose(&MergePolicy::default(), &[hot, hot]).is_some(), "nor the oldest one");
}

#[test]
fn many_runs_are_merged_where_it_costs_least_per_run() {
    assert_eq!(choose_of(&[2, 2, 2, 2, 40, 50, 200]), Some((0, 4, Reason::Depth)));
    assert_eq!(choose_of(&[2, 2, 2, 2, 2, 2, 2_000]), Some((0, 6, Reason::Depth)));
}

#[test]
fn tiny_runs_are_merged_eagerly_and_a_few_are_not() {
    let tiny = RunShape { bytes: 1000, ..RunShape::default() };
    let large = RunShape { bytes: 100 * MEGABYTE, ..RunShape::default() };
    let choice =
        choose(&MergePolicy { runs_max: 6, ..Default::default() }, &[tiny, tiny, tiny, tiny, tiny, large]).unwrap();
    assert_eq!((choice.first, choice.count, choice.reason), (0, 5, Reason::Tiny));
    let choice = choose(&MergePolicy::default(), &[tiny, tiny, tiny, tiny, tiny, large]).unwrap();
    assert_eq!((choice.first, choice.count), (0, 5));
    assert_eq!(choose(&MergePolicy::default(), &[tiny, tiny, tiny, large]), None);
    assert_eq!(choose(&MergePolicy::default(), &[tiny, tiny, tiny]), None);
}

#[test]
fn a_mostly_dead_run_is_rewritten_alone() {
    let dead = RunShape { bytes: 10 * MEGABYTE, dead_bytes: 6 * MEGABYTE, ..RunShape::default() };
    let large = RunShape { bytes: 100 * MEGABYTE, ..RunShape::default() };
    let choice = choose(&MergePolicy::default(), &[dead, large]).unwrap();
    assert_eq!((choice.first, choice.count, choice.reason), (0, 1, Reason::Dead));
}

/// Bytes written per byte of checkpoint, the most runs, the most space, when a share of the keys is rewritten at random.
fn simulate(policy: &MergePolicy, share_percent: usize, checkpoints: usize) -> (f64, usize, f64) {
    const KEYS: usize = 4000;
    let mut seed = 1u64;
    let mut random = |bound: usize| {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((seed >> 33) as usize) % bound
    };
    let mut runs: Vec<BTreeSet<usize>> = vec![(0..KEYS).collect()];
    let (mut written, mut deepest, mut widest) = (0, 0, 0);
    let run_keys = KEYS * share_percent / 100;
    for _ in 0..checkpoints {
        let mut run = BTreeSet::new();
        while run.len() < run_keys {
            run.insert(random(KEYS));
        }
        runs.insert(0, run);
        written += run_keys;
        deepest = deepest.max(runs.len());
        widest = widest.max(runs.iter().map(BTreeSet::len).sum::<usize>());
        loop {
            let shapes: Vec<RunShape> =
                runs.iter().map(|run| RunShape { bytes: run.len() as u64 * MEGABYTE, ..RunShape::default() }).collect();
            let Some(choice) = choose(policy, &shapes) else { break };
            let output: BTreeSet<usize> = runs[..choice.count].iter().flatten().copied().collect();
            written += output.len();
            runs.splice(..choice.count, [output]);
        }
    }
    (written as f64 / (run_keys * checkpoints) as f64, deepest, widest as f64 / KEYS as f64)
}

#[test]
fn random_rewrites_write_few_bytes_and_keep_runs_few() {
    let (written, deepest, widest) = simulate(&MergePolicy::default(), 10, 200);
    assert!(written < 3.0, "{written}");
    assert!(deepest <= 5 && widest < 2.1, "{deepest} {widest}");
    let (written, deepest, _) = simulate(&MergePolicy { runs_max: 6, ..Default::default() }, 10, 200);
    assert!(written < 2.5 && deepest <= 7, "{written} {deepest}");
    let (written, deepest, _) = simulate(&MergePolicy::default(), 2, 300);
    assert!(written < 6.5 && deepest <= 5, "{written} {deepest}");
}
