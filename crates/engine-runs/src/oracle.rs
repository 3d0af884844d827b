//! For tests: a random history of one table, the runs it makes, and what every reader must see of it.
//!
//! The oracle is a plain list of operations, searched from the newest to the oldest.

use crate::{
    BlockCache, FilterPrefix, NewRuns, Part, RangeTombstone, ReadPoint, Run, RunFile, RunWriter, Stamp, TableRuns,
    TableWriteOptions, Version, WriterOptions,
};
use bytes::Bytes;
use pando_base::Timestamp;
use pando_env::{Env, Random};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

#[derive(Clone, Debug)]
pub(crate) enum Change {
    Write { key: Bytes, value: Option<Bytes> },
    Erase { start: Bytes, end: Option<Bytes> },
}

#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) stamp: Stamp,
    pub(crate) change: Change,
    pub(crate) run: usize,
}

/// A history and, for each run (oldest first), the fence on it.
pub(crate) struct Oracle {
    pub(crate) operations: Vec<Operation>,
    pub(crate) fences: Vec<Timestamp>,
    pub(crate) keys: Vec<Bytes>,
    pub(crate) sequence: u64,
    pub(crate) clock: u64,
}

impl Oracle {
    /// What a reader sees of a key: the stamp, and the value unless deleted.
    pub(crate) fn lookup(&self, key: &[u8], point: &ReadPoint) -> Option<(Stamp, Option<Bytes>)> {
        self.operations.iter().rev().find_map(|operation| {
            let stamp = operation.stamp;
            if !stamp.is_alive(self.fences[operation.run]) || !point.sees(&stamp) {
                return None;
            }
            match &operation.change {
                Change::Write { key: written, value } if written == key => Some((stamp, value.clone())),
                Change::Erase { start, end }
                    if start.as_ref() <= key && end.as_ref().is_none_or(|end| key < end.as_ref()) =>
                {
                    Some((stamp, None))
                }
                _ => None,
            }
        })
    }

    /// All keys and values that a reader sees.
    pub(crate) fn visible(&self, point: &ReadPoint) -> Vec<(Bytes, Bytes)> {
        let keys: BTreeSet<&Bytes> = self.keys.iter().collect();
        keys.into_iter().filter_map(|key| Some((key.clone(), self.lookup(key, point)?.1?))).collect()
    }

    /// A random point; sometimes the latest.
    pub(crate) fn point(&self, random: &dyn Random) -> ReadPoint {
        let sequence = if random.below(3) == 0 { u64::MAX } else { random.below(self.sequence + 2) };
        let timestamp = if random.below(3) == 0 { u64::MAX } else { 1 + random.below(self.clock + 5) };
        ReadPoint { sequence, timestamp: Timestamp(timestamp) }
    }
}

/// How a history is made.
pub(crate) struct Shape {
    pub(crate) keys: u64,
    pub(crate) runs: usize,
    pub(crate) operations_per_run: u64,
    pub(crate) erases: bool,
    pub(crate) fences: bool,
    pub(crate) value_bytes_max: u64,
}

fn random_key(random: &dyn Random, ordinal: u64) -> Bytes {
    let number = random.below(1 << 20);
    match ordinal % 5 {
        0 => Bytes::from(number.to_be_bytes().to_vec()),
        1 => Bytes::from(format!("user/{number:06}/{}", "x".repeat(random.below(40) as usize))),
        2 => Bytes::from(format!("user/{}", number % 50)),
        3 => Bytes::from(vec![random.below(3) as u8; random.below(12) as usize]),
        _ => Bytes::from([b"prefix-that-is-long/".as_slice(), &number.to_be_bytes()].concat()),
    }
}

/// Makes a history.
pub(crate) fn make(random: &dyn Random, shape: &Shape) -> Oracle {
    let keys: BTreeSet<Bytes> = (0..shape.keys).map(|ordinal| random_key(random, ordinal)).collect();
    let keys: Vec<Bytes> = keys.into_iter().collect();
    let fences = vec![Timestamp::MAX; shape.runs];
    let mut oracle = Oracle { operations: Vec::new(), fences, keys, sequence: 0, clock: 10 };
    let mut last_durable: BTreeMap<Bytes, u64> = BTreeMap::new();
    for run in 0..shape.runs {
        for number in 0..shape.operations_per_run {
            let settled = run == 0 && number < shape.operations_per_run / 2;
            add_operation(random, shape, &mut oracle, &mut last_durable, run, settled);
        }
        if shape.fences && random.below(2) == 0 {
            // A rollback: what was durable after the fence is gone from all runs so far.
            let fence = Timestamp(oracle.clock.saturating_sub(random.below(12)));
            oracle.fences[..=run].iter_mut().for_each(|old| *old = fence.min(*old));
            last_durable.values_mut().for_each(|durable| *durable = fence.0.min(*durable));
        }
    }
    oracle
}

fn add_operation(
    random: &dyn Random,
    shape: &Shape,
    oracle: &mut Oracle,
    last_durable: &mut BTreeMap<Bytes, u64>,
    run: usize,
    settled: bool,
) {
    let pick = |random: &dyn Random| oracle.keys[random.below(oracle.keys.len() as u64) as usize].clone();
    let change = if shape.erases && random.below(12) == 0 {
        let (a, b) = (pick(random), pick(random));
        let end = if random.below(5) == 0 { None } else { Some(Bytes::from([b.as_ref(), b"\0"].concat())) };
        let start = end.as_ref().map_or(a.clone(), |_| a.clone().min(b.clone()));
        let end = end.map(|end| end.max(Bytes::from([a.as_ref(), b"\0"].concat())));
        Change::Erase { start, end }
    } else {
        let value = match random.below(6) {
            0 => None,
            1 => Some(vec![random.below(256) as u8; random.below(shape.value_bytes_max + 1) as usize]),
            _ => Some(format!("value {} of {}", oracle.sequence, random.below(100)).into_bytes()),
        };
        Change::Write { key: pick(random), value: value.map(Bytes::from) }
    };
    let touched: Vec<Bytes> = match &change {
        Change::Write { key, .. } => vec![key.clone()],
        Change::Erase { start, end } => {
            let inside = |key: &&Bytes| *key >= start && end.as_ref().is_none_or(|end| *key < end);
            oracle.keys.iter().filter(inside).cloned().collect()
        }
    };
    let stamp = if settled {
        Stamp::SETTLED
    } else {
        // Several writes may share a commit, but never of one key without a timestamp between them.
        oracle.sequence += 1;
        oracle.clock += random.below(2);
        let floor = touched.iter().filter_map(|key| last_durable.get(key)).max().copied().unwrap_or(1);
        match random.below(4) {
            0 => Stamp::new(oracle.sequence, Timestamp::NONE),
            1 => {
                let commit = Timestamp(floor.max(oracle.clock));
                Stamp { sequence: oracle.sequence, commit, durable: Timestamp(commit.0 + random.below(5)) }
            }
            _ => Stamp::new(oracle.sequence, Timestamp(floor.max(oracle.clock.saturating_sub(random.below(6)).max(1)))),
        }
    };
    for key in touched {
        let durable = last_durable.entry(key).or_default();
        *durable = stamp.durable.0.max(*durable);
    }
    oracle.clock = oracle.clock.max(stamp.durable.0);
    oracle.operations.push(Operation { stamp, change, run });
}

/// A directory with runs in it.
pub(crate) struct Bench {
    pub(crate) env: Env,
    pub(crate) directory: PathBuf,
    pub(crate) numbers: Arc<AtomicU64>,
    pub(crate) cache: Arc<BlockCache>,
}

impl Bench {
    pub(crate) fn new(env: Env, cache_bytes: usize) -> Bench {
        let directory = Path::new("/base").to_path_buf();
        env.disk().create_directory(&directory).unwrap();
        Bench { env, directory, numbers: Arc::new(AtomicU64::new(1)), cache: BlockCache::new(cache_bytes) }
    }

    pub(crate) fn writer(&self, options: WriterOptions) -> RunWriter {
        RunWriter::new(&self.env, &self.directory, self.numbers.clone(), options)
    }

    /// The runs of new files, one for each table, under a fence.
    pub(crate) fn open(&self, new: NewRuns, fence: Timestamp) -> Vec<Arc<Run>> {
        let (files, tables) = new.keep();
        let files: Vec<Arc<RunFile>> =
            files.into_iter().map(|file| RunFile::new(&self.env, &self.directory, file)).collect();
        let open_part = |descriptor: &crate::PartDescriptor| {
            let file = files.iter().find(|file| file.id() == descriptor.file).unwrap();
            Part::new(file.clone(), descriptor.clone(), self.cache.clone()).with_fence(fence)
        };
        tables.iter().map(|(_, run)| Run::new(run.parts.iter().map(open_part).collect())).collect()
    }

    /// Writes a history as its runs. Newest run first.
    pub(crate) fn write(&self, oracle: &Oracle, options: &WriterOptions) -> TableRuns {
        let mut runs = Vec::new();
        for run in 0..oracle.fences.len() {
            let mut writer = self.writer(options.clone());
            let table = TableWriteOptions { filter_prefix: FilterPrefix::Whole, ident: "table".into() };
            writer.begin_table(7, table).unwrap();
            write_run(oracle, run, &mut writer);
            let new = writer.finish().unwrap();
            runs.extend(self.open(new, oracle.fences[run]));
        }
        runs.reverse();
        TableRuns::new(runs)
    }
}

fn write_run(oracle: &Oracle, run: usize, writer: &mut RunWriter) {
    let mut keys: BTreeMap<Bytes, Vec<(Stamp, Option<Bytes>)>> = BTreeMap::new();
    for operation in oracle.operations.iter().filter(|operation| operation.run == run) {
        match &operation.change {
            Change::Write { key, value } => keys.entry(key.clone()).or_default().push((operation.stamp, value.clone())),
            Change::Erase { start, end } => {
                let tombstone = RangeTombstone { start: start.clone(), end: end.clone(), stamp: operation.stamp };
                let covered = keys.iter_mut().filter(|(key, _)| tombstone.covers(key));
                covered.for_each(|(_, versions)| versions.push((operation.stamp, None)));
                writer.add_range_tombstone(tombstone).unwrap();
            }
        }
    }
    for (key, versions) in keys {
        let versions: Vec<Version<'_>> =
            versions.iter().rev().map(|(stamp, value)| Version { stamp: *stamp, value: value.as_deref() }).collect();
        writer.add(&key, &versions).unwrap();
    }
}

/// Small blocks and files, so that a small history has many of each.
pub(crate) fn small_options() -> WriterOptions {
    WriterOptions {
        block_bytes: 200,
        history_block_bytes: 150,
        history_versions_min: 1,
        file_bytes: 4000,
        inline_value_bytes_max: 300,
        dictionary_bytes: 512,
        ..WriterOptions::default()
    }
}

/// The same with phrases however little they gain.
pub(crate) fn phrase_options() -> WriterOptions {
    WriterOptions { dictionary_bytes: 8, phrases_percent_max: u64::MAX, ..small_options() }
}

/// One of the two.
pub(crate) fn seeded_options(seed: u64) -> WriterOptions {
    if seed.is_multiple_of(2) { phrase_options() } else { small_options() }
}
