//! One session with its children: the permit, who has it, and their states.

use super::{ActiveSession, SessionInfo};
use crate::id::{LogicalSessionId, SessionHasher};
use pando_base::{ErrorCode, OperationContext};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// What `acquire` gives; there is one for each session.
pub(super) struct Permit(#[allow(dead_code, reason = "held, never looked at")] Option<OwnedSemaphorePermit>);

pub(super) struct Entry {
    session: LogicalSessionId,
    /// One permit; waiters get it in the order of their arrival.
    permit: Arc<Semaphore>,
    waiting: AtomicUsize,
    kill_ended: Notify,
    runtime: Mutex<Runtime>,
}

#[derive(Default)]
struct Runtime {
    operation: Option<OperationContext>,
    last_checkout_ms: i64,
    kills_requested: usize,
    is_reaped: bool,
    /// Children that the tables know of are among those here.
    knows_children: bool,
    /// The session itself and its children.
    active: HashMap<LogicalSessionId, Arc<ActiveSession>, SessionHasher>,
}

/// What came of taking a session.
pub(super) enum CheckOut {
    /// It is taken.
    Done(Arc<ActiveSession>),
    /// The entry is out of use; there is another.
    Reaped,
    /// Somebody kills the session, and has it first.
    Killed,
}

impl Runtime {
    fn active(&mut self, session: LogicalSessionId) -> Arc<ActiveSession> {
        Arc::clone(self.active.entry(session).or_insert_with(|| Arc::new(ActiveSession::new(session))))
    }
}

/// Counts a waiter for as long as it waits, also when its future is dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Entry {
    pub(super) fn new(session: LogicalSessionId) -> Entry {
        Entry {
            session,
            permit: Arc::new(Semaphore::new(1)),
            waiting: AtomicUsize::new(0),
            kill_ended: Notify::new(),
            runtime: Mutex::default(),
        }
    }

    pub(super) fn session(&self) -> LogicalSessionId {
        self.session
    }

    pub(super) async fn acquire(&self) -> Permit {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let _waiting = Waiting(&self.waiting);
        // The semaphore is never closed, so that there is no error to tell.
        Permit(Arc::clone(&self.permit).acquire_owned().await.ok())
    }

    /// The permit, if nobody has it or waits for it.
    pub(super) fn try_acquire(&self) -> Option<Permit> {
        Arc::clone(&self.permit).try_acquire_owned().ok().map(|permit| Permit(Some(permit)))
    }

    pub(super) fn active(&self, session: LogicalSessionId) -> Arc<ActiveSession> {
        self.runtime.lock().active(session)
    }

    /// Whoever has the permit takes the session, if it may be taken.
    pub(super) fn check_out(&self, context: &OperationContext, session: LogicalSessionId, now_ms: i64) -> CheckOut {
        let mut runtime = self.runtime.lock();
        if runtime.is_reaped {
            return CheckOut::Reaped;
        }
        if runtime.kills_requested > 0 {
            return CheckOut::Killed;
        }
        debug_assert!(runtime.operation.is_none(), "the permit is held by one operation");
        runtime.operation = Some(context.clone());
        runtime.last_checkout_ms = now_ms;
        CheckOut::Done(runtime.active(session))
    }

    pub(super) fn checked_in(&self) {
        self.runtime.lock().operation = None;
    }

    // ---- Kills.

    pub(super) fn request_kill(&self, code: ErrorCode) {
        self.runtime.lock().kills_requested += 1;
        self.interrupt(code);
    }

    pub(super) fn interrupt(&self, code: ErrorCode) {
        // The kill runs outside of the lock: whoever it wakes may come here.
        let operation = self.runtime.lock().operation.clone();
        if let Some(operation) = operation {
            operation.kill(code);
        }
    }

    pub(super) fn kill_done(&self) {
        let mut runtime = self.runtime.lock();
        debug_assert!(runtime.kills_requested > 0, "each token ends once");
        runtime.kills_requested = runtime.kills_requested.saturating_sub(1);
        drop(runtime);
        self.kill_ended.notify_waiters();
    }

    pub(super) fn is_being_killed(&self) -> bool {
        self.runtime.lock().kills_requested > 0
    }

    /// Ends when no kill is in progress.
    pub(super) async fn killed(&self) {
        loop {
            // Made before the look, so that no end falls between.
            let ended = self.kill_ended.notified();
            if !self.is_being_killed() {
                return;
            }
            ended.await;
        }
    }

    // ---- Ends.

    pub(super) fn members(&self) -> Vec<Arc<ActiveSession>> {
        self.runtime.lock().active.values().cloned().collect()
    }

    /// Are children that the tables know of among the members?
    pub(super) fn knows_children(&self) -> bool {
        self.runtime.lock().knows_children
    }

    pub(super) fn set_knows_children(&self) {
        self.runtime.lock().knows_children = true;
    }

    /// Forgets members that nobody asks for again. Whoever calls has the permit.
    pub(super) fn forget(&self, mut is_past: impl FnMut(&ActiveSession) -> bool) {
        let forgotten: Vec<Arc<ActiveSession>> = self.members().into_iter().filter(|active| is_past(active)).collect();
        let mut runtime = self.runtime.lock();
        forgotten.iter().for_each(|active| drop(runtime.active.remove(&active.session)));
    }

    pub(super) fn has_children(&self) -> bool {
        self.runtime.lock().active.keys().any(|session| session.is_child())
    }

    pub(super) fn invalidate(&self) {
        self.runtime.lock().knows_children = false;
        self.members().iter().for_each(|active| {
            // What is prepared cannot be read again: it stays as it is.
            if active.is_prepared() {
                return;
            }
            active.abort_open();
            active.participant().invalidate();
        });
    }

    pub(super) fn release(&self) {
        self.members().iter().for_each(|active| active.release());
    }

    pub(super) fn abort_open(&self) {
        self.members().iter().for_each(|active| active.abort_open());
    }

    pub(super) fn has_expired(&self, now_ns: u64) -> bool {
        self.members().iter().any(|active| active.participant().has_expired(now_ns))
    }

    /// Ends the transaction of a session that nobody has; whoever has it is told to stop, and that ends it too.
    pub(super) fn abort_or_interrupt(&self, code: ErrorCode) {
        match self.permit.try_acquire() {
            Ok(_permit) => self.abort_open(),
            Err(_) => self.interrupt(code),
        }
    }

    pub(super) fn is_idle_since(&self, time_ms: i64) -> bool {
        let runtime = self.runtime.lock();
        runtime.operation.is_none()
            && !runtime.active.values().any(|active| active.has_open())
            && runtime.kills_requested == 0
            && runtime.last_checkout_ms < time_ms
            && self.waiting.load(Ordering::Relaxed) == 0
    }

    /// Takes the entry out of use; false if somebody holds it after all.
    pub(super) fn reap(&self) -> bool {
        let Ok(_permit) = self.permit.try_acquire() else { return false };
        self.runtime.lock().is_reaped = true;
        true
    }

    pub(super) fn info(&self) -> SessionInfo {
        let runtime = self.runtime.lock();
        SessionInfo {
            session: self.session,
            operation_id: runtime.operation.as_ref().map(OperationContext::id),
            last_checkout_ms: runtime.last_checkout_ms,
            waiting: self.waiting.load(Ordering::Relaxed),
        }
    }
}
