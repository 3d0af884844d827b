//! Telling every connection to stop, at no cost to those that work.
//!
//! A task registers its waker once, when it begins, and from then on asks one atomic whenever it would wait. The wake-up
//! that comes with the flag is what makes it ask. This holds because a task has one waker all its life.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::Poll;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

const RUNNING: u8 = 0;
const STOPPING: u8 = 1;
const ABORTING: u8 = 2;

/// How far the end has come.
#[derive(Default)]
pub(crate) struct Stop {
    stage: AtomicU8,
    stopping: Notify,
    aborting: Notify,
}

/// A task's registrations; they last as long as this lives.
pub(crate) struct Registered<'a> {
    stopping: Pin<Box<Notified<'a>>>,
    aborting: Pin<Box<Notified<'a>>>,
}

impl Stop {
    /// Nobody should begin anything new.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stage.load(Ordering::SeqCst) != RUNNING
    }

    /// Nobody should wait for anything any more.
    pub(crate) fn is_aborting(&self) -> bool {
        self.stage.load(Ordering::SeqCst) == ABORTING
    }

    /// Tells everybody to finish.
    pub(crate) fn stop(&self) {
        self.stage.fetch_max(STOPPING, Ordering::SeqCst);
        self.stopping.notify_waiters();
    }

    /// Tells everybody to drop what they do.
    pub(crate) fn abort(&self) {
        self.stage.fetch_max(ABORTING, Ordering::SeqCst);
        self.stopping.notify_waiters();
        self.aborting.notify_waiters();
    }

    /// Sees to it that this task is woken at both stages.
    pub(crate) async fn register(&self) -> Registered<'_> {
        let mut registered =
            Registered { stopping: Box::pin(self.stopping.notified()), aborting: Box::pin(self.aborting.notified()) };
        poll_fn(|context| {
            // What they return is of no interest: the flag tells.
            let _ = registered.stopping.as_mut().poll(context);
            let _ = registered.aborting.as_mut().poll(context);
            Poll::Ready(())
        })
        .await;
        registered
    }

    /// Ends when the end has begun.
    pub(crate) async fn stopped(&self) {
        loop {
            let notified = self.stopping.notified();
            if self.is_stopping() {
                return;
            }
            notified.await;
        }
    }
}
