//! What currentOp and lockInfo show of a locker.

use super::state::{Owner, State};
use super::{Locker, Seat};
use crate::manager::{LockerReport, RequestInfo};
use crate::mode::Mode;
use crate::resource::ResourceId;
use crate::stats::{LockStats, type_name};

/// What an operation is doing as far as locks and tickets go; `serverStatus.globalLock` counts these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientState {
    /// It neither holds nor wants the global lock.
    Inactive,
    /// It reads.
    ActiveReader,
    /// It writes.
    ActiveWriter,
    /// It waits for a ticket or a lock to read.
    QueuedReader,
    /// It waits for a ticket or a lock to write.
    QueuedWriter,
}

/// The locks of an operation at some moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LockerInfo {
    /// What it holds, and the global lock if it waits for that, by id.
    pub locks: Vec<(ResourceId, Mode)>,
    /// What it waits for.
    pub waiting: Option<ResourceId>,
    /// Flow control keeps it waiting.
    pub is_in_flow_control: bool,
    /// Its counters.
    pub stats: LockStats,
}

impl LockerInfo {
    /// The `locks` of currentOp: for each type the letter of its strongest lock.
    pub fn letters_by_type(&self) -> Vec<(&'static str, &'static str)> {
        let mut strongest: Vec<(&'static str, Mode)> = Vec::new();
        for (resource, mode) in &self.locks {
            let name = type_name(*resource);
            match strongest.iter_mut().find(|(other, _)| *other == name) {
                Some((_, stronger)) => *stronger = (*stronger).max(*mode),
                None => strongest.push((name, *mode)),
            }
        }
        strongest.into_iter().map(|(name, mode)| (name, mode.letter())).collect()
    }
}

impl LockerInfo {
    /// Adds what another locker of the same operation shows.
    pub fn absorb(&mut self, other: LockerInfo) {
        self.locks.extend(other.locks);
        self.locks.sort_unstable();
        self.waiting = self.waiting.or(other.waiting);
        self.is_in_flow_control |= other.is_in_flow_control;
        self.stats.add(&other.stats);
    }
}

impl Locker {
    /// Its locks and counters now. With a base, only what was counted since.
    pub fn info(&self, base: Option<&LockStats>) -> LockerInfo {
        let mut info = self.seat.state.lock().info();
        if let Some(base) = base {
            info.stats.subtract(base);
        }
        info
    }

    /// Its counters now.
    pub fn stats(&self) -> LockStats {
        self.seat.state.lock().stats.clone()
    }

    /// What it is doing.
    pub fn client_state(&self) -> ClientState {
        self.seat.state.lock().client_state()
    }
}

impl State {
    fn info(&self) -> LockerInfo {
        let mut locks: Vec<_> = self.held.iter().map(|held| (held.resource, held.mode)).collect();
        // Who waits for the global lock is shown with it: by that one sees what an fsyncLock keeps out.
        let is_at_the_door = self.waiting == Some(ResourceId::GLOBAL);
        locks.extend(self.ticket_mode.filter(|_| is_at_the_door).map(|mode| (ResourceId::GLOBAL, mode)));
        locks.sort_unstable();
        LockerInfo {
            locks,
            waiting: self.waiting,
            is_in_flow_control: self.is_in_flow_control,
            stats: self.stats.clone(),
        }
    }

    fn client_state(&self) -> ClientState {
        let Some(mode) = self.ticket_mode.filter(|_| !self.is_resting || self.is_queued) else {
            return ClientState::Inactive;
        };
        match (mode.is_shared(), self.is_queued || self.waiting.is_some()) {
            (true, false) => ClientState::ActiveReader,
            (true, true) => ClientState::QueuedReader,
            (false, false) => ClientState::ActiveWriter,
            (false, true) => ClientState::QueuedWriter,
        }
    }
}

impl Seat {
    /// The locker that sits here.
    pub(crate) fn report(&self) -> Option<LockerReport> {
        let state = self.state.lock();
        let Owner { locker, operation } = state.owner?;
        Some(LockerReport { locker, operation, state: state.client_state(), info: state.info() })
    }

    /// What the locker that sits here holds.
    pub(crate) fn requests(&self) -> Vec<(ResourceId, RequestInfo)> {
        let state = self.state.lock();
        let Some(Owner { locker, .. }) = state.owner else { return Vec::new() };
        let request = |held: &super::Held| RequestInfo {
            locker,
            mode: held.mode,
            convert_mode: None,
            enqueue_at_front: held.enqueue_at_front,
            compatible_first: held.compatible_first,
        };
        state.held.iter().map(|held| (held.resource, request(held))).collect()
    }
}
