//! The ballast: a file of reserved space that is given up when the disk is full.
//!
//! Removing data needs space first (a manifest record, a merge's output). On a full disk the ballast is removed, so that
//! drops, merges and manifest edits can go on and free more; it comes back when there is room for it and as much again.
//! Its content is nothing: it is never read, and losing it loses nothing but the reserve.

use crate::{Result, RunsError};
use pando_env::{Disk, OpenMode};
use parking_lot::Mutex;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file's name.
pub(crate) const NAME: &str = "BALLAST";

/// Removes the reserve of a store that is not open yet. True if there was one.
pub(crate) fn give_up(disk: &dyn Disk, directory: &Path) -> Result<bool> {
    let path = directory.join(NAME);
    match disk.remove(&path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(RunsError::io(&path, "remove", error)),
    }
}

/// The reserve of one store.
pub(crate) struct Ballast {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
    size_bytes: u64,
    held: Mutex<bool>,
}

impl Ballast {
    /// The ballast of a directory, reserved if there is room. Size zero means none.
    pub fn open(disk: Arc<dyn Disk>, directory: &Path, size_bytes: u64) -> Result<Ballast> {
        let ballast = Ballast { disk, directory: directory.to_owned(), size_bytes, held: Mutex::new(false) };
        let length = ballast.length()?;
        if length.is_some_and(|length| length != size_bytes || size_bytes == 0) {
            ballast.remove()?;
        }
        *ballast.held.lock() = length == Some(size_bytes) && size_bytes > 0;
        ballast.restore()?;
        Ok(ballast)
    }

    /// No reserve; one that is there stays as it is.
    pub fn untouched(disk: Arc<dyn Disk>, directory: &Path) -> Ballast {
        Ballast { disk, directory: directory.to_owned(), size_bytes: 0, held: Mutex::new(false) }
    }

    /// Gives the space up. True if there was any.
    pub fn release(&self) -> Result<bool> {
        let mut held = self.held.lock();
        if !*held {
            return Ok(false);
        }
        self.remove()?;
        *held = false;
        Ok(true)
    }

    /// Reserves the space again if it was given up and there is room for it twice. True if it is held now.
    pub fn restore(&self) -> Result<bool> {
        let mut held = self.held.lock();
        if *held || self.size_bytes == 0 {
            return Ok(*held);
        }
        let free = self.disk.free_bytes(&self.directory).map_err(|e| RunsError::io(&self.directory, "measure", e))?;
        if free / 2 < self.size_bytes {
            return Ok(false);
        }
        match self.reserve() {
            Ok(()) => *held = true,
            Err(RunsError::OutOfSpace { .. }) => self.remove()?,
            Err(error) => return Err(error),
        }
        Ok(*held)
    }

    /// True if the reserve is there.
    pub fn is_held(&self) -> bool {
        *self.held.lock()
    }

    fn path(&self) -> PathBuf {
        self.directory.join(NAME)
    }

    fn length(&self) -> Result<Option<u64>> {
        let path = self.path();
        match self.disk.open(&path, OpenMode::Read) {
            Ok(file) => Ok(Some(file.length().map_err(|error| RunsError::io(&path, "measure", error))?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(RunsError::io(&path, "open", error)),
        }
    }

    fn reserve(&self) -> Result<()> {
        let path = self.path();
        let file = self.disk.open(&path, OpenMode::CreateNew).map_err(|error| RunsError::io(&path, "create", error))?;
        file.allocate(0, self.size_bytes).map_err(|error| RunsError::io(&path, "allocate", error))
    }

    fn remove(&self) -> Result<()> {
        give_up(&*self.disk, &self.directory).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_env::simulated::Simulation;

    #[test]
    fn x20_the_reserve_is_given_up_and_comes_back() {
        let simulation = Simulation::new(1);
        let env = simulation.env();
        let directory = Path::new("/data");
        env.disk().create_directory(directory).unwrap();
        let open = |size_bytes| Ballast::open(env.disk().clone(), directory, size_bytes).unwrap();
        let ballast = open(1 << 20);
        assert!(ballast.is_held() && simulation.disk().used_bytes() >= 1 << 20);
        assert!(ballast.release().unwrap() && !ballast.release().unwrap());
        assert_eq!(simulation.disk().used_bytes(), 0);
        simulation.disk().set_capacity_bytes(3 << 19);
        assert!(!ballast.restore().unwrap(), "not while it would take nearly all that is left");
        simulation.disk().set_capacity_bytes(3 << 20);
        assert!(ballast.restore().unwrap() && ballast.restore().unwrap());
        drop(ballast);
        assert!(open(1 << 20).is_held());
        assert!(open(1 << 19).is_held() && simulation.disk().used_bytes() == 1 << 19, "another size");
        assert!(!open(0).is_held() && simulation.disk().used_bytes() == 0);
    }
}
