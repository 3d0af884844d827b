//! Numbered flushes: whoever waits for one is woken by it and by no other.
//!
//! A flush gets its number when it captures what it will write, under the tail's lock, so that for every commit it is known which flush
//! has it: the last one if it is captured, the next one if not. While one flush is under way most commits come for the
//! next; told of every end, each of them would wake in vain.
//!
//! Two bells are enough, one for even numbers and one for odd: who waits for a number is told before anybody waits for the
//! number after the next, or a little later, and then looks once in vain.

use crate::bell::{Bell, Listener};
use std::sync::atomic::{AtomicU64, Ordering};

/// Who ends a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// A task, on a worker of the runtime: those that it wakes run here next.
    Task,
    /// A thread of its own.
    Thread,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Flushes {
    /// The last flush that ended; the greatest number when the log has stopped.
    ended: AtomicU64,
    bells: [Bell; 2],
}

impl Flushes {
    /// Registers a waiter for a flush; none if it has ended.
    pub(crate) fn listen(&self, number: u64) -> Option<Listener<'_>> {
        let listener = self.bell(number).listen();
        (self.ended.load(Ordering::SeqCst) < number).then_some(listener)
    }

    /// Tells those who wait for it.
    pub(crate) fn end(&self, number: u64, side: Side) {
        self.ended.fetch_max(number, Ordering::SeqCst);
        self.bell(number).ring_from(side);
    }

    /// Tells everybody, to look again.
    pub(crate) fn ring(&self) {
        self.bells.iter().for_each(Bell::ring);
    }

    /// No flush will be waited for any more.
    pub(crate) fn stop(&self) {
        self.ended.store(u64::MAX, Ordering::SeqCst);
        self.ring();
    }

    fn bell(&self, number: u64) -> &Bell {
        let [even, odd] = &self.bells;
        if number.is_multiple_of(2) { even } else { odd }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Waker};

    fn is_ready(future: std::pin::Pin<&mut impl Future<Output = ()>>) -> bool {
        future.poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn only_those_who_wait_for_it_are_told() {
        let flushes = Flushes::default();
        let mut first = pin!(flushes.listen(1).unwrap().wait_async());
        let mut second = pin!(flushes.listen(2).unwrap().wait_async());
        assert!(!is_ready(first.as_mut()) && !is_ready(second.as_mut()));
        flushes.end(1, Side::Task);
        assert!(is_ready(first) && !is_ready(second.as_mut()));
        assert!(flushes.listen(1).is_none(), "it has ended");
        flushes.end(2, Side::Thread);
        assert!(is_ready(second));
    }

    #[test]
    fn after_a_stop_nobody_waits() {
        let flushes = Flushes::default();
        let mut waiting = pin!(flushes.listen(7).unwrap().wait_async());
        assert!(!is_ready(waiting.as_mut()));
        flushes.stop();
        assert!(is_ready(waiting) && flushes.listen(9).is_none());
    }
}
