//! Waiting within bounds: until a thing has happened, the operation is to stop, or the time is over.

use super::ReplicationNode;
use pando_base::{OperationContext, Result};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

/// What a bounded wait came to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Waited<T> {
    /// It has happened.
    Done(T),
    /// The time is over.
    TimedOut,
}

impl ReplicationNode {
    /// Waits until the future is done, the operation has to stop (an error), or the time is over.
    pub(super) async fn wait_bounded<T>(
        &self,
        context: &OperationContext,
        timeout_ms: Option<u64>,
        future: impl Future<Output = T>,
    ) -> Result<Waited<T>> {
        context.check()?;
        let sleep_ms = |duration_ms: u64| self.env.clock().sleep(Duration::from_millis(duration_ms));
        let mut timeout = timeout_ms.map(sleep_ms);
        // One millisecond more, so that the deadline has passed when this wakes.
        let mut deadline = context.remaining_ns().map(|left_ns| sleep_ms(left_ns / 1_000_000 + 1));
        let (mut future, mut killed) = (pin!(future), pin!(context.killed()));
        poll_fn(|task| {
            if let Poll::Ready(value) = future.as_mut().poll(task) {
                return Poll::Ready(Ok(Waited::Done(value)));
            }
            if let Poll::Ready(error) = killed.as_mut().poll(task) {
                return Poll::Ready(Err(error));
            }
            if let Some(sleep) = &mut deadline
                && sleep.as_mut().poll(task).is_ready()
            {
                deadline = None;
                if let Err(error) = context.check() {
                    return Poll::Ready(Err(error));
                }
            }
            match &mut timeout {
                Some(sleep) => sleep.as_mut().poll(task).map(|()| Ok(Waited::TimedOut)),
                None => Poll::Pending,
            }
        })
        .await
    }
}
