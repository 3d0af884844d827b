//! Salvage: makes a store that can be opened again out of what is intact, and says what is not.
//!
//! Works on a directory that nobody has open, in place. With a sound manifest, its list of tables and runs is the truth, and
//! every file is checked: intact ones stay as they are; of damaged ones every block whose checksum holds is copied to a
//! new file ([`rescue`]); missing ones are reported. Without one, the list is rebuilt from the directories in
//! the run files and from whatever records can still be read ([`rebuild`]). The end is a new manifest.
//!
//! What a lost block held is gone from its run, and an older version of the same key in an older run then shows. The
//! report names the gap, so that whoever reads it knows where to doubt. Damaged files are kept under another name.
//!
//! A salvage that is cut short can be repeated: nothing is removed or renamed before the new manifest is in force.

mod rebuild;
mod rescue;
#[cfg(test)]
mod tests;

use crate::lineage::{self, Ages, Lineage};
use crate::manifest::change::Change;
use crate::manifest::record::{CheckpointMark, TableRecord};
use crate::manifest::state::State;
use crate::manifest::{self, Manifest, current, file};
use crate::walk::check_file;
use crate::{
    FileDescriptor, FileId, NewRuns, PartDescriptor, Result, RunDescriptor, RunFile, RunWriter, RunsError, TableId,
    WriterOptions, file_number,
};
use bytes::Bytes;
use pando_env::{Env, OpenMode};
use rescue::Inventory;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Something that could not be saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The table, if known.
    pub table: Option<TableId>,
    /// Its name, if known.
    pub ident: Option<String>,
    /// The damaged or missing file.
    pub file: PathBuf,
    /// Where the damage begins.
    pub offset: u64,
    /// What is lost.
    pub detail: String,
    /// The last key before the gap, if known.
    pub after: Option<Bytes>,
    /// The first key behind the gap, if known.
    pub before: Option<Bytes>,
}

/// What a salvage did.
#[derive(Clone, Debug, Default)]
pub struct SalvageReport {
    /// Why the manifest could not be used, if it could not.
    pub manifest_damage: Option<String>,
    /// The tables of the salvaged store.
    pub tables: Vec<TableRecord>,
    /// The checkpoint that its runs hold, if known.
    pub mark: Option<CheckpointMark>,
    /// Parts that are intact.
    pub parts_intact: u64,
    /// Parts of which something was copied.
    pub parts_rescued: u64,
    /// Keys copied.
    pub keys_rescued: u64,
    /// What is gone.
    pub lost: Vec<Lost>,
}

/// A run as it is taken apart and put together.
struct Run {
    ages: Ages,
    parts: Vec<PartDescriptor>,
}

/// Everything that is known of the store before its parts are looked at.
struct Plan {
    identity: u64,
    tables: BTreeMap<TableId, (TableRecord, Vec<Run>)>,
    mark: Option<CheckpointMark>,
    next_file: FileId,
}

/// Salvages the store in a directory, which the caller has locked.
pub fn salvage(env: &Env, directory: &Path) -> Result<SalvageReport> {
    salvage_knowing(env, directory, &[])
}

/// Salvages the store in a directory, with records of tables that are known from elsewhere, should the manifest be lost.
pub fn salvage_knowing(env: &Env, directory: &Path, known: &[TableRecord]) -> Result<SalvageReport> {
    let mut report = SalvageReport::default();
    let mut plan = match read_manifest(env, directory) {
        Ok(plan) => plan,
        Err(error) if error.is_corruption() => {
            report.manifest_damage = Some(error.to_string());
            rebuild::plan(env, directory, known, &mut report)?
        }
        Err(error) => return Err(error),
    };
    plan.next_file = plan.next_file.max(highest_file(env, directory)?.saturating_add(1));
    Salvage::new(env, directory, &mut report, plan.next_file).run(plan)?;
    Ok(report)
}

fn read_manifest(env: &Env, directory: &Path) -> Result<Plan> {
    let pointer = directory.join(current::NAME);
    let number = current::read(&**env.disk(), directory)?;
    let number = number.ok_or_else(|| RunsError::corruption(&pointer, 0, "the pointer to the manifest is missing"))?;
    let path = directory.join(file::name(number));
    let bytes = env.disk().read_all(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => RunsError::corruption(&path, 0, "the manifest is missing"),
        _ => RunsError::io(&path, "read", error),
    })?;
    let contents = file::read(&path, number, &bytes)?;
    let state = manifest::replay(&path, &contents.records)?;
    let run = |run: manifest::state::RunState| Run { ages: run.ages, parts: run.run.parts };
    let tables = state.tables.into_iter().map(|(id, table)| {
        let runs = table.runs.into_iter().map(run).collect();
        (id, (table.record, runs))
    });
    Ok(Plan { identity: contents.identity, tables: tables.collect(), mark: state.mark, next_file: state.next_file })
}

fn highest_file(env: &Env, directory: &Path) -> Result<FileId> {
    let listed = env.disk().list(directory).map_err(|error| RunsError::io(directory, "list", error))?;
    Ok(listed.iter().filter_map(|path| file_number(path)).max().unwrap_or(0))
}

/// What is known of a file.
enum Condition {
    Intact,
    Damaged(Arc<Inventory>),
    Missing,
}

struct Salvage<'a> {
    env: &'a Env,
    directory: &'a Path,
    report: &'a mut SalvageReport,
    writer: RunWriter,
    conditions: BTreeMap<FileId, (Condition, u64)>,
    next_label: u64,
}

/// A part of the salvaged run: as it was, or what the writer made of it.
enum Piece {
    Kept(PartDescriptor),
    Rescued { label: u64, fence: pando_base::Timestamp },
}

/// A table with its runs, newest first.
type Salvaged = (TableRecord, Vec<(Ages, Vec<Piece>)>);

impl<'a> Salvage<'a> {
    fn new(env: &'a Env, directory: &'a Path, report: &'a mut SalvageReport, next_file: FileId) -> Salvage<'a> {
        let numbers = Arc::new(AtomicU64::new(next_file));
        let writer = RunWriter::new(env, directory, numbers, WriterOptions::default());
        Salvage { env, directory, report, writer, conditions: BTreeMap::new(), next_label: 0 }
    }

    fn run(mut self, plan: Plan) -> Result<()> {
        let mut salvaged: Vec<Salvaged> = Vec::new();
        for (record, runs) in plan.tables.into_values() {
            let mut pieces = Vec::new();
            for run in runs {
                pieces.push((run.ages, self.look_at_run(&record, &run)?));
            }
            salvaged.push((record, pieces));
        }
        self.report.tables = salvaged.iter().map(|(record, _)| record.clone()).collect();
        self.report.mark = plan.mark.clone();
        let damaged = self.damaged_files();
        let lengths = self.conditions.iter().map(|(id, (_, length))| (*id, *length)).collect();
        let new = self.writer.finish()?;
        let state = build_state(&salvaged, &new, &lengths, plan.mark, plan.next_file)?;
        Manifest::create(self.env.disk(), self.directory, plan.identity, state, 0)?;
        new.keep();
        set_aside(self.env, self.directory, &damaged)
    }

    fn look_at_run(&mut self, record: &TableRecord, run: &Run) -> Result<Vec<Piece>> {
        let mut pieces = Vec::new();
        for part in &run.parts {
            match self.condition(part.file)? {
                Condition::Intact => {
                    self.report.parts_intact += 1;
                    pieces.push(Piece::Kept(part.clone()));
                }
                Condition::Missing => self.lose_part(record, part, "the file is missing"),
                // Intact parts are copied, too, so that the damaged file is not needed any more.
                Condition::Damaged(inventory) => {
                    let inventory = inventory.clone();
                    pieces.extend(self.rescue(record, run, part, &inventory)?);
                }
            }
        }
        Ok(pieces)
    }

    fn condition(&mut self, id: FileId) -> Result<&Condition> {
        if !self.conditions.contains_key(&id) {
            let found = examine(self.env, self.directory, id)?;
            self.conditions.insert(id, found);
        }
        Ok(self.conditions.get(&id).map_or(&Condition::Missing, |(condition, _)| condition))
    }

    fn rescue(
        &mut self,
        record: &TableRecord,
        run: &Run,
        part: &PartDescriptor,
        inventory: &Inventory,
    ) -> Result<Option<Piece>> {
        let others = run.parts.iter().map(|part| part.file).filter(|file| *file != part.file).collect();
        let lineage = Lineage { ages: run.ages, inputs: BTreeSet::from([part.file]), kept: others };
        let label = self.next_label;
        self.next_label += 1;
        let hint = lineage::hint(&record.ident, record.id, &lineage);
        let rescued = inventory.rescue(part, &mut self.writer, label, hint)?;
        self.report.keys_rescued += rescued.keys;
        self.report.parts_rescued += u64::from(rescued.keys > 0);
        let lost = rescued.lost.into_iter();
        self.report.lost.extend(lost.map(|lost| Lost {
            table: Some(record.id),
            ident: Some(record.ident.clone()),
            ..lost
        }));
        Ok((rescued.keys > 0 || rescued.tombstones > 0).then_some(Piece::Rescued { label, fence: part.fence }))
    }

    fn lose_part(&mut self, record: &TableRecord, part: &PartDescriptor, detail: &str) {
        let before = match &part.bounds.last {
            crate::UpperBound::Included(key) | crate::UpperBound::Excluded(key) => Some(key.clone()),
            crate::UpperBound::Unbounded => None,
        };
        self.report.lost.push(Lost {
            table: Some(record.id),
            ident: Some(record.ident.clone()),
            file: self.directory.join(crate::file_name(part.file)),
            offset: part.offset,
            detail: format!("{detail}: {} keys from the first to the last one named", part.keys),
            after: Some(part.bounds.first.clone()),
            before,
        });
    }

    fn damaged_files(&self) -> Vec<FileId> {
        let damaged = self.conditions.iter().filter(|(_, (condition, _))| matches!(condition, Condition::Damaged(_)));
        damaged.map(|(id, _)| *id).collect()
    }
}

/// Reads a file from end to end. The length is that on disk: a manifest that says otherwise has lost the file's end.
fn examine(env: &Env, directory: &Path, id: FileId) -> Result<(Condition, u64)> {
    let path = directory.join(crate::file_name(id));
    let opened = match env.disk().open(&path, OpenMode::Read) {
        Ok(opened) => opened,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok((Condition::Missing, 0)),
        Err(error) => return Err(RunsError::io(&path, "open", error)),
    };
    let length_bytes = opened.length().map_err(|error| RunsError::io(&path, "measure", error))?;
    let file = RunFile::new(env, directory, FileDescriptor { id, length_bytes });
    match check_file(&file) {
        Ok(_) => Ok((Condition::Intact, length_bytes)),
        Err(error) if error.is_corruption() => Ok((Condition::Damaged(Arc::new(Inventory::take(file)?)), length_bytes)),
        Err(error) => Err(error),
    }
}

fn build_state(
    salvaged: &[Salvaged],
    new: &NewRuns,
    lengths: &BTreeMap<FileId, u64>,
    mark: Option<CheckpointMark>,
    next_file: FileId,
) -> Result<State> {
    let written: BTreeMap<u64, &RunDescriptor> = new.tables().iter().map(|(label, run)| (*label, run)).collect();
    let mut changes = Vec::new();
    let mut used: BTreeSet<FileId> = BTreeSet::new();
    let mut next_run = 0;
    for (record, runs) in salvaged {
        changes.push(Change::Create(record.clone()));
        for (ages, pieces) in runs.iter().rev() {
            let run = RunDescriptor { parts: pieces.iter().flat_map(|piece| parts_of(piece, &written)).collect() };
            if run.parts.is_empty() {
                continue;
            }
            run.check()?;
            used.extend(run.parts.iter().map(|part| part.file));
            changes.push(Change::Run { table: record.id, id: next_run, ages: *ages, run });
            next_run += 1;
        }
    }
    changes.extend(mark.map(Change::Mark));
    let mut state = State::default();
    let new_lengths = new.files().iter().map(|file| (file.id, file.length_bytes));
    let files = lengths.iter().map(|(id, length)| (*id, *length)).chain(new_lengths);
    let files = files.filter(|(id, _)| used.contains(id)).map(|(id, length_bytes)| FileDescriptor { id, length_bytes });
    let numbers = Change::Numbers { next_file, next_run };
    for change in std::iter::once(numbers).chain(files.map(Change::File)).chain(changes) {
        state.apply(change).map_err(RunsError::Invalid)?;
    }
    Ok(state)
}

fn parts_of(piece: &Piece, written: &BTreeMap<u64, &RunDescriptor>) -> Vec<PartDescriptor> {
    match piece {
        Piece::Kept(part) => vec![part.clone()],
        Piece::Rescued { label, fence } => {
            let parts = written.get(label).map(|run| run.parts.clone()).unwrap_or_default();
            let fenced = |part: PartDescriptor| match part.max_durable > *fence {
                true => PartDescriptor { fence: *fence, ..part },
                false => part,
            };
            parts.into_iter().map(fenced).collect()
        }
    }
}

/// Damaged files, which the new manifest does not name any more, get a name under which nobody removes them.
fn set_aside(env: &Env, directory: &Path, damaged: &[FileId]) -> Result<()> {
    for id in damaged {
        let path = directory.join(crate::file_name(*id));
        let aside = directory.join(format!("{}.damaged", crate::file_name(*id)));
        env.disk().rename(&path, &aside).map_err(|error| RunsError::io(&path, "rename", error))?;
    }
    manifest::sync_directory(&**env.disk(), directory)
}
