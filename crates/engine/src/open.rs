//! Opening an engine: the base at its checkpoint, then the log from there on.
//!
//! What the base has above the checkpoint's stable timestamp is fenced off; redo of the log is applied in order; the oplog
//! was cut by the log at its no-holes point and waits for replication. All of it can be interrupted and begun again: nothing
//! is changed before the first new commit, except that a replay which does not fit into memory takes checkpoints of its own,
//! each at the record it has reached.

use crate::backup_list;
use crate::checkpoint::{CheckpointState, MarkExtra};
use crate::core::{Core, CoreParts};
use crate::failure::{of_log, of_runs};
use crate::ledger::Book;
use crate::memory::{Advice, Memory};
use crate::options::{EngineOptions, Mode};
use crate::overlay::{ENTRY_OVERHEAD_BYTES, NewValue, RangeVersion, Version};
use crate::read_only;
use crate::redo::{Redo, RedoReader, TableDescription, decode_table_id, kind};
use crate::registry::Registry;
use crate::timestamps::TimestampKeeper;
use bytes::Bytes;
use pando_base::Timestamp;
use pando_engine_log::{Log, LogOptions, LogPosition, RecoveredRecord, Recovery};
use pando_engine_runs::{CheckpointMark, Edit, Opened, Runs, RunsOptions, Stamp};
use pando_env::{DirectoryLock, Env};
use pando_storage::{CheckpointKind, EngineEvent, Opening, Result, StorageError};
use std::path::Path;
use std::sync::Arc;

/// Where the base lies below the data directory.
pub const BASE_DIRECTORY: &str = "base";
/// Where the log lies below the data directory.
pub const LOG_DIRECTORY: &str = "log";

/// Opens the engine of a data directory, or makes a new one.
pub fn open(env: &Env, directory: &Path, mut options: EngineOptions) -> Result<Arc<Core>> {
    let began_ns = env.clock().monotonic_ns();
    let directory_lock = match options.read_only {
        true => read_only::lock(env, directory)?,
        false => lock(env, directory)?,
    };
    let memory = Arc::new(Memory::new(options.memory_bytes, options.transaction_too_large_threshold));
    let base_options = RunsOptions {
        cache_bytes: memory.cache_bytes(),
        ballast_bytes: options.ballast_bytes,
        ..RunsOptions::default()
    };
    let base = directory.join(BASE_DIRECTORY);
    let (runs, opened) = match options.read_only {
        true => read_only::open_base(env, &base, base_options)?,
        false => Runs::open(env, &base, base_options).map_err(of_runs)?,
    };
    let found = Found::of(&opened, options.mode)?;
    if found.leaves_oplog_behind(&options) && !found.extra.full {
        return Err(oplog_not_applied(directory));
    }
    if options.read_only {
        options = read_only::options(options, found.extra.mode);
    }
    let keeper = Arc::new(TimestampKeeper::new(found.stable, found.oldest, Timestamp::NONE));
    let no_holes = {
        let keeper = keeper.clone();
        Arc::new(move || keeper.all_durable())
    };
    let log_options = LogOptions {
        segment_bytes: options.log_segment_bytes,
        oplog: options.mode == Mode::ReplicaSet,
        oplog_max_bytes: options.oplog_bytes_max,
        oplog_min_retention_ms: options.oplog_retention_min_ms,
        ..LogOptions::default()
    };
    let log_directory = directory.join(LOG_DIRECTORY);
    let open_log = || {
        let open = if options.read_only { Log::open_read_only } else { Log::open };
        open(env, &log_directory, log_options.clone(), found.position, no_holes.clone()).map_err(of_log)
    };
    let start_ns = env.clock().monotonic_ns();
    let (log, recovery) = match open_log() {
        Err(StorageError::OutOfDiskSpace(_)) if runs.release_ballast().map_err(of_runs)? => open_log(),
        opened => opened,
    }?;
    let opened_ns = env.clock().monotonic_ns().saturating_sub(start_ns);
    let id = env.random().next_u64();
    let registry = Registry::new(options.mode, id, memory.clone());
    registry.load(&runs, &opened.tables)?;
    registry.reserve_ids(found.extra.last_table);
    let core = Arc::new(Core::new(CoreParts {
        env: env.clone(),
        directory: directory.to_owned(),
        options,
        log,
        runs,
        registry,
        keeper,
        sequence: found.sequence,
        memory,
        id,
        checkpoint: CheckpointState { mark: opened.mark.clone(), ..CheckpointState::default() },
        directory_lock,
    }));
    core.counters.oplog_opening_microseconds.add(opened_ns / 1000);
    *core.backups.lock() = backup_list::load_or_forget(&**env.disk(), directory)?;
    let (was_clean, torn_tail) = (recovery.was_clean(), recovery.torn_tail().cloned());
    recover(&core, &found, recovery)?;
    match core.options.read_only {
        true => drop(core.end_writes(read_only::REASON)),
        false => core.remove_backup_leftovers()?,
    }
    let place = found.position.unwrap_or_default();
    core.tell(&EngineEvent::Opened(Box::new(Opening {
        directory: directory.display().to_string(),
        is_new: !found.marked,
        has_oplog: core.has_oplog(),
        was_clean,
        tables: core.registry.idents().len() as u64,
        checkpoint: found.stable,
        log_from: (u64::from(place.segment), u64::from(place.offset)),
        records: core.counters.recovered_records.value(),
        torn_tail: torn_tail.map(|torn| (torn.file.display().to_string(), torn.offset)),
        elapsed_ms: env.clock().monotonic_ns().saturating_sub(began_ns) / 1_000_000,
    })));
    Ok(core)
}

/// Makes the data directory this engine's own.
fn lock(env: &Env, directory: &Path) -> Result<Box<dyn DirectoryLock>> {
    let disk = env.disk();
    let bad = |error: std::io::Error| StorageError::BadDirectory(format!("{}: {error}", directory.display()));
    disk.create_directory(directory).map_err(bad)?;
    disk.lock_directory(directory).map_err(|error| read_only::in_use(directory, &error))
}

/// What the manifest says about where the last life stood.
struct Found {
    extra: MarkExtra,
    /// False in a new store.
    marked: bool,
    sequence: u64,
    position: Option<LogPosition>,
    stable: Timestamp,
    oldest: Timestamp,
}

impl Found {
    fn of(opened: &Opened, mode: Mode) -> Result<Found> {
        let Some(mark) = &opened.mark else {
            let extra = MarkExtra { mode, full: true, last_table: 0 };
            let none = Timestamp::NONE;
            return Ok(Found { extra, marked: false, sequence: 0, position: None, stable: none, oldest: none });
        };
        Ok(Found {
            extra: decode_extra(mark)?,
            marked: true,
            sequence: mark.sequence_cut,
            position: Some(position_of(mark)),
            stable: mark.stable,
            oldest: mark.oldest,
        })
    }

    /// True if what only the oplog has would be forgotten: the mark after the opening says that there is none.
    fn leaves_oplog_behind(&self, options: &EngineOptions) -> bool {
        self.extra.mode == Mode::ReplicaSet && options.mode == Mode::StandAlone && !options.read_only
    }
}

fn oplog_not_applied(directory: &Path) -> StorageError {
    StorageError::OplogNotApplied(format!(
        "{} is that of a member of a replica set, and its oplog has writes that are nowhere else: open it as such, \
         apply them and take a full checkpoint before it is opened stand-alone",
        directory.display()
    ))
}

fn decode_extra(mark: &CheckpointMark) -> Result<MarkExtra> {
    MarkExtra::decode(&mark.extra).ok_or_else(|| StorageError::Corruption {
        file: "manifest".into(),
        offset: 0,
        detail: "the checkpoint's mark cannot be decoded".into(),
    })
}

fn position_of(mark: &CheckpointMark) -> LogPosition {
    let clamp = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    LogPosition::new(clamp(mark.log_segment), clamp(mark.log_offset))
}

fn recover(core: &Core, found: &Found, mut recovery: Recovery) -> Result<()> {
    let tables = core.registry.all();
    let spilled = tables.iter().any(|table| !table.logged && table.slot.load().max_durable() > found.stable);
    match !found.extra.full && spilled {
        true if core.options.read_only => core.runs.read_behind_fence(found.stable).map_err(of_runs)?,
        true => core.install(Edit { fence: Some(found.stable), ..Edit::default() })?,
        false => {}
    }
    while let Some(record) = recovery.next_record().map_err(of_log)? {
        if found.leaves_oplog_behind(&core.options) && !record.entries.is_empty() {
            return Err(oplog_not_applied(&core.directory));
        }
        if !core.options.read_only && !matches!(core.memory.advice(), Advice::Go) {
            *core.replaying.lock() = Some(record.position);
            core.relieve()?;
        }
        apply(core, &record)?;
        core.watermark.publish(record.sequence.max(core.watermark.published()));
        core.counters.recovered_records.increment();
    }
    *core.replaying.lock() = None;
    core.watermark.publish(recovery.last_sequence().max(core.watermark.published()));
    core.keeper.restart_from(core.oplog_last()?.unwrap_or(Timestamp::NONE));
    if core.has_oplog() && found.marked {
        core.log.pin("checkpoint", found.stable.next());
    }
    // The first mark, or one that says how the log is written from now on.
    if !core.options.read_only && (!found.marked || found.extra.mode != core.options.mode) {
        core.take_checkpoint(CheckpointKind::Full, false)?;
    }
    Ok(())
}

/// Applies one record. Records for tables that are gone have nothing to apply to.
fn apply(core: &Core, record: &RecoveredRecord) -> Result<()> {
    match record.kind {
        kind::COMMIT if record.payload.is_empty() => {}
        kind::COMMIT => apply_commit(core, record)?,
        kind::CREATE_TABLE => {
            let description = TableDescription::decode(&record.payload)?;
            // A table that the manifest has already may have lost its ident to an earlier one that was dropped since.
            let known = core.registry.by_id(description.id);
            let table = known.unwrap_or_else(|| core.registry.make(&core.runs, description, Book::default()));
            core.registry.insert(table);
        }
        kind::DROP_TABLE => core.registry.remove(decode_table_id(&record.payload)?),
        other => {
            return Err(StorageError::Corruption {
                file: "log".into(),
                offset: u64::from(record.position.offset),
                detail: format!("a record of unknown kind {other}"),
            });
        }
    }
    core.changes.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    Ok(())
}

fn apply_commit(core: &Core, record: &RecoveredRecord) -> Result<()> {
    let (commit, durable, mut operations) = RedoReader::new(&record.payload)?;
    let stamp = |own: Timestamp| match own.is_some() {
        true => Stamp::new(record.sequence, own),
        false => Stamp { sequence: record.sequence, commit, durable },
    };
    while let Some(operation) = operations.next()? {
        match operation {
            Redo::Write { table, own, key, value } => apply_write(core, table, key, value, stamp(own)),
            Redo::Truncate { table, own, start, end } => {
                if let Some(table) = core.registry.by_id(table) {
                    table.ranges.push(RangeVersion {
                        start: Bytes::copy_from_slice(start),
                        end: end.map(Bytes::copy_from_slice),
                        version: Version::committed(stamp(own), None),
                    });
                }
            }
            Redo::Size { table, own, change } => {
                if let Some(table) = core.registry.by_id(table) {
                    table.ledger.lock().enter(stamp(own).durable, change, core.keeper.stable());
                }
            }
        }
    }
    Ok(())
}

fn apply_write(core: &Core, table: u64, key: &[u8], value: Option<&[u8]>, stamp: Stamp) {
    let Some(table) = core.registry.by_id(table) else { return };
    let version = Version::committed(stamp, value.map(Bytes::copy_from_slice));
    core.memory.add(version.size_bytes());
    table.overlay.write(key, |leaf, place| {
        leaf.dirty = true;
        let entry = match place {
            Ok(place) => leaf.entry_mut(place),
            Err(place) => {
                core.memory.add_overhead(ENTRY_OVERHEAD_BYTES + key.len());
                Some(leaf.insert(place, key))
            }
        };
        if let Some(entry) = entry {
            // The same transaction may have written the key more than once: the last write counts.
            let again = entry.chain.newest_mut().filter(|newest| newest.stamp() == Some(stamp));
            match again {
                Some(newest) => newest.replace_value(value.map(NewValue::copied)),
                None => entry.chain.push(version),
            }
            core.memory.free(entry.chain.prune(&core.recent_retention()));
        }
    });
}
