//! A plan for a store whose manifest is lost: from the directories of the run files, and from the records that still are.
//!
//! The order of runs and the question which files are left over from a merge are answered by the [`lineage`] in the
//! files. A merge's output counts if one of its inputs is gone, since inputs go only after the output was installed; then
//! everything in the span of time that it covers is superseded, except what it took over. If all its inputs are there,
//! they are as good as the output and may be better: the merge may not have been finished.
//!
//! Not known any more, where the records of it are lost: which tables had been dropped while their files were still there,
//! and which versions were rolled back; both may come back.

use super::rescue::Inventory;
use super::{Lost, Plan, Run, SalvageReport};
use crate::lineage::{self, Ages, Lineage};
use crate::manifest::change::Change;
use crate::manifest::file;
use crate::manifest::record::TableRecord;
use crate::manifest::state::State;
use crate::walk::read_file_directory;
use crate::{
    FileDescriptor, FileId, KeyBounds, PartDescriptor, Result, RunFile, RunsError, TableId, UpperBound, file_number,
};
use bytes::Bytes;
use pando_base::Timestamp;
use pando_env::{Env, OpenMode};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What the readable records of old manifests say.
#[derive(Default)]
struct Memory {
    state: State,
    identity: u64,
    /// The table of each part that was ever named, with its descriptor.
    parts: BTreeMap<(FileId, u64), (TableId, PartDescriptor)>,
    /// All tables that were ever named.
    tables: BTreeMap<TableId, TableRecord>,
    /// All tables that were dropped.
    dropped: BTreeSet<TableId>,
}

/// The name of a table and its number, if its files tell it.
type Name = (String, Option<TableId>);

/// A part found in a file.
#[derive(Clone)]
struct Found {
    part: PartDescriptor,
    ages: Ages,
    lineage: Option<Lineage>,
}

pub(super) fn plan(env: &Env, directory: &Path, known: &[TableRecord], report: &mut SalvageReport) -> Result<Plan> {
    let listed = env.disk().list(directory).map_err(|error| RunsError::io(directory, "list", error))?;
    let memory = recollect(env, &listed)?;
    let mut found: BTreeMap<Name, Vec<Found>> = BTreeMap::new();
    let mut present = BTreeSet::new();
    for path in &listed {
        let Some(id) = file_number(path) else { continue };
        present.insert(id);
        for (hint, part) in sections(env, directory, path, id, &memory, report)? {
            let lineage = lineage::lineage_of(&hint);
            let ages = lineage.as_ref().map_or(Ages::of_file(id), |lineage| lineage.ages);
            let table = lineage::table_of(&hint);
            if table.is_none_or(|table| !memory.dropped.contains(&table)) {
                let name = (lineage::ident_of(&hint).to_owned(), table);
                found.entry(name).or_default().push(Found { part, ages, lineage });
            }
        }
    }
    join_unnumbered(&mut found);
    let tables = name_tables(&memory, known, found.keys());
    let mut tables: BTreeMap<TableId, (TableRecord, Vec<Run>)> =
        tables.into_iter().map(|(id, record)| (id, (record, Vec::new()))).collect();
    for ((ident, number), parts) in found {
        let runs = arrange(without_superseded(parts, &present));
        let is_it = |record: &TableRecord| number.map_or(record.ident == ident, |number| record.id == number);
        if let Some((_, table)) = tables.values_mut().find(|(record, _)| is_it(record)) {
            *table = runs;
        }
    }
    let identity = if memory.identity == 0 { env.random().next_u64() } else { memory.identity };
    Ok(Plan { identity, tables, mark: memory.state.mark, next_file: memory.state.next_file })
}

/// Reads every record of every manifest that still can be read.
fn recollect(env: &Env, listed: &[PathBuf]) -> Result<Memory> {
    let mut memory = Memory::default();
    let manifests = listed.iter().filter_map(|path| Some((file::number_of(path.file_name()?.to_str()?)?, path)));
    let manifests: BTreeMap<u64, &PathBuf> = manifests.collect();
    for (number, path) in manifests {
        let Ok(bytes) = env.disk().read_all(path) else { continue };
        if let Ok(contents) = file::read(path, number, &bytes) {
            memory.identity = contents.identity;
        }
        for (_, payload) in file::read_what_is_sound(number, &bytes) {
            for change in Change::decode_all(&payload).unwrap_or_default() {
                memory.recollect(&change);
            }
        }
    }
    Ok(memory)
}

impl Memory {
    /// Takes over what a record says. Where records are missing, some changes do not apply: what they name is noted anyway.
    fn recollect(&mut self, change: &Change) {
        match change {
            Change::Create(record) | Change::Update(record) => {
                self.tables.insert(record.id, record.clone());
            }
            Change::Drop(table) => {
                self.tables.remove(table);
                self.dropped.insert(*table);
            }
            Change::Run { table, run, .. } | Change::Replace { table, run: Some(run), .. } => {
                for part in &run.parts {
                    self.parts.insert((part.file, part.offset), (*table, part.clone()));
                }
            }
            Change::Fence(fence) => {
                for (_, part) in self.parts.values_mut().filter(|(_, part)| part.max_durable > *fence) {
                    part.fence = part.fence.min(*fence);
                }
            }
            _ => {}
        }
        let _ = self.state.apply(change.clone());
    }

    fn fence_of(&self, part: &PartDescriptor) -> Timestamp {
        self.parts.get(&(part.file, part.offset)).map_or(Timestamp::MAX, |(_, known)| known.fence)
    }
}

/// The sections of a file with their hints.
fn sections(
    env: &Env,
    directory: &Path,
    path: &Path,
    id: FileId,
    memory: &Memory,
    report: &mut SalvageReport,
) -> Result<Vec<(String, PartDescriptor)>> {
    let opened = env.disk().open(path, OpenMode::Read).map_err(|error| RunsError::io(path, "open", error))?;
    let length_bytes = opened.length().map_err(|error| RunsError::io(path, "measure", error))?;
    let file = RunFile::new(env, directory, FileDescriptor { id, length_bytes });
    let fenced = |part: PartDescriptor| PartDescriptor { fence: memory.fence_of(&part), ..part };
    match read_file_directory(&file) {
        Ok(sections) => Ok(sections.into_iter().map(|(hint, part)| (hint, fenced(part))).collect()),
        Err(error) if error.is_corruption() => Ok(sections_without_directory(file, memory, report)?),
        Err(error) => Err(error),
    }
}

/// Sections of a file whose directory is lost: by their roots, with what the manifests' records say about them. What
/// belongs to no known table goes to one named after the file.
fn sections_without_directory(
    file: Arc<RunFile>,
    memory: &Memory,
    report: &mut SalvageReport,
) -> Result<Vec<(String, PartDescriptor)>> {
    let inventory = Inventory::take(file)?;
    let file = inventory.file();
    let mut sections = Vec::new();
    for (offset, length_bytes) in inventory.sections() {
        let known = memory.parts.get(&(file.id(), offset));
        let record = known.and_then(|(table, _)| memory.tables.get(table));
        if let (Some((_, part)), Some(record)) = (known, record) {
            sections.push((lineage::table_hint(&record.ident, record.id), part.clone()));
            continue;
        }
        let ident = format!("salvaged-{:x}-{offset:x}", file.id());
        report.lost.push(Lost {
            table: None,
            ident: None,
            file: file.path().to_owned(),
            offset,
            detail: format!("the name of a table is lost; its keys are in {ident}"),
            after: None,
            before: None,
        });
        sections.push((ident, unknown_part(file.id(), offset, length_bytes)));
    }
    Ok(sections)
}

/// A descriptor for a section of which nothing is known but its place. Its file is damaged, so its blocks are copied and
/// get a better one.
fn unknown_part(file: FileId, offset: u64, length_bytes: u64) -> PartDescriptor {
    PartDescriptor {
        file,
        offset,
        length_bytes,
        history_bytes: 0,
        root_length_bytes: 0,
        bounds: KeyBounds { first: Bytes::new(), last: UpperBound::Unbounded },
        keys: 0,
        deleted_keys: 0,
        versions: 0,
        unsettled: 0,
        raw_bytes: 0,
        range_tombstones: 0,
        max_sequence: 0,
        max_durable: Timestamp::NONE,
        fence: Timestamp::MAX,
    }
}

/// Files that do not tell a number belong to the newest table of the name.
fn join_unnumbered(found: &mut BTreeMap<Name, Vec<Found>>) {
    let newest: BTreeMap<String, TableId> =
        found.keys().filter_map(|(ident, number)| Some((ident.clone(), (*number)?))).collect();
    for (ident, number) in newest {
        if let Some(parts) = found.remove(&(ident.clone(), None)) {
            found.entry((ident, Some(number))).or_default().extend(parts);
        }
    }
}

/// Tables by id: those that the records know, then those that files or others know by number, and new numbers for names
/// without one. Of two tables of one name the newer one keeps it: the older one was dropped.
fn name_tables<'a>(
    memory: &Memory,
    known: &[TableRecord],
    names: impl Iterator<Item = &'a Name>,
) -> BTreeMap<TableId, TableRecord> {
    let mut tables = memory.tables.clone();
    let mut names: Vec<&Name> = names.collect();
    names.sort_by_key(|(_, number)| std::cmp::Reverse(*number));
    let numbers = names.iter().filter_map(|(_, number)| *number).chain(known.iter().map(|record| record.id));
    let mut last = numbers.chain(tables.keys().copied()).max().unwrap_or(0);
    for (ident, number) in names {
        let is_taken = tables.values().any(|record| record.ident == *ident);
        let record = match number {
            Some(id) if tables.contains_key(id) => continue,
            Some(id) => {
                let told = known.iter().find(|record| record.id == *id).cloned().unwrap_or_default();
                let ident = if is_taken { format!("salvaged-{id:x}-{ident}") } else { ident.clone() };
                TableRecord { id: *id, ident, ..told }
            }
            None if is_taken => continue,
            None => {
                let told = known.iter().rev().find(|record| record.ident == *ident && !tables.contains_key(&record.id));
                last = last.saturating_add(1);
                let unknown = TableRecord { id: last, ident: ident.clone(), ..Default::default() };
                told.cloned().unwrap_or(unknown)
            }
        };
        tables.insert(record.id, record);
    }
    tables
}

/// Leaves out what a merge has replaced, and merges that were not finished.
fn without_superseded(mut parts: Vec<Found>, present: &BTreeSet<FileId>) -> Vec<Found> {
    parts.sort_by_key(|found| found.part.file);
    let mut kept: Vec<Found> = Vec::new();
    let mut counted: Vec<Lineage> = Vec::new();
    for found in parts.into_iter().rev() {
        let is_superseded = counted.iter().any(|output| {
            Some(output) != found.lineage.as_ref()
                && output.ages.covers(found.ages)
                && !output.kept.contains(&found.part.file)
        });
        if is_superseded {
            continue;
        }
        if let Some(lineage) = &found.lineage {
            if lineage.inputs.is_subset(present) {
                continue;
            }
            if !counted.contains(lineage) {
                counted.push(lineage.clone());
            }
        }
        kept.push(found);
    }
    kept
}

/// Puts parts into as few runs as their order allows, newest first.
fn arrange(mut parts: Vec<Found>) -> Vec<Run> {
    parts.sort_by_key(|found| (found.ages.last, found.part.file, found.part.offset));
    let mut runs: Vec<Run> = Vec::new();
    for found in parts {
        let overlaps = |run: &Run| run.parts.iter().any(|part| part.bounds.overlaps(&found.part.bounds));
        match runs.last_mut().filter(|run| !overlaps(run)) {
            Some(run) => {
                run.ages = run.ages.union(found.ages);
                run.parts.push(found.part);
            }
            None => runs.push(Run { ages: found.ages, parts: vec![found.part] }),
        }
    }
    for run in &mut runs {
        run.parts.sort_by(|left, right| left.bounds.first.cmp(&right.bounds.first));
    }
    runs.reverse();
    runs
}
