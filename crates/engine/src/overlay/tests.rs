//! Long chains: what a read finds, and in how many steps.

use super::{Chain, ChainRead, Version};
use bytes::Bytes;
use pando_base::Timestamp;
use pando_engine_runs::Stamp;
use std::cell::Cell;

thread_local! {
    /// Versions that this thread has looked at.
    pub static STEPS: Cell<usize> = const { Cell::new(0) };
}

/// A version whose value tells its sequence.
fn version(sequence: u64, commit: u64) -> Version {
    Version::committed(Stamp::new(sequence, Timestamp(commit)), Some(Bytes::from(sequence.to_le_bytes().to_vec())))
}

fn sequence_of(read: &ChainRead<'_>) -> Option<u64> {
    match read {
        ChainRead::Version(version) => Some(version.stamp().map_or(0, |stamp| stamp.sequence)),
        _ => None,
    }
}

#[cfg(not(feature = "shuttle"))]
mod reads {
    use super::*;
    use crate::visibility::{ReadView, Snapshots, TransactionState, Watermark};
    use pando_engine_runs::ReadPoint;
    use pando_storage::PrepareBehaviour;
    use std::sync::Arc;

    fn view(sequence: u64, timestamp: u64) -> ReadView {
        let snapshots = Arc::new(Snapshots::new(Arc::new(Watermark::new(sequence))));
        let point = ReadPoint { sequence, timestamp: Timestamp(timestamp) };
        ReadView::new(point, PrepareBehaviour::Enforce, snapshots.open(point.timestamp))
    }

    /// Steps of the read, and the sequence of what it found.
    fn read(chain: &Chain, view: &ReadView) -> (usize, Option<u64>) {
        let before = STEPS.get();
        let found = sequence_of(&chain.read(view));
        (STEPS.get() - before, found)
    }

    /// What rule 1 of the interface says, one version after the other.
    fn expected(chain: &Chain, view: &ReadView) -> Option<u64> {
        let stamps = chain.newest_first().filter_map(Version::stamp);
        stamps.into_iter().find(|stamp| view.point().sees(stamp)).map(|stamp| stamp.sequence)
    }

    #[test]
    fn x25_a_hot_key_is_read_in_a_logarithm_of_steps() {
        let versions = 300_000u64;
        // With and without a version without timestamp at the old end.
        for first_commit in [10, 0] {
            let mut chain = Chain::default();
            chain.push(version(1, first_commit));
            (2..=versions).for_each(|sequence| chain.push(version(sequence, 10 * sequence)));
            for at in (1..=versions).step_by(997) {
                let (steps, found) = read(&chain, &view(u64::MAX - 1, 10 * at + 5));
                assert_eq!(found, Some(at));
                assert!(steps < 80, "{steps} steps");
                let (steps, found) = read(&chain, &view(at, u64::MAX));
                assert_eq!(found, Some(at));
                assert!(steps < 80, "{steps} steps");
            }
        }
    }

    #[test]
    fn x25_a_rollback_of_a_hot_key_does_not_walk_its_history() {
        let mut chain = Chain::default();
        (1..=100_000).for_each(|sequence| chain.push(version(sequence, sequence)));
        let before = STEPS.get();
        for _ in 0..10 {
            let state = Arc::new(TransactionState::new());
            chain.push(Version::pending(state.clone(), Timestamp::NONE, None));
            state.abort();
            chain.remove_of(&state);
        }
        assert!(STEPS.get() - before < 200, "{} steps", STEPS.get() - before);
        assert_eq!(chain.len(), 100_000);
    }

    /// Timestamps in every order that can be: untimestamped versions, deleted ranges that came in late, aborted ones.
    #[test]
    fn x4_x25_long_chains_in_any_order_are_read_by_the_rule() {
        for seed in 1..200u64 {
            let mut dice = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mut next = |end: u64| {
                dice ^= dice << 13;
                dice ^= dice >> 7;
                dice ^= dice << 17;
                dice % end
            };
            let mut chain = Chain::default();
            let mut aborted = Vec::new();
            let mut commit = 10;
            for sequence in 1..60 {
                commit += next(3);
                match next(12) {
                    0 => {
                        chain.push(version(sequence, 0));
                        commit = 10 + next(60);
                    }
                    1 => {
                        let state = Arc::new(TransactionState::new());
                        chain.push(Version::pending(state.clone(), Timestamp::NONE, None));
                        state.abort();
                        aborted.push(state);
                    }
                    2 => drop(chain.enter_deletion(Stamp::new(sequence, Timestamp(10 + next(80))))),
                    3 if !aborted.is_empty() => drop(chain.remove_of(&aborted.swap_remove(0))),
                    _ => chain.push(version(sequence, commit)),
                }
                for (at, timestamp) in
                    [(sequence, next(100)), (1 + next(sequence), u64::MAX), (1 + next(60), next(100))]
                {
                    let view = view(at, timestamp.max(1));
                    assert_eq!(read(&chain, &view).1, expected(&chain, &view), "seed {seed}, {at} at {timestamp}");
                }
            }
        }
    }
}
