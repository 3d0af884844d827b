//! The disk behind all handles: its files, its limits, and the gates that every call passes.
//!
//! A call passes three gates in this order. The *incarnation*: a handle from before a crash is dead. The *power*: calls that
//! change something are counted, and once the planned number is reached the one in flight still takes its (unsynced, so
//! possibly lost) effect but reports the power loss, as does everything after it. The *fault plan*: the call may be struck.
//!
//! Space is counted in pages of files that can be reached now: by name or by an open handle. Pages that only a power loss
//! would bring back cost nothing.

use super::content::{Content, Survival};
use super::faults::{CallKind, FaultKind, FaultPlan};
use super::image::PAGE_BYTES;
use super::names::{FileId, Names};
use super::statistics::StatisticsByPath;
use super::{Loss, PowerLost};
use crate::simulated::random::Sequence;
use rustix::io::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

#[derive(Clone)]
pub(super) struct DiskState {
    pub(super) names: Names,
    pub(super) files: BTreeMap<FileId, FileState>,
    files_made: FileId,
    pub(super) incarnation: u64,
    pub(super) random: Sequence,
    pub(super) faults: FaultPlan,
    pub(super) capacity_bytes: u64,
    used_pages: u64,
    unlinked_since_sweep: usize,
    pub(super) locks: BTreeSet<PathBuf>,
    pub(super) operations: u64,
    pub(super) operations_left: Option<u64>,
    pub(super) power_lost: bool,
    pub(super) statistics: StatisticsByPath,
}

#[derive(Clone)]
pub(super) struct FileState {
    pub(super) content: Content,
    linked: bool,
    pub(super) handles: u32,
    /// Its pages are part of `used_pages`.
    counted: bool,
}

/// Who calls: a handle of an incarnation on a path.
pub(super) struct Caller<'a> {
    pub(super) incarnation: u64,
    pub(super) path: &'a Path,
}

/// A call that was let through.
pub(super) struct Call {
    pub(super) fault: Option<FaultKind>,
    /// The power goes while this call is under way.
    pub(super) is_last: bool,
}

impl Call {
    /// What the caller hears of a call that took its effect.
    pub(super) fn finish<T>(self, value: T) -> io::Result<T> {
        if self.is_last { Err(PowerLost.into()) } else { Ok(value) }
    }
}

impl DiskState {
    pub(super) fn new(seed: u64) -> DiskState {
        DiskState {
            names: Names::new(),
            files: BTreeMap::new(),
            files_made: 0,
            incarnation: 0,
            random: Sequence::new(seed),
            faults: FaultPlan::default(),
            capacity_bytes: 1 << 40,
            used_pages: 0,
            unlinked_since_sweep: 0,
            locks: BTreeSet::new(),
            operations: 0,
            operations_left: None,
            power_lost: false,
            statistics: StatisticsByPath::default(),
        }
    }

    // Gates.

    /// A call that only looks.
    pub(super) fn begin_looking(&mut self, caller: &Caller, kind: CallKind) -> io::Result<Call> {
        self.check_alive(caller)?;
        self.strike(caller, kind, false)
    }

    /// A call that changes something.
    pub(super) fn begin_changing(&mut self, caller: &Caller, kind: CallKind) -> io::Result<Call> {
        self.check_alive(caller)?;
        self.operations += 1;
        self.power_lost = self.operations_left == Some(0);
        self.operations_left = self.operations_left.map(|left| left.saturating_sub(1));
        self.strike(caller, kind, self.power_lost)
    }

    fn check_alive(&self, caller: &Caller) -> io::Result<()> {
        let is_alive = caller.incarnation == self.incarnation && !self.power_lost;
        if is_alive { Ok(()) } else { Err(PowerLost.into()) }
    }

    fn strike(&mut self, caller: &Caller, kind: CallKind, is_last: bool) -> io::Result<Call> {
        match self.faults.strike(kind, caller.path, &mut self.random) {
            Some(FaultKind::Outage) => Err(Errno::IO.into()),
            fault => Ok(Call { fault, is_last }),
        }
    }

    // Files.

    pub(super) fn add_file(&mut self, content: Content) -> FileId {
        self.files_made += 1;
        self.used_pages += content.current().allocated_pages();
        self.files.insert(self.files_made, FileState { content, linked: true, counted: true, handles: 0 });
        self.files_made
    }

    pub(super) fn find(&self, path: &Path) -> io::Result<FileId> {
        if self.names.is_directory(path) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        self.names.find(path).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    pub(super) fn check_directory(&self, directory: &Path) -> io::Result<()> {
        if self.names.is_directory(directory) {
            return Ok(());
        }
        let is_file = self.names.find(directory).is_some();
        Err(if is_file { io::ErrorKind::NotADirectory } else { io::ErrorKind::NotFound }.into())
    }

    /// Changes a file's content and keeps the count of used pages.
    pub(super) fn change_content<T>(&mut self, file: FileId, change: impl FnOnce(&mut Content) -> T) -> io::Result<T> {
        let state = self.files.get_mut(&file).ok_or(io::ErrorKind::NotFound)?;
        debug_assert!(state.counted, "only a file that is named or open can be changed");
        let before = state.content.current().allocated_pages();
        let value = change(&mut state.content);
        self.used_pages = self.used_pages - before + state.content.current().allocated_pages();
        Ok(value)
    }

    pub(super) fn file_mut(&mut self, file: FileId) -> io::Result<&mut FileState> {
        self.files.get_mut(&file).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    // Space.

    pub(super) fn free_bytes(&mut self, caller: &Caller) -> io::Result<u64> {
        let call = self.begin_looking(caller, CallKind::Other)?;
        self.check_directory(caller.path)?;
        call.finish(self.free_pages() * PAGE_BYTES as u64)
    }

    pub(super) fn total_bytes(&mut self, caller: &Caller) -> io::Result<u64> {
        let call = self.begin_looking(caller, CallKind::Other)?;
        self.check_directory(caller.path)?;
        call.finish(self.capacity_bytes / PAGE_BYTES as u64 * PAGE_BYTES as u64)
    }

    pub(super) fn used_bytes(&self) -> u64 {
        self.used_pages * PAGE_BYTES as u64
    }

    pub(super) fn free_pages(&self) -> u64 {
        (self.capacity_bytes / PAGE_BYTES as u64).saturating_sub(self.used_pages)
    }

    pub(super) fn close(&mut self, incarnation: u64, file: FileId) {
        if incarnation == self.incarnation
            && let Some(state) = self.files.get_mut(&file)
        {
            state.handles -= 1;
            self.release_when_unreachable(file);
        }
    }

    pub(super) fn unlink(&mut self, file: FileId) -> io::Result<()> {
        self.file_mut(file)?.linked = false;
        self.unlinked_since_sweep += 1;
        self.release_when_unreachable(file);
        Ok(())
    }

    fn release_when_unreachable(&mut self, file: FileId) {
        if let Some(state) = self.files.get_mut(&file)
            && state.counted
            && !state.linked
            && state.handles == 0
        {
            state.counted = false;
            self.used_pages -= state.content.current().allocated_pages();
        }
    }

    /// Forgets files that nothing leads to any more, not on every removal but often enough to bound the memory.
    pub(super) fn sweep_when_worth_it(&mut self) {
        if self.unlinked_since_sweep > 8 + self.files.len() / 4 {
            let reachable = self.names.reachable();
            self.files.retain(|file, state| state.handles > 0 || reachable.contains(file));
            self.unlinked_since_sweep = 0;
        }
    }

    #[cfg(test)]
    pub(super) fn file_count(&self) -> usize {
        self.files.len()
    }

    // The end of an incarnation.

    /// Power loss: what was not synced is subject to chance; handles and locks are gone.
    pub(super) fn crash(&mut self, loss: Loss) {
        let (content, names_kept) = match loss {
            Loss::Everything => (Survival { kept: 0.0, torn: 0.0 }, 0.0),
            Loss::Nothing => (Survival { kept: 1.0, torn: 0.0 }, 1.0),
            Loss::Random => (random_survival(&mut self.random), random_survival(&mut self.random).kept),
        };
        self.names.crash(names_kept, &mut self.random);
        for state in self.files.values_mut() {
            state.content.crash(content, &mut self.random);
        }
        self.end_incarnation();
    }

    /// The process dies but the machine stays up: nothing written is lost; handles and locks are gone.
    pub(super) fn end_incarnation(&mut self) {
        self.incarnation += 1;
        self.locks.clear();
        self.power_lost = false;
        self.operations_left = None;
        let reachable = self.names.reachable();
        self.files.retain(|file, _| reachable.contains(file));
        let linked: BTreeSet<FileId> = self.names.files().map(|(_, file)| file).collect();
        self.used_pages = 0;
        for (file, state) in &mut self.files {
            state.handles = 0;
            state.linked = linked.contains(file);
            state.counted = state.linked;
            self.used_pages += if state.counted { state.content.current().allocated_pages() } else { 0 };
        }
    }
}

/// One power loss spares nearly all, another nearly nothing; drawing the odds first makes both common.
pub(super) fn random_survival(random: &mut Sequence) -> Survival {
    const KEPT: [f64; 6] = [0.0, 0.1, 0.5, 0.5, 0.9, 1.0];
    const TORN: [f64; 4] = [0.0, 0.3, 0.7, 1.0];
    let kept = KEPT[random.below(KEPT.len() as u64) as usize];
    let torn = TORN[random.below(TORN.len() as u64) as usize];
    Survival { kept, torn }
}
