//! Verification: every byte of every file of the store is read and compared with what it should be.
//!
//! Three passes, from the outside in: the manifest on disk must add up to the state in memory; every frame of every run file
//! must pass its checksum, and frames must tile the file; every run must give its versions in order, as many as its
//! descriptor says. The store stays in use meanwhile: files never change, and those under verification are pinned.
//! Damage does not end the search; everything found is listed.

use crate::manifest::{self, file};
use crate::pins::Pins;
use crate::store::Runs;
use crate::walk::{FileWalk, check_file};
use crate::{FileId, Part, Result, Run, RunFile, RunsError, StreamOptions, TableId, VersionStream};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

/// Something that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The damaged file.
    pub file: PathBuf,
    /// Where the damage begins.
    pub offset: u64,
    /// What is wrong.
    pub detail: String,
    /// The tables that have a part there; empty if it harms none.
    pub tables: Vec<TableId>,
}

/// What verification found.
#[derive(Clone, Debug, Default)]
pub struct VerifyReport {
    /// Run files read.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Frames that are as they were written.
    pub frames: u64,
    /// Tables read.
    pub tables: u64,
    /// Versions read.
    pub versions: u64,
    /// Everything that is not in order.
    pub problems: Vec<Problem>,
}

/// So many versions of a table are read before it is asked whether to go on: less than a millisecond's work.
const VERSIONS_BETWEEN_QUESTIONS: u64 = 256;

/// How far verification is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifyProgress {
    /// Bytes of run files checked.
    pub done_bytes: u64,
    /// Of so many.
    pub total_bytes: u64,
}

/// The runs of each table.
type Tables = BTreeMap<TableId, Vec<Arc<Run>>>;

/// The parts of a file by offset, each with its table.
type Places = BTreeMap<FileId, BTreeMap<u64, (u64, TableId)>>;

impl Runs {
    /// Reads everything. An error means that the disk refused to be read; damage is in the report.
    pub fn verify(&self, progress: &mut dyn FnMut(VerifyProgress)) -> Result<VerifyReport> {
        let mut report = VerifyReport::default();
        let (_pins, tables, files) = self.hold_all();
        self.verify_manifest(&mut report)?;
        let places = places(&tables);
        let total_bytes = files.iter().map(|file| file.length_bytes()).sum();
        for file in &files {
            verify_file(file, &places, &mut report)?;
            progress(VerifyProgress { done_bytes: report.bytes, total_bytes });
        }
        for (table, runs) in &tables {
            report.tables += 1;
            for run in runs {
                verify_run(*table, run, &mut report, &mut || true)?;
            }
        }
        report.problems.sort_by(|a, b| (&a.file, a.offset).cmp(&(&b.file, b.offset)));
        Ok(report)
    }

    /// Reads the runs of one table, as they are at this moment: every block of it, the order of its keys, its counts.
    /// Asks now and then whether to go on; if not, it tells what it has found so far.
    pub fn verify_table(&self, table: TableId, goes_on: &mut dyn FnMut() -> bool) -> Result<VerifyReport> {
        let mut report = VerifyReport { tables: 1, ..VerifyReport::default() };
        let _pins = self.pin();
        for run in self.slot(table).load().runs() {
            if !verify_run(table, run, &mut report, goes_on)? {
                break;
            }
        }
        Ok(report)
    }

    /// Everything there is to verify, as of one moment.
    fn hold_all(&self) -> (Pins, Tables, Vec<Arc<RunFile>>) {
        let pins = self.pin();
        let manifest = self.shared.manifest.lock();
        let state = manifest.state();
        let runs = |table: &TableId| self.shared.slot_in(state, *table).load().runs().to_vec();
        let tables = state.tables.keys().map(|table| (*table, runs(table))).collect();
        let files = self.shared.files.lock().live().values().cloned().collect();
        (pins, tables, files)
    }

    fn verify_manifest(&self, report: &mut VerifyReport) -> Result<()> {
        let manifest = self.shared.manifest.lock();
        let path = manifest.path().to_owned();
        let bytes = self.shared.env.disk().read_all(&path).map_err(|error| RunsError::io(&path, "read", error))?;
        let number = manifest.number();
        let harmless = |offset: u64| Problem {
            file: path.clone(),
            offset,
            detail: "one of the two records of the synced length is damaged; the other one holds".into(),
            tables: Vec::new(),
        };
        report.problems.extend(file::damaged_slots(number, &bytes).into_iter().map(harmless));
        let read = file::read(&path, number, &bytes).and_then(|contents| manifest::replay(&path, &contents.records));
        match read {
            Ok(state) if state == *manifest.state() => Ok(()),
            Ok(_) => {
                let error = RunsError::corruption(&path, 0, "the manifest on disk differs from the store in memory");
                note(report, error, all_tables(manifest.state()))
            }
            Err(error) => note(report, error, all_tables(manifest.state())),
        }?;
        match manifest::current::read(&**self.shared.env.disk(), &self.shared.directory) {
            Ok(Some(current)) if current == number => Ok(()),
            Ok(_) => {
                let path = self.shared.directory.join(manifest::current::NAME);
                note(report, RunsError::corruption(&path, 0, "the pointer names another manifest"), Vec::new())
            }
            Err(error) => note(report, error, all_tables(manifest.state())),
        }
    }
}

fn all_tables(state: &manifest::state::State) -> Vec<TableId> {
    state.tables.keys().copied().collect()
}

/// Damage goes into the report; any other error ends the verification.
fn note(report: &mut VerifyReport, error: RunsError, tables: Vec<TableId>) -> Result<()> {
    match error {
        RunsError::Corruption { file, offset, detail } => {
            let known = report.problems.iter().any(|problem| problem.file == file && problem.offset == offset);
            if !known {
                report.problems.push(Problem { file, offset, detail, tables });
            }
            Ok(())
        }
        RunsError::Io { path, source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            let detail = "the file is missing".to_owned();
            report.problems.push(Problem { file: path, offset: 0, detail, tables });
            Ok(())
        }
        other => Err(other),
    }
}

fn places(tables: &Tables) -> Places {
    let mut places = Places::new();
    for (table, runs) in tables {
        for part in runs.iter().flat_map(|run| run.parts()) {
            let part = part.descriptor();
            let end = part.offset.saturating_add(part.length_bytes);
            places.entry(part.file).or_default().insert(part.offset, (end, *table));
        }
    }
    places
}

/// The tables that a place in a file belongs to; header, directory and tail belong to all of the file's.
fn tables_at(places: &Places, file: FileId, offset: u64) -> Vec<TableId> {
    let Some(parts) = places.get(&file) else { return Vec::new() };
    let inside = parts.range(..=offset).next_back().filter(|(_, (end, _))| offset < *end);
    let tables: BTreeSet<TableId> = match inside {
        Some((_, (_, table))) => BTreeSet::from([*table]),
        None => parts.values().map(|(_, table)| *table).collect(),
    };
    tables.into_iter().collect()
}

fn verify_file(file: &Arc<RunFile>, places: &Places, report: &mut VerifyReport) -> Result<()> {
    report.files += 1;
    report.bytes += file.length_bytes();
    let error = match check_file(file) {
        Ok(frames) => {
            report.frames += frames;
            return Ok(());
        }
        Err(error) => error,
    };
    let offset = if let RunsError::Corruption { offset, .. } = &error { *offset } else { 0 };
    let missing = !error.is_corruption();
    note(report, error, tables_at(places, file.id(), offset))?;
    if missing { Ok(()) } else { walk_past_damage(file, places, report) }
}

/// Finds all damaged places of a file, not only the first.
fn walk_past_damage(file: &Arc<RunFile>, places: &Places, report: &mut VerifyReport) -> Result<()> {
    let mut walk = FileWalk::new(file);
    loop {
        match walk.next_frame() {
            Ok(Some(_)) => report.frames += 1,
            Ok(None) => return Ok(()),
            Err(error) => {
                let tables = tables_at(places, file.id(), walk.offset());
                note(report, error, tables)?;
                walk.skip_damage()?;
            }
        }
    }
}

/// Reads a run through its indexes. A damaged part is left at the first damage: the file's walk lists the rest. False if
/// it was not to go on.
fn verify_run(
    table: TableId,
    run: &Arc<Run>,
    report: &mut VerifyReport,
    goes_on: &mut dyn FnMut() -> bool,
) -> Result<bool> {
    for part in run.parts() {
        match count_versions(part, goes_on) {
            Ok(None) => return Ok(false),
            Ok(Some(versions)) => {
                report.versions += versions;
                let descriptor = part.descriptor();
                let fenced = descriptor.fence < descriptor.max_durable;
                if versions != descriptor.versions && !fenced {
                    let detail = format!("the part has {versions} versions instead of {}", descriptor.versions);
                    note(report, RunsError::corruption(part.file().path(), descriptor.offset, detail), vec![table])?;
                }
            }
            Err(error) => note(report, error, vec![table])?,
        }
    }
    Ok(true)
}

/// None if it was not to go on.
fn count_versions(part: &Arc<Part>, goes_on: &mut dyn FnMut() -> bool) -> Result<Option<u64>> {
    let mut stream = VersionStream::new(&[Run::new(vec![part.clone()])], StreamOptions::default())?;
    let mut versions = 0u64;
    let mut previous: Vec<u8> = Vec::new();
    while stream.next()? {
        if versions > 0 && stream.key() < previous.as_slice() {
            return Err(RunsError::corruption(part.file().path(), part.descriptor().offset, "keys are out of order"));
        }
        if !part.descriptor().bounds.contains(stream.key()) {
            return Err(RunsError::corruption(part.file().path(), part.descriptor().offset, "a key is out of bounds"));
        }
        previous.clear();
        previous.extend_from_slice(stream.key());
        stream.value()?;
        versions += 1;
        if versions.is_multiple_of(VERSIONS_BETWEEN_QUESTIONS) && !goes_on() {
            return Ok(None);
        }
    }
    Ok(Some(versions))
}
