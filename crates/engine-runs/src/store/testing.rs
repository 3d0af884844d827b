//! A store on a simulated disk beside a plain model of what it should hold.

use super::{Edit, Opened, Runs, RunsOptions};
use crate::merge::MergePolicy;
use crate::{
    CheckpointMark, Lookup, RangeTombstone, ReadPoint, Result, RetentionPoint, RetentionSource, Stamp, TableId,
    TableRecord, TableWriteOptions, Version, WriterOptions,
};
use bytes::Bytes;
use pando_base::Timestamp;
use pando_env::Env;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Where test stores lie.
pub(crate) fn directory() -> PathBuf {
    PathBuf::from("/data/base")
}

/// Options under which small tests meet merges, rotations and file ends.
pub(crate) fn small_options() -> RunsOptions {
    let policy =
        MergePolicy { runs_max: 4, tiny_bytes: 200, tiny_runs_max: 2, takeover_bytes_min: 1, ..Default::default() };
    RunsOptions { cache_bytes: 1 << 20, ballast_bytes: 64 << 10, manifest_rotate_bytes: 2000, policy }
}

/// Writer options with small blocks and files.
pub(crate) fn small_writer() -> WriterOptions {
    WriterOptions {
        block_bytes: 200,
        file_bytes: 4000,
        dictionary_bytes: 8,
        phrases_percent_max: u64::MAX,
        threads: 1,
        ..Default::default()
    }
}

pub(crate) fn open(env: &Env) -> Result<(Runs, Opened)> {
    Runs::open(env, &directory(), small_options())
}

pub(crate) fn record(id: TableId) -> TableRecord {
    TableRecord { id, ident: format!("table-{id}"), ..Default::default() }
}

pub(crate) fn key(number: u64) -> Vec<u8> {
    format!("key-{number:06}").into_bytes()
}

/// Nobody needs anything old.
pub(crate) struct KeepNothing;

impl RetentionSource for KeepNothing {
    fn retention(&self) -> RetentionPoint {
        RetentionPoint {
            oldest: Timestamp::MAX,
            stable: Timestamp::MAX,
            read_timestamp_min: Timestamp::MAX,
            snapshots: Vec::new(),
            horizon: u64::MAX,
        }
    }
}

/// A fixed point.
pub(crate) struct Fixed(pub RetentionPoint);

impl RetentionSource for Fixed {
    fn retention(&self) -> RetentionPoint {
        self.0.clone()
    }
}

/// A version in the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ModelVersion {
    pub stamp: Stamp,
    pub value: Option<Vec<u8>>,
}

/// A table in the model: versions of each key, newest first.
pub(crate) type ModelTable = BTreeMap<Vec<u8>, Vec<ModelVersion>>;

/// What a store should hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Model {
    pub tables: BTreeMap<TableId, ModelTable>,
    pub mark: u64,
}

impl Model {
    pub fn get(&self, table: TableId, key: &[u8], point: &ReadPoint) -> Option<Vec<u8>> {
        let versions = self.tables.get(&table)?.get(key)?;
        versions.iter().find(|version| point.sees(&version.stamp))?.value.clone()
    }

    /// Everything visible in a table.
    pub fn scan(&self, table: TableId, point: &ReadPoint) -> Vec<(Vec<u8>, Vec<u8>)> {
        let keys = self.tables.get(&table).into_iter().flat_map(|table| table.keys());
        keys.filter_map(|key| Some((key.clone(), self.get(table, key, point)?))).collect()
    }

    /// What a fence kills.
    pub fn fence(&mut self, fence: Timestamp) {
        for versions in self.tables.values_mut().flat_map(|table| table.values_mut()) {
            versions.retain(|version| version.stamp.is_alive(fence));
        }
    }
}

/// One checkpoint's new versions of a table: of each key newest first; and range tombstones, older than all of them.
#[derive(Clone, Default)]
pub(crate) struct Batch {
    pub keys: BTreeMap<Vec<u8>, Vec<ModelVersion>>,
    pub truncations: Vec<(Vec<u8>, Option<Vec<u8>>, Stamp)>,
}

impl Batch {
    /// Settled values.
    pub fn settled(pairs: &[(u64, Option<&str>)]) -> Batch {
        let version = |value: &Option<&str>| ModelVersion {
            stamp: Stamp::SETTLED,
            value: value.map(|value| value.as_bytes().to_vec()),
        };
        let keys = pairs.iter().map(|(number, value)| (key(*number), vec![version(value)])).collect();
        Batch { keys, truncations: Vec::new() }
    }

    pub fn apply(&self, model: &mut ModelTable) {
        for (start, end, stamp) in &self.truncations {
            for (_, versions) in
                model.range_mut::<Vec<u8>, _>(start..).take_while(|(key, _)| end.as_ref().is_none_or(|end| *key < end))
            {
                versions.insert(0, ModelVersion { stamp: *stamp, value: None });
            }
        }
        for (key, new) in &self.keys {
            let versions = model.entry(key.clone()).or_default();
            versions.splice(..0, new.iter().cloned());
        }
    }
}

/// Writes and installs one run for each table, with a mark.
pub(crate) fn checkpoint(runs: &Runs, model: &mut Model, batches: &BTreeMap<TableId, Batch>) -> Result<()> {
    checkpoint_with(runs, model, batches, small_writer())
}

/// The same with other options.
pub(crate) fn checkpoint_with(
    runs: &Runs,
    model: &mut Model,
    batches: &BTreeMap<TableId, Batch>,
    options: WriterOptions,
) -> Result<()> {
    let mut writer = runs.writer(options)?;
    let mut next = model.clone();
    for (table, batch) in batches {
        writer.begin_table(*table, TableWriteOptions { ident: format!("table-{table}"), ..Default::default() })?;
        for (start, end, stamp) in &batch.truncations {
            let (start, end) = (Bytes::from(start.clone()), end.clone().map(Bytes::from));
            writer.add_range_tombstone(RangeTombstone { start, end, stamp: *stamp })?;
        }
        for (key, versions) in &batch.keys {
            for version in versions {
                writer.add_version(key, Version { stamp: version.stamp, value: version.value.as_deref() })?;
            }
        }
        writer.finish_table()?;
        batch.apply(next.tables.entry(*table).or_default());
    }
    next.mark += 1;
    let mark = CheckpointMark { sequence_cut: next.mark, ..Default::default() };
    runs.install(Edit { add: Some(writer.finish()?), mark: Some(mark), ..Default::default() })?;
    *model = next;
    Ok(())
}

pub(crate) fn create(runs: &Runs, model: &mut Model, tables: &[TableId]) -> Result<()> {
    runs.install(Edit { create: tables.iter().map(|id| record(*id)).collect(), ..Default::default() })?;
    model.tables.extend(tables.iter().map(|id| (*id, ModelTable::default())));
    Ok(())
}

pub(crate) fn drop_table(runs: &Runs, model: &mut Model, table: TableId) -> Result<()> {
    runs.install(Edit { drop: vec![table], ..Default::default() })?;
    model.tables.remove(&table);
    Ok(())
}

/// Everything visible in a table of the store.
pub(crate) fn scan(runs: &Runs, table: TableId, point: &ReadPoint) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut cursor = runs.slot(table).load().cursor(*point);
    let mut found = Vec::new();
    let mut more = cursor.first()?;
    while more {
        found.push((cursor.key().to_vec(), cursor.value()?.to_vec()));
        more = cursor.next()?;
    }
    Ok(found)
}

/// True if the store holds what the model says, as seen from the point; by scan and by get.
pub(crate) fn agrees(runs: &Runs, opened: Option<&Opened>, model: &Model, point: &ReadPoint) -> Result<bool> {
    if let Some(opened) = opened {
        let tables: Vec<TableId> = opened.tables.iter().map(|table| table.id).collect();
        let mark = opened.mark.as_ref().map_or(0, |mark| mark.sequence_cut);
        if !tables.iter().eq(model.tables.keys()) || mark != model.mark {
            return Ok(false);
        }
    }
    Ok(difference(runs, model, point)?.is_none())
}

/// Where the store and the model differ.
pub(crate) fn difference(runs: &Runs, model: &Model, point: &ReadPoint) -> Result<Option<String>> {
    for (id, table) in &model.tables {
        let loaded = runs.slot(*id).load();
        for (key, versions) in table {
            let found = match loaded.get(key, point)? {
                Lookup::Found { value, .. } => Some(value.to_vec()),
                Lookup::Deleted { .. } | Lookup::Absent => None,
            };
            let wanted = model.get(*id, key, point);
            if found != wanted {
                let key = String::from_utf8_lossy(key);
                return Ok(Some(format!(
                    "table {id}, {key}, {point:?}: {found:?} instead of {wanted:?} of {versions:?}"
                )));
            }
        }
        if scan(runs, *id, point)? != model.scan(*id, point) {
            return Ok(Some(format!("table {id}, {point:?}: gets agree, the scan does not")));
        }
    }
    Ok(None)
}

/// The run files in the store's directory.
pub(crate) fn run_files(env: &Env) -> Vec<PathBuf> {
    let listed = env.disk().list(Path::new("/data/base")).unwrap_or_default();
    listed.into_iter().filter(|path| crate::file_number(path).is_some()).collect()
}
