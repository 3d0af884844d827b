//! An answer that is worked on: where its connection is, or on a lane.
//!
//! It begins where the connection is, which costs nothing, unless it is known to take long. If it
//! turns out to take long it moves to a lane between two of its polls: when it has kept its thread
//! for longer than a slice, or has yielded often enough that it would have. The connection waits
//! for it then, and still watches the client. If the connection is dropped, so is the answer, by
//! the lane; the books know of it until then.

use crate::books::{Books, Entered};
use crate::handler::Response;
use pando_base::operation::slice;
use pando_env::{BoxedFuture, Env, Place};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::sync::oneshot;

/// After so many turns that it gave others because it had done much, an answer is long.
const YIELDS_MAX: u32 = 2;

/// What took less than this would not have been worth a move.
const LONG_NS: u64 = 1_000_000;

/// An answer.
pub(crate) struct Answer {
    state: State,
    yields: u32,
    was_long: bool,
}

enum State {
    Here(BoxedFuture<'static, Response>),
    OnLane(oneshot::Receiver<FromLane>),
}

/// What a lane gives back.
struct FromLane {
    response: Response,
    kept_ns: u64,
}

impl Answer {
    /// An answer that begins where the caller is.
    pub(crate) fn here(work: BoxedFuture<'static, Response>) -> Answer {
        Answer { state: State::Here(work), yields: 0, was_long: false }
    }

    /// An answer that begins on a lane, if there are any.
    pub(crate) fn on_lane(work: BoxedFuture<'static, Response>, env: &Env, books: &Arc<Books>) -> Answer {
        match env.tasks().place() {
            Some(Place::Requests | Place::Control) => {
                Answer { state: moved(work, env, books), yields: 0, was_long: false }
            }
            Some(Place::Lanes) | None => Answer::here(work),
        }
    }

    /// True if it took long, as far as is known.
    pub(crate) fn was_long(&self) -> bool {
        self.was_long
    }

    /// The response, if it is ready; none if the work has come to grief.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>, env: &Env, books: &Arc<Books>) -> Poll<Option<Response>> {
        let work = match &mut self.state {
            State::OnLane(receiver) => {
                let Ok(FromLane { response, kept_ns }) = ready!(Pin::new(receiver).poll(context)) else {
                    return Poll::Ready(None);
                };
                self.was_long |= kept_ns >= LONG_NS;
                return Poll::Ready(Some(response));
            }
            State::Here(work) => work,
        };
        if let Poll::Ready(response) = work.as_mut().poll(context) {
            self.was_long = slice::last().is_long;
            return Poll::Ready(Some(response));
        }
        let kept = slice::last();
        self.yields += u32::from(kept.has_yielded);
        if !(kept.is_long || self.yields >= YIELDS_MAX) || env.tasks().place() != Some(Place::Requests) {
            return Poll::Pending;
        }
        let nothing = State::Here(Box::pin(std::future::pending()));
        if let State::Here(work) = std::mem::replace(&mut self.state, nothing) {
            self.state = moved(work, env, books);
            self.was_long = true;
        }
        // Polled once, so that the connection is woken by the response.
        self.poll(context, env, books)
    }
}

fn moved(work: BoxedFuture<'static, Response>, env: &Env, books: &Arc<Books>) -> State {
    let (mut sender, receiver) = oneshot::channel();
    let entered = Entered::new(books);
    let task = async move {
        let (_entered, mut work, mut kept_ns) = (entered, work, 0_u64);
        let counted = poll_fn(|context| {
            let poll = work.as_mut().poll(context);
            kept_ns = kept_ns.saturating_add(slice::last().kept_ns);
            poll
        });
        let response = tokio::select! {
            biased;
            response = counted => Some(response),
            () = sender.closed() => None,
        };
        // What it holds goes before anybody hears of its end.
        drop(work);
        if let Some(response) = response {
            // A connection that has gone wants no response.
            _ = sender.send(FromLane { response, kept_ns });
        }
    };
    // A task that cannot be started is dropped: the receiver hears of it.
    _ = env.tasks().spawn_at(Place::Lanes, Box::pin(task));
    State::OnLane(receiver)
}
