//! The locks of one operation.
//!
//! A locker is used by one task at a time; its own lock is there because reports (currentOp, lockInfo) look at it from
//! outside. Taking a lock that is held already counts; taking it in a stronger mode converts it. Inside a unit of work,
//! locks for writing are kept until the outermost unit ends (two-phase locking), whoever unlocks them before.
//!
//! **Order.** Locks are taken in the order of their ids, which is top down and then by hash; who takes them otherwise says
//! so ([`LockRequest::unordered`]) and must know why no deadlock follows. Conversions that wait for each other are the one
//! deadlock that order cannot exclude; they are noticed, counted and refused.
//!
//! **Dropping.** A future that is dropped while it waits leaves the queue, or gives back what it was granted meanwhile. A
//! locker that is dropped gives back everything.
//!
//! Making a locker touches memory that all operations share (a reference count); a connection keeps one and calls
//! [`Locker::reset`] between operations.

mod global;
mod pending;
mod report;
mod seat;
mod state;
#[cfg(test)]
mod tests;
mod two_phase;
mod uncontended;
mod yielding;

use crate::manager::{Claim, Conversion, Deadlock, LockManager, LockerId};
use crate::mode::{Mode, ModeSet};
use crate::resource::{ResourceId, ResourceType};
use crate::stats::{SharedModeStats, StatsCell};
use crate::tickets::Priority;
use crate::wait::{Wait, Wakers};
use pando_base::{Error, ErrorCode, Result};
use pending::Want;
use state::{Held, Owner, State};
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub use pending::PendingLock;
pub use report::{ClientState, LockerInfo};
pub(crate) use seat::Seat;
pub use two_phase::UnitOfWorkLocks;
pub use yielding::SavedLocks;

/// A resource, a mode, and how to queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockRequest {
    pub(crate) resource: ResourceId,
    pub(crate) mode: Mode,
    pub(crate) enqueue_at_front: bool,
    pub(crate) compatible_first: bool,
    is_unordered: bool,
}

impl LockRequest {
    /// Queues at the back, except for S and X of global resources: those go to the front, and let compatible requests
    /// overtake while they are granted, so that a shutdown or a step down does not stand in line.
    pub fn new(resource: ResourceId, mode: Mode) -> LockRequest {
        let is_urgent = resource.resource_type() == ResourceType::Global && !mode.is_intent();
        let (enqueue_at_front, compatible_first) = (is_urgent, is_urgent);
        LockRequest { resource, mode, enqueue_at_front, compatible_first, is_unordered: false }
    }

    /// Goes to the front of the queue.
    #[must_use]
    pub fn at_front(self) -> LockRequest {
        LockRequest { enqueue_at_front: true, ..self }
    }

    /// Lets compatible requests overtake those who wait, while this is granted.
    #[must_use]
    pub fn compatible_first(self) -> LockRequest {
        LockRequest { compatible_first: true, ..self }
    }

    /// Taken out of order, by somebody who knows that no deadlock follows.
    #[must_use]
    pub fn unordered(self) -> LockRequest {
        LockRequest { is_unordered: true, ..self }
    }
}

/// What came of asking for a lock.
#[must_use]
pub enum Acquisition<'a> {
    /// It is held.
    Granted,
    /// It is queued.
    Waiting(PendingLock<'a>),
}

/// The locks of one operation.
pub struct Locker {
    manager: Arc<LockManager>,
    id: LockerId,
    partition: usize,
    seat: Arc<Seat>,
}

impl Locker {
    pub(crate) fn new(
        manager: Arc<LockManager>,
        id: LockerId,
        partition: usize,
        seat: Arc<Seat>,
        operation: u32,
    ) -> Locker {
        seat.state.lock().owner = Some(Owner { locker: id, operation });
        Locker { manager, id, partition, seat }
    }

    /// Its name in reports.
    pub fn id(&self) -> LockerId {
        self.id
    }

    /// What it shares with others.
    pub fn manager(&self) -> &Arc<LockManager> {
        &self.manager
    }

    /// Takes a lock, or takes it once more. The global lock needs a ticket too: [`Locker::lock_global`].
    pub async fn lock(&self, request: LockRequest, wait: &Wait<'_>) -> Result<()> {
        match self.lock_begin(request, wait)? {
            Acquisition::Granted => Ok(()),
            Acquisition::Waiting(pending) => pending.complete(wait).await,
        }
    }

    /// Takes a lock or queues for it, for those who have something to do before they wait: a step down queues for the
    /// replication state, then kills the operations in its way.
    pub fn lock_begin(&self, request: LockRequest, wait: &Wait<'_>) -> Result<Acquisition<'_>> {
        wait.check()?;
        self.begin(&mut self.seat.state.lock(), request)
    }

    fn begin(&self, state: &mut State, request: LockRequest) -> Result<Acquisition<'_>> {
        let LockRequest { resource, mode, .. } = request;
        debug_assert!(state.waiting.is_none(), "a locker waits for one lock at a time");
        debug_assert!(state.has_parent(resource), "{resource} is locked without the global lock");
        if state.reuse(resource, mode) {
            return Ok(Acquisition::Granted);
        }
        self.count_acquisition(state, resource, mode);
        match state.held_mut(resource) {
            Some(held) if mode.is_covered_by(held.mode) => {
                held.count += 1;
                Ok(Acquisition::Granted)
            }
            Some(held) => {
                let conversion = Conversion { locker: self.id, from: held.mode, to: held.mode.joined_with(mode) };
                self.begin_conversion(state, request, conversion)
            }
            None => Ok(self.begin_new(state, request)),
        }
    }

    fn count_acquisition(&self, state: &mut State, resource: ResourceId, mode: Mode) {
        let cell = StatsCell::of(resource, mode);
        state.stats.at(cell).acquire_count += 1;
        self.shared_stats(cell).acquire_count.fetch_add(1, Ordering::Relaxed);
    }

    fn begin_new(&self, state: &mut State, request: LockRequest) -> Acquisition<'_> {
        let LockRequest { resource, mode, enqueue_at_front, compatible_first, is_unordered } = request;
        debug_assert!(is_unordered || state.keeps_order(resource), "{resource} is locked out of order");
        let claim = Claim { locker: self.id, mode, enqueue_at_front, compatible_first };
        match self.manager.acquire(self.partition, resource, claim) {
            None => {
                state.held.push(Held::new(resource, claim));
                Acquisition::Granted
            }
            Some(grant) => self.begin_wait(state, request, Want::New(claim), grant),
        }
    }

    fn begin_conversion(
        &self,
        state: &mut State,
        request: LockRequest,
        conversion: Conversion,
    ) -> Result<Acquisition<'_>> {
        let LockRequest { resource, mode, .. } = request;
        match self.manager.convert(self.partition, resource, conversion) {
            Ok(None) => {
                state.convert(resource, conversion.to);
                Ok(Acquisition::Granted)
            }
            Ok(Some(grant)) => Ok(self.begin_wait(state, request, Want::More(conversion), grant)),
            Err(Deadlock) => {
                let cell = StatsCell::of(resource, mode);
                state.stats.at(cell).deadlock_count += 1;
                self.shared_stats(cell).deadlock_count.fetch_add(1, Ordering::Relaxed);
                let reason = format!(
                    "Unable to convert the {} lock on '{resource}' to {}: its other holder waits for this one",
                    conversion.from, conversion.to
                );
                Err(Error::new(ErrorCode::LockTimeout, reason))
            }
        }
    }

    /// Gives a lock back once. True if it is free of this operation now; false if it is held still (taken more than once,
    /// or kept to the end of the unit of work) or was not held.
    pub fn unlock(&self, resource: ResourceId) -> bool {
        self.unlock_all(std::iter::once(resource))
    }

    /// Gives several back, in this order. True if all of them are free now.
    pub(crate) fn unlock_all(&self, resources: impl Iterator<Item = ResourceId>) -> bool {
        let mut wakers = Wakers::default();
        let mut is_all = true;
        let mut state = self.seat.state.lock();
        for resource in resources {
            match state.unlock(resource) {
                Some(held) => self.release(&mut state, held, &mut wakers),
                None => is_all = false,
            }
        }
        drop(state);
        wakers.wake();
        is_all
    }

    /// Gives back everything, however often it was taken: for an operation that ends, wherever it stands. No unit of work may
    /// be open.
    pub fn unlock_everything(&self) {
        let mut wakers = Wakers::default();
        let mut state = self.seat.state.lock();
        debug_assert!(state.unit_of_work_depth == 0, "a unit of work keeps its locks");
        while let Some(held) = state.held.pop() {
            self.release(&mut state, held, &mut wakers);
        }
        drop(state);
        wakers.wake();
    }

    /// Changes a lock to a weaker mode.
    pub fn downgrade(&self, resource: ResourceId, mode: Mode) {
        let mut wakers = Wakers::default();
        let mut state = self.seat.state.lock();
        let held = state.held_mut(resource).filter(|held| mode.is_covered_by(held.mode));
        debug_assert!(held.is_some(), "{resource} is not held in a mode that covers {mode}");
        if let Some(held) = held {
            self.manager.downgrade(resource, held.mode, mode, &mut wakers);
            held.mode = mode;
        }
        drop(state);
        wakers.wake();
    }

    /// The mode in which a resource is held.
    pub fn mode(&self, resource: ResourceId) -> Option<Mode> {
        self.seat.state.lock().held(resource).map(|held| held.mode)
    }

    /// Whether a resource is held in this mode or one that covers it.
    pub fn is_locked_for(&self, resource: ResourceId, mode: Mode) -> bool {
        self.mode(resource).is_some_and(|held| mode.is_covered_by(held))
    }

    /// Whether the global lock is held.
    pub fn is_locked(&self) -> bool {
        self.mode(ResourceId::GLOBAL).is_some()
    }

    /// Whether a database may be used in this mode: it is locked so, or everything is.
    pub fn is_database_locked_for(&self, database: ResourceId, mode: Mode) -> bool {
        self.is_all_locked_for(mode) || self.is_locked_for(database, mode)
    }

    /// Whether a collection may be used in this mode: it is locked so, or its database is, or everything is.
    pub fn is_collection_locked_for(&self, database: ResourceId, collection: ResourceId, mode: Mode) -> bool {
        let is_all = match self.mode(database) {
            Some(Mode::X) => true,
            Some(Mode::S) => mode.is_shared(),
            Some(Mode::IS | Mode::IX) => self.is_locked_for(collection, mode),
            None => false,
        };
        is_all || self.is_all_locked_for(mode)
    }

    fn is_all_locked_for(&self, mode: Mode) -> bool {
        match self.mode(ResourceId::GLOBAL) {
            Some(Mode::X) => true,
            Some(Mode::S) => mode.is_shared(),
            _ => false,
        }
    }

    /// The priority with which it asks for tickets from now on; returns the one before.
    pub fn set_priority(&self, priority: Priority) -> Priority {
        std::mem::replace(&mut self.seat.state.lock().priority, priority)
    }

    /// Whether anything was locked for writing, ever.
    pub fn was_global_locked_for_write(&self) -> bool {
        self.seat.state.lock().global_modes_taken.meets([Mode::IX, Mode::X].into_iter().collect())
    }

    /// Whether the global lock was taken, ever.
    pub fn was_global_locked(&self) -> bool {
        !self.seat.state.lock().global_modes_taken.is_empty()
    }

    /// Whether anybody waits for something that this operation holds.
    pub fn has_conflicting_requests(&self) -> bool {
        let held: Vec<ResourceId> = self.seat.state.lock().held.iter().map(|held| held.resource).collect();
        held.into_iter().any(|resource| self.manager.has_waiting(resource))
    }

    /// Makes it fit for the next operation. Nothing may be held.
    pub fn reset(&mut self) {
        let mut state = self.seat.state.lock();
        debug_assert!(state.held.is_empty() && state.unit_of_work_depth == 0 && state.ticket.is_none());
        state.stats = Default::default();
        state.priority = Priority::default();
        state.admission_count = 0;
        state.is_shared_two_phase = false;
        state.global_modes_taken = ModeSet::default();
    }

    /// Gives back to the manager what the state has let go of.
    fn release(&self, state: &mut State, held: Held, wakers: &mut Wakers) {
        self.manager.release(self.partition, held.resource, held.mode, held.compatible_first, wakers);
        if held.resource == ResourceId::GLOBAL {
            self.return_ticket(state, wakers);
        }
    }

    fn shared_stats(&self, cell: StatsCell) -> &SharedModeStats {
        self.manager.partition(self.partition).stats.at(cell)
    }
}

impl Drop for Locker {
    fn drop(&mut self) {
        let mut wakers = Wakers::default();
        let mut state = std::mem::take(&mut *self.seat.state.lock());
        debug_assert!(
            state.held.is_empty() || std::thread::panicking(),
            "locks outlive their locker: {:?}",
            state.held
        );
        while let Some(held) = state.held.pop() {
            self.release(&mut state, held, &mut wakers);
        }
        self.manager.partition(self.partition).seats.give_back(&self.seat);
        wakers.wake();
    }
}
