//! A disk in memory that does its worst, always the same way for the same seed.
//!
//! It keeps the promises of the [`Disk`] contract and no others. What was not synced is at the mercy of the next
//! power loss: lost, torn, reordered ([`content`] and [`names`] say exactly how). Calls fail as planned ([`Fault`]), space is
//! finite, bytes rot, and the power can be made to go at any single step.
//!
//! Files: [`image`] holds bytes, [`content`] one file over time, [`names`] the directories over time, [`state`] puts them
//! together and counts, with the calls in [`name_calls`] and [`content_calls`]; [`handles`] implements the traits, this one
//! lets a test steer. There is one lock, around the state; faults' path predicates run under it and must not call the disk.

mod content;
mod content_calls;
mod faults;
mod handles;
mod image;
mod name_calls;
mod names;
mod state;
mod statistics;
#[cfg(test)]
mod tests;

use crate::Disk;
use crate::simulated::random::Sequence;
use handles::IncarnationDisk;
use image::Image;
use parking_lot::Mutex;
use state::DiskState;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use faults::{Fault, FaultKind};
pub use statistics::Statistics;

/// The error of every call after the power was lost, and of every handle from before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerLost;

impl fmt::Display for PowerLost {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the simulated power was lost")
    }
}

impl std::error::Error for PowerLost {}

impl From<PowerLost> for io::Error {
    fn from(lost: PowerLost) -> io::Error {
        io::Error::other(lost)
    }
}

impl PowerLost {
    /// True if this is why a call failed.
    pub fn caused(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|inner| inner.is::<PowerLost>())
    }
}

/// What a power loss does to what was not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Each change is lost, kept or torn by chance.
    Random,
    /// Nothing of it survives.
    Everything,
    /// All of it survives.
    Nothing,
}

/// The simulated disk, for the test that steers it. Clones share it; the program under test gets [`handle`]s.
///
/// [`handle`]: SimulatedDisk::handle
#[derive(Clone)]
pub struct SimulatedDisk {
    state: Arc<Mutex<DiskState>>,
}

impl SimulatedDisk {
    /// An empty disk of a terabyte.
    pub fn new(seed: u64) -> SimulatedDisk {
        SimulatedDisk { state: Arc::new(Mutex::new(DiskState::new(seed))) }
    }

    /// The disk as the present incarnation sees it; dead after the next crash or kill.
    pub fn handle(&self) -> Arc<dyn Disk> {
        let incarnation = self.state.lock().incarnation;
        Arc::new(IncarnationDisk { state: self.state.clone(), incarnation })
    }

    /// Another disk with the same content, durable and not, and the same faults and limits, but with its own future chances
    /// and no open handles.
    pub fn copy(&self, seed: u64) -> SimulatedDisk {
        let mut state = self.state.lock().clone();
        state.random = Sequence::new(seed);
        state.end_incarnation();
        SimulatedDisk { state: Arc::new(Mutex::new(state)) }
    }

    // Ends.

    /// Power loss and restart. Planned faults stay planned; a planned crash is done with.
    pub fn crash(&self, loss: Loss) {
        self.state.lock().crash(loss);
    }

    /// The program is killed but the machine stays up: every handle and lock is gone, no byte is.
    pub fn kill(&self) {
        self.state.lock().end_incarnation();
    }

    /// Lets this many more changing operations succeed; then the power goes. Reading operations do not count, since a crash
    /// after one is the same as a crash before it. The operation during which the power goes may or may not survive.
    pub fn crash_after(&self, operations: u64) {
        self.state.lock().operations_left = Some(operations);
    }

    /// Changing operations so far (creating, writing, syncing, renaming, ...), failed ones included.
    pub fn operation_count(&self) -> u64 {
        self.state.lock().operations
    }

    /// True from when a planned crash struck until the restart.
    pub fn has_lost_power(&self) -> bool {
        self.state.lock().power_lost
    }

    // Faults.

    /// Plans a fault.
    pub fn inject(&self, fault: Fault) {
        self.state.lock().faults.add(fault);
    }

    /// Drops all planned faults.
    pub fn clear_faults(&self) {
        self.state.lock().faults.clear();
    }

    /// Limits the disk's space, rounded down to whole pages of 4096 bytes, in which it is handed out.
    pub fn set_capacity_bytes(&self, capacity_bytes: u64) {
        self.state.lock().capacity_bytes = capacity_bytes;
    }

    /// Space taken by files that have a name or an open handle.
    pub fn used_bytes(&self) -> u64 {
        self.state.lock().used_bytes()
    }

    /// Inverts every bit of one byte; done twice, it is as it was.
    pub fn flip_byte(&self, path: &Path, offset: u64) -> io::Result<()> {
        self.state.lock().flip(path, offset, 0xFF)
    }

    /// Inverts one bit somewhere in the files of which this is true, each byte being as likely as any other; says where.
    /// Nothing happens if they are all empty.
    pub fn flip_random_bit(&self, is_wanted: impl Fn(&Path) -> bool) -> Option<(PathBuf, u64)> {
        let mut state = self.state.lock();
        let wanted: Vec<(PathBuf, u64)> = {
            let paths = state.names.files().map(|(path, _)| path).filter(|path| is_wanted(path));
            paths.map(|path| (path.clone(), state.current(path).map_or(0, Image::length))).collect()
        };
        let total: u64 = wanted.iter().map(|(_, length)| length).sum();
        let mut offset = state.random.below(total);
        let mask = 1 << state.random.below(8);
        for (path, length) in wanted {
            if offset < length {
                return state.flip(&path, offset, mask).ok().map(|()| (path, offset));
            }
            offset -= length;
        }
        None
    }

    // Looking inside; none of it counts as an operation or is subject to faults.

    /// All files, sorted.
    pub fn files(&self) -> Vec<PathBuf> {
        self.state.lock().names.files().map(|(path, _)| path.clone()).collect()
    }

    /// A file's bytes as a reader would see them.
    pub fn contents(&self, path: &Path) -> Option<Vec<u8>> {
        self.state.lock().current(path).map(|image| image.bytes(0..image.length()))
    }

    /// The bytes that are sure to be under this name after a power loss, if nothing that is not synced survives.
    pub fn durable_contents(&self, path: &Path) -> Option<Vec<u8>> {
        self.state.lock().durable(path).map(|image| image.bytes(0..image.length()))
    }

    /// Puts a durable file there, with the directories above it, in place of one that may be there.
    pub fn plant(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.state.lock().plant(path, bytes)
    }

    /// What was done to the files (by the name they were opened under) and directories of which this is true.
    pub fn statistics(&self, is_wanted: impl Fn(&Path) -> bool) -> Statistics {
        self.state.lock().statistics.sum(is_wanted)
    }

    /// Starts counting anew.
    pub fn reset_statistics(&self) {
        self.state.lock().statistics.clear();
    }
}
