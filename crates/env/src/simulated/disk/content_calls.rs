//! The calls on content: read, write, change the length, allocate, sync; and the rot.

use super::faults::{CallKind, FaultKind};
use super::image::{Image, LENGTH_MAX};
use super::names::FileId;
use super::state::{Caller, DiskState, random_survival};
use super::statistics::Statistics;
use rustix::io::Errno;
use std::io;
use std::path::Path;

impl DiskState {
    pub(super) fn read(&mut self, caller: &Caller, file: FileId, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let call = self.begin_looking(caller, CallKind::Read)?;
        let wanted = match call.fault {
            Some(FaultKind::ReadFails) => return Err(Errno::IO.into()),
            Some(FaultKind::ReadFallsShort) if buffer.len() > 1 => {
                1 + self.random.below(buffer.len() as u64 - 1) as usize
            }
            _ => buffer.len(),
        };
        let read = self.file_mut(file)?.content.current().read(&mut buffer[..wanted], offset);
        self.statistics.add(caller.path, Statistics { reads: 1, bytes_read: read as u64, ..Statistics::default() });
        call.finish(read)
    }

    pub(super) fn write(&mut self, caller: &Caller, file: FileId, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_counted(caller, file, bytes, offset, bytes.len())
    }

    /// A disk writes whole blocks whatever it is given. Whoever gives it whole ones is not taken to write more by it: what
    /// stays as it was does not count.
    pub(super) fn write_blocks(&mut self, caller: &Caller, file: FileId, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut before = vec![0; bytes.len()];
        self.file_mut(file)?.content.current().read(&mut before, offset);
        let is_new = |(old, new): (&u8, &u8)| old != new;
        let first = before.iter().zip(bytes).position(is_new).unwrap_or(bytes.len());
        let same_behind = before.iter().zip(bytes).rev().position(is_new).unwrap_or(0);
        let new = bytes.len().saturating_sub(first + same_behind);
        self.write_counted(caller, file, bytes, offset, new)
    }

    fn write_counted(
        &mut self,
        caller: &Caller,
        file: FileId,
        bytes: &[u8],
        offset: u64,
        counted: usize,
    ) -> io::Result<()> {
        let call = self.begin_changing(caller, CallKind::Write)?;
        end_of(offset, bytes.len() as u64)?;
        if call.fault.is_some() {
            let done = self.random.below(bytes.len() as u64 + 1) as usize;
            self.write_what_fits(file, &bytes[..done], offset)?;
            let is_full = call.fault == Some(FaultKind::SpaceRunsOut);
            return Err(if is_full { Errno::NOSPC } else { Errno::IO }.into());
        }
        let written = self.write_what_fits(file, bytes, offset)?;
        let done = Statistics { writes: 1, bytes_written: written.min(counted) as u64, ..Statistics::default() };
        self.statistics.add(caller.path, done);
        if written < bytes.len() {
            return Err(Errno::NOSPC.into());
        }
        call.finish(())
    }

    /// Writes from the front until the disk is full; how much was written.
    fn write_what_fits(&mut self, file: FileId, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let free_pages = self.free_pages();
        self.change_content(file, |content| {
            let fitting = content.current().fitting_bytes(offset, bytes.len(), free_pages);
            content.write(&bytes[..fitting], offset);
            fitting
        })
    }

    pub(super) fn set_length(&mut self, caller: &Caller, file: FileId, length: u64) -> io::Result<()> {
        let call = self.begin_changing(caller, CallKind::SetLength)?;
        if call.fault.is_some() {
            return Err(Errno::IO.into());
        }
        end_of(length, 0)?;
        self.change_content(file, |content| content.set_length(length))?;
        call.finish(())
    }

    pub(super) fn allocate(&mut self, caller: &Caller, file: FileId, offset: u64, length: u64) -> io::Result<()> {
        let call = self.begin_changing(caller, CallKind::Allocate)?;
        let range = offset..end_of(offset, length)?;
        let missing_pages = self.file_mut(file)?.content.current().missing_pages(&range);
        if call.fault.is_some() || missing_pages > self.free_pages() {
            return Err(Errno::NOSPC.into());
        }
        if length > 0 {
            self.change_content(file, |content| content.reserve(range))?;
        }
        call.finish(())
    }

    pub(super) fn length(&mut self, caller: &Caller, file: FileId) -> io::Result<u64> {
        let call = self.begin_looking(caller, CallKind::Other)?;
        call.finish(self.file_mut(file)?.content.current().length())
    }

    pub(super) fn sync(&mut self, caller: &Caller, file: FileId) -> io::Result<()> {
        let call = self.begin_changing(caller, CallKind::Sync)?;
        if call.fault.is_some() {
            let survival = random_survival(&mut self.random);
            let mut random = self.random.clone();
            self.file_mut(file)?.content.fail_sync(survival, &mut random);
            self.random = random;
            return Err(Errno::IO.into());
        }
        if !call.is_last {
            self.file_mut(file)?.content.sync();
            self.statistics.add(caller.path, Statistics { syncs: 1, ..Statistics::default() });
        }
        call.finish(())
    }

    /// The medium turns a byte.
    pub(super) fn flip(&mut self, path: &Path, offset: u64, mask: u8) -> io::Result<()> {
        let file = self.find(path)?;
        if offset >= self.file_mut(file)?.content.current().length() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.change_content(file, |content| content.flip(offset, mask))
    }

    /// What a reader of the path would see.
    pub(super) fn current(&self, path: &Path) -> Option<&Image> {
        self.names.find(path).and_then(|file| self.files.get(&file)).map(|file| file.content.current())
    }

    /// What the path would surely lead to after a power loss.
    pub(super) fn durable(&self, path: &Path) -> Option<&Image> {
        self.names.find_durable(path).and_then(|file| self.files.get(&file)).map(|file| file.content.durable())
    }
}

fn end_of(offset: u64, length: u64) -> io::Result<u64> {
    let end = offset.checked_add(length).filter(|end| *end <= LENGTH_MAX);
    end.ok_or_else(|| io::ErrorKind::FileTooLarge.into())
}
