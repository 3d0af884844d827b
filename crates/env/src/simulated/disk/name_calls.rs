//! The calls on names: open, create, remove, rename, list, sync and lock a directory.

use super::content::Content;
use super::faults::CallKind;
use super::names::FileId;
use super::state::{Caller, DiskState};
use super::statistics::Statistics;
use crate::OpenMode;
use rustix::io::Errno;
use std::io;
use std::path::{Path, PathBuf};

impl DiskState {
    pub(super) fn open(&mut self, caller: &Caller, mode: OpenMode) -> io::Result<FileId> {
        match mode {
            OpenMode::CreateNew => self.create(caller),
            OpenMode::Read | OpenMode::ReadWrite => {
                let call = self.begin_looking(caller, CallKind::Other)?;
                let file = self.find(caller.path)?;
                self.file_mut(file)?.handles += 1;
                call.finish(file)
            }
        }
    }

    fn create(&mut self, caller: &Caller) -> io::Result<FileId> {
        let call = self.begin_changing(caller, CallKind::Create)?;
        if call.fault.is_some() {
            return Err(Errno::NOSPC.into());
        }
        if self.names.is_directory(caller.path) || self.names.find(caller.path).is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.check_directory(parent_of(caller.path)?)?;
        let file = self.add_file(Content::default());
        self.names.create(caller.path, file);
        if !call.is_last {
            self.file_mut(file)?.handles += 1;
        }
        call.finish(file)
    }

    /// Puts a durable file where there may be one already. Syncs the directory, so that no earlier change of the name can
    /// outlive it.
    pub(super) fn plant(&mut self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let directory = parent_of(path)?;
        self.names.create_directory(directory);
        self.names.sync_directory(directory);
        if let Some(old) = self.names.find(path) {
            self.unlink(old)?;
        }
        let file = self.add_file(Content::planted(bytes));
        self.names.plant(path, file);
        Ok(())
    }

    pub(super) fn remove(&mut self, caller: &Caller) -> io::Result<()> {
        let call = self.begin_changing(caller, CallKind::Other)?;
        let file = self.find(caller.path)?;
        self.names.remove(caller.path, file);
        self.unlink(file)?;
        call.finish(())
    }

    pub(super) fn rename(&mut self, caller: &Caller, to: &Path) -> io::Result<()> {
        let call = self.begin_changing(caller, CallKind::Other)?;
        let file = self.find(caller.path)?;
        self.check_directory(parent_of(to)?)?;
        if self.names.is_directory(to) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if caller.path != to {
            let replaced = self.names.find(to);
            self.names.rename(caller.path, to, file);
            if let Some(replaced) = replaced {
                self.unlink(replaced)?;
            }
        }
        call.finish(())
    }

    pub(super) fn list(&mut self, caller: &Caller) -> io::Result<Vec<PathBuf>> {
        let call = self.begin_looking(caller, CallKind::Other)?;
        self.check_directory(caller.path)?;
        call.finish(self.names.list(caller.path))
    }

    pub(super) fn create_directory(&mut self, caller: &Caller) -> io::Result<()> {
        let call = self.begin_changing(caller, CallKind::Other)?;
        if caller.path.ancestors().any(|ancestor| self.names.find(ancestor).is_some()) {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        self.names.create_directory(caller.path);
        call.finish(())
    }

    pub(super) fn exists(&mut self, caller: &Caller) -> io::Result<bool> {
        let call = self.begin_looking(caller, CallKind::Other)?;
        call.finish(self.names.is_directory(caller.path) || self.names.find(caller.path).is_some())
    }

    pub(super) fn sync_directory(&mut self, caller: &Caller) -> io::Result<()> {
        let call = self.begin_changing(caller, CallKind::SyncDirectory)?;
        self.check_directory(caller.path)?;
        if call.fault.is_some() {
            return Err(Errno::IO.into());
        }
        if !call.is_last {
            self.names.sync_directory(caller.path);
            self.statistics.add(caller.path, Statistics { syncs: 1, ..Statistics::default() });
            self.sweep_when_worth_it();
        }
        call.finish(())
    }

    pub(super) fn lock_directory(&mut self, caller: &Caller) -> io::Result<()> {
        let lock_file = caller.path.join(crate::LOCK_FILE_NAME);
        if self.begin_looking(caller, CallKind::Other).map(|_| self.names.find(&lock_file).is_none())? {
            let file = self.create(&Caller { path: &lock_file, ..*caller })?;
            self.close(caller.incarnation, file);
        }
        match self.locks.insert(caller.path.to_owned()) {
            true => Ok(()),
            false => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    pub(super) fn unlock_directory(&mut self, caller: &Caller) {
        if caller.incarnation == self.incarnation {
            self.locks.remove(caller.path);
        }
    }
}

fn parent_of(path: &Path) -> io::Result<&Path> {
    path.parent().ok_or_else(|| io::ErrorKind::IsADirectory.into())
}
