//! Which runs of a table to merge: a pure function of their sizes.
//!
//! Every merge costs bytes written and saves reads (fewer runs over a key) and space (superseded versions go). The rules,
//! with runs counted newest first:
//! 1. *Dead weight*: a run of which more than half is dead (fenced, deleted at the bottom, in a shared file of dropped
//!    tables) is rewritten alone.
//! 2. *Space*: when the younger runs together reach the oldest one's size, everything is merged. This bounds the space to
//!    about twice the data. History does not count: while somebody may still read it, a merge would write it again and free nothing. When nobody
//!    may any longer, a run with much of it is rewritten alone ([`ripe_run`](super::due::ripe_run)).
//! 3. *Tiny runs*: when more than four of the youngest are tiny, they are merged; it costs next to nothing.
//! 4. *Depth*: when there are more than `runs_max`, the youngest `k` are merged, with the `k` that writes the fewest bytes
//!    per run that goes away. That grows a few middle runs of like size and touches the oldest one rarely.
//!
//! With 10 % of a table rewritten at random per checkpoint this writes about 3 times the checkpoints' own bytes with
//! `runs_max` 4, 2.4 with 6; a simulation of the rules is among the tests. Four is what the engine's benchmark asked for:
//! gets and scans over five runs were half as fast as over one, and the log's bytes dwarf the difference in merging.
//! Merged runs are neighbours in age, always: versions of a key must stay in order.

/// The knobs.
#[derive(Clone, Debug)]
pub struct MergePolicy {
    /// More runs than this over a key start a merge.
    pub runs_max: usize,
    /// The younger runs may reach this share of the oldest one's bytes.
    pub young_percent_max: u64,
    /// A run below this is tiny.
    pub tiny_bytes: u64,
    /// More tiny runs than this are merged eagerly.
    pub tiny_runs_max: usize,
    /// A run of which more than this is dead is rewritten.
    pub dead_percent_max: u64,
    /// A part that no other run touches is taken over as it is if it has at least this size.
    pub takeover_bytes_min: u64,
}

impl Default for MergePolicy {
    fn default() -> MergePolicy {
        MergePolicy {
            runs_max: 4,
            young_percent_max: 100,
            tiny_bytes: 1 << 20,
            tiny_runs_max: 4,
            dead_percent_max: 50,
            takeover_bytes_min: 16 << 20,
        }
    }
}

/// What the policy knows of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunShape {
    /// Bytes on disk.
    pub bytes: u64,
    /// Of these, what only older versions of its keys take.
    pub history_bytes: u64,
    /// How much of them nobody will ever read.
    pub dead_bytes: u64,
}

impl RunShape {
    /// What the newest versions of its keys take.
    fn newest_bytes(&self) -> u64 {
        self.bytes.saturating_sub(self.history_bytes)
    }
}

/// Why a merge was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason {
    /// Too many runs over a key.
    Depth,
    /// The young runs reached the oldest one's size.
    Space,
    /// Many tiny runs.
    Tiny,
    /// Mostly dead.
    Dead,
}

/// A range of runs, counted newest first, to be merged into one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub first: usize,
    pub count: usize,
    pub reason: Reason,
}

/// The merge that a table with these runs (newest first) needs, if any.
pub(crate) fn choose(policy: &MergePolicy, runs: &[RunShape]) -> Option<Choice> {
    by_depth(policy, runs)
        .or_else(|| by_space(policy, runs))
        .or_else(|| by_tininess(policy, runs))
        .or_else(|| by_death(policy, runs))
}

fn by_space(policy: &MergePolicy, runs: &[RunShape]) -> Option<Choice> {
    let (oldest, young) = runs.split_last()?;
    let sum = |bytes: fn(&RunShape) -> u64| young.iter().map(bytes).fold(0, u64::saturating_add);
    let tiny =
        young.len() <= policy.tiny_runs_max && sum(|run| run.bytes).saturating_add(oldest.bytes) < policy.tiny_bytes;
    let due = !young.is_empty()
        && !tiny
        && sum(RunShape::newest_bytes) / 100 >= oldest.newest_bytes().saturating_mul(policy.young_percent_max) / 10_000;
    due.then_some(Choice { first: 0, count: runs.len(), reason: Reason::Space })
}

fn by_tininess(policy: &MergePolicy, runs: &[RunShape]) -> Option<Choice> {
    let tiny = runs.iter().take_while(|run| run.bytes < policy.tiny_bytes).count();
    (tiny > policy.tiny_runs_max).then_some(Choice { first: 0, count: tiny, reason: Reason::Tiny })
}

fn by_depth(policy: &MergePolicy, runs: &[RunShape]) -> Option<Choice> {
    if runs.len() <= policy.runs_max {
        return None;
    }
    let count = (2..=runs.len()).min_by_key(|count| cost(&runs[..*count]) / (*count as u64 - 1))?;
    Some(Choice { first: 0, count, reason: Reason::Depth })
}

fn by_death(policy: &MergePolicy, runs: &[RunShape]) -> Option<Choice> {
    let mostly_dead = |run: &RunShape| {
        run.dead_bytes > 0 && run.dead_bytes / 100 >= run.bytes.saturating_mul(policy.dead_percent_max) / 10_000
    };
    let first = runs.iter().position(mostly_dead)?;
    Some(Choice { first, count: 1, reason: Reason::Dead })
}

/// About what a merge writes: the largest input whole, of the others what does not replace something in it.
fn cost(runs: &[RunShape]) -> u64 {
    let sum = runs.iter().map(|run| run.bytes).fold(0, u64::saturating_add);
    let largest = runs.iter().map(|run| run.bytes).max().unwrap_or(0);
    largest.saturating_add(sum.saturating_sub(largest) / 2)
}

/// Bytes that are waiting to be merged in a table with these runs; zero if it needs nothing.
pub(crate) fn debt_bytes(policy: &MergePolicy, runs: &[RunShape]) -> u64 {
    choose(policy, runs).map_or(0, |choice| cost(&runs[choice.first..choice.first + choice.count]))
}
