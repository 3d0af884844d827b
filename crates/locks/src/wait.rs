//! Waiting: until when, what ends it early, and the cell through which a waiter is told that it has got what it wanted.
//!
//! No thread blocks here. A waiter owns a [`Grant`] that the queue also points at; whoever gives, marks it under the
//! queue's lock and wakes the waiter after letting go of that lock. A waiter that goes away takes its grant out of the
//! queue, or gives back what it was given in the meantime: the owner of the queue does that, see `Pending` of both queues.

use crate::sync::Mutex;
use pando_base::{Error, OperationContext, Result};
use pando_env::{BoxedFuture, Clock, Env};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// A moment on the monotonic clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline {
    at_ns: u64,
}

impl Deadline {
    /// So long from now.
    pub fn after(clock: &dyn Clock, duration: Duration) -> Deadline {
        let duration_ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Deadline { at_ns: clock.monotonic_ns().saturating_add(duration_ns) }
    }

    /// At this reading of [`Clock::monotonic_ns`].
    pub fn at_ns(at_ns: u64) -> Deadline {
        Deadline { at_ns }
    }

    fn remaining(self, clock: &dyn Clock) -> Duration {
        Duration::from_nanos(self.at_ns.saturating_sub(clock.monotonic_ns()))
    }
}

/// What can end an operation from outside: killOp, a closed connection, maxTimeMS, a step down.
pub trait Interruption: Sync {
    /// The reason, if it has happened already. Called on every acquisition, so it must be cheap.
    fn check(&self) -> Result<()>;
    /// Completes with the reason when it happens. Called only when there is something to wait for.
    fn interrupted(&self) -> BoxedFuture<'_, Error>;
}

impl Interruption for OperationContext {
    fn check(&self) -> Result<()> {
        OperationContext::check(self)
    }

    fn interrupted(&self) -> BoxedFuture<'_, Error> {
        Box::pin(self.killed())
    }
}

/// How long to wait and what may end the wait.
#[derive(Clone, Copy, Default)]
pub struct Wait<'a> {
    deadline: Option<Deadline>,
    interruption: Option<&'a dyn Interruption>,
}

impl<'a> Wait<'a> {
    /// As long as it takes, whatever happens.
    pub const FOREVER: Wait<'static> = Wait { deadline: None, interruption: None };

    /// Until the deadline.
    pub fn until(deadline: Deadline) -> Wait<'static> {
        Wait { deadline: Some(deadline), interruption: None }
    }

    /// Until interrupted.
    pub fn interruptible(interruption: &'a dyn Interruption) -> Wait<'a> {
        Wait { deadline: None, interruption: Some(interruption) }
    }

    /// As long as the operation may go on: until it is killed or its deadline is passed, either with its own error.
    pub fn of(operation: &'a OperationContext) -> Wait<'a> {
        Wait { deadline: operation.deadline_ns().map(Deadline::at_ns), interruption: Some(operation) }
    }

    /// The same with a deadline, or with the earlier of the two.
    #[must_use]
    pub fn with_deadline(self, deadline: Option<Deadline>) -> Wait<'a> {
        let earlier = match (self.deadline, deadline) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        Wait { deadline: earlier, ..self }
    }

    pub(crate) fn is_over(&self, clock: &dyn Clock) -> bool {
        self.deadline.is_some_and(|deadline| deadline.remaining(clock).is_zero())
    }

    pub(crate) fn check(&self) -> Result<()> {
        self.interruption.map_or(Ok(()), |interruption| interruption.check())
    }
}

/// Why a wait ended without what was waited for.
pub(crate) enum Ended {
    TimedOut(Duration),
    Interrupted(Error),
}

/// Given or not yet.
enum State {
    Waiting(Option<Waker>),
    Given,
}

/// The cell of one waiter.
pub(crate) struct Grant {
    state: Mutex<State>,
}

impl Grant {
    pub(crate) fn new() -> Arc<Grant> {
        Arc::new(Grant { state: Mutex::new(State::Waiting(None)) })
    }

    /// Marks it as given. The waker is for the caller to wake once it has let go of its own lock.
    pub(crate) fn give(&self) -> Option<Waker> {
        match std::mem::replace(&mut *self.state.lock(), State::Given) {
            State::Waiting(waker) => waker,
            State::Given => unreachable_twice(),
        }
    }

    fn poll(&self, context: &Context<'_>) -> Poll<()> {
        match &mut *self.state.lock() {
            State::Given => Poll::Ready(()),
            State::Waiting(Some(waker)) if waker.will_wake(context.waker()) => Poll::Pending,
            State::Waiting(waker) => {
                *waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Waits until given, too late, or interrupted, in this preference.
    pub(crate) async fn wait(&self, env: &Env, wait: &Wait<'_>) -> std::result::Result<(), Ended> {
        let patience = wait.deadline.map(|deadline| deadline.remaining(env.clock()));
        let mut timer = patience.map(|patience| env.clock().sleep(patience));
        let timed_out = || Ended::TimedOut(patience.unwrap_or_default());
        let mut interruption = wait.interruption.map(|interruption| interruption.interrupted());
        poll_fn(|context| {
            if self.poll(context).is_ready() {
                return Poll::Ready(Ok(()));
            }
            if let Some(Poll::Ready(error)) = interruption.as_mut().map(|future| future.as_mut().poll(context)) {
                return Poll::Ready(Err(Ended::Interrupted(error)));
            }
            if let Some(Poll::Ready(())) = timer.as_mut().map(|future| future.as_mut().poll(context)) {
                // If it was the operation's own time that is over, that is the reason.
                let reason = wait.check().map_or_else(Ended::Interrupted, |()| timed_out());
                return Poll::Ready(Err(reason));
            }
            Poll::Pending
        })
        .await
    }
}

fn unreachable_twice() -> Option<Waker> {
    debug_assert!(false, "a grant is given once");
    None
}

/// Those to wake when the lock of the queue is no longer held.
#[derive(Default)]
#[must_use]
pub(crate) struct Wakers(Vec<Waker>);

impl Wakers {
    pub(crate) fn add(&mut self, waker: Option<Waker>) {
        self.0.extend(waker);
    }

    pub(crate) fn wake(self) {
        self.0.into_iter().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_env::simulated::Simulation;

    #[test]
    fn the_earlier_deadline_counts() {
        let (early, late) = (Deadline::at_ns(5), Deadline::at_ns(9));
        assert_eq!(Wait::until(late).with_deadline(Some(early)).deadline, Some(early));
        assert_eq!(Wait::until(early).with_deadline(Some(late)).deadline, Some(early));
        assert_eq!(Wait::until(early).with_deadline(None).deadline, Some(early));
        assert_eq!(Wait::FOREVER.with_deadline(None).deadline, None);
    }

    #[test]
    fn what_is_left_until_a_deadline() {
        let simulation = Simulation::new(1);
        let deadline = Deadline::after(simulation.clock(), Duration::from_millis(5));
        assert_eq!(deadline.remaining(simulation.clock()), Duration::from_millis(5));
        simulation.clock().advance(Duration::from_millis(7));
        assert_eq!(deadline.remaining(simulation.clock()), Duration::ZERO);
        assert_eq!(Deadline::after(simulation.clock(), Duration::MAX), Deadline::at_ns(u64::MAX));
    }
}
