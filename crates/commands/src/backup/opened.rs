//! An open backup: the engine's pinned files, the list that goes with their copy, and the documents that tell a client of them.

use super::Backups;
use crate::Data;
use pando_base::{Error, ErrorCode, Result, Timestamp, Uuid, ensure};
use pando_doc::{Doc, DocBuilder, DocRef, Value};
use pando_storage::{Backup, BackupFile, BackupOptions, CopyList};
use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a client asks of `$backupCursor`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct BackupRequest {
    /// The names of earlier backups are forgotten; no files are told.
    pub(crate) disables_incremental: bool,
    /// Files are told with what of them is new.
    pub(crate) is_incremental: bool,
    /// For the client to see: whole files are copied.
    pub(crate) block_size_mb: i32,
    /// The name of this one.
    pub(crate) this_name: Option<String>,
    /// The one that it adds to.
    pub(crate) source_name: Option<String>,
}

/// A backup whose files are pinned.
pub(crate) struct OpenBackup {
    pub(crate) id: Uuid,
    directory: PathBuf,
    pinned: Mutex<Pinned>,
}

struct Pinned {
    backup: Box<dyn Backup>,
    list: CopyList,
    /// The lists that were written, which go with the backup.
    written: Vec<PathBuf>,
    remove: Arc<dyn pando_env::Disk>,
}

impl Drop for Pinned {
    fn drop(&mut self) {
        for path in &self.written {
            // A leftover does nothing; the next start removes it.
            let _ = self.remove.remove(path);
        }
    }
}

/// Ends the backup when it is dropped: with the cursor.
pub(crate) struct BackupGuard {
    backups: Arc<Backups>,
}

impl Drop for BackupGuard {
    fn drop(&mut self) {
        self.backups.closed();
    }
}

/// Opens a backup; the guard keeps it, the documents tell of it.
pub(crate) fn open(data: &Data, directory: Option<&Path>, request: &BackupRequest) -> Result<(BackupGuard, Vec<Doc>)> {
    let nowhere = || Error::new(ErrorCode::CommandNotSupported, "the data of this node is not on a disk");
    let directory = directory.ok_or_else(nowhere)?;
    data.backups.begin_opening()?;
    let guard = BackupGuard { backups: Arc::clone(&data.backups) };
    let options = BackupOptions {
        name: request.this_name.clone(),
        since: request.source_name.clone(),
        forgets_names: request.disables_incremental,
    };
    let mut outcome = None;
    data.services.env.tasks().blocking(&mut || outcome = Some(pin(data, directory, &options)));
    let Some(backup) = outcome.transpose()? else { return Err(Error::internal("no backup was opened")) };
    let backup = Arc::new(backup);
    data.backups.opened(&backup);
    let mut documents = vec![metadata(data, &backup, request)?];
    if !request.disables_incremental {
        documents.extend(backup.tell_files(request)?);
    }
    Ok((guard, documents))
}

fn pin(data: &Data, directory: &Path, options: &BackupOptions) -> Result<OpenBackup> {
    let env = &data.services.env;
    let backup = data.services.engine.begin_backup(options)?;
    let mut list = CopyList::default();
    list.note(directory, backup.files())?;
    let mut pinned = Pinned { backup, list, written: Vec::new(), remove: Arc::clone(env.disk()) };
    pinned.write_list(data, directory)?;
    let mut random = [0; 16];
    env.random().fill(&mut random);
    let id = Uuid::from_random(random);
    Ok(OpenBackup { id, directory: directory.to_owned(), pinned: Mutex::new(pinned) })
}

impl Pinned {
    fn write_list(&mut self, data: &Data, directory: &Path) -> Result<()> {
        let (env, number) = (&data.services.env, self.written.len() as u64);
        let path = self.list.write(&**env.disk(), directory, env.clock().wall_ms(), number)?;
        self.written.push(path);
        Ok(())
    }
}

impl OpenBackup {
    /// The documents of the files.
    fn tell_files(&self, request: &BackupRequest) -> Result<Vec<Doc>> {
        let pinned = self.pinned.lock();
        let with_ranges = request.is_incremental && request.source_name.is_some();
        let told = |file: &BackupFile| {
            let length = i64::try_from(file.length).unwrap_or(i64::MAX);
            let mut document = DocBuilder::new();
            document.append("filename", absolute(&file.path));
            document.append("fileSize", length);
            if with_ranges {
                document.append("offset", 0_i64);
                document.append("length", if file.unchanged { 0 } else { length });
            }
            document.append("required", true);
            document.finish()
        };
        let mut documents: Vec<Doc> = pinned.backup.files().iter().map(told).collect();
        for path in &pinned.written {
            let length = pinned.list.written_length();
            documents.push(told(&BackupFile { path: path.clone(), name: String::new(), length, unchanged: false }));
        }
        Ok(documents)
    }
}

/// Has the backup reach to this time, and tells the files to copy for that.
pub(crate) fn extend(data: &Data, id: Uuid, timestamp: Timestamp) -> Result<Vec<Doc>> {
    let backup = data.backups.find(id)?;
    let mut outcome = None;
    data.services.env.tasks().blocking(&mut || outcome = Some(extend_blocking(data, &backup, timestamp)));
    outcome.unwrap_or_else(|| Err(Error::internal("no backup was extended")))
}

fn extend_blocking(data: &Data, backup: &OpenBackup, timestamp: Timestamp) -> Result<Vec<Doc>> {
    let mut pinned = backup.pinned.lock();
    let checkpoint = pinned.backup.checkpoint_timestamp();
    ensure!(
        timestamp >= checkpoint,
        ErrorCode::location(51013),
        "Cannot extend backup cursor, the timestamp to extend to is before the checkpoint's. ExtendTo: {timestamp} \
         CheckpointTimestamp: {checkpoint}"
    );
    let more = pinned.backup.extend(timestamp)?;
    pinned.list.note(&backup.directory, &more)?;
    pinned.write_list(data, &backup.directory)?;
    let told = |path: &Path| {
        let mut document = DocBuilder::new();
        document.append("filename", absolute(path));
        document.finish()
    };
    let paths = more.iter().map(|file| file.path.as_path()).chain(pinned.written.last().map(PathBuf::as_path));
    Ok(paths.map(told).collect())
}

/// The document that comes first.
fn metadata(data: &Data, backup: &OpenBackup, request: &BackupRequest) -> Result<Doc> {
    let (oplog_end, checkpoint) = {
        let pinned = backup.pinned.lock();
        (pinned.backup.oplog_end(), pinned.backup.checkpoint_timestamp())
    };
    let start = data.services.engine.oplog().and_then(|oplog| oplog.first());
    let mut outer = DocBuilder::new();
    outer.document("metadata", |out| {
        out.append("backupId", Value::Binary { subtype: 4, bytes: backup.id.as_bytes() });
        out.append("dbpath", absolute(&backup.directory));
        if let Some(start) = start.filter(|_| oplog_end.is_some()) {
            for (name, timestamp) in [("oplogStart", start), ("oplogEnd", oplog_end)] {
                out.document(name, |time| {
                    time.append("ts", timestamp);
                    time.append("t", term_of(data, timestamp));
                });
            }
        }
        if checkpoint.is_some() {
            out.append("checkpointTimestamp", checkpoint);
        }
        out.append("disableIncrementalBackup", request.disables_incremental);
        out.append("incrementalBackup", request.is_incremental);
        out.append("blockSize", request.block_size_mb);
        out.append_some("thisBackupName", request.this_name.as_deref());
        out.append_some("srcBackupName", request.source_name.as_deref());
    });
    Ok(outer.finish())
}

/// In which term an entry was written; -1 if it says none.
fn term_of(data: &Data, timestamp: Timestamp) -> i64 {
    let entry = data.services.engine.oplog().and_then(|oplog| {
        let entry = oplog.backward().ok()?.seek(timestamp).ok()??;
        Some(entry.entry)
    });
    match entry.as_ref().and_then(|entry| DocRef::trusted(entry).get("t")) {
        Some(Value::Int64(term)) => term,
        _ => -1,
    }
}

/// The path as others on this machine see it.
fn absolute(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}
