//! The global lock and its ticket.
//!
//! The ticket is taken before the lock is asked for and given back when the lock is free. While a transaction rests
//! between two statements it keeps its locks without a ticket; it takes one again before it goes on.

use super::{LockRequest, Locker, State};
use crate::mode::Mode;
use crate::resource::ResourceId;
use crate::tickets::{Admission, Priority};
use crate::wait::{Deadline, Wait, Wakers};
use pando_base::{Error, ErrorCode, Result};
use std::time::Duration;

/// How long a resting transaction waits for a ticket before it looks again whether it is in somebody's way.
const REACQUIRE_ATTEMPT: Duration = Duration::from_millis(100);

impl Locker {
    /// Takes a ticket, if there is none yet, then the global lock.
    pub async fn lock_global(&self, mode: Mode, wait: &Wait<'_>) -> Result<()> {
        let unwinding = TicketUnlessLocked(self);
        wait.check()?;
        let is_first = self.seat.state.lock().ticket_mode.is_none();
        if is_first {
            self.pass_flow_control(mode, wait).await?;
            self.take_ticket(mode, wait).await?;
        }
        self.lock(LockRequest::new(ResourceId::GLOBAL, mode), wait).await?;
        std::mem::forget(unwinding);
        let mut state = self.seat.state.lock();
        state.global_modes_taken = state.global_modes_taken.with(mode);
        Ok(())
    }

    /// Takes any lock in the way that is right for it.
    pub(crate) async fn lock_ordered(&self, request: LockRequest, wait: &Wait<'_>) -> Result<()> {
        if request.resource == ResourceId::GLOBAL {
            self.lock_global(request.mode, wait).await
        } else {
            self.lock(request, wait).await
        }
    }

    /// Gives back the ticket but keeps the locks.
    pub fn release_ticket(&self) {
        let mut wakers = Wakers::default();
        let mut state = self.seat.state.lock();
        let mode = state.ticket_mode;
        debug_assert!(mode.is_some(), "there is no global lock");
        self.return_ticket(&mut state, &mut wakers);
        state.ticket_mode = mode;
        state.is_resting = true;
        drop(state);
        wakers.wake();
    }

    /// Takes a ticket that is there for the locks that are held without one; false if there is none.
    pub fn retake_ticket(&self, wait: &Wait<'_>) -> Result<bool> {
        let mut state = self.seat.state.lock();
        debug_assert!(state.ticket_mode.is_some(), "there is no global lock");
        let Some(mode) = state.ticket_mode.filter(|_| state.is_resting) else { return Ok(true) };
        wait.check()?;
        Ok(self.retake_ticket_simply(&mut state, mode))
    }

    /// Takes a ticket for the locks that are held without one. Gives up with `LockTimeout` if there is none and somebody
    /// waits for one of the locks: that one may be holding the ticket.
    pub async fn reacquire_ticket(&self, wait: &Wait<'_>) -> Result<()> {
        if self.retake_ticket(wait)? {
            return Ok(());
        }
        let Some(mode) = self.seat.state.lock().ticket_mode else { return Ok(()) };
        loop {
            let attempt = Deadline::after(self.manager.env().clock(), REACQUIRE_ATTEMPT);
            match self.take_ticket(mode, &wait.with_deadline(Some(attempt))).await {
                Err(error) if error.code() == ErrorCode::LockTimeout => self.refuse_if_in_the_way(mode, wait, error)?,
                outcome => return outcome,
            }
        }
    }

    fn refuse_if_in_the_way(&self, mode: Mode, wait: &Wait<'_>, error: Error) -> Result<()> {
        wait.check()?;
        if wait.is_over(self.manager.env().clock()) {
            return Err(error);
        }
        if self.has_conflicting_requests() {
            let reason = format!("Unable to acquire ticket with mode '{mode}' due to detected lock conflict");
            return Err(Error::new(ErrorCode::LockTimeout, reason));
        }
        Ok(())
    }

    /// Uses a ticket of flow control up, if the lock is one for writing and the operation can wait.
    async fn pass_flow_control(&self, mode: Mode, wait: &Wait<'_>) -> Result<()> {
        let Some(flow) = self.manager.tickets().map(|tickets| tickets.flow()).filter(|flow| flow.is_limited()) else {
            return Ok(());
        };
        if mode != Mode::IX || self.seat.state.lock().priority == Priority::Immediate {
            return Ok(());
        }
        self.seat.state.lock().is_in_flow_control = true;
        let outcome = {
            let _waiting = InFlowControl(self);
            flow.take(wait).await
        };
        if let Some(micros) = outcome? {
            let stats = &mut self.seat.state.lock().stats.flow;
            stats.acquire_wait_count += 1;
            stats.time_acquiring_micros += micros;
        }
        Ok(())
    }

    async fn take_ticket(&self, mode: Mode, wait: &Wait<'_>) -> Result<()> {
        let Some(pool) = self.manager.tickets().and_then(|tickets| tickets.pool(mode)) else {
            let mut state = self.seat.state.lock();
            state.ticket_mode = Some(mode);
            state.is_resting = false;
            return Ok(());
        };
        let queued = Queued::new(self, mode);
        let ticket = pool.acquire(queued.admission, wait).await?;
        let mut state = self.seat.state.lock();
        state.ticket = Some(ticket);
        state.admission_count += 1;
        state.is_queued = false;
        state.is_resting = false;
        std::mem::forget(queued);
        Ok(())
    }

    /// Takes a ticket that is there, for the locks that are held.
    fn retake_ticket_simply(&self, state: &mut State, mode: Mode) -> bool {
        if let Some(pool) = self.manager.tickets().and_then(|tickets| tickets.pool(mode)) {
            let Some(ticket) = pool.try_acquire(self.admission(state)) else { return false };
            state.ticket = Some(ticket);
            state.admission_count += 1;
        }
        state.is_resting = false;
        true
    }

    pub(super) fn admission(&self, state: &State) -> Admission {
        Admission { priority: state.priority, is_new: state.admission_count == 0, lane: self.partition }
    }

    /// Gives back the ticket of the global lock, which is not held or about to be released.
    pub(super) fn return_ticket(&self, state: &mut State, wakers: &mut Wakers) {
        state.is_resting = false;
        let mode = state.ticket_mode.take();
        let pool = mode.and_then(|mode| self.manager.tickets()?.pool(mode));
        if let (Some(pool), Some(ticket)) = (pool, state.ticket.take()) {
            pool.release(ticket, wakers);
        }
    }
}

/// Marks the locker as queued for a ticket; if dropped, it is not any more, and has none.
struct Queued<'a> {
    locker: &'a Locker,
    admission: Admission,
    mode_before: Option<Mode>,
}

impl<'a> Queued<'a> {
    fn new(locker: &'a Locker, mode: Mode) -> Queued<'a> {
        let mut state = locker.seat.state.lock();
        let mode_before = state.ticket_mode.replace(mode);
        state.is_queued = true;
        let admission = locker.admission(&state);
        Queued { locker, admission, mode_before }
    }
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        let mut state = self.locker.seat.state.lock();
        state.is_queued = false;
        state.ticket_mode = self.mode_before;
    }
}

/// The locker waits for flow control until this is dropped.
struct InFlowControl<'a>(&'a Locker);

impl Drop for InFlowControl<'_> {
    fn drop(&mut self) {
        self.0.seat.state.lock().is_in_flow_control = false;
    }
}

/// Gives the ticket back if the global lock was not got.
struct TicketUnlessLocked<'a>(&'a Locker);

impl Drop for TicketUnlessLocked<'_> {
    fn drop(&mut self) {
        let mut wakers = Wakers::default();
        let mut state = self.0.seat.state.lock();
        if state.held(ResourceId::GLOBAL).is_none() {
            self.0.return_ticket(&mut state, &mut wakers);
        }
        drop(state);
        wakers.wake();
    }
}
