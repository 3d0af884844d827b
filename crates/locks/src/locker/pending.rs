//! A lock that is queued for, until it is granted or given up.

use super::state::{Held, State};
use super::{Acquisition, LockRequest, Locker};
use crate::manager::{Claim, Conversion};
use crate::mode::Mode;
use crate::resource::ResourceId;
use crate::stats::StatsCell;
use crate::wait::{Ended, Grant, Wait, Wakers};
use pando_base::{Error, ErrorCode, Result};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// What is waited for.
#[derive(Clone, Copy)]
pub(super) enum Want {
    /// A lock.
    New(Claim),
    /// A stronger mode of a lock that is held.
    More(Conversion),
}

/// A lock that was not granted at once. Dropping it gives it up.
#[must_use]
pub struct PendingLock<'a> {
    locker: &'a Locker,
    resource: ResourceId,
    /// The mode that was asked for, under which the wait is counted.
    mode: Mode,
    want: Want,
    grant: Arc<Grant>,
    queued_ns: u64,
    is_granted: bool,
}

impl PendingLock<'_> {
    /// Waits until the lock is granted.
    pub async fn complete(mut self, wait: &Wait<'_>) -> Result<()> {
        match self.grant.wait(self.locker.manager.env(), wait).await {
            Ok(()) => {
                self.is_granted = true;
                Ok(())
            }
            Err(Ended::Interrupted(error)) => Err(error),
            Err(Ended::TimedOut(patience)) => Err(self.timed_out(patience)),
        }
    }

    fn timed_out(&self, patience: Duration) -> Error {
        let reason = format!(
            "Unable to acquire {} lock on '{}' within {}ms. opId: {}.",
            self.mode,
            self.resource,
            patience.as_millis(),
            self.locker.id.number()
        );
        Error::new(ErrorCode::LockTimeout, reason)
    }

    fn give_up(&self, wakers: &mut Wakers) {
        let manager = &self.locker.manager;
        match self.want {
            Want::New(claim) => manager.cancel(self.resource, claim, &self.grant, wakers),
            Want::More(conversion) => manager.cancel_conversion(self.resource, conversion, &self.grant, wakers),
        }
    }
}

impl Drop for PendingLock<'_> {
    fn drop(&mut self) {
        let mut wakers = Wakers::default();
        let waited_ns = self.locker.manager.env().clock().monotonic_ns().saturating_sub(self.queued_ns);
        let mut state = self.locker.seat.state.lock();
        state.waiting = None;
        self.locker.count_wait(&mut state, self.resource, self.mode, waited_ns / 1_000);
        if self.is_granted {
            state.accept(self.resource, self.want);
        } else {
            self.give_up(&mut wakers);
        }
        drop(state);
        wakers.wake();
    }
}

impl Locker {
    pub(super) fn begin_wait(
        &self,
        state: &mut State,
        request: LockRequest,
        want: Want,
        grant: Arc<Grant>,
    ) -> Acquisition<'_> {
        let LockRequest { resource, mode, .. } = request;
        state.waiting = Some(resource);
        let cell = StatsCell::of(resource, mode);
        state.stats.at(cell).acquire_wait_count += 1;
        self.shared_stats(cell).acquire_wait_count.fetch_add(1, Ordering::Relaxed);
        let queued_ns = self.manager.env().clock().monotonic_ns();
        Acquisition::Waiting(PendingLock { locker: self, resource, mode, want, grant, queued_ns, is_granted: false })
    }

    fn count_wait(&self, state: &mut State, resource: ResourceId, mode: Mode, waited_micros: u64) {
        let cell = StatsCell::of(resource, mode);
        state.stats.at(cell).time_acquiring_micros += waited_micros;
        self.shared_stats(cell).time_acquiring_micros.fetch_add(waited_micros, Ordering::Relaxed);
    }
}

impl State {
    fn accept(&mut self, resource: ResourceId, want: Want) {
        match want {
            Want::New(claim) => self.held.push(Held::new(resource, claim)),
            Want::More(conversion) => self.convert(resource, conversion.to),
        }
    }

    pub(super) fn convert(&mut self, resource: ResourceId, mode: Mode) {
        let held = self.held_mut(resource);
        debug_assert!(held.is_some(), "{resource} was converted but is not held");
        if let Some(held) = held {
            held.mode = mode;
            held.count += 1;
        }
    }
}

impl Held {
    pub(super) fn new(resource: ResourceId, claim: Claim) -> Held {
        let Claim { mode, enqueue_at_front, compatible_first, .. } = claim;
        Held { resource, mode, count: 1, unlock_pending: 0, enqueue_at_front, compatible_first }
    }
}
