//! Turns: a bounded number of threads go on, the others wait in the order in which they came.
//!
//! A turn is passed from thread to thread under the lock, so none is lost and nobody overtakes.
//! Whoever waits looks now and then whether it has to stop, and goes on without a turn then: it has
//! only to clean up. So does who has waited for very long: those who have the turns may themselves
//! be waiting for what it holds.

use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// How often who waits looks whether it has to stop.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// After so many looks it goes on without a turn: a second.
const LOOKS_MAX: u32 = 50;

/// Turns for so many at once.
pub(super) struct Turns {
    count: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    running: usize,
    waiting: VecDeque<Arc<Waiter>>,
}

#[derive(Default)]
struct Waiter {
    /// Changed under the lock of the state alone.
    has_turn: Mutex<bool>,
    changed: Condvar,
}

impl Turns {
    /// Turns for so many at once, one at least.
    pub(super) fn new(count: usize) -> Turns {
        Turns { count: count.max(1), state: Mutex::default() }
    }

    /// Waits for a turn; false if it has to go on without one.
    #[must_use = "a turn is given back"]
    pub(super) fn take(&self, must_stop: &dyn Fn() -> bool) -> bool {
        let waiter = {
            let mut state = self.state.lock();
            if state.running < self.count {
                state.running += 1;
                return true;
            }
            let waiter = Arc::new(Waiter::default());
            state.waiting.push_back(Arc::clone(&waiter));
            waiter
        };
        self.wait(&waiter, must_stop)
    }

    /// Passes a turn on to who has waited longest, if anybody waits, and waits for the next; false
    /// if it has to go on without one.
    #[must_use = "a turn is given back"]
    pub(super) fn pass_on(&self, must_stop: &dyn Fn() -> bool) -> bool {
        let waiter = {
            let mut state = self.state.lock();
            let Some(next) = state.waiting.pop_front() else { return true };
            next.give();
            let waiter = Arc::new(Waiter::default());
            state.waiting.push_back(Arc::clone(&waiter));
            waiter
        };
        self.wait(&waiter, must_stop)
    }

    /// Gives a turn back.
    pub(super) fn give_back(&self) {
        let mut state = self.state.lock();
        match state.waiting.pop_front() {
            Some(next) => next.give(),
            None => state.running -= 1,
        }
    }

    fn wait(&self, waiter: &Arc<Waiter>, must_stop: &dyn Fn() -> bool) -> bool {
        for _ in 0..LOOKS_MAX {
            let mut has_turn = waiter.has_turn.lock();
            if !*has_turn {
                waiter.changed.wait_for(&mut has_turn, LOOK_INTERVAL);
            }
            if *has_turn {
                return true;
            }
            drop(has_turn);
            if must_stop() {
                break;
            }
        }
        let mut state = self.state.lock();
        let count_before = state.waiting.len();
        state.waiting.retain(|other| !Arc::ptr_eq(other, waiter));
        // Who is not waiting any more was given a turn at the last moment.
        state.waiting.len() == count_before
    }
}

impl Waiter {
    fn give(&self) {
        *self.has_turn.lock() = true;
        self.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    fn never() -> bool {
        false
    }

    #[test]
    fn no_more_than_allowed_run_at_once_and_everybody_comes() {
        let (turns, running, most) = (Turns::new(2), AtomicUsize::new(0), AtomicUsize::new(0));
        let slice = || {
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            std::thread::yield_now();
            running.fetch_sub(1, Ordering::SeqCst);
        };
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| {
                    assert!(turns.take(&never));
                    for _ in 0..50 {
                        slice();
                        assert!(turns.pass_on(&never));
                    }
                    turns.give_back();
                });
            }
        });
        assert!(most.into_inner() <= 2);
        let state = turns.state.into_inner();
        assert_eq!((state.running, state.waiting.len()), (0, 0), "no turn is lost");
    }

    #[test]
    fn who_has_to_stop_does_not_wait_for_its_turn() {
        let turns = Turns::new(1);
        assert!(turns.take(&never));
        assert!(turns.pass_on(&never), "nobody waits: the turn is kept");
        assert!(!turns.take(&|| true), "it goes on without a turn");
        assert_eq!(turns.state.lock().waiting.len(), 0);
        turns.give_back();
        assert!(turns.take(&never), "who went without a turn has given none back");
    }

    #[test]
    fn turns_come_in_the_order_of_asking() {
        let turns = Turns::new(1);
        assert!(turns.take(&never));
        let (say, hear) = mpsc::channel();
        std::thread::scope(|scope| {
            for number in 0..3 {
                let (say, turns) = (say.clone(), &turns);
                scope.spawn(move || {
                    assert!(turns.take(&never));
                    say.send(number).unwrap();
                    turns.give_back();
                });
                while turns.state.lock().waiting.len() <= number {
                    std::thread::yield_now();
                }
            }
            turns.give_back();
        });
        assert_eq!(hear.try_iter().collect::<Vec<_>>(), [0, 1, 2]);
    }
}
