//! Slices: how long an operation keeps the thread that runs it, and what happens when that has been
//! long.
//!
//! Threads are shared. An operation's future is polled within [`follow`], which notes when it
//! began; loops that count their steps ([`tick`](super::tick)) and executors between two documents
//! look whether the slice is over. Where the operation can wait it then does, and whoever runs it
//! moves it to where long work runs ([`last`]). Where it cannot, in the middle of an expression or
//! of a unit of work, it pauses: [`Slices::pause`] has its thread replaced and takes turns with
//! others of its kind.
//!
//! Time is read where each slice begins and ends and at looks, never for each step.
//!
//! Invariant: a pause is over, its turn given back, when the poll is.

use super::{OperationContext, during};
use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;

/// Who sees to it that operations work in slices: the composition root knows threads, this crate
/// does not.
pub trait Slices: Send + Sync {
    /// How long an operation may keep the thread that calls this; none if nobody minds.
    fn length_ns(&self) -> Option<u64>;
    /// The operation has kept its thread for so long since its poll began, and goes on: lets others
    /// run first. Called again after each further slice, on the same thread, with nothing.
    fn pause(&self, operation: &OperationContext, kept_ns: Option<u64>);
    /// The poll is over. It kept its thread for so long, unless it has paused.
    fn end(&self, kept_ns: Option<u64>);
}

/// The poll that a thread is in.
#[derive(Clone, Copy)]
struct Slice {
    began_ns: u64,
    /// Never, if nobody minds.
    ends_ns: u64,
    is_paused: bool,
    has_yielded: bool,
}

impl Slice {
    /// No poll, or one that nobody minds.
    const ENDLESS: Slice = Slice { began_ns: 0, ends_ns: u64::MAX, is_paused: false, has_yielded: false };
}

/// What came of a poll.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// The operation kept its thread for longer than a slice.
    pub is_long: bool,
    /// It gave others a turn because it had done much.
    pub has_yielded: bool,
    /// How long the poll took, pauses and all.
    pub kept_ns: u64,
}

thread_local! {
    static SLICE: Cell<Slice> = const { Cell::new(Slice::ENDLESS) };
    static LAST: Cell<Kept> = const { Cell::new(Kept { is_long: false, has_yielded: false, kept_ns: 0 }) };
}

/// Runs an operation's future in slices; [`tick`](super::tick) asks the operation meanwhile.
pub async fn follow<T>(operation: &OperationContext, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    poll_fn(|context| poll_in_slice(operation, || work.as_mut().poll(context))).await
}

fn poll_in_slice<R>(operation: &OperationContext, poll: impl FnOnce() -> R) -> R {
    let Some((slices, length_ns)) = operation.slices().and_then(|slices| Some((slices, slices.length_ns()?))) else {
        return during(operation, poll);
    };
    struct End<'a> {
        operation: &'a OperationContext,
        slices: &'a dyn Slices,
        outer: Slice,
    }
    impl Drop for End<'_> {
        fn drop(&mut self) {
            let slice = SLICE.replace(self.outer);
            let now_ns = self.operation.now_ns();
            let is_long = slice.is_paused || now_ns >= slice.ends_ns;
            let kept_ns = now_ns.saturating_sub(slice.began_ns);
            self.slices.end((!slice.is_paused).then_some(kept_ns));
            LAST.set(Kept { is_long, has_yielded: slice.has_yielded, kept_ns });
        }
    }
    let began_ns = operation.now_ns();
    let slice = Slice { began_ns, ends_ns: began_ns.saturating_add(length_ns), ..Slice::ENDLESS };
    let _end = End { operation, slices, outer: SLICE.replace(slice) };
    during(operation, poll)
}

/// What came of the last poll within [`follow`] on this thread; each is told once.
pub fn last() -> Kept {
    LAST.take()
}

/// True if the operation has kept this thread for long enough.
pub fn is_over(operation: &OperationContext) -> bool {
    let ends_ns = SLICE.get().ends_ns;
    ends_ns != u64::MAX && operation.now_ns() >= ends_ns
}

/// The same for whoever has just looked at the clock.
#[inline]
pub fn is_over_at(now_ns: u64) -> bool {
    now_ns >= SLICE.get().ends_ns
}

/// Notes that the operation is about to give others a turn, having done much.
pub fn note_yield() {
    SLICE.set(Slice { has_yielded: true, ..SLICE.get() });
}

/// Lets others run if the slice is over, in the middle of a call. The caller holds nothing that others wait for.
pub fn pause_if_over(operation: &OperationContext) {
    if is_over(operation) {
        pause(operation);
    }
}

/// Lets others run, in the middle of a call. The caller holds nothing that others wait for.
#[cold]
pub fn pause(operation: &OperationContext) {
    let slice = SLICE.get();
    let Some(slices) = operation.slices().filter(|_| slice.ends_ns != u64::MAX) else { return };
    let kept_ns = (!slice.is_paused).then(|| operation.now_ns().saturating_sub(slice.began_ns));
    slices.pause(operation, kept_ns);
    let ends_ns = slices.length_ns().map_or(u64::MAX, |length_ns| operation.now_ns().saturating_add(length_ns));
    SLICE.set(Slice { ends_ns, is_paused: true, ..slice });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::{Client, OperationRegistry, STEPS_PER_LOOK, tick};
    use parking_lot::Mutex;
    use std::future::{pending, ready};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::task::{Context, Waker};

    /// A slice is as long as ten looks; each look takes one.
    const LENGTH_NS: u64 = 10;

    #[derive(Default)]
    struct Noted {
        /// When.
        pauses_ns: Mutex<Vec<u64>>,
        kept_ns: Mutex<Vec<Option<u64>>>,
        ends_ns: Mutex<Vec<Option<u64>>>,
    }

    struct Noting(Arc<Noted>);

    impl Slices for Noting {
        fn length_ns(&self) -> Option<u64> {
            Some(LENGTH_NS)
        }
        fn pause(&self, operation: &OperationContext, kept_ns: Option<u64>) {
            self.0.pauses_ns.lock().push(operation.now_ns());
            self.0.kept_ns.lock().push(kept_ns);
        }
        fn end(&self, kept_ns: Option<u64>) {
            self.0.ends_ns.lock().push(kept_ns);
        }
    }

    /// Every look at the clock moves it.
    fn operation() -> (OperationContext, Arc<Noted>) {
        let (now, noted) = (AtomicU64::new(0), Arc::new(Noted::default()));
        let clock = Arc::new(move || now.fetch_add(1, Ordering::Relaxed));
        let registry = OperationRegistry::with_slices(clock, Some(Box::new(Noting(Arc::clone(&noted)))));
        (registry.start(&Arc::new(Client::internal("test"))), noted)
    }

    fn poll<T>(operation: &OperationContext, work: impl Future<Output = T>) -> bool {
        pin!(follow(operation, work)).poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn short_work_is_not_interrupted() {
        let (operation, noted) = operation();
        assert!(poll(&operation, async { tick(STEPS_PER_LOOK).unwrap() }));
        assert!(noted.pauses_ns.lock().is_empty());
        assert!(matches!(noted.ends_ns.lock()[..], [Some(kept_ns)] if kept_ns < LENGTH_NS));
        let kept = last();
        assert!(!kept.is_long && !kept.has_yielded && kept.kept_ns < LENGTH_NS);
    }

    #[test]
    fn a_loop_that_goes_on_pauses_at_the_end_of_each_slice() {
        let (operation, noted) = operation();
        let work = async { (0..100 * STEPS_PER_LOOK).for_each(|_| tick(1).unwrap()) };
        assert!(poll(&operation, work));
        let pauses_ns = noted.pauses_ns.lock();
        assert!(pauses_ns.windows(2).all(|pair| pair[1] - pair[0] <= LENGTH_NS + 4), "{pauses_ns:?}");
        let kept_ns = noted.kept_ns.lock();
        assert!(kept_ns.len() >= 5 && kept_ns[0].is_some_and(|kept_ns| kept_ns <= LENGTH_NS + 1), "{kept_ns:?}");
        assert!(kept_ns[1..].iter().all(Option::is_none), "{kept_ns:?}");
        assert_eq!(*noted.ends_ns.lock(), [None], "the worker was free before");
        assert!(last().is_long);
        assert_eq!(last(), Kept::default(), "told once");
    }

    #[test]
    fn work_that_lets_others_run_is_told_of() {
        let (operation, noted) = operation();
        let work = async {
            note_yield();
            pending::<()>().await;
        };
        assert!(!poll(&operation, work));
        let kept = last();
        assert!(!kept.is_long && kept.has_yielded);
        assert_eq!(noted.ends_ns.lock().len(), 1);
        assert!(!is_over_at(u64::MAX - 1), "outside of polls nobody minds");
    }

    #[test]
    fn a_part_of_an_operation_pauses_as_the_whole_does() {
        let (operation, noted) = operation();
        let part = operation.child();
        let work = async { during(&part, || (0..30 * STEPS_PER_LOOK).for_each(|_| tick(1).unwrap())) };
        assert!(poll(&operation, work));
        assert!(!noted.pauses_ns.lock().is_empty());
    }

    #[test]
    fn who_has_nobody_to_see_to_it_goes_on() {
        let operation = OperationContext::detached();
        assert!(poll(&operation, ready(())));
        assert!(poll(&operation, async { (0..30 * STEPS_PER_LOOK).for_each(|_| tick(1).unwrap()) }));
        assert_eq!(last(), Kept::default());
    }
}
