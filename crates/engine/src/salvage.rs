//! Salvage: a new store out of all that is intact of a damaged one.
//!
//! The damaged store is not touched. Its log is copied record by record, its base file by file, and the copy of the base is
//! then salvaged in place; both report what they had to leave out. Three things bind the two together again: the checkpoint's
//! mark is moved to the place that its sequence has in the new log; tables whose records the base has lost are
//! looked up in the log; and without a mark the whole log is applied. At last the new store is opened for reading and
//! verified: what is in the report is everything that is missing, and the rest is sound.
//!
//! Sizes of tables that lost something stay as they were; whoever knows what they count may count again.

use crate::checkpoint::MarkExtra;
use crate::engine::DurableEngine;
use crate::failure::{of_log, of_runs};
use crate::open::{BASE_DIRECTORY, LOG_DIRECTORY};
use crate::options::{EngineOptions, Mode};
use crate::read_only;
use crate::redo::{TableDescription, decode_configuration, encode_configuration, kind};
use bytes::Bytes;
use pando_base::Timestamp;
use pando_engine_log::{Log, LogOptions, LogPosition, Recovery};
use pando_engine_runs::{CheckpointMark, Edit, Lost, Opened, Runs, RunsOptions, TableRecord};
use pando_env::{Env, OpenMode};
use pando_storage::{Damage, DamagedPart, Maintenance, Result, StorageError, TableOptions};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How much of a file is copied at once.
const COPY_BYTES: usize = 1 << 20;
/// How much is given up where the disk cannot read.
const SECTOR_BYTES: usize = 4096;

/// No write takes longer from its time to its commit.
const COMMIT_SECONDS_MAX: u32 = 60;

/// What a salvage saved and what it could not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SalvageReport {
    /// The tables of the new store.
    pub tables: Vec<String>,
    /// Parts of runs that were intact.
    pub parts_intact: u64,
    /// Keys that were saved from damaged parts.
    pub keys_rescued: u64,
    /// Log records that were saved.
    pub log_records: u64,
    /// The last checkpoint's mark was lost: from this time on the oplog has to be applied, if there is one.
    pub oplog_start: Option<Timestamp>,
    /// Everything that is not in the new store, or not certain: file of the damaged store, offset, table where known.
    pub damage: Vec<Damage>,
}

/// Who goes on with a store that was made of a damaged one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heir {
    /// A member of a set: it applies its oplog from where it is told to, and until then shows nothing beyond.
    Member,
    /// Somebody who wants to see what there is: all that the runs have counts.
    Reader,
}

/// Makes a new store in `target` of what is intact in `directory`, which nobody may have open.
pub fn salvage(env: &Env, directory: &Path, target: &Path, heir: Heir) -> Result<SalvageReport> {
    let there = |name: &str| env.disk().exists(&directory.join(name)).map_err(io_error(directory));
    let (has_base, has_log) = (there(BASE_DIRECTORY)?, there(LOG_DIRECTORY)?);
    if !has_base && !has_log {
        return Err(StorageError::BadDirectory(format!("there is no store in {}", directory.display())));
    }
    let _source_lock = read_only::lock(env, directory)?;
    let mut salvage =
        Salvage { env, directory, target, heir, is_manifest_lost: false, report: SalvageReport::default() };
    salvage.prepare_target()?;
    if has_log {
        salvage.salvage_log()?;
    }
    if has_base {
        salvage.copy_base()?;
    }
    let history = salvage.read_log(None)?;
    salvage.salvage_base(&history)?;
    salvage.bind(&history)?;
    salvage.check()?;
    Ok(salvage.report)
}

struct Salvage<'a> {
    env: &'a Env,
    directory: &'a Path,
    target: &'a Path,
    heir: Heir,
    /// A mark that is still found may be one of an earlier checkpoint.
    is_manifest_lost: bool,
    report: SalvageReport,
}

/// What the salvaged log says about the store.
struct History {
    tables: BTreeMap<u64, TableRecord>,
    has_oplog: bool,
    /// The first record after a given sequence, or the end.
    position: LogPosition,
}

fn io_error(path: &Path) -> impl FnOnce(io::Error) -> StorageError + '_ {
    move |error| StorageError::Io(format!("{}: {error}", path.display()))
}

impl Salvage<'_> {
    fn base(&self) -> PathBuf {
        self.target.join(BASE_DIRECTORY)
    }

    fn log(&self) -> PathBuf {
        self.target.join(LOG_DIRECTORY)
    }

    /// The target must be empty, or the damaged store could be what is overwritten.
    fn prepare_target(&self) -> Result<()> {
        let disk = self.env.disk();
        for directory in [self.target.to_owned(), self.base(), self.log()] {
            disk.create_directory(&directory).map_err(io_error(&directory))?;
            if !disk.list(&directory).map_err(io_error(&directory))?.is_empty() {
                let text = format!("{} is not empty; salvage makes a new store", directory.display());
                return Err(StorageError::BadDirectory(text));
            }
        }
        Ok(())
    }

    fn salvage_log(&mut self) -> Result<()> {
        let from = self.directory.join(LOG_DIRECTORY);
        let options = LogOptions { oplog: true, oplog_max_bytes: u64::MAX, ..LogOptions::default() };
        let saved = pando_engine_log::salvage(self.env, &from, &self.log(), options).map_err(of_log)?;
        self.report.log_records = saved.records;
        self.report.damage.extend(saved.skipped.into_iter().map(|damage| Damage {
            part: DamagedPart::Log,
            file: damage.file.display().to_string(),
            offset: damage.offset,
            ident: None,
            detail: format!("{}; {} bytes of the log were left out", damage.detail, damage.bytes),
        }));
        Ok(())
    }

    /// Copies the files of the base, and zeros where the disk cannot read: these fail their checksums.
    fn copy_base(&mut self) -> Result<()> {
        let from = self.directory.join(BASE_DIRECTORY);
        for path in self.env.disk().list(&from).map_err(io_error(&from))? {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if name.ends_with(".run") || name.starts_with("MANIFEST-") || name == "CURRENT" {
                let to = self.base().join(name);
                self.copy_file(&path, &to)?;
            }
        }
        self.env.disk().sync_directory(&self.base()).map_err(io_error(&self.base()))
    }

    fn copy_file(&mut self, from: &Path, to: &Path) -> Result<()> {
        let disk = self.env.disk();
        let source = disk.open(from, OpenMode::Read).map_err(io_error(from))?;
        let copy = disk.open(to, OpenMode::CreateNew).map_err(io_error(to))?;
        let length = source.length().map_err(io_error(from))?;
        let mut offset = 0;
        while offset < length {
            let mut block = vec![0; (length - offset).min(COPY_BYTES as u64) as usize];
            if source.read_exact_at(&mut block, offset).is_err() {
                let sectors = block.chunks_mut(SECTOR_BYTES).zip((offset..).step_by(SECTOR_BYTES));
                for (sector, at) in sectors {
                    if let Err(error) = source.read_exact_at(sector, at) {
                        sector.fill(0);
                        self.lose(from, at, None, format!("the disk cannot read it: {error}"));
                    }
                }
            }
            copy.write_at(&block, offset).map_err(io_error(to))?;
            offset += block.len() as u64;
        }
        copy.sync().map_err(io_error(to))
    }

    fn lose(&mut self, file: &Path, offset: u64, ident: Option<String>, detail: String) {
        let (part, file) = (DamagedPart::Base, file.display().to_string());
        self.report.damage.push(Damage { part, file, offset, ident, detail });
    }

    fn lose_manifest(&mut self, detail: String) {
        let (part, file) = (DamagedPart::Manifest, self.directory.join(BASE_DIRECTORY).display().to_string());
        self.report.damage.push(Damage { part, file, offset: 0, ident: None, detail });
    }

    /// Goes through the salvaged log, up to the first record after a sequence.
    fn read_log(&self, sequence: Option<u64>) -> Result<History> {
        let options = LogOptions { oplog: true, ..LogOptions::default() };
        let opened = Log::open_read_only(self.env, &self.log(), options, None, Arc::new(|| Timestamp::MAX));
        let (_, mut recovery) = opened.map_err(of_log)?;
        let mut history = History { tables: BTreeMap::new(), has_oplog: false, position: recovery.end() };
        history.read(&mut recovery, sequence)?;
        Ok(history)
    }

    fn salvage_base(&mut self, history: &History) -> Result<()> {
        // Without an oplog every table is logged.
        let unfenced = |record: &TableRecord| record.unfenced || !history.has_oplog;
        let known = history.tables.values().map(|record| TableRecord { unfenced: unfenced(record), ..record.clone() });
        let known: Vec<TableRecord> = known.collect();
        let saved = pando_engine_runs::salvage_knowing(self.env, &self.base(), &known).map_err(of_runs)?;
        self.report.parts_intact = saved.parts_intact;
        self.report.keys_rescued = saved.keys_rescued;
        if let Some(detail) = saved.manifest_damage {
            self.is_manifest_lost = true;
            self.lose_manifest(format!("the manifest cannot be used and was rebuilt: {detail}"));
        }
        for lost in saved.lost {
            let name = lost.file.file_name().unwrap_or_default();
            let file = self.directory.join(BASE_DIRECTORY).join(name);
            let detail = told(&lost);
            self.lose(&file, lost.offset, lost.ident, detail);
        }
        // The damaged files themselves are where they were.
        for path in self.env.disk().list(&self.base()).map_err(io_error(&self.base()))? {
            if path.extension().is_some_and(|extension| extension == "damaged") {
                self.env.disk().remove(&path).map_err(io_error(&path))?;
            }
        }
        Ok(())
    }

    /// Moves the checkpoint's mark to its place in the new log, and makes every table's record readable.
    fn bind(&mut self, history: &History) -> Result<()> {
        let options = RunsOptions { ballast_bytes: 0, ..RunsOptions::default() };
        let (runs, opened) = Runs::open(self.env, &self.base(), options).map_err(of_runs)?;
        let known = opened.mark.as_ref().filter(|_| !self.is_manifest_lost);
        let sound = known.filter(|mark| MarkExtra::decode(&mark.extra).is_some());
        let mark = match sound {
            Some(mark) => {
                let position = self.read_log(Some(mark.sequence_cut))?.position;
                at(mark.clone(), position)
            }
            None => self.mark_without_checkpoint(&runs, &opened, history)?,
        };
        let unreadable = opened.tables.iter().filter(|record| decode_configuration(&record.configuration).is_err());
        let mut update = Vec::new();
        for record in unreadable {
            let base = self.directory.join(BASE_DIRECTORY);
            let detail = "the table's options are lost; it is taken for one that is not replicated".to_owned();
            self.lose(&base, 0, Some(record.ident.clone()), detail);
            let options = encode_configuration(&TableOptions::default(), &BTreeMap::new());
            update.push(TableRecord { configuration: Bytes::from(options), unfenced: true, ..record.clone() });
        }
        runs.install(Edit { update, mark: Some(mark), ..Edit::default() }).map_err(of_runs)?;
        runs.close().map_err(of_runs)
    }

    /// Nothing tells what the runs hold: all of it counts, and all of the log is applied. What only the oplog has begins, at
    /// the earliest, behind the greatest time in the runs: a checkpoint has everything up to its time.
    fn mark_without_checkpoint(&mut self, runs: &Runs, opened: &Opened, history: &History) -> Result<CheckpointMark> {
        self.lose_manifest("the last checkpoint's mark is lost; the whole log is applied".to_owned());
        let ids = opened.tables.iter().map(|record| record.id);
        let loaded: Vec<_> = ids.clone().map(|id| runs.slot(id).load()).collect();
        let sequence_cut = loaded.iter().map(|table| table.max_sequence()).max().unwrap_or(0);
        let durable = loaded.iter().map(|table| table.max_durable()).max().unwrap_or(Timestamp::NONE);
        let oplog_start = match history.has_oplog && self.heir == Heir::Member {
            true => self.oplog_start(durable)?,
            false => None,
        };
        self.report.oplog_start = oplog_start;
        let extra = MarkExtra {
            mode: if history.has_oplog { Mode::ReplicaSet } else { Mode::StandAlone },
            full: oplog_start.is_none(),
            last_table: ids.chain(history.tables.keys().copied()).max().unwrap_or(0),
        };
        Ok(CheckpointMark {
            sequence_cut,
            stable: oplog_start.unwrap_or_default(),
            extra: extra.encode(),
            ..at(CheckpointMark::default(), LogPosition::START)
        })
    }

    /// The entry up to which the runs have everything, and from which on the oplog is applied. What ran when the checkpoint was taken
    /// may have committed later with a time that is smaller than the greatest in the runs: so it is an entry of some time before.
    /// Where the oplog does not reach back so far, it is the first one. What the runs have beyond it is applied once more.
    fn oplog_start(&self, durable: Timestamp) -> Result<Option<Timestamp>> {
        let options = LogOptions { oplog: true, ..LogOptions::default() };
        let opened = Log::open_read_only(self.env, &self.log(), options, None, Arc::new(|| Timestamp::MAX));
        let (log, _) = opened.map_err(of_log)?;
        let bound = Timestamp::new(durable.seconds().saturating_sub(COMMIT_SECONDS_MAX), durable.increment());
        let found = log.oplog().backward().seek(bound).map_err(of_log)?;
        Ok(found.map(|(time, _)| time).or_else(|| log.oplog().first()))
    }

    /// Opens the result and reads all of it.
    fn check(&mut self) -> Result<()> {
        let options = EngineOptions { read_only: true, ..EngineOptions::default() };
        let engine = DurableEngine::open(self.env, self.target, options)?;
        self.report.tables = engine.core.registry.idents();
        self.report.damage.extend(engine.verify()?.damage);
        Ok(())
    }
}

impl History {
    fn read(&mut self, recovery: &mut Recovery, sequence: Option<u64>) -> Result<()> {
        while let Some(record) = recovery.next_record().map_err(of_log)? {
            if sequence.is_some_and(|sequence| record.sequence > sequence) {
                self.position = record.position;
                return Ok(());
            }
            self.has_oplog |= !record.entries.is_empty();
            if record.kind == kind::CREATE_TABLE
                && let Ok(description) = TableDescription::decode(&record.payload)
            {
                let configuration = Bytes::from(encode_configuration(&description.options, &BTreeMap::new()));
                let (id, ident) = (description.id, description.ident);
                let unfenced = !description.options.replicated;
                self.tables.insert(id, TableRecord { id, ident, configuration, unfenced, ..TableRecord::default() });
            }
        }
        Ok(())
    }
}

fn at(mark: CheckpointMark, position: LogPosition) -> CheckpointMark {
    CheckpointMark { log_segment: u64::from(position.segment), log_offset: u64::from(position.offset), ..mark }
}

fn told(lost: &Lost) -> String {
    let hexadecimal = |key: &Bytes| key.iter().take(32).map(|byte| format!("{byte:02x}")).collect::<String>();
    let after = lost.after.as_ref().map(|key| format!(", after key 0x{}", hexadecimal(key))).unwrap_or_default();
    let before = lost.before.as_ref().map(|key| format!(", before key 0x{}", hexadecimal(key))).unwrap_or_default();
    format!("{}{after}{before}", lost.detail)
}
