//! Yielding: an operation gives up all its locks for a moment, so that others get their turn, and takes them again.
//!
//! Mutexes are among them. They are taken by those who hold locks of the hierarchy and a ticket; one that was kept over a
//! yield would be held by somebody who waits for both, and the two would wait for each other.

use super::{Held, LockRequest, Locker};
use crate::mode::Mode;
use crate::resource::{ResourceId, ResourceType};
use crate::wait::{Wait, Wakers};
use pando_base::Result;

/// Locks that were given up, in the order in which they are taken again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SavedLocks {
    locks: Vec<(ResourceId, Mode, u32)>,
}

impl SavedLocks {
    pub(super) fn of<'a>(held: impl Iterator<Item = &'a Held>) -> SavedLocks {
        let mut locks: Vec<_> = held.map(|held| (held.resource, held.mode, held.count)).collect();
        locks.sort_unstable();
        SavedLocks { locks }
    }
}

impl Locker {
    /// Gives up everything. Nothing happens, and there is nothing to restore, if the global lock is not held, or if this is a
    /// nested operation (global or replication state lock taken more than once), or the replication state is held to change
    /// it. Nothing but mutexes may be held in S or X, and no unit of work may be open.
    pub fn save_and_unlock(&self) -> Option<SavedLocks> {
        let mut wakers = Wakers::default();
        let mut state = self.seat.state.lock();
        debug_assert!(state.unit_of_work_depth == 0, "a unit of work does not yield");
        let is_yielding = state.unit_of_work_depth == 0 && may_yield(&state.held);
        if !is_yielding {
            return None;
        }
        let saved = SavedLocks::of(state.held.iter());
        while let Some(held) = state.held.pop() {
            self.release(&mut state, held, &mut wakers);
        }
        drop(state);
        wakers.wake();
        Some(saved)
    }

    /// Takes again what was given up. If that fails, some of it may be held: the guards give it back.
    pub async fn restore(&self, saved: &SavedLocks, wait: &Wait<'_>) -> Result<()> {
        debug_assert!(!self.is_in_unit_of_work() && !self.is_locked());
        for (resource, mode, count) in &saved.locks {
            for _ in 0..*count {
                self.lock_ordered(LockRequest::new(*resource, *mode), wait).await?;
            }
        }
        Ok(())
    }
}

fn may_yield(held: &[Held]) -> bool {
    let of = |resource| held.iter().find(|held| held.resource == resource);
    let Some(global) = of(ResourceId::GLOBAL) else { return false };
    let is_nested = |held: &Held| held.count > 1;
    let is_changing_state = |held: &Held| held.mode != Mode::IX;
    let state = of(ResourceId::REPLICATION_STATE_TRANSITION);
    if is_nested(global) || state.is_some_and(|state| is_nested(state) || is_changing_state(state)) {
        return false;
    }
    let is_mutex = |held: &Held| held.resource.resource_type() == ResourceType::Mutex;
    let is_weak = held.iter().all(|held| is_mutex(held) || held.mode.is_intent());
    debug_assert!(is_weak, "S and X are not yielded: {held:?}");
    is_weak
}
