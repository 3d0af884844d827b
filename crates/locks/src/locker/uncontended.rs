//! The usual case: several locks, each an intent that can be counted in the partition or a lock that is held already, and a
//! ticket that is there. All of it is done in one visit to the locker's state; whatever is not so is left to the others.

use super::{Held, Locker, State};
use crate::manager::Claim;
use crate::mode::Mode;
use crate::resource::ResourceId;
use crate::wait::Wait;
use pando_base::Result;

impl Locker {
    /// Takes locks in this order up to the first that cannot be had so simply; returns how many were taken. If the global
    /// lock is the first that was not, its ticket may have been: the caller must go on with [`Locker::lock_global`].
    pub(crate) fn lock_uncontended(&self, wanted: &[(ResourceId, Mode)], wait: &Wait<'_>) -> Result<usize> {
        wait.check()?;
        let mut state = self.seat.state.lock();
        for (place, (resource, mode)) in wanted.iter().enumerate() {
            let is_taken = match *resource {
                ResourceId::GLOBAL => self.take_global_simply(&mut state, *mode, place),
                _ => self.take_simply(&mut state, *resource, *mode, place),
            };
            if !is_taken {
                return Ok(place);
            }
        }
        Ok(wanted.len())
    }

    /// `place` is where the lock is if the operation has taken the same ones before: a transaction does, with every statement.
    fn take_simply(&self, state: &mut State, resource: ResourceId, mode: Mode, place: usize) -> bool {
        debug_assert!(state.waiting.is_none(), "a locker waits for one lock at a time");
        debug_assert!(state.has_parent(resource), "{resource} is locked without the global lock");
        match state.held_near(resource, place) {
            Some(held) if !mode.is_covered_by(held.mode) => return false,
            Some(held) if held.unlock_pending > 0 => {
                held.unlock_pending -= 1;
                return true;
            }
            Some(held) => held.count += 1,
            None if self.manager.acquire_uncontended(self.partition, resource, mode) => {
                debug_assert!(state.keeps_order(resource), "{resource} is locked out of order");
                let claim = Claim { locker: self.id, mode, enqueue_at_front: false, compatible_first: false };
                state.held.push(Held::new(resource, claim));
            }
            None => return false,
        }
        self.count_acquisition(state, resource, mode);
        true
    }

    fn take_global_simply(&self, state: &mut State, mode: Mode, place: usize) -> bool {
        let has_ticket = state.ticket_mode.is_some() || self.take_ticket_simply(state, mode);
        let is_taken = has_ticket && self.take_simply(state, ResourceId::GLOBAL, mode, place);
        if is_taken {
            state.global_modes_taken = state.global_modes_taken.with(mode);
        }
        is_taken
    }

    fn take_ticket_simply(&self, state: &mut State, mode: Mode) -> bool {
        if mode == Mode::IX && self.manager.tickets().is_some_and(|tickets| tickets.flow().is_limited()) {
            return false;
        }
        if let Some(pool) = self.manager.tickets().and_then(|tickets| tickets.pool(mode)) {
            let Some(ticket) = pool.try_acquire(self.admission(state)) else { return false };
            state.ticket = Some(ticket);
            state.admission_count += 1;
        }
        state.ticket_mode = Some(mode);
        true
    }
}
