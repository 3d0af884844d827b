//! Import: tables of another store's files become tables of this one.
//!
//! The source is a directory with a store's files, such as a restored backup, that nobody has open. The tables' versions are
//! read through their checksums and written anew as runs of this store, under the table ids that the caller chose, and
//! become part of it in one edit. Copying the files themselves would be no cheaper (they have to be copied anyway)
//! and would carry over the other store's file numbers, which seed the checksums, and its commit sequences, which
//! mean nothing here: imported versions are visible to every snapshot. What the source's checkpoint had not made
//! stable is dead in it and is not imported.

use crate::lineage::table_hint;
use crate::manifest::record::{CheckpointMark, TableRecord};
use crate::manifest::state::{RunState, State, TableState};
use crate::manifest::{self, current, file};
use crate::store::{Edit, Runs};
use crate::{
    BlockCache, FileDescriptor, FileId, NewRuns, Part, PartDescriptor, RangeTombstone, Result, RetentionPoint, Run,
    RunFile, RunWriter, RunsError, Stamp, StreamOptions, TableId, TableWriteOptions, Version, VersionStream,
    WriterOptions,
};
use pando_base::Timestamp;
use pando_env::Env;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Blocks of the source are read once, in order.
const CACHE_BYTES: usize = 8 << 20;

/// The files of another store, opened for reading only.
pub struct ImportSource {
    state: State,
    files: BTreeMap<FileId, Arc<RunFile>>,
    cache: Arc<BlockCache>,
    directory: PathBuf,
}

/// One table to import.
#[derive(Clone, Debug)]
pub struct ImportTable {
    /// Its id in the source.
    pub from: TableId,
    /// What it becomes here. A table with this id must not exist yet.
    pub to: TableRecord,
}

/// What becomes of timestamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImportHistory {
    /// Versions keep their timestamps, and history comes along.
    Keep,
    /// Only the newest versions are taken, visible at every timestamp.
    Newest,
}

/// What an import brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Tables created.
    pub tables: u64,
    /// Versions written.
    pub versions: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
}

impl ImportSource {
    /// Reads the manifest in a directory. Nothing there is changed.
    pub fn open(env: &Env, directory: &Path) -> Result<ImportSource> {
        let Some(number) = current::read(&**env.disk(), directory)? else {
            return Err(RunsError::Invalid(format!("there is no store in {}", directory.display())));
        };
        let path = directory.join(file::name(number));
        let bytes = env.disk().read_all(&path).map_err(|error| RunsError::io(&path, "read", error))?;
        let state = manifest::replay(&path, &file::read(&path, number, &bytes)?.records)?;
        let descriptor = |(id, file): (&FileId, &manifest::state::FileState)| FileDescriptor {
            id: *id,
            length_bytes: file.length_bytes,
        };
        let files = state.files.iter().map(descriptor).map(|file| (file.id, RunFile::new(env, directory, file)));
        let files = files.collect();
        Ok(ImportSource { state, files, cache: BlockCache::new(CACHE_BYTES), directory: directory.to_owned() })
    }

    /// The tables that can be imported.
    pub fn tables(&self) -> Vec<TableRecord> {
        self.state.tables.values().map(|table| table.record.clone()).collect()
    }

    /// The checkpoint that the source's runs hold.
    pub fn mark(&self) -> Option<&CheckpointMark> {
        self.state.mark.as_ref()
    }

    fn table(&self, id: TableId) -> Result<&TableState> {
        let directory = self.directory.display();
        self.state.tables.get(&id).ok_or_else(|| RunsError::Invalid(format!("there is no table {id} in {directory}")))
    }

    /// The table's runs with everything dead that was not stable.
    fn runs(&self, table: &TableState) -> Result<Vec<Arc<Run>>> {
        table.runs.iter().map(|run| self.run(run, table.record.unfenced)).collect()
    }

    fn run(&self, run: &RunState, unfenced: bool) -> Result<Arc<Run>> {
        let parts = run.run.parts.iter().map(|part| self.part(part, unfenced)).collect::<Result<_>>()?;
        Ok(Run::new(parts))
    }

    fn part(&self, part: &PartDescriptor, unfenced: bool) -> Result<Arc<Part>> {
        let stable = self.state.mark.as_ref().map(|mark| mark.stable).filter(|stable| stable.is_some() && !unfenced);
        let file = self.files.get(&part.file).cloned();
        let file = file.ok_or_else(|| RunsError::Invalid(format!("there is no file {}", part.file)))?;
        let fence = part.fence.min(stable.unwrap_or(Timestamp::MAX));
        Ok(Part::new(file, PartDescriptor { fence, ..part.clone() }, self.cache.clone()))
    }
}

impl Runs {
    /// Imports tables in one step: all of them or none.
    pub fn import(&self, source: &ImportSource, tables: &[ImportTable], history: ImportHistory) -> Result<Imported> {
        let (runs, imported) = self.write_import(source, tables, history)?;
        let create = tables.iter().map(|table| table.to.clone()).collect();
        self.install(Edit { add: Some(runs), create, ..Default::default() })?;
        Ok(imported)
    }

    /// Writes the runs of an import, for an edit that creates the tables and adds these.
    pub fn write_import(
        &self,
        source: &ImportSource,
        tables: &[ImportTable],
        history: ImportHistory,
    ) -> Result<(NewRuns, Imported)> {
        let mut imported = Imported::default();
        let mut writer = self.writer(WriterOptions::default())?;
        for table in tables {
            let state = source.table(table.from)?;
            let runs = source.runs(state)?;
            let filter_prefix = match runs.iter().flat_map(|run| run.parts()).next() {
                Some(part) => part.core.root()?.filter_prefix,
                None => Default::default(),
            };
            writer.begin_table(
                table.to.id,
                TableWriteOptions { filter_prefix, ident: table_hint(&table.to.ident, table.to.id) },
            )?;
            copy_table(&runs, &mut writer, history, &mut imported)?;
            writer.finish_table()?;
            imported.tables += 1;
        }
        Ok((writer.finish()?, imported))
    }
}

fn copy_table(
    runs: &[Arc<Run>],
    writer: &mut RunWriter,
    history: ImportHistory,
    imported: &mut Imported,
) -> Result<()> {
    let retention = (history == ImportHistory::Newest).then_some(RetentionPoint {
        oldest: Timestamp::MAX,
        stable: Timestamp::MAX,
        read_timestamp_min: Timestamp::MAX,
        snapshots: Vec::new(),
        horizon: u64::MAX,
    });
    let options = StreamOptions { retention, is_bottom: true, ..Default::default() };
    let mut stream = VersionStream::new(runs, options)?;
    for tombstone in stream.range_tombstones() {
        writer.add_range_tombstone(RangeTombstone { stamp: unsequenced(tombstone.stamp), ..tombstone })?;
    }
    while stream.next()? {
        let value = stream.value()?;
        let version = Version { stamp: unsequenced(stream.stamp()), value: value.as_deref() };
        writer.add_version(stream.key(), version)?;
        imported.versions += 1;
        imported.bytes += (stream.key().len() + value.map_or(0, |value| value.len())) as u64;
    }
    Ok(())
}

/// The source's order of commits means nothing here.
fn unsequenced(stamp: Stamp) -> Stamp {
    Stamp { sequence: 0, ..stamp }
}
