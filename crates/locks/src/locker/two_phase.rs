//! Two-phase locking: inside a unit of work locks for writing are only taken; they are given back when it ends.

use super::{Held, Locker, SavedLocks};
use crate::resource::ResourceId;
use crate::wait::{Wait, Wakers};
use pando_base::Result;

/// A unit of work. Its end, which is when this is dropped, gives back what was unlocked inside.
#[must_use]
pub struct UnitOfWorkLocks<'a> {
    locker: &'a Locker,
}

impl Drop for UnitOfWorkLocks<'_> {
    fn drop(&mut self) {
        self.locker.end_unit_of_work();
    }
}

impl Locker {
    /// Begins a unit of work that ends with the guard. They nest.
    pub fn unit_of_work(&self) -> UnitOfWorkLocks<'_> {
        self.begin_unit_of_work();
        UnitOfWorkLocks { locker: self }
    }

    /// Begins a unit of work, for those who cannot keep a guard.
    pub fn begin_unit_of_work(&self) {
        self.seat.state.lock().unit_of_work_depth += 1;
    }

    /// Ends a unit of work. The end of the outermost gives back what was unlocked inside.
    pub fn end_unit_of_work(&self) {
        let mut wakers = Wakers::default();
        let mut state = self.seat.state.lock();
        debug_assert!(state.unit_of_work_depth > 0);
        state.unit_of_work_depth = state.unit_of_work_depth.saturating_sub(1);
        while state.unit_of_work_depth == 0
            && let Some(held) = state.take_pending_unlock()
        {
            self.release(&mut state, held, &mut wakers);
        }
        drop(state);
        wakers.wake();
    }

    /// Whether it is in a unit of work.
    pub fn is_in_unit_of_work(&self) -> bool {
        self.seat.state.lock().unit_of_work_depth > 0
    }

    /// Whether IS and S are kept to the end of the unit of work too, as in multi-document transactions.
    pub fn set_shared_two_phase(&self, is_shared_two_phase: bool) {
        self.seat.state.lock().is_shared_two_phase = is_shared_two_phase;
    }

    /// Gives back the replication state lock although the unit of work goes on: a prepared transaction lets states change.
    pub fn unlock_replication_state_for_prepare(&self) -> bool {
        let mut wakers = Wakers::default();
        let mut state = self.seat.state.lock();
        let Some(place) = state.place(ResourceId::REPLICATION_STATE_TRANSITION) else { return false };
        let held = state.held.remove(place);
        self.release(&mut state, held, &mut wakers);
        drop(state);
        wakers.wake();
        true
    }

    /// Gives up the unit of work and all its locks, for a prepared transaction on a node that steps down. All of them must
    /// have been unlocked inside the unit, of which there must be one.
    pub fn save_unit_of_work_and_unlock(&self) -> SavedLocks {
        let mut wakers = Wakers::default();
        let mut state = self.seat.state.lock();
        debug_assert!(state.unit_of_work_depth == 1);
        debug_assert!(state.held.iter().all(|held| held.unlock_pending == held.count), "{:?}", state.held);
        state.unit_of_work_depth = 0;
        let saved = SavedLocks::of(state.held.iter());
        while let Some(held) = state.held.pop() {
            self.release(&mut state, held, &mut wakers);
        }
        drop(state);
        wakers.wake();
        saved
    }

    /// Takes the locks again and goes on with the unit of work.
    pub async fn restore_unit_of_work(&self, saved: &SavedLocks, wait: &Wait<'_>) -> Result<()> {
        self.restore(saved, wait).await?;
        let mut state = self.seat.state.lock();
        state.held.iter_mut().for_each(|held: &mut Held| held.unlock_pending = held.count);
        state.unit_of_work_depth = 1;
        Ok(())
    }
}
