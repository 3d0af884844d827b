//! Giving space back: removal of files that nobody needs any more, and the return of the ballast.

use super::Runs;
use super::statistics::count;
use crate::{Result, RunsError};
use std::io;

/// What a call of `reclaim` did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reclaimed {
    /// Files removed.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Runs {
    /// Removes the files that no run, reader, merge or pin needs. Cheap when there are none; to be called now and then.
    pub fn reclaim(&self) -> Result<Reclaimed> {
        let shared = &self.shared;
        let mut reclaimed = Reclaimed::default();
        // A stopped store keeps all files: the record that forgot them may not be on disk.
        if shared.stopped.lock().is_some() {
            return Ok(reclaimed);
        }
        let unheld = shared.files.lock().take_unheld();
        let mut failure = None;
        for file in unheld {
            match shared.env.disk().remove(file.path()) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    failure = Some(RunsError::io(file.path(), "remove", error));
                    shared.files.lock().put_back(file);
                }
                _ => {
                    reclaimed.files += 1;
                    reclaimed.bytes += file.length_bytes();
                }
            }
        }
        count(&shared.counters.files_removed, reclaimed.files);
        shared.ballast.restore()?;
        failure.map_or(Ok(reclaimed), Err)
    }
}
