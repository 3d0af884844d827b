//! Backup: pinned files, a manifest of their own, and the log's segments as far as they are durable.
//!
//! A copy of the listed files is a data directory: opened, it recovers to the end of its log. Run files never change, so an
//! incremental backup lists those that an earlier, named one had as unchanged. The manifest of a copy differs from the
//! live one; it is written into files of the backup's own, which go with the backup, or with the next start after a crash.

use crate::backup_list;
use crate::core::{Core, position_of};
use crate::engine::DurableEngine;
use crate::failure::of_log;
use crate::open::{BASE_DIRECTORY, LOG_DIRECTORY};
use pando_base::Timestamp;
use pando_engine_log::{DurablePoint, LogBackup};
use pando_engine_runs::{BackupList, Pins};
use pando_env::OpenMode;
use pando_storage::{
    Backup, BackupFile, BackupOptions, BackupSource, CheckpointKind, Freeze, ImportedTable, LogPosition, Result,
    StorageError,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Files of running backups are here.
const BACKUP_DIRECTORY: &str = "backup";

/// A running backup.
struct EngineBackup {
    core: Arc<Core>,
    files: Vec<BackupFile>,
    log: LogBackup,
    checkpoint: Timestamp,
    oplog_end: Timestamp,
    manifest_files: Vec<PathBuf>,
    _pins: Pins,
}

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> StorageError + '_ {
    move |error| StorageError::Io(format!("{}: {error}", path.display()))
}

impl Core {
    fn start_backup(self: &Arc<Self>, options: &BackupOptions) -> Result<EngineBackup> {
        self.check_running()?;
        if options.forgets_names {
            self.forget_backups()?;
        }
        let earlier = match &options.since {
            None => BackupList::default(),
            Some(name) => self.backups.lock().get(name).cloned().ok_or_else(|| {
                StorageError::IllegalOperation(format!("there is no backup named '{name}' to add to"))
            })?,
        };
        if self.lock_checkpoint().mark.is_none() {
            self.take_checkpoint(CheckpointKind::Automatic, false)?;
        }
        // Between the base and the log no checkpoint may move the place in the log that the base needs.
        let _checkpoint = self.lock_checkpoint();
        let pins = self.runs.pin();
        let log = self.log.backup().map_err(|error| self.noted(of_log(error)))?;
        let (mut files, manifest_files) = self.manifest_copies(&pins)?;
        let new = pins.files_since(&earlier);
        for file in pins.files() {
            files.push(BackupFile {
                name: format!("{BASE_DIRECTORY}/{}", file.name),
                length: file.length_bytes,
                unchanged: !new.contains(&file),
                path: file.path,
            });
        }
        files.extend(log.files().iter().map(log_file));
        if let Some(name) = &options.name {
            self.remember_backup(name, pins.list())?;
        }
        let checkpoint = pins.mark().map_or(Timestamp::NONE, |mark| mark.stable);
        let oplog_end = self.oplog_end();
        Ok(EngineBackup { core: self.clone(), files, log, checkpoint, oplog_end, manifest_files, _pins: pins })
    }

    /// Keeps what a named backup has, also for later starts.
    fn remember_backup(&self, name: &str, list: &BackupList) -> Result<()> {
        let mut backups = self.backups.lock();
        let mut next = backups.clone();
        next.insert(name.to_owned(), list.clone());
        backup_list::store(&**self.env.disk(), &self.directory, &next)?;
        *backups = next;
        Ok(())
    }

    /// Every later backup is a full one, until there is a named one again.
    fn forget_backups(&self) -> Result<()> {
        let mut backups = self.backups.lock();
        backup_list::store(&**self.env.disk(), &self.directory, &backup_list::NamedBackups::new())?;
        backups.clear();
        Ok(())
    }

    /// Removes the files of backups that were running when an earlier life ended.
    pub fn remove_backup_leftovers(&self) -> Result<()> {
        let disk = self.env.disk();
        let directory = self.directory.join(BACKUP_DIRECTORY);
        if !disk.exists(&directory).map_err(io(&directory))? {
            return Ok(());
        }
        for path in disk.list(&directory).map_err(io(&directory))? {
            disk.remove(&path).map_err(io(&path))?;
        }
        Ok(())
    }

    fn oplog_end(&self) -> Timestamp {
        let last = if self.has_oplog() { self.log.oplog().last() } else { None };
        last.unwrap_or(Timestamp::NONE).min(self.log.durable_no_holes())
    }

    /// Writes the copy's manifest beside the data.
    fn manifest_copies(&self, pins: &Pins) -> Result<(Vec<BackupFile>, Vec<PathBuf>)> {
        let disk = self.env.disk();
        let directory = self.directory.join(BACKUP_DIRECTORY);
        let number = self.env.random().next_u64();
        disk.create_directory(&directory).map_err(io(&directory))?;
        let (mut files, mut paths) = (Vec::new(), Vec::new());
        for (name, content) in pins.manifest_files() {
            let path = directory.join(format!("{number:016x}-{name}"));
            let file = disk.open(&path, OpenMode::CreateNew).map_err(io(&path))?;
            paths.push(path.clone());
            file.write_at(content, 0).and_then(|()| file.sync()).map_err(io(&path))?;
            files.push(BackupFile {
                name: format!("{BASE_DIRECTORY}/{name}"),
                length: content.len() as u64,
                unchanged: false,
                path,
            });
        }
        Ok((files, paths))
    }
}

fn log_file(file: &pando_engine_log::BackupFile) -> BackupFile {
    let name = file.path.file_name().unwrap_or_default().to_string_lossy();
    BackupFile {
        name: format!("{LOG_DIRECTORY}/{name}"),
        length: file.bytes,
        unchanged: false,
        path: file.path.clone(),
    }
}

impl Backup for EngineBackup {
    fn files(&self) -> &[BackupFile] {
        &self.files
    }

    fn checkpoint_timestamp(&self) -> Timestamp {
        self.checkpoint
    }

    fn oplog_end(&self) -> Timestamp {
        self.oplog_end
    }

    fn log_end(&self) -> LogPosition {
        position_of(self.log.position().into())
    }

    fn extend(&mut self, timestamp: Timestamp) -> Result<Vec<BackupFile>> {
        let core = &self.core;
        let point = DurablePoint { position: core.log.position(), timestamp };
        core.log.wait_durable(point).map_err(|error| core.noted(of_log(error)))?;
        let more = self.log.extend().map_err(|error| core.noted(of_log(error)))?;
        self.oplog_end = core.oplog_end();
        Ok(more.iter().map(log_file).collect())
    }
}

impl Drop for EngineBackup {
    fn drop(&mut self) {
        for path in &self.manifest_files {
            // A leftover is harmless: nothing reads it.
            let _ = self.core.env.disk().remove(path);
        }
    }
}

/// Holds checkpoints and merges back until it is dropped.
struct Frozen(Arc<Core>);

impl Freeze for Frozen {}

impl Drop for Frozen {
    fn drop(&mut self) {
        *self.0.frozen.write() -= 1;
        self.0.merge_alarm.ring();
        self.0.checkpoint_alarm.ring();
    }
}

impl BackupSource for DurableEngine {
    fn freeze(&self) -> Result<Box<dyn Freeze>> {
        self.core.check_running()?;
        *self.core.haste.during(|| self.core.frozen.write()) += 1;
        Ok(Box::new(Frozen(Arc::clone(&self.core))))
    }

    fn begin_backup(&self, options: &BackupOptions) -> Result<Box<dyn Backup>> {
        Ok(Box::new(self.core.start_backup(options)?))
    }

    fn import(&self, directory: &Path, rename: &dyn Fn(&str) -> Option<String>) -> Result<Vec<ImportedTable>> {
        self.core.import(directory, rename)
    }
}
