//! The runs of one table: point reads, estimates and random keys.
//!
//! A `TableRuns` never changes; whoever holds one keeps its files. Newer runs hide older ones key by key.

use crate::cursor::RunCursor;
use crate::run::Run;
use crate::section::Part;
use crate::section::part::{KeyHash, Located, Reach};
use crate::{Lookup, ReadPoint, Result, Stamp};
use bytes::Bytes;
use pando_base::Timestamp;
use pando_env::Random;
use std::cell::Cell;
use std::sync::Arc;

/// How often a random key that turns out not to count is drawn again.
const RANDOM_ATTEMPTS: usize = 32;

/// How much lies in a range. Rewritten keys count once for each run they are in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// Keys.
    pub records: u64,
    /// Bytes of keys and values.
    pub bytes: u64,
}

/// The runs of one table, newest first.
#[derive(Default)]
pub struct TableRuns {
    runs: Vec<Arc<Run>>,
    max_sequence: u64,
    max_durable: Timestamp,
}

impl TableRuns {
    /// A table's base, newest run first.
    pub fn new(runs: Vec<Arc<Run>>) -> TableRuns {
        let max_sequence = runs.iter().map(|run| run.max_sequence()).max().unwrap_or(0);
        let max_durable = runs.iter().map(|run| run.max_durable()).max().unwrap_or(Timestamp::NONE);
        TableRuns { runs, max_sequence, max_durable }
    }

    /// The runs, newest first.
    pub fn runs(&self) -> &[Arc<Run>] {
        &self.runs
    }

    /// How many runs there are.
    pub fn runs_count(&self) -> usize {
        self.runs.len()
    }

    /// True if nothing was ever written.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// The largest sequence of any version: whoever's snapshot is at least this has no conflict here.
    pub fn max_sequence(&self) -> u64 {
        self.max_sequence
    }

    /// The largest durable timestamp of any live version.
    pub fn max_durable(&self) -> Timestamp {
        self.max_durable
    }

    /// Bytes on disk.
    pub fn bytes_on_disk(&self) -> u64 {
        self.runs.iter().map(|run| run.length_bytes()).sum()
    }

    /// Of these, what only older versions of keys take, which are kept for readers in the past.
    pub fn history_bytes(&self) -> u64 {
        self.runs.iter().map(|run| run.history_bytes()).sum()
    }

    /// The version of a key that a reader sees.
    pub fn get(&self, key: &[u8], point: &ReadPoint) -> Result<Lookup> {
        shown(self.locate(key, point, Reach::File)?)
    }

    /// The same without reading a data block; none if one would have to be read.
    pub fn get_in_memory(&self, key: &[u8], point: &ReadPoint) -> Result<Option<Lookup>> {
        let has_missed = Cell::new(false);
        let located = self.locate(key, point, Reach::Memory(&has_missed))?;
        if has_missed.get() { Ok(None) } else { shown(located).map(Some) }
    }

    /// The stamp of the newest live version of a key, a deletion included. Where one transaction wrote the key and deleted a
    /// range over it, the later of the two.
    pub fn newest_stamp(&self, key: &[u8]) -> Result<Option<Stamp>> {
        let Some((part, located)) = self.locate(key, &ReadPoint::LATEST, Reach::File)? else { return Ok(None) };
        Ok(Some(match located {
            Located::Erased(stamp) => stamp,
            Located::Entry(_, entry) => match part.erased(key, &ReadPoint::LATEST)? {
                Some(erased) if erased.sequence == entry.stamp.sequence && erased.durable > entry.stamp.durable => {
                    erased
                }
                _ => entry.stamp,
            },
        }))
    }

    #[inline]
    fn locate(&self, key: &[u8], point: &ReadPoint, reach: Reach<'_>) -> Result<Option<(&Arc<Part>, Located)>> {
        let mut hash = KeyHash::default();
        let oldest = self.runs.len().saturating_sub(1);
        for (position, run) in self.runs.iter().enumerate() {
            let Some(part) = run.part_for(key) else { continue };
            if let Some(located) = part.locate(key, &mut hash, point, position == oldest, reach)? {
                return Ok(Some((part, located)));
            }
        }
        Ok(None)
    }

    /// False if certainly no key begins with `prefix`, which must be what the table's filters know of a key (see
    /// [`crate::FilterPrefix`]). Lets a uniqueness check skip the seek.
    pub fn may_contain_prefix(&self, prefix: &[u8]) -> Result<bool> {
        for run in &self.runs {
            for part in &run.parts()[run.position(prefix).min(run.parts().len())..] {
                let first = &part.descriptor().bounds.first;
                if first.as_ref() > prefix && !first.starts_with(prefix) {
                    break;
                }
                if part.may_contain_prefix(prefix)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// A cursor over what a reader sees.
    pub fn cursor(self: &Arc<Self>, point: ReadPoint) -> RunCursor {
        RunCursor::new(self.clone(), point)
    }

    /// How much lies in `[start, end)`; `None` means from the first or to the last key.
    pub fn estimate(&self, start: Option<&[u8]>, end: Option<&[u8]>) -> Result<Estimate> {
        let mut estimate = Estimate::default();
        for part in self.runs.iter().flat_map(|run| run.parts()) {
            let descriptor = part.descriptor();
            let low = start.map_or(Ok(0), |key| part.rank(key))?;
            let high = end.map_or(Ok(descriptor.keys), |key| part.rank(key))?;
            let records = high.saturating_sub(low);
            estimate.records += records;
            let bytes = u128::from(descriptor.raw_bytes) * u128::from(records) / u128::from(descriptor.keys.max(1));
            estimate.bytes += u64::try_from(bytes).unwrap_or(u64::MAX);
        }
        Ok(estimate)
    }

    /// A key drawn at random among those the reader sees; nearly uniform.
    pub fn random_key(self: &Arc<Self>, random: &dyn Random, point: &ReadPoint) -> Result<Option<Bytes>> {
        let total: u64 = self.runs.iter().map(|run| run.keys()).sum();
        let mut drawn = Vec::new();
        for _ in 0..RANDOM_ATTEMPTS {
            let Some((run_position, key)) = self.key_at(random.below(total))? else { break };
            drawn = key;
            // A key counts only where it is newest, or rewritten keys would come up more often.
            let newer = self.runs[..run_position].iter().filter_map(|run| run.part_for(&drawn));
            let mut hash = KeyHash::default();
            let mut hidden = false;
            for part in newer {
                hidden = hidden || part.locate(&drawn, &mut hash, &ReadPoint::LATEST, false, Reach::File)?.is_some();
            }
            if !hidden && matches!(self.get(&drawn, point)?, Lookup::Found { .. }) {
                return Ok(Some(Bytes::from(drawn)));
            }
        }
        let mut cursor = self.cursor(*point);
        let found = cursor.seek(&drawn)? || cursor.first()?;
        Ok(found.then(|| Bytes::copy_from_slice(cursor.key())))
    }

    fn key_at(&self, mut ordinal: u64) -> Result<Option<(usize, Vec<u8>)>> {
        for (position, run) in self.runs.iter().enumerate() {
            for part in run.parts() {
                let keys = part.descriptor().keys;
                if ordinal < keys {
                    return Ok(part.key_at(ordinal)?.map(|key| (position, key)));
                }
                ordinal -= keys;
            }
        }
        Ok(None)
    }
}

/// What a reader is told of what was located.
#[inline]
fn shown(located: Option<(&Arc<Part>, Located)>) -> Result<Lookup> {
    Ok(match located {
        None => Lookup::Absent,
        Some((_, Located::Erased(stamp))) => Lookup::Deleted { stamp },
        Some((part, Located::Entry(block, entry))) => part.core.shown(block, &entry)?,
    })
}
