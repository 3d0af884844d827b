//! Waiting for the state to reach some point, by thread or by future.

use crate::state::{Shared, State};
use pando_storage::{Result, Wait};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

impl Shared {
    /// Does something with the state and tells everybody who waits.
    pub fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.state.lock();
        state.unspecified = false;
        let result = change(&mut state);
        let wakers = std::mem::take(&mut state.wakers);
        drop(state);
        self.changed.notify_all();
        wakers.into_iter().for_each(std::task::Waker::wake);
        result
    }
}

type Done = dyn Fn(&mut State) -> bool + Send + Sync;

struct Waiting {
    shared: Arc<Shared>,
    done: Arc<Done>,
}

impl Future for Waiting {
    type Output = Result<()>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        let mut state = self.shared.state.lock();
        if (self.done)(&mut state) {
            return Poll::Ready(Ok(()));
        }
        state.wakers.push(context.waker().clone());
        Poll::Pending
    }
}

/// Waits until `done` holds.
pub fn wait_until(shared: &Arc<Shared>, done: impl Fn(&mut State) -> bool + Send + Sync + 'static) -> Wait {
    let done: Arc<Done> = Arc::new(done);
    let future = Waiting { shared: shared.clone(), done: done.clone() };
    let shared = shared.clone();
    Wait::new(future, move || {
        let mut state = shared.state.lock();
        while !done(&mut state) {
            shared.changed.wait(&mut state);
        }
        Ok(())
    })
}
