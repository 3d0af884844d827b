//! `mongod.lock`: scripts look whether it has something in it. A node that serves has its number there; one that has ended in good
//! order leaves it empty. What keeps a second process out is the engine's own lock.

use crate::error::{PandoError, Result};
use pando_base::{Component, Log, Severity, log};
use pando_env::{Env, OpenMode};
use pando_storage::StorageError;
use std::path::{Path, PathBuf};

const NAME: &str = "mongod.lock";

/// The file of a node that runs.
pub(super) struct LockFile {
    env: Env,
    path: PathBuf,
}

impl LockFile {
    /// Writes this process's number there, and says if the last one did not get to take its own away.
    pub(super) fn write(env: &Env, directory: &Path, log: &Log) -> Result<LockFile> {
        let path = directory.join(NAME);
        let wrong = |error| PandoError::Directory(path.clone(), error);
        let is_there = env.disk().exists(&path).map_err(wrong)?;
        if is_there && !env.disk().read_all(&path).map_err(wrong)?.is_empty() {
            let message = "Detected unclean shutdown - Lock file is not empty";
            let shown = path.display().to_string();
            log!(log, Severity::Warning, Component::Storage, 22271, message, "lockFile" = shown);
        }
        write_process_id(env, &path)?;
        Ok(LockFile { env: env.clone(), path })
    }

    /// Empties it: the end was in good order.
    pub(super) fn clear(self) {
        // Who cannot be told that all is well looks for himself at the next start.
        let _ = overwrite(&self.env, &self.path, "");
    }
}

/// Writes this process's number into a file, and nothing else.
pub(super) fn write_process_id(env: &Env, path: &Path) -> Result<()> {
    let text = format!("{}\n", std::process::id());
    overwrite(env, path, &text).map_err(|error| PandoError::Directory(path.to_owned(), error))
}

fn overwrite(env: &Env, path: &Path, text: &str) -> std::io::Result<()> {
    let disk = env.disk();
    let mode = if disk.exists(path)? { OpenMode::ReadWrite } else { OpenMode::CreateNew };
    let file = disk.open(path, mode)?;
    file.write_at(text.as_bytes(), 0)?;
    file.set_length(text.len() as u64)
}

/// What mongod says when another process has the directory.
pub(super) fn tell_failure(directory: &Path, error: &PandoError, log: &Log) {
    let shown = match error {
        PandoError::Storage(StorageError::DirectoryInUse(told)) => {
            let (path, directory) = (directory.join(NAME), directory.display());
            format!(
                "DBPathInUse: Unable to lock the lock file: {} ({told}). Another mongod instance is already running on the \
                 {directory} directory",
                path.display()
            )
        }
        other => other.to_string(),
    };
    let message = "DBException in initAndListen, terminating";
    log!(log, Severity::Error, Component::Control, 20557, message, "error" = shown);
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_env::simulated::Simulation;

    #[test]
    fn u12_the_lock_file_has_something_in_it_while_a_node_runs() {
        let env = Simulation::new(1).env();
        let directory = Path::new("data");
        env.disk().create_directory(directory).unwrap();
        let size = || env.disk().read_all(&directory.join(NAME)).unwrap().len();
        let lock_file = LockFile::write(&env, directory, &Log::silent()).unwrap();
        assert!(size() > 0);
        lock_file.clear();
        assert_eq!(size(), 0);
    }
}
