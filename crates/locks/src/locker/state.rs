//! What a locker remembers: its locks with their counts, and what is to be unlocked at the end of a unit of work.

use crate::manager::LockerId;
use crate::mode::{Mode, ModeSet};
use crate::resource::{ResourceId, ResourceType};
use crate::stats::LockStats;
use crate::tickets::{HeldTicket, Priority};
use smallvec::SmallVec;

/// As many locks an operation on one collection has at once: those above it, its database's, its own.
const HELD_USUALLY: usize = 6;

/// A lock that is granted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    pub resource: ResourceId,
    pub mode: Mode,
    /// How often it was taken.
    pub count: u32,
    /// How many of those are to be given back when the unit of work ends.
    pub unlock_pending: u32,
    pub enqueue_at_front: bool,
    pub compatible_first: bool,
}

/// Whose state it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner {
    pub locker: LockerId,
    /// The number of its operation.
    pub operation: u32,
}

/// What is guarded by the locker's lock.
#[derive(Default)]
pub(crate) struct State {
    /// None while no locker has it.
    pub owner: Option<Owner>,
    /// In the order in which they were granted.
    pub held: SmallVec<[Held; HELD_USUALLY]>,
    /// Open units of work, nested.
    pub unit_of_work_depth: u32,
    /// Whether IS and S are kept to the end of the unit of work too.
    pub is_shared_two_phase: bool,
    /// What is being waited for.
    pub waiting: Option<ResourceId>,
    pub priority: Priority,
    /// How many tickets the operation has had.
    pub admission_count: u32,
    /// The mode of the global lock that the ticket is for. Set while the global lock is asked for or held.
    pub ticket_mode: Option<Mode>,
    pub ticket: Option<HeldTicket>,
    /// Whether the ticket was given back while the locks are kept.
    pub is_resting: bool,
    /// Whether a ticket is being waited for.
    pub is_queued: bool,
    /// Whether flow control keeps it waiting.
    pub is_in_flow_control: bool,
    /// In which modes the global lock was ever taken.
    pub global_modes_taken: ModeSet,
    pub stats: LockStats,
}

impl State {
    pub(crate) fn place(&self, resource: ResourceId) -> Option<usize> {
        self.held.iter().rposition(|held| held.resource == resource)
    }

    pub(crate) fn held(&self, resource: ResourceId) -> Option<&Held> {
        self.held.iter().find(|held| held.resource == resource)
    }

    pub(crate) fn held_mut(&mut self, resource: ResourceId) -> Option<&mut Held> {
        self.held.iter_mut().find(|held| held.resource == resource)
    }

    /// The same, looked for at this place first.
    pub(crate) fn held_near(&mut self, resource: ResourceId, place: usize) -> Option<&mut Held> {
        let is_there = self.held.get(place).is_some_and(|held| held.resource == resource);
        if is_there { self.held.get_mut(place) } else { self.held_mut(resource) }
    }

    /// Takes a lock again that was to be given back at the end of the unit of work.
    pub(crate) fn reuse(&mut self, resource: ResourceId, mode: Mode) -> bool {
        match self.held_mut(resource) {
            Some(held) if held.unlock_pending > 0 && mode.is_covered_by(held.mode) => {
                held.unlock_pending -= 1;
                true
            }
            _ => false,
        }
    }

    /// Gives a lock back once; returns it if that was the last time.
    pub(crate) fn unlock(&mut self, resource: ResourceId) -> Option<Held> {
        let place = self.place(resource)?;
        let is_kept = self.unit_of_work_depth > 0 && self.is_two_phase(&self.held[place]);
        let held = &mut self.held[place];
        if is_kept && held.count == 1 {
            held.unlock_pending += 1;
            debug_assert!(held.unlock_pending == 1, "{resource} was unlocked more often than locked");
            return None;
        }
        held.count -= 1;
        (held.count == 0).then(|| self.held.remove(place))
    }

    /// Takes out the next lock whose unlocking was put off.
    pub(crate) fn take_pending_unlock(&mut self) -> Option<Held> {
        debug_assert!(self.unit_of_work_depth == 0);
        while let Some(place) = self.held.iter().rposition(|held| held.unlock_pending > 0) {
            let held = &mut self.held[place];
            debug_assert!(held.unlock_pending <= held.count);
            held.count -= held.unlock_pending.min(held.count);
            held.unlock_pending = 0;
            if held.count == 0 {
                return Some(self.held.remove(place));
            }
        }
        None
    }

    /// Whether the lock stays until the unit of work ends.
    pub(crate) fn is_two_phase(&self, held: &Held) -> bool {
        let is_in_hierarchy = held.resource.resource_type() != ResourceType::Mutex;
        is_in_hierarchy && (self.is_shared_two_phase || !held.mode.is_shared())
    }

    /// Whether taking this resource now keeps the order in which locks are taken: top down, then by id. A multi-document
    /// transaction cannot know what its client asks for next; it does not wait long instead.
    pub(crate) fn keeps_order(&self, resource: ResourceId) -> bool {
        if resource.resource_type() == ResourceType::Mutex || self.is_shared_two_phase {
            return true;
        }
        let mut hierarchy = self.held.iter().filter(|held| held.resource.resource_type() != ResourceType::Mutex);
        hierarchy.all(|held| held.resource < resource)
    }

    /// Whether the global lock is held, if this resource needs it.
    pub(crate) fn has_parent(&self, resource: ResourceId) -> bool {
        let is_below = !matches!(resource.resource_type(), ResourceType::Global | ResourceType::Mutex);
        !is_below || self.held(ResourceId::GLOBAL).is_some()
    }
}
