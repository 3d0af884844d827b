//! What the tests of this crate share: futures that are polled by hand, and a simulated world.
#![cfg(not(feature = "shuttle"))]

use crate::{Interruption, LockManager, LockRequest, Locker, Mode, ResourceId, TicketParameters, Tickets, Wait};
use pando_base::{Error, ErrorCode, Result};
use pando_env::BoxedFuture;
use pando_env::simulated::Simulation;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// Counts how often it was woken.
#[derive(Default)]
pub struct CountingWaker {
    count: AtomicUsize,
}

impl Wake for CountingWaker {
    fn wake(self: Arc<Self>) {
        self.count.fetch_add(1, Ordering::SeqCst);
    }
}

/// A future that is polled by hand.
pub struct ByHand<'a, T> {
    future: BoxedFuture<'a, T>,
    waker: Arc<CountingWaker>,
}

impl<'a, T> ByHand<'a, T> {
    pub fn new(future: impl Future<Output = T> + Send + 'a) -> ByHand<'a, T> {
        ByHand { future: Box::pin(future), waker: Arc::default() }
    }

    pub fn poll(&mut self) -> Option<T> {
        let waker = Waker::from(self.waker.clone());
        match Pin::new(&mut self.future).poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        }
    }

    pub fn is_woken(&self) -> bool {
        self.waker.count.load(Ordering::SeqCst) > 0
    }
}

/// Polls once; it must be ready.
pub fn now<T>(future: impl Future<Output = T> + Send) -> T {
    ByHand::new(future).poll().expect("it should not wait")
}

/// A request that is begun.
pub fn begun(locker: &Locker, request: LockRequest) -> ByHand<'_, Result<()>> {
    let mut attempt = ByHand::new(async move { locker.lock(request, &Wait::FOREVER).await });
    assert!(attempt.poll().is_none(), "{request:?} should wait");
    attempt
}

/// A lock that is got at once.
pub fn lock(locker: &Locker, resource: ResourceId, mode: Mode) {
    now(locker.lock(LockRequest::new(resource, mode), &Wait::FOREVER)).unwrap();
}

/// Whether a lock would be got at once; gives it back.
pub fn is_free(manager: &Arc<LockManager>, resource: ResourceId, mode: Mode) -> bool {
    let locker = manager.locker_in(1);
    let mut attempt = ByHand::new(locker.lock(LockRequest::new(resource, mode), &Wait::FOREVER));
    let is_free = attempt.poll().is_some();
    drop(attempt);
    assert_eq!(locker.unlock(resource), is_free);
    is_free
}

/// A world whose manager has no tickets.
pub fn manager() -> (Simulation, Arc<LockManager>) {
    let simulation = Simulation::new(9);
    let manager = LockManager::new(&simulation.env());
    (simulation, manager)
}

/// A world with tickets.
pub fn tickets(parameters: &TicketParameters) -> (Simulation, Arc<Tickets>) {
    let simulation = Simulation::new(9);
    let tickets = Tickets::new(&simulation.env(), parameters).unwrap();
    (simulation, tickets)
}

/// An operation that can be killed.
#[derive(Default)]
pub struct Killable {
    pub is_killed: AtomicBool,
}

impl Interruption for Killable {
    fn check(&self) -> Result<()> {
        match self.is_killed.load(Ordering::SeqCst) {
            true => Err(Error::new(ErrorCode::Interrupted, "killed")),
            false => Ok(()),
        }
    }

    fn interrupted(&self) -> BoxedFuture<'_, Error> {
        Box::pin(poll_fn(|_| self.check().map_or_else(Poll::Ready, |()| Poll::Pending)))
    }
}
