//! The state that the manifest's records add up to: tables, their runs, the files they lie in, the mark.
//!
//! Applying a change either succeeds or leaves an explanation of why the change makes no sense here, which for a stored
//! record means corruption and for a new one a mistake of the caller. Files are counted: a file leaves the state with the
//! last part in it, and is then listed as obsolete for whoever removes it from disk.
//!
//! This is a plain value: no locks, no I/O. Maps are ordered, so that everything derived from it is deterministic.

use super::change::{Change, RunId};
use super::record::{CheckpointMark, TableRecord};
use crate::lineage::Ages;
use crate::{FileDescriptor, FileId, RunDescriptor, TableId};
use pando_base::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// A run of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunState {
    pub id: RunId,
    pub ages: Ages,
    pub run: RunDescriptor,
}

/// A table and its runs, newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableState {
    pub record: TableRecord,
    pub runs: Vec<RunState>,
}

/// A file and how much of it is in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileState {
    pub length_bytes: u64,
    pub parts: u64,
    pub live_bytes: u64,
}

/// Everything the manifest says.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct State {
    pub next_file: u64,
    pub next_run: u64,
    pub tables: BTreeMap<TableId, TableState>,
    pub files: BTreeMap<FileId, FileState>,
    pub mark: Option<CheckpointMark>,
    obsolete: Vec<FileId>,
}

/// Why a change cannot be applied.
pub(crate) type Objection = String;

/// Snapshot chunks stay near this size.
const CHUNK_BYTES: usize = 256 << 10;

impl State {
    /// Takes one step.
    pub fn apply(&mut self, change: Change) -> Result<(), Objection> {
        match change {
            Change::Numbers { next_file, next_run } => {
                self.next_file = self.next_file.max(next_file);
                self.next_run = self.next_run.max(next_run);
            }
            Change::Fence(fence) => self.fence(fence),
            Change::Create(record) => return self.create(record),
            Change::Update(record) => {
                let table = self.table_mut(record.id)?;
                table.record = record;
            }
            Change::Drop(table) => return self.drop_table(table),
            Change::File(file) => return self.add_file(&file),
            Change::Run { table, id, ages, run } => {
                self.take_parts(&run)?;
                self.table_mut(table)?.runs.insert(0, RunState { id, ages, run });
            }
            Change::Replace { table, removed, id, run } => return self.replace(table, &removed, id, run),
            Change::Mark(mark) => self.mark = Some(mark),
        }
        Ok(())
    }

    /// The files that left the state since the last call.
    pub fn take_obsolete(&mut self) -> Vec<FileId> {
        std::mem::take(&mut self.obsolete)
    }

    /// The records that lead from nothing to this state.
    pub fn snapshot(&self) -> Vec<Vec<u8>> {
        let mut chunks = Chunks::default();
        chunks.push(&Change::Numbers { next_file: self.next_file, next_run: self.next_run });
        for (id, file) in &self.files {
            chunks.push(&Change::File(FileDescriptor { id: *id, length_bytes: file.length_bytes }));
        }
        for (id, table) in &self.tables {
            chunks.push(&Change::Create(table.record.clone()));
            for run in table.runs.iter().rev() {
                chunks.push(&Change::Run { table: *id, id: run.id, ages: run.ages, run: run.run.clone() });
            }
        }
        self.mark.iter().for_each(|mark| chunks.push(&Change::Mark(mark.clone())));
        chunks.finish()
    }

    /// The tables in which a fence would cut something.
    pub fn tables_cut_by(&self, fence: Timestamp) -> BTreeSet<TableId> {
        let cut = |run: &RunState| run.run.parts.iter().any(|part| part.max_durable > fence && part.fence > fence);
        let tables = self.tables.iter().filter(|(_, table)| !table.record.unfenced && table.runs.iter().any(cut));
        tables.map(|(id, _)| *id).collect()
    }

    fn fence(&mut self, fence: Timestamp) {
        let fenced = self.tables.values_mut().filter(|table| !table.record.unfenced);
        let runs = fenced.flat_map(|table| &mut table.runs);
        for part in runs.flat_map(|run| &mut run.run.parts) {
            if part.max_durable > fence {
                part.fence = part.fence.min(fence);
            }
        }
    }

    fn table_mut(&mut self, id: TableId) -> Result<&mut TableState, Objection> {
        self.tables.get_mut(&id).ok_or_else(|| format!("there is no table {id}"))
    }

    fn create(&mut self, record: TableRecord) -> Result<(), Objection> {
        let id = record.id;
        match self.tables.insert(id, TableState { record, runs: Vec::new() }) {
            None => Ok(()),
            Some(_) => Err(format!("table {id} is there already")),
        }
    }

    fn drop_table(&mut self, id: TableId) -> Result<(), Objection> {
        let table = self.tables.remove(&id).ok_or_else(|| format!("there is no table {id} to drop"))?;
        table.runs.iter().try_for_each(|run| self.return_parts(&run.run))
    }

    fn add_file(&mut self, file: &FileDescriptor) -> Result<(), Objection> {
        let state = FileState { length_bytes: file.length_bytes, parts: 0, live_bytes: 0 };
        if self.files.insert(file.id, state).is_some() {
            return Err(format!("file {} is there already", file.id));
        }
        self.next_file = self.next_file.max(file.id.saturating_add(1));
        Ok(())
    }

    fn take_parts(&mut self, run: &RunDescriptor) -> Result<(), Objection> {
        for part in &run.parts {
            let file = self.files.get_mut(&part.file).ok_or_else(|| format!("there is no file {}", part.file))?;
            if part.offset.checked_add(part.length_bytes).is_none_or(|end| end > file.length_bytes) {
                return Err(format!("a part reaches beyond the end of file {}", part.file));
            }
            file.parts += 1;
            file.live_bytes = file.live_bytes.saturating_add(part.length_bytes);
        }
        Ok(())
    }

    fn return_parts(&mut self, run: &RunDescriptor) -> Result<(), Objection> {
        for part in &run.parts {
            let file = self.files.get_mut(&part.file).ok_or_else(|| format!("there is no file {}", part.file))?;
            file.parts = file.parts.checked_sub(1).ok_or_else(|| format!("file {} has no parts", part.file))?;
            file.live_bytes = file.live_bytes.saturating_sub(part.length_bytes);
            if file.parts == 0 {
                self.files.remove(&part.file);
                self.obsolete.push(part.file);
            }
        }
        Ok(())
    }

    /// The new parts are taken before the old ones are returned, since a part may be in both.
    fn replace(
        &mut self,
        table: TableId,
        removed: &[RunId],
        id: RunId,
        run: Option<RunDescriptor>,
    ) -> Result<(), Objection> {
        run.iter().try_for_each(|run| self.take_parts(run))?;
        let runs = &mut self.table_mut(table)?.runs;
        let first = runs.iter().position(|run| Some(&run.id) == removed.first());
        let first = first.ok_or_else(|| format!("table {table} has no run {:?}", removed.first()))?;
        let neighbours = runs.get(first..first + removed.len()).unwrap_or_default();
        if !neighbours.iter().map(|run| &run.id).eq(removed) {
            return Err(format!("the runs {removed:?} of table {table} are not neighbours"));
        }
        let ages = neighbours.iter().map(|run| run.ages).reduce(Ages::union).unwrap_or_default();
        let new = run.map(|run| RunState { id, ages, run });
        let old: Vec<RunState> = runs.splice(first..first + removed.len(), new).collect();
        old.iter().try_for_each(|run| self.return_parts(&run.run))
    }
}

/// Collects changes into records of moderate size.
#[derive(Default)]
struct Chunks {
    finished: Vec<Vec<u8>>,
    current: Vec<u8>,
}

impl Chunks {
    fn push(&mut self, change: &Change) {
        change.encode(&mut self.current);
        if self.current.len() >= CHUNK_BYTES {
            self.finished.push(std::mem::take(&mut self.current));
        }
    }

    fn finish(mut self) -> Vec<Vec<u8>> {
        if !self.current.is_empty() {
            self.finished.push(self.current);
        }
        self.finished
    }
}
