//! Copies of the data directory while the node lives: what keeps its files as they are.
//!
//! Two ways exclude each other. *fsyncLock* keeps writers out and the engine still, for copies by other means ([`FsyncLock`]); it
//! counts, and the last unlock ends it. A *backup cursor* pins the files of one moment and lets life go on ([`OpenBackup`]); there
//! is one at a time, and it ends with its cursor.
//!
//! Whoever locks or unlocks has the resource mutex of [`COMMAND_MUTEX`] first; the state's own lock is held for moments only.

mod fsync_lock;
mod opened;

use pando_base::{Error, ErrorCode, Result, Uuid, ensure};
use parking_lot::Mutex;
use std::sync::Arc;

pub use fsync_lock::FsyncLock;
pub(crate) use fsync_lock::flush;
pub(crate) use opened::{BackupGuard, BackupRequest, OpenBackup, extend, open};

/// The label of the mutex under which one command at a time changes the state of fsyncLock.
pub(crate) const COMMAND_MUTEX: &str = "fsyncCommandMutex";

/// What keeps the files.
#[derive(Default)]
enum State {
    #[default]
    Nothing,
    /// Writers are kept out, so many times.
    Locked { _held: Box<FsyncLock>, count: i64 },
    /// Somebody is about to open a backup cursor.
    Opening,
    /// A backup cursor is open.
    Open(Arc<OpenBackup>),
}

/// The node's backups.
#[derive(Default)]
pub struct Backups {
    state: Mutex<State>,
}

impl Backups {
    /// How many times fsyncLock was asked for; zero if writers are not kept out.
    pub fn lock_count(&self) -> i64 {
        match &*self.state.lock() {
            State::Locked { count, .. } => *count,
            _ => 0,
        }
    }

    /// True while a backup cursor is open.
    pub fn is_cursor_open(&self) -> bool {
        matches!(&*self.state.lock(), State::Open(_))
    }

    /// Counts one more, if writers are kept out already; how many there are.
    pub(crate) fn lock_again(&self) -> Option<i64> {
        match &mut *self.state.lock() {
            State::Locked { count, .. } => {
                *count += 1;
                Some(*count)
            }
            _ => None,
        }
    }

    /// Refuses fsyncLock while a backup cursor is open.
    pub(crate) fn check_may_lock(&self) -> Result<()> {
        ensure!(
            matches!(&*self.state.lock(), State::Nothing),
            ErrorCode::location(50884),
            "The existing backup cursor must be closed before fsyncLock can succeed."
        );
        Ok(())
    }

    /// Writers are kept out from now on.
    pub(crate) fn locked(&self, lock: FsyncLock) -> Result<()> {
        self.check_may_lock()?;
        *self.state.lock() = State::Locked { _held: Box::new(lock), count: 1 };
        Ok(())
    }

    /// Counts one less and lets writers in at the end; how many are left.
    pub(crate) fn unlock(&self) -> Result<i64> {
        let mut state = self.state.lock();
        let State::Locked { count, .. } = &mut *state else {
            return Err(Error::new(ErrorCode::IllegalOperation, "fsyncUnlock called when not locked"));
        };
        *count -= 1;
        let left = *count;
        let ended = (left <= 0).then(|| std::mem::take(&mut *state));
        drop(state);
        // Waiting writers are woken here.
        drop(ended);
        Ok(left.max(0))
    }

    /// Lets writers in, however often they were kept out; true if they were.
    pub fn unlock_for_shutdown(&self) -> bool {
        let mut state = self.state.lock();
        let ended = matches!(&*state, State::Locked { .. }).then(|| std::mem::take(&mut *state));
        drop(state);
        ended.is_some()
    }

    /// The place of a backup cursor is taken, before its files are pinned.
    fn begin_opening(&self) -> Result<()> {
        let mut state = self.state.lock();
        match &*state {
            State::Nothing => {
                *state = State::Opening;
                Ok(())
            }
            State::Locked { .. } => Err(Error::new(ErrorCode::location(50887), "The node is currently fsyncLocked.")),
            State::Opening | State::Open(_) => Err(Error::new(
                ErrorCode::location(50886),
                "The existing backup cursor must be closed before $backupCursor can succeed.",
            )),
        }
    }

    fn opened(&self, backup: &Arc<OpenBackup>) {
        *self.state.lock() = State::Open(Arc::clone(backup));
    }

    /// The place is free again.
    fn closed(&self) {
        let mut state = self.state.lock();
        let ended = matches!(&*state, State::Opening | State::Open(_)).then(|| std::mem::take(&mut *state));
        drop(state);
        drop(ended);
    }

    /// The open backup of this id.
    pub(crate) fn find(&self, id: Uuid) -> Result<Arc<OpenBackup>> {
        match &*self.state.lock() {
            State::Open(backup) if backup.id == id => Ok(Arc::clone(backup)),
            _ => Err(Error::new(
                ErrorCode::location(51011),
                format!("Cannot extend backup cursor, backupId was not found. BackupId: {id}"),
            )),
        }
    }
}
