//! How fast commits come, of late.
//!
//! Whether a flush should wait for company is a question of how many are about to come. The size of the last groups does not say it: a flush that the disk
//! or the scheduler has held up takes many along, and if the next ones waited for as many, these would be held up by that, and be large for that reason. How many come in a given
//! time does not depend on who waits for whom, or little.

use std::sync::atomic::{AtomicU64, Ordering};

/// A flush counts half after about five more.
const FADING: u64 = 8;
/// A time in which nobody came says little about how many do when they come: longer ones count as this.
const GAP_NS_MAX: u64 = 10_000_000;
/// Commits are counted in parts of this size, so that few of them fade as many do.
const SCALE: u64 = 1 << 16;

/// See the module. Noted by one thread at a time, read by all.
#[derive(Default)]
pub(crate) struct Pace {
    noted_ns: AtomicU64,
    /// Commits of late, in parts,
    commits: AtomicU64,
    /// and the time in which they came.
    ns: AtomicU64,
}

impl Pace {
    /// So many came since the last call.
    pub(crate) fn note(&self, commits: u64, now_ns: u64) {
        let passed_ns = now_ns.saturating_sub(self.noted_ns.swap(now_ns, Ordering::Relaxed)).min(GAP_NS_MAX);
        let add = |sum: &AtomicU64, new: u64| {
            let before = sum.load(Ordering::Relaxed);
            sum.store(before - before / FADING + new, Ordering::Relaxed);
        };
        add(&self.commits, commits.saturating_mul(SCALE).min(u64::from(u32::MAX)));
        add(&self.ns, passed_ns);
    }

    /// Whether so many are likely to come in this time.
    pub(crate) fn brings(&self, commits: u64, in_ns: u64) -> bool {
        let (came, ns) = (self.commits.load(Ordering::Relaxed), self.ns.load(Ordering::Relaxed));
        u128::from(came) * u128::from(in_ns) >= u128::from(commits) * u128::from(SCALE) * u128::from(ns.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Groups of commits, and how long each took to come.
    fn pace(groups: impl IntoIterator<Item = (u64, u64)>) -> Pace {
        let (pace, mut now_ns) = (Pace::default(), 1_000 * MS);
        pace.note(0, now_ns);
        for (commits, ns) in groups {
            now_ns += ns;
            pace.note(commits, now_ns);
        }
        pace
    }

    #[test]
    fn the_pace_is_that_of_the_last_groups() {
        let steady = pace([(10, MS); 100]);
        assert!(steady.brings(9, MS) && !steady.brings(11, MS));
        assert!(steady.brings(1, MS / 8) && !steady.brings(2, MS / 8));
        let slower = pace([(10, MS); 100].into_iter().chain([(1, MS); 100]));
        assert!(!slower.brings(2, MS));
    }

    #[test]
    fn a_flush_that_was_held_up_does_not_change_it() {
        let pace = pace([(1, MS / 4); 100].into_iter().chain([(16, 4 * MS)]));
        assert!(pace.brings(3, MS) && !pace.brings(5, MS));
    }

    #[test]
    fn a_long_silence_is_soon_forgotten() {
        let pace = pace([(8, MS / 2); 50].into_iter().chain([(1, 3_600_000 * MS)]).chain([(8, MS / 2); 40]));
        assert!(pace.brings(14, MS));
    }

    #[test]
    fn nobody_is_expected_where_nobody_came() {
        assert!(!Pace::default().brings(1, MS));
        assert!(!pace([(0, MS); 10]).brings(1, 1_000 * MS));
        let busiest = pace([(u64::MAX, 1); 100]);
        assert!(busiest.brings(1, MS), "what it counts has a limit");
    }
}
