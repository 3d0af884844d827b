//! Which tables need a merge, kept up to date with every edit so that asking is cheap even with 20,000 tables.

use super::policy::{self, Choice, MergePolicy, Reason, RunShape};
use crate::manifest::state::{RunState, State, TableState};
use crate::{FileId, PartDescriptor, RetentionPoint, TableId};
use std::collections::{BTreeMap, BTreeSet};

/// A shared file is worth emptying from this size on.
const SPARSE_BYTES_MIN: u64 = 64 << 10;

/// What a table needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Need {
    pub choice: Choice,
    /// About what the merge will write.
    pub bytes: u64,
    /// How many runs the table has.
    pub runs: usize,
}

/// The tables that need a merge.
#[derive(Default)]
pub(crate) struct Due {
    needs: BTreeMap<TableId, Need>,
    /// Tables with runs that would shrink by half if nobody needed their history and deletions.
    suspects: BTreeSet<TableId>,
    /// Shared files of which more than half belongs to no table any more.
    sparse: BTreeSet<FileId>,
    /// The most that was ever in use of each file.
    live_bytes_max: BTreeMap<FileId, u64>,
}

impl Due {
    /// Looks again at the tables that an edit touched, and at those with parts in a file that it left mostly empty.
    pub fn consider(
        &mut self,
        policy: &MergePolicy,
        state: &State,
        touched: &BTreeSet<TableId>,
        dropped: &BTreeSet<TableId>,
    ) {
        for table in dropped {
            self.needs.remove(table);
            self.suspects.remove(table);
        }
        let newly_sparse = self.find_sparse(state);
        for id in touched {
            match state.tables.get(id) {
                Some(table) => self.consider_table(policy, table),
                None => drop(self.needs.remove(id)),
            }
        }
        if !newly_sparse.is_empty() {
            let concerned = state.tables.values().filter(|table| {
                table.runs.iter().any(|run| run.run.parts.iter().any(|part| newly_sparse.contains(&part.file)))
            });
            concerned.for_each(|table| self.consider_table(policy, table));
        }
    }

    /// About what all merges together will write.
    pub fn debt_bytes(&self) -> u64 {
        self.needs.values().map(|need| need.bytes).fold(0, u64::saturating_add)
    }

    /// The most runs of a table that needs a merge.
    pub fn runs_max(&self) -> usize {
        self.needs.values().map(|need| need.runs).max().unwrap_or(0)
    }

    /// The most urgent merges: one large one, or many small ones that share their output files. `bytes_max` limits what
    /// may be written, for a disk that is nearly full.
    pub fn most_urgent(&self, bytes_max: u64, batch: &Batch) -> Vec<(TableId, Choice)> {
        let fits = |need: &Need| need.bytes <= bytes_max;
        let urgency = |need: &Need| match need.choice.reason {
            Reason::Depth => (3, need.runs as u64),
            Reason::Tiny => (2, need.runs as u64),
            Reason::Space => (1, u64::MAX - need.bytes),
            Reason::Dead => (0, u64::MAX - need.bytes),
        };
        let Some((first, need)) =
            self.needs.iter().filter(|(_, need)| fits(need)).max_by_key(|(_, need)| urgency(need))
        else {
            return Vec::new();
        };
        let mut chosen = vec![(*first, need.choice)];
        let mut bytes = need.bytes;
        if bytes > batch.small_bytes {
            return chosen;
        }
        for (table, need) in
            self.needs.iter().filter(|(table, need)| *table != first && need.bytes <= batch.small_bytes)
        {
            bytes = bytes.saturating_add(need.bytes);
            if bytes > batch.bytes_max.min(bytes_max) || chosen.len() >= batch.tables_max {
                break;
            }
            chosen.push((*table, need.choice));
        }
        chosen
    }

    /// The tables that may have a run worth rewriting alone.
    pub fn suspects(&self) -> &BTreeSet<TableId> {
        &self.suspects
    }

    /// The files that are to be emptied.
    pub fn sparse(&self) -> &BTreeSet<FileId> {
        &self.sparse
    }

    /// Files of which half has died since they were first seen. Their length would be a worse measure: a file's directory
    /// repeats keys, and with very long keys a rewrite would look as sparse as what it replaced, for ever.
    fn find_sparse(&mut self, state: &State) -> BTreeSet<FileId> {
        self.live_bytes_max.retain(|id, _| state.files.contains_key(id));
        let mut sparse = BTreeSet::new();
        for (id, file) in &state.files {
            let most = self.live_bytes_max.entry(*id).or_default();
            *most = file.live_bytes.max(*most);
            if file.length_bytes >= SPARSE_BYTES_MIN && file.live_bytes < *most / 2 {
                sparse.insert(*id);
            }
        }
        let new = sparse.difference(&self.sparse).copied().collect();
        self.sparse = sparse;
        new
    }

    fn consider_table(&mut self, policy: &MergePolicy, table: &TableState) {
        let shapes: Vec<RunShape> = table.runs.iter().map(|run| self.shape(run)).collect();
        let id = table.record.id;
        match policy::choose(policy, &shapes) {
            Some(choice) => {
                let bytes = policy::debt_bytes(policy, &shapes);
                self.needs.insert(id, Need { choice, bytes, runs: shapes.len() });
            }
            None => drop(self.needs.remove(&id)),
        }
        let suspicious = |(index, run): (usize, &RunState)| is_suspect(policy, run, index + 1 == table.runs.len());
        if table.runs.iter().enumerate().any(suspicious) {
            self.suspects.insert(id);
        } else {
            self.suspects.remove(&id);
        }
    }

    fn shape(&self, run: &RunState) -> RunShape {
        let dead = run.run.parts.iter().filter(|part| self.sparse.contains(&part.file)).map(|part| part.length_bytes);
        let history_bytes = run.run.parts.iter().map(|part| part.history_bytes).sum();
        RunShape { bytes: run.run.length_bytes(), history_bytes, dead_bytes: dead.sum() }
    }
}

/// How merges of small tables are put together.
pub(crate) struct Batch {
    /// A merge up to this is small.
    pub small_bytes: u64,
    /// So much may be written by one batch.
    pub bytes_max: u64,
    /// So many tables may be in one batch.
    pub tables_max: usize,
}

/// Versions that a rewrite could leave out if nobody needed them: history, and deletions where nothing older is left.
fn spare_versions<'a>(parts: impl Iterator<Item = &'a PartDescriptor>, is_oldest: bool) -> (u64, u64) {
    parts.fold((0u64, 0u64), |(spare, all), part| {
        let history = part.versions.saturating_sub(part.keys);
        let deletions = if is_oldest { part.deleted_keys } else { 0 };
        (spare.saturating_add(history).saturating_add(deletions), all.saturating_add(part.versions))
    })
}

fn exceeds(policy: &MergePolicy, (spare, all): (u64, u64)) -> bool {
    spare > 0 && u128::from(spare) * 100 > u128::from(all) * u128::from(policy.dead_percent_max)
}

fn is_suspect(policy: &MergePolicy, run: &RunState, is_oldest: bool) -> bool {
    exceeds(policy, spare_versions(run.run.parts.iter(), is_oldest))
}

/// A run of the table that would really lose more than its share now: the stamps of the parts that count are all old
/// enough, so that one rewrite is certain to help and is never tried in vain.
pub(crate) fn ripe_run(policy: &MergePolicy, table: &TableState, retention: &RetentionPoint) -> Option<Choice> {
    let is_ripe = |part: &&PartDescriptor| is_ripe(part, retention);
    let count = table.runs.len();
    let first = table.runs.iter().enumerate().position(|(index, run)| {
        let (spare, _) = spare_versions(run.run.parts.iter().filter(is_ripe), index + 1 == count);
        let (_, all) = spare_versions(run.run.parts.iter(), false);
        exceeds(policy, (spare, all))
    })?;
    Some(Choice { first, count: 1, reason: Reason::Dead })
}

/// True if every version of the part is so old that nobody needs what it supersedes.
fn is_ripe(part: &PartDescriptor, retention: &RetentionPoint) -> bool {
    retention.sequence_is_settled(part.max_sequence) && part.max_durable <= retention.stable.min(retention.read_floor())
}

/// True if a rewrite would certainly shrink this part by its share.
pub(crate) fn is_ripe_and_spare(
    policy: &MergePolicy,
    part: &PartDescriptor,
    is_oldest: bool,
    retention: &RetentionPoint,
) -> bool {
    is_ripe(part, retention) && exceeds(policy, spare_versions(std::iter::once(part), is_oldest))
}
